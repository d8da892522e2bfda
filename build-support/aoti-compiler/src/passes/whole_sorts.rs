//! Sorts whose first elements are no results are parts of sorts that have them, where nothing selects them: on GPUs.

use super::rewrite::{everywhere, rewrite};
use crate::graph::{Builder, Graph, Op, ShapeError, ValueId};
use crate::symbolic::Expr;
use crate::target::Target;

/// Elements of a row up to which one block selects as fast as many sort; of many rows, each has a block in any case.
const LONGEST_SELECTED: i64 = 1 << 16;
const MANY_ROWS: i64 = 64;

/// Makes what a sort skips results of which a part is taken.
pub fn whole_sorts(graph: Graph, target: &Target) -> Graph {
    if matches!(target, Target::Cpu(_)) {
        return graph;
    }
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Sort { axis, descending, kept: Some(kept), skipped } = node.op else { return None };
            let shape = &rewriter.builder.ty(node.inputs[0]).shape;
            let rows = &Expr::product(&shape[..axis]) * &Expr::product(&shape[axis + 1..]);
            if skipped == 0 || is_selected(skipped, kept, &shape[axis], &rows) {
                return None;
            }
            let order = (axis, descending, skipped, kept);
            let parts = part(&mut rewriter.builder, node.inputs[0], order);
            Some(parts.expect("the sort has as many elements").to_vec())
        });
    })
}

fn part(
    b: &mut Builder,
    x: ValueId,
    (axis, descending, skipped, kept): (usize, bool, i64, i64),
) -> Result<[ValueId; 2], ShapeError> {
    let (values, places) = b.sort_first(x, axis, descending, &Expr::int(kept))?;
    let (start, length) = (Expr::int(skipped), Expr::int(kept - skipped));
    Ok([b.slice(values, axis, &start, &length, 1)?, b.slice(places, axis, &start, &length, 1)?])
}

/// Whether a GPU selects the element of a rank from so many rows of so many elements without sorting them.
fn is_selected(skipped: i64, kept: i64, length: &Expr, rows: &Expr) -> bool {
    let has_length = |length: i64| {
        let is_short = length <= LONGEST_SELECTED;
        let has_rows = rows.as_int().is_some_and(|rows| rows >= MANY_ROWS);
        // Counts and ranks have 32 bits.
        (is_short || has_rows) && u32::try_from(length).is_ok()
    };
    skipped > 0 && kept == skipped + 1 && length.as_int().is_some_and(has_length)
}
