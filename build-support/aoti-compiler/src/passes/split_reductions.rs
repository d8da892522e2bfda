//! Long sums with few results, of reductions and of matrix products, are done in two steps: parts of them first, then what the
//! parts gave. All multiprocessors of a GPU, or all threads of a processor, have work then, where each result would keep one
//! of them busy. The position of an extreme is that of its part and that in the part.
//!
//! How many parts there are is a matter of sizes and of the kind of device, or of a record: sums are in the same order in every
//! run, whatever the number of threads.

mod first_axis;
mod parts;
mod squares;

use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use super::{cse, dce};
use crate::cost::{Cost, WorkKind};
use crate::graph::{Builder, Graph, Node, Op, OpClass, ReduceOp, ValueId};
use crate::symbolic::Expr;
use crate::target::{SplitKPolicy, SplitPolicy, Target};
use crate::tuning::{Alternative, Config, Decisions, TuningKey};
use cranelift_entity::{EntityRef, SecondaryMap};
use first_axis::{FirstAxis, first_apart, is_of_convolution};
use parts::split_reduction;
use squares::Squares;

/// The word of a configuration that splits a reduction; its parameter is the number of parts.
pub(crate) const PARTS: &str = "parts";

/// How far a sum may be from those that are split without a record, in length or in work that there is without, so that
/// splitting it is worth measuring; and how many times more or fewer parts are.
const CLOSE: i64 = 4;

/// How many times shorter sums across rows are that are split although something else reads what they add up.
const CROSSWISE: i64 = 16;

/// Results that are no groups of something.
const FEW_RESULTS: i64 = 16;

/// How many times longer parts are that all threads of a block add up.
const FEW_PART: i64 = 16;

/// Operators between what is added up and what something else reads.
const DEPTH: usize = 8;

/// Finds the node that makes a value.
type Producer<'a> = dyn Fn(ValueId) -> Option<&'a Node> + 'a;

/// Splits long sums for a target.
pub fn split_reductions(graph: Graph, target: &Target, questions: &mut Decisions) -> Graph {
    let splits = target.splits();
    let graph = everywhere(graph, &mut |graph, ranges| {
        let reads = Reads::of(graph);
        rewrite(graph, ranges, &mut |rewriter, node| {
            let sum = if let Op::Reduce { op, axes } = &node.op {
                let squares = Squares::of(&|value| rewriter.producer(value), node);
                // What something else reads as well is one kernel with it, as rows of a softmax are, unless rows are long.
                let is_shared = reads.is_shared(node.inputs[0])
                    || squares.as_ref().is_some_and(|squares| reads.has_shared(squares));
                let again = reads.is_read_again(&|value| rewriter.producer(value), node.inputs[0], DEPTH);
                // What convolutions make may have channels last: a group of them is no stretch of memory then, nor near.
                let is_across = splits.few > 0
                    && axes.len() > 1
                    && is_of_convolution(&|value| rewriter.producer(value), node.inputs[0], 0);
                let keeps = (is_shared || again) && !is_across;
                let mut sum = reduction(&rewriter.builder, node, (*op, axes), (&splits, keeps))?;
                // Nor is a row split that stays near for what reads it again.
                sum.is_typical &= !(sum.is_near && squares.is_none() && again);
                if let Some(squares) = squares.filter(|squares| rewriter.builder.dtype(squares.x).is_float())
                {
                    sum.kind = Kind::Squares(squares);
                }
                // Rows stay near the threads that share one; of columns there is nothing to keep.
                let long = splits
                    .shared
                    .map(|long| if sum.is_of_rows && !is_across { long } else { long / CROSSWISE });
                // A few long rows that lie across memory are not near.
                let few = sum.by_first_axis && sum.results <= target.few_units();
                let long = long.map(|long| if few { target.serial_elements().min(long) } else { long });
                let apart = long.is_some_and(|long| sum.is_typical && !sum.is_near && sum.inner >= long);
                (!is_shared || apart).then_some(sum)
            } else if node.op == Op::MatMul {
                product(rewriter, node, splits.products.as_ref()?)
            } else {
                None
            }?;
            let key = || TuningKey::of_nodes("parts", rewriter.builder.graph(), (&[node], &[]), target);
            let about = || format!("sums of {}", rewriter.builder.graph().name_of(node));
            let cut = sum.decide(key, about, questions)?;
            sum.split(&mut rewriter.builder, node, cut).map(|value| vec![value])
        });
    });
    // A variance adds up the parts that its mean does. Views that others were made of would count as uses.
    dce(cse(graph))
}

/// A sum that may be split.
struct Sum {
    kind: Kind,
    /// The sizes of what is added up, neighbouring axes that are reduced as one.
    shape: Vec<i64>,
    /// The axes that can be cut, with their sizes.
    axes: Vec<(usize, i64)>,
    /// What it costs in one go.
    work: Cost,
    results: i64,
    /// What one result adds up.
    inner: i64,
    /// Whether neighbours in memory are added up.
    is_of_rows: bool,
    /// Whether parts are those of the first of several axes, one each.
    by_first_axis: bool,
    /// Whether it is split without a record.
    is_typical: bool,
    /// Whether it stays near where something else reads what it adds up.
    is_near: bool,
    /// As many parts as keep the device busy, and as many as are long enough.
    busy: i64,
    long: i64,
    /// Pieces of what is behind the first axis, where parts are those of that.
    pieces: i64,
}

#[derive(Clone, Copy)]
enum Kind {
    Reduction(ReduceOp),
    /// The sum of squared differences from numbers that are the same along what is added up, as of a variance.
    Squares(Squares),
    Product,
}

/// How an axis is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cut {
    axis: usize,
    /// Parts of one length. What is behind them is a shorter part.
    parts: i64,
    length: i64,
    /// Pieces of the axis behind it, each of which has such parts.
    pieces: i64,
}

impl Cut {
    /// The axes of what parts give that are added up: those of parts and of pieces, which are the first.
    fn axes(self, parts: usize) -> Vec<usize> {
        if self.pieces == 1 { vec![parts] } else { vec![0, parts] }
    }
}

/// Elements that parts begin at multiples of, where parts are several times as long.
const ALIGNED: i64 = 64;

impl Sum {
    /// Cuts into at most so many parts, of one length where the sizes allow.
    fn cut(&self, most: i64) -> Option<Cut> {
        // Pieces are of what is behind the first axis.
        let axes = if self.pieces == 1 { self.axes.as_slice() } else { &self.axes[..1] };
        let even = |(axis, size): &(usize, i64)| {
            let parts = divisor(*size, most)?;
            Some(Cut { axis: *axis, parts, length: size / parts, pieces: self.pieces })
        };
        let uneven = || {
            let (axis, size) = *axes.iter().max_by_key(|(_, size)| *size)?;
            let length = size.checked_div(most).filter(|length| most > 1 && *length > 0)?;
            let length = if length >= 4 * ALIGNED { length / ALIGNED * ALIGNED } else { length };
            Some(Cut { axis, parts: size / length, length, pieces: self.pieces })
        };
        let can_be_uneven = match self.kind {
            Kind::Reduction(_) | Kind::Squares(_) => true,
            Kind::Product => false,
        };
        axes.iter().find_map(even).or_else(|| if can_be_uneven { uneven() } else { None })
    }

    /// How it is cut: as a record says or as is thought to be better.
    fn decide(
        &self,
        key: impl FnOnce() -> (TuningKey, Vec<usize>),
        about: impl FnOnce() -> String,
        questions: &mut Decisions,
    ) -> Option<Cut> {
        let cut = |busy: i64, long: i64| self.cut(busy.min(long));
        let typical = if self.is_typical { cut(self.busy, self.long) } else { None };
        let mut cuts = vec![typical];
        let others = [
            None,
            cut(self.busy, self.long),
            cut(self.busy / CLOSE, self.long),
            cut(self.busy, self.long.saturating_mul(CLOSE)),
        ];
        for other in others {
            let parts = |cut: &Option<Cut>| cut.map_or(1, |cut| cut.parts);
            if cuts.iter().all(|own| parts(own) != parts(&other)) {
                cuts.push(other);
            }
        }
        if cuts.len() == 1 {
            return typical;
        }
        let answers = cuts.iter().map(|own| self.answer(*own, typical)).collect();
        let recorded = questions.ask(key(), answers, about);
        cuts[recorded.unwrap_or(0)]
    }

    /// A cut as an answer. More parts than typical are more work for one thread.
    fn answer(&self, cut: Option<Cut>, typical: Option<Cut>) -> Alternative {
        let Some(Cut { parts, .. }) = cut else {
            return Alternative::new(Config::new(PARTS).with(1), self.work);
        };
        let between = 2.0 * parts as f64 * self.results as f64;
        let cost = self.work.and(WorkKind::Access, between).and_kernel();
        let is_shared = typical.is_none_or(|typical| parts > typical.parts);
        Alternative { is_shared, ..Alternative::new(Config::new(PARTS).with(parts), cost) }
    }

    /// The sum of parts.
    fn split(&self, builder: &mut Builder, node: &Node, cut: Cut) -> Option<ValueId> {
        match self.kind {
            Kind::Reduction(op) => {
                split_reduction(builder, node.inputs[0], op, (&self.shape, &self.axes), cut)
            }
            Kind::Squares(squares) => squares.split(builder, (&self.shape, &self.axes), cut),
            Kind::Product => split_product(builder, node, cut.parts),
        }
    }
}

/// How often values are read, and how often by reductions.
struct Reads {
    all: SecondaryMap<ValueId, usize>,
    folds: SecondaryMap<ValueId, usize>,
}

impl Reads {
    fn of(graph: &Graph) -> Reads {
        let producers = graph.producers();
        let producer = |value: ValueId| producers[value.index()].map(|position| &graph.nodes[position]);
        let mut reads = Reads { all: count_uses(graph), folds: SecondaryMap::new() };
        for node in graph.nodes.iter().filter(|node| matches!(node.op, Op::Reduce { .. })) {
            reads.folds[node.inputs[0]] += 1;
        }
        for squares in graph.nodes.iter().filter_map(|node| Squares::of(&producer, node)) {
            // The second step of a variance is a reduction too.
            if !reads.is_shared(squares.squares) && reads.all[squares.centred] <= 2 {
                reads.folds[squares.x] += 1;
            }
        }
        reads
    }

    /// Whether something else than reductions reads a value.
    fn is_shared(&self, value: ValueId) -> bool {
        self.all[value] > self.folds[value]
    }

    /// Whether something else reads what a value is made of, element by element.
    fn is_read_again<'a>(
        &self,
        producer: &dyn Fn(ValueId) -> Option<&'a Node>,
        value: ValueId,
        depth: usize,
    ) -> bool {
        let is_elementwise = |node: &&Node| matches!(node.op.class(), OpClass::Elementwise);
        let Some(node) = producer(value).filter(is_elementwise).filter(|_| depth > 0) else { return false };
        node.inputs.iter().any(|input| {
            let is_source = producer(*input).is_some_and(|node| matches!(node.op.class(), OpClass::Source));
            let own = node.inputs.iter().filter(|other| *other == input).count();
            let others = self.all[*input] > self.folds[*input] + own;
            !is_source && (others || self.is_read_again(producer, *input, depth - 1))
        })
    }

    /// Whether something else reads what is squared, or what it is made of.
    fn has_shared(&self, squares: &Squares) -> bool {
        self.all[squares.centred] > 2 || self.is_shared(squares.x)
    }
}

/// A reduction that may be split, with whether something else reads what it adds up.
fn reduction(
    builder: &Builder,
    node: &Node,
    (op, axes): (ReduceOp, &[usize]),
    (splits, is_read_again): (&SplitPolicy, bool),
) -> Option<Sum> {
    let ty = builder.ty(node.inputs[0]);
    let sizes: Vec<i64> = ty.shape.iter().map(Expr::as_int).collect::<Option<_>>()?;
    let reduced = axes;
    let (shape, axes) = joined(&sizes, reduced)?;
    let product = |of: &dyn Fn(usize) -> bool| -> Option<i64> {
        (0..shape.len()).filter(|axis| of(*axis)).try_fold(1, |all: i64, axis| all.checked_mul(shape[axis]))
    };
    let (inner, results) = (product(&|axis| axes.contains(&axis))?, product(&|axis| !axes.contains(&axis))?);
    let elements = inner.checked_mul(results)?;
    if results < 1 || elements < splits.elements / CLOSE {
        return None;
    }
    // Neighbouring results are one unit, where each is not one by itself.
    let by_row = axes.contains(&(shape.len() - 1));
    let beside = product(&|axis| axes.last().is_some_and(|last| axis > *last))?;
    let (own, wanted, part) = if by_row {
        (1, splits.rows, splits.part)
    } else if beside <= splits.few {
        (beside, splits.rows, splits.part * FEW_PART)
    } else {
        (splits.chunk.min(results), splits.columns, splits.part)
    };
    let units = results.checked_add(own - 1)? / own;
    let busy = wanted / units;
    let is_typical = elements >= splits.elements && busy >= splits.fewest;
    let is_near =
        by_row && is_read_again && splits.near.as_ref().is_some_and(|near| near.keeps(results, inner));
    let long = inner.checked_mul(own)? / part;
    let apart = if is_typical && !is_near { first_apart(&sizes, reduced, results, splits) } else { None };
    let by_first_axis = apart.is_some();
    let FirstAxis { shape, axes, parts: busy, pieces } =
        apart.unwrap_or(FirstAxis { shape, axes, parts: busy, pieces: 1 });
    Some(Sum {
        kind: Kind::Reduction(op),
        axes: axes.iter().map(|axis| (*axis, shape[*axis])).collect(),
        shape,
        work: Cost::of(WorkKind::Access, elements as f64),
        results,
        inner,
        is_of_rows: by_row,
        by_first_axis,
        is_typical,
        is_near,
        busy,
        long,
        pieces,
    })
}

/// Sizes and reduced axes where neighbours of these are one.
fn joined(sizes: &[i64], axes: &[usize]) -> Option<(Vec<i64>, Vec<usize>)> {
    let (mut shape, mut reduced) = (Vec::<i64>::new(), vec![]);
    for (axis, size) in sizes.iter().enumerate() {
        if !axes.contains(&axis) {
            shape.push(*size);
        } else if axis > 0 && axes.contains(&(axis - 1)) {
            let last = shape.last_mut()?;
            *last = last.checked_mul(*size)?;
        } else {
            reduced.push(shape.len());
            shape.push(*size);
        }
    }
    Some((shape, reduced))
}

/// A product of few tiles and long sums, which may be the sum of products of parts of its depth.
fn product(rewriter: &Rewriter, node: &Node, splits: &SplitKPolicy) -> Option<Sum> {
    let [a, b] = *node.inputs.as_slice() else { return None };
    // Weights are packed for a product as it is.
    if [a, b].into_iter().any(|factor| is_constant(rewriter, factor)) {
        return None;
    }
    let (left, right) = (rewriter.builder.ty(a), rewriter.builder.ty(b));
    if left.dtype.compute() != left.dtype {
        return None;
    }
    let fixed = |shape: &[Expr]| -> Option<Vec<i64>> { shape.iter().map(Expr::as_int).collect() };
    let (left, right) = (fixed(&left.shape)?, fixed(&right.shape)?);
    let ([lead @ .., m, depth], [.., n]) = (left.as_slice(), right.as_slice()) else { return None };
    let results = lead.iter().chain([m, n]).try_fold(1, |all: i64, size| all.checked_mul(*size))?;
    let products = results.checked_mul(*depth)?;
    let (of, unit) = if *m < splits.many_rows { (n, splits.panel) } else { (m, splits.block) };
    if results < 1 || products < splits.products / CLOSE {
        return None;
    }
    let units = results / (m * n) * (of.checked_add(unit - 1)? / unit);
    if units >= splits.enough * CLOSE {
        return None;
    }
    Some(Sum {
        kind: Kind::Product,
        shape: vec![],
        axes: vec![(left.len() - 1, *depth)],
        work: Cost::of(WorkKind::VectorFma, products as f64),
        results,
        inner: *depth,
        is_of_rows: true,
        by_first_axis: false,
        is_typical: products >= splits.products && units < splits.enough,
        is_near: false,
        busy: splits.units / units,
        long: depth / splits.depth,
        pieces: 1,
    })
}

/// A product as the sum of products of so many parts of its depth.
fn split_product(builder: &mut Builder, node: &Node, parts: i64) -> Option<ValueId> {
    let [a, b] = *node.inputs.as_slice() else { return None };
    let (left, right) = (builder.ty(a).shape.clone(), builder.ty(b).shape.clone());
    let ([lead @ .., m, depth], [.., n]) = (left.as_slice(), right.as_slice()) else { return None };
    let (rank, parts, rest) = (left.len(), Expr::int(parts), Expr::int(depth.as_int()? / parts));
    // Parts are a batch before the others.
    let order = |part: usize| -> Vec<usize> {
        std::iter::once(part).chain((0..=rank).filter(|axis| *axis != part)).collect()
    };
    let apart = builder.reshape(a, &[lead, &[m.clone(), parts.clone(), rest.clone()]].concat()).ok()?;
    let a = builder.permute(apart, &order(rank - 1)).ok()?;
    let apart = builder.reshape(b, &[lead, &[parts, rest, n.clone()]].concat()).ok()?;
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
mod tests;
