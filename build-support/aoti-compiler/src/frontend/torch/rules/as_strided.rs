//! Diagonals, sliding windows and strided views, and writing through views functionally.

use super::registry::rules;
use super::slice::span;
use super::{Args, Context, Outputs, RuleError};
use crate::graph::{Combine, Condition, Coord, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    view "aten.diagonal.default" => |cx, a| diagonal(cx, a, "self", [0, 1]),
    pure "aten.diagonal_copy.default" => |cx, a| diagonal(cx, a, "self", [0, 1]),
    view "aten.linalg_diagonal.default" => |cx, a| diagonal(cx, a, "A", [-2, -1]),
    view "aten.unfold.default" => unfold,
    pure "aten.unfold_copy.default" => unfold,
    view "aten.as_strided.default" => as_strided,
    pure "aten.as_strided_copy.default" => as_strided,
    pure "aten.as_strided_scatter.default" => as_strided_scatter,
    pure "aten.slice_scatter.default" => slice_scatter,
    pure "aten.select_scatter.default" => select_scatter,
    pure "aten.diagonal_scatter.default" => diagonal_scatter,
    pure "aten.select_backward.default" => select_backward,
    pure "aten.slice_backward.default" => slice_backward,
}

/// Shape and coordinates of a diagonal.
fn diagonal_map(
    cx: &Context,
    x: ValueId,
    offset: i64,
    axes: [i64; 2],
) -> Result<(Vec<Expr>, Vec<Expr>), RuleError> {
    let own = cx.b.shape(x);
    let (first, second) = (Context::axis(axes[0], own.len())?, Context::axis(axes[1], own.len())?);
    if own.len() < 2 || first == second {
        return Err(RuleError::Malformed("a diagonal needs two different axes".to_owned()));
    }
    let (down, right) = ((-offset).max(0), offset.max(0));
    let ranges = cx.b.ranges();
    let rows = &own[first] - down;
    let length = rows.minimum_in(&(&own[second] - right), ranges).maximum_in(&Expr::int(0), ranges);
    let mut shape = Vec::new();
    let mut coords = Vec::new();
    let last = Expr::axis(own.len() - 2);
    for (axis, size) in own.iter().enumerate() {
        if axis == first {
            coords.push(&last + down);
        } else if axis == second {
            coords.push(&last + right);
        } else {
            coords.push(Expr::axis(shape.len()));
            shape.push(size.clone());
        }
    }
    shape.push(length);
    Ok((shape, coords))
}

fn diagonal(cx: &mut Context, a: &Args, name: &str, default: [i64; 2]) -> Rule {
    let x = a.tensor(name)?;
    let axes = [a.int_or("dim1", default[0])?, a.int_or("dim2", default[1])?];
    let (shape, coords) = diagonal_map(cx, x, a.int_or("offset", 0)?, axes)?;
    Ok(cx.b.view(x, &shape, coords)?.into())
}

fn unfold(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let (size, step) = (a.int("size")?, a.int("step")?);
    let axis = Context::axis(a.int("dimension")?, cx.b.rank(x))?;
    if cx.b.rank(x) == 0 {
        let x = cx.at_least_1d(x)?;
        return Ok(cx.b.slice(x, 0, &Expr::int(0), &Expr::int(size), 1)?.into());
    }
    if size == 0 {
        let mut shape = cx.b.shape(x);
        shape[axis] = &shape[axis].floor_div_in(&Expr::int(step), cx.b.ranges()) + 1;
        shape.push(Expr::int(0));
        let dtype = cx.b.dtype(x);
        return Ok(cx.b.full(0i64, dtype, &shape).into());
    }
    Ok(cx.b.windows(x, axis, size, step, 1)?.into())
}

/// A window onto a storage, as a call asks for it.
struct Window {
    shape: Vec<Expr>,
    /// Where it begins, counted from where the tensor does.
    first: Expr,
    strides: Vec<Expr>,
}

impl Window {
    /// Of a call of `x`. The run must have it within the tensor, and its strides not negative.
    fn of(cx: &mut Context, a: &Args, x: ValueId) -> Result<Window, RuleError> {
        let own = &a.meta("self")?.storage_offset;
        let (shape, mut strides) = (a.syms("size")?, a.syms("stride")?);
        if shape.len() != strides.len() {
            let lengths = format!("{} sizes and {} strides", shape.len(), strides.len());
            return Err(RuleError::Malformed(lengths));
        }
        let zero = Expr::int(0);
        for stride in &mut strides {
            let condition = Condition::compare(stride.clone(), Relation::Ge, 0);
            cx.b.require(condition, "a stride must not be negative");
            *stride = stride.maximum_in(&zero, cx.b.ranges());
        }
        let first = &a.opt_sym("storage_offset")?.unwrap_or_else(|| own.clone()) - own;
        let window = Window { shape, first, strides };
        window.require_within(cx, &Expr::product(&cx.b.shape(x)))?;
        Ok(window)
    }

    /// PyTorch asks this of the whole storage, of which the tensor may be a part.
    fn require_within(&self, cx: &mut Context, room: &Expr) -> Result<(), RuleError> {
        if self.shape.iter().any(|size| size.is(0)) {
            return Ok(());
        }
        let axes = self.shape.iter().zip(&self.strides);
        let last = axes.fold(self.first.clone(), |last, (size, stride)| &last + &(&(size - 1) * stride));
        let behind = room - &last;
        if self.first.interval(cx.b.ranges()).max < 0 || behind.interval(cx.b.ranges()).max < 1 {
            return Err(RuleError::unsupported(
                "a strided view of more of the storage than the tensor covers",
            ));
        }
        let message = "a strided view must be within its tensor";
        cx.b.require(Condition::compare(self.first.clone(), Relation::Ge, 0), message);
        cx.b.require(Condition::compare(&last + 1, Relation::Le, room.clone()), message);
        Ok(())
    }

    /// Where in the storage an element is.
    fn position(&self) -> Expr {
        let strides = self.strides.iter().enumerate();
        strides.fold(self.first.clone(), |position, (axis, stride)| &position + &(&Expr::axis(axis) * stride))
    }
}

/// Shape of a window onto the storage of `self`, which must be dense, and its coordinates in `self`.
fn storage_map(cx: &mut Context, a: &Args, x: ValueId) -> Result<(Vec<Expr>, Vec<Expr>), RuleError> {
    let window = Window::of(cx, a, x)?;
    let position = window.position();
    let meta = a.meta("self")?;
    let own = cx.b.shape(x);
    let mut order: Vec<usize> = (0..own.len()).filter(|axis| !own[*axis].is(1)).collect();
    order.sort_by(|p, q| {
        let larger = (&meta.strides[*q] - &meta.strides[*p]).interval(cx.b.ranges());
        if larger.min > 0 {
            std::cmp::Ordering::Greater
        } else if larger.max < 0 {
            std::cmp::Ordering::Less
        } else {
            p.cmp(q)
        }
    });
    let ranges = cx.b.axis_ranges(&window.shape);
    let mut coords = vec![Expr::int(0); own.len()];
    let mut dense = Expr::int(1);
    for (k, axis) in order.iter().enumerate().rev() {
        if !cx.b.same_size(&meta.strides[*axis], &dense) {
            return Err(RuleError::unsupported(
                "a strided view of a tensor that is not dense in its storage",
            ));
        }
        let quotient = position.floor_div_in(&dense, &ranges);
        coords[*axis] = if k == 0 { quotient } else { quotient.modulo_in(&own[*axis], &ranges) };
        dense = &dense * &own[*axis];
    }
    Ok((window.shape, coords))
}

fn as_strided(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let (shape, coords) = storage_map(cx, a, x)?;
    Ok(cx.b.view(x, &shape, coords)?.into())
}

/// `base` with `src` written where the coordinates say.
fn write(cx: &mut Context, base: ValueId, src: ValueId, shape: &[Expr], coords: Vec<Expr>) -> Rule {
    let dtype = cx.b.dtype(base);
    let src = cx.b.cast(src, dtype);
    let src = cx.b.expand(src, shape)?;
    let coords = coords.into_iter().map(Coord::Expr).collect();
    Ok(cx.b.scatter(base, src, &[], coords, Combine::Set)?.into())
}

fn as_strided_scatter(cx: &mut Context, a: &Args) -> Rule {
    let (x, src) = (a.tensor("self")?, a.tensor("src")?);
    let (shape, coords) = storage_map(cx, a, x)?;
    write(cx, x, src, &shape, coords)
}

fn slice_scatter(cx: &mut Context, a: &Args) -> Rule {
    let (x, src) = (a.tensor("self")?, a.tensor("src")?);
    write_slice(cx, a, x, src)
}

fn slice_backward(cx: &mut Context, a: &Args) -> Rule {
    let grad = a.tensor("grad_output")?;
    let (dtype, shape) = (cx.b.dtype(grad), a.syms("input_sizes")?);
    let base = cx.b.full(0i64, dtype, &shape);
    write_slice(cx, a, base, grad)
}

/// `x` with other elements where the call's slice is.
fn write_slice(cx: &mut Context, a: &Args, x: ValueId, src: ValueId) -> Rule {
    let span = span(cx, a, x)?;
    let mut shape = cx.b.shape(x);
    let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
    coords[span.axis] = &(&Expr::axis(span.axis) * &span.step) + &span.start;
    shape[span.axis] = span.length;
    write(cx, x, src, &shape, coords)
}

/// Coordinates that hold one axis at a position, over the remaining axes.
fn picked(rank: usize, axis: usize, position: &Expr) -> Vec<Expr> {
    let other = |k: usize| Expr::axis(if k < axis { k } else { k - 1 });
    (0..rank).map(|k| if k == axis { position.clone() } else { other(k) }).collect()
}

fn select_scatter(cx: &mut Context, a: &Args) -> Rule {
    let (x, src) = (a.tensor("self")?, a.tensor("src")?);
    let mut shape = cx.b.shape(x);
    let axis = Context::axis(a.int("dim")?, shape.len())?;
    let position = cx.b.wrapped(&a.sym("index")?, &shape[axis]);
    let coords = picked(shape.len(), axis, &position);
    shape.remove(axis);
    write(cx, x, src, &shape, coords)
}

fn select_backward(cx: &mut Context, a: &Args) -> Rule {
    let grad = a.tensor("grad_output")?;
    let mut shape = a.syms("input_sizes")?;
    let axis = Context::axis(a.int("dim")?, shape.len())?;
    let position = cx.b.wrapped(&a.sym("index")?, &shape[axis]);
    let dtype = cx.b.dtype(grad);
    let base = cx.b.full(0i64, dtype, &shape);
    let coords = picked(shape.len(), axis, &position);
    shape.remove(axis);
    write(cx, base, grad, &shape, coords)
}

fn diagonal_scatter(cx: &mut Context, a: &Args) -> Rule {
    let (x, src) = (a.tensor("self")?, a.tensor("src")?);
    let axes = [a.int_or("dim1", 0)?, a.int_or("dim2", 1)?];
    let (shape, coords) = diagonal_map(cx, x, a.int_or("offset", 0)?, axes)?;
    write(cx, x, src, &shape, coords)
}
