//! Parts of tensors: from a start to an end in steps.

use super::super::call::{Call, malformed, unsupported};
use super::super::walk::Onnx;
use super::axes::Axes;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{BinaryOp, Coord, IntBinary, Relation, UnaryOp, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "Slice" => slice,
}

fn slice(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let rank = cx.b.rank(x);
    if c.version < 10 {
        let list = |name: &str| -> Result<Vec<i64>, RuleError> {
            c.opt_ints(name)?.ok_or_else(|| malformed(format!("attribute `{name}` is missing")))
        };
        let (starts, ends) = (list("starts")?, list("ends")?);
        let axes = c.opt_ints("axes")?.unwrap_or_else(|| (0..starts.len()).map(|axis| axis as i64).collect());
        let axes = axes.iter().map(|axis| axis_of(*axis, rank)).collect::<Result<_, _>>()?;
        let [starts, ends] = [starts, ends].map(|list| cx.b.int_vector(&list));
        return one(sliced(cx, x, starts, ends, &Axes::Known(axes), None)?);
    }
    let (starts, ends) = (c.tensor(1)?, c.tensor(2)?);
    let lists = [Some(starts), Some(ends), c.opt_tensor(3)?, c.opt_tensor(4)?];
    let mut counts = lists.into_iter().flatten().filter_map(|list| cx.b.ty(list).numel().as_int());
    let count = counts.next().and_then(|count| usize::try_from(count).ok());
    let count = count
        .filter(|count| *count <= rank)
        .ok_or_else(|| unsupported("starts whose number is not known"))?;
    let [starts, ends] = [starts, ends].map(|list| cx.required_shape(list, &[Expr::int(count as i64)]));
    let (starts, ends) = (starts?, ends?);
    let axes = match c.opt_tensor(3)? {
        Some(axes) => cx.axes_of(axes, rank)?,
        None => Axes::Known((0..count).collect()),
    };
    let value = sliced(cx, x, starts, ends, &axes, c.opt_tensor(4)?)?;
    if let Some(narrow) = cx.narrow.get(&x).copied() {
        cx.narrow.insert(value, narrow);
    }
    one(value)
}

fn sliced(
    cx: &mut Onnx,
    x: ValueId,
    starts: ValueId,
    ends: ValueId,
    axes: &Axes,
    steps: Option<ValueId>,
) -> Result<ValueId, RuleError> {
    let count = cx.b.ty(starts).numel();
    for list in [Some(ends), steps].into_iter().flatten() {
        let own = cx.b.ty(list).numel();
        cx.b.require_same(&own, &count)
            .map_err(|_| malformed("starts, ends, axes and steps differ in number"))?;
    }
    let steps = match steps {
        Some(steps) => steps,
        None => cx.b.full(1i64, DType::I64, &[count]),
    };
    let starts = cx.for_each_axis(starts, axes, 0)?;
    let ends = cx.for_each_axis(ends, axes, i64::MAX)?;
    let steps = cx.for_each_axis(steps, axes, 1)?;
    let mut x = x;
    for (axis, ((start, end), step)) in starts.into_iter().zip(ends).zip(steps).enumerate() {
        let (Some(start), Some(end), Some(step)) = (start, end, step) else { continue };
        let known = [start, end, step].map(|value| cx.b.element(value));
        x = match known {
            [Some(start), Some(end), Some(step)] if step.as_int().is_some_and(|step| step != 0) => {
                known_part(cx, x, axis, &start, &end, step.as_int().unwrap_or(1))?
            }
            _ => data_part(cx, x, axis, [start, end, step])?,
        };
    }
    Ok(x)
}

/// An end that stands for no end in ONNX Runtime, whatever the direction.
const OPEN_ENDS: [i64; 2] = [i32::MAX as i64, i64::MAX];

/// Positions from `start` to before `end`, where both are clamped to the axis and negative ones count from its end.
fn known_part(
    cx: &mut Onnx,
    x: ValueId,
    axis: usize,
    start: &Expr,
    end: &Expr,
    step: i64,
) -> Result<ValueId, RuleError> {
    let size = cx.b.shape(x)[axis].clone();
    // Sizes and positions of the largest kinds stand for the end of the axis, whatever its size.
    let clipped = |position: &Expr| match position.as_int() {
        Some(number) => Expr::int(number.clamp(-(1 << 50), 1 << 50)),
        None => position.clone(),
    };
    let zero = Expr::int(0);
    let is_open = step < 0 && end.as_int().is_some_and(|end| OPEN_ENDS.contains(&end));
    let end = if is_open { &Expr::int(i64::MIN) } else { end };
    let (low, high) = if step > 0 { (zero.clone(), size.clone()) } else { (Expr::int(-1), &size - 1) };
    let place = |cx: &Onnx, position: &Expr, low: &Expr| {
        let position = cx.b.wrapped(&clipped(position), &size);
        cx.b.larger(low, &cx.b.smaller(&position, &high))
    };
    let mut start = place(cx, start, &zero);
    if step < 0 {
        // An axis without elements has no last one to begin with.
        start = cx.b.smaller(&start, &high);
    }
    let end = place(cx, end, &low);
    let ranges = cx.b.ranges();
    let span = if step > 0 { &end - &start } else { &start - &end };
    let length = span.ceil_div(&Expr::int(step.abs()), ranges);
    let length = cx.b.larger(&zero, &length);
    Ok(cx.b.slice(x, axis, &start, &length, step)?)
}

/// The same where some of it is data: the elements are looked up.
fn data_part(
    cx: &mut Onnx,
    x: ValueId,
    axis: usize,
    [start, end, step]: [ValueId; 3],
) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(x);
    let size = cx.b.index(own[axis].clone(), &[]);
    let is_forward = cx.with_number(Relation::Gt, step, 0i64)?;
    let last = cx.with_number(BinaryOp::Sub, size, 1i64)?;
    let (zero, before) = (cx.b.scalar(0i64, DType::I64), cx.b.scalar(-1i64, DType::I64));
    let high = cx.b.select(is_forward, size, last)?;
    let low = cx.b.select(is_forward, zero, before)?;
    let place = |cx: &mut Onnx, position: ValueId, low: ValueId| -> Result<ValueId, RuleError> {
        let is_from_end = cx.with_number(Relation::Lt, position, 0i64)?;
        let wrapped = cx.add(position, size)?;
        let position = cx.b.select(is_from_end, wrapped, position)?;
        let position = cx.binary(BinaryOp::Maximum, position, low)?;
        cx.binary(BinaryOp::Minimum, position, high)
    };
    // Inside of a loop, parts have one length.
    let fixed = match cx.b.element(step).and_then(|step| step.as_int()) {
        Some(1) if cx.b.is_body() => cx.b.distance(start, end).filter(|length| *length >= 0),
        _ => None,
    };
    let start = place(cx, start, zero)?;
    let start = cx.binary(BinaryOp::Minimum, start, high)?;
    let end = open_end(cx, end, is_forward)?;
    let end = place(cx, end, low)?;
    // Rounded up: how many steps there are.
    let span = cx.sub(start, end)?;
    let length = cx.binary(BinaryOp::FloorDiv, span, step)?;
    let length = cx.b.unary(UnaryOp::Neg, length);
    let length = cx.binary(BinaryOp::Maximum, length, zero)?;
    let length = match (cx.b.element(length), fixed) {
        (Some(length), _) => length,
        (None, Some(fixed)) => {
            let fits = cx.with_number(Relation::Eq, length, fixed)?;
            cx.b.assert(fits, "a part that a loop takes must not reach beyond the end")?;
            Expr::int(fixed)
        }
        (None, None) => cx.read_size(length, Some(&own[axis]))?,
    };
    let mut shape = own.clone();
    shape[axis] = length;
    let number = cx.b.index(Expr::axis(axis), &shape);
    let steps = cx.mul(number, step)?;
    let at = cx.add(start, steps)?;
    let coord = |position: usize| match position == axis {
        true => Coord::Indirect(0),
        false => Coord::Expr(Expr::axis(position)),
    };
    Ok(cx.b.gather(x, &[at], (0..own.len()).map(coord).collect(), &shape)?)
}

/// The end of steps backwards that have none lies before everything.
fn open_end(cx: &mut Onnx, end: ValueId, is_forward: ValueId) -> Result<ValueId, RuleError> {
    let [short, long] = OPEN_ENDS.map(|open| cx.with_number(Relation::Eq, end, open));
    let is_open = cx.binary(IntBinary::Or, short?, long?)?;
    let first = cx.b.scalar(i64::MIN, DType::I64);
    let before = cx.b.select(is_open, first, end)?;
    Ok(cx.b.select(is_forward, end, before)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Model;
    use crate::interpret::{Tensor, evaluate};

    /// Of constants and of inputs.
    #[test]
    fn steps_backwards_without_an_end_reach_the_first_element() {
        let vector = |values: &[i64]| Tensor::from_i64(&[values.len()], values);
        let of = |count: usize, end: i64, is_known: bool| {
            let x = Tensor::from_f32(&[count], &[1.0, 2.0, 3.0, 4.0][..count]);
            let names = ["start", "end", "axis", "step"];
            let values = [-1, end, 0, -2].map(|value| vector(&[value]));
            let given = |model: Model, (name, value): (&str, &Tensor)| match is_known || name == "axis" {
                true => model.constant(name, value),
                false => model.fixed_input(name, value.clone()),
            };
            let model = names.into_iter().zip(&values).fold(Model::new(13).input("x", x), given);
            model.node("Slice", &["x", "start", "end", "axis", "step"], &["y"], &[]).numbers()
        };
        for is_known in [true, false] {
            assert_eq!(of(4, i64::MAX, is_known), [4.0, 2.0]);
            assert_eq!(of(4, i64::from(i32::MAX), is_known), [4.0, 2.0]);
            assert_eq!(of(4, i64::MIN, is_known), [4.0, 2.0]);
            assert_eq!(of(4, 1, is_known), [4.0]);
            assert!(of(0, i64::MIN, is_known).is_empty());
        }
    }

    #[test]
    fn loops_take_parts_of_one_length() {
        let vector = |values: &[i64]| Tensor::from_i64(&[values.len()], values);
        let body = Model::new(13)
            .input("i", Tensor::from_i64(&[], &[0]))
            .input("c", Tensor::from_bool(&[], &[true]))
            .fixed_input("sum", Tensor::from_f32(&[2], &[0.0; 2]))
            .constant("axis", &vector(&[0]))
            .constant("two", &Tensor::from_i64(&[], &[2]))
            .node("Mul", &["i", "two"], &["from"], &[])
            .node("Add", &["from", "two"], &["to"], &[])
            .node("Unsqueeze", &["from", "axis"], &["start"], &[])
            .node("Unsqueeze", &["to", "axis"], &["end"], &[])
            .node("Slice", &["x", "start", "end"], &["part"], &[])
            .node("Add", &["sum", "part"], &["next"], &[])
            .node("Identity", &["c"], &["again"], &[])
            .body("body", &["again", "next"]);
        let model = |steps: i64| {
            Model::new(13)
                .fixed_input("x", Tensor::from_f32(&[6], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
                .input("steps", Tensor::from_i64(&[], &[steps]))
                .fixed_input("zero", Tensor::from_f32(&[2], &[0.0; 2]))
                .node("Loop", &["steps", "", "zero"], &["y"], std::slice::from_ref(&body))
        };
        assert_eq!(model(3).numbers(), [9.0, 12.0]);
        assert_eq!(model(1).numbers(), [1.0, 2.0]);
        let too_many = model(4);
        let graph = too_many.import(&["y"]).unwrap().graph;
        let error = evaluate(&graph, too_many.feeds()).unwrap_err();
        assert!(error.to_string().contains("beyond the end"), "{error}");
    }
}
