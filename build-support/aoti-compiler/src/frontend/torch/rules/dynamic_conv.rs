//! Windows of convolutions: how they lie, and convolutions whose parameters are known only when the program runs.
//!
//! Where all parameters are constants a convolution is a core operator. Otherwise it is what that means: a product of the
//! weight and of the elements that each window covers.

use super::{Context, RuleError};
use crate::graph::{Condition, Conv, Relation, Scalar, ValueId};
use crate::symbolic::Expr;

/// How windows lie over the spatial axes, with an entry for each in every list.
#[derive(Clone)]
pub(crate) struct Sliding {
    pub(crate) stride: Vec<Expr>,
    /// Before and behind.
    pub(crate) padding: Vec<[Expr; 2]>,
    pub(crate) dilation: Vec<Expr>,
    pub(crate) groups: i64,
    pub(crate) transposed: bool,
    pub(crate) output_padding: Vec<Expr>,
}

/// One axis: what windows go over, what they cover, and where.
struct Axis {
    /// Windows.
    count: Expr,
    /// The element under a tap, over the axes of windows and of taps.
    position: Expr,
    /// What must be zero for there to be one, where strides lie between the elements.
    between: Option<Expr>,
}

impl Sliding {
    /// The core operator's parameters, where all are constants.
    pub(crate) fn fixed(&self) -> Option<Conv> {
        let list = |values: &[Expr]| values.iter().map(Expr::as_int).collect::<Option<Vec<i64>>>();
        let padding = self.padding.iter().map(|[before, behind]| before.as_int().zip(behind.as_int()));
        Some(Conv {
            stride: list(&self.stride)?,
            padding: padding.collect::<Option<_>>()?,
            dilation: list(&self.dilation)?,
            groups: self.groups,
            transposed: self.transposed,
            output_padding: list(&self.output_padding)?,
        })
    }

    /// The convolution of `[n, channels, sizes...]` with a weight, without bias.
    pub(crate) fn by_windows(
        &self,
        cx: &mut Context,
        x: ValueId,
        weight: ValueId,
    ) -> Result<ValueId, RuleError> {
        let spatial = self.stride.len();
        let (own, window) = (cx.b.shape(x), cx.b.shape(weight));
        if own.len() != spatial + 2 || window.len() != spatial + 2 || self.groups < 1 {
            let message = format!("a convolution of {} axes by {}", own.len(), window.len());
            return Err(RuleError::Malformed(message));
        }
        let groups = Expr::int(self.groups);
        let channels = if self.transposed { window[0].clone() } else { &window[1] * &groups };
        cx.b.require_same(&own[1], &channels)?;
        let axes: Vec<Axis> = (0..spatial).map(|k| self.axis(cx, k, &own[k + 2], &window[k + 2])).collect();
        let taps = covered(cx, x, &window[2..], &axes)?;

        // [n, groups, channels of a group and taps, windows]
        let members = channels.floor_div_in(&groups, cx.b.ranges());
        let depth = &members * &Expr::product(&window[2..]);
        let counts: Vec<Expr> = axes.into_iter().map(|axis| axis.count).collect();
        let columns = [own[0].clone(), groups.clone(), depth.clone(), Expr::product(&counts)];
        let columns = cx.b.reshape(taps, &columns)?;
        let (weight, results) = self.rows(cx, weight, &members, &depth)?;
        let product = cx.b.matmul(weight, columns)?;
        let shape = [&[own[0].clone(), &results * &groups], counts.as_slice()].concat();
        Ok(cx.b.reshape(product, &shape)?)
    }

    /// The weight as `[1, groups, results of a group, channels of a group and taps]`, and the results of a group.
    fn rows(
        &self,
        cx: &mut Context,
        weight: ValueId,
        members: &Expr,
        depth: &Expr,
    ) -> Result<(ValueId, Expr), RuleError> {
        let (groups, window) = (Expr::int(self.groups), cx.b.shape(weight));
        let (grouped, results) = if self.transposed {
            let split = cx.split_axis(weight, 0, &[groups.clone(), members.clone()])?;
            (cx.move_axis(split, 2, 1)?, window[1].clone())
        } else {
            (weight, window[0].floor_div_in(&groups, cx.b.ranges()))
        };
        let shape = [Expr::int(1), groups, results.clone(), depth.clone()];
        Ok((cx.b.reshape(grouped, &shape)?, results))
    }

    /// Axis `k`. The elements under all windows have axes `[n, channels, taps..., windows...]`.
    fn axis(&self, cx: &mut Context, k: usize, size: &Expr, window: &Expr) -> Axis {
        let spatial = self.stride.len();
        let (tap, number) = (Expr::axis(2 + k), Expr::axis(2 + spatial + k));
        let [before, behind] = &self.padding[k];
        let mut at_least = |value: &Expr, least: i64, message: &str| {
            cx.b.require(Condition::compare(value.clone(), Relation::Ge, least), message);
            // What is required is known of this from here on.
            value.maximum_in(&Expr::int(least), cx.b.ranges())
        };
        let stride = at_least(&self.stride[k], 1, "a convolution whose stride is not positive");
        let dilation = at_least(&self.dilation[k], 1, "a convolution whose dilation is not positive");
        let [before, behind] =
            [before, behind].map(|amount| at_least(amount, 0, "a convolution whose padding is negative"));
        let span = &(&(window - 1) * &dilation) + 1;
        if !self.transposed {
            let room = &(&(size + &before) + &behind) - &span;
            let fits = Condition::compare(room.clone(), Relation::Ge, 0);
            cx.b.require(fits, "a window of a convolution that is larger than what it goes over");
            let room = room.maximum_in(&Expr::int(0), cx.b.ranges());
            let count = &room.floor_div_in(&stride, cx.b.ranges()) + 1;
            let position = &(&(&number * &stride) + &(&tap * &dilation)) - &before;
            return Axis { count, position, between: None };
        }
        let more = at_least(&self.output_padding[k], 0, "a convolution whose output padding is negative");
        let smaller =
            [&stride, &dilation].map(|bound| Condition::compare(more.clone(), Relation::Lt, bound.clone()));
        let message = "an output padding that is smaller than neither stride nor dilation";
        cx.b.require(Condition::any(smaller), message);
        let count = &(&(&(size - 1) * &stride) - &(&before + &behind)) + &(&span + &more);
        cx.b.require(
            Condition::compare(count.clone(), Relation::Ge, 0),
            "a convolution whose result has a negative size",
        );
        let count = count.maximum_in(&Expr::int(0), cx.b.ranges());
        // Elements lie a stride apart, with zeros between them.
        let place = &(&number + &before) - &(&tap * &dilation);
        let position = place.floor_div_in(&stride, cx.b.ranges());
        Axis { count, position, between: Some(place.modulo_in(&stride, cx.b.ranges())) }
    }
}

/// What lies under each tap of each window, as `[n, channels, taps..., windows...]`.
fn covered(cx: &mut Context, x: ValueId, window: &[Expr], axes: &[Axis]) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(x)[..2].to_vec();
    shape.extend_from_slice(window);
    shape.extend(axes.iter().map(|axis| axis.count.clone()));
    let positions = axes.iter().map(|axis| axis.position.clone());
    let coords = [Expr::axis(0), Expr::axis(1)].into_iter().chain(positions).collect();
    let mut taps = cx.b.padded_view(x, &shape, coords, Scalar::Int(0))?;
    for between in axes.iter().filter_map(|axis| axis.between.clone()) {
        let is_element = cx.index_is(Relation::Eq, between, &shape)?;
        let zero = cx.b.full_like(0i64, taps);
        taps = cx.b.select(is_element, taps, zero)?;
    }
    Ok(taps)
}
