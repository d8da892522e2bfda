//! Shapes and views: broadcasting, and the coordinates that one operator after another composes.

use super::{Builder, Built, ShapeError, ensure};
use crate::graph::{Node, Op, Scalar, ValueId};
use crate::symbolic::{Expr, RangeTable, Ranges, Symbol, SymbolKind};

impl Builder {
    /// Whether two sizes are the same for all values of the symbols.
    pub fn same_size(&self, a: &Expr, b: &Expr) -> bool {
        if a == b {
            return true;
        }
        let gap = a - b;
        gap.as_int().is_none() && (gap.simplify(&self.ranges).is(0) || self.facts.is_zero(&gap))
    }

    /// The common shape of operands by NumPy's broadcasting rules.
    pub fn broadcast_shapes(&mut self, values: &[ValueId]) -> Built<Vec<Expr>> {
        let shapes: Vec<Vec<Expr>> = values.iter().map(|value| self.shape(*value)).collect();
        self.broadcast(&shapes)
    }

    /// The common shape of shapes by NumPy's broadcasting rules. Where two symbolic sizes meet, the run must have them the
    /// same: that one of them is 1 by chance is not counted on, unless it is 1 or nothing.
    pub fn broadcast(&mut self, shapes: &[Vec<Expr>]) -> Built<Vec<Expr>> {
        let (shape, undecided) = self.common_shape(shapes);
        for (a, b) in undecided {
            let differ = |_| ShapeError(format!("shapes {shapes:?} do not broadcast together"));
            if self.is_one_or_none(&a) {
                self.require_one_or(&a, &b);
            } else {
                self.require_same(&a, &b).map_err(differ)?;
            }
        }
        Ok(shape)
    }

    /// Whether a size is 1 or 0, such as that of `x[:1]`, and not known to be 0.
    fn is_one_or_none(&self, size: &Expr) -> bool {
        size.interval(&self.ranges).max <= 1 && !size.is(0)
    }

    /// Whether a size may be 0 in some run.
    pub fn may_be_empty(&self, size: &Expr) -> bool {
        size.interval(&self.ranges).min < 1
    }

    /// The common shape of shapes, if they broadcast together for all values of the symbols.
    pub fn sure_broadcast(&self, shapes: &[Vec<Expr>]) -> Option<Vec<Expr>> {
        let (shape, undecided) = self.common_shape(shapes);
        undecided.is_empty().then_some(shape)
    }

    /// The common shape, and the sizes that must be the same for it, or the first of them 1.
    fn common_shape(&self, shapes: &[Vec<Expr>]) -> (Vec<Expr>, Vec<(Expr, Expr)>) {
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let mut result = vec![Expr::int(1); rank];
        let mut undecided = Vec::new();
        for shape in shapes {
            for (size, slot) in shape.iter().zip(&mut result[rank - shape.len()..]) {
                if slot.is(1) {
                    *slot = size.clone();
                } else if !size.is(1) && !self.same_size(size, slot) {
                    let (mut least, mut most) = (size.clone(), slot.clone());
                    if self.is_one_or_none(slot) && !self.is_one_or_none(size) {
                        (least, most) = (most, least);
                    }
                    *slot = most.clone();
                    undecided.push((least, most));
                }
            }
        }
        (result, undecided)
    }

    /// General view: element at axes `i0, i1, ...` of the result is the operand's at `coords`.
    /// A view of a view becomes one view.
    /// Where the coordinates may be out of bounds, the run must have them within.
    pub fn view(&mut self, x: ValueId, shape: &[Expr], coords: Vec<Expr>) -> Built {
        ensure!(coords.len() == self.rank(x), "{} coordinates for {} axes", coords.len(), self.rank(x));
        let own = self.shape(x);
        self.require_within(&own, shape, &coords)?;
        self.view_within(x, shape, coords)
    }

    /// A view whose coordinates are within bounds.
    fn view_within(&mut self, x: ValueId, shape: &[Expr], coords: Vec<Expr>) -> Built {
        let ranges = self.axis_ranges(shape);
        let coords = canonical(&coords, shape, &ranges);
        if shape == self.shape(x).as_slice() && is_identity(&coords, shape) {
            return Ok(x);
        }
        let (source, coords) = match self.producer(x) {
            Some(Node { op: Op::View(inner), inputs, .. }) => match composed(inner, &coords, &ranges) {
                Some(composed) => (inputs[0], composed),
                None => (x, coords),
            },
            _ => (x, coords),
        };
        if shape == self.shape(source).as_slice() && is_identity(&coords, shape) {
            return Ok(source);
        }
        let dtype = self.dtype(source);
        Ok(self.push1(Op::View(coords), &[source], dtype, shape.to_vec()))
    }

    /// Ranges of the symbols and of axes at a position of `shape`: what is written over them is computed nowhere else, so
    /// that no size is zero without which there are no positions.
    pub fn axis_ranges(&self, shape: &[Expr]) -> RangeTable {
        let mut table = self.extents(shape);
        table.assume_inhabited(shape);
        table
    }

    /// Ranges of the symbols and of axes that run over `shape`, which may have no positions.
    pub(super) fn extents(&self, shape: &[Expr]) -> RangeTable {
        let mut table = self.ranges.clone();
        for (axis, size) in shape.iter().enumerate() {
            table.set_extent(axis_symbol(axis), size.clone());
        }
        table
    }

    /// Reorders axes: axis `k` of the result is the operand's axis `order[k]`.
    pub fn permute(&mut self, x: ValueId, order: &[usize]) -> Built {
        let shape = self.shape(x);
        let mut seen = vec![false; shape.len()];
        ensure!(order.len() == shape.len(), "order {order:?} for {} axes", shape.len());
        for axis in order {
            ensure!(*axis < shape.len() && !seen[*axis], "order {order:?} is not a permutation");
            seen[*axis] = true;
        }
        let mut coords = vec![Expr::int(0); shape.len()];
        for (to, from) in order.iter().enumerate() {
            coords[*from] = Expr::axis(to);
        }
        let new_shape: Vec<Expr> = order.iter().map(|axis| shape[*axis].clone()).collect();
        self.view(x, &new_shape, coords)
    }

    /// Swaps two axes.
    pub fn transpose(&mut self, x: ValueId, a: usize, b: usize) -> Built {
        let mut order: Vec<usize> = (0..self.rank(x)).collect();
        ensure!(a < order.len() && b < order.len(), "axes {a} and {b} of {}", order.len());
        order.swap(a, b);
        self.permute(x, &order)
    }

    /// Broadcasts to a shape.
    pub fn expand(&mut self, x: ValueId, shape: &[Expr]) -> Built {
        let own = self.shape(x);
        if own == shape {
            return Ok(x);
        }
        ensure!(own.len() <= shape.len(), "{own:?} does not broadcast to {shape:?}");
        let offset = shape.len() - own.len();
        let mut coords = Vec::with_capacity(own.len());
        for (axis, size) in own.iter().enumerate() {
            let target = &shape[axis + offset];
            if self.same_size(size, target) {
                coords.push(Expr::axis(axis + offset));
            } else if size.is(1) {
                coords.push(Expr::int(0));
            } else if self.is_one_or_none(size) {
                self.require_one_or(size, target);
                coords.push(Expr::int(0));
            } else {
                let differ = |_| ShapeError(format!("{own:?} does not broadcast to {shape:?}"));
                self.require_same(size, target).map_err(differ)?;
                coords.push(Expr::axis(axis + offset));
            }
        }
        self.view(x, shape, coords)
    }

    /// The same elements in row-major order under another shape with as many elements.
    pub fn reshape(&mut self, x: ValueId, shape: &[Expr]) -> Built {
        let own = self.shape(x);
        if own == shape {
            return Ok(x);
        }
        let (from, to) = (Expr::product(&own), Expr::product(shape));
        let differ = |_| ShapeError(format!("{own:?} has {from} elements and {shape:?} has {to}"));
        self.require_same(&from, &to).map_err(differ)?;
        let ranges = self.axis_ranges(shape);
        if from.is(0) {
            return Ok(self.full(0i64, self.dtype(x), shape));
        }
        let coords = reshape_coords(&own, shape, &ranges);
        self.view_within(x, shape, coords)
    }

    /// Whether the elements that a view shows are all of its operand's, in their order.
    pub(crate) fn is_reshape(&self, from: &[Expr], coords: &[Expr], to: &[Expr]) -> bool {
        let ranges = self.axis_ranges(to);
        let axes: Vec<Expr> =
            (0..to.len()).map(|k| if to[k].is(1) { Expr::int(0) } else { Expr::axis(k) }).collect();
        let once =
            |symbol: Symbol| (0..to.len()).find(|k| to[*k].is(1) && Expr::axis(*k) == Expr::sym(symbol));
        let position = |coords: &[Expr], sizes: &[Expr]| {
            let all = coords.iter().zip(sizes).fold(Expr::int(0), |all, (own, size)| &(&all * size) + own);
            all.substitute(&|symbol| once(symbol).map(|_| Expr::int(0)), &ranges)
        };
        Expr::product(from) == Expr::product(to) && position(coords, from) == position(&axes, to)
    }

    /// Inserts an axis of size 1.
    pub fn unsqueeze(&mut self, x: ValueId, axis: usize) -> Built {
        let mut shape = self.shape(x);
        ensure!(axis <= shape.len(), "axis {axis} of {}", shape.len());
        let coords = (0..shape.len()).map(|k| Expr::axis(if k < axis { k } else { k + 1 })).collect();
        shape.insert(axis, Expr::int(1));
        self.view(x, &shape, coords)
    }

    /// Removes axes of size 1.
    pub fn squeeze(&mut self, x: ValueId, axes: &[usize]) -> Built {
        let shape = self.shape(x);
        let (mut kept, mut coords) = (Vec::new(), Vec::new());
        for (axis, size) in shape.iter().enumerate() {
            if axes.contains(&axis) {
                ensure!(size.is(1), "axis {axis} has size {size}, not 1");
                coords.push(Expr::int(0));
            } else {
                coords.push(Expr::axis(kept.len()));
                kept.push(size.clone());
            }
        }
        self.view(x, &kept, coords)
    }

    /// `length` elements of an axis from `start` in steps of `step`, all within bounds.
    pub fn slice(
        &mut self,
        x: ValueId,
        axis: usize,
        start: &Expr,
        length: &Expr,
        step: impl Into<Expr>,
    ) -> Built {
        let mut shape = self.shape(x);
        ensure!(axis < shape.len(), "axis {axis} of {}", shape.len());
        shape[axis] = length.clone();
        let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
        coords[axis] = &(&Expr::axis(axis) * &step.into()) + start;
        self.view(x, &shape, coords)
    }

    /// The element at `position` of an axis, which goes.
    pub fn pick(&mut self, x: ValueId, axis: usize, position: &Expr) -> Built {
        let mut shape = self.shape(x);
        ensure!(axis < shape.len(), "axis {axis} of {}", shape.len());
        shape.remove(axis);
        let coords = (0..=shape.len())
            .map(|k| match k.cmp(&axis) {
                std::cmp::Ordering::Less => Expr::axis(k),
                std::cmp::Ordering::Equal => position.clone(),
                std::cmp::Ordering::Greater => Expr::axis(k - 1),
            })
            .collect();
        self.view(x, &shape, coords)
    }

    /// Reverses axes.
    pub fn flip(&mut self, x: ValueId, axes: &[usize]) -> Built {
        let shape = self.shape(x);
        let coords = (0..shape.len())
            .map(|k| if axes.contains(&k) { &(&shape[k] - 1) - &Expr::axis(k) } else { Expr::axis(k) })
            .collect();
        self.view(x, &shape, coords)
    }

    /// Sliding windows: axis `axis` becomes the window's number, and a new last axis the position inside it.
    pub fn windows(&mut self, x: ValueId, axis: usize, size: i64, step: i64, dilation: i64) -> Built {
        let mut shape = self.shape(x);
        ensure!(axis < shape.len(), "axis {axis} of {}", shape.len());
        ensure!(size >= 0 && step > 0 && dilation > 0, "window {size} step {step} dilation {dilation}");
        let span = dilation * (size - 1).max(0) + 1;
        let room = &shape[axis] - span;
        self.require_room(&room)?;
        let count = &room.floor_div_in(&Expr::int(step), &self.ranges) + 1;
        let last = shape.len();
        let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
        coords[axis] = &(&Expr::axis(axis) * step) + &(&Expr::axis(last) * dilation);
        shape[axis] = count;
        shape.push(Expr::int(size));
        self.view(x, &shape, coords)
    }

    /// General view with a value for what lies outside the operand.
    pub fn padded_view(&mut self, x: ValueId, shape: &[Expr], coords: Vec<Expr>, fill: Scalar) -> Built {
        ensure!(coords.len() == self.rank(x), "{} coordinates for {} axes", coords.len(), self.rank(x));
        let ranges = self.axis_ranges(shape);
        let coords = canonical(&coords, shape, &ranges);
        let own = self.shape(x);
        let inside =
            |(coord, size): (&Expr, &Expr)| coord.never_negative(&ranges) && coord.always_less(size, &ranges);
        if coords.iter().zip(&own).all(inside) {
            return self.view(x, shape, coords);
        }
        if !self.is_checked {
            coords.iter().for_each(|coord| self.require_fits(coord, shape));
        }
        let dtype = self.dtype(x);
        Ok(self.push1(Op::Pad { coords, fill: fill.cast(dtype) }, &[x], dtype, shape.to_vec()))
    }

    /// Adds elements before and after each axis (or takes away, where negative).
    pub fn pad(&mut self, x: ValueId, amounts: &[(Expr, Expr)], fill: impl Into<Scalar>) -> Built {
        let own = self.shape(x);
        ensure!(amounts.len() == own.len(), "{} paddings for {} axes", amounts.len(), own.len());
        let shape: Vec<Expr> =
            own.iter().zip(amounts).map(|(size, (low, high))| &(size + low) + high).collect();
        for size in &shape {
            ensure!(size.interval(&self.ranges).max >= 0, "padding leaves a size of {size}");
        }
        let coords = amounts.iter().enumerate().map(|(axis, (low, _))| &Expr::axis(axis) - low).collect();
        self.padded_view(x, &shape, coords, fill.into())
    }

    /// A value whose sizes are written as those of another, which is required of them: the same in this run, but perhaps by
    /// that requirement alone.
    pub(super) fn with_sizes(&mut self, x: ValueId, shape: &[Expr]) -> Built {
        let own = self.shape(x);
        let written = own.iter().zip(shape).map(|(own, other)| {
            if (own - other).simplify(&self.ranges).is(0) { own.clone() } else { other.clone() }
        });
        let written: Vec<Expr> = written.collect();
        self.view(x, &written, (0..own.len()).map(Expr::axis).collect())
    }

    /// Lays operands of one type one after the other along an axis.
    pub fn cat(&mut self, values: &[ValueId], axis: usize) -> Built {
        let Some(first) = values.first() else {
            return Err(ShapeError("nothing to concatenate".to_owned()));
        };
        let mut ty = self.ty(*first).clone();
        ensure!(axis < ty.rank(), "axis {axis} of {}", ty.rank());
        let mut total = Expr::int(0);
        let mut operands = Vec::new();
        for value in values {
            let other = self.ty(*value).clone();
            ensure!(other.dtype == ty.dtype, "operands are {} and {}", ty.dtype, other.dtype);
            ensure!(other.rank() == ty.rank(), "operands have {} and {} axes", ty.rank(), other.rank());
            for (k, (a, b)) in ty.shape.iter().zip(&other.shape).enumerate() {
                if k != axis {
                    let differ = |_| ShapeError(format!("sizes {a} and {b} of axis {k} differ"));
                    self.require_same(a, b).map_err(differ)?;
                }
            }
            total = &total + &other.shape[axis];
            let mut shape = ty.shape.clone();
            shape[axis].clone_from(&other.shape[axis]);
            operands.push(self.with_sizes(*value, &shape)?);
        }
        if values.len() == 1 {
            return Ok(*first);
        }
        ty.shape[axis] = total;
        Ok(self.push1(Op::Cat { axis }, &operands, ty.dtype, ty.shape))
    }
}

pub(super) fn axis_symbol(axis: usize) -> Symbol {
    Symbol::axis(u32::try_from(axis).expect("axes are few"))
}

/// Most occurrences of axes in a coordinate of a view that is made of several. Reshapes that split other axes than the one
/// before multiply them, so that coordinates of a chain of views would grow exponentially.
const MAX_OCCURRENCES: usize = 64;

/// How often axes occur in that coordinate in which they occur most, counted up to a limit.
pub fn axis_occurrences(coords: &[Expr], limit: usize) -> usize {
    coords.iter().map(|coord| coord.occurrences(SymbolKind::Axis, limit)).max().unwrap_or(0)
}

/// The coordinates of a view at `outer` of one at `inner`, where they are not too long.
pub fn composed(inner: &[Expr], outer: &[Expr], ranges: &RangeTable) -> Option<Vec<Expr>> {
    let limit = MAX_OCCURRENCES + 1;
    // Longer ones may be simplified to shorter ones, within reason.
    if axis_occurrences(inner, limit) * axis_occurrences(outer, limit) > 4 * MAX_OCCURRENCES {
        return None;
    }
    let replace = axis_replacer(outer);
    let coords: Vec<Expr> = inner.iter().map(|coord| coord.substitute(&replace, ranges)).collect();
    (axis_occurrences(&coords, limit) <= MAX_OCCURRENCES).then_some(coords)
}

/// Replaces axis `k` by `coords[k]`.
fn axis_replacer(coords: &[Expr]) -> impl Fn(Symbol) -> Option<Expr> + '_ {
    move |symbol| match symbol.kind {
        SymbolKind::Axis => coords.get(symbol.index as usize).cloned(),
        SymbolKind::Size => None,
    }
}

/// Coordinates in simplest form: the position along an axis of one element is 0.
pub(super) fn canonical(coords: &[Expr], shape: &[Expr], ranges: &RangeTable) -> Vec<Expr> {
    let only = |symbol: Symbol| {
        let is_axis = symbol.kind == SymbolKind::Axis;
        let unit = is_axis && shape.get(symbol.index as usize).is_some_and(|size| size.is(1));
        unit.then(|| Expr::int(0))
    };
    coords.iter().map(|coord| coord.substitute(&only, ranges).simplify(ranges)).collect()
}

/// Whether coordinates name each axis in order (an axis of size 1 may also be named by 0).
fn is_identity(coords: &[Expr], shape: &[Expr]) -> bool {
    coords.len() == shape.len()
        && coords
            .iter()
            .enumerate()
            .all(|(k, coord)| *coord == Expr::axis(k) || (coord.is(0) && shape[k].is(1)))
}

/// Coordinates into `from` of the element at axes over `to`, both row-major with equally many elements.
///
/// Axes are matched in groups of equal products, so that a reshape of some axes leaves the others plain.
fn reshape_coords(from: &[Expr], to: &[Expr], ranges: &dyn Ranges) -> Vec<Expr> {
    let mut coords = Vec::with_capacity(from.len());
    let (mut f, mut t) = (0, 0);
    while f < from.len() {
        let (f_start, t_start) = (f, t);
        let (mut f_product, mut t_product) = (from[f].clone(), Expr::int(1));
        f += 1;
        if f_product.is(1) {
            coords.push(Expr::int(0));
            continue;
        }
        loop {
            if f_product == t_product {
                break;
            }
            // Take from the side that is visibly smaller; where neither is, take everything that is left.
            let t_smaller = (&f_product - &t_product).interval(ranges).min >= 0;
            if t < to.len() && (t_smaller || f == from.len()) {
                t_product = &t_product * &to[t];
                t += 1;
            } else if f < from.len() {
                f_product = &f_product * &from[f];
                f += 1;
            } else {
                break;
            }
        }
        let linear = linearize(t_start, &to[t_start..t]);
        delinearize(&linear, &from[f_start..f], ranges, &mut coords);
    }
    coords
}

fn linearize(first_axis: usize, sizes: &[Expr]) -> Expr {
    sizes
        .iter()
        .enumerate()
        .fold(Expr::int(0), |linear, (k, size)| &(&linear * size) + &Expr::axis(first_axis + k))
}

fn delinearize(linear: &Expr, sizes: &[Expr], ranges: &dyn Ranges, coords: &mut Vec<Expr>) {
    for (k, size) in sizes.iter().enumerate() {
        let stride = Expr::product(&sizes[k + 1..]);
        let quotient = linear.floor_div_in(&stride, ranges);
        coords.push(if k == 0 { quotient } else { quotient.modulo_in(size, ranges) });
    }
}

#[cfg(test)]
mod tests;
