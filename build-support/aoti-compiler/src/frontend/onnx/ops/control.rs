//! Loops.
//!
//! A loop of few steps is its steps one after the other, and so is one of a known number of steps in which shapes change (`in_steps.rs`).
//! Other loops carry tensors of one shape; what they only append to are lists (`grown.rs`).

mod grown;
mod in_steps;
mod most_steps;

use super::super::body::{Body, Form};
use super::super::call::{Call, axis_of, malformed, unsupported};
use super::super::proto::GraphProto;
use super::super::value::Val;
use super::super::walk::Onnx;
use super::{Rule, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::{Context, RuleError};
use crate::graph::steps::{Steps, repeat_while};
use crate::graph::{Builder, Graph, IntBinary, LARGEST_SIZE, Relation, Spliced, TensorType, ValueId};
use crate::symbolic::Expr;
use in_steps::{Loop, MOST_UNROLLED, changes_shape};

operators! { "";
    "Loop" => repeat,
    "Scan" => scan,
}

const ENDLESS: &str =
    "lists that a loop gives of whose steps neither a number nor a counter says how many there are at most";

/// Nodes that a loop may become where its steps are written one after the other.
const UNROLLED_NODES: i64 = 1024;

pub(super) fn spliced(
    cx: &mut Context,
    graph: &Graph,
    operands: &[ValueId],
) -> Result<Vec<ValueId>, RuleError> {
    let operands: Vec<Spliced> =
        operands.iter().map(|value| Spliced { value: *value, number: None }).collect();
    Ok(cx.b.splice(graph, &operands)?)
}

// --- Loop --------------------------------------------------------------------------------------------------------

fn repeat(cx: &mut Onnx, c: &Call) -> Rule {
    let body = c.graph("body")?;
    let (most, goes_on) = (c.opt_tensor(0)?, c.opt_tensor(1)?);
    let carried: Vec<Val> = c.inputs.get(2..).unwrap_or_default().to_vec();
    if body.output.len() <= carried.len() {
        return Err(malformed(format!(
            "a body of {} outputs carries {} values",
            body.output.len(),
            carried.len()
        )));
    }
    let goes_on = match goes_on {
        Some(value) => {
            let value = cx.b.cast(value, DType::Bool);
            cx.b.reshape(value, &[])?
        }
        None => cx.b.scalar(true, DType::Bool),
    };
    let mut most = most;
    // No loop takes so many steps: its condition ends it.
    let is_endless =
        |most| cx.b.element(most).and_then(|most| most.as_int()).is_some_and(|most| most > LARGEST_SIZE);
    if most.is_none_or(is_endless)
        && let Some(known) = most_steps::most_steps(cx, body, &carried)
    {
        most = Some(cx.b.index(known, &[]));
    }
    let count = most.and_then(|most| cx.b.element(most)).and_then(|count| count.as_int());
    let count = count.filter(|count| (0..=MOST_UNROLLED).contains(count));
    let own = count.map(|count| Loop { body, count, goes_on, carried: &carried });
    if let Some(own) = &own
        && let Some(result) = own.unrolled(cx)?
    {
        return Ok(result);
    }
    let most = match most {
        Some(most) => {
            let most = cx.b.cast(most, DType::I64);
            Some(cx.b.reshape(most, &[])?)
        }
        None => None,
    };
    let rest = grown::without_grown(body, carried.len());
    let is_grown = |position: usize| rest.as_ref().is_some_and(|rest| rest.growths[position].is_some());
    let fixed: Vec<Val> = (0..carried.len()).filter(|k| !is_grown(*k)).map(|k| carried[k].clone()).collect();
    if let Some(own) = &own
        && changes_shape(cx, rest.as_ref().map_or(body, |rest| &rest.body), &fixed).unwrap_or(true)
        && let Some(result) = own.chosen(cx)?
    {
        return Ok(result);
    }
    let fixed = fixed.iter().map(tensor).collect::<Result<Vec<_>, _>>()?;
    let Some(rest) = rest else { return as_loop(cx, body, most, goes_on, &fixed) };
    let mut results = as_loop(cx, &rest.body, most, goes_on, &fixed)?;
    let appended = results.split_off(body.output.len() - 1 - (carried.len() - fixed.len()));
    let lists = results.split_off(fixed.len());
    let (mut results, mut appended) = (results.into_iter(), appended.into_iter());
    let mut values = Vec::new();
    for (before, growth) in carried.iter().zip(&rest.growths) {
        let next = if growth.is_some() { appended.next() } else { results.next() };
        values.push(match (growth, next.unwrap_or(Val::Poison)) {
            (Some(growth), Val::Tensor(list)) => grown::joined(cx, *growth, before, list)?,
            (_, value) => value,
        });
    }
    Ok([values, lists].concat())
}

fn tensor(value: &Val) -> Result<ValueId, RuleError> {
    match value {
        Val::Tensor(value) => Ok(*value),
        Val::Absent | Val::Sequence(_) | Val::Rows(_) | Val::Poison => {
            Err(unsupported("sequences and optionals in a loop of which it is data how often it runs"))
        }
    }
}

/// A loop of which it is data how often it runs carries tensors.
fn only_tensors(results: &[Form]) -> Result<(), RuleError> {
    if results.iter().all(|form| *form == Form::Tensor) {
        return Ok(());
    }
    Err(unsupported("sequences and optionals in a loop of which it is data how often it runs"))
}

fn scalar_type(dtype: DType) -> TensorType {
    TensorType { dtype, shape: Vec::new() }
}

fn loop_types(cx: &Onnx, carried: &[ValueId]) -> Vec<TensorType> {
    let own = carried.iter().map(|value| cx.b.ty(*value).clone());
    [scalar_type(DType::I64), scalar_type(DType::Bool)].into_iter().chain(own).collect()
}

/// A loop that runs as often as sizes or data say.
fn as_loop(
    cx: &mut Onnx,
    body: &GraphProto,
    most: Option<ValueId>,
    goes_on: ValueId,
    carried: &[ValueId],
) -> Rule {
    let types = loop_types(cx, carried);
    let Some(body) = cx.body(body, &types)? else {
        return Ok(vec![Val::Poison; body.output.len().saturating_sub(1)]);
    };
    only_tensors(&body.results)?;
    let graph = &body.graph;
    for (output, before) in graph.outputs.iter().skip(1).zip(&types[2..]) {
        let after = graph.ty(output.value);
        if after != before {
            return Err(unsupported(format!("a loop in which a value of {before} becomes one of {after}")));
        }
    }
    let rows: Vec<TensorType> =
        graph.outputs.iter().skip(1 + carried.len()).map(|output| graph.ty(output.value).clone()).collect();
    // Lists have room for all steps that there can be.
    let room = match (&most, rows.is_empty()) {
        (Some(most), false) => {
            let most = cx.size_of(*most)?;
            if most.as_int().is_some_and(|most| most > LARGEST_SIZE) {
                return Err(unsupported(ENDLESS));
            }
            Some(cx.b.larger(&most, &Expr::int(0)))
        }
        (None, false) => return Err(unsupported(ENDLESS)),
        (_, true) => None,
    };
    let mut lists = Vec::new();
    for row in &rows {
        let shape = [room.as_slice(), row.shape.as_slice()].concat();
        lists.push(cx.b.full(0i64, row.dtype, &shape));
    }
    let is_counted = most.is_some() && always_goes_on(cx, &body, goes_on);
    let limit = match most {
        Some(most) => most,
        None => cx.b.scalar(i64::MAX, DType::I64),
    };
    let goes_on = (!is_counted).then_some(goes_on);
    let ends = run(cx, graph, limit, goes_on, [carried, &lists, &body.captured])?;
    let (steps, ends) = ends.split_first().expect("the steps are carried");
    let (values, lists) = ends.split_at(carried.len());
    let mut results: Vec<Val> = values.iter().map(|value| (*value).into()).collect();
    if let Some(room) = room {
        let taken = match cx.b.element(*steps) {
            _ if is_counted => room,
            Some(taken) => taken,
            None => cx.read_size(*steps, Some(&room))?,
        };
        for list in lists {
            results.push(cx.b.slice(*list, 0, &Expr::int(0), &taken, 1)?.into());
        }
    }
    Ok(results)
}

/// Whether a loop runs as often as it may: it starts, and its body says so each time, or what it was told.
fn always_goes_on(cx: &Onnx, body: &Body, goes_on: ValueId) -> bool {
    let is_passed_on = body.graph.outputs[0].value == body.graph.inputs[1].value;
    let is_true = |known: Option<&Expr>| known.and_then(Expr::as_int).is_some_and(|known| known != 0);
    is_true(cx.b.element(goes_on).as_ref()) && (is_passed_on || is_true(body.known[0].as_ref()))
}

/// Runs a body while steps are left, and while it says so if that is asked; gives the steps that it took, what is carried, lists.
fn run(
    cx: &mut Onnx,
    graph: &Graph,
    limit: ValueId,
    goes_on: Option<ValueId>,
    [carried, lists, captured]: [&[ValueId]; 3],
) -> Result<Vec<ValueId>, RuleError> {
    let goes_on = goes_on.as_slice();
    let start = [goes_on, carried, lists].concat();
    let given = [captured, &[limit]].concat();
    let is_left = |b: &mut Builder, number, own: &[ValueId], given: &[ValueId]| {
        let is_left = b.binary(Relation::Lt, number, given[given.len() - 1])?;
        if goes_on.is_empty() { Ok(is_left) } else { b.binary(IntBinary::And, own[0], is_left) }
    };
    let mut ends =
        repeat_while(&mut cx.cx, "loop", &start, &given, &is_left, &mut |cx, number, own, given| {
            let (told, own) = own.split_at(goes_on.len());
            let (values, lists) = own.split_at(carried.len());
            let told = told.first().copied().unwrap_or_else(|| cx.b.scalar(true, DType::Bool));
            let operands = [&[number, told], values, &given[..given.len() - 1]].concat();
            let mut results = spliced(cx, graph, &operands)?;
            let next = results.remove(0);
            for (row, list) in results[values.len()..].iter_mut().zip(lists) {
                *row = cx.b.with_row(*list, number, *row)?;
            }
            if !goes_on.is_empty() {
                results.insert(0, cx.b.reshape(next, &[])?);
            }
            Ok(results)
        })?;
    ends.drain(1..1 + goes_on.len());
    Ok(ends)
}

// --- Scan --------------------------------------------------------------------------------------------------------

/// How a scan goes over its tables and lists.
struct Course {
    /// Axes of the tables along which they are read, and whether from the end.
    inputs: Vec<(usize, bool)>,
    /// The same of lists that are written.
    outputs: Vec<(i64, bool)>,
}

fn scan(cx: &mut Onnx, c: &Call) -> Rule {
    if c.version < 9 {
        return scan_of_batches(cx, c);
    }
    let body = c.graph("body")?;
    let tables = c.opt_int("num_scan_inputs")?.and_then(|count| usize::try_from(count).ok());
    let tables = tables.ok_or_else(|| malformed("`num_scan_inputs` is missing"))?;
    let values = c.tensors()?;
    let count =
        values.len().checked_sub(tables).ok_or_else(|| malformed("there are fewer operands than tables"))?;
    let (carried, tables) = values.split_at(count);
    let lists = body.output.len().checked_sub(count).ok_or_else(|| malformed("the body gives too little"))?;
    let course = course(cx, c, tables, lists)?;
    scanned(cx, body, carried, tables, &course)
}

fn course(cx: &Onnx, c: &Call, tables: &[ValueId], lists: usize) -> Result<Course, RuleError> {
    let flags = |name: &str, count: usize| -> Result<Vec<bool>, RuleError> {
        let given = c.opt_ints(name)?.unwrap_or_else(|| vec![0; count]);
        if given.len() != count {
            return Err(malformed(format!("`{name}` has {} entries for {count}", given.len())));
        }
        Ok(given.iter().map(|flag| *flag != 0).collect())
    };
    let axes = c.opt_ints("scan_input_axes")?.unwrap_or_else(|| vec![0; tables.len()]);
    let axes: Vec<usize> = axes
        .iter()
        .zip(tables)
        .map(|(axis, table)| axis_of(*axis, cx.b.rank(*table)))
        .collect::<Result<_, _>>()?;
    let inputs = axes.into_iter().zip(flags("scan_input_directions", tables.len())?).collect();
    let axes = c.opt_ints("scan_output_axes")?.unwrap_or_else(|| vec![0; lists]);
    let outputs = axes.into_iter().zip(flags("scan_output_directions", lists)?).collect();
    Ok(Course { inputs, outputs })
}

/// Runs a body for each row of some tables.
fn scanned(
    cx: &mut Onnx,
    body: &GraphProto,
    carried: &[ValueId],
    tables: &[ValueId],
    course: &Course,
) -> Rule {
    let mut rows = Vec::new();
    let mut length: Option<Expr> = None;
    for (table, (axis, is_reversed)) in tables.iter().zip(&course.inputs) {
        let mut own = cx.move_axis(*table, *axis, 0)?;
        let size = cx.b.shape(own)[0].clone();
        match &length {
            None => length = Some(size),
            Some(length) => cx.b.require_same(length, &size)?,
        }
        if *is_reversed {
            own = cx.b.flip(own, &[0])?;
        }
        rows.push(own);
    }
    let length = length.ok_or_else(|| malformed("there is no table to go over"))?;
    let nodes = i64::try_from(body.node.len()).unwrap_or(i64::MAX);
    let fixed =
        length.as_int().filter(|length| *length > 0 && nodes.saturating_mul(*length) <= UNROLLED_NODES);
    let (values, lists) = match fixed {
        Some(length) => scanned_in_steps(cx, body, carried, &rows, length)?,
        None => scanned_as_loop(cx, body, carried, &rows, &length)?,
    };
    let mut results: Vec<Val> = values;
    for (list, (axis, is_reversed)) in lists.into_iter().zip(&course.outputs) {
        let Val::Tensor(mut list) = list else {
            results.push(list);
            continue;
        };
        if *is_reversed {
            list = cx.b.flip(list, &[0])?;
        }
        let axis = axis_of(*axis, cx.b.rank(list))?;
        results.push(cx.move_axis(list, 0, axis)?.into());
    }
    Ok(results)
}

type Ends = Result<(Vec<Val>, Vec<Val>), RuleError>;

fn scanned_in_steps(
    cx: &mut Onnx,
    body: &GraphProto,
    carried: &[ValueId],
    tables: &[ValueId],
    length: i64,
) -> Ends {
    let mut values: Vec<Val> = carried.iter().map(|value| (*value).into()).collect();
    let mut lists: Vec<Vec<ValueId>> = vec![Vec::new(); body.output.len() - carried.len()];
    let poison = || (vec![Val::Poison; carried.len()], vec![Val::Poison; body.output.len() - carried.len()]);
    for step in 0..length {
        let mut given = values;
        for table in tables {
            given.push(cx.b.pick(*table, 0, &Expr::int(step))?.into());
        }
        let results = cx.inlined_body(body, given)?;
        if results.iter().any(Val::is_poisoned) {
            return Ok(poison());
        }
        values = results[..carried.len()].to_vec();
        for (list, row) in lists.iter_mut().zip(&results[carried.len()..]) {
            list.push(cx.b.unsqueeze(tensor(row)?, 0)?);
        }
    }
    let lists = lists.iter().map(|rows| Ok(cx.b.cat(rows, 0)?.into())).collect::<Result<_, RuleError>>()?;
    Ok((values, lists))
}

fn scanned_as_loop(
    cx: &mut Onnx,
    body: &GraphProto,
    carried: &[ValueId],
    tables: &[ValueId],
    length: &Expr,
) -> Ends {
    let own = carried.iter().map(|value| cx.b.ty(*value).clone());
    let row = |value: &ValueId| {
        let ty = cx.b.ty(*value);
        TensorType { dtype: ty.dtype, shape: ty.shape[1..].to_vec() }
    };
    let types: Vec<TensorType> = own.chain(tables.iter().map(row)).collect();
    let Some(Body { graph, captured, results, known: _ }) = cx.body(body, &types)? else {
        let count = body.output.len() - carried.len();
        return Ok((vec![Val::Poison; carried.len()], vec![Val::Poison; count]));
    };
    only_tensors(&results)?;
    for (output, before) in graph.outputs.iter().zip(&types[..carried.len()]) {
        let after = graph.ty(output.value);
        if after != before {
            return Err(unsupported(format!("a scan in which a value of {before} becomes one of {after}")));
        }
    }
    let steps = Steps {
        name: "scan",
        count: length.clone(),
        reverse: false,
        tables,
        captured: &captured,
        outputs: graph.outputs[carried.len()..].iter().map(|output| graph.ty(output.value).clone()).collect(),
    };
    let (lists, values) = steps.looped(&mut cx.cx, carried, &mut |cx, now| {
        let operands = [now.state, &now.rows, now.captured].concat();
        let mut next = spliced(cx, &graph, &operands)?;
        let outputs = next.split_off(now.state.len());
        Ok((outputs, next))
    })?;
    let all = |values: Vec<ValueId>| values.into_iter().map(Val::from).collect();
    Ok((all(values), all(lists)))
}

/// Before version 9 all operands had a batch in front, whose sequences may be of several lengths.
fn scan_of_batches(cx: &mut Onnx, c: &Call) -> Rule {
    let body = c.graph("body")?;
    if c.opt_tensor(0)?.is_some() {
        return Err(unsupported("`sequence_lens` of a scan before version 9"));
    }
    let tables = c.opt_int("num_scan_inputs")?.and_then(|count| usize::try_from(count).ok());
    let tables = tables.ok_or_else(|| malformed("`num_scan_inputs` is missing"))?;
    let values = (1..c.inputs.len()).map(|position| c.tensor(position)).collect::<Result<Vec<_>, _>>()?;
    let count =
        values.len().checked_sub(tables).ok_or_else(|| malformed("there are fewer operands than tables"))?;
    let directions = c.opt_ints("directions")?.unwrap_or_else(|| vec![0; tables]);
    let first = *values.first().ok_or_else(|| malformed("it has no operands"))?;
    let batch = cx.b.shape(first).first().and_then(Expr::as_int);
    let batch = batch.filter(|batch| *batch > 0 && *batch <= MOST_UNROLLED);
    let batch =
        batch.ok_or_else(|| unsupported("a scan before version 9 over a batch whose size is not known"))?;
    let lists = body.output.len().checked_sub(count).ok_or_else(|| malformed("the body gives too little"))?;
    let course = Course {
        inputs: directions.iter().map(|direction| (0, *direction != 0)).collect(),
        outputs: vec![(0, false); lists],
    };
    let mut results: Vec<Vec<ValueId>> = vec![Vec::new(); body.output.len()];
    for member in 0..batch {
        let own: Vec<ValueId> =
            values.iter().map(|value| cx.b.pick(*value, 0, &Expr::int(member))).collect::<Result<_, _>>()?;
        let (carried, tables) = own.split_at(count);
        for (all, one) in results.iter_mut().zip(scanned(cx, body, carried, tables, &course)?) {
            all.push(cx.b.unsqueeze(tensor(&one)?, 0)?);
        }
    }
    results.iter().map(|all| Ok(cx.b.cat(all, 0)?.into())).collect()
}
