//! Operators that move elements: views, padding, gathers, scatters, concatenation.

use crate::accuracy::Accuracy;
use crate::generate::{Generator, Item, Made, fill};
use aoti_compiler::dtype::{Category, DType};
use aoti_compiler::graph::{BinaryOp, Combine, Coord, ValueId};
use aoti_compiler::symbolic::Expr;

impl Generator {
    pub(crate) fn view(&mut self) -> Made {
        let x = self.any(|_, _| true)?;
        let shape = self.b.shape(x.value);
        let rank = shape.len();
        let axis = self.rng.below(rank);
        let value = match self.rng.below(if rank == 0 { 2 } else { 9 }) {
            0 => self.b.unsqueeze(x.value, self.rng.below(rank + 1)).ok()?,
            1 => {
                let lead = Expr::int(self.rng.between(1, 4));
                self.b.expand(x.value, &[vec![lead], shape].concat()).ok()?
            }
            2 => {
                let mut order: Vec<usize> = (0..rank).collect();
                order.swap(axis, self.rng.below(rank));
                order.rotate_left(self.rng.below(rank));
                self.b.permute(x.value, &order).ok()?
            }
            3 => self.b.flip(x.value, &[axis]).ok()?,
            4 => self.slice(x.value, axis)?,
            5 => {
                let position = Expr::int(self.rng.between(0, 1));
                let is_inside = self.is_positive(&(&shape[axis] - &position));
                is_inside.then(|| self.b.pick(x.value, axis, &position).ok())??
            }
            6 => self.reshape(x.value, axis)?,
            7 => {
                let (size, step, dilation) =
                    (self.rng.between(1, 3), self.rng.between(1, 2), self.rng.between(1, 2));
                let room = &shape[axis] - (dilation * (size - 1));
                self.is_positive(&room)
                    .then(|| self.b.windows(x.value, axis, size, step, dilation).ok())??
            }
            _ => {
                let single: Vec<usize> = (0..rank).filter(|axis| shape[*axis].is(1)).collect();
                self.b.squeeze(x.value, &single).ok()?
            }
        };
        self.add(value, x.accuracy)
    }

    fn slice(&mut self, x: ValueId, axis: usize) -> Option<ValueId> {
        let size = self.b.shape(x)[axis].clone();
        let (start, step) = (Expr::int(self.rng.between(0, 2)), self.rng.between(1, 3));
        let room = &size - &start;
        if !self.is_positive(&room) {
            return None;
        }
        let length = room.ceil_div(&Expr::int(step), self.b.ranges());
        self.b.slice(x, axis, &start, &length, step).ok()
    }

    /// Joins an axis with the next, splits one, or lays all in a row.
    fn reshape(&mut self, x: ValueId, axis: usize) -> Option<ValueId> {
        let mut shape = self.b.shape(x);
        if self.rng.one_in(3) {
            let all = Expr::product(&shape);
            return self.b.reshape(x, &[all]).ok();
        }
        if axis + 1 < shape.len() && self.rng.one_in(2) {
            let next = shape.remove(axis + 1);
            shape[axis] = &shape[axis] * &next;
        } else {
            let size = shape[axis].as_int()?;
            let factor = [2, 3, 5, 11].into_iter().find(|factor| size % factor == 0)?;
            shape[axis] = Expr::int(size / factor);
            shape.insert(axis + self.rng.below(2), Expr::int(factor));
        }
        self.b.reshape(x, &shape).ok()
    }

    pub(crate) fn pad(&mut self) -> Made {
        let x = self.any(|ty, _| ty.rank() > 0)?;
        let amounts: Vec<(Expr, Expr)> =
            (0..self.b.rank(x.value))
                .map(|_| {
                    if self.rng.one_in(2) {
                        (0, 0)
                    } else {
                        (self.rng.between(-1, 2), self.rng.between(0, 3))
                    }
                })
                .map(|(low, high)| (Expr::int(low), Expr::int(high)))
                .collect();
        let shape = self.b.shape(x.value);
        let fits = shape
            .iter()
            .zip(&amounts)
            .all(|(size, (low, high))| self.is_positive(&(&(&(size + low) + high) + 1)));
        let number = fill(&mut self.rng);
        let value = fits.then(|| self.b.pad(x.value, &amounts, number).ok())??;
        self.add(value, x.accuracy.either(Accuracy::exact(1.0, 0)))
    }

    /// `count` valid indices into an axis of this size, some of them negative.
    fn indices(&mut self, size: &Expr, shape: &[Expr]) -> Option<ValueId> {
        if !self.is_positive(size) {
            return None;
        }
        let source = self.any(|ty, _| ty.dtype.category() == Category::Int);
        let wide = match source {
            Some(item) if self.expands(item.value, shape) => {
                let wide = self.b.cast(item.value, DType::I64);
                self.b.expand(wide, shape).ok()?
            }
            _ => {
                let slope = self.rng.between(-2, 3);
                let expr =
                    (0..shape.len()).fold(Expr::int(1), |sum, axis| &sum + &(&Expr::axis(axis) * slope));
                self.b.index(expr, shape)
            }
        };
        let bound = self.b.index(size.clone(), shape);
        let valid = self.b.binary(BinaryOp::Remainder, wide, bound).ok()?;
        if self.rng.one_in(3) { self.b.binary(BinaryOp::Sub, valid, bound).ok() } else { Some(valid) }
    }

    /// Shape with an axis of another length, and coordinates that are indirect there.
    fn along(&mut self, shape: &[Expr], axis: usize) -> (Vec<Expr>, Vec<Coord>) {
        let mut shape = shape.to_vec();
        shape[axis] = Expr::int(self.rng.between(1, 6));
        let coord = |k| if k == axis { Coord::Wrapped(0) } else { Coord::Expr(Expr::axis(k)) };
        let coords = (0..shape.len()).map(coord).collect();
        (shape, coords)
    }

    pub(crate) fn gather(&mut self) -> Made {
        let x = self.any(|ty, _| ty.rank() > 0)?;
        let axis = self.rng.below(self.b.rank(x.value));
        self.gather_from(x, axis)
    }

    /// Some elements of a value along an axis.
    fn gather_from(&mut self, x: Item, axis: usize) -> Made {
        let shape = self.b.shape(x.value);
        let (result, coords) = self.along(&shape, axis);
        let index = if self.rng.one_in(2) {
            // One index for a whole slice, as an embedding has it.
            let row = self.indices(&shape[axis], &[result[axis].clone()])?;
            self.b.view(row, &result, vec![Expr::axis(axis)]).ok()?
        } else {
            self.indices(&shape[axis], &result)?
        };
        let value = self.b.gather(x.value, &[index], coords, &result).ok()?;
        self.add(value, x.accuracy)
    }

    /// What is just computed, looked up or written where indices say, mostly along an axis of one element, and computed with.
    pub(crate) fn indexed(&mut self) -> Made {
        let x = self.any(|_, _| true)?;
        let shape = self.b.shape(x.value);
        let single: Vec<usize> = (0..shape.len()).filter(|axis| shape[*axis].is(1)).collect();
        let (value, axis) = match single.as_slice() {
            [] if shape.len() < 4 => {
                let axis = self.rng.below(shape.len() + 1);
                (self.b.unsqueeze(x.value, axis).ok()?, axis)
            }
            [] => (x.value, self.rng.below(shape.len())),
            _ => (x.value, self.rng.pick(&single)),
        };
        let made = self.bounded(value, BinaryOp::Maximum)?;
        let made = Item { value: made, accuracy: x.accuracy.either(Accuracy::exact(1.0, 0)) };
        let before = self.items.len();
        match self.rng.below(2) {
            0 => self.gather_from(made, axis)?,
            _ => self.scatter_along(made, axis)?,
        }
        let last = self.items[before..].last().copied()?;
        let value = self.bounded(last.value, BinaryOp::Minimum)?;
        self.add(value, last.accuracy.either(Accuracy::exact(1.0, 0)))
    }

    /// The larger or smaller of each element and 0 or 1.
    fn bounded(&mut self, x: ValueId, op: BinaryOp) -> Option<ValueId> {
        let (dtype, shape) = (self.b.dtype(x), self.b.shape(x));
        let number = self.rng.between(0, 1);
        let bound = self.b.full(number, dtype, &shape);
        self.b.binary(op, x, bound).ok()
    }

    pub(crate) fn scatter(&mut self) -> Made {
        let x = self.any(|ty, _| ty.rank() > 0)?;
        self.scatter_into(x)
    }

    /// Some elements of a value with axes are written.
    pub(crate) fn scatter_into(&mut self, x: Item) -> Made {
        let axis = self.rng.below(self.b.rank(x.value));
        if self.rng.one_in(3) {
            return self.write_slice(x, axis);
        }
        self.scatter_along(x, axis)
    }

    /// Some elements of a value along an axis are written.
    fn scatter_along(&mut self, x: Item, axis: usize) -> Made {
        let (shape, dtype) = (self.b.shape(x.value), self.b.dtype(x.value));
        let (updates_shape, coords) = self.along(&shape, axis);
        let index = self.indices(&shape[axis], &updates_shape)?;
        let source = self.b.gather(x.value, &[index], coords.clone(), &updates_shape).ok()?;
        let updates = match self.any(|ty, a| ty.dtype == dtype && a.size <= x.accuracy.size && a.is_exact()) {
            Some(item) if self.expands(item.value, &updates_shape) => {
                self.b.expand(item.value, &updates_shape).ok()?
            }
            _ => source,
        };
        let index = self.indices(&shape[axis], &updates_shape)?;
        let combine = match dtype.category() {
            Category::Bool => Combine::Set,
            Category::Float => self.rng.pick(&[Combine::Set, Combine::Add, Combine::Max, Combine::Min]),
            Category::Int => self.rng.pick(Combine::ALL),
        };
        let value = self.b.scatter(x.value, updates, &[index], coords, combine).ok()?;
        let accuracy = match combine {
            Combine::Set | Combine::Max | Combine::Min => x.accuracy,
            Combine::Add => x.accuracy.summed(8.0, dtype),
            Combine::Mul => Accuracy::exact(1e19, 0).rounded(dtype),
        };
        self.add(value, accuracy)
    }

    /// A strided part of an axis is written.
    fn write_slice(&mut self, x: Item, axis: usize) -> Made {
        let (size, dtype) = (self.b.shape(x.value)[axis].clone(), self.b.dtype(x.value));
        let (start, step) = (Expr::int(self.rng.between(0, 1)), self.rng.between(1, 2));
        let room = &size - &start;
        if !self.is_positive(&room) {
            return None;
        }
        let length = room.ceil_div(&Expr::int(step), self.b.ranges());
        let mut shape = self.b.shape(x.value);
        shape[axis] = length;
        let item = self.any(|ty, a| ty.dtype == dtype && a.is_exact() && ty.rank() <= shape.len())?;
        if !self.expands(item.value, &shape) {
            return None;
        }
        let updates = self.b.expand(item.value, &shape).ok()?;
        let coord = |k| if k == axis { &(&Expr::axis(k) * step) + &start } else { Expr::axis(k) };
        let coords = (0..shape.len()).map(|k| Coord::Expr(coord(k))).collect();
        let value = self.b.scatter(x.value, updates, &[], coords, Combine::Set).ok()?;
        self.add(value, x.accuracy.either(item.accuracy))
    }

    pub(crate) fn cat(&mut self) -> Made {
        let x = self.any(|ty, _| ty.rank() > 0)?;
        let ty = self.b.ty(x.value).clone();
        let axis = self.rng.below(ty.rank());
        let (mut operands, mut accuracy) = (vec![x.value], x.accuracy);
        for _ in 0..1 + self.rng.below(2) {
            let fits = |other: &aoti_compiler::graph::TensorType, _| {
                other.dtype == ty.dtype
                    && other.rank() == ty.rank()
                    && (0..ty.rank()).all(|k| k == axis || other.shape[k] == ty.shape[k])
            };
            let other = self.any(fits)?;
            operands.push(other.value);
            accuracy = accuracy.either(other.accuracy);
        }
        let value = self.b.cat(&operands, axis).ok()?;
        self.add(value, accuracy)
    }
}
