//! Replaces the marks of `torch.vmap`, which an export before dispatch keeps, by the operator that runs a body for every row.
//!
//! Between the marks that open and close a level, calls are those of one row: their values lack the axis that is mapped.
//! They become the body of a `map` over the tensors that the level takes apart. Regions that write into tensors in place
//! stay as they are, since rows of a `map` are copies.

use crate::frontend::torch::aten::{
    Arg, Call, InputKind, Output, OutputKind, Program, ProgramInput, ProgramOutput,
};
use crate::graph::Origin;
use crate::symbolic::Expr;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Says nothing of what is computed.
const LOADS: &str = "torch._functorch.predispatch.lazy_load_decompositions";
const OPENS: &str = "torch._functorch.predispatch._vmap_increment_nesting";
const CLOSES: &str = "torch._functorch.predispatch._vmap_decrement_nesting";
const TAKES_APART: &str = "torch._functorch.predispatch._add_batch_dim";
const PUTS_TOGETHER: &str = "torch._functorch.predispatch._remove_batch_dim";

/// The program without such marks.
pub(crate) fn mapped(program: &Program) -> Cow<'_, Program> {
    if !has_marks(program) {
        return Cow::Borrowed(program);
    }
    let calls = without_marks(program, &program.calls);
    Cow::Owned(Program { calls, ..program.clone() })
}

fn has_marks(program: &Program) -> bool {
    program.calls.iter().any(|call| {
        let mut bodies = call.args.iter().filter_map(|(_, arg)| arg.graph());
        call.target == OPENS || bodies.any(has_marks)
    })
}

fn without_marks(program: &Program, calls: &[Call]) -> Vec<Call> {
    let mut result = Vec::new();
    let mut position = 0;
    while let Some(call) = calls.get(position) {
        position += 1;
        match call.target.as_str() {
            LOADS => {}
            OPENS => {
                let length = region_length(&calls[position..]);
                let region = length.map(|length| without_marks(program, &calls[position..position + length]));
                match region.and_then(|region| by_rows(program, &region, &call.origin)) {
                    Some(own) => {
                        result.extend(own);
                        position += length.map_or(0, |length| length + 1);
                    }
                    // It is refused by its name.
                    None => result.push(call.clone()),
                }
            }
            _ => {
                let mut call = call.clone();
                for (_, arg) in &mut call.args {
                    if let Arg::Graph(body) = arg {
                        **body = mapped(body).into_owned();
                    }
                }
                result.push(call);
            }
        }
    }
    result
}

/// How many calls there are before the mark that closes the level.
fn region_length(calls: &[Call]) -> Option<usize> {
    let mut depth = 0;
    calls.iter().position(|call| {
        depth += i32::from(call.target == OPENS) - i32::from(call.target == CLOSES);
        depth < 0
    })
}

/// The calls of one level, without marks of inner ones, as a `map`.
fn by_rows(program: &Program, region: &[Call], origin: &Origin) -> Option<Vec<Call>> {
    let (mut before, mut after, mut inner) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rows, mut names, mut outputs, mut results) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for call in region {
        match call.target.as_str() {
            TAKES_APART => {
                let [Arg::Tensor(table), Arg::Int(axis), _] = values(call)[..] else { return None };
                names.push(result_of(call)?.to_owned());
                rows.push(Some(if axis.is(0) {
                    table.clone()
                } else {
                    let moved = format!("{}.rows", result_of(call)?);
                    before.push(moved_axis(table, axis, &Expr::int(0), &moved, origin));
                    moved
                }));
            }
            PUTS_TOGETHER => {
                let [Arg::Tensor(row), _, _, Arg::Int(axis)] = values(call)[..] else { return None };
                let result = result_of(call)?;
                outputs.push(row.clone());
                results.push(if axis.is(0) {
                    result.to_owned()
                } else {
                    let table = format!("{result}.rows");
                    after.push(moved_axis(&table, &Expr::int(0), axis, result, origin));
                    table
                });
            }
            OPENS | CLOSES => return None,
            name if writes_in_place(name) => return None,
            _ => inner.push(call.clone()),
        }
    }
    let captured = captured(&inner, &outputs, &names);
    let body = body(program, inner, names.iter().chain(&captured), &outputs);
    let mut args = vec![(String::new(), Arg::Graph(Box::new(body))), (String::new(), Arg::Tensors(rows))];
    args.push((String::new(), Arg::Tensors(captured.into_iter().map(Some).collect())));
    let (target, outputs) = ("higher_order.map_impl".to_owned(), vec![Output::Tensors(results)]);
    before.push(Call { target, args, outputs, origin: origin.clone() });
    before.extend(after);
    Some(before)
}

fn body<'n>(
    program: &Program,
    calls: Vec<Call>,
    inputs: impl Iterator<Item = &'n String>,
    outputs: &[String],
) -> Program {
    let input = |name: &String| ProgramInput { name: name.clone(), kind: InputKind::User };
    let output = |name: &String| ProgramOutput {
        value: Arg::Tensor(name.clone()),
        kind: OutputKind::User,
        name: None,
    };
    Program {
        name: "row".to_owned(),
        inputs: inputs.map(input).collect(),
        outputs: outputs.iter().map(output).collect(),
        calls,
        tensors: program.tensors.clone(),
        sym_ints: program.sym_ints.clone(),
        conditions: program.conditions.clone(),
        ..Program::default()
    }
}

/// The tensors that a body uses and does not compute, in order.
fn captured(calls: &[Call], outputs: &[String], rows: &[String]) -> Vec<String> {
    let mut known: BTreeSet<&str> = rows.iter().map(String::as_str).collect();
    let mut captured = Vec::new();
    let mut used = |name, known: &mut BTreeSet<_>| {
        if known.insert(name) {
            captured.push(str::to_owned(name));
        }
    };
    for call in calls {
        call.args.iter().flat_map(|(_, arg)| arg.tensors()).for_each(|name| used(name, &mut known));
        known.extend(call.outputs.iter().flat_map(Output::tensors));
    }
    outputs.iter().for_each(|name| used(name, &mut known));
    captured
}

fn values(call: &Call) -> Vec<&Arg> {
    call.args.iter().map(|(_, arg)| arg).collect()
}

fn result_of(call: &Call) -> Option<&str> {
    let [Output::Tensor(name)] = call.outputs.as_slice() else { return None };
    Some(name)
}

fn moved_axis(table: &str, from: &Expr, to: &Expr, result: &str, origin: &Origin) -> Call {
    let axis = |name: &str, axis: &Expr| (name.to_owned(), Arg::Int(axis.clone()));
    Call {
        target: "aten.movedim.int".to_owned(),
        args: vec![
            ("self".to_owned(), Arg::Tensor(table.to_owned())),
            axis("source", from),
            axis("destination", to),
        ],
        outputs: vec![Output::Tensor(result.to_owned())],
        origin: origin.clone(),
    }
}

fn writes_in_place(target: &str) -> bool {
    let name = target.split('.').nth(1).unwrap_or_default();
    name.ends_with('_') && !name.ends_with("__")
}
