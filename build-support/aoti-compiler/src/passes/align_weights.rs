//! Weights of products whose depth is no multiple of a wide access, on GPUs: rows of theirs would begin anywhere, and no template reads
//! such at the speed of memory. They are stored with zeros behind each row, and the other operand gets as many.

use super::derive;
use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::graph::{Builder, Constant, Graph, Node, Op, OutputRole, ValueId};
use crate::symbolic::Expr;
use crate::target::Target;

/// Bytes of a wide access.
const ACCESS: i64 = 16;
/// Elements of weights from which on they are worth a copy of the other operand, and columns, each of which reads that once more.
const LEAST_ELEMENTS: i64 = 1 << 18;
const LEAST_COLUMNS: i64 = 64;

/// Stores the weights of a graph's products in rows of whole accesses.
pub fn align_weights(graph: Graph, target: &Target) -> Graph {
    let Target::Gpu(_) = target else { return graph };
    everywhere(graph, &mut |graph, ranges| {
        let uses = count_uses(graph);
        rewrite(graph, ranges, &mut |rewriter, node| {
            let is_own = |weight: &Weight| weight.path.iter().all(|value| uses[*value] == 1);
            let weight = Weight::of(rewriter, node).filter(is_own)?;
            let builder = &mut rewriter.builder;
            let left = pad_last(builder, node.inputs[0], weight.missing)?;
            let right = weight.store(builder)?;
            Some(vec![builder.matmul(left, right).ok()?])
        });
    })
}

/// A value with so many zeros more along its last axis.
fn pad_last(builder: &mut Builder, value: ValueId, missing: i64) -> Option<ValueId> {
    let last = builder.rank(value).checked_sub(1)?;
    let amount = |axis: usize| (Expr::int(0), Expr::int(if axis == last { missing } else { 0 }));
    let amounts: Vec<(Expr, Expr)> = (0..=last).map(amount).collect();
    builder.pad(value, &amounts, 0_i64).ok()
}

/// The constant `[columns, depth]` that is the right operand of a product, the elements of each sum side by side.
struct Weight {
    /// The constant's value, and those that the program makes of it up to the operand.
    path: Vec<ValueId>,
    constant: Constant,
    /// Coordinates of the operand in it, and the operand's sizes.
    coords: Vec<Expr>,
    sizes: Vec<Expr>,
    /// Elements that rows lack.
    missing: i64,
}

impl Weight {
    fn of(rewriter: &Rewriter, node: &Node) -> Option<Weight> {
        if node.op != Op::MatMul {
            return None;
        }
        let (builder, operand) = (&rewriter.builder, node.inputs[1]);
        let Node { op: Op::View(coords), inputs, .. } = rewriter.producer(operand)? else { return None };
        let (mut value, mut path) = (inputs[0], vec![operand, inputs[0]]);
        if let Node { op: Op::Cast, inputs, .. } = rewriter.producer(value)? {
            value = inputs[0];
            path.push(value);
        }
        let Op::Constant(id) = rewriter.op(value)? else { return None };
        let constant = builder.graph().constants[*id].clone();
        let sizes = builder.shape(operand);
        let turned = [sizes.len() - 1, sizes.len() - 2].map(Expr::axis);
        let [columns, depth] = *constant.sizes.as_slice() else { return None };
        let is_worth_it = columns >= LEAST_COLUMNS && columns.checked_mul(depth)? >= LEAST_ELEMENTS;
        // What is read as numbers of a few bits has a form of its own.
        if *coords != turned || !is_worth_it || constant.groups.is_some() {
            return None;
        }
        let narrowest = constant.dtype.size().min(builder.dtype(operand).size());
        let step = ACCESS / i64::try_from(narrowest).ok()?;
        let missing = (step - depth % step) % step;
        (missing > 0).then(|| Weight { path, constant, coords: coords.clone(), sizes, missing })
    }

    /// The operand with longer rows.
    fn store(self, builder: &mut Builder) -> Option<ValueId> {
        let wide = builder.dtype(self.path[0]);
        let name = self.constant.name.clone();
        let mut recipe = Builder::new("");
        let value = recipe.constant(self.constant).ok()?;
        let stored = pad_last(&mut recipe, value, self.missing)?;
        recipe.output("", stored, OutputRole::User);
        let stored = derive::derive(builder, &name, recipe.finish())?.into_iter().next()?;
        let value = builder.cast(stored, wide);
        let mut sizes = self.sizes;
        let along = sizes.len() - 2;
        sizes[along] = &sizes[along] + self.missing;
        builder.view(value, &sizes, self.coords).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::{Tensor, evaluate};
    use crate::passes::{dce, optimize};
    use crate::target::GpuTarget;

    /// The sizes of the constant after the pass, of a product that computes what it did.
    fn stored(target: &Target, dtype: &str, depth: usize) -> Vec<i64> {
        let graph = parse(&format!(
            "graph {{ const c0 \"w\": {dtype}[512, {depth}] weight = random 1 input %x \"x\": i64[3, {depth}]
             %w: {dtype}[512, {depth}] = constant c0 %t: {dtype}[{depth}, 512] = view %w [i1, i0]
             %v: {dtype}[3, {depth}] = cast %x
             %y: {dtype}[3, 512] = matmul %v, %t output %y \"y\" }}"
        ));
        let graph = optimize(graph.expect("the text parses"));
        let result = dce(align_weights(graph.clone(), target));
        verify(&result).expect("the result is well formed");
        let numbers: Vec<i64> = (0..3 * i64::try_from(depth).expect("few")).map(|k| k % 7).collect();
        let x = [Tensor::from_i64(&[3, depth], &numbers)];
        assert_eq!(evaluate(&graph, &x).expect("runs"), evaluate(&result, &x).expect("runs"));
        let read = result.nodes.iter().find_map(|node| {
            let Op::Constant(id) = &node.op else { return None };
            Some(*id)
        });
        result.constants[read.expect("a weight is read")].sizes.clone()
    }

    #[test]
    fn rows_of_weights_are_whole_accesses_on_gpus() {
        let gpu = Target::Gpu(GpuTarget::named("sm_90a").expect("it is in the table"));
        assert_eq!(stored(&gpu, "bf16", 1001), [512, 1008]);
        assert_eq!(stored(&gpu, "f32", 1001), [512, 1004]);
        assert_eq!(stored(&gpu, "bf16", 1000), [512, 1000]);
        assert_eq!(stored(&gpu, "bf16", 101), [512, 101], "few weights");
        assert_eq!(stored(&Target::cpu(&["x86-64-v3"]), "f32", 1001), [512, 1001]);
    }
}
