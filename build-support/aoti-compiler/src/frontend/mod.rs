//! Front ends: the only part of the compiler that knows file formats. Each reads a file and gives a core graph.

#[cfg(feature = "onnx")]
pub mod onnx;
pub mod pt2;
pub mod text;

use crate::aten::{self, Program};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::graph::{Condition, Graph};
use crate::operators::Operators;
use crate::transform::decompose::decompose_with;
use bytes::Bytes;
use std::collections::BTreeMap;

/// The least size of dynamic axes for which a program is read.
///
/// `torch.export` states a minimum of 2 for `Dim.DYNAMIC` and `Dim.AUTO`, because it takes sizes to be neither 0 nor 1
/// while it traces. It does not enforce that minimum: the program is that of `Dim("name")`, whose minimum is 0, and PyTorch
/// runs it with any size. ONNX states none; what broadcasts may need one.
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

/// A model as a core graph, and for which sizes it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Import {
    /// The graph.
    pub graph: Graph,
    /// Whether all sizes have the minimum that the file states.
    pub is_stated: bool,
    /// Conditions on sizes that the file states itself.
    pub asked: Vec<Condition>,
}

/// A model file, and the files beside it that have a part of its data, by the names that it knows them by.
#[derive(Clone, Default, Debug)]
pub struct ModelFile {
    /// The file.
    pub file: Bytes,
    /// Files beside it.
    pub beside: BTreeMap<String, Bytes>,
}

impl From<Bytes> for ModelFile {
    fn from(file: Bytes) -> ModelFile {
        ModelFile { file, beside: BTreeMap::new() }
    }
}

impl From<String> for ModelFile {
    fn from(text: String) -> ModelFile {
        text.into_bytes().into()
    }
}

impl From<Vec<u8>> for ModelFile {
    fn from(file: Vec<u8>) -> ModelFile {
        Bytes::from(file).into()
    }
}

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
    let reading = pt2::import(least, name, file)?;
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
