//! Accesses whose places are data: gathers and scatters.

use super::view::{axis_symbol, canonical};
use super::{Builder, Built, ensure};
use crate::dtype::DType;
use crate::graph::{Combine, Coord, Node, Op, ValueId};
use crate::symbolic::{Expr, NoRanges, Symbol, SymbolKind};
use std::collections::BTreeSet;

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
        if combine == Combine::Set
            && let Some(inner) = self.part_scattered_into(base, updates, &coords)
        {
            return self.scatter(base, inner.updates, &inner.indices, inner.coords, inner.combine);
        }
        Ok(self.push1(Op::Scatter { coords, combine }, &inputs, ty.dtype, ty.shape))
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
        let place = place.iter().map(|coord| match coord {
            Coord::Expr(expr) => Some(expr.clone()),
            Coord::Indirect(_) | Coord::Wrapped(_) => None,
        });
        let place: Vec<Expr> = place.collect::<Option<_>>()?;
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
