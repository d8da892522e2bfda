//! Rearranging elements: flips, rotations, repetition, shuffles, blocks to columns and back.

use super::registry::rules;
use super::support::{read_size, spread};
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{Combine, Coord, ReduceOp, Relation, ScanOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.flip.default" => |cx, a| { let axes = a.ints("dims")?; flip(cx, a, &axes) },
    pure "aten.fliplr.default" => |cx, a| flip(cx, a, &[1]),
    pure "aten.flipud.default" => |cx, a| flip(cx, a, &[0]),
    pure "aten.roll.default" => roll,
    pure "aten.rot90.default" => rot90,
    pure "aten.repeat.default" => |cx, a| repeat_as(cx, a, "repeats"),
    pure "aten.tile.default" => |cx, a| repeat_as(cx, a, "dims"),
    pure "aten.repeat_interleave.self_int" => repeat_each,
    pure "aten.repeat_interleave.self_Tensor" => repeat_by_data,
    pure "aten.repeat_interleave.Tensor" => repeat_positions,
    pure "aten.pixel_shuffle.default" => pixel_shuffle,
    pure "aten.pixel_unshuffle.default" => pixel_unshuffle,
    pure "aten.channel_shuffle.default" => channel_shuffle,
    pure "aten.native_channel_shuffle.default" => channel_shuffle,
    pure "aten.im2col.default" => im2col,
    pure "aten.col2im.default" => col2im,
}

fn flip(cx: &mut Context, a: &Args, axes: &[i64]) -> Rule {
    let x = a.tensor("self")?;
    if cx.b.rank(x) == 0 {
        return Ok(x.into());
    }
    let rank = cx.b.rank(x);
    let axes: Vec<usize> = axes.iter().map(|axis| Context::axis(*axis, rank)).collect::<Result<_, _>>()?;
    Ok(cx.b.flip(x, &axes)?.into())
}

fn roll(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let (shifts, axes, shape) = (a.syms("shifts")?, a.ints_or("dims", &[])?, cx.b.shape(x));
    if cx.b.ty(x).numel().is(0) {
        return Ok(x.into());
    }
    if axes.is_empty() {
        let flat = cx.flattened(x)?;
        let shift = shifts.first().cloned().unwrap_or_else(|| Expr::int(0));
        let rolled = roll_axes(cx, flat, &[(0, shift)])?;
        return Ok(cx.b.reshape(rolled, &shape)?.into());
    }
    if shape.is_empty() {
        return Ok(x.into());
    }
    let mut moves = Vec::new();
    for (axis, shift) in axes.iter().zip(&shifts) {
        moves.push((Context::axis(*axis, shape.len())?, shift.clone()));
    }
    Ok(roll_axes(cx, x, &moves)?.into())
}

fn roll_axes(cx: &mut Context, x: ValueId, moves: &[(usize, Expr)]) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(x);
    let ranges = cx.b.axis_ranges(&shape);
    let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
    for (axis, shift) in moves {
        coords[*axis] = (&coords[*axis] - shift).modulo_in(&shape[*axis], &ranges);
    }
    Ok(cx.b.view(x, &shape, coords)?)
}

fn rot90(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let dims = a.ints_or("dims", &[0, 1])?;
    let [first, second] = dims.as_slice() else {
        return Err(RuleError::Malformed("a rotation has two axes".to_owned()));
    };
    let (first, second) = (Context::axis(*first, cx.b.rank(x))?, Context::axis(*second, cx.b.rank(x))?);
    let flipped = match a.int_or("k", 1)?.rem_euclid(4) {
        0 => return Ok(x.into()),
        1 => cx.b.flip(x, &[second])?,
        2 => return Ok(cx.b.flip(x, &[first, second])?.into()),
        _ => cx.b.flip(x, &[first])?,
    };
    Ok(cx.b.transpose(flipped, first, second)?.into())
}

fn repeat_as(cx: &mut Context, a: &Args, name: &str) -> Rule {
    let (x, times) = (a.tensor("self")?, a.syms(name)?);
    Ok(repeat(cx, x, times)?.into())
}

/// A tensor so many times along each axis; axes that the tensor lacks are in front.
pub(crate) fn repeat(cx: &mut Context, x: ValueId, mut times: Vec<Expr>) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(x);
    while times.len() < own.len() {
        times.insert(0, Expr::int(1));
    }
    let lead = times.len() - own.len();
    let mut shape = times;
    for (size, kept) in shape[lead..].iter_mut().zip(&own) {
        *size = &*size * kept;
    }
    if Expr::product(&shape).is(0) {
        let dtype = cx.b.dtype(x);
        return Ok(cx.b.full(0i64, dtype, &shape));
    }
    let ranges = cx.b.axis_ranges(&shape);
    let coords =
        own.iter().enumerate().map(|(k, size)| Expr::axis(k + lead).modulo_in(size, &ranges)).collect();
    Ok(cx.b.view(x, &shape, coords)?)
}

/// The axis along which to repeat: the flattened tensor's where none is given.
fn repeated_axis(cx: &mut Context, a: &Args) -> Result<(ValueId, usize), RuleError> {
    let x = a.tensor("self")?;
    match a.opt_int("dim")? {
        Some(axis) => {
            let x = cx.at_least_1d(x)?;
            Ok((x, Context::axis(axis, cx.b.rank(x))?))
        }
        None => Ok((cx.flattened(x)?, 0)),
    }
}

fn repeat_each(cx: &mut Context, a: &Args) -> Rule {
    let (x, axis) = repeated_axis(cx, a)?;
    let times = a.sym("repeats")?;
    let mut shape = cx.b.shape(x);
    shape[axis] = &shape[axis] * &times;
    if Expr::product(&shape).is(0) {
        let dtype = cx.b.dtype(x);
        return Ok(cx.b.full(0i64, dtype, &shape).into());
    }
    let ranges = cx.b.axis_ranges(&shape);
    let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
    coords[axis] = Expr::axis(axis).floor_div_in(&times, &ranges);
    Ok(cx.b.view(x, &shape, coords)?.into())
}

/// For each of the repeated positions, the position it comes from.
fn sources(cx: &mut Context, a: &Args, repeats: ValueId, axis: usize) -> Result<ValueId, RuleError> {
    let repeats = cx.b.cast(repeats, DType::I64);
    let counts = cx.with_number(Relation::Ge, repeats, 0i64)?;
    let all = cx.b.reduce(ReduceOp::All, counts, &[0], false)?;
    cx.b.assert(all, "a count of `repeat_interleave` is negative")?;
    let ends = cx.b.scan(ScanOp::Sum, repeats, 0)?[0];
    let size = match (a.opt_sym("output_size")?, a.output_meta(0).and_then(|meta| meta.sizes.get(axis))) {
        (Some(size), _) => {
            let total = cx.b.reduce(ReduceOp::Sum, repeats, &[0], false)?;
            let stated = cx.b.index(size.clone(), &[]);
            let is_all = cx.binary(Relation::Eq, total, stated)?;
            cx.b.assert(is_all, "`output_size` of `repeat_interleave` is not the sum of its counts")?;
            size
        }
        (None, Some(size)) => {
            let number = cx.b.shape(repeats)[0].clone();
            let total = cx.b.pick(ends, 0, &(&number - 1))?;
            read_size(cx, total, size, None)?;
            size.clone()
        }
        (None, None) => return Err(RuleError::unsupported("the size of the result is not described")),
    };
    let positions = cx.b.index(Expr::axis(0), &[size]);
    Ok(cx.b.search_sorted(ends, positions, true)?)
}

fn repeat_by_data(cx: &mut Context, a: &Args) -> Rule {
    let (x, axis) = repeated_axis(cx, a)?;
    let own = cx.b.shape(x);
    let repeats = cx.flattened(a.tensor("repeats")?)?;
    let repeats = cx.b.expand(repeats, &[own[axis].clone()])?;
    let sources = sources(cx, a, repeats, axis)?;
    let mut shape = own;
    shape[axis] = cx.b.shape(sources)[0].clone();
    let coords = (0..shape.len())
        .map(|k| if k == axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) })
        .collect();
    let index = cx.trailing_ones(sources, shape.len() - axis)?;
    Ok(cx.b.gather(x, &[index], coords, &shape)?.into())
}

fn repeat_positions(cx: &mut Context, a: &Args) -> Rule {
    let repeats = a.tensor("repeats")?;
    let dtype = cx.b.dtype(repeats);
    let sources = sources(cx, a, repeats, 0)?;
    Ok(cx.b.cast(sources, dtype).into())
}

fn pixel_shuffle(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let factor = Expr::int(a.int("upscale_factor")?);
    let rank = cx.b.rank(x);
    if rank < 3 {
        return Err(RuleError::Malformed("images have at least three axes".to_owned()));
    }
    let c = rank - 3;
    let channels = cx.b.shape(x)[c].floor_div(&(&factor * &factor));
    let split = cx.split_axis(x, c, &[channels, factor.clone(), factor])?;
    // [.., c, r, r, h, w] -> [.., c, h, r, w, r]
    let mut order: Vec<usize> = (0..c).collect();
    order.extend([c, c + 3, c + 1, c + 4, c + 2]);
    let mixed = cx.b.permute(split, &order)?;
    let merged = cx.merge_axes(mixed, c + 3, c + 5)?;
    Ok(cx.merge_axes(merged, c + 1, c + 3)?.into())
}

fn pixel_unshuffle(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let factor = Expr::int(a.int("downscale_factor")?);
    let shape = cx.b.shape(x);
    if shape.len() < 3 {
        return Err(RuleError::Malformed("images have at least three axes".to_owned()));
    }
    let c = shape.len() - 3;
    let height = shape[c + 1].floor_div_in(&factor, cx.b.ranges());
    let width = shape[c + 2].floor_div_in(&factor, cx.b.ranges());
    let split = cx.split_axis(x, c + 2, &[width, factor.clone()])?;
    let split = cx.split_axis(split, c + 1, &[height, factor])?;
    // [.., c, h, r, w, r] -> [.., c, r, r, h, w]
    let mut order: Vec<usize> = (0..c).collect();
    order.extend([c, c + 2, c + 4, c + 1, c + 3]);
    let mixed = cx.b.permute(split, &order)?;
    Ok(cx.merge_axes(mixed, c, c + 3)?.into())
}

fn channel_shuffle(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let groups = a.sym("groups")?;
    let shape = cx.b.shape(x);
    if shape.len() < 2 {
        return Err(RuleError::Malformed("channels are axis 1".to_owned()));
    }
    let each = shape[1].floor_div_in(&groups, cx.b.ranges());
    let split = cx.split_axis(x, 1, &[groups, each])?;
    let mixed = cx.b.transpose(split, 1, 2)?;
    Ok(cx.merge_axes(mixed, 1, 3)?.into())
}

/// Window parameters of the two image axes.
struct Blocks {
    kernel: Vec<i64>,
    dilation: Vec<i64>,
    padding: Vec<i64>,
    stride: Vec<i64>,
}

fn blocks(a: &Args) -> Result<Blocks, RuleError> {
    let pair = |name: &str| spread(&a.ints(name)?, 2);
    Ok(Blocks {
        kernel: pair("kernel_size")?,
        dilation: pair("dilation")?,
        padding: pair("padding")?,
        stride: pair("stride")?,
    })
}

fn im2col(cx: &mut Context, a: &Args) -> Rule {
    let mut x = a.tensor("self")?;
    let blocks = blocks(a)?;
    let unbatched = cx.b.rank(x) == 3;
    if unbatched {
        x = cx.batched(x)?;
    }
    let mut amounts = vec![(Expr::int(0), Expr::int(0)); 2];
    amounts.extend(blocks.padding.iter().map(|p| (Expr::int(*p), Expr::int(*p))));
    let mut windows = cx.b.pad(x, &amounts, 0i64)?;
    for k in 0..2 {
        windows = cx.b.windows(windows, 2 + k, blocks.kernel[k], blocks.stride[k], blocks.dilation[k])?;
    }
    let ordered = cx.b.permute(windows, &[0, 1, 4, 5, 2, 3])?;
    let ordered = cx.merge_axes(ordered, 4, 6)?;
    let columns = cx.merge_axes(ordered, 1, 4)?;
    Ok(if unbatched { cx.b.squeeze(columns, &[0])? } else { columns }.into())
}

/// Sums blocks where they overlap.
fn col2im(cx: &mut Context, a: &Args) -> Rule {
    let mut x = a.tensor("self")?;
    let (blocks, output) = (blocks(a)?, a.syms("output_size")?);
    let unbatched = cx.b.rank(x) == 2;
    if unbatched {
        x = cx.batched(x)?;
    }
    let [height, width] = output.as_slice() else {
        return Err(RuleError::Malformed("an image has two sizes".to_owned()));
    };
    let sizes = [height, width];
    let mut counts = Vec::new();
    for k in 0..2 {
        let span = blocks.dilation[k] * (blocks.kernel[k] - 1) + 1;
        let room = sizes[k] + (2 * blocks.padding[k] - span);
        counts.push(&room.floor_div_in(&Expr::int(blocks.stride[k]), cx.b.ranges()) + 1);
    }
    let own = cx.b.shape(x);
    let taps = [Expr::int(blocks.kernel[0]), Expr::int(blocks.kernel[1])];
    let channels = own[1].floor_div(&(&taps[0] * &taps[1]));
    let shape =
        [own[0].clone(), channels, taps[0].clone(), taps[1].clone(), counts[0].clone(), counts[1].clone()];
    let x = cx.b.reshape(x, &shape)?;
    let dtype = cx.b.dtype(x);
    let x = cx.b.cast(x, dtype.compute());
    let padded: Vec<Expr> = (0..2).map(|k| sizes[k] + 2 * blocks.padding[k]).collect();
    let base_shape = [shape[0].clone(), shape[1].clone(), padded[0].clone(), padded[1].clone()];
    let base = cx.b.full(0i64, dtype.compute(), &base_shape);
    let place = |k: usize| {
        Coord::Expr(&(&Expr::axis(4 + k) * blocks.stride[k]) + &(&Expr::axis(2 + k) * blocks.dilation[k]))
    };
    let coords = vec![Coord::Expr(Expr::axis(0)), Coord::Expr(Expr::axis(1)), place(0), place(1)];
    let mut image = cx.b.scatter(base, x, &[], coords, Combine::Add)?;
    for k in 0..2 {
        image = cx.b.slice(image, 2 + k, &Expr::int(blocks.padding[k]), sizes[k], 1)?;
    }
    image = cx.b.cast(image, dtype);
    Ok(if unbatched { cx.b.squeeze(image, &[0])? } else { image }.into())
}
