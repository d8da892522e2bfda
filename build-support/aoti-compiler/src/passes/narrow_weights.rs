//! Stores the weights of large products in fewer bits than the program has them, where the manifest asks for that: numbers are rounded
//! when the model is built, and what the graph has in their place are the rounded ones.

use super::rewrite::{Rewriter, everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{Constant, Graph, Groups, Node, Op, ValueId};
use crate::halves::{Bf16, F16};
use crate::interpret::Tensor;
use crate::json_words;
use crate::symbolic::Expr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the weights of large products are stored in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WeightsType {
    /// What the program has.
    #[default]
    Own,
    /// Integers of 8 bits, a scale for each column.
    Int8,
    /// Integers of 4 bits, a scale for each group of a column's numbers.
    Int4,
    /// `bf16`.
    Bf16,
}

json_words!(WeightsType { Own = "own", Int8 = "int8", Int4 = "int4", Bf16 = "bf16" });

/// Elements from which on a weight is worth it.
const LEAST_ELEMENTS: i64 = 1 << 14;
/// Depths of a group of integers of 4 bits, the best first.
const GROUPS: [usize; 5] = [32, 64, 48, 24, 16];

/// Rounds the weights of large products.
pub fn narrow_weights(graph: Graph, to: WeightsType) -> Graph {
    if to == WeightsType::Own {
        return graph;
    }
    everywhere(graph, &mut |graph, ranges| {
        // Products that share weights share what becomes of them.
        let mut narrowed: BTreeMap<(ValueId, usize), ValueId> = BTreeMap::new();
        rewrite(graph, ranges, &mut |rewriter, node| {
            let weight = Weight::of(rewriter, node)?;
            let key = (weight.value, weight.column_axis);
            let own = match narrowed.get(&key) {
                Some(own) => *own,
                None => *narrowed.entry(key).or_insert(weight.narrow(rewriter, to)?),
            };
            let right = weight.as_operand(rewriter, own)?;
            Some(vec![rewriter.builder.matmul(node.inputs[0], right).ok()?])
        });
    })
}

/// A matrix of weights that is the right operand of a product.
struct Weight {
    /// The constant's value.
    value: ValueId,
    constant: Constant,
    /// The constant's axis that is the product's columns.
    column_axis: usize,
    operand: ValueId,
}

impl Weight {
    fn of(rewriter: &Rewriter, node: &Node) -> Option<Weight> {
        let dtype = rewriter.builder.dtype(node.outputs[0]);
        if node.op != Op::MatMul || !(dtype == DType::F32 || dtype.is_half()) {
            return None;
        }
        let operand = node.inputs[1];
        let rank = rewriter.builder.rank(operand);
        let (mut value, mut column_axis) = (operand, 1);
        if let Node { op: Op::View(coords), inputs, .. } = rewriter.producer(value)? {
            let [depth, column] = [rank - 2, rank - 1].map(Expr::axis);
            column_axis = match coords.as_slice() {
                [a, b] if *a == depth && *b == column => 1,
                [a, b] if *a == column && *b == depth => 0,
                _ => return None,
            };
            value = inputs[0];
        }
        let Op::Constant(id) = *rewriter.op(value)? else { return None };
        let constant = rewriter.builder.graph().constants[id].clone();
        let is_whole = {
            let shape = rewriter.builder.shape(operand);
            (&shape[rank - 2] * &shape[rank - 1]).is(constant.sizes.iter().product())
        };
        let is_large = constant.sizes.len() == 2 && constant.sizes.iter().product::<i64>() >= LEAST_ELEMENTS;
        let is_own = constant.is_fixed() && constant.groups.is_none() && constant.dtype == dtype;
        (is_whole && is_large && is_own).then_some(Weight { value, constant, column_axis, operand })
    }

    /// A constant of the rounded elements with columns one after the other; none where they are not finite.
    fn narrow(&self, rewriter: &mut Rewriter, to: WeightsType) -> Option<ValueId> {
        let sizes: Vec<usize> =
            self.constant.sizes.iter().map(|size| usize::try_from(*size)).collect::<Result<_, _>>().ok()?;
        let (n, k) = (sizes[self.column_axis], sizes[1 - self.column_axis]);
        let elements = Tensor::new(self.constant.dtype, sizes, self.constant.data.clone()).ok()?.to_f64();
        let element = |column: usize, row: usize| match self.column_axis {
            0 => elements[column * k + row],
            _ => elements[row * n + column],
        };
        let columns: Vec<f32> = (0..n)
            .flat_map(|column| (0..k).map(move |row| (column, row)))
            .map(|(column, row)| element(column, row) as f32)
            .collect();
        if columns.iter().any(|number| !number.is_finite()) {
            return None;
        }
        let groups = match to {
            WeightsType::Own => return None,
            WeightsType::Bf16 => None,
            WeightsType::Int8 => Some(in_groups(&columns, k, 8)),
            WeightsType::Int4 => Some(match GROUPS.iter().find(|group| k.is_multiple_of(**group)) {
                Some(group) => in_groups(&columns, *group, 4),
                None => in_groups(&columns, k, 8),
            }),
        };
        let data = bytes(self.constant.dtype, &columns, groups.as_ref());
        let sizes = vec![i64::try_from(n).ok()?, i64::try_from(k).ok()?];
        let own = Constant::new(self.constant.name.clone(), self.constant.dtype, sizes, data);
        rewriter.builder.constant(Constant { groups: groups.map(Arc::new), ..own }).ok()
    }

    /// The right operand whose columns are the rows of a value.
    fn as_operand(&self, rewriter: &mut Rewriter, columns: ValueId) -> Option<ValueId> {
        let shape = rewriter.builder.shape(self.operand);
        let rank = shape.len();
        rewriter.builder.view(columns, &shape, vec![Expr::axis(rank - 1), Expr::axis(rank - 2)]).ok()
    }
}

/// Numbers as integers of so many bits, each group of so many with a scale.
fn in_groups(numbers: &[f32], run: usize, bits: u32) -> Groups {
    let mut groups =
        Groups { integers: Vec::with_capacity(numbers.len()), run, scales: Vec::new(), offsets: None };
    for group in numbers.chunks(run) {
        let scale = scale_of(group, bits);
        groups.scales.push(scale);
        groups.integers.extend(group.iter().map(|number| rounded(*number, scale, bits)));
    }
    groups
}

/// The nearest integer of so many bits to a number, in parts of a scale.
fn rounded(number: f32, scale: f32, bits: u32) -> i16 {
    let most = f32::from((1i16 << (bits - 1)) - 1);
    (number / scale).round_ties_even().clamp(-most - 1.0, most) as i16
}

/// A scale of which integers of so many bits are nearest to the numbers of a group, among some that let the largest one fit.
fn scale_of(group: &[f32], bits: u32) -> f32 {
    let largest = group
        .iter()
        .copied()
        .fold(0.0f32, |most, number| if number.abs() > most.abs() { number } else { most });
    if largest == 0.0 {
        return 1.0;
    }
    let most = f32::from(1i16 << (bits - 1));
    // The largest number is the least integer, or nearly: there is one more of those below zero.
    let steps: u8 = if bits == 4 { 8 } else { 0 };
    let candidates = (0..steps).map(|step| -largest / (most - 0.25 * f32::from(step)));
    let candidates = candidates.chain([largest / (most - 1.0)]);
    let error = |scale: f32| -> f64 {
        group
            .iter()
            .map(|number| f64::from(f32::from(rounded(*number, scale, bits)) * scale - number).powi(2))
            .sum()
    };
    let usable = candidates.filter(|scale| scale.is_normal());
    let best = usable.map(|scale| (error(scale), scale)).min_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map_or(1.0, |(_, scale)| scale)
}

/// The elements that stand for numbers: those that groups make, else what `bf16` makes of them.
fn bytes(dtype: DType, numbers: &[f32], groups: Option<&Groups>) -> Vec<u8> {
    let number = |at: usize| match groups {
        Some(groups) => f32::from(groups.integers[at]) * groups.scales[at / groups.run],
        None => Bf16::from_f32(numbers[at]).to_f32(),
    };
    let each = (0..numbers.len()).map(number);
    if dtype == DType::F16 {
        each.flat_map(|number| F16::from_f32(number).to_le_bytes()).collect()
    } else if dtype == DType::Bf16 {
        each.flat_map(|number| Bf16::from_f32(number).to_le_bytes()).collect()
    } else {
        each.flat_map(f32::to_le_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::evaluate;

    /// A product with weights that lie as a `Linear`'s or as a `MatMul`'s, of this type.
    fn product(dtype: &str, k: usize, n: usize, is_turned: bool, data: &str) -> Graph {
        let (sizes, view) = match is_turned {
            true => (format!("{n}, {k}"), format!("%w: {dtype}[{k}, {n}] = view %c [i1, i0]")),
            false => (format!("{k}, {n}"), format!("%w: {dtype}[{k}, {n}] = view %c [i0, i1]")),
        };
        let text = format!(
            "graph {{ const c0 \"w\": {dtype}[{sizes}] {data} input %x \"x\": {dtype}[3, {k}]
             %c: {dtype}[{sizes}] = constant c0 {view} %y: {dtype}[3, {n}] = matmul %x, %w output %y \"y\" }}"
        );
        parse(&text).expect("the text parses")
    }

    /// The run of the groups that weights have after the pass, and how far results are from those before, as a part of the largest.
    fn narrowed(graph: &Graph, to: WeightsType) -> (Option<usize>, f64) {
        let result = narrow_weights(graph.clone(), to);
        verify(&result).expect("the result is well formed");
        let run =
            result.constants.values().find_map(|constant| constant.groups.as_ref().map(|groups| groups.run));
        let ty = graph.ty(graph.inputs[0].value);
        let sizes: Vec<usize> =
            ty.shape.iter().map(|size| size.as_int().expect("a number") as usize).collect();
        let numbers: Vec<f32> =
            (0..sizes.iter().product()).map(|at: usize| (at * 37 % 101) as f32 / 50.0 - 1.0).collect();
        let x =
            Tensor::new(DType::F32, sizes, numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
        let x = crate::interpret::cast(&x.expect("the data fit"), ty.dtype);
        let [own, other] = [graph, &result]
            .map(|graph| evaluate(graph, std::slice::from_ref(&x)).expect("it runs")[0].to_f64());
        let largest = own.iter().fold(0.0f64, |most, number| most.max(number.abs()));
        let apart = own.iter().zip(&other).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
        (run, apart / largest)
    }

    #[test]
    fn weights_of_large_products_are_rounded() {
        for is_turned in [false, true] {
            for dtype in ["f32", "f16", "bf16"] {
                let graph = product(dtype, 192, 96, is_turned, "= random 1");
                let (run, apart) = narrowed(&graph, WeightsType::Int8);
                assert!(run == Some(192) && apart < 0.02, "{dtype} {run:?} {apart}");
                let (run, apart) = narrowed(&graph, WeightsType::Int4);
                assert!(run == Some(32) && apart < 0.2 && apart > 0.001, "{dtype} {run:?} {apart}");
            }
            let (run, apart) = narrowed(&product("f32", 192, 96, is_turned, "= random 1"), WeightsType::Bf16);
            assert!(run.is_none() && apart < 0.01 && apart > 0.0, "{run:?} {apart}");
        }
    }

    #[test]
    fn a_depth_without_groups_is_rounded_to_bytes() {
        let run = |k| narrowed(&product("f32", k, 256, true, "= random 1"), WeightsType::Int4).0;
        assert_eq!((run(96), run(80), run(72), run(202)), (Some(32), Some(16), Some(24), Some(202)));
    }

    #[test]
    fn small_weights_and_those_that_a_run_may_replace_stay() {
        for graph in [
            product("f32", 64, 64, true, "= random 1"),
            product("f32", 192, 96, true, "weight = random 1"),
            product("f64", 192, 96, true, "= random 1"),
            product("f32", 192, 96, true, "= splat inf"),
        ] {
            assert_eq!(narrow_weights(graph.clone(), WeightsType::Int4), graph);
        }
        let own = product("f32", 192, 96, true, "= random 1");
        assert_eq!(narrow_weights(own.clone(), WeightsType::Own), own);
    }
}
