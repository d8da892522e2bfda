//! Typed access to the operands and attributes of a node.

use super::proto::attribute_proto::AttributeType;
use super::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};
use super::value::Val;
use crate::frontend::torch::rules::RuleError;
use crate::graph::ValueId;

/// One node on its way through its rule.
pub(super) struct Call<'n> {
    pub(super) node: &'n NodeProto,
    /// The version of the operator set that it is of.
    pub(super) version: i64,
    pub(super) inputs: Vec<Val>,
}

/// A node that does not follow the standard.
pub(super) fn malformed(message: impl Into<String>) -> RuleError {
    RuleError::Malformed(message.into())
}

/// An axis of a tensor of so many, negative ones counted from the end.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize, RuleError> {
    let count = i64::try_from(rank).expect("few axes");
    let from_start = if axis < 0 { axis.checked_add(count) } else { Some(axis) };
    let within =
        from_start.filter(|axis| (0..count).contains(axis)).and_then(|axis| usize::try_from(axis).ok());
    within.ok_or_else(|| malformed(format!("axis {axis} is outside of a tensor of {rank} axes")))
}

/// A use that is not covered.
pub(super) fn unsupported(message: impl Into<String>) -> RuleError {
    RuleError::Unsupported(message.into())
}

impl<'n> Call<'n> {
    // --- operands ------------------------------------------------------------------------------------------------

    /// An operand; what is left out is absent.
    pub(super) fn input(&self, position: usize) -> Val {
        self.inputs.get(position).cloned().unwrap_or(Val::Absent)
    }

    /// A tensor.
    pub(super) fn tensor(&self, position: usize) -> Result<ValueId, RuleError> {
        let missing = || malformed(format!("operand {position} is missing"));
        self.opt_tensor(position)?.ok_or_else(missing)
    }

    /// A tensor that may be left out.
    pub(super) fn opt_tensor(&self, position: usize) -> Result<Option<ValueId>, RuleError> {
        match self.inputs.get(position) {
            None | Some(Val::Absent) => Ok(None),
            Some(Val::Tensor(value)) => Ok(Some(*value)),
            Some(Val::Sequence(_) | Val::Rows(_)) => {
                Err(malformed(format!("operand {position} is a sequence, not a tensor")))
            }
            Some(Val::Poison) => Err(malformed(format!("operand {position} was refused"))),
        }
    }

    /// All operands, each a tensor.
    pub(super) fn tensors(&self) -> Result<Vec<ValueId>, RuleError> {
        (0..self.inputs.len()).map(|position| self.tensor(position)).collect()
    }

    /// A sequence of known length.
    pub(super) fn sequence(&self, position: usize) -> Result<Vec<Val>, RuleError> {
        match self.input(position) {
            Val::Sequence(all) => Ok(all),
            Val::Rows(_) => {
                Err(unsupported("a sequence whose length is not known when the model is compiled"))
            }
            Val::Absent | Val::Tensor(_) | Val::Poison => {
                Err(malformed(format!("operand {position} is no sequence")))
            }
        }
    }

    /// Whether anything uses a result.
    pub(super) fn wants(&self, position: usize) -> bool {
        self.node.output.get(position).is_some_and(|name| !name.is_empty())
    }

    /// How many results the node has.
    pub(super) fn results(&self) -> usize {
        self.node.output.len()
    }

    // --- attributes ----------------------------------------------------------------------------------------------

    fn find(&self, name: &str, wanted: AttributeType) -> Result<Option<&'n AttributeProto>, RuleError> {
        let Some(found) = self.node.attribute.iter().find(|attribute| attribute.name() == name) else {
            return Ok(None);
        };
        // Files of before the type was stored have none.
        if found.r#type.is_some_and(|kind| kind != wanted as i32 && kind != 0) {
            return Err(malformed(format!("attribute `{name}` is not of type {}", wanted.as_str_name())));
        }
        Ok(Some(found))
    }

    /// Whether an attribute is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.node.attribute.iter().any(|attribute| attribute.name() == name)
    }

    /// An integer that may be left out.
    pub(super) fn opt_int(&self, name: &str) -> Result<Option<i64>, RuleError> {
        Ok(self.find(name, AttributeType::Int)?.map(AttributeProto::i))
    }

    /// An integer with a default.
    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64, RuleError> {
        Ok(self.opt_int(name)?.unwrap_or(default))
    }

    /// An integer that says yes or no.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, RuleError> {
        Ok(self.opt_int(name)?.map_or(default, |value| value != 0))
    }

    /// Integers that may be left out.
    pub(super) fn opt_ints(&self, name: &str) -> Result<Option<Vec<i64>>, RuleError> {
        Ok(self.find(name, AttributeType::Ints)?.map(|attribute| attribute.ints.clone()))
    }

    /// A number that may be left out.
    pub(super) fn opt_float(&self, name: &str) -> Result<Option<f64>, RuleError> {
        Ok(self.find(name, AttributeType::Float)?.map(|attribute| f64::from(attribute.f())))
    }

    /// A number with a default.
    pub(super) fn float(&self, name: &str, default: f64) -> Result<f64, RuleError> {
        Ok(self.opt_float(name)?.unwrap_or(default))
    }

    /// Numbers that may be left out.
    pub(super) fn opt_floats(&self, name: &str) -> Result<Option<Vec<f64>>, RuleError> {
        let found = self.find(name, AttributeType::Floats)?;
        Ok(found.map(|attribute| attribute.floats.iter().map(|number| f64::from(*number)).collect()))
    }

    /// A text with a default.
    pub(super) fn text(&self, name: &str, default: &'n str) -> Result<&'n str, RuleError> {
        let Some(found) = self.find(name, AttributeType::String)? else { return Ok(default) };
        utf8(found.s.as_deref().unwrap_or_default(), name)
    }

    /// Texts that may be left out.
    pub(super) fn opt_texts(&self, name: &str) -> Result<Option<Vec<&'n str>>, RuleError> {
        let Some(found) = self.find(name, AttributeType::Strings)? else { return Ok(None) };
        found.strings.iter().map(|text| utf8(text, name)).collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// A tensor that may be left out.
    pub(super) fn opt_tensor_attribute(&self, name: &str) -> Result<Option<&'n TensorProto>, RuleError> {
        Ok(self.find(name, AttributeType::Tensor)?.and_then(|attribute| attribute.t.as_ref()))
    }

    /// A body.
    pub(super) fn graph(&self, name: &str) -> Result<&'n GraphProto, RuleError> {
        let found = self.find(name, AttributeType::Graph)?.and_then(|attribute| attribute.g.as_ref());
        found.ok_or_else(|| malformed(format!("attribute `{name}` is missing")))
    }

    /// All attributes, for what has few of several kinds.
    pub(super) fn attributes(&self) -> &'n [AttributeProto] {
        &self.node.attribute
    }
}

fn utf8<'t>(text: &'t [u8], name: &str) -> Result<&'t str, RuleError> {
    std::str::from_utf8(text).map_err(|_| malformed(format!("attribute `{name}` is not UTF-8")))
}
