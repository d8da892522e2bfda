//! Transformations of programs and graphs, each a function between values.

pub mod bounds;
mod byte_products;
mod constant_graph;
mod cse;
mod dce;
mod derive;
mod fold_constants;
mod fold_scales;
mod fourier_products;
pub(crate) mod integer_extent;
mod integer_products;
mod join_products;
mod orient_lookups;
mod patches;
mod phases;
mod quantised_products;
pub mod rename;
mod rewrite;
mod simplify;
mod skinny_weights;
mod splats;
mod split_reductions;
mod split_scans;
#[cfg(test)]
mod tests;
mod widen;

pub(crate) use byte_products::byte_operands;
pub use byte_products::products_of_bytes;
pub use constant_graph::{ConstantGraph, Elements, Weight, constant_graph};
pub use cse::cse;
pub use dce::dce;
pub use derive::freeze;
pub use fold_constants::fold_constants;
pub use fold_scales::fold_scales;
pub use fourier_products::fourier_to_products;
pub use integer_products::integers_in_floats;
pub use join_products::join_products;
pub use orient_lookups::orient_lookups;
pub use patches::patches_to_products;
pub use phases::phases_to_channels;
pub use quantised_products::quantised_products;
pub use simplify::simplify;
pub use skinny_weights::store_skinny_weights;
pub use splats::fold_splats;
pub(crate) use split_reductions::PARTS;
pub use split_reductions::split_reductions;
pub use split_scans::split_scans;
pub use widen::widen;

use crate::graph::{Graph, verify};

/// A pass over the core graph.
type Pass = fn(Graph) -> Graph;

/// The passes between decomposition and lowering, in order. What folding uncovers is simplified once more.
const PASSES: &[(&str, Pass)] = &[
    ("dce", dce),
    ("fold_splats", fold_splats),
    ("simplify", simplify),
    ("cse", cse),
    ("orient_lookups", orient_lookups),
    ("fold_constants", fold_constants),
    ("fold_splats", fold_splats),
    ("simplify", simplify),
    ("dce", dce),
    ("join_products", join_products),
    ("simplify", simplify),
    ("dce", dce),
    ("fold_scales", fold_scales),
    ("phases_to_channels", phases_to_channels),
    ("fold_constants", fold_constants),
    ("patches_to_products", patches_to_products),
    ("cse", cse),
    ("dce", dce),
];

/// Makes a verified graph compute the same with less. The result is verified after each pass in debug builds.
pub fn optimize(graph: Graph) -> Graph {
    PASSES.iter().fold(graph, |graph, (name, pass)| {
        let graph = pass(graph);
        if cfg!(debug_assertions)
            && let Err(findings) = verify(&graph)
        {
            panic!("pass `{name}` breaks the graph: {findings:?}");
        }
        graph
    })
}
