//! The sizes of a convolution, as templates, costs and generated code all read them.

use super::{Channels, Convolution, Program};
use crate::symbolic::Expr;

/// Sizes in three spatial dimensions; missing leading ones are 1.
#[derive(Clone, PartialEq, Debug)]
pub struct ConvShape {
    /// Images.
    pub batch: Expr,
    /// Input channels.
    pub in_channels: Expr,
    /// Output channels.
    pub out_channels: Expr,
    /// Groups.
    pub groups: i64,
    /// Input sizes.
    pub input: [Expr; 3],
    /// Kernel sizes.
    pub kernel: [Expr; 3],
    /// Strides.
    pub stride: [i64; 3],
    /// Dilations.
    pub dilation: [i64; 3],
    /// Padding before the first element.
    pub padding: [i64; 3],
    /// Output sizes.
    pub output: [Expr; 3],
}

impl ConvShape {
    /// The sizes of a convolution of a program.
    pub fn new(program: &Program, conv: &Convolution) -> ConvShape {
        let (input, weight) = (&program.buffers[conv.input].shape, &program.buffers[conv.weight].shape);
        let first = match conv.input_channels {
            Channels::First => 2,
            Channels::Last => 1,
        };
        let spatial = conv.spatial();
        let lead = 3 - conv.conv.stride.len().min(3);
        let exprs = |list: &dyn Fn(usize) -> Expr| -> [Expr; 3] {
            std::array::from_fn(|d| if d < lead { Expr::int(1) } else { list(d - lead) })
        };
        let ints = |list: &dyn Fn(usize) -> i64, missing: i64| -> [i64; 3] {
            std::array::from_fn(|d| if d < lead { missing } else { list(d - lead) })
        };
        ConvShape {
            batch: input[0].clone(),
            in_channels: input[conv.input_channels.axis(input.len())].clone(),
            out_channels: conv.channel().extent.clone(),
            groups: conv.conv.groups,
            input: exprs(&|d| input[d + first].clone()),
            kernel: exprs(&|d| weight[d + 2].clone()),
            stride: ints(&|d| conv.conv.stride[d], 1),
            dilation: ints(&|d| conv.conv.dilation[d], 1),
            padding: ints(&|d| conv.conv.padding[d].0, 0),
            output: exprs(&|d| spatial[d].extent.clone()),
        }
    }

    /// Where templates find the channels of the input: a single one is last as well as first.
    pub fn input_channels(&self, conv: &Convolution) -> Channels {
        if self.in_channels.is(1) { Channels::Last } else { conv.input_channels }
    }

    /// Elements of a kernel in one channel.
    pub fn taps(&self) -> Expr {
        Expr::product(&self.kernel)
    }

    /// Length of a sum, where channels and kernel are fixed.
    pub fn k(&self) -> Option<i64> {
        self.taps().as_int()?.checked_mul(self.in_channels.as_int()? / self.groups.max(1))
    }

    /// Whether the kernel lies over the whole input once.
    pub fn covers_input(&self) -> bool {
        let covers = |d: usize| {
            self.input[d].as_int().is_some()
                && self.input[d] == self.kernel[d]
                && self.padding[d] == 0
                && self.output[d].is(1)
        };
        (0..3).all(covers)
    }

    /// Whether channels and kernel are fixed: sizes that weights are packed by.
    pub fn has_fixed_weight(&self) -> bool {
        let fixed = |expr: &Expr| expr.as_int().is_some();
        fixed(&self.in_channels) && fixed(&self.out_channels) && self.kernel.iter().all(fixed)
    }
}
