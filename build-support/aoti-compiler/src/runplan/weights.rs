//! Lays constants out in the weights blob, in the forms that kernels read or that those are made of.

use super::{group_panels, group_tiles, pack};
use crate::dtype::DType;
use crate::graph::{Constant, ConstantId};
pub(crate) use crate::kernels::{Expansion, Form, Packing};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The weights blob: segments laid one after the other, each starting at a multiple of 64 bytes.
#[derive(Clone, Default, Debug)]
pub struct WeightsBlob {
    /// (offset, content); offsets ascend and never overlap; gaps are zero.
    pub segments: Vec<(u64, Bytes)>,
    /// Whole length in bytes; a multiple of 64.
    pub bytes: u64,
}

/// A constant in one form, placed in the blob.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// The program that reads it: its position among those that share the blob.
    pub(crate) program: usize,
    /// The constant, as that program numbers them.
    pub(crate) constant: ConstantId,
    /// Its form.
    pub(crate) packing: Packing,
    /// Byte offset.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) bytes: u64,
}

/// The blob under construction.
#[derive(Default)]
pub(crate) struct Layout {
    blob: WeightsBlob,
    placed: Vec<Placed>,
    /// The program whose constants are placed at present.
    program: usize,
    /// Where several programs share what is equal: what is there, by its bytes.
    shared: Option<BTreeMap<[u8; 32], u64>>,
}

impl Layout {
    /// A blob in which programs share bytes that are equal. Only where all constants are final: of others, only the names say which
    /// are one.
    pub(crate) fn sharing() -> Layout {
        Layout { shared: Some(BTreeMap::new()), ..Layout::default() }
    }

    /// Places a constant in a form, 64-byte aligned; gives its offset.
    pub(crate) fn place(&mut self, id: ConstantId, constant: &Constant, packing: &Packing) -> u64 {
        let data = packed(constant, packing);
        let bytes = data.len() as u64;
        let key = self.shared.is_some().then(|| *blake3::hash(&data).as_bytes());
        let known = self.shared.as_ref().zip(key).and_then(|(shared, key)| shared.get(&key).copied());
        let offset = known.unwrap_or_else(|| self.append(data));
        if let Some((shared, key)) = self.shared.as_mut().zip(key) {
            shared.insert(key, offset);
        }
        let (program, packing) = (self.program, packing.clone());
        self.placed.push(Placed { program, constant: id, packing, offset, bytes });
        offset
    }

    fn append(&mut self, data: Bytes) -> u64 {
        let offset = self.blob.bytes;
        self.blob.bytes = (offset + data.len() as u64).next_multiple_of(64);
        self.blob.segments.push((offset, data));
        offset
    }

    /// Nothing that is placed from now on is shared with what is there: it is for another device, in whose memory that is not.
    pub(crate) fn next_device(&mut self) {
        if let Some(shared) = &mut self.shared {
            shared.clear();
        }
    }

    /// The constants placed from now on are those of the next program.
    pub(crate) fn next_program(&mut self) {
        self.program += 1;
    }

    /// Everything that was placed, in order.
    pub(crate) fn placed(&self) -> &[Placed] {
        &self.placed
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.blob.bytes
    }

    pub(crate) fn finish(self) -> WeightsBlob {
        self.blob
    }
}

/// Bytes of a form that is made when a model is created.
pub(crate) fn expanded_bytes(form: &Expansion) -> u64 {
    let bytes = match form {
        Expansion::Winograd { channels, in_channels } => {
            pack::packed_product_bytes(*in_channels, *channels, 4).and_then(|bytes| bytes.checked_mul(16))
        }
        Expansion::WinogradBytes { channels, in_channels } => {
            let point = pack::packed_product_bytes(in_channels / 2, *channels, 4);
            point.and_then(|bytes| bytes.checked_mul(16)?.checked_add(64))
        }
        Expansion::Panels { groups, channels, in_channels, taps } => in_channels
            .checked_mul(*taps)
            .and_then(|k| pack::packed_product_bytes(k, channels / (*groups).max(1), 4))
            .and_then(|bytes| bytes.checked_mul(*groups)),
    };
    bytes.expect("forms are chosen within the constant's bounds") as u64
}

fn packed(constant: &Constant, packing: &Packing) -> Bytes {
    let storage = match constant.dtype {
        DType::F16 => pack::Storage::F16,
        DType::Bf16 => pack::Storage::Bf16,
        DType::F64 => pack::Storage::F64,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::F8(_) => {
            pack::Storage::Integers(constant.dtype.size())
        }
        DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::F32 => pack::Storage::F32,
    };
    let source = |offset, row_stride, col_stride| pack::Source {
        bytes: &constant.data,
        storage,
        offset,
        row_stride,
        col_stride,
    };
    let result = match packing {
        Packing::Plain => return constant.data.clone(),
        Packing::Product { offset, row_stride, col_stride, k, n, narrow } => {
            let source = source(*offset, *row_stride, *col_stride);
            if *narrow { pack::pack_narrow(&source, *k, *n) } else { pack::pack_product(&source, *k, *n) }
        }
        Packing::ProductGroups { k, n, rows, bits } => {
            let groups = constant.groups.as_ref().expect("the form is of constants with groups");
            return group_panels::pack(groups, [*k, *n, *rows, *bits]).into();
        }
        Packing::GroupTiles(form) => {
            let groups = constant.groups.as_ref().expect("the form is of constants with groups");
            return group_tiles::pack(groups, constant.dtype, form).into();
        }
        Packing::ProductWords { offset, row_stride, col_stride, k, n } => {
            pack::pack_product_words(&source(*offset, *row_stride, *col_stride), *k, *n)
        }
        Packing::TapWords { groups, channels, in_channels, taps } => {
            let sizes = [*channels, *in_channels, *taps];
            pack::pack_tap_words(&source(0, in_channels * taps, 1), *groups, sizes)
        }
        Packing::Conv { groups, channels, k } => pack::pack_conv(&source(0, *k, 1), *groups, *channels, *k),
        Packing::ConvTransposed { groups, in_channels, rows } => {
            pack::pack_conv_transposed(&source(0, *rows, 1), *groups, *in_channels, *rows)
        }
        Packing::ByTap { channels, in_channels, taps } => {
            pack::pack_by_tap(&constant.data, constant.dtype.size(), [*channels, *in_channels, *taps])
        }
        Packing::TapPanels { groups, channels, in_channels, taps } => {
            let sizes = [*channels, *in_channels, *taps];
            pack::pack_tap_panels(&source(0, in_channels * taps, 1), *groups, sizes)
        }
    };
    result.expect("packings are chosen within the constant's bounds").into()
}
