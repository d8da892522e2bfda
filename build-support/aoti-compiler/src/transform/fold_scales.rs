//! Folds a scale per channel that follows a convolution or a matrix product into its constant weight, and what is
//! added per channel into one shift: batch normalisation after a convolution becomes a bias.
//!
//! (x * W) * s + t = x * (W * s) + t: the same function, rounded elsewhere.

use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Constant, FloatBinary, Graph, Node, Op, Scalar, ValueId};
use crate::symbolic::{Expr, Symbol, SymbolKind};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::collections::{BTreeMap, BTreeSet};

/// Folds scales of channels into weights.
pub fn fold_scales(graph: Graph) -> Graph {
    everywhere(graph, &|graph, ranges| {
        let chains = find(graph);
        rewrite(graph, ranges, |rewriter, node| {
            let chain = chains.get(node.outputs.first()?)?;
            apply(rewriter, chain).map(|value| vec![value])
        });
    })
}

/// A contraction and the affine function of its channels that follows.
struct Chain {
    contraction: Node,
    /// Where its channels are in the weight constant, and in the result.
    weight: Weight,
    axis: usize,
    scale: Vec<f64>,
    shift: Vec<f64>,
}

/// The constant behind a contraction's second operand.
struct Weight {
    constant: Constant,
    /// The axis of the constant that is the channels'.
    axis: usize,
    /// Coordinates of the view through which it is read.
    view: Option<Vec<Expr>>,
}

/// All chains, by the value that each ends in.
fn find(graph: &Graph) -> BTreeMap<ValueId, Chain> {
    let uses = count_uses(graph);
    let producers = graph.producers();
    let mut users: SecondaryMap<ValueId, usize> = SecondaryMap::new();
    for (position, node) in graph.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|input| users[*input] = position + 1);
    }
    let maker = |value: ValueId| producers[value.index()].map(|position| &graph.nodes[position]);
    let mut chains = BTreeMap::new();
    for node in &graph.nodes {
        let Some((mut chain, mut value)) = start(graph, node, &uses, &maker) else { continue };
        let mut scaled = false;
        // A value used once, by a node: an output has a use but no user after its maker.
        while uses[value] == 1
            && let Some(user) = users[value].checked_sub(1).map(|position| &graph.nodes[position])
            && let Some(scales) = extend(graph, &mut chain, user, value, &maker)
        {
            scaled |= scales;
            value = user.outputs[0];
        }
        let sane = chain.scale.iter().chain(&chain.shift).all(|number| number.is_finite());
        if scaled && sane {
            chains.insert(value, chain);
        }
    }
    chains
}

type Maker<'a> = &'a dyn Fn(ValueId) -> Option<&'a Node>;

fn start<'a>(
    graph: &Graph,
    node: &Node,
    uses: &SecondaryMap<ValueId, usize>,
    maker: Maker<'a>,
) -> Option<(Chain, ValueId)> {
    let output = *node.outputs.first()?;
    let ty = graph.ty(output);
    if !matches!(ty.dtype, DType::F32 | DType::F64) {
        return None;
    }
    let (axis, constant_axis) = if let Op::Conv(conv) = &node.op {
        if conv.transposed && conv.groups != 1 {
            return None;
        }
        (1, Some(usize::from(conv.transposed)))
    } else if node.op == Op::MatMul {
        (ty.rank() - 1, None)
    } else {
        return None;
    };
    let operand = node.inputs[1];
    let (source, view) = match maker(operand)? {
        Node { op: Op::View(coords), inputs, .. } if constant_axis.is_none() => {
            (inputs[0], Some(coords.clone()))
        }
        _ => (operand, None),
    };
    let Op::Constant(id) = &maker(source)?.op else { return None };
    if uses[operand] != 1 || uses[source] != 1 {
        // Another reader keeps the weight as it is; a second copy would cost more than the scale.
        return None;
    }
    let constant = graph.constants[*id].clone();
    let weight_axis = match (constant_axis, &view) {
        (Some(axis), _) => axis,
        (None, None) => constant.sizes.len() - 1,
        (None, Some(coords)) => plain_axis(coords, axis)?,
    };
    let channels = usize::try_from(constant.sizes[weight_axis]).ok()?;
    if !ty.shape[axis].is(constant.sizes[weight_axis]) {
        return None;
    }
    let weight = Weight { constant, axis: weight_axis, view };
    let (scale, shift) = (vec![1.0; channels], vec![0.0; channels]);
    Some((Chain { contraction: node.clone(), weight, axis, scale, shift }, output))
}

/// The one coordinate that is axis `axis`, if no other mentions it.
fn plain_axis(coords: &[Expr], axis: usize) -> Option<usize> {
    let symbol = Symbol::axis(u32::try_from(axis).ok()?);
    let mut mentions = coords.iter().enumerate().filter(|(_, coord)| coord.mentions(symbol));
    let (position, coord) = mentions.next()?;
    (*coord == Expr::axis(axis) && mentions.next().is_none()).then_some(position)
}

/// What an operator with a number for each channel does to the chain.
#[derive(Clone, Copy)]
enum Affine {
    Add,
    Subtract,
    SubtractFrom,
    Multiply,
    Divide,
}

impl Affine {
    /// Of an operator whose left (or else right) operand is the chain; `None` where it is no scale or shift.
    fn of(op: BinaryOp, left: bool) -> Option<Affine> {
        const STEPS: [(BinaryOp, Affine, Option<Affine>); 4] = [
            (BinaryOp::Add, Affine::Add, Some(Affine::Add)),
            (BinaryOp::Sub, Affine::Subtract, Some(Affine::SubtractFrom)),
            (BinaryOp::Mul, Affine::Multiply, Some(Affine::Multiply)),
            (BinaryOp::Float(FloatBinary::Div), Affine::Divide, None),
        ];
        let (_, chain_left, chain_right) = STEPS.into_iter().find(|(step, ..)| *step == op)?;
        if left { Some(chain_left) } else { chain_right }
    }
}

/// Takes `user` into the chain that ends in `value`; whether it scales.
fn extend(graph: &Graph, chain: &mut Chain, user: &Node, value: ValueId, maker: Maker<'_>) -> Option<bool> {
    let Op::Binary(op) = user.op else { return None };
    let left = user.inputs[0] == value;
    let other = if left { user.inputs[1] } else { user.inputs[0] };
    let step = Affine::of(op, left)?;
    let numbers = channel_numbers(graph, other, chain.axis, chain.scale.len(), maker)?;
    for ((scale, shift), number) in chain.scale.iter_mut().zip(&mut chain.shift).zip(numbers) {
        match step {
            Affine::Add => *shift += number,
            Affine::Subtract => *shift -= number,
            Affine::SubtractFrom => (*scale, *shift) = (-*scale, number - *shift),
            Affine::Multiply => (*scale, *shift) = (*scale * number, *shift * number),
            Affine::Divide => (*scale, *shift) = (*scale / number, *shift / number),
        }
    }
    Some(matches!(op, BinaryOp::Mul | BinaryOp::Float(FloatBinary::Div)))
}

/// The values of a constant tensor that differs along one axis only.
fn channel_numbers(
    graph: &Graph,
    value: ValueId,
    axis: usize,
    channels: usize,
    maker: Maker<'_>,
) -> Option<Vec<f64>> {
    let node = maker(value)?;
    let (source, coords) = if let Op::View(coords) = &node.op {
        (maker(node.inputs[0])?, coords.clone())
    } else {
        (node, (0..graph.ty(value).rank()).map(Expr::axis).collect())
    };
    if let Op::Full(Scalar::Float(number)) = source.op {
        return Some(vec![number; channels]);
    }
    let Op::Constant(id) = source.op else { return None };
    let constant = &graph.constants[id];
    let fixed: Vec<Expr> = coords
        .iter()
        .zip(&constant.sizes)
        .map(|(coord, size)| if *size == 1 { Expr::int(0) } else { coord.clone() })
        .collect();
    let mut symbols = BTreeSet::new();
    fixed.iter().for_each(|coord| coord.collect_symbols(&mut symbols));
    let channel = Symbol::axis(u32::try_from(axis).ok()?);
    if symbols.iter().any(|symbol| *symbol != channel) {
        return None;
    }
    (0..channels).map(|number| element(constant, &fixed, i64::try_from(number).ok()?)).collect()
}

/// The element at coordinates over the one axis at `position`.
fn element(constant: &Constant, coords: &[Expr], position: i64) -> Option<f64> {
    let mut offset = 0i64;
    for (coord, size) in coords.iter().zip(&constant.sizes) {
        let at = coord.evaluate(&|symbol| (symbol.kind == SymbolKind::Axis).then_some(position))?;
        if !(0..*size).contains(&at) {
            return None;
        }
        offset = offset * size + at;
    }
    read(constant, usize::try_from(offset).ok()?)
}

fn read(constant: &Constant, index: usize) -> Option<f64> {
    let size = constant.dtype.size();
    let bytes = constant.data.get(index * size..(index + 1) * size)?;
    if constant.dtype == DType::F32 {
        return Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?)));
    }
    (constant.dtype == DType::F64).then_some(f64::from_le_bytes(bytes.try_into().ok()?))
}

fn apply(rewriter: &mut Rewriter, chain: &Chain) -> Option<ValueId> {
    let last = rewriter.builder.graph().nodes.last().map(|node| node.origin);
    let Chain { contraction, weight, axis, scale, shift } = chain;
    let builder = &mut rewriter.builder;
    let dtype = weight.constant.dtype;
    let new_weight = builder.constant(scaled(&weight.constant, weight.axis, scale)?).ok()?;
    let operand = match &weight.view {
        Some(coords) => {
            let shape = builder.shape(contraction.inputs[1]);
            builder.view(new_weight, &shape, coords.clone()).ok()?
        }
        None => new_weight,
    };
    let x = rewriter.current(contraction.inputs[0]);
    let builder = &mut rewriter.builder;
    builder.continue_origin(contraction.origin);
    let result = if let Op::Conv(conv) = &contraction.op {
        builder.conv(x, operand, conv.clone()).ok()?
    } else {
        builder.matmul(x, operand).ok()?
    };
    if let Some(origin) = last {
        builder.continue_origin(origin);
    }
    if shift.iter().all(|number| *number == 0.0) {
        return Some(result);
    }
    let data: Vec<u8> = shift.iter().flat_map(|number| bytes_of(*number, dtype)).collect();
    let sizes = vec![i64::try_from(shift.len()).ok()?];
    let name = renamed(&weight.constant.name, "shift");
    let shift = builder.constant(Constant { name, dtype, sizes, data: data.into() }).ok()?;
    let shape = builder.shape(result);
    let shift = builder.view(shift, &shape, vec![Expr::axis(*axis)]).ok()?;
    builder.binary(BinaryOp::Add, result, shift).ok()
}

fn renamed(name: &str, suffix: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{name}.{suffix}") }
}

fn bytes_of(number: f64, dtype: DType) -> Vec<u8> {
    if dtype == DType::F32 { (number as f32).to_le_bytes().to_vec() } else { number.to_le_bytes().to_vec() }
}

/// The constant with each slice along an axis multiplied.
fn scaled(constant: &Constant, axis: usize, scale: &[f64]) -> Option<Constant> {
    let inner: i64 = constant.sizes[axis + 1..].iter().product();
    let inner = usize::try_from(inner).ok()?;
    let count = constant.data.len() / constant.dtype.size();
    let mut data = Vec::with_capacity(constant.data.len());
    for index in 0..count {
        let number = read(constant, index)? * scale[index / inner % scale.len()];
        data.extend_from_slice(&bytes_of(number, constant.dtype));
    }
    let name = renamed(&constant.name, "scaled");
    Some(Constant { name, dtype: constant.dtype, sizes: constant.sizes.clone(), data: data.into() })
}
