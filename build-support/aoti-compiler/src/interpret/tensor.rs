//! Tensors in memory: element type, sizes and contiguous little-endian bytes.
//!
//! Knows how elements are stored, not what operators do with them.

use crate::dtype::{DType, bytes_of};
use crate::halves::{Bf16, F16};
use bytes::Bytes;
use std::fmt;

/// A tensor, row-major and contiguous. Cheap to clone.
#[derive(Clone, PartialEq)]
pub struct Tensor {
    dtype: DType,
    sizes: Vec<usize>,
    data: Bytes,
}

/// Data that do not fit their description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorError {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub sizes: Vec<usize>,
    /// Bytes given.
    pub given: usize,
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TensorError { dtype, sizes, given } = self;
        write!(f, "{given} bytes do not make a tensor of {dtype}{sizes:?}")
    }
}

impl std::error::Error for TensorError {}

/// Elements in the type that arithmetic is done in.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Lanes {
    /// `f32`, and the narrow types that are computed in it.
    F32(Vec<f32>),
    /// `f64`.
    F64(Vec<f64>),
    /// Integers but for `u64`, and booleans as 0 and 1.
    Int(Vec<i64>),
    /// `u64`.
    Uint(Vec<u64>),
}

macro_rules! constructors {
    ($($name:ident $ty:ty, $dtype:ident;)*) => {$(
        #[doc = concat!("A tensor of `", stringify!($ty), "`. Panics if the number of values is not the product of the sizes.")]
        pub fn $name(sizes: &[usize], values: &[$ty]) -> Tensor {
            let data = bytes_of(values, &<$ty>::to_le_bytes);
            Tensor::new(DType::$dtype, sizes.to_vec(), data).expect("as many values as the sizes say")
        }
    )*};
}

impl Tensor {
    /// A tensor of little-endian elements; booleans are bytes of 0 or 1.
    pub fn new(dtype: DType, sizes: Vec<usize>, data: impl Into<Bytes>) -> Result<Tensor, TensorError> {
        let data = data.into();
        let needed = sizes.iter().try_fold(dtype.size(), |bytes, size| bytes.checked_mul(*size));
        if needed != Some(data.len()) {
            return Err(TensorError { dtype, sizes, given: data.len() });
        }
        Ok(Tensor { dtype, sizes, data })
    }

    constructors! {
        from_u8 u8, U8;
        from_i8 i8, I8;
        from_i16 i16, I16;
        from_i32 i32, I32;
        from_i64 i64, I64;
        from_f16 F16, F16;
        from_bf16 Bf16, Bf16;
        from_f32 f32, F32;
        from_f64 f64, F64;
        from_u64 u64, U64;
    }

    /// A tensor of `bool`. Panics if the number of values is not the product of the sizes.
    pub fn from_bool(sizes: &[usize], values: &[bool]) -> Tensor {
        let data: Vec<u8> = values.iter().map(|value| u8::from(*value)).collect();
        Tensor::new(DType::Bool, sizes.to_vec(), data).expect("as many values as the sizes say")
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Elements, little-endian, row-major.
    pub fn bytes(&self) -> &Bytes {
        &self.data
    }

    /// Every element as `f64`; integers beyond 2^53 are rounded.
    pub fn to_f64(&self) -> Vec<f64> {
        match self.lanes() {
            Lanes::F32(values) => values.into_iter().map(f64::from).collect(),
            Lanes::F64(values) => values,
            Lanes::Int(values) => values.into_iter().map(|value| value as f64).collect(),
            Lanes::Uint(values) => values.into_iter().map(|value| value as f64).collect(),
        }
    }

    /// Every element of an integer or boolean tensor as `i64`, those of `u64` by their bits; `None` for floating-point
    /// tensors.
    pub fn to_i64(&self) -> Option<Vec<i64>> {
        match self.lanes() {
            Lanes::Int(values) => Some(values),
            Lanes::Uint(values) => Some(values.into_iter().map(u64::cast_signed).collect()),
            Lanes::F32(_) | Lanes::F64(_) => None,
        }
    }

    /// The elements in the type of arithmetic.
    pub(super) fn lanes(&self) -> Lanes {
        let data = &self.data;
        match self.dtype {
            DType::Bool => Lanes::Int(data.iter().map(|byte| i64::from(*byte != 0)).collect()),
            DType::U8 => Lanes::Int(data.iter().map(|byte| i64::from(*byte)).collect()),
            DType::I8 => Lanes::Int(data.iter().map(|byte| i64::from(*byte as i8)).collect()),
            DType::I16 => Lanes::Int(decode(data, |b| i64::from(i16::from_le_bytes(b)))),
            DType::I32 => Lanes::Int(decode(data, |b| i64::from(i32::from_le_bytes(b)))),
            DType::I64 => Lanes::Int(decode(data, i64::from_le_bytes)),
            DType::F16 => Lanes::F32(decode(data, |b| F16::from_le_bytes(b).to_f32())),
            DType::Bf16 => Lanes::F32(decode(data, |b| Bf16::from_le_bytes(b).to_f32())),
            DType::F32 => Lanes::F32(decode(data, f32::from_le_bytes)),
            DType::F64 => Lanes::F64(decode(data, f64::from_le_bytes)),
            DType::U16 => Lanes::Int(decode(data, |b| i64::from(u16::from_le_bytes(b)))),
            DType::U32 => Lanes::Int(decode(data, |b| i64::from(u32::from_le_bytes(b)))),
            DType::U64 => Lanes::Uint(decode(data, u64::from_le_bytes)),
            DType::F8(format) => Lanes::F32(data.iter().map(|byte| format.to_f32(*byte)).collect()),
        }
    }

    /// Stores lanes of the element type's own kind: integers wrap, floats round, booleans are whether non-zero.
    pub(super) fn store(dtype: DType, sizes: Vec<usize>, lanes: &Lanes) -> Tensor {
        let data = match lanes {
            Lanes::F32(values) => {
                encode_floats(dtype, &values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>())
            }
            Lanes::F64(values) => encode_floats(dtype, values),
            Lanes::Int(values) => encode_ints(dtype, values),
            Lanes::Uint(values) => encode_unsigned(dtype, values),
        };
        Tensor::new(dtype, sizes, data).expect("an operator gives as many elements as its result has")
    }
}

fn decode<const N: usize, T>(data: &[u8], element: impl Fn([u8; N]) -> T) -> Vec<T> {
    data.chunks_exact(N).map(|chunk| element(chunk.try_into().expect("chunks of N"))).collect()
}

fn encode_floats(dtype: DType, values: &[f64]) -> Vec<u8> {
    match dtype {
        DType::F16 => bytes_of(values, &|value| F16::from_f64(value).to_le_bytes()),
        DType::Bf16 => bytes_of(values, &|value| Bf16::from_f64(value).to_le_bytes()),
        DType::F32 => bytes_of(values, &|value| (value as f32).to_le_bytes()),
        DType::F64 => bytes_of(values, &f64::to_le_bytes),
        DType::F8(format) => values.iter().map(|&value| format.from_f64(value)).collect(),
        DType::Bool => values.iter().map(|&value| u8::from(value != 0.0)).collect(),
        DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64 => {
            let ints: Vec<i64> =
                values.iter().map(|&value| super::convert::float_to_int(value, dtype)).collect();
            encode_ints(dtype, &ints)
        }
    }
}

fn encode_ints(dtype: DType, values: &[i64]) -> Vec<u8> {
    match dtype {
        DType::Bool => values.iter().map(|value| u8::from(*value != 0)).collect(),
        DType::U8 | DType::I8 => values.iter().map(|value| *value as u8).collect(),
        DType::I16 => bytes_of(values, &|value| (value as i16).to_le_bytes()),
        DType::I32 => bytes_of(values, &|value| (value as i32).to_le_bytes()),
        DType::I64 | DType::U64 => bytes_of(values, &|value| value.to_le_bytes()),
        DType::U16 => bytes_of(values, &|value| (value as u16).to_le_bytes()),
        DType::U32 => bytes_of(values, &|value| (value as u32).to_le_bytes()),
        DType::F8(format) => values.iter().map(|value| format.from_f32(*value as f32)).collect(),
        // An integer goes to f32 directly: by way of f64 it would be rounded twice.
        DType::F16 => bytes_of(values, &|value| F16::from_f32(value as f32).to_le_bytes()),
        DType::Bf16 => bytes_of(values, &|value| Bf16::from_f32(value as f32).to_le_bytes()),
        DType::F32 => bytes_of(values, &|value| (value as f32).to_le_bytes()),
        DType::F64 => bytes_of(values, &|value| (value as f64).to_le_bytes()),
    }
}

/// As integers of 64 bits are stored; only what is a number of its own tells them from signed ones.
fn encode_unsigned(dtype: DType, values: &[u64]) -> Vec<u8> {
    match dtype {
        DType::F8(format) => values.iter().map(|value| format.from_f32(*value as f32)).collect(),
        DType::F16 => bytes_of(values, &|value| F16::from_f32(value as f32).to_le_bytes()),
        DType::Bf16 => bytes_of(values, &|value| Bf16::from_f32(value as f32).to_le_bytes()),
        DType::F32 => bytes_of(values, &|value| (value as f32).to_le_bytes()),
        DType::F64 => bytes_of(values, &|value| (value as f64).to_le_bytes()),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64 => {
            let bits: Vec<i64> = values.iter().map(|value| value.cast_signed()).collect();
            encode_ints(dtype, &bits)
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} ", self.dtype, self.sizes)?;
        match self.lanes() {
            Lanes::F32(values) => write!(f, "{values:?}"),
            Lanes::F64(values) => write!(f, "{values:?}"),
            Lanes::Int(values) => write!(f, "{values:?}"),
            Lanes::Uint(values) => write!(f, "{values:?}"),
        }
    }
}
