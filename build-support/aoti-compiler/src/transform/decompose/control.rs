//! Calls about sizes and control flow, which have no rules.

use super::run::Walk;
use super::{Outputs, RuleError};
use crate::aten::{Arg, Call, InputKind, Program};
use crate::diagnostic::Diagnostics;
use crate::graph::{Graph, InputRole, TensorType, ValueId};

impl Walk<'_> {
    pub(super) fn structural(&mut self, call: &Call) -> Result<(), RuleError> {
        match call.target.as_str() {
            "higher_order.cond" => self.cond(call),
            "higher_order.while_loop" => self.while_loop(call),
            "aten._assert_scalar.default" => self.assert_scalar(call),
            "aten._assert_tensor_metadata.default" => self.assert_metadata(call),
            "aten.sym_constrain_range.default" => self.constrain_range(call, None),
            "aten.sym_constrain_range_for_size.default" => self.constrain_range(call, Some(0)),
            _ => self.numbers(call),
        }
    }

    fn cond(&mut self, call: &Call) -> Result<(), RuleError> {
        let [(_, predicate), (_, Arg::Graph(then)), (_, Arg::Graph(otherwise)), rest @ ..] =
            call.args.as_slice()
        else {
            return Err(RuleError::Malformed("`cond` takes a predicate, two graphs and operands".to_owned()));
        };
        let predicate = self.number(predicate)?;
        let operands = self.operand_list(rest)?;
        let types: Vec<TensorType> = operands.iter().map(|value| self.cx.b.ty(*value).clone()).collect();
        let then = self.body(then, &types)?;
        let otherwise = self.body(otherwise, &types)?;
        let results = self.cx.b.cond(predicate, then, otherwise, &operands)?;
        self.bind(call, Outputs::List(results), None)
    }

    fn while_loop(&mut self, call: &Call) -> Result<(), RuleError> {
        let [(_, Arg::Graph(condition)), (_, Arg::Graph(body)), (_, carried), rest @ ..] =
            call.args.as_slice()
        else {
            return Err(RuleError::Malformed("`while_loop` takes two graphs and operands".to_owned()));
        };
        let carried = self.operand_list(&[(String::new(), carried.clone())])?;
        let mut operands = carried.clone();
        operands.extend(self.operand_list(rest)?);
        let types: Vec<TensorType> = operands.iter().map(|value| self.cx.b.ty(*value).clone()).collect();
        let condition = self.body(condition, &types)?;
        let body = self.body(body, &types)?;
        let results = self.cx.b.while_loop(condition, body, &operands, carried.len())?;
        self.bind(call, Outputs::List(results), None)
    }

    fn operand_list(&mut self, args: &[(String, Arg)]) -> Result<Vec<ValueId>, RuleError> {
        let mut values = Vec::new();
        for (_, arg) in args {
            match arg {
                Arg::Tensor(_) | Arg::Tensors(_) => {
                    for name in arg.tensors() {
                        values.push(self.read(name)?);
                    }
                }
                Arg::None => {}
                Arg::Int(_)
                | Arg::Float(_)
                | Arg::Bool(_)
                | Arg::Condition(_)
                | Arg::SymBool(_)
                | Arg::SymFloat(_) => values.push(self.number(arg)?),
                Arg::Ints(list) => {
                    for expr in list {
                        values.push(self.cx.b.index(expr.clone(), &[]));
                    }
                }
                Arg::Floats(_)
                | Arg::Bools(_)
                | Arg::Str(_)
                | Arg::Complex { .. }
                | Arg::DType(_)
                | Arg::Other(_)
                | Arg::Graph(_) => return Err(RuleError::unsupported("an operand that is not a tensor")),
            }
        }
        Ok(values)
    }

    /// The core graph of a body whose inputs have the given types.
    fn body(&mut self, body: &Program, types: &[TensorType]) -> Result<Graph, RuleError> {
        if body.inputs.len() != types.len() {
            return Err(RuleError::Malformed(format!(
                "the body takes {} values, {} are given",
                body.inputs.len(),
                types.len()
            )));
        }
        let mut walk = Walk::new(body, self.registry, self.cx.b.child(&body.name));
        for (input, ty) in body.inputs.iter().zip(types) {
            let value = walk.cx.b.input(&input.name, ty.clone(), InputRole::User);
            walk.define(&input.name, value);
            if let InputKind::UserInt(size) = &input.kind {
                walk.define_size(value, size)?;
            }
        }
        let inner = |diagnostics: Diagnostics| {
            let messages: Vec<String> = diagnostics.0.into_iter().map(|finding| finding.message).collect();
            RuleError::Unsupported(messages.join("; "))
        };
        let findings = walk.calls();
        if !findings.is_empty() {
            return Err(inner(Diagnostics(findings)));
        }
        walk.outputs().map_err(inner)?;
        Ok(walk.cx.b.finish())
    }
}
