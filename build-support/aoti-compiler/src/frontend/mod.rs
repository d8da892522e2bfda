//! Front ends: the only part of the compiler that knows file formats. Each reads a file and gives a core graph.

mod import;
#[cfg(feature = "onnx")]
pub mod onnx;
pub mod text;
pub mod torch;

pub use import::{Import, Least, ModelFile};

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use bytes::Bytes;
use torch::Reading;
use torch::aten::{self, Program};
use torch::custom::Operators;
use torch::functionalize::decompose_with;

/// The names of the files beside a model's own that its data are in.
///
/// # Errors
/// A file that cannot be read, and names that leave its folder.
pub fn files_beside(file: &Bytes) -> Result<Vec<String>, Diagnostics> {
    #[cfg(feature = "onnx")]
    if onnx::is_onnx(file) {
        return Ok(onnx::external_files(file.clone())?.into_iter().collect());
    }
    let _ = file;
    Ok(Vec::new())
}

/// Reads a model of any known format, told by its content, for sizes from `least` on. `name` becomes the graph's name;
/// tensors share the file.
pub fn read(
    least: Least,
    name: &str,
    model: &ModelFile,
    operators: &Operators,
) -> Result<Import, Diagnostics> {
    let file = model.file.clone();
    if text::is_text(&file) {
        return Ok(Import { graph: text::import(name, file)?, is_stated: true, asked: Vec::new() });
    }
    #[cfg(feature = "onnx")]
    if onnx::is_onnx(&file) {
        return onnx::import(least, name, file, model.beside.clone(), operators);
    }
    let Reading { program, is_stated } = import_from(least, name, file)?;
    let graph = decompose_with(&program, operators)?;
    Ok(Import { graph, is_stated, asked: program.guards.into_iter().map(|guard| guard.condition).collect() })
}

/// Reads a program of PyTorch's operators, and checks that it is well formed. `name` becomes the program's name; tensors share
/// `file`.
pub fn import(name: &str, file: Bytes) -> Result<Program, Diagnostics> {
    Ok(import_from(Least::Stated, name, file)?.program)
}

/// The same for sizes from `least` on.
pub fn import_from(least: Least, name: &str, file: Bytes) -> Result<Reading, Diagnostics> {
    if is_onnx(&file) {
        let finding = Diagnostic::new(Code::Version, "the model is in the ONNX format");
        let help = if cfg!(feature = "onnx") {
            "an ONNX model has no ATen program; ask for its graph"
        } else {
            "turn on the feature `onnx` of `aoti-build`"
        };
        return Err(finding.help(help).into());
    }
    let reading = torch::pt2::import(least, name, file)?;
    aten::verify(&reading.program)?;
    Ok(reading)
}

/// ONNX has no magic bytes. Its files begin with their version, a small number, then the name of what wrote them, a text, or
/// another field.
pub fn is_onnx(file: &[u8]) -> bool {
    const VERSION: u8 = 0x08;
    const NEXT: [u8; 8] = [0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72];
    matches!(file, [VERSION, 1..=0x7f, next, ..] if NEXT.contains(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn onnx_is_told_by_its_first_fields() {
        assert!(is_onnx(b"\x08\x08\x12\x07pytorch") && is_onnx(b"\x08\x07\x3a\x00"));
        assert!(!is_onnx(b"PK\x03\x04") && !is_onnx(b"\x08"));
        let error = import("m", Bytes::from_static(b"\x08\x08\x12\x07pytorch")).unwrap_err();
        assert!(error.to_string().contains("ONNX"), "{error}");
    }
}
