//! Folds a scale per channel that follows a convolution or a matrix product into its constant weight, and what is
//! added per channel into one shift: batch normalisation after a convolution becomes a bias.
//!
//! (x * W) * s + t = x * (W * s) + t: the same function, rounded elsewhere. Scale and shift are put together in `f64` and
//! rounded once, as a graph over the constants (`derive.rs`), so that other weights fold the same way.

use super::derive;
use super::gemv_weights::narrower;
use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{
    BinaryOp, Builder, Constant, FloatBinary, Graph, Node, Op, Output, OutputRole, Scalar, UnaryOp, ValueId,
};
use crate::interpret::{Tensor, evaluate};
use crate::symbolic::{Expr, RangeTable, Symbol};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::collections::{BTreeMap, BTreeSet};

/// Folds scales of channels into weights.
pub fn fold_batch_norm(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        let chains = find(graph);
        rewrite(graph, ranges, &mut |rewriter, node| {
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
    channels: i64,
    affine: Affine,
}

/// The function `scale * x + shift` of each channel, as a graph over constants in `f64`.
struct Affine {
    recipe: Builder,
    /// A number for each channel.
    scale: ValueId,
    /// A number for each channel; none where nothing is added.
    shift: Option<ValueId>,
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
        if scaled && chain.affine.is_sane() {
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
    if node.op == Op::MatMul && narrower(&constant, &|_| true).is_some() {
        // Scaled, its elements would be no longer numbers of a narrower type, as those of quantised weights are.
        return None;
    }
    let weight_axis = match (constant_axis, &view) {
        (Some(axis), _) => axis,
        (None, None) => constant.sizes.len() - 1,
        (None, Some(coords)) => plain_axis(coords, axis)?,
    };
    let channels = constant.sizes[weight_axis];
    if !ty.shape[axis].is(channels) {
        return None;
    }
    let weight = Weight { constant, axis: weight_axis, view };
    let affine = Affine::identity(channels);
    Some((Chain { contraction: node.clone(), weight, axis, channels, affine }, output))
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
enum Step {
    Add,
    Subtract,
    SubtractFrom,
    Multiply,
    Divide,
}

impl Step {
    /// Of an operator whose left (or else right) operand is the chain; `None` where it is no scale or shift.
    fn of(op: BinaryOp, left: bool) -> Option<Step> {
        const STEPS: [(BinaryOp, Step, Option<Step>); 4] = [
            (BinaryOp::Add, Step::Add, Some(Step::Add)),
            (BinaryOp::Sub, Step::Subtract, Some(Step::SubtractFrom)),
            (BinaryOp::Mul, Step::Multiply, Some(Step::Multiply)),
            (BinaryOp::Float(FloatBinary::Div), Step::Divide, None),
        ];
        let (_, chain_left, chain_right) = STEPS.into_iter().find(|(step, ..)| *step == op)?;
        if left { Some(chain_left) } else { chain_right }
    }

    fn scales(self) -> bool {
        matches!(self, Step::Multiply | Step::Divide)
    }
}

impl Affine {
    fn identity(channels: i64) -> Affine {
        let mut recipe = Builder::new("");
        let scale = recipe.full(1.0, DType::F64, &[Expr::int(channels)]);
        Affine { recipe, scale, shift: None }
    }

    /// Applies a step with these numbers, one for each channel.
    fn apply(&mut self, step: Step, numbers: ValueId) -> Option<()> {
        let b = &mut self.recipe;
        let shift = |b: &mut Builder, own: Option<ValueId>, op: BinaryOp| match own {
            Some(own) => b.binary(op, own, numbers).ok(),
            None => {
                let zero = b.full_like(0.0, numbers);
                b.binary(op, zero, numbers).ok()
            }
        };
        match step {
            Step::Add => self.shift = Some(shift(b, self.shift, BinaryOp::Add)?),
            Step::Subtract => self.shift = Some(shift(b, self.shift, BinaryOp::Sub)?),
            Step::SubtractFrom => {
                self.scale = b.unary(UnaryOp::Neg, self.scale);
                self.shift = Some(match self.shift {
                    Some(own) => b.binary(BinaryOp::Sub, numbers, own).ok()?,
                    None => numbers,
                });
            }
            Step::Multiply | Step::Divide => {
                let op = match step {
                    Step::Divide => BinaryOp::Float(FloatBinary::Div),
                    Step::Add | Step::Subtract | Step::SubtractFrom | Step::Multiply => BinaryOp::Mul,
                };
                self.scale = b.binary(op, self.scale, numbers).ok()?;
                if let Some(own) = self.shift {
                    self.shift = Some(b.binary(op, own, numbers).ok()?);
                }
            }
        }
        Some(())
    }

    /// The graph with these values as its outputs.
    fn recipe(&self, outputs: &[ValueId]) -> Graph {
        let mut graph = self.recipe.graph().clone();
        graph.outputs = outputs
            .iter()
            .map(|value| Output {
                value: *value,
                name: String::new(),
                role: OutputRole::User,
                is_complex: false,
            })
            .collect();
        graph
    }

    /// Whether all numbers are finite: where they are not, products of zero would differ.
    fn is_sane(&self) -> bool {
        let outputs: Vec<ValueId> = [self.scale].into_iter().chain(self.shift).collect();
        let finite = |tensor: &Tensor| tensor.to_f64().iter().all(|number| number.is_finite());
        evaluate(&self.recipe(&outputs), &[]).is_ok_and(|tensors| tensors.iter().all(finite))
    }
}

/// Takes `user` into the chain that ends in `value`; whether it scales.
fn extend(graph: &Graph, chain: &mut Chain, user: &Node, value: ValueId, maker: Maker<'_>) -> Option<bool> {
    let Op::Binary(op) = user.op else { return None };
    let left = user.inputs[0] == value;
    let other = if left { user.inputs[1] } else { user.inputs[0] };
    let step = Step::of(op, left)?;
    let numbers = channel_numbers(graph, other, chain, maker)?;
    chain.affine.apply(step, numbers)?;
    Some(step.scales())
}

/// A constant tensor that differs along the channels' axis only, as a number for each channel.
fn channel_numbers(graph: &Graph, value: ValueId, chain: &mut Chain, maker: Maker<'_>) -> Option<ValueId> {
    let node = maker(value)?;
    let (source, coords) = if let Op::View(coords) = &node.op {
        (maker(node.inputs[0])?, coords.clone())
    } else {
        (node, (0..graph.ty(value).rank()).map(Expr::axis).collect())
    };
    let b = &mut chain.affine.recipe;
    let channels = [Expr::int(chain.channels)];
    if let Op::Full(Scalar::Float(number)) = source.op {
        return Some(b.full(number, DType::F64, &channels));
    }
    let Op::Constant(id) = source.op else { return None };
    let constant = &graph.constants[id];
    if !matches!(constant.dtype, DType::F32 | DType::F64) {
        return None;
    }
    let channel = Symbol::axis(u32::try_from(chain.axis).ok()?);
    let coords: Option<Vec<Expr>> = coords
        .iter()
        .zip(&constant.sizes)
        .map(|(coord, size)| along_channels(coord, *size, channel))
        .collect();
    let whole = b.constant(constant.clone()).ok()?;
    let numbers = b.view(whole, &channels, coords?).ok()?;
    Some(b.cast(numbers, DType::F64))
}

/// A coordinate over the channels' axis alone as one over the first axis.
fn along_channels(coord: &Expr, size: i64, channel: Symbol) -> Option<Expr> {
    if size == 1 {
        return Some(Expr::int(0));
    }
    let mut symbols = BTreeSet::new();
    coord.collect_symbols(&mut symbols);
    if symbols.iter().any(|symbol| *symbol != channel) {
        return None;
    }
    let first = |symbol: Symbol| (symbol == channel).then(|| Expr::axis(0));
    Some(coord.substitute(&first, &RangeTable::default()))
}

fn apply(rewriter: &mut Rewriter, chain: &Chain) -> Option<ValueId> {
    let last = rewriter.builder.graph().nodes.last().map(|node| node.origin);
    let Chain { contraction, weight, axis, .. } = chain;
    let builder = &mut rewriter.builder;
    let new_weight = fold_weight(builder, chain)?;
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
    let Some(shift) = chain.affine.shift else { return Some(result) };
    let shift = fold_shift(builder, chain, shift)?;
    let shape = builder.shape(result);
    let shift = builder.view(shift, &shape, vec![Expr::axis(*axis)]).ok()?;
    builder.binary(BinaryOp::Add, result, shift).ok()
}

/// The scaled weight as a constant.
fn fold_weight(builder: &mut Builder, chain: &Chain) -> Option<ValueId> {
    let Chain { weight: Weight { constant, axis, .. }, affine, .. } = chain;
    let mut b = Builder::from_graph(affine.recipe.graph().clone());
    let whole = b.constant(constant.clone()).ok()?;
    let shape = b.shape(whole);
    let wide = b.cast(whole, DType::F64);
    let scale = b.view(affine.scale, &shape, vec![Expr::axis(*axis)]).ok()?;
    let product = b.binary(BinaryOp::Mul, wide, scale).ok()?;
    let scaled = b.cast(product, constant.dtype);
    b.output("", scaled, OutputRole::User);
    Some(derive::derive(builder, &renamed(&constant.name, "scaled"), b.finish())?[0])
}

/// What is added to each channel as a constant, also where it is zero: with other weights it is not, and both must be
/// computed alike.
fn fold_shift(builder: &mut Builder, chain: &Chain, shift: ValueId) -> Option<ValueId> {
    let Chain { weight: Weight { constant, .. }, affine, .. } = chain;
    let mut b = Builder::from_graph(affine.recipe.graph().clone());
    let narrow = b.cast(shift, constant.dtype);
    b.output("", narrow, OutputRole::User);
    Some(derive::derive(builder, &renamed(&constant.name, "shift"), b.finish())?[0])
}

fn renamed(name: &str, suffix: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{name}.{suffix}") }
}
