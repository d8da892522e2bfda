//! Long reductions with few results are done in two steps: parts of them first, then what the parts gave. A GPU has work for
//! all its multiprocessors then, where each result would keep one of them busy.
//!
//! Sums are in another order than on processors, and in the same one in every run.

use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::dtype::Category;
use crate::graph::{Graph, Node, Op, ReduceOp, ValueId};
use crate::symbolic::Expr;
use cranelift_entity::SecondaryMap;

/// Elements from which on a second step costs less than it saves.
const MANY: i64 = 1 << 18;
/// Elements of a part at least.
const PART: i64 = 256;
/// Results of the first step that keep a large GPU busy: each is the work of a team of threads where neighbours in memory are
/// added up, and of a few threads where they are results of their own.
const TEAMS: i64 = 2048;
const COLUMNS: i64 = 32768;

/// Splits long reductions, for a device of many threads.
pub fn split_reductions(graph: Graph) -> Graph {
    everywhere(graph, &|graph, ranges| {
        let (uses, folds) = (count_uses(graph), count_folds(graph));
        rewrite(graph, ranges, |rewriter, node| {
            let Op::Reduce { op, axes } = &node.op else { return None };
            // What something else reads as well is one kernel with it, as rows of a softmax are.
            let x = node.inputs[0];
            if uses[x] > folds[x] || !is_associative(*op) {
                return None;
            }
            split(rewriter, node, *op, axes).map(|value| vec![value])
        });
    })
}

/// How many reductions read each value.
fn count_folds(graph: &Graph) -> SecondaryMap<ValueId, usize> {
    let mut counts = SecondaryMap::new();
    for node in graph.nodes.iter().filter(|node| matches!(node.op, Op::Reduce { .. })) {
        counts[node.inputs[0]] += 1;
    }
    counts
}

/// Whether results of parts are all that the whole needs.
fn is_associative(op: ReduceOp) -> bool {
    match op {
        ReduceOp::Sum
        | ReduceOp::Prod
        | ReduceOp::Max
        | ReduceOp::Min
        | ReduceOp::Any
        | ReduceOp::All
        | ReduceOp::Xor => true,
        ReduceOp::ArgMax | ReduceOp::ArgMin => false,
    }
}

fn split(rewriter: &mut Rewriter, node: &Node, op: ReduceOp, axes: &[usize]) -> Option<ValueId> {
    let builder = &mut rewriter.builder;
    let x = node.inputs[0];
    let ty = builder.ty(x).clone();
    // Narrow numbers would be rounded twice.
    if ty.dtype.category() == Category::Float && ty.dtype.compute() != ty.dtype {
        return None;
    }
    let sizes: Vec<i64> = ty.shape.iter().map(Expr::as_int).collect::<Option<_>>()?;
    let product = |of: &dyn Fn(usize) -> bool| -> Option<i64> {
        (0..sizes.len()).filter(|axis| of(*axis)).try_fold(1, |all: i64, axis| all.checked_mul(sizes[axis]))
    };
    let (inner, results) = (product(&|axis| axes.contains(&axis))?, product(&|axis| !axes.contains(&axis))?);
    let wanted = if axes.contains(&(sizes.len() - 1)) { TEAMS } else { COLUMNS };
    if results < 1 || inner.checked_mul(results)? < MANY {
        return None;
    }
    let most = (wanted / results).min(inner / PART);
    let (axis, parts) = axes.iter().find_map(|axis| Some((*axis, divisor(sizes[*axis], most)?)))?;
    let mut shape = ty.shape.clone();
    shape.splice(axis..=axis, [Expr::int(parts), Expr::int(sizes[axis] / parts)]);
    let inside: Vec<usize> = axes.iter().map(|own| if *own < axis { *own } else { *own + 1 }).collect();
    let own = axis - axes.iter().filter(|other| **other < axis).count();
    let apart = builder.reshape(x, &shape).ok()?;
    let partial = builder.reduce(op, apart, &inside, false).ok()?;
    builder.reduce(op, partial, &[own], false).ok()
}

/// The largest divisor of a size up to `most` that makes parts worth having.
fn divisor(size: i64, most: i64) -> Option<i64> {
    let least = (most / 4).max(2);
    (least..=most.min(size)).rev().find(|parts| size % parts == 0)
}

#[cfg(test)]
mod tests {
    use super::split_reductions;
    use crate::graph::text::{parse, print};
    use crate::transform::dce;

    /// How many reductions there are in a graph.
    #[track_caller]
    fn reductions(body: &str) -> usize {
        let graph = parse(&format!("graph \"test\" {{ {body} }}")).expect("the text parses");
        let split = dce(split_reductions(graph));
        crate::graph::verify(&split).expect("the result is well formed");
        print(&split).matches(" axes [").count()
    }

    /// The same for one of a matrix.
    #[track_caller]
    fn of_matrix(rows: i64, columns: i64, op: &str, axes: &str, shape: &str) -> usize {
        reductions(&format!(
            "input %x \"x\": f32[{rows}, {columns}]
             %y: f32[{shape}] = {op} %x axes [{axes}]
             output %y \"y\""
        ))
    }

    #[test]
    fn long_sums_with_few_results_are_two_steps() {
        assert_eq!(of_matrix(65536, 1024, "sum", "0", "1024"), 2);
        assert_eq!(of_matrix(4096, 4096, "max", "0, 1", ""), 2);
        assert_eq!(of_matrix(16, 1 << 20, "sum", "1", "16"), 2);
    }

    #[test]
    fn short_sums_and_those_with_many_results_stay() {
        assert_eq!(of_matrix(128, 1024, "sum", "0", "1024"), 1, "there is little to add up");
        assert_eq!(of_matrix(65536, 1024, "sum", "1", "65536"), 1, "there are results for everyone");
        assert_eq!(of_matrix(65537, 1024, "sum", "0", "1024"), 1, "there are no parts of one size");
    }

    #[test]
    fn what_others_read_as_well_stays_a_row() {
        let body = "
            input %x \"x\": f32[4, 1048576]
            %e: f32[4, 1048576] = exp %x
            %s: f32[4] = sum %e axes [1]
            %t: f32[4, 1048576] = view %s [i0]
            %y: f32[4, 1048576] = mul %e, %t
            output %y \"y\"";
        assert_eq!(reductions(body), 1);
    }
}
