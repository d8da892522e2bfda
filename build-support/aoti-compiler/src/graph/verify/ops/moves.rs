//! The rules of operators that move elements: coordinates lie within what they are of.

use super::{Check, Ctx, fits};
use crate::graph::{Coord, Scalar, TensorType};
use crate::symbolic::{Expr, Symbol};

impl Ctx<'_> {
    pub(super) fn view(&self, coords: &[Expr], x: &TensorType, out: &TensorType) -> Check {
        ensure!(x.dtype == out.dtype, "the result is {}, the operand {}", out.dtype, x.dtype);
        self.coordinates(coords, x, out)
    }

    pub(super) fn pad(&self, coords: &[Expr], fill: Scalar, x: &TensorType, out: &TensorType) -> Check {
        ensure!(x.dtype == out.dtype, "the result is {}, the operand {}", out.dtype, x.dtype);
        ensure!(coords.len() == x.rank(), "{} coordinates for {} axes", coords.len(), x.rank());
        coords.iter().try_for_each(|coord| self.mentions(coord, out.rank(), true))?;
        fits(fill, out.dtype)
    }

    pub(super) fn gather(
        &self,
        coords: &[Coord],
        x: &TensorType,
        indices: &[&TensorType],
        out: &TensorType,
    ) -> Check {
        ensure!(x.dtype == out.dtype, "the result is {}, the operand {}", out.dtype, x.dtype);
        self.indirect(coords, x, indices, out)
    }

    pub(super) fn scatter(
        &self,
        coords: &[Coord],
        [base, updates]: [&TensorType; 2],
        indices: &[&TensorType],
        out: &TensorType,
    ) -> Check {
        ensure!(self.same_type(base, out), "the result is {out}, the base {base}");
        ensure!(updates.dtype == base.dtype, "updates are {}", updates.dtype);
        self.indirect(coords, base, indices, updates)
    }

    /// Coordinates into `x` over the axes of `space`.
    fn coordinates(&self, coords: &[Expr], x: &TensorType, space: &TensorType) -> Check {
        ensure!(coords.len() == x.rank(), "{} coordinates for {} axes", coords.len(), x.rank());
        coords.iter().zip(&x.shape).try_for_each(|(coord, size)| self.coordinate(coord, size, space))
    }

    /// Only what is out of bounds for all sizes is an error; an empty iteration space has no coordinates.
    fn coordinate(&self, coord: &Expr, size: &Expr, space: &TensorType) -> Check {
        self.mentions(coord, space.rank(), true)?;
        let mut ranges = self.ranges.clone();
        for (axis, size) in space.shape.iter().enumerate() {
            ranges.set_extent(Symbol::axis(u32::try_from(axis).unwrap_or(u32::MAX)), size.clone());
        }
        let is_visited = space.shape.iter().all(|size| size.interval(&ranges).min > 0);
        let is_outside = coord.interval(&ranges).max < 0 || (coord - size).interval(&ranges).min >= 0;
        ensure!(!(is_visited && is_outside), "coordinate `{coord}` is outside an axis of size {size}");
        Ok(())
    }

    fn indirect(
        &self,
        coords: &[Coord],
        x: &TensorType,
        indices: &[&TensorType],
        space: &TensorType,
    ) -> Check {
        ensure!(coords.len() == x.rank(), "{} coordinates for {} axes", coords.len(), x.rank());
        indices.iter().try_for_each(|index| self.index_like(index, space))?;
        for (coord, size) in coords.iter().zip(&x.shape) {
            match coord {
                Coord::Expr(expr) => self.coordinate(expr, size, space)?,
                Coord::Indirect(k) | Coord::Wrapped(k) => {
                    ensure!(*k < indices.len(), "index operand {k} of {}", indices.len());
                }
            }
        }
        Ok(())
    }

    pub(super) fn cat(
        &self,
        axis: usize,
        first: &TensorType,
        operands: &[&TensorType],
        out: &TensorType,
    ) -> Check {
        ensure!(axis < first.rank(), "axis {axis} of {}", first.rank());
        let mut total = Expr::int(0);
        for operand in operands {
            ensure!(
                operand.rank() == first.rank(),
                "operands have {} and {} axes",
                first.rank(),
                operand.rank()
            );
            total = &total + &operand.shape[axis];
            let mut expected = (*operand).clone();
            expected.shape[axis] = out.shape.get(axis).cloned().unwrap_or_else(|| Expr::int(0));
            ensure!(self.same_type(&expected, out), "operand {operand} does not fit result {out}");
        }
        ensure!(self.same_size(&total, &out.shape[axis]), "the result is {out}, the operands have {total}");
        Ok(())
    }
}
