//! Accesses whose places are data: gathers and scatters.

use super::{Builder, Built, ensure};
use crate::dtype::DType;
use crate::graph::{Combine, Coord, Op, ValueId};
use crate::symbolic::Expr;

impl Builder {
    /// Indirect read: indices are `i64` and have the shape of the result.
    pub fn gather(&mut self, x: ValueId, indices: &[ValueId], coords: Vec<Coord>, shape: &[Expr]) -> Built {
        ensure!(coords.len() == self.rank(x), "{} coordinates for {} axes", coords.len(), self.rank(x));
        let mut inputs = vec![x];
        for index in indices {
            inputs.push(self.index_operand(*index, shape)?);
        }
        let own = self.shape(x);
        self.require_coords_within(&own, shape, &coords)?;
        let dtype = self.dtype(x);
        Ok(self.push1(Op::Gather(self.simplify_coords(coords, shape)), &inputs, dtype, shape.to_vec()))
    }

    /// Indirect write of `updates` into `base`: indices are `i64` and have the shape of the updates.
    pub fn scatter(
        &mut self,
        base: ValueId,
        updates: ValueId,
        indices: &[ValueId],
        coords: Vec<Coord>,
        combine: Combine,
    ) -> Built {
        let ty = self.ty(base).clone();
        ensure!(coords.len() == ty.rank(), "{} coordinates for {} axes", coords.len(), ty.rank());
        let update_type = self.dtype(updates);
        ensure!(update_type == ty.dtype, "updates are {update_type}, the base is {}", ty.dtype);
        let shape = self.shape(updates);
        let mut inputs = vec![base, updates];
        for index in indices {
            inputs.push(self.index_operand(*index, &shape)?);
        }
        self.require_coords_within(&ty.shape, &shape, &coords)?;
        let coords = self.simplify_coords(coords, &shape);
        Ok(self.push1(Op::Scatter { coords, combine }, &inputs, ty.dtype, ty.shape))
    }

    /// Those coordinates that are expressions; indices that are data are checked when they are used.
    fn require_coords_within(&mut self, own: &[Expr], shape: &[Expr], coords: &[Coord]) -> Built<()> {
        for (coord, size) in coords.iter().zip(own) {
            if let Coord::Expr(coord) = coord {
                self.require_within(std::slice::from_ref(size), shape, std::slice::from_ref(coord))?;
            }
        }
        Ok(())
    }

    fn index_operand(&mut self, index: ValueId, shape: &[Expr]) -> Built {
        let dtype = self.dtype(index);
        ensure!(matches!(dtype.category(), crate::dtype::Category::Int), "index is {dtype}, not an integer");
        let index = self.cast(index, DType::I64);
        self.expand(index, shape)
    }

    fn simplify_coords(&self, coords: Vec<Coord>, shape: &[Expr]) -> Vec<Coord> {
        let ranges = self.axis_ranges(shape);
        coords
            .into_iter()
            .map(|coord| match coord {
                Coord::Expr(expr) => Coord::Expr(expr.simplify(&ranges)),
                Coord::Indirect(_) | Coord::Wrapped(_) => coord,
            })
            .collect()
    }
}
