//! What a program says of its values, compared with what rules make of them.
//!
//! Exporters write the shape that a fused kernel's stand-in had, and such stand-ins may be wrong where the operator itself is
//! right: several versions of PyTorch give the last state of an LSTM an axis of one element too many. The shape that a rule
//! infers is the operator's own. So what a program says is a hint. It must agree but for axes of one element; of what is
//! computed from a value that it describes wrongly, it may say anything.

use super::super::rules::RuleError;
use super::run::{Walk, tensor_names};
use crate::frontend::torch::aten::Call;
use crate::graph::ValueId;
use crate::symbolic::Expr;

impl Walk<'_> {
    /// The rule's result must be what the program says it is.
    pub(crate) fn check(&mut self, call: &Call, name: &str, value: ValueId) -> Result<(), RuleError> {
        let Some(meta) = self.program.tensors.get(name) else { return Ok(()) };
        let sizes = meta.stored_sizes();
        if self.cx.b.rank(value) == sizes.len() {
            self.define_sizes(value, &meta.sizes)?;
        }
        let ty = self.cx.b.ty(value).clone();
        if ty.dtype == meta.dtype {
            if self.agree(&ty.shape, &sizes) {
                return Ok(());
            }
            let is_derived =
                tensor_names(call).into_iter().any(|operand| self.misdescribed.contains(operand));
            if is_derived || self.agree(&without_units(&ty.shape), &without_units(&sizes)) {
                self.misdescribed.insert(name.to_owned());
                return Ok(());
            }
        }
        if self.is_unused(name) {
            return Ok(());
        }
        Err(RuleError::unsupported(format!(
            "the result `{name}` would be {}{:?} where the program has {}{:?}",
            ty.dtype, ty.shape, meta.dtype, meta.sizes
        )))
    }

    /// What relies on sizes or strides that the program states for an operand needs them to be right.
    pub(crate) fn rely_on_description(&self, call: &Call) -> Result<(), RuleError> {
        let wrong = tensor_names(call).into_iter().find(|name| self.misdescribed.contains(*name));
        wrong.map_or(Ok(()), |name| {
            let message = format!("it depends on sizes or strides of `{name}`, which the program misstates");
            Err(RuleError::unsupported(message))
        })
    }

    /// Whether two shapes are the same as far as is known before the run.
    fn agree(&self, own: &[Expr], stated: &[Expr]) -> bool {
        let fits = |(a, b): (&Expr, &Expr)| {
            self.cx.b.same_size(a, b) || a.as_int().is_none() || b.as_int().is_none()
        };
        own.len() == stated.len() && own.iter().zip(stated).all(fits)
    }

    /// Whether neither a call nor the program's results take a value.
    fn is_unused(&self, name: &str) -> bool {
        let called = self.program.calls.iter().any(|call| tensor_names(call).contains(&name));
        !called && !self.program.outputs.iter().any(|output| output.value.tensors().contains(&name))
    }
}

fn without_units(shape: &[Expr]) -> Vec<Expr> {
    shape.iter().filter(|size| !size.is(1)).cloned().collect()
}
