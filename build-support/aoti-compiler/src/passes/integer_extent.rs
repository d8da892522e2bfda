//! Between which numbers the integers of a graph lie, by their types, by what is computed of them and by the elements of constants
//! that no run may replace.

use crate::dtype::{Category, DType};
use crate::graph::{BinaryOp, Constant, ConstantSource, Graph, Node, Op, Scalar, ValueId};
use crate::interpret::Tensor;
use cranelift_entity::SecondaryMap;

/// The least and the largest number that may occur.
pub(crate) type Extent = (i64, i64);

/// Whether signed bytes hold all numbers between these.
pub(super) fn fits_signed_byte((low, high): Extent) -> bool {
    low >= i64::from(i8::MIN) && high <= i64::from(i8::MAX)
}

/// Of every value of a graph; none of numbers that are no integers.
pub(crate) fn extents(graph: &Graph) -> SecondaryMap<ValueId, Option<Extent>> {
    let mut extents: SecondaryMap<ValueId, Option<Extent>> = SecondaryMap::new();
    for input in &graph.inputs {
        extents[input.value] = of_type(graph.ty(input.value).dtype);
    }
    for node in &graph.nodes {
        for output in &node.outputs {
            let ty = of_type(graph.ty(*output).dtype);
            let own = ty.and_then(|(low, high)| {
                // What a type cannot hold wraps around.
                of_node(graph, node, &extents).filter(|own| low <= own.0 && own.1 <= high)
            });
            extents[*output] = own.or(ty);
        }
    }
    extents
}

/// The largest magnitude.
pub(super) fn reach((low, high): Extent) -> u64 {
    low.unsigned_abs().max(high.unsigned_abs())
}

/// All numbers of an integer type that `i64` holds too.
fn of_type(dtype: DType) -> Option<Extent> {
    match dtype.category() {
        Category::Bool => Some((0, 1)),
        Category::Int if dtype == DType::U64 => None,
        Category::Int => Some((Scalar::lowest(dtype).to_i64(), Scalar::highest(dtype).to_i64())),
        Category::Float => None,
    }
}

fn of_node(graph: &Graph, node: &Node, known: &SecondaryMap<ValueId, Option<Extent>>) -> Option<Extent> {
    let of = |position: usize| known[*node.inputs.get(position)?];
    match &node.op {
        Op::Constant(id) => of_constant(&graph.constants[*id]),
        Op::Full(number) => Some((number.to_i64(), number.to_i64())),
        Op::Cast | Op::View(_) => of(0),
        Op::Pad { fill, .. } => Some(joined(of(0)?, (fill.to_i64(), fill.to_i64()))),
        Op::Select => Some(joined(of(1)?, of(2)?)),
        Op::Cat { .. } => {
            let mut all = node.inputs.iter().map(|input| known[*input]);
            let first = all.next()??;
            all.try_fold(first, |whole, part| Some(joined(whole, part?)))
        }
        Op::Binary(op) => of_two(*op, of(0)?, of(1)?),
        Op::Index(_)
        | Op::Unary(_)
        | Op::Gather(_)
        | Op::Scatter { .. }
        | Op::Reduce { .. }
        | Op::Scan { .. }
        | Op::Sort { .. }
        | Op::NthElement { .. }
        | Op::SearchSorted { .. }
        | Op::Routine(_)
        | Op::Fourier(_)
        | Op::Recurrent(_)
        | Op::Extern(_)
        | Op::Collective(_)
        | Op::MatMul
        | Op::Conv(_)
        | Op::Read(_)
        | Op::Assert(_)
        | Op::Require(_)
        | Op::Cond { .. }
        | Op::While { .. } => None,
    }
}

fn joined(a: Extent, b: Extent) -> Extent {
    (a.0.min(b.0), a.1.max(b.1))
}

fn of_two(op: BinaryOp, a: Extent, b: Extent) -> Option<Extent> {
    match op {
        BinaryOp::Add => Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?)),
        BinaryOp::Sub => Some((a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?)),
        BinaryOp::Mul => {
            let corner = |a: i64, b: i64| a.checked_mul(b);
            let corners = [corner(a.0, b.0)?, corner(a.0, b.1)?, corner(a.1, b.0)?, corner(a.1, b.1)?];
            Some((corners.into_iter().min()?, corners.into_iter().max()?))
        }
        BinaryOp::Maximum | BinaryOp::Fmax => Some((a.0.max(b.0), a.1.max(b.1))),
        BinaryOp::Minimum | BinaryOp::Fmin => Some((a.0.min(b.0), a.1.min(b.1))),
        BinaryOp::FloorDiv
        | BinaryOp::TruncDiv
        | BinaryOp::Remainder
        | BinaryOp::Fmod
        | BinaryOp::Pow
        | BinaryOp::Compare(_)
        | BinaryOp::Int(_)
        | BinaryOp::Float(_)
        | BinaryOp::Special(_) => None,
    }
}

pub(crate) fn of_constant(constant: &Constant) -> Option<Extent> {
    match &constant.source {
        ConstantSource::Fixed => {
            let sizes = constant.sizes.iter().map(|size| usize::try_from(*size).ok());
            let sizes = sizes.collect::<Option<Vec<usize>>>()?;
            let numbers = Tensor::new(constant.dtype, sizes, constant.data.clone()).ok()?.to_i64()?;
            Some((numbers.iter().copied().min().unwrap_or(0), numbers.iter().copied().max().unwrap_or(0)))
        }
        // Other weights give other elements, by the same graph.
        ConstantSource::Derived { recipe, output } => extents(recipe)[recipe.outputs.get(*output)?.value],
        ConstantSource::Weight => None,
    }
}
