//! A convolution, and its sizes as templates, costs and generated code all read them.

use super::{Axis, BufferId, Program, Stage};
use crate::dtype::DType;
use crate::graph::Conv;
use crate::symbolic::Expr;

/// Where the axis of channels is among those of a tensor in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Channels {
    /// `[n, c, spatial...]`, as programs have it.
    #[default]
    First,
    /// `[n, spatial..., c]`.
    Last,
}

impl Channels {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Channels::First => "channels-first",
            Channels::Last => "channels-last",
        }
    }

    /// What belongs to the axes of `[n, c, spatial...]`, in the order in which they lie in memory.
    pub fn in_memory<T: Clone>(self, axes: &[T]) -> Vec<T> {
        let mut ordered = axes.to_vec();
        if self == Channels::Last && ordered.len() > 1 {
            ordered[1..].rotate_left(1);
        }
        ordered
    }

    /// Position of the axis of channels among `rank` axes.
    pub fn axis(self, rank: usize) -> usize {
        match self {
            Channels::First => 1,
            Channels::Last => rank - 1,
        }
    }
}

/// A convolution. The epilogue runs at each position of its axes with the sum.
#[derive(Clone, PartialEq, Debug)]
pub struct Convolution {
    /// Image, output channel and spatial axes, in the order that `output_channels` says.
    pub axes: Vec<Axis>,
    /// Parameters.
    pub conv: Conv,
    /// Input, of an image, channel and spatial axes.
    pub input: BufferId,
    /// Where channels are in the input.
    pub input_channels: Channels,
    /// Where channels are among the axes, and in what the epilogue writes.
    pub output_channels: Channels,
    /// Weight, as the graph has it.
    pub weight: BufferId,
    /// Element type.
    pub dtype: DType,
    /// What happens to each sum.
    pub epilogue: Stage,
}

impl Convolution {
    /// The axis of images.
    pub fn image(&self) -> &Axis {
        &self.axes[0]
    }

    /// The axis of output channels.
    pub fn channel(&self) -> &Axis {
        &self.axes[self.output_channels.axis(self.axes.len())]
    }

    /// The spatial axes of the output.
    pub fn spatial(&self) -> &[Axis] {
        let end = self.axes.len();
        match self.output_channels {
            Channels::First => &self.axes[2..],
            Channels::Last => &self.axes[1..end - 1],
        }
    }

    /// Whether products run over taps first and over the channels of each then, which lie side by side in the input.
    pub fn depth_is_by_tap(&self) -> bool {
        self.input_channels == Channels::Last
    }
}

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
