//! The ONNX front end: from a file to a core graph.
//!
//! `proto.rs` is the format; `tensors.rs` and `types.rs` read data and types; `model.rs` declares inputs, weights and outputs;
//! `walk.rs` translates node by node with the operators of `ops/`. What both front ends compute alike is computed by the rules
//! of PyTorch's operators (`torch.rs`).

mod body;
mod call;
mod custom;
mod data;
mod functions;
#[cfg(test)]
mod large;
mod listing;
mod model;
#[cfg(test)]
mod mutants;
mod ops;
mod origin;
#[expect(unreachable_pub, clippy::enum_variant_names, reason = "it is as the generator prints it")]
#[rustfmt::skip]
mod proto;
mod sizes;
mod tensors;
#[cfg(test)]
mod testing;
mod torch;
mod types;
mod value;
mod walk;

pub use data::{Stored, stored_value};
pub use listing::{Support, operators_of};
pub use model::{Kind, external_files, import, interface};
pub use ops::{refused, supported};
pub use tensors::Beside;

pub use super::is_onnx;
