//! Programs whose sizes are written with other expressions.

use super::{Arg, InputKind, Program};
use crate::symbolic::Expr;

impl Program {
    /// Replaces every expression of the program and of its bodies. Guards and symbols stay as they are.
    pub fn replace_expressions(&mut self, replace: &dyn Fn(&Expr) -> Expr) {
        let each = |exprs: &mut Vec<Expr>| exprs.iter_mut().for_each(|expr| *expr = replace(expr));
        for meta in self.tensors.values_mut() {
            each(&mut meta.sizes);
            each(&mut meta.strides);
            meta.storage_offset = replace(&meta.storage_offset);
        }
        self.sym_ints.values_mut().for_each(|value| *value = replace(value));
        self.conditions.values_mut().for_each(|condition| *condition = condition.map(replace));
        for input in &mut self.inputs {
            if let InputKind::UserInt(value) = &mut input.kind {
                *value = replace(value);
            }
        }
        self.outputs.iter_mut().for_each(|output| replace_in(&mut output.value, replace));
        let args = self.calls.iter_mut().flat_map(|call| &mut call.args);
        args.for_each(|(_, arg)| replace_in(arg, replace));
    }
}

fn replace_in(arg: &mut Arg, replace: &dyn Fn(&Expr) -> Expr) {
    match arg {
        Arg::Int(value) => *value = replace(value),
        Arg::Ints(values) => values.iter_mut().for_each(|value| *value = replace(value)),
        Arg::Condition(condition) => *condition = condition.map(replace),
        Arg::Graph(body) => body.replace_expressions(replace),
        Arg::None
        | Arg::Tensor(_)
        | Arg::Tensors(_)
        | Arg::Float(_)
        | Arg::Floats(_)
        | Arg::Complex { .. }
        | Arg::Bool(_)
        | Arg::Bools(_)
        | Arg::SymBool(_)
        | Arg::SymFloat(_)
        | Arg::Str(_)
        | Arg::DType(_)
        | Arg::Other(_) => {}
    }
}
