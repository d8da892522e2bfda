//! Long sums with few results, of reductions and of matrix products, are done in two steps: parts of them first, then what the
//! parts gave. All multiprocessors of a GPU, or all threads of a processor, have work then, where each result would keep one
//! of them busy.
//!
//! How many parts there are is a matter of sizes and of the kind of device: sums are in the same order in every run, whatever
//! the number of threads.

use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::dtype::Category;
use crate::graph::{Graph, Node, Op, ReduceOp, ValueId};
use crate::symbolic::Expr;
use crate::target::{ProductSplits, Splits, Target};
use cranelift_entity::SecondaryMap;

/// Splits long sums for a target.
pub fn split_reductions(graph: Graph, target: &Target) -> Graph {
    let splits = target.splits();
    everywhere(graph, &|graph, ranges| {
        let (uses, folds) = (count_uses(graph), count_folds(graph));
        rewrite(graph, ranges, &mut |rewriter, node| match &node.op {
            Op::Reduce { op, axes } => {
                // What something else reads as well is one kernel with it, as rows of a softmax are.
                let x = node.inputs[0];
                if uses[x] > folds[x] || !is_associative(*op) {
                    return None;
                }
                split(rewriter, node, (*op, axes), &splits).map(|value| vec![value])
            }
            Op::MatMul => split_product(rewriter, node, splits.products.as_ref()?).map(|value| vec![value]),
            Op::Constant(_)
            | Op::Full(_)
            | Op::Index(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Select
            | Op::Cast
            | Op::View(_)
            | Op::Pad { .. }
            | Op::Gather(_)
            | Op::Scatter { .. }
            | Op::Cat { .. }
            | Op::Conv(_)
            | Op::Scan { .. }
            | Op::Sort { .. }
            | Op::Routine(_)
            | Op::Fourier(_)
            | Op::SearchSorted { .. }
            | Op::Extern(_)
            | Op::Read(_)
            | Op::Assert(_)
            | Op::Require(_)
            | Op::Cond { .. }
            | Op::While { .. } => None,
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

fn split(
    rewriter: &mut Rewriter,
    node: &Node,
    (op, axes): (ReduceOp, &[usize]),
    splits: &Splits,
) -> Option<ValueId> {
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
    if results < 1 || inner.checked_mul(results)? < splits.elements {
        return None;
    }
    // Neighbouring results are one unit, where each is not one by itself.
    let own = if axes.contains(&(sizes.len() - 1)) { 1 } else { splits.chunk.min(results) };
    let wanted = if axes.contains(&(sizes.len() - 1)) { splits.rows } else { splits.columns };
    let units = results.checked_add(own - 1)? / own;
    let most = (wanted / units).min(inner.checked_mul(own)? / splits.part);
    let (axis, parts) = axes.iter().find_map(|axis| Some((*axis, divisor(sizes[*axis], most)?)))?;
    let mut shape = ty.shape.clone();
    shape.splice(axis..=axis, [Expr::int(parts), Expr::int(sizes[axis] / parts)]);
    let inside: Vec<usize> = axes.iter().map(|own| if *own < axis { *own } else { *own + 1 }).collect();
    let own = axis - axes.iter().filter(|other| **other < axis).count();
    let apart = builder.reshape(x, &shape).ok()?;
    let partial = builder.reduce(op, apart, &inside, false).ok()?;
    builder.reduce(op, partial, &[own], false).ok()
}

/// A product of few tiles and long sums, as the sum of products of parts of its depth.
fn split_product(rewriter: &mut Rewriter, node: &Node, splits: &ProductSplits) -> Option<ValueId> {
    let [a, b] = *node.inputs.as_slice() else { return None };
    // Weights are packed for a product as it is.
    if [a, b].into_iter().any(|factor| is_constant(rewriter, factor)) {
        return None;
    }
    let builder = &mut rewriter.builder;
    let (left, right) = (builder.ty(a).clone(), builder.ty(b).clone());
    if left.dtype.compute() != left.dtype {
        return None;
    }
    let fixed = |shape: &[Expr]| -> Option<Vec<i64>> { shape.iter().map(Expr::as_int).collect() };
    let (left, right) = (fixed(&left.shape)?, fixed(&right.shape)?);
    let ([lead @ .., m, depth], [.., n]) = (left.as_slice(), right.as_slice()) else { return None };
    let results = lead.iter().chain([m, n]).try_fold(1, |all: i64, size| all.checked_mul(*size))?;
    if results < 1 || results.checked_mul(*depth)? < splits.products {
        return None;
    }
    let (of, unit) = if *m < splits.many_rows { (n, splits.panel) } else { (m, splits.block) };
    let units = results / (m * n) * (of.checked_add(unit - 1)? / unit);
    if units >= splits.enough {
        return None;
    }
    let most = (splits.units / units).min(depth / splits.depth);
    let parts = divisor(*depth, most)?;
    let (rank, rest) = (left.len(), depth / parts);
    let sizes = |shape: &[i64]| shape.iter().copied().map(Expr::int).collect::<Vec<_>>();
    // Parts are a batch before the others.
    let order = |part: usize| -> Vec<usize> {
        std::iter::once(part).chain((0..=rank).filter(|axis| *axis != part)).collect()
    };
    let apart = builder.reshape(a, &sizes(&[lead, &[*m, parts, rest]].concat())).ok()?;
    let a = builder.permute(apart, &order(rank - 1)).ok()?;
    let apart = builder.reshape(b, &sizes(&[lead, &[parts, rest, *n]].concat())).ok()?;
    let b = builder.permute(apart, &order(rank - 2)).ok()?;
    let partial = builder.matmul(a, b).ok()?;
    builder.reduce(ReduceOp::Sum, partial, &[0], false).ok()
}

/// Whether a value is a constant or a view of one.
fn is_constant(rewriter: &Rewriter, mut value: ValueId) -> bool {
    while let Some(Node { op: Op::View(_), inputs, .. }) = rewriter.producer(value) {
        value = inputs[0];
    }
    matches!(rewriter.op(value), Some(Op::Constant(_)))
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
    use crate::target::Target;
    use crate::transform::dce;

    /// How many reductions there are in a graph for a target.
    #[track_caller]
    fn reductions_for(target: &Target, body: &str) -> usize {
        let graph = parse(&format!("graph \"test\" {{ {body} }}")).expect("the text parses");
        let split = dce(split_reductions(graph, target));
        crate::graph::verify(&split).expect("the result is well formed");
        print(&split).matches(" axes [").count()
    }

    #[track_caller]
    fn reductions(body: &str) -> usize {
        let target = crate::target::GpuTarget::named("sm_90a").expect("an architecture");
        reductions_for(&Target::Gpu(target), body)
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
    #[test]
    fn processors_split_what_would_keep_one_thread_busy() {
        let cpu = Target::cpu(&["x86-64-v3"]);
        let sum = |rows: i64, columns: i64, axes: &str, shape: &str| {
            reductions_for(
                &cpu,
                &format!(
                    "input %x \"x\": f32[{rows}, {columns}]
                     %y: f32[{shape}] = sum %x axes [{axes}]
                     output %y \"y\""
                ),
            )
        };
        assert_eq!(sum(1024, 1024, "0, 1", ""), 2);
        assert_eq!(sum(4096, 512, "0", "512"), 2);
        assert_eq!(sum(64, 65536, "1", "64"), 1, "there are results for everyone");
        assert_eq!(sum(64, 1024, "0, 1", ""), 1, "there is little to add up");
        let product = |rows: i64, depth: i64, columns: i64| {
            reductions_for(
                &cpu,
                &format!(
                    "input %x \"x\": f32[{rows}, {depth}]
                     input %y \"y\": f32[{depth}, {columns}]
                     %z: f32[{rows}, {columns}] = matmul %x, %y
                     output %z \"z\""
                ),
            )
        };
        assert_eq!(product(16, 1 << 16, 16), 1);
        assert_eq!(product(1, 1 << 18, 10), 1);
        assert_eq!(product(64, 1 << 16, 64), 1);
        assert_eq!(product(1, 4096, 1000), 0, "panels of columns are enough");
        assert_eq!(product(256, 4096, 256), 0, "blocks of rows are enough");
    }
}
