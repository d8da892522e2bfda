//! What a name of an ONNX graph stands for.

use crate::graph::ValueId;

/// A value of an ONNX graph.
#[derive(Clone, Debug)]
pub(super) enum Val {
    /// Nothing: an optional operand that is left out, or an optional without an element.
    Absent,
    /// A tensor.
    Tensor(ValueId),
    /// A sequence, whose length is known when the model is compiled.
    Sequence(Vec<Val>),
    /// A sequence of tensors of one shape, as many as a size or data say: the rows of a tensor.
    Rows(ValueId),
    /// What a node that was refused would have given.
    Poison,
}

impl From<ValueId> for Val {
    fn from(value: ValueId) -> Val {
        Val::Tensor(value)
    }
}

impl From<Option<ValueId>> for Val {
    fn from(value: Option<ValueId>) -> Val {
        value.map_or(Val::Absent, Val::Tensor)
    }
}

impl Val {
    /// Whether any part of it is missing because a node was refused.
    pub(super) fn is_poisoned(&self) -> bool {
        match self {
            Val::Poison => true,
            Val::Sequence(all) => all.iter().any(Val::is_poisoned),
            Val::Absent | Val::Tensor(_) | Val::Rows(_) => false,
        }
    }
}
