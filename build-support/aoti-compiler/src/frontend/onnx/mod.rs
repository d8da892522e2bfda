//! The ONNX front end: from a file to a core graph.
//!
//! `proto.rs` is the format; `tensors.rs` and `types.rs` read data and types; `model.rs` declares inputs, weights and outputs;
//! `walk.rs` translates node by node with the operators of `ops/`. What PyTorch computes too is a call of the function
//! that the rule of its operator is made of (`torch/rules/`).

mod body;
mod call;
mod custom;
mod data;
mod functions;
mod interface;
#[cfg(test)]
mod large;
mod listing;
mod model;
#[cfg(test)]
mod mutants;
mod ops;
mod order;
mod origin;
#[expect(unreachable_pub, clippy::enum_variant_names, reason = "it is as the generator prints it")]
#[rustfmt::skip]
mod proto;
mod sizes;
mod tensors;
#[cfg(test)]
mod testing;
mod types;
mod value;
mod walk;

pub use data::{Stored, stored_value};
pub use interface::{Declaration, Kind, interface};
pub use ops::{refused, supported};

use super::import::Format;
use super::is_onnx;
use crate::diagnostic::{Code, Diagnostic};
#[cfg(test)]
use model::{external_files, import};

/// The row of the table of formats.
pub(super) const FORMAT: Format = Format {
    recognizes: is_onnx,
    takes_shapes: true,
    files_beside: |file| Ok(model::external_files(file)?.into_iter().collect()),
    import: model::import,
    exported: |_, _| {
        let finding = Diagnostic::new(Code::Version, "the model is in the ONNX format");
        Err(finding.help("an ONNX model has no ATen program; ask for its graph").into())
    },
    operators: listing::operators_of,
};
