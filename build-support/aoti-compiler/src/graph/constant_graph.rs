//! What the compiler did to weights, as a graph of its own (`passes/constant_graph.rs` makes it).

use super::{ConstantId, Graph};
use crate::dtype::DType;
use std::collections::BTreeMap;

/// A tensor of the program's state, as a checkpoint holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weight {
    /// Its name there.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub sizes: Vec<i64>,
    /// The weight of which this is another name (tied weights): its position in [`ConstantGraph::weights`].
    pub tied: Option<usize>,
    /// Which input of the graph it is; none where nothing depends on it, or where it is another's name.
    pub input: Option<usize>,
}

/// Where the elements of a constant that kernels read come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elements {
    /// They are the program's own.
    Fixed,
    /// They are a weight's: the input of the graph at this position.
    Input(usize),
    /// The output of the graph at this position.
    Output(usize),
}

/// From the tensors of a program's state, by their own names, to the constants that kernels read.
pub struct ConstantGraph {
    /// All tensors of the program's state, in the order of their names' bytes.
    pub weights: Vec<Weight>,
    /// The graph: its inputs are weights, its outputs are what is computed from them.
    pub graph: Graph,
    /// Where each constant that was asked for comes from, by the position of the program that reads it and its number
    /// there.
    pub elements: BTreeMap<(usize, ConstantId), Elements>,
}
