//! Passes over the core graph, each a function from graph to graph.

mod align_weights;
pub mod bounds;
mod byte_functions;
mod byte_maxima;
mod byte_products;
mod constant_graph;
mod conv_as_gemm;
mod cse;
mod dce;
mod derive;
mod fold_batch_norm;
mod fold_constants;
mod fourier_steps;
mod fourier_to_gemm;
mod gemv_weights;
mod half_convolutions;
mod hoist_scales;
pub(crate) mod integer_extent;
mod integer_products;
mod merge_convolutions;
mod merge_matmuls;
mod narrow_lookups;
mod narrow_weights;
mod nested_limits;
mod orient_lookups;
mod padded_images;
mod quantised_products;
pub mod rename;
mod rewrite;
mod simplify;
mod sorted_selections;
mod split_reductions;
mod split_scans;
mod subpixel_conv;
#[cfg(test)]
mod tests;
mod tiny_products;
mod uniform_constants;
mod unroll_recurrent;
mod widen;

pub use align_weights::align_weights;
pub use byte_functions::byte_functions;
pub use byte_maxima::maxima_of_bytes;
pub(crate) use byte_products::byte_operands;
pub use byte_products::products_of_bytes;
pub use constant_graph::constant_graph;
pub use conv_as_gemm::conv_as_gemm;
pub use cse::cse;
pub use dce::dce;
pub use derive::freeze;
pub use fold_batch_norm::fold_batch_norm;
pub use fold_constants::{fold_constants, fold_groups};
pub(crate) use fourier_to_gemm::fourier_to_gemm;
pub use gemv_weights::store_gemv_weights;
pub use hoist_scales::hoist_scales;
pub use merge_convolutions::merge_convolutions;
pub use merge_matmuls::merge_matmuls;
pub use narrow_lookups::narrow_lookups;
pub use narrow_weights::{WeightsType, narrow_weights};
pub use nested_limits::drop_nested_limits;
pub use orient_lookups::orient_lookups;
pub use quantised_products::quantised_products;
pub use simplify::simplify;
pub use sorted_selections::sorted_selections;
pub(crate) use split_reductions::PARTS;
pub use split_reductions::split_reductions;
pub use split_scans::split_scans;
pub use subpixel_conv::subpixel_conv;
pub use tiny_products::tiny_products;
pub use uniform_constants::fold_uniform_constants;
pub use unroll_recurrent::unroll_recurrent;
pub use widen::widen;

use crate::graph::{Graph, verify};
use crate::target::Target;

/// A pass over the core graph.
type Pass = fn(Graph) -> Graph;

/// The passes between front ends and lowering, in order. What folding uncovers is simplified once more.
const PASSES: &[(&str, Pass)] = &[
    ("dce", dce),
    ("fold_uniform_constants", fold_uniform_constants),
    ("simplify", simplify),
    ("cse", cse),
    ("orient_lookups", orient_lookups),
    ("fold_constants", fold_constants),
    ("fold_uniform_constants", fold_uniform_constants),
    ("simplify", simplify),
    ("dce", dce),
    ("hoist_scales", hoist_scales),
    ("merge_matmuls", merge_matmuls),
    ("simplify", simplify),
    ("dce", dce),
    ("fold_batch_norm", fold_batch_norm),
    ("merge_convolutions", merge_convolutions),
    ("fold_constants", fold_constants),
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

/// What a pass over contractions leaves: operands that nothing reads, conversions of conversions, and of constants.
fn clean(graph: Graph) -> Graph {
    dce(simplify(fold_constants(simplify(dce(graph)))))
}

/// Computes contractions in floats that processors have no templates for, or slower ones: of small integers, and of half types.
pub fn contractions_in_floats(graph: Graph, target: &Target) -> Graph {
    match target {
        Target::Gpu(_) => return graph,
        Target::Cpu(_) => {}
    }
    let (graph, has_integers) = integer_products::integers_in_floats(graph);
    let (graph, has_halves) = half_convolutions::half_convolutions(graph);
    if has_integers || has_halves { clean(graph) } else { graph }
}
