//! Weights of products of few rows as GPUs read them fastest. Reading them is all the time that such a product takes, so they are
//! stored in the narrowest type that holds all their elements, which the product widens as it reads, and with the sums'
//! elements side by side. Of more rows the order alone is changed, where a copy engine brings the operands.
//!
//! Nothing is rounded: integers that a program converts to multiply them become integers again, and halves that were saved as
//! floats halves. Of weights that a run may replace, only the graph that makes them tells what they hold.

use super::derive;
use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::dtype::DType;
use crate::float8::Float8;
use crate::graph::{Builder, Constant, ConstantSource, Graph, Node, Op, OutputRole, ValueId};
use crate::interpret::{Tensor, cast};
use crate::symbolic::Expr;
use crate::target::{GpuTarget, Target};

/// Elements from which on a weight is worth it: others are near whatever happens.
const LEAST_ELEMENTS: i64 = 4096;

/// Elements that are looked at together. Those of most weights are told by the first few.
const LOOKED_AT: usize = 1024;

/// Stores the weights of a graph's products as the target reads them.
pub fn store_gemv_weights(graph: Graph, target: &Target) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        let uses = count_uses(graph);
        rewrite(graph, ranges, &mut |rewriter, node| {
            let is_own = |weight: &Weight| weight.path.iter().all(|value| uses[*value] == 1);
            let weight = Weight::of(rewriter, node, target).filter(is_own)?;
            let right = weight.store(&mut rewriter.builder)?;
            Some(vec![rewriter.builder.matmul(node.inputs[0], right).ok()?])
        });
    })
}

/// Whether the target reads a constant, of rows that are columns of a product, as numbers of a few bits.
fn has_groups(constant: &Constant, view: &Option<(Vec<Expr>, Vec<Expr>)>, target: &Target) -> bool {
    let (Target::Gpu(gpu), Some((_, sizes)), Some(groups)) = (target, view, &constant.groups) else {
        return false;
    };
    let [.., depth, columns] = sizes.as_slice() else { return false };
    let Some(k) = depth.as_int().and_then(|depth| usize::try_from(depth).ok()) else { return false };
    let is_whole = (depth * columns).is(constant.sizes.iter().product());
    // Bytes that are not scaled have code of their own, which is faster where no matrix units multiply them.
    let is_faster = groups.is_scaled() || gpu.multiplies_by_warp();
    is_whole && is_faster && groups.in_columns(k, GpuTarget::GROUP_RUN).is_some()
}

fn is_worth_it(constant: &Constant) -> bool {
    is_worth_bytes(constant.sizes.iter().product())
}

/// Whether so many elements are better stored in a narrower type.
pub(super) fn is_worth_bytes(elements: i64) -> bool {
    elements >= LEAST_ELEMENTS
}

/// The type that a constant is better stored in: a narrower one that holds all its elements, among those that can be read.
pub(super) fn narrower(constant: &Constant, is_readable: &dyn Fn(DType) -> bool) -> Option<DType> {
    if !is_worth_it(constant) {
        return None;
    }
    match &constant.source {
        ConstantSource::Fixed => {
            let fits = |narrow: &DType| holds_elements(*narrow, constant);
            let types = narrower_types(constant.dtype).iter().copied();
            types.filter(|narrow| is_readable(*narrow)).find(fits)
        }
        ConstantSource::Derived { recipe, output } => {
            Some(recipe.ty(widened(recipe, *output)?).dtype).filter(|narrow| is_readable(*narrow))
        }
        ConstantSource::Weight => None,
    }
}

/// The types that elements of a type may be stored in, the narrowest first.
fn narrower_types(dtype: DType) -> &'static [DType] {
    use DType::*;
    match dtype {
        F64 => &[I8, U8, Bf16, F16, F32],
        F32 => &[I8, U8, F8(Float8::E4M3Fn), F8(Float8::E5M2), Bf16, F16],
        F16 | Bf16 | I16 => &[I8, U8],
        I32 | I64 => &[I8, U8, I16],
        Bool | U8 | I8 | U16 | U32 | U64 | F8(_) => &[],
    }
}

/// Whether every element of a constant is a number of a narrower type: the same bits come back from it.
fn holds_elements(narrow: DType, constant: &Constant) -> bool {
    let size = constant.dtype.size();
    (0..constant.data.len()).step_by(LOOKED_AT * size).all(|start| {
        let data = constant.data.slice(start..constant.data.len().min(start + LOOKED_AT * size));
        let elements = Tensor::new(constant.dtype, vec![data.len() / size], data.clone());
        elements.is_ok_and(|elements| *cast(&cast(&elements, narrow), constant.dtype).bytes() == data)
    })
}

/// What an output of a recipe widens, if it is a widened value.
fn widened(recipe: &Graph, output: usize) -> Option<ValueId> {
    let value = recipe.outputs[output].value;
    let maker = recipe.nodes.iter().find(|node| node.outputs.contains(&value))?;
    let source = *maker.inputs.first()?;
    let widens = recipe.ty(value).dtype.widens(recipe.ty(source).dtype);
    (maker.op == Op::Cast && widens).then_some(source)
}

/// The constant that is the right operand of a product of few rows.
struct Weight {
    /// The constant's value, and those that the program makes of it up to the operand.
    path: Vec<ValueId>,
    constant: Constant,
    /// The type that it is converted to, which is the product's.
    wide: DType,
    /// Coordinates of the view through which it is read, and its sizes.
    view: Option<(Vec<Expr>, Vec<Expr>)>,
    narrow: Option<DType>,
    /// Whether columns lie side by side, and the sums' elements should.
    turns: bool,
}

impl Weight {
    fn of(rewriter: &Rewriter, node: &Node, target: &Target) -> Option<Weight> {
        if node.op != Op::MatMul {
            return None;
        }
        let builder = &rewriter.builder;
        let operand = node.inputs[1];
        let shape = builder.shape(node.outputs[0]);
        let rows = shape[shape.len() - 2].as_int();
        let dtype = builder.dtype(operand);
        if !target.stores_weights(rows, dtype) {
            return None;
        }
        let (mut value, mut path, mut view) = (operand, vec![operand], None);
        if let Node { op: Op::View(coords), inputs, .. } = rewriter.producer(value)? {
            view = Some((coords.clone(), builder.shape(value)));
            value = inputs[0];
            path.push(value);
        }
        // What was too large to be converted when the model is compiled.
        if let Node { op: Op::Cast, inputs, .. } = rewriter.producer(value)? {
            value = inputs[0];
            path.push(value);
        }
        let Op::Constant(id) = rewriter.op(value)? else { return None };
        let constant = builder.graph().constants[*id].clone();
        if has_groups(&constant, &view, target) {
            return None;
        }
        let in_order = target.reads_in_order(rows, dtype);
        let turns = in_order && view.is_none() && constant.sizes.len() == 2 && is_worth_it(&constant);
        let is_matrix = |coords: &[Expr]| {
            let own = [shape.len() - 2, shape.len() - 1].map(Expr::axis);
            matches!(coords, [a, b] if a != b && own.contains(a) && own.contains(b))
        };
        // Panels are of a matrix that is the same in every batch.
        let is_readable =
            in_order || view.as_ref().map_or(constant.sizes.len() == 2, |(own, _)| is_matrix(own));
        let narrow = narrower(&constant, &|own| is_readable && target.widens(rows, dtype, own));
        (turns || narrow.is_some()).then_some(Weight { path, constant, wide: dtype, view, narrow, turns })
    }

    /// A graph that makes the elements in the type that they are stored in, in their own order.
    fn recipe(&self) -> Option<(Builder, ValueId)> {
        if let (ConstantSource::Derived { recipe, output }, Some(_)) = (&self.constant.source, self.narrow) {
            let source = widened(recipe, *output)?;
            let mut graph = Graph::clone(recipe);
            graph.outputs.clear();
            let ranges = graph.ranges();
            return Some((Builder::resume(graph, ranges), source));
        }
        let mut recipe = Builder::new("");
        let value = recipe.constant(self.constant.clone()).ok()?;
        let stored = recipe.cast(value, self.narrow.unwrap_or(self.constant.dtype));
        Some((recipe, stored))
    }

    /// The operand with its elements stored otherwise.
    fn store(self, builder: &mut Builder) -> Option<ValueId> {
        let name = self.constant.name.clone();
        let (mut recipe, mut stored) = self.recipe()?;
        let turned = |builder: &mut Builder, value: ValueId| {
            let shape: Vec<Expr> = builder.shape(value).into_iter().rev().collect();
            builder.view(value, &shape, vec![Expr::axis(1), Expr::axis(0)]).ok()
        };
        if self.turns {
            stored = turned(&mut recipe, stored)?;
        }
        recipe.output("", stored, OutputRole::User);
        let stored = derive::derive(builder, &name, recipe.finish())?.into_iter().next()?;
        let value = builder.cast(stored, self.wide);
        match self.view {
            Some((coords, sizes)) => builder.view(value, &sizes, coords).ok(),
            None if self.turns => turned(builder, value),
            None => Some(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::evaluate;
    use crate::passes::{dce, optimize};

    fn gpu() -> Target {
        Target::Gpu(GpuTarget::named("sm_90a").expect("it is in the table"))
    }

    /// The type and the sizes of the right operand's constant after the pass, of a product that computes what it did.
    fn stored(rows: usize, dtype: DType, weight: [&str; 2]) -> (DType, Vec<i64>) {
        stored_for(&gpu(), rows, dtype, weight)
    }

    fn stored_for(target: &Target, rows: usize, dtype: DType, [own, data]: [&str; 2]) -> (DType, Vec<i64>) {
        let wide = dtype.name();
        let graph = parse(&format!(
            "graph {{ const c0 \"w\": {own}[96, 64] {data} input %x \"x\": i64[{rows}, 96]
             %w: {own}[96, 64] = constant c0 %c: {wide}[96, 64] = cast %w %v: {wide}[{rows}, 96] = cast %x
             %y: {wide}[{rows}, 64] = matmul %v, %c output %y \"y\" }}"
        ));
        let graph = optimize(graph.expect("the text parses"));
        let result = dce(store_gemv_weights(graph.clone(), target));
        verify(&result).expect("the result is well formed");
        let numbers: Vec<i64> = (0..96 * i64::try_from(rows).expect("few")).map(|k| k % 7).collect();
        let x = [Tensor::from_i64(&[rows, 96], &numbers)];
        assert_eq!(evaluate(&graph, &x).expect("runs"), evaluate(&result, &x).expect("runs"));
        let read = result.nodes.iter().find_map(|node| {
            let Op::Constant(id) = node.op else { return None };
            Some(id)
        });
        let constant = &result.constants[read.expect("a weight is read")];
        (constant.dtype, constant.sizes.clone())
    }

    #[test]
    fn the_narrowest_type_that_holds_all_elements_is_stored() {
        use DType::*;
        for (dtype, own, data, narrow) in [
            (Bf16, "i8", "= random 1", I8),
            (F32, "i8", "= random 1", I8),
            (F64, "bf16", "= random 1", Bf16),
            (F32, "u8", "= splat 200", U8),
            (F32, "f32", "= splat 0.1", F32),
            (F32, "f32", "= splat -0.0", Bf16),
            (F32, "f32", "= splat nan", Bf16),
            (F32, "f32", "= splat inf", Bf16),
            (F32, "f32", "= splat 65504.0", F16),
            (F16, "f16", "= splat 0.5", F16),
            (I32, "i64", "= splat -129", I16),
            // Of weights that a run may replace only their graph is known.
            (F32, "i8", "weight = random 1", I8),
            (F32, "f32", "weight = splat 1.0", F32),
        ] {
            assert_eq!(stored(1, dtype, [own, data]), (narrow, vec![64, 96]), "{own} {data} as {dtype:?}");
        }
    }

    #[test]
    fn products_of_more_rows_keep_the_order_or_all_of_their_weights() {
        let weight = ["i8", "= random 1"];
        assert_eq!(stored(16, DType::Bf16, weight), (DType::I8, vec![64, 96]));
        assert_eq!(stored(17, DType::Bf16, weight), (DType::Bf16, vec![64, 96]), "they are brought");
        let older = Target::Gpu(GpuTarget::named("sm_80").expect("it is in the table"));
        assert_eq!(stored_for(&older, 17, DType::Bf16, weight), (DType::Bf16, vec![96, 64]));
        assert_eq!(stored(4, DType::F32, weight), (DType::F32, vec![64, 96]));
        assert_eq!(stored(5, DType::F32, weight), (DType::F32, vec![96, 64]));
        assert_eq!(stored(0, DType::F32, weight), (DType::F32, vec![96, 64]));
    }

    #[test]
    fn processors_read_bytes_for_any_number_of_rows() {
        let cpu = Target::cpu(&["x86-64-v3"]);
        let stored = |rows, dtype, own| stored_for(&cpu, rows, dtype, [own, "= splat 3"]).0;
        assert!([0, 1, 40].iter().all(|rows| stored(*rows, DType::F32, "i8") == DType::I8));
        assert_eq!(stored(1, DType::Bf16, "i8"), DType::I8);
        assert_eq!(stored(1, DType::F32, "f32"), DType::I8);
    }
}
