//! Calls about sizes and control flow, which have no rules.

use super::super::rules::{Context, Outputs, RuleError};
use super::run::Walk;
use crate::diagnostic::Diagnostics;
use crate::frontend::torch::aten::{Arg, Call, InputKind, Program};
use crate::graph::steps::{Steps, repeat};
use crate::graph::{BinaryOp, Graph, InputRole, Spliced, TensorType, ValueId};
use crate::symbolic::Expr;

impl Walk<'_> {
    pub(crate) fn structural(&mut self, call: &Call) -> Result<(), RuleError> {
        match call.target.as_str() {
            "higher_order.cond" => self.cond(call),
            "higher_order.while_loop" => self.while_loop(call),
            "higher_order.scan" => self.scan(call),
            "higher_order.map_impl" => self.map(call),
            "higher_order.associative_scan" => self.associative_scan(call),
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

    /// A body run for each row of some tensors, one after the other: it takes carried values, a row of each, and
    /// captured values, and gives the next carried values and rows of results.
    fn scan(&mut self, call: &Call) -> Result<(), RuleError> {
        let [(_, Arg::Graph(body)), init, rows, captured @ ..] = call.args.as_slice() else {
            return Err(RuleError::Malformed("`scan` takes a graph, first values and tensors".to_owned()));
        };
        let carried = self.operand_list(std::slice::from_ref(init))?;
        self.row_by_row(call, body, carried, rows, captured)
    }

    /// A body run for each row of some tensors. No row depends on another, but a loop runs one at a time either way, and a
    /// scan that carries nothing is that.
    fn map(&mut self, call: &Call) -> Result<(), RuleError> {
        let [(_, Arg::Graph(body)), rows, captured @ ..] = call.args.as_slice() else {
            return Err(RuleError::Malformed("`map` takes a graph and tensors".to_owned()));
        };
        self.row_by_row(call, body, Vec::new(), rows, captured)
    }

    fn row_by_row(
        &mut self,
        call: &Call,
        body: &Program,
        carried: Vec<ValueId>,
        rows: &(String, Arg),
        captured: &[(String, Arg)],
    ) -> Result<(), RuleError> {
        let tables = self.operand_list(std::slice::from_ref(rows))?;
        let captured = self.operand_list(captured)?;
        let length = self.length_of(&tables)?;
        let body = self.body_of_rows(body, &carried, &tables, &captured)?;
        let results = &body.outputs[carried.len().min(body.outputs.len())..];
        let steps = Steps {
            name: if carried.is_empty() { "map" } else { "scan" },
            count: length,
            reverse: false,
            tables: &tables,
            captured: &captured,
            outputs: results.iter().map(|output| body.ty(output.value).clone()).collect(),
        };
        let (results, ends) = steps.looped(&mut self.cx, &carried, &mut |cx, now| {
            let operands = [now.state, &now.rows, now.captured].concat();
            let mut next = spliced(cx, &body, &operands)?;
            let outputs = next.split_off(now.state.len().min(next.len()));
            Ok((outputs, next))
        })?;
        self.bind(call, Outputs::List([ends, results].concat()), None)
    }

    /// A body that joins two rows of some tensors, run for each row and what all before it gave.
    fn associative_scan(&mut self, call: &Call) -> Result<(), RuleError> {
        let [(_, Arg::Graph(body)), rows, captured @ ..] = call.args.as_slice() else {
            return Err(RuleError::Malformed("`associative_scan` takes a graph and tensors".to_owned()));
        };
        let tables = self.operand_list(std::slice::from_ref(rows))?;
        let captured = self.operand_list(captured)?;
        let length = self.length_of(&tables)?;
        let firsts = tables
            .iter()
            .map(|table| self.cx.b.pick(*table, 0, &Expr::int(0)))
            .collect::<Result<Vec<_>, _>>()?;
        let body = self.body_of_rows(body, &firsts, &tables, &captured)?;
        let cx = &mut self.cx;
        let count = cx.b.index(&length - 1, &[]);
        // Each row is replaced by what it is joined to, so that the next one finds that before it.
        let ends =
            repeat(cx, "associative_scan", count, &tables, &captured, &mut |cx, step, tables, captured| {
                let next = cx.with_number(BinaryOp::Add, step, 1i64)?;
                let mut operands = Vec::new();
                for at in [step, next] {
                    for table in tables {
                        operands.push(cx.b.rows(*table, at)?);
                    }
                }
                operands.extend(captured);
                let joined = spliced(cx, &body, &operands)?;
                let rows = joined.into_iter().zip(tables);
                rows.map(|(row, table)| Ok(cx.b.with_row(*table, next, row)?)).collect()
            })?;
        self.bind(call, Outputs::List(ends), None)
    }

    /// The number of rows, the same of all.
    fn length_of(&mut self, tables: &[ValueId]) -> Result<Expr, RuleError> {
        let mut lengths = tables.iter().filter_map(|table| self.cx.b.shape(*table).first().cloned());
        let first = lengths.next();
        let first = first.ok_or_else(|| RuleError::Malformed("a scan needs rows".to_owned()))?;
        let rest: Vec<Expr> = lengths.collect();
        for other in &rest {
            self.cx.b.require_same(&first, other)?;
        }
        Ok(first)
    }

    /// A body that takes some values, a row of each table, and others.
    fn body_of_rows(
        &mut self,
        body: &Program,
        values: &[ValueId],
        tables: &[ValueId],
        captured: &[ValueId],
    ) -> Result<Graph, RuleError> {
        let of = |value: &ValueId| self.cx.b.ty(*value).clone();
        let row = |value: &ValueId| {
            let ty = of(value);
            TensorType { dtype: ty.dtype, shape: ty.shape[1..].to_vec() }
        };
        let types: Vec<TensorType> =
            values.iter().map(of).chain(tables.iter().map(row)).chain(captured.iter().map(of)).collect();
        self.body(body, &types)
    }

    fn operand_list(&mut self, args: &[(String, Arg)]) -> Result<Vec<ValueId>, RuleError> {
        let mut values = Vec::new();
        for (_, arg) in args {
            match arg {
                Arg::Tensor(_) | Arg::Tensors(_) => {
                    for name in arg.tensors() {
                        values.push(self.operand(name)?);
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

    /// A value by its name. A list that has a tensor is written as a list of tensors, also where others of it are sizes.
    fn operand(&mut self, name: &str) -> Result<ValueId, RuleError> {
        match self.program.sym_ints.get(name) {
            Some(size) if !self.windows.contains_key(name) => Ok(self.cx.b.index(size.clone(), &[])),
            _ => self.read(name),
        }
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

fn spliced(cx: &mut Context, body: &Graph, operands: &[ValueId]) -> Result<Vec<ValueId>, RuleError> {
    let operands: Vec<Spliced> =
        operands.iter().map(|value| Spliced { value: *value, number: None }).collect();
    Ok(cx.b.splice(body, &operands)?)
}
