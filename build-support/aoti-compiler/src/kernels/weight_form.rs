//! The forms in which kernels read constants: those that the weights hold, and those that are made of them when a model is
//! created.

use crate::constants;
use crate::loops::BufferId;
use crate::target::GpuTarget;

/// Bytes of a row of a panel (`kPanelBytes` of `tile.h`).
pub(super) const PANEL_BYTES: i64 = constants::PANEL_BYTES;

/// A form that the weights hold.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Packing {
    /// As the graph has it: row-major.
    Plain,
    /// Panels of a matrix `[k, n]`; element (row, column) at `offset + row * row_stride + column * col_stride`.
    Product {
        /// First element.
        offset: usize,
        /// Elements between rows.
        row_stride: usize,
        /// Elements between columns.
        col_stride: usize,
        /// Rows.
        k: usize,
        /// Columns.
        n: usize,
        /// Whether elements keep their half type, and are widened where they are read.
        narrow: bool,
    },
    /// As `Product`, of numbers of one byte, four rows in a word.
    ProductWords {
        /// First element.
        offset: usize,
        /// Elements between rows.
        row_stride: usize,
        /// Elements between columns.
        col_stride: usize,
        /// Rows, a multiple of four.
        k: usize,
        /// Columns.
        n: usize,
    },
    /// Panels of whole numbers of a few bits, scaled in groups along the depth: all of a constant with
    /// [`Groups`](crate::graph::Groups), whose columns lie one after the other.
    ProductGroups {
        /// Rows.
        k: usize,
        /// Columns.
        n: usize,
        /// Rows of a group.
        rows: usize,
        /// Bits of a number.
        bits: usize,
    },
    /// The same for GPUs.
    GroupTiles(GroupTiles),
    /// Rows of convolution weights.
    Conv {
        /// Groups.
        groups: usize,
        /// Output channels.
        channels: usize,
        /// Length of a sum.
        k: usize,
    },
    /// Rows of transposed convolution weights.
    ConvTransposed {
        /// Groups.
        groups: usize,
        /// Input channels.
        in_channels: usize,
        /// Output channels per group times taps.
        rows: usize,
    },
    /// Rows of convolution weights with the channels of each tap side by side: `[channels][taps][in_channels]`, elements as
    /// the graph has them.
    ByTap {
        /// Output channels.
        channels: usize,
        /// Input channels of a group.
        in_channels: usize,
        /// Elements of a kernel in one channel.
        taps: usize,
    },
    /// Panels of convolution weights whose rows are the input channels of one tap after the other, and whose columns are the
    /// output channels; of each group by itself.
    TapPanels {
        /// Groups.
        groups: usize,
        /// Output channels.
        channels: usize,
        /// Input channels of a group.
        in_channels: usize,
        /// Elements of a kernel in one channel.
        taps: usize,
    },
    /// As `TapPanels`, of numbers of one byte, four input channels in a word.
    TapWords {
        /// Groups.
        groups: usize,
        /// Output channels.
        channels: usize,
        /// Input channels of a group, a multiple of four.
        in_channels: usize,
        /// Elements of a kernel in one channel.
        taps: usize,
    },
}

/// Blocks of whole numbers of a few bits, scaled in groups along the depth, as threads of a GPU take them (`gpu/groups.h`): all of a
/// constant with [`Groups`](crate::graph::Groups), whose columns lie one after the other.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct GroupTiles {
    /// Rows.
    pub k: usize,
    /// Columns.
    pub n: usize,
    /// Rows of a group.
    pub rows: usize,
    /// Bits of a number.
    pub bits: usize,
    /// Bytes of a scale: two for one of the constant's own type.
    pub scale: usize,
}

impl GroupTiles {
    /// Depths of a block, so many of a step, that have a scale of their own (`kOwn`).
    pub(crate) fn depths_of_factor(&self, step: usize) -> usize {
        [step, step / 2]
            .into_iter()
            .find(|depths| self.rows.is_multiple_of(*depths))
            .unwrap_or(GpuTarget::GROUP_RUN)
    }

    /// Bytes of a block (`kBlockBytes`): 1024 of numbers, and what the groups of 16 columns are made with.
    pub(crate) fn block_bytes(&self) -> usize {
        let step = 512 / self.bits;
        let factors = if self.rows == self.k { 0 } else { step / self.depths_of_factor(step) };
        1024 + factors * 16 * if self.scale == 2 { 4 } else { 8 }
    }
}

/// A form that takes more memory than what it is made of: weights are stored without it, and a model makes it when it is
/// created (`expand.h`).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Expansion {
    /// Panels of convolution weights of 3 x 3 taps at each of the 16 points of a tile of 2 x 2 pixels (`winograd.h`): rows are
    /// input channels, columns output channels.
    Winograd {
        /// Output channels.
        channels: usize,
        /// Input channels.
        in_channels: usize,
    },
    /// As `Winograd`, of numbers of one byte, at their points four times as large and of 16 bits, pairs of input channels side by
    /// side, behind a head of 64 bytes; or words where a machine has an instruction for these (`winograd_bytes.h`).
    WinogradBytes {
        /// Output channels.
        channels: usize,
        /// Input channels, a multiple of four.
        in_channels: usize,
    },
    /// What [`Packing::TapPanels`] are, of so few channels that much of their panels is empty.
    Panels {
        /// Groups.
        groups: usize,
        /// Output channels.
        channels: usize,
        /// Input channels of a group.
        in_channels: usize,
        /// Elements of a kernel in one channel.
        taps: usize,
    },
}

impl Expansion {
    /// Its word, and its sizes.
    pub(crate) fn words(&self) -> (&'static str, Vec<usize>) {
        match *self {
            Expansion::Winograd { channels, in_channels } => ("winograd", vec![channels, in_channels]),
            Expansion::WinogradBytes { channels, in_channels } => {
                ("winograd_bytes", vec![channels, in_channels])
            }
            Expansion::Panels { groups, channels, in_channels, taps } => {
                ("panels", vec![groups, channels, in_channels, taps])
            }
        }
    }

    /// The one with this word and these sizes.
    pub(crate) fn from_words(word: &str, sizes: &[usize]) -> Option<Expansion> {
        match (word, sizes) {
            ("winograd", &[channels, in_channels]) => Some(Expansion::Winograd { channels, in_channels }),
            ("winograd_bytes", &[channels, in_channels]) => {
                Some(Expansion::WinogradBytes { channels, in_channels })
            }
            ("panels", &[groups, channels, in_channels, taps]) => {
                Some(Expansion::Panels { groups, channels, in_channels, taps })
            }
            _ => None,
        }
    }

    /// The form that it is made of.
    pub(crate) fn source(&self) -> Packing {
        match self {
            Expansion::Winograd { channels, in_channels } => {
                Packing::Conv { groups: 1, channels: *channels, k: in_channels.saturating_mul(9) }
            }
            Expansion::WinogradBytes { channels, in_channels } => {
                Packing::TapWords { groups: 1, channels: *channels, in_channels: *in_channels, taps: 9 }
            }
            Expansion::Panels { groups: _, channels, in_channels, taps } => {
                Packing::ByTap { channels: *channels, in_channels: *in_channels, taps: *taps }
            }
        }
    }
}

/// The form in which a kernel reads a constant.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Form {
    /// As the weights hold it.
    Packed(Packing),
    /// Made of what they hold.
    Expanded(Expansion),
}

impl From<Packing> for Form {
    fn from(packing: Packing) -> Form {
        Form::Packed(packing)
    }
}

/// A constant that a kernel reads in another form than the graph's.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PackedOperand {
    /// The constant's buffer.
    pub buffer: BufferId,
    /// The form.
    pub form: Form,
}

/// The tiles of groups among the forms of a product's operands.
pub(crate) fn group_tiles(packed: &[PackedOperand]) -> Option<&GroupTiles> {
    packed.iter().find_map(|operand| match &operand.form {
        Form::Packed(Packing::GroupTiles(tiles)) => Some(tiles),
        Form::Packed(_) | Form::Expanded(_) => None,
    })
}
