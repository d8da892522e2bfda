//! Accesses whose places are data: gathers and scatters.

use super::view::{axis_symbol, canonical};
use super::{Builder, Built, ensure};
use crate::dtype::DType;
use crate::graph::{Combine, Coord, Node, Op, ValueId};
use crate::symbolic::{Expr, NoRanges, Symbol, SymbolKind};
use indexmap::IndexSet;
use std::collections::BTreeSet;

impl Builder {
    /// Indirect read: indices are `i64` and have the shape of the result.
    pub fn gather(&mut self, x: ValueId, indices: &[ValueId], coords: Vec<Coord>, shape: &[Expr]) -> Built {
        ensure!(coords.len() == self.rank(x), "{} coordinates for {} axes", coords.len(), self.rank(x));
        let mut operands = Vec::new();
        for index in indices {
            operands.push(self.index_operand(*index, shape)?);
        }
        let own = self.shape(x);
        self.require_coords_within(&own, shape, &coords)?;
        let (coords, operands) = self.known_coords(coords, &operands, (&own, shape));
        if let Some(coords) = all_exprs(&coords) {
            return self.view(x, shape, coords);
        }
        let (dtype, inputs) = (self.dtype(x), [vec![x], operands].concat());
        Ok(self.push1(Op::Gather(coords), &inputs, dtype, shape.to_vec()))
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
        let mut operands = Vec::new();
        for index in indices {
            operands.push(self.index_operand(*index, &shape)?);
        }
        self.require_coords_within(&ty.shape, &shape, &coords)?;
        let (coords, operands) = self.known_coords(coords, &operands, (&ty.shape, &shape));
        if combine == Combine::Set
            && let Some(inner) = self.part_scattered_into(base, updates, &coords)
        {
            return self.scatter(base, inner.updates, &inner.indices, inner.coords, inner.combine);
        }
        let inputs = [vec![base, updates], operands].concat();
        Ok(self.push1(Op::Scatter { coords, combine }, &inputs, ty.dtype, ty.shape))
    }

    /// Rows of a table, by their numbers: the axes of these are in front of those of a row.
    pub fn rows(&mut self, table: ValueId, numbers: ValueId) -> Built {
        let (own, numbered) = (self.shape(table), self.shape(numbers));
        ensure!(!own.is_empty(), "the table has no axes");
        let row = &own[1..];
        let index = self.reshape(numbers, &[numbered.as_slice(), &vec![Expr::int(1); row.len()]].concat())?;
        let axes = (numbered.len()..).take(row.len()).map(|axis| Coord::Expr(Expr::axis(axis)));
        let coords = std::iter::once(Coord::Indirect(0)).chain(axes).collect();
        self.gather(table, &[index], coords, &[&numbered, row].concat())
    }

    /// A table with another row at `at` (`i64`, without axes).
    pub fn with_row(&mut self, table: ValueId, at: ValueId, row: ValueId) -> Built {
        let shape = self.shape(row);
        let at = self.expand(at, &shape)?;
        let axes = (0..shape.len()).map(|axis| Coord::Expr(Expr::axis(axis)));
        let coords = std::iter::once(Coord::Indirect(0)).chain(axes).collect();
        self.scatter(table, row, &[at], coords, Combine::Set)
    }

    /// What changes in `base`, where what is written to a part of it is that part after a scatter into it.
    fn part_scattered_into(&self, base: ValueId, updates: ValueId, place: &[Coord]) -> Option<Scattered> {
        let Node { op: Op::Scatter { coords, combine }, inputs, .. } = self.producer(updates)? else {
            return None;
        };
        let Node { op: Op::View(window), inputs: viewed, .. } = self.producer(inputs[0])? else {
            return None;
        };
        let shape = self.shape(updates);
        let ranges = self.axis_ranges(&shape);
        let place = all_exprs(place)?;
        if viewed[0] != base || canonical(&place, &shape, &ranges) != *window || !is_injective(window, &shape)
        {
            return None;
        }
        let sizes = self.shape(base);
        let composed = window.iter().zip(&sizes).map(|(coord, size)| compose(coord, size, coords, &shape));
        let composed: Vec<Coord> = composed.collect::<Option<_>>()?;
        // Every index is still checked.
        let is_kept = |coord: &Coord| matches!(coord, Coord::Expr(_)) || composed.contains(coord);
        let inner = Scattered {
            updates: inputs[1],
            indices: inputs[2..].to_vec(),
            combine: *combine,
            coords: vec![],
        };
        coords.iter().all(is_kept).then_some(Scattered { coords: composed, ..inner })
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

    /// Coordinates over `shape` into `own`, and the indices that they name: one that is an expression, and within bounds
    /// wherever it is, becomes a coordinate.
    fn known_coords(
        &self,
        coords: Vec<Coord>,
        indices: &[ValueId],
        (own, shape): (&[Expr], &[Expr]),
    ) -> (Vec<Coord>, Vec<ValueId>) {
        let ranges = self.axis_ranges(shape);
        let known = |index: ValueId, size: &Expr| {
            let Op::Index(expr) = &self.producer(index)?.op else { return None };
            let is_within = expr.never_negative(&ranges) && (&(size - 1) - expr).never_negative(&ranges);
            is_within.then(|| Coord::Expr(expr.simplify(&ranges)))
        };
        let mut kept = IndexSet::new();
        let mut keep = |index: ValueId| kept.insert_full(index).0;
        let coords = coords.into_iter().zip(own).map(|(coord, size)| match coord {
            Coord::Expr(expr) => Coord::Expr(expr.simplify(&ranges)),
            Coord::Indirect(k) => {
                known(indices[k], size).unwrap_or_else(|| Coord::Indirect(keep(indices[k])))
            }
            Coord::Wrapped(k) => known(indices[k], size).unwrap_or_else(|| Coord::Wrapped(keep(indices[k]))),
        });
        let coords = coords.collect();
        (coords, kept.into_iter().collect())
    }
}

/// A scatter without its base.
struct Scattered {
    updates: ValueId,
    indices: Vec<ValueId>,
    coords: Vec<Coord>,
    combine: Combine,
}

/// Whether no two positions of a window of `shape` show one element, as far as can be seen.
fn is_injective(window: &[Expr], shape: &[Expr]) -> bool {
    let axes = (0..shape.len()).filter(|axis| !shape[*axis].is(1));
    axes.map(axis_symbol).all(|axis| {
        window.iter().any(|coord| {
            let step = coord.affine_in(axis).and_then(|(step, _)| step.as_int());
            let others = (0..shape.len()).map(axis_symbol).filter(|other| *other != axis);
            step.is_some_and(|step| step != 0) && others.into_iter().all(|other| !coord.mentions(other))
        })
    })
}

/// A coordinate over the axes of a window of `shape`, of the places in the window that `inner` says.
fn compose(coord: &Expr, size: &Expr, inner: &[Coord], shape: &[Expr]) -> Option<Coord> {
    let axis = (0..inner.len()).find(|axis| *coord == Expr::axis(*axis));
    if let Some(axis) = axis.filter(|axis| !matches!(inner[*axis], Coord::Expr(_))) {
        // Indices are checked against the size of the axis, and count from its end.
        return (shape[axis] == *size).then(|| inner[axis].clone());
    }
    let mut symbols = BTreeSet::new();
    coord.collect_symbols(&mut symbols);
    let mut axes = symbols.into_iter().filter(|symbol| symbol.kind == SymbolKind::Axis);
    let is_expr = axes.all(|axis| matches!(inner[axis.index as usize], Coord::Expr(_)));
    let replace = |symbol: Symbol| match (symbol.kind, inner.get(symbol.index as usize)) {
        (SymbolKind::Axis, Some(Coord::Expr(expr))) => Some(expr.clone()),
        (SymbolKind::Axis | SymbolKind::Size, _) => None,
    };
    is_expr.then(|| Coord::Expr(coord.substitute(&replace, &NoRanges)))
}

/// The coordinates, if all are expressions.
fn all_exprs(coords: &[Coord]) -> Option<Vec<Expr>> {
    let exprs = coords.iter().map(|coord| match coord {
        Coord::Expr(expr) => Some(expr.clone()),
        Coord::Indirect(_) | Coord::Wrapped(_) => None,
    });
    exprs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{InputRole, OutputRole, TensorType};
    use crate::interpret::{Tensor, evaluate};

    /// A part of `[2, 3, 4]`, seen as `[3, 4]` at these coordinates, after a scatter of a row into it and written back.
    /// Gives the base of the last scatter's updates, and what the whole becomes.
    fn written_back(window: [Expr; 3], row: Coord) -> (bool, Vec<f64>) {
        let mut builder = Builder::new("g");
        let sizes = |sizes: &[i64]| sizes.iter().copied().map(Expr::int).collect::<Vec<_>>();
        let input = |builder: &mut Builder, name: &str, dtype: DType, shape: &[i64]| {
            builder.input(name, TensorType { dtype, shape: sizes(shape) }, InputRole::User)
        };
        let whole = input(&mut builder, "whole", DType::F32, &[2, 3, 4]);
        let new = input(&mut builder, "new", DType::F32, &[1, 4]);
        let at = input(&mut builder, "at", DType::I64, &[1, 4]);
        let part = builder.view(whole, &sizes(&[3, 4]), window.to_vec()).unwrap();
        let changed =
            builder.scatter(part, new, &[at], vec![row, Coord::Expr(Expr::axis(1))], Combine::Set).unwrap();
        let place = window.into_iter().map(Coord::Expr).collect();
        let result = builder.scatter(whole, changed, &[], place, Combine::Set).unwrap();
        let is_one = builder.producer(result).is_some_and(|node| node.inputs[1] == new);
        builder.output("y", result, OutputRole::User);
        let numbers = |count: i16| (0..count).map(f32::from).collect::<Vec<f32>>();
        let inputs = [
            Tensor::from_f32(&[2, 3, 4], &numbers(24)),
            Tensor::from_f32(&[1, 4], &numbers(4)),
            Tensor::from_i64(&[1, 4], &[-1; 4]),
        ];
        (is_one, evaluate(&builder.finish(), &inputs).unwrap()[0].to_f64())
    }

    #[test]
    fn a_part_that_is_scattered_into_and_written_back_is_not_made() {
        let mut expected: Vec<f64> = (0..24).map(f64::from).collect();
        expected[20..].copy_from_slice(&[0.0, 1.0, 2.0, 3.0]);
        let plain = [Expr::int(1), Expr::axis(0), Expr::axis(1)];
        assert_eq!(written_back(plain.clone(), Coord::Wrapped(0)), (true, expected.clone()));
        // Where an index would have to be moved, or is for an axis that a window turns, the part is made.
        let turned = [Expr::int(1), &Expr::int(2) - &Expr::axis(0), Expr::axis(1)];
        let (is_one, found) = written_back(turned, Coord::Wrapped(0));
        expected[12..16].copy_from_slice(&[0.0, 1.0, 2.0, 3.0]);
        expected[20..].copy_from_slice(&[20.0, 21.0, 22.0, 23.0]);
        assert_eq!((is_one, found), (false, expected));
    }

    #[test]
    fn indices_that_are_known_are_no_data() {
        let mut builder = Builder::new("g");
        let ty = |rows| TensorType { dtype: DType::F32, shape: vec![Expr::int(rows), Expr::int(2)] };
        let x = builder.input("x", ty(6), InputRole::User);
        let updates = builder.input("u", ty(3), InputRole::User);
        let shape = builder.shape(updates);
        // Every other row; the last of what is read would lie outside of fewer rows.
        let rows = builder.index(&(&Expr::axis(0) * 2) + 1, &shape);
        let coords = || vec![Coord::Wrapped(0), Coord::Expr(Expr::axis(1))];
        let written = builder.scatter(x, updates, &[rows], coords(), Combine::Set).unwrap();
        let read = builder.gather(x, &[rows], coords(), &shape).unwrap();
        let inside = builder.gather(updates, &[rows], coords(), &shape).unwrap();
        let op = |value| builder.producer(value).unwrap().op.clone();
        let odd = &(&Expr::axis(0) * 2) + 1;
        let known = vec![Coord::Expr(odd.clone()), Coord::Expr(Expr::axis(1))];
        assert_eq!(op(written), Op::Scatter { coords: known, combine: Combine::Set });
        assert_eq!(op(read), Op::View(vec![odd, Expr::axis(1)]));
        assert_eq!(op(inside), Op::Gather(coords()));
    }
}
