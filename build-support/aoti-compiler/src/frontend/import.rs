//! What a front end is given, and what it gives.

use super::input_shape::InputShape;
use super::torch::custom::Operators;
use crate::diagnostic::Diagnostics;
use crate::graph::{Condition, Graph};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The minimum of dynamic sizes for which a model is read.
///
/// Exporters leave out sizes of 0 and 1, because broadcasting treats them differently, yet most of what they write is right for
/// these too. `torch.export` states a minimum of 2 for `Dim.DYNAMIC` and `Dim.AUTO` and does not enforce it: the program is that
/// of `Dim("name")`, whose minimum is 0, and PyTorch runs it with any size. ONNX states no minimum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MinSize {
    /// The one that the file states.
    Stated,
    /// 0 or 1, for sizes of which the exporter leaves these out.
    Lowered(i64),
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

/// A model file, and the files beside it that have a part of its data, by the names that it knows them by; or the files of the
/// programs of a model that has several.
#[derive(Clone, Default, Debug)]
pub struct ModelFile {
    /// The file; empty for a model of several programs.
    pub file: Bytes,
    /// Files beside it.
    pub beside: BTreeMap<String, Bytes>,
    /// The programs by name, where there are several.
    pub programs: Vec<(String, ModelFile)>,
    /// Of one of several programs: qualified names of the tensors that others mutate, and which it therefore reads anew in each run.
    pub states: BTreeSet<String>,
    /// Shapes of inputs that go before the file's own, and say what a file leaves open: how long a sequence is.
    pub shapes: BTreeMap<String, InputShape>,
}

impl ModelFile {
    /// A model of several programs, by name.
    pub fn of_programs(programs: Vec<(String, ModelFile)>) -> ModelFile {
        ModelFile { programs, ..ModelFile::default() }
    }

    /// All files with content: its own, or those of its programs in order.
    pub fn contents(&self) -> Vec<&Bytes> {
        let of_programs = self.programs.iter().map(|(_, program)| &program.file);
        if self.programs.is_empty() { vec![&self.file] } else { of_programs.collect() }
    }
}

impl From<Bytes> for ModelFile {
    fn from(file: Bytes) -> ModelFile {
        ModelFile { file, ..ModelFile::default() }
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

/// What translates calls of an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Support {
    /// A rule.
    Rule,
    /// A function of the model's own.
    Function,
    /// A declaration of the user's project.
    Project,
    /// Nothing, for this reason.
    Refused(&'static str),
    /// Nothing.
    None,
}

/// The operators of a model by name: how many calls, and what translates them.
pub type OperatorCounts = BTreeMap<String, (usize, Support)>;

/// A file format.
pub(super) struct Format {
    /// Whether a file is of this format.
    pub(super) recognizes: fn(&[u8]) -> bool,
    /// Whether shapes of inputs can be given beside the file.
    pub(super) takes_shapes: bool,
    /// The names of the files beside a model's own that its data are in.
    pub(super) files_beside: fn(Bytes) -> Result<Vec<String>, Diagnostics>,
    /// Reads a model for sizes from a minimum on. The name becomes the graph's; tensors share the file.
    pub(super) import: fn(MinSize, &str, &ModelFile, &Operators) -> Result<Import, Diagnostics>,
    /// The text of the model as its exporter wrote it, before it is translated.
    pub(super) exported: fn(&str, Bytes) -> Result<String, Diagnostics>,
    /// The operators of a model.
    pub(super) operators: fn(Bytes, &Operators) -> Result<OperatorCounts, Diagnostics>,
}
