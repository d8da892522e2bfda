//! Elements by their positions: gathering, scattering, selecting.

use super::super::call::{Call, malformed, unsupported};
use super::super::walk::Onnx;
use super::{Rule, many, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::gather::index_select;
use crate::frontend::torch::rules::masked::hits_of;
use crate::graph::{Combine, Condition, Coord, ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "Gather" => gather,
    "GatherElements" => gather_elements,
    "GatherND" => gather_nd,
    "Scatter" => scatter_elements,
    "ScatterElements" => scatter_elements,
    "ScatterND" => scatter_nd,
    "TopK" => top_k,
    "NonZero" => non_zero,
    "Compress" => compress,
    "OneHot" => one_hot,
}

/// Positions of a type that indexes, negative ones counted from the end.
fn indices(cx: &mut Onnx, value: ValueId) -> ValueId {
    cx.b.cast(value, DType::I64)
}

/// The result has the axes of the indices in place of the axis.
fn gather(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, at) = (c.tensor(0)?, c.tensor(1)?);
    let own = cx.b.shape(x);
    let axis = axis_of(c.int("axis", 0)?, own.len())?;
    if own.is_empty() {
        return Err(malformed("a tensor without axes has nothing to gather"));
    }
    let narrow = cx.narrow.get(&x).copied();
    let index = cx.b.shape(at);
    let shape = [&own[..axis], &index, &own[axis + 1..]].concat();
    // A position that is known is a view.
    let value = match cx.b.element(at).filter(|_| index.is_empty()) {
        Some(position) => {
            let position = cx.b.wrapped(&position, &own[axis]);
            cx.b.pick(x, axis, &position)?
        }
        None => {
            let at = indices(cx, at);
            let coords = (axis..axis + index.len()).map(Expr::axis).collect();
            let at = cx.b.view(at, &shape, coords)?;
            let coord = |own: usize| match own.cmp(&axis) {
                std::cmp::Ordering::Less => Coord::Expr(Expr::axis(own)),
                std::cmp::Ordering::Equal => Coord::Wrapped(0),
                std::cmp::Ordering::Greater => Coord::Expr(Expr::axis(own - 1 + index.len())),
            };
            cx.b.gather(x, &[at], (0..own.len()).map(coord).collect(), &shape)?
        }
    };
    if let Some(narrow) = narrow {
        cx.narrow.insert(value, narrow);
    }
    one(value)
}

fn along(rank: usize, axis: usize) -> Vec<Coord> {
    (0..rank).map(|own| if own == axis { Coord::Wrapped(0) } else { Coord::Expr(Expr::axis(own)) }).collect()
}

fn gather_elements(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, at) = (c.tensor(0)?, c.tensor(1)?);
    let axis = axis_of(c.int("axis", 0)?, cx.b.rank(x))?;
    let at = indices(cx, at);
    let at = within(cx, x, at, axis)?;
    let shape = cx.b.shape(at);
    one(cx.b.gather(x, &[at], along(shape.len(), axis), &shape)?)
}

/// Indices may be of fewer rows than what they index, never of more.
fn within(cx: &mut Onnx, x: ValueId, at: ValueId, axis: usize) -> Result<ValueId, RuleError> {
    let (own, index) = (cx.b.shape(x), cx.b.shape(at));
    if own.len() != index.len() {
        return Err(malformed("the indices have another number of axes"));
    }
    for (position, (own, index)) in own.iter().zip(&index).enumerate() {
        if position != axis {
            let fits = Condition::compare(index.clone(), Relation::Le, own.clone());
            if fits.decide(cx.b.facts()) == Some(false) {
                return Err(malformed("there are more indices than elements"));
            }
            cx.b.require(fits, "there are no more indices than elements");
        }
    }
    Ok(at)
}

/// The last axis of the indices is a position each, behind `batch_dims` axes that both have.
fn gather_nd(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, at) = (c.tensor(0)?, c.tensor(1)?);
    let batch =
        usize::try_from(c.int("batch_dims", 0)?).map_err(|_| malformed("`batch_dims` is negative"))?;
    let at = indices(cx, at);
    let (own, index) = (cx.b.shape(x), cx.b.shape(at));
    let rank = c.node.output.first().and_then(|name| cx.stated.get(name)).map(Vec::len);
    let rest = rank.and_then(|rank| rank.checked_sub(index.len().saturating_sub(1)));
    let (depth, outer) = positions(cx, &index, own.len().saturating_sub(batch), rest)?;
    if batch + depth > own.len() || batch > outer.len() {
        return Err(malformed("positions have more numbers than the tensor has axes"));
    }
    let mut shape = outer.to_vec();
    shape.extend_from_slice(&own[batch + depth..]);
    let mut lists = Vec::new();
    for number in 0..depth {
        let list = cx.b.pick(at, outer.len(), &Expr::int(number as i64))?;
        let coords = (0..outer.len()).map(Expr::axis).collect();
        lists.push(cx.b.view(list, &shape, coords)?);
    }
    for axis in 0..batch {
        cx.b.require_same(&own[axis], &outer[axis])?;
    }
    let coords = (0..own.len())
        .map(|axis| match axis.checked_sub(batch) {
            None => Coord::Expr(Expr::axis(axis)),
            Some(number) if number < depth => Coord::Wrapped(number),
            Some(number) => Coord::Expr(Expr::axis(outer.len() + number - depth)),
        })
        .collect();
    one(cx.b.gather(x, &lists, coords, &shape)?)
}

/// How many numbers a position has, and the axes in front. A position is in a tensor of `rank` axes, of which `rest` are left behind
/// it, where that is known otherwise.
fn positions<'i>(
    cx: &mut Onnx,
    index: &'i [Expr],
    rank: usize,
    rest: Option<usize>,
) -> Result<(usize, &'i [Expr]), RuleError> {
    let (last, outer) = index.split_last().ok_or_else(|| malformed("the indices have no axes"))?;
    if let Some(depth) = last.as_int().and_then(|depth| usize::try_from(depth).ok()) {
        return Ok((depth, outer));
    }
    let depth = rest.and_then(|rest| rank.checked_sub(rest)).ok_or_else(|| {
        unsupported("positions of which neither the sizes of the indices nor those of the result say how many numbers they have")
    })?;
    cx.b.require_same(last, &Expr::int(depth as i64))?;
    Ok((depth, outer))
}

fn combine(c: &Call) -> Result<Combine, RuleError> {
    Ok(match c.text("reduction", "none")? {
        "none" => Combine::Set,
        "add" => Combine::Add,
        "mul" => Combine::Mul,
        "max" => Combine::Max,
        "min" => Combine::Min,
        other => return Err(malformed(format!("reduction `{other}` is unknown"))),
    })
}

fn scatter_elements(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, at, updates) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let axis = axis_of(c.int("axis", 0)?, cx.b.rank(x))?;
    let at = indices(cx, at);
    let at = within(cx, x, at, axis)?;
    let shape = cx.b.shape(at);
    let updates = cx.required_shape(updates, &shape)?;
    let coords = along(cx.b.rank(x), axis);
    one(cx.b.scatter(x, updates, &[at], coords, combine(c)?)?)
}

fn scatter_nd(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, at, updates) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let at = indices(cx, at);
    let (own, index) = (cx.b.shape(x), cx.b.shape(at));
    let rest = cx.b.rank(updates).checked_sub(index.len().saturating_sub(1));
    let (depth, outer) = positions(cx, &index, own.len(), rest)?;
    if depth > own.len() {
        return Err(malformed("positions have more numbers than the tensor has axes"));
    }
    let shape = [outer, &own[depth..]].concat();
    let updates = cx.required_shape(updates, &shape)?;
    let mut lists = Vec::new();
    for number in 0..depth {
        let list = cx.b.pick(at, outer.len(), &Expr::int(number as i64))?;
        let coords = (0..outer.len()).map(Expr::axis).collect();
        lists.push(cx.b.view(list, &shape, coords)?);
    }
    let coords = (0..own.len())
        .map(|axis| {
            if axis < depth {
                Coord::Wrapped(axis)
            } else {
                Coord::Expr(Expr::axis(outer.len() + axis - depth))
            }
        })
        .collect();
    one(cx.b.scatter(x, updates, &lists, coords, combine(c)?)?)
}

/// The number of elements was an attribute before version 10.
fn top_k(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let rank = cx.b.rank(x);
    let axis = axis_of(c.int("axis", -1)?, rank)?;
    let k = match c.opt_int("k")? {
        Some(k) if c.version < 10 => Expr::int(k),
        Some(_) | None => cx.size(c.tensor(1)?)?,
    };
    let largest = c.flag("largest", true)?;
    let size = cx.b.shape(x)[axis].clone();
    let fits = Condition::compare(k.clone(), Relation::Le, size);
    cx.b.require(fits, "no more elements are taken than there are");
    let (values, order) = cx.b.sort(x, axis, largest)?;
    let zero = Expr::int(0);
    let values = cx.b.slice(values, axis, &zero, &k, 1)?;
    let order = cx.b.slice(order, axis, &zero, &k, 1)?;
    many([values, order])
}

/// The positions of what is not zero, a row for each axis.
fn non_zero(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let mask = cx.b.cast(x, DType::Bool);
    let flags = cx.b.cast(mask, DType::I64);
    let axes: Vec<usize> = (0..cx.b.rank(x)).collect();
    let count = cx.b.reduce(ReduceOp::Sum, flags, &axes, false)?;
    let size = cx.read_size(count, Some(&cx.b.ty(x).numel()))?;
    let lines = hits_of(cx, mask, &size)?;
    if lines.is_empty() {
        return one(cx.b.full(0i64, DType::I64, &[Expr::int(0), size]));
    }
    let rows =
        lines.into_iter().map(|line| Ok(cx.b.unsqueeze(line, 0)?)).collect::<Result<Vec<_>, RuleError>>()?;
    one(cx.b.cat(&rows, 0)?)
}

/// Rows whose flag is set; without an axis, elements.
fn compress(cx: &mut Onnx, c: &Call) -> Rule {
    let (mut x, flags) = (c.tensor(0)?, c.tensor(1)?);
    let axis = match c.opt_int("axis")? {
        Some(axis) => axis_of(axis, cx.b.rank(x))?,
        None => {
            x = cx.flattened(x)?;
            0
        }
    };
    let numbers = cx.b.cast(flags, DType::I64);
    let count = cx.b.reduce(ReduceOp::Sum, numbers, &[0], false)?;
    let most = cx.b.shape(flags)[0].clone();
    let size = match cx.b.element(count) {
        Some(size) => size,
        None => cx.read_size(count, Some(&most))?,
    };
    let lines = hits_of(cx, flags, &size)?;
    let line = *lines.first().ok_or_else(|| malformed("the flags have no axis"))?;
    one(index_select(cx, x, axis, line)?)
}

fn one_hot(cx: &mut Onnx, c: &Call) -> Rule {
    let (at, depth, values) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let depth = cx.b.cast(depth, DType::I64);
    let depth = cx.size(depth)?;
    let own = cx.b.shape(at);
    let axis = axis_of(c.int("axis", -1)?, own.len() + 1)?;
    let mut shape = own;
    shape.insert(axis, depth.clone());
    let at = cx.b.cast(at, DType::I64);
    let at = cx.b.unsqueeze(at, axis)?;
    // Negative ones count from the end; what is outside is nowhere.
    let below = cx.with_number(Relation::Lt, at, 0i64)?;
    let depth = cx.b.index(depth, &[]);
    let wrapped = cx.add(at, depth)?;
    let at = cx.b.select(below, wrapped, at)?;
    let position = cx.b.index(Expr::axis(axis), &shape);
    let hit = cx.b.binary(Relation::Eq, position, at)?;
    let [off, on] = [0, 1].map(|position| cx.b.pick(values, 0, &Expr::int(position)));
    one(cx.b.select(hit, on?, off?)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Model;
    use crate::interpret::Tensor;

    #[test]
    fn positions_have_as_many_numbers_as_the_other_shapes_say() {
        let x = Tensor::from_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let at = Tensor::from_i64(&[3, 2], &[0, 1, 1, 0, -1, -1]);
        let model = Model::new(13).input("x", x).input("at", at);
        let gathered = model.clone().state("y", &[("", 3)]);
        assert_eq!(gathered.of_one("GatherND", &["x", "at"], &[]), [2.0, 3.0, 4.0]);
        let message = model.clone().node("GatherND", &["x", "at"], &["y"], &[]).import(&["y"]).unwrap_err();
        assert!(message.to_string().contains("how many numbers"), "{message}");
        let scattered = model.input("own", Tensor::from_f32(&[3], &[5.0, 6.0, 7.0]));
        assert_eq!(scattered.of_one("ScatterND", &["x", "at", "own"], &[]), [1.0, 5.0, 6.0, 7.0]);
    }
}
