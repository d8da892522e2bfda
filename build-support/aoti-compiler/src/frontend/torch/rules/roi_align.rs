//! What torchvision takes out of regions of images: averages of samples, of all channels or of the channels that belong
//! to a bin; the ground for pools.
//!
//! A region of interest is divided into bins. Where the number of samples of a bin follows from the region, all bins
//! go through theirs together, in as many steps as the largest needs.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::steps::{Values, repeat};
use crate::graph::{BinaryOp, Coord, IntBinary, ReduceOp, Relation, Rounding, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "torchvision.roi_align.default" => |cx, a| {
        let by = Sampling {
            ratio: a.int_or("sampling_ratio", -1)?,
            is_aligned: a.bool_or("aligned", false)?,
            samples: Samples::Average,
        };
        Ok(roi_align(cx, &Regions::read(a)?, by)?.into())
    },
    pure "torchvision.ps_roi_align.default" => ps_roi_align,
}

/// Which channels of the image a bin is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channels {
    /// All of them.
    All,
    /// One of as many groups as there are bins (position-sensitive).
    OfBin,
}

/// What becomes of the samples of a bin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Samples {
    /// Their average, each interpolated between elements.
    Average,
    /// The largest of the weighted elements that they would be made of, as ONNX has it.
    #[cfg_attr(not(feature = "onnx"), expect(dead_code, reason = "no operator of torchvision asks for it"))]
    Largest,
}

/// Regions of images, and how they are divided.
pub(crate) struct Regions {
    /// `[n, c, h, w]`.
    pub(crate) image: ValueId,
    /// Rows of the number of an image and the region's edges in it.
    pub(crate) rois: ValueId,
    /// What edges are multiplied by.
    pub(crate) scale: f64,
    /// Rows and columns of bins.
    pub(crate) bins: [Expr; 2],
}

impl Regions {
    pub(crate) fn read(a: &Args) -> Result<Regions, RuleError> {
        Ok(Regions {
            image: a.tensor("input")?,
            rois: a.tensor("rois")?,
            scale: a.float_or("spatial_scale", 1.0)?,
            bins: [a.sym("pooled_height")?, a.sym("pooled_width")?],
        })
    }
}

/// The operands of a call. Values that belong to regions have the shape `[regions, 1, 1, 1]`, those of rows of bins
/// `[regions, 1, rows, 1]`, and those of columns `[regions, 1, 1, columns]`.
pub(crate) struct Call {
    /// The image in its computing type, `[n, c, h, w]`.
    pub(crate) image: ValueId,
    /// Rows and columns of the image.
    pub(crate) extents: [Expr; 2],
    pub(crate) dtype: DType,
    /// Which image each region is of.
    pub(crate) batch: ValueId,
    /// Where regions begin and end, as the call scales them: first along y, then along x.
    pub(crate) low: [ValueId; 2],
    pub(crate) high: [ValueId; 2],
    pub(crate) channels: Channels,
    pub(crate) samples: Samples,
    /// Regions, channels, rows of bins, columns of bins.
    pub(crate) shape: Vec<Expr>,
}

/// One axis of all regions' bins.
#[derive(Clone, Copy)]
pub(crate) struct Axis {
    /// Where each bin begins.
    pub(crate) start: ValueId,
    /// How far each sample is from the one before it; of pools, where each bin ends.
    pub(crate) step: ValueId,
    /// How many samples there are.
    pub(crate) count: ValueId,
}

impl Call {
    pub(crate) fn new(cx: &mut Context, of: &Regions, channels: Channels) -> Result<Call, RuleError> {
        let (image, rois) = (of.image, of.rois);
        if cx.b.rank(image) != 4 || cx.b.rank(rois) != 2 {
            return Err(RuleError::Malformed("images have four axes and regions are rows".to_owned()));
        }
        let dtype = cx.b.dtype(image);
        let wide = dtype.compute();
        let (image, rois) = (cx.b.cast(image, wide), cx.b.cast(rois, wide));
        let regions = cx.b.shape(rois)[0].clone();
        let [rows, columns] = of.bins.clone();
        let own = cx.b.shape(image);
        let mut planes = own[1].clone();
        if channels == Channels::OfBin {
            planes = planes.floor_div_in(&(&rows * &columns), cx.b.ranges());
        }
        let column = |cx: &mut Context, k: i64| {
            let column = cx.b.pick(rois, 1, &Expr::int(k))?;
            cx.trailing_ones(column, 4)
        };
        let batch = column(cx, 0)?;
        let batch = cx.b.cast(batch, DType::I64);
        let mut edges = Vec::new();
        for k in [2, 1, 4, 3] {
            let edge = column(cx, k)?;
            edges.push(cx.with_number(BinaryOp::Mul, edge, of.scale)?);
        }
        let shape = vec![regions, planes, rows, columns];
        Ok(Call {
            image,
            extents: [own[2].clone(), own[3].clone()],
            dtype,
            batch,
            low: [edges[0], edges[1]],
            high: [edges[2], edges[3]],
            channels,
            samples: Samples::Average,
            shape,
        })
    }

    /// The numbers of the bins along an axis.
    pub(crate) fn bins(&self, cx: &mut Context, axis: usize) -> Result<ValueId, RuleError> {
        let mut shape = vec![Expr::int(1); 4];
        shape[axis + 2] = self.shape[axis + 2].clone();
        let numbers = cx.b.index(Expr::axis(axis + 2), &shape);
        Ok(cx.b.cast(numbers, self.dtype.compute()))
    }

    /// The number of bins along an axis.
    pub(crate) fn bin_count(&self, cx: &mut Context, axis: usize) -> ValueId {
        let count = cx.b.index(self.shape[axis + 2].clone(), &[]);
        cx.b.cast(count, self.dtype.compute())
    }

    /// The size of the image along an axis, less `by`.
    pub(crate) fn extent(&self, cx: &mut Context, axis: usize, by: i64, dtype: DType) -> ValueId {
        let size = cx.b.index(&self.extents[axis] - by, &[]);
        cx.b.cast(size, dtype)
    }

    /// The image's elements at whole positions inside it, given in the shape of the result.
    pub(crate) fn elements(
        &self,
        cx: &mut Context,
        image: ValueId,
        batch: ValueId,
        at: [ValueId; 2],
        shape: &[Expr],
    ) -> Result<ValueId, RuleError> {
        let plane = match self.channels {
            Channels::All => Expr::axis(1),
            Channels::OfBin => {
                let row = &(&Expr::axis(1) * &self.shape[2]) + &Expr::axis(2);
                &(&row * &self.shape[3]) + &Expr::axis(3)
            }
        };
        let coords = vec![Coord::Indirect(0), Coord::Expr(plane), Coord::Indirect(1), Coord::Indirect(2)];
        Ok(cx.b.gather(image, &[batch, at[0], at[1]], coords, shape)?)
    }

    /// The result in the type of the image, beside which channel each of its elements is of, where that is asked for.
    pub(crate) fn results(&self, cx: &mut Context, result: ValueId) -> Outputs {
        let result = cx.b.cast(result, self.dtype);
        if self.channels == Channels::All {
            return Outputs::One(result);
        }
        let row = &(&Expr::axis(1) * &self.shape[2]) + &Expr::axis(2);
        let plane = &(&row * &self.shape[3]) + &Expr::axis(3);
        let mapping = cx.b.index(plane, &self.shape);
        Outputs::Many(vec![Some(result), Some(cx.b.cast(mapping, DType::I32))])
    }
}

/// The samples of each bin: how many there are along an axis (as many as the bin has elements where that is not positive), whether
/// regions begin half an element earlier, and what becomes of the samples.
#[derive(Clone, Copy)]
pub(crate) struct Sampling {
    pub(crate) ratio: i64,
    pub(crate) is_aligned: bool,
    pub(crate) samples: Samples,
}

/// What the samples of each bin of regions make.
pub(crate) fn roi_align(cx: &mut Context, regions: &Regions, by: Sampling) -> Result<ValueId, RuleError> {
    let call = Call { samples: by.samples, ..Call::new(cx, regions, Channels::All)? };
    let axes = sampled_axes(cx, &call, by, by.is_aligned)?;
    let rows_columns = cx.mul(axes[0].count, axes[1].count)?;
    let count = cx.with_number(BinaryOp::Maximum, rows_columns, 1.0)?;
    let result = sampled(cx, &call, axes, by, count)?;
    Ok(cx.b.cast(result, call.dtype))
}

fn ps_roi_align(cx: &mut Context, a: &Args) -> Rule {
    let call = Call::new(cx, &Regions::read(a)?, Channels::OfBin)?;
    let ratio = a.int_or("sampling_ratio", -1)?;
    let by = Sampling { ratio, is_aligned: true, samples: Samples::Average };
    let axes = sampled_axes(cx, &call, by, true)?;
    let count = cx.mul(axes[0].count, axes[1].count)?;
    let result = sampled(cx, &call, axes, by, count)?;
    Ok(call.results(cx, result))
}

/// Where the samples of each bin are: `start + (k + 1/2) * step`. Regions begin half an element earlier where they are
/// aligned, and may be empty only then.
fn sampled_axes(
    cx: &mut Context,
    call: &Call,
    by: Sampling,
    may_be_empty: bool,
) -> Result<[Axis; 2], RuleError> {
    let mut axes = Vec::new();
    for axis in 0..2 {
        let offset = if by.is_aligned { 0.5 } else { 0.0 };
        let low = cx.with_number(BinaryOp::Sub, call.low[axis], offset)?;
        let high = cx.with_number(BinaryOp::Sub, call.high[axis], offset)?;
        let mut length = cx.sub(high, low)?;
        if !may_be_empty {
            length = cx.with_number(BinaryOp::Maximum, length, 1.0)?;
        }
        let bins = call.bin_count(cx, axis);
        let width = cx.div(length, bins)?;
        let number = call.bins(cx, axis)?;
        let distance = cx.mul(number, width)?;
        let start = cx.add(low, distance)?;
        let count =
            if by.ratio > 0 { cx.b.full_like(by.ratio, width) } else { cx.unary(Rounding::Ceil, width) };
        axes.push(Axis { start, step: width, count });
    }
    Ok([axes[0], axes[1]])
}

/// The average of the samples of each bin, or the largest of what they are made of.
fn sampled(
    cx: &mut Context,
    call: &Call,
    axes: [Axis; 2],
    by: Sampling,
    count: ValueId,
) -> Result<ValueId, RuleError> {
    let all = if by.ratio > 0 { of_fixed(cx, call, axes, by.ratio)? } else { of_counted(cx, call, axes)? };
    match call.samples {
        Samples::Average => cx.div(all, count),
        Samples::Largest => Ok(all),
    }
}

/// Position of sample `k` of each bin.
fn sample_at(cx: &mut Context, axis: Axis, k: ValueId) -> Result<ValueId, RuleError> {
    let middle = cx.with_number(BinaryOp::Add, k, 0.5)?;
    let product = cx.mul(middle, axis.step)?;
    let distance = cx.div(product, axis.count)?;
    cx.add(axis.start, distance)
}

/// As many samples in every bin: two more axes, summed.
fn of_fixed(cx: &mut Context, call: &Call, axes: [Axis; 2], ratio: i64) -> Result<ValueId, RuleError> {
    let mut shape = call.shape.clone();
    shape.extend([Expr::int(ratio), Expr::int(ratio)]);
    let mut at = Vec::new();
    for (k, axis) in axes.into_iter().enumerate() {
        let mut own = vec![Expr::int(1); 6];
        own[k + 4] = Expr::int(ratio);
        let number = cx.b.index(Expr::axis(k + 4), &own);
        let number = cx.b.cast(number, call.dtype.compute());
        let [start, step, count] = [axis.start, axis.step, axis.count];
        let spread = |cx: &mut Context, value| cx.trailing_ones(value, 6);
        let axis = Axis { start: spread(cx, start)?, step: spread(cx, step)?, count: spread(cx, count)? };
        at.push(sample_at(cx, axis, number)?);
    }
    let batch = cx.trailing_ones(call.batch, 6)?;
    let samples = interpolated(cx, call, call.image, batch, [at[0], at[1]], &shape)?;
    match call.samples {
        Samples::Average => cx.sum(samples, &[4, 5], false),
        Samples::Largest => Ok(cx.b.reduce(ReduceOp::Max, samples, &[4, 5], false)?),
    }
}

/// The largest of the counts of all bins, at least 0, as an integer without axes.
fn most(cx: &mut Context, count: ValueId) -> Result<ValueId, RuleError> {
    let count = cx.b.cast(count, DType::I64);
    // Of no regions there is no largest.
    let flat = cx.flattened(count)?;
    let zero = cx.b.full(0i64, DType::I64, &[Expr::int(1)]);
    let all = cx.b.cat(&[flat, zero], 0)?;
    Ok(cx.b.reduce(ReduceOp::Max, all, &[0], false)?)
}

/// What is done with a cell: its row and column, whether each bin has it, carried and captured values.
type Cell<'f> =
    dyn FnMut(&mut Context, [ValueId; 2], ValueId, &[ValueId], &[ValueId]) -> Values<Context> + 'f;

/// Goes through the cells of all bins together, row by row; `step` gets the cell's row and column and whether each bin
/// has it.
pub(crate) fn over_cells(
    cx: &mut Context,
    name: &str,
    counts: [ValueId; 2],
    carried: &[ValueId],
    captured: &[ValueId],
    step: &mut Cell<'_>,
) -> Values<Context> {
    let (rows, columns) = (most(cx, counts[0])?, most(cx, counts[1])?);
    let total = cx.mul(rows, columns)?;
    let captured = [&[counts[0], counts[1], columns], captured].concat();
    repeat(cx, name, total, carried, &captured, &mut |cx, number, carried, captured| {
        let columns = cx.with_number(BinaryOp::Maximum, captured[2], 1i64)?;
        let cell = [
            cx.binary(BinaryOp::FloorDiv, number, columns)?,
            cx.binary(BinaryOp::Remainder, number, columns)?,
        ];
        let mut has = Vec::new();
        for k in 0..2 {
            let count = cx.b.cast(captured[k], DType::I64);
            has.push(cx.binary(Relation::Lt, cell[k], count)?);
        }
        let has = cx.binary(IntBinary::And, has[0], has[1])?;
        step(cx, cell, has, carried, &captured[3..])
    })
}

/// Each bin with as many samples as it wants.
fn of_counted(cx: &mut Context, call: &Call, axes: [Axis; 2]) -> Result<ValueId, RuleError> {
    let (op, none) = match call.samples {
        Samples::Average => (BinaryOp::Add, 0.0),
        Samples::Largest => (BinaryOp::Maximum, f64::NEG_INFINITY),
    };
    let start = cx.b.full(none, call.dtype.compute(), &call.shape);
    let captured = [
        call.image,
        call.batch,
        axes[0].start,
        axes[0].step,
        axes[0].count,
        axes[1].start,
        axes[1].step,
        axes[1].count,
    ];
    let counts = [axes[0].count, axes[1].count];
    let all =
        over_cells(cx, "sample", counts, &[start], &captured, &mut |cx, cell, has, carried, captured| {
            let mut at = Vec::new();
            for (k, number) in cell.into_iter().enumerate() {
                let number = cx.b.cast(number, call.dtype.compute());
                let [start, step, count] = [captured[3 * k + 2], captured[3 * k + 3], captured[3 * k + 4]];
                at.push(sample_at(cx, Axis { start, step, count }, number)?);
            }
            let sample = interpolated(cx, call, captured[0], captured[1], [at[0], at[1]], &call.shape)?;
            let none = cx.b.full_like(none, sample);
            let sample = cx.b.select(has, sample, none)?;
            Ok(vec![cx.binary(op, carried[0], sample)?])
        })?;
    if call.samples == Samples::Average {
        return Ok(all[0]);
    }
    // Bins without samples are zero.
    let none = cx.with_number(Relation::Eq, all[0], f64::NEG_INFINITY)?;
    let zero = cx.b.full_like(0.0, all[0]);
    Ok(cx.b.select(none, zero, all[0])?)
}

/// The image between its elements; zero further than one element outside.
fn interpolated(
    cx: &mut Context,
    call: &Call,
    image: ValueId,
    batch: ValueId,
    at: [ValueId; 2],
    shape: &[Expr],
) -> Result<ValueId, RuleError> {
    let wide = call.dtype.compute();
    let (mut inside, mut taps) = (None, Vec::new());
    for (axis, at) in at.into_iter().enumerate() {
        let size = call.extent(cx, axis, 0, wide);
        let last = call.extent(cx, axis, 1, wide);
        let above = cx.with_number(Relation::Ge, at, -1.0)?;
        let below = cx.binary(Relation::Le, at, size)?;
        let both = cx.binary(IntBinary::And, above, below)?;
        inside = Some(match inside {
            Some(inside) => cx.binary(IntBinary::And, inside, both)?,
            None => both,
        });
        let zero = cx.b.full_like(0.0, at);
        let at = cx.binary(BinaryOp::Fmax, at, zero)?;
        let at = cx.binary(BinaryOp::Minimum, at, last)?;
        let low = cx.unary(Rounding::Floor, at);
        let after = cx.with_number(BinaryOp::Add, low, 1.0)?;
        let high = cx.binary(BinaryOp::Minimum, after, last)?;
        let high_weight = cx.sub(at, low)?;
        let one = cx.b.full_like(1.0, high_weight);
        let low_weight = cx.sub(one, high_weight)?;
        let (low, high) = (cx.b.cast(low, DType::I64), cx.b.cast(high, DType::I64));
        taps.push([(low, low_weight), (high, high_weight)]);
    }
    let mut sum = None;
    for (y, y_weight) in taps[0] {
        for (x, x_weight) in taps[1] {
            let weight = cx.mul(y_weight, x_weight)?;
            let value = call.elements(cx, image, batch, [y, x], shape)?;
            let term = cx.mul(weight, value)?;
            let op = match call.samples {
                Samples::Average => BinaryOp::Add,
                Samples::Largest => BinaryOp::Maximum,
            };
            sum = Some(match sum {
                Some(sum) => cx.binary(op, sum, term)?,
                None => term,
            });
        }
    }
    let sum = sum.expect("there are four taps");
    let zero = cx.b.full_like(0.0, sum);
    Ok(cx.b.select(inside.expect("there are two axes"), sum, zero)?)
}
