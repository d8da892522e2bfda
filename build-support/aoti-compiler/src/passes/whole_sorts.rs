//! Sorts whose first elements are no results are parts of sorts that have them, where no selection is written for them: on GPUs.

use super::rewrite::{everywhere, rewrite};
use crate::graph::{Builder, Graph, Op, ShapeError, ValueId};
use crate::symbolic::Expr;
use crate::target::Target;

/// Makes what a sort skips results of which a part is taken.
pub fn whole_sorts(graph: Graph, target: &Target) -> Graph {
    if matches!(target, Target::Cpu(_)) {
        return graph;
    }
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Sort { axis, descending, kept: Some(kept), skipped } = node.op else { return None };
            let order = (axis, descending, skipped, kept);
            let parts =
                if skipped > 0 { part(&mut rewriter.builder, node.inputs[0], order) } else { return None };
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
