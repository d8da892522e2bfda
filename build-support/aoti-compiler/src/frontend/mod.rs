//! Front ends: the only part of the compiler that knows file formats. Each reads a file and gives a core graph.
//!
//! Knows what all formats have in common: a table, and for which sizes a model is read.

mod import;
mod input_shape;
mod min_size;
#[cfg(feature = "onnx")]
pub mod onnx;
mod stack_trace;
pub mod text;
pub mod torch;
#[cfg(not(feature = "onnx"))]
mod without_onnx;
#[cfg(not(feature = "onnx"))]
use without_onnx as onnx;

pub use import::{Import, MinSize, ModelFile, OperatorCounts, Support};
pub use input_shape::InputShape;
pub(crate) use min_size::read_with;

use crate::diagnostic::Diagnostics;
use crate::graph::Graph;
use bytes::Bytes;
use import::Format;
use torch::custom::{Operator, Operators};

/// All formats. The last takes whatever no other recognises.
const FORMATS: [&Format; 3] = [&text::FORMAT, &onnx::FORMAT, &torch::FORMAT];

/// The format of a file, by its content.
fn format_of(file: &[u8]) -> &'static Format {
    FORMATS.into_iter().find(|format| (format.recognizes)(file)).unwrap_or(&torch::FORMAT)
}

/// Reads a model of any format, for the smallest sizes for which that succeeds. `name` becomes the graph's name; tensors share
/// the file.
///
/// # Errors
/// Everything in the file that is wrong or not supported, and what is wrong with the declarations of operators.
pub fn read(name: &str, model: impl Into<ModelFile>, operators: &[Operator]) -> Result<Graph, Diagnostics> {
    let (model, operators) = (model.into(), Operators::new(operators)?);
    read_with(name, &model, &operators, &mut Ok)
}

/// The names of the files beside a model's own that its data are in.
///
/// # Errors
/// A file that cannot be read, and names that leave its folder.
pub fn files_beside(file: &Bytes) -> Result<Vec<String>, Diagnostics> {
    (format_of(file).files_beside)(file.clone())
}

/// Whether the name of a state is its exporter's invention: those of two programs have nothing to do with each other.
pub(crate) fn is_made_up(state: &str) -> bool {
    torch::is_made_up(state)
}

/// The text of a model as its exporter wrote it.
///
/// # Errors
/// A file that cannot be read, or whose format has no such text.
pub fn exported(name: &str, file: Bytes) -> Result<String, Diagnostics> {
    (format_of(&file).exported)(name, file)
}

/// The operators of a model and of its bodies.
///
/// # Errors
/// A file that cannot be read, or whose format has no operators but the compiler's own.
pub fn operators_of(file: Bytes, declared: &Operators) -> Result<OperatorCounts, Diagnostics> {
    (format_of(&file).operators)(file, declared)
}

/// ONNX has no magic bytes. Its files begin with their version, a small number, then the name of what wrote them, a text, or
/// another field.
pub(crate) fn is_onnx(file: &[u8]) -> bool {
    const VERSION: u8 = 0x08;
    const NEXT: [u8; 8] = [0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72];
    matches!(file, [VERSION, 1..=0x7f, next, ..] if NEXT.contains(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn onnx_is_recognised_by_its_first_fields() {
        assert!(is_onnx(b"\x08\x08\x12\x07pytorch") && is_onnx(b"\x08\x07\x3a\x00"));
        assert!(!is_onnx(b"PK\x03\x04") && !is_onnx(b"\x08"));
        let error = exported("m", Bytes::from_static(b"\x08\x08\x12\x07pytorch")).unwrap_err();
        assert!(error.to_string().contains("ONNX"), "{error}");
    }
}
