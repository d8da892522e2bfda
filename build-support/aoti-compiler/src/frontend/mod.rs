//! Front ends: the only part of the compiler that knows file formats.

pub mod pt2;
pub mod text;

use crate::aten::{self, Program};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use bytes::Bytes;

/// Reads a model of any known format, told by its content, and checks that the program is well formed. `name` becomes
/// the program's name; tensors share `file`.
pub fn import(name: &str, file: Bytes) -> Result<Program, Diagnostics> {
    if is_onnx(&file) {
        let finding =
            Diagnostic::new(Code::Version, "the model is in the ONNX format, which is not supported yet");
        return Err(finding.help("export it with `torch.export.save` as a .pt2 file").into());
    }
    let program = pt2::import(name, file)?;
    aten::verify(&program)?;
    Ok(program)
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
