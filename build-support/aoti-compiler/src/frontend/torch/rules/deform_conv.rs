//! Deformable convolution (`torchvision.ops.deform_conv2d`): every tap of every window has an offset of its own.

use super::registry::rules;
use super::{Args, Context, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Coord, IntBinary, Relation, Rounding, ValueId};
use crate::symbolic::Expr;

rules! {
    pure "torchvision.deform_conv2d.default" => |cx, a| Ok(convolve(cx, &read(a)?)?.into()),
}

/// One axis of the windows.
struct Axis {
    stride: i64,
    padding: i64,
    dilation: i64,
    /// The size of the window.
    taps: Expr,
}

/// A deformable convolution of images, `[n, c, h, w]`.
pub(crate) struct DeformConv {
    pub(crate) image: ValueId,
    pub(crate) weight: ValueId,
    pub(crate) offset: ValueId,
    pub(crate) mask: Option<ValueId>,
    pub(crate) bias: ValueId,
    /// Along y and x, as what follows.
    pub(crate) stride: [i64; 2],
    pub(crate) padding: [i64; 2],
    pub(crate) dilation: [i64; 2],
    pub(crate) groups: i64,
    pub(crate) offset_groups: i64,
}

struct Call {
    /// `[n, c, h, w]`.
    image: ValueId,
    axes: [Axis; 2],
    /// How many channels share offsets.
    per_offset: Expr,
    /// Images, channels, taps along y and x, rows and columns of the result.
    shape: Vec<Expr>,
}

fn read(a: &Args) -> Result<DeformConv, RuleError> {
    let pair = |name: &str| -> Result<[i64; 2], RuleError> {
        Ok([a.int(&format!("{name}_h"))?, a.int(&format!("{name}_w"))?])
    };
    Ok(DeformConv {
        image: a.tensor("input")?,
        weight: a.tensor("weight")?,
        offset: a.tensor("offset")?,
        mask: a.bool_or("use_mask", false)?.then(|| a.tensor("mask")).transpose()?,
        bias: a.tensor("bias")?,
        stride: pair("stride")?,
        padding: pair("pad")?,
        dilation: pair("dilation")?,
        groups: a.int("groups")?,
        offset_groups: a.int("offset_groups")?,
    })
}

pub(crate) fn convolve(cx: &mut Context, of: &DeformConv) -> Result<ValueId, RuleError> {
    let (image, weight) = (of.image, of.weight);
    let dtype = cx.b.dtype(image);
    let wide = dtype.compute();
    let (image, weight) = (cx.b.cast(image, wide), cx.b.cast(weight, wide));
    let (own, taps) = (cx.b.shape(image), cx.b.shape(weight));
    if own.len() != 4 || taps.len() != 4 {
        return Err(RuleError::Malformed("the image and the weight have four axes".to_owned()));
    }
    if of.groups <= 0 || of.offset_groups <= 0 {
        return Err(RuleError::Malformed("groups must be positive".to_owned()));
    }
    let axes = [0, 1].map(|k| {
        let taps = taps[2 + k].clone();
        Axis { stride: of.stride[k], padding: of.padding[k], dilation: of.dilation[k], taps }
    });
    let placed = cx.b.shape(of.offset);
    if placed.len() != 4 {
        return Err(RuleError::Malformed("offsets have four axes".to_owned()));
    }
    let per_offset = own[1].floor_div_in(&Expr::int(of.offset_groups), cx.b.ranges());
    let shape = [&own[..2], &taps[2..], &placed[2..]].concat();
    let call = Call { image, axes, per_offset, shape };
    let mut columns = call.columns(cx, of.offset)?;
    if let Some(mask) = of.mask {
        let mask = cx.b.cast(mask, wide);
        let mask = call.of_taps(cx, mask, |tap| tap)?;
        columns = cx.mul(columns, mask)?;
    }
    let result = call.product(cx, columns, weight, of.groups)?;
    let bias = cx.b.cast(of.bias, wide);
    let bias = cx.trailing_ones(bias, 3)?;
    let result = cx.add(result, bias)?;
    Ok(cx.b.cast(result, dtype))
}

impl Call {
    /// What a tensor `[n, groups * taps, rows, columns]` has for each tap of each window.
    fn of_taps(
        &self,
        cx: &mut Context,
        x: ValueId,
        channel: impl FnOnce(Expr) -> Expr,
    ) -> Result<ValueId, RuleError> {
        let group = Expr::axis(1).floor_div_in(&self.per_offset, &cx.b.axis_ranges(&self.shape));
        let row = &(&group * &self.axes[0].taps) + &Expr::axis(2);
        let tap = &(&row * &self.axes[1].taps) + &Expr::axis(3);
        let coords = vec![Expr::axis(0), channel(tap), Expr::axis(4), Expr::axis(5)];
        Ok(cx.b.view(x, &self.shape, coords)?)
    }

    /// The image at each tap of each window.
    fn columns(&self, cx: &mut Context, offset: ValueId) -> Result<ValueId, RuleError> {
        let wide = cx.b.dtype(self.image);
        let offset = cx.b.cast(offset, wide);
        let mut taps = Vec::new();
        for (k, axis) in self.axes.iter().enumerate() {
            let place = &(&Expr::axis(4 + k) * axis.stride) + &(&Expr::axis(2 + k) * axis.dilation);
            let place = cx.b.index(&place - axis.padding, &self.shape);
            let place = cx.b.cast(place, wide);
            let k_last = i64::try_from(k).expect("there are two axes");
            let moved = self.of_taps(cx, offset, |tap| &(&tap * 2) + k_last)?;
            let at = cx.add(place, moved)?;
            taps.push(self.neighbours(cx, k, at)?);
        }
        let mut sum = None;
        for y in &taps[0] {
            for x in &taps[1] {
                let inside = cx.binary(IntBinary::And, y.inside, x.inside)?;
                let coords = vec![
                    Coord::Expr(Expr::axis(0)),
                    Coord::Expr(Expr::axis(1)),
                    Coord::Indirect(0),
                    Coord::Indirect(1),
                ];
                let value = cx.b.gather(self.image, &[y.index, x.index], coords, &self.shape)?;
                let zero = cx.b.full_like(0.0, value);
                let value = cx.b.select(inside, value, zero)?;
                let weight = cx.mul(y.weight, x.weight)?;
                let term = cx.mul(weight, value)?;
                sum = Some(match sum {
                    Some(sum) => cx.add(sum, term)?,
                    None => term,
                });
            }
        }
        Ok(sum.expect("there are four neighbours"))
    }

    /// The two elements around a position along an axis.
    fn neighbours(&self, cx: &mut Context, axis: usize, at: ValueId) -> Result<[Neighbour; 2], RuleError> {
        let wide = cx.b.dtype(at);
        let last = &cx.b.shape(self.image)[axis + 2] - 1;
        let last = cx.b.index(last, &[]);
        let last = cx.b.cast(last, wide);
        let low = cx.unary(Rounding::Floor, at);
        let high = cx.with_number(BinaryOp::Add, low, 1.0)?;
        let high_weight = cx.sub(at, low)?;
        let one = cx.b.full_like(1.0, at);
        let low_weight = cx.sub(one, high_weight)?;
        let neighbour = |cx: &mut Context, at, weight| -> Result<Neighbour, RuleError> {
            let above = cx.with_number(Relation::Ge, at, 0.0)?;
            let below = cx.binary(Relation::Le, at, last)?;
            let inside = cx.binary(IntBinary::And, above, below)?;
            let zero = cx.b.full_like(0.0, at);
            // Whatever is outside, NaN included, must not reach the conversion to an integer, nor its weight the sum.
            let safe = cx.b.select(inside, at, zero)?;
            let weight = cx.b.select(inside, weight, zero)?;
            Ok(Neighbour { index: cx.b.cast(safe, DType::I64), weight, inside })
        };
        Ok([neighbour(cx, low, low_weight)?, neighbour(cx, high, high_weight)?])
    }

    /// `[n, c, taps…, rows, columns]` times the weight `[out, c / groups, taps…]`, group by group.
    fn product(
        &self,
        cx: &mut Context,
        columns: ValueId,
        weight: ValueId,
        groups: i64,
    ) -> Result<ValueId, RuleError> {
        let [n, c, _, _, rows, width] = self.shape.as_slice() else {
            return Err(RuleError::Malformed("windows have six axes".to_owned()));
        };
        let out = cx.b.shape(weight)[0].clone();
        let group = Expr::int(groups);
        let taps = &self.axes[0].taps * &self.axes[1].taps;
        let depth = &c.floor_div_in(&group, cx.b.ranges()) * &taps;
        let positions = rows * width;
        let columns = cx.b.reshape(columns, &[n.clone(), group.clone(), depth.clone(), positions])?;
        let per_group = out.floor_div_in(&group, cx.b.ranges());
        let weight = cx.b.reshape(weight, &[group, per_group, depth])?;
        let result = cx.b.matmul(weight, columns)?;
        Ok(cx.b.reshape(result, &[n.clone(), out, rows.clone(), width.clone()])?)
    }
}

/// An element beside a position.
struct Neighbour {
    index: ValueId,
    weight: ValueId,
    inside: ValueId,
}
