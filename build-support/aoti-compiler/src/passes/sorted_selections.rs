//! Elements by rank of few long rows are sorted for: on GPUs, where all blocks sort a row sooner than one finds an element of it.

use super::rewrite::{everywhere, rewrite};
use super::uniform_constants::splat;
use crate::graph::{BinaryOp, Builder, Coord, Graph, Op, Scalar, ShapeError, Ties, ValueId};
use crate::symbolic::Expr;
use crate::target::Target;

/// Elements of a row up to which one block selects as fast as many sort; of many rows, each has a block in any case.
const LONGEST_SELECTED: i64 = 1 << 16;
const MANY_ROWS: i64 = 64;

/// Sorts rows of which one block would take longer to find the element of a rank.
pub fn sorted_selections(graph: Graph, target: &Target) -> Graph {
    if matches!(target, Target::Cpu(_)) {
        return graph;
    }
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            // Sorting does not tell where partitioning ends.
            let Op::NthElement { axis, ties: Ties::Stable } = node.op else { return None };
            let shape = &rewriter.builder.ty(node.inputs[0]).shape;
            let rows = &Expr::product(&shape[..axis]) * &Expr::product(&shape[axis + 1..]);
            if is_selected(&shape[axis], &rows) {
                return None;
            }
            let rank = splat(rewriter, node.inputs[1]);
            let found = sorted(&mut rewriter.builder, &node.inputs, axis, rank);
            Some(found.expect("a row has an element of each rank").to_vec())
        });
    })
}

/// The elements of the ranks in sorted rows; in the first part of them where one rank is that of all.
fn sorted(
    b: &mut Builder,
    operands: &[ValueId],
    axis: usize,
    rank: Option<Scalar>,
) -> Result<[ValueId; 2], ShapeError> {
    let (x, ranks) = (operands[0], operands[1]);
    let length = b.ty(x).shape[axis].clone();
    if let (Some(rank), Some(length)) = (rank, length.as_int()) {
        let rank = rank.to_i64().clamp(0, length - 1);
        let (values, places) = b.sort_first(x, axis, false, &Expr::int(rank + 1))?;
        let only = |b: &mut Builder, of| b.slice(of, axis, &Expr::int(rank), &Expr::int(1), 1);
        return Ok([only(b, values)?, only(b, places)?]);
    }
    let (values, places) = b.sort(x, axis, false)?;
    let shape = b.shape(ranks);
    let coords: Vec<Coord> = (0..shape.len())
        .map(|k| if k == axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) })
        .collect();
    let ranks = within(b, ranks, &length)?;
    Ok([b.gather(values, &[ranks], coords.clone(), &shape)?, b.gather(places, &[ranks], coords, &shape)?])
}

/// Ranks that lead out of a row are those of its ends.
fn within(b: &mut Builder, ranks: ValueId, length: &Expr) -> Result<ValueId, ShapeError> {
    let shape = b.shape(ranks);
    let (first, last) = (b.index(Expr::int(0), &shape), b.index(length - 1, &shape));
    let ranks = b.binary(BinaryOp::Maximum, ranks, first)?;
    b.binary(BinaryOp::Minimum, ranks, last)
}

/// Whether a GPU selects the element of a rank from so many rows of so many elements without sorting them.
fn is_selected(length: &Expr, rows: &Expr) -> bool {
    length.as_int().is_some_and(|length| {
        let is_short = length <= LONGEST_SELECTED;
        let has_rows = rows.as_int().is_some_and(|rows| rows >= MANY_ROWS);
        // Counts and ranks have 32 bits.
        (is_short || has_rows) && u32::try_from(length).is_ok()
    })
}
