//! Front ends: the only part of the compiler that knows file formats.

pub mod pt2;
pub mod text;

use crate::aten::{self, Program};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use bytes::Bytes;

/// The least size of dynamic axes for which a program is read.
///
/// `torch.export` states a minimum of 2 for `Dim.DYNAMIC` and `Dim.AUTO`, because it takes sizes to be neither 0 nor 1
/// while it traces. It does not enforce that minimum: the program is that of `Dim("name")`, whose minimum is 0, and PyTorch
/// runs it with any size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Least {
    /// What the file states.
    Stated,
    /// One of the sizes that export leaves out, 0 or 1, where the file states 2.
    Size(i64),
}

/// A program, and for which sizes it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// The program.
    pub program: Program,
    /// Whether all sizes have the minimum that the file states.
    pub is_stated: bool,
}

/// Reads a model of any known format, told by its content, and checks that the program is well formed. `name` becomes
/// the program's name; tensors share `file`.
pub fn import(name: &str, file: Bytes) -> Result<Program, Diagnostics> {
    Ok(import_from(Least::Stated, name, file)?.program)
}

/// The same for sizes from `least` on.
pub fn import_from(least: Least, name: &str, file: Bytes) -> Result<Reading, Diagnostics> {
    if is_onnx(&file) {
        let finding =
            Diagnostic::new(Code::Version, "the model is in the ONNX format, which is not supported yet");
        return Err(finding.help("export it with `torch.export.save` as a .pt2 file").into());
    }
    let reading = pt2::import(least, name, file)?;
    aten::verify(&reading.program)?;
    Ok(reading)
}

/// ONNX has no magic bytes. Its files begin with their version, a small number, then the name of what wrote them, a text,
/// or the graph itself.
fn is_onnx(file: &[u8]) -> bool {
    const VERSION: u8 = 0x08;
    const PRODUCER_OR_GRAPH_OR_IMPORT: [u8; 3] = [0x12, 0x3a, 0x42];
    matches!(file, [VERSION, 1..=0x7f, next, ..] if PRODUCER_OR_GRAPH_OR_IMPORT.contains(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn onnx_is_known_and_refused_by_name() {
        let error = import("m", Bytes::from_static(b"\x08\x08\x12\x07pytorch")).unwrap_err();
        assert!(
            error.to_string().contains("ONNX") && error.to_string().contains("not supported yet"),
            "{error}"
        );
        assert!(!is_onnx(b"PK\x03\x04") && !is_onnx(b"\x08"));
    }
}
