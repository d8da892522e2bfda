//! Lookups in a table that a program makes of narrower constants, such as a dequantised embedding, become lookups in those: the rows that
//! are wanted are made, and not the table.

use super::rewrite::{Rewriter, everywhere, rewrite};
use crate::graph::{Coord, Graph, Node, Op, ValueId, composed};
use crate::symbolic::{Expr, Node as Formula, SymbolKind};
use std::collections::BTreeMap;

/// Bytes of a table from which on it is worth it.
const LEAST_BYTES: usize = 1 << 16;
/// A table is made of constants of at most one of so many of its bytes.
const SHARE: usize = 2;
/// The operators between a table and its constants at most.
const MOST_OPERATORS: usize = 32;

/// Looks up in what tables are made of.
pub fn narrow_lookups(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Gather(coords) = &node.op else { return None };
            if !is_wide(rewriter, node.inputs[0]) {
                return None;
            }
            let shape = rewriter.builder.shape(node.outputs[0]);
            let lookup = Lookup { indices: &node.inputs[1..], shape: &shape };
            lookup.of(rewriter, node.inputs[0], coords).map(|value| vec![value])
        });
    })
}

/// Whether a value is made of constants that have much fewer bytes.
fn is_wide(rewriter: &Rewriter, table: ValueId) -> bool {
    let ty = rewriter.builder.ty(table);
    let elements = ty.numel().as_int().and_then(|count| usize::try_from(count).ok());
    let Some(bytes) = elements.map(|count| count * ty.dtype.size()).filter(|bytes| *bytes >= LEAST_BYTES)
    else {
        return false;
    };
    let (mut leaves, mut left, mut seen) = (BTreeMap::new(), vec![table], 0);
    while let Some(value) = left.pop() {
        seen += 1;
        let Some(node) = rewriter.producer(value).filter(|_| seen <= MOST_OPERATORS) else { return false };
        if let Op::Constant(id) = node.op {
            leaves.insert(value, rewriter.builder.graph().constants[id].data.len());
        }
        left.extend(&node.inputs);
    }
    let is_made = !leaves.contains_key(&table) && !leaves.is_empty();
    is_made && leaves.values().sum::<usize>() <= bytes / SHARE
}

/// A lookup with these indices and this result.
struct Lookup<'a> {
    indices: &'a [ValueId],
    shape: &'a [Expr],
}

impl Lookup<'_> {
    /// What it gives of a value at these coordinates. Adds nodes only.
    fn of(&self, rewriter: &mut Rewriter, value: ValueId, coords: &[Coord]) -> Option<ValueId> {
        let node = rewriter.producer(value)?.clone();
        let dtype = rewriter.builder.dtype(value);
        let builder = &mut rewriter.builder;
        if let Op::Constant(_) = &node.op {
            return builder.gather(value, self.indices, coords.to_vec(), self.shape).ok();
        }
        if let Op::Full(number) = &node.op {
            return Some(builder.full(*number, dtype, self.shape));
        }
        if let Op::View(view) = &node.op {
            return self.of_view(rewriter, &node, view, coords);
        }
        if let Op::Binary(op) = &node.op {
            let a = self.of(rewriter, node.inputs[0], coords)?;
            let b = self.of(rewriter, node.inputs[1], coords)?;
            return rewriter.builder.binary(*op, a, b).ok();
        }
        if node.op != Op::Cast {
            return None;
        }
        let own = self.of(rewriter, node.inputs[0], coords)?;
        Some(rewriter.builder.cast(own, dtype))
    }

    fn of_view(
        &self,
        rewriter: &mut Rewriter,
        node: &Node,
        view: &[Expr],
        coords: &[Coord],
    ) -> Option<ValueId> {
        let builder = &rewriter.builder;
        let (outer, inner) = (builder.shape(node.outputs[0]), builder.shape(node.inputs[0]));
        let ranges = builder.axis_ranges(self.shape);
        // Coordinates that are data are looked at below, before what stands for them here is used.
        let plain: Vec<Expr> =
            coords.iter().map(|coord| known(coord).unwrap_or_else(|| Expr::int(0))).collect();
        let own = view.iter().zip(&inner).map(|(expr, size)| {
            if let Some(axis) = axis(expr)
                && known_at(coords, axis).is_none()
            {
                // What is outside of the table is outside of the constant too.
                return builder.same_size(size, &outer[axis]).then(|| coords[axis].clone());
            }
            let is_known =
                (0..outer.len()).all(|axis| !mentions(expr, axis) || known_at(coords, axis).is_some());
            let composed =
                is_known.then(|| composed(std::slice::from_ref(expr), &plain, &ranges)).flatten()?;
            composed.into_iter().next().map(Coord::Expr)
        });
        let own = own.collect::<Option<Vec<Coord>>>()?;
        if own.iter().all(|coord| known(coord).is_some()) {
            let exprs = own.iter().filter_map(known).collect();
            let seen = rewriter.builder.view(node.inputs[0], self.shape, exprs).ok()?;
            return Some(seen);
        }
        self.of(rewriter, node.inputs[0], &own)
    }
}

/// The expression that a coordinate is, unless it is data.
fn known(coord: &Coord) -> Option<Expr> {
    match coord {
        Coord::Expr(expr) => Some(expr.clone()),
        Coord::Indirect(_) | Coord::Wrapped(_) => None,
    }
}

fn known_at(coords: &[Coord], axis: usize) -> Option<Expr> {
    coords.get(axis).and_then(known)
}

/// The axis that an expression is, if it is one.
fn axis(expr: &Expr) -> Option<usize> {
    let Formula::Sym(symbol) = expr.node() else { return None };
    (symbol.kind == SymbolKind::Axis).then(|| usize::try_from(symbol.index).ok()).flatten()
}

fn mentions(expr: &Expr, axis: usize) -> bool {
    u32::try_from(axis).is_ok_and(|axis| expr.mentions(crate::symbolic::Symbol::axis(axis)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::{Tensor, evaluate};
    use crate::passes::{dce, optimize};

    /// The type of what is looked up in after the pass, and whether results are the same bits.
    #[track_caller]
    fn looked_up(statements: &str) -> DType {
        let graph = parse(&format!(
            "graph {{ const c0 \"q\": i8[600, 64] = random 1 const c1 \"s\": f32[600, 2] = random 2
             input %i \"i\": i64[5] %k: i64[5, 64] = view %i [i0] %q: i8[600, 64] = constant c0 %s: f32[600, 2] = constant c1
             %f: f32[600, 64] = cast %q {statements} %y: f32[5, 64] = gather %t, %k [wrap $0, i1] output %y \"y\" }}"
        ));
        let graph = graph.expect("the text parses");
        let result = dce(narrow_lookups(graph.clone()));
        verify(&result).expect("the result is well formed");
        let indices = [Tensor::from_i64(&[5], &[3, -1, 599, 0, 77])];
        let [own, other] =
            [&graph, &optimize(result.clone())].map(|graph| evaluate(graph, &indices).expect("it runs"));
        assert_eq!(own, other);
        let lookup =
            result.nodes.iter().find(|node| matches!(node.op, Op::Gather(_))).expect("there is a lookup");
        result.ty(lookup.inputs[0]).dtype
    }

    #[test]
    fn rows_of_dequantised_tables_are_made_and_not_the_table() {
        let scaled = "%v: f32[600, 64] = view %s [i0, i1 // 32] %t: f32[600, 64] = mul %f, %v";
        assert_eq!(looked_up(scaled), DType::I8);
        let grouped =
            "%g: f32[600, 2, 32] = view %f [i0, i1 * 32 + i2] %v: f32[600, 2, 32] = view %s [i0, i1]
             %m: f32[600, 2, 32] = mul %g, %v %t: f32[600, 64] = view %m [i0, i1 // 32, i1 % 32]";
        assert_eq!(looked_up(grouped), DType::I8);
    }

    #[test]
    fn tables_whose_rows_are_not_those_of_their_constants_stay() {
        assert_eq!(looked_up("%t: f32[600, 64] = view %f [599 - i0, i1]"), DType::F32);
        assert_eq!(looked_up("%t: f32[600, 64] = sqrt %f"), DType::F32);
    }
}
