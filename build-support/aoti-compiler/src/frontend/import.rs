//! What front ends are given, and what they give.

use crate::graph::{Condition, Graph};
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
