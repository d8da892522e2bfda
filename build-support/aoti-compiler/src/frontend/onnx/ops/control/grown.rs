//! Values that a loop does nothing with but append to them.
//!
//! Such a value has another size after each step, and a loop carries values of one size. What a step appends has one size though, so
//! that the loop gives a list of it, and the list is joined to what there was before the loop.

use crate::frontend::onnx::call::axis_of;
use crate::frontend::onnx::proto::{GraphProto, NodeProto, ValueInfoProto};
use crate::frontend::onnx::value::Val;
use crate::frontend::onnx::walk::{Onnx, domain};
use crate::frontend::torch::rules::RuleError;
use crate::graph::ValueId;
use indexmap::IndexMap;

/// How a value grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Growth {
    /// A sequence by an element behind the others.
    Element,
    /// A tensor along an axis, behind what is there or in front of it.
    Along { axis: i64, is_front: bool },
}

/// A body without the values that it only appends to. What is appended to each is one more list, after the body's own.
pub(super) struct Rest {
    pub(super) body: GraphProto,
    /// How each carried value grows; `None` of those that the body still carries.
    pub(super) growths: Vec<Option<Growth>>,
}

/// Takes such values out of a body that carries so many; `None` where there are none.
pub(super) fn without_grown(body: &GraphProto, carried: usize) -> Option<Rest> {
    let uses = uses(body);
    let found: Vec<Option<Grown>> = (0..carried)
        .map(|position| {
            let (before, after) = (body.input.get(position + 2)?, body.output.get(position + 1)?);
            grown(body, &uses, (before.name(), after.name()))
        })
        .collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    let mut rest = body.clone();
    let mut dropped = Vec::new();
    for grown in found.iter().flatten() {
        let append = &mut rest.node[grown.node];
        append.input.remove(grown.operand);
        // What is left of a `Concat` of several joins what the step appends.
        let is_alone = grown.growth == Growth::Element || append.input.len() == 1;
        let appended = if is_alone { append.input[0].clone() } else { append.output[0].clone() };
        dropped.extend(&grown.copies);
        dropped.extend(is_alone.then_some(grown.node));
        rest.output.push(ValueInfoProto { name: Some(appended), ..ValueInfoProto::default() });
    }
    let growths: Vec<Option<Growth>> =
        found.into_iter().map(|grown| grown.map(|grown| grown.growth)).collect();
    let is_kept = |position: usize| growths.get(position).is_none_or(Option::is_none);
    retain(&mut rest.node, |position| !dropped.contains(&position));
    retain(&mut rest.input, |position| position < 2 || is_kept(position - 2));
    retain(&mut rest.output, |position| position < 1 || is_kept(position - 1));
    Some(Rest { body: rest, growths })
}

fn retain<T>(all: &mut Vec<T>, is_kept: impl Fn(usize) -> bool) {
    let mut positions = 0..;
    all.retain(|_| positions.next().is_some_and(&is_kept));
}

/// How often names are used, by nodes, by bodies within, and as results.
fn uses(body: &GraphProto) -> IndexMap<&str, usize> {
    fn count<'g>(body: &'g GraphProto, uses: &mut IndexMap<&'g str, usize>) {
        let operands = body.node.iter().flat_map(|node| &node.input).map(String::as_str);
        for name in operands.chain(body.output.iter().map(ValueInfoProto::name)) {
            *uses.entry(name).or_default() += 1;
        }
        let attributes = body.node.iter().flat_map(|node| &node.attribute);
        for inner in attributes.flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs)) {
            count(inner, uses);
        }
    }
    let mut all = IndexMap::new();
    count(body, &mut all);
    all
}

/// A node that appends, and which of its operands is the value.
struct Grown {
    growth: Growth,
    node: usize,
    operand: usize,
    /// Nodes that only pass the value on.
    copies: Vec<usize>,
}

/// How a value grows that is called one thing before a step and another one after it.
fn grown(body: &GraphProto, uses: &IndexMap<&str, usize>, (before, after): (&str, &str)) -> Option<Grown> {
    let mut copies = Vec::new();
    let node = produced(body, uses, after, &mut copies)?;
    let append = &body.node[node];
    let last = append.input.len().checked_sub(1)?;
    let mut is_value = |operand: usize| {
        let mut found = Vec::new();
        let own = origin(body, uses, &append.input[operand], &mut found)?;
        (own == before).then(|| copies.extend(found))
    };
    let (growth, operand) = match (domain(append), append.op_type()) {
        ("", "SequenceInsert") => {
            let is_behind = append.input.get(2).is_none_or(String::is_empty) && last > 0;
            is_behind.then(|| is_value(0)).flatten()?;
            (Growth::Element, 0)
        }
        ("", "Concat") if last > 0 => {
            let axis = append.attribute.iter().find(|attribute| attribute.name() == "axis")?.i();
            let operand = if is_value(0).is_some() { 0 } else { is_value(last).map(|()| last)? };
            (Growth::Along { axis, is_front: operand > 0 }, operand)
        }
        _ => return None,
    };
    Some(Grown { growth, node, operand, copies })
}

/// The node that gives a value of a single use, behind nodes that only pass it on.
fn produced(
    body: &GraphProto,
    uses: &IndexMap<&str, usize>,
    name: &str,
    copies: &mut Vec<usize>,
) -> Option<usize> {
    let name = origin(body, uses, name, copies)?;
    body.node.iter().position(|node| gives(node, name))
}

fn gives(node: &NodeProto, name: &str) -> bool {
    node.output.iter().any(|output| output == name)
}

/// What a value of a single use is called before the nodes that only pass it on.
fn origin<'g>(
    body: &'g GraphProto,
    uses: &IndexMap<&str, usize>,
    mut name: &'g str,
    copies: &mut Vec<usize>,
) -> Option<&'g str> {
    loop {
        if uses.get(name) != Some(&1) {
            return None;
        }
        let is_copy =
            |node: &NodeProto| gives(node, name) && domain(node).is_empty() && node.op_type() == "Identity";
        let Some(copy) = body.node.iter().position(is_copy).filter(|copy| !copies.contains(copy)) else {
            return Some(name);
        };
        copies.push(copy);
        name = body.node[copy].input.first()?;
    }
}

/// What was there before the loop, with what its steps appended.
pub(super) fn joined(cx: &mut Onnx, growth: Growth, before: &Val, list: ValueId) -> Result<Val, RuleError> {
    let Growth::Along { axis, is_front } = growth else {
        let all = match cx.rows(before)? {
            Some(before) => cx.b.cat(&[before, list], 0)?,
            None => list,
        };
        return Ok(Val::Rows(all));
    };
    let before = super::tensor(before)?;
    let axis = axis_of(axis, cx.b.rank(before))?;
    let list = if is_front { cx.b.flip(list, &[0])? } else { list };
    let appended = cx.joined_rows(list, axis)?;
    let parts = if is_front { [appended, before] } else { [before, appended] };
    Ok(cx.b.cat(&parts, axis)?.into())
}

#[cfg(test)]
mod tests {
    use crate::frontend::onnx::testing::{Model, int};
    use crate::interpret::Tensor;

    /// A loop over the rows of `x`, of which there are as many as a size says. Its body carries `all`, which is `before` the loop, and
    /// gives it back as `more`; `y` is what it is after the loop.
    fn looped(before: &str, nodes: impl Fn(Model) -> Model) -> Model {
        let body = Model::new(13)
            .input("i", Tensor::from_i64(&[], &[0]))
            .input("c", Tensor::from_bool(&[], &[true]))
            .input("all", Tensor::from_f32(&[0], &[]))
            .node("Gather", &["x", "i"], &["row"], &[])
            .node("Unsqueeze", &["row", "axis"], &["rows"], &[]);
        let rows = Tensor::from_f32(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        Model::new(13)
            .sized_input("x", rows, &[("n", 0), ("", 2)])
            .constant("zero", &Tensor::from_i64(&[], &[0]))
            .constant("axis", &Tensor::from_i64(&[1], &[0]))
            .constant("rows_none", &Tensor::from_f32(&[0, 2], &[]))
            .constant("rows_one", &Tensor::from_f32(&[1, 2], &[8.0, 9.0]))
            .constant("one", &Tensor::from_f32(&[2], &[8.0, 9.0]))
            .node("SequenceEmpty", &[], &["list_none"], &[])
            .node("SequenceConstruct", &["one"], &["list_one"], &[])
            .node("Shape", &["x"], &["sizes"], &[])
            .node("Gather", &["sizes", "zero"], &["n"], &[])
            .node("Loop", &["n", "", before], &["y"], &[nodes(body).body("body", &["c", "more"])])
    }

    #[test]
    fn sequences_grow_in_loops() {
        let insert = |body: Model| {
            body.node("Identity", &["all"], &["own"], &[])
                .node("SequenceInsert", &["own", "row"], &["longer"], &[])
                .node("Identity", &["longer"], &["more"], &[])
        };
        let joined = |before: &str| {
            looped(before, insert)
                .node("ConcatFromSequence", &["y"], &["joined"], &[int("axis", 0)])
                .run(&["joined"])
        };
        assert_eq!(joined("list_none")[0].to_f64(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(joined("list_one")[0].to_f64(), [8.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn tensors_grow_in_loops() {
        let concat = |operands: &'static [&'static str]| {
            move |body: Model| body.node("Concat", operands, &["more"], &[int("axis", 0)])
        };
        let none = looped("rows_none", concat(&["all", "rows"]));
        assert_eq!(none.numbers(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let graph = none.import(&["y"]).unwrap().graph;
        assert_eq!(graph.symbols.len(), 1, "the steps of a loop that always goes on are known");
        let one = looped("rows_one", concat(&["all", "rows", "rows"]));
        assert_eq!(one.run(&["y"])[0].sizes(), [7, 2]);
        assert_eq!(one.numbers()[..8], [8.0, 9.0, 1.0, 2.0, 1.0, 2.0, 3.0, 4.0]);
        let front = looped("rows_one", concat(&["rows", "all"]));
        assert_eq!(front.numbers(), [5.0, 6.0, 3.0, 4.0, 1.0, 2.0, 8.0, 9.0]);
    }

    #[test]
    fn what_grows_is_not_read_in_the_loop() {
        let read = looped("rows_one", |body| {
            let body =
                body.node("ReduceSum", &["all"], &["sum"], &[]).node("Add", &["rows", "sum"], &["next"], &[]);
            body.node("Concat", &["all", "next"], &["more"], &[int("axis", 0)])
        });
        let message = format!("{:?}", read.import(&["y"]).unwrap_err());
        assert!(
            message.contains("a loop in which a value of f32[1, 2] becomes one of f32[2, 2]"),
            "{message}"
        );
    }
}
