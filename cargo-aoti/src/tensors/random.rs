//! Inputs for models when there are none: the same ones each time.

use aoti_compiler::random::SplitMix64;
use aoti_runtime::{
    Complex, DType, DynTensor, bf16, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu, f16,
};

/// Draws inputs.
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.draw()
    }

    /// In [-1, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// A tensor: floating-point values in [-1, 1), integers 0 or 1, which are indices into nearly everything.
    pub(crate) fn tensor(&mut self, dtype: DType, sizes: &[usize]) -> Result<DynTensor, aoti_runtime::Error> {
        let mut tensor = DynTensor::zeros(dtype, sizes)?;
        macro_rules! fill {
            ($type:ty, $value:expr) => {
                for element in tensor.as_mut_slice::<$type>().unwrap_or_default() {
                    *element = $value;
                }
            };
        }
        match dtype {
            DType::Bool => fill!(bool, self.next() & 1 == 1),
            DType::U8 => fill!(u8, (self.next() & 1) as u8),
            DType::I8 => fill!(i8, (self.next() & 1) as i8),
            DType::I16 => fill!(i16, (self.next() & 1) as i16),
            DType::I32 => fill!(i32, (self.next() & 1) as i32),
            DType::I64 => fill!(i64, (self.next() & 1) as i64),
            DType::F16 => fill!(f16, f16::from_f64(self.unit())),
            DType::Bf16 => fill!(bf16, bf16::from_f64(self.unit())),
            DType::F32 => fill!(f32, self.unit() as f32),
            DType::F64 => fill!(f64, self.unit()),
            DType::U16 => fill!(u16, (self.next() & 1) as u16),
            DType::U32 => fill!(u32, (self.next() & 1) as u32),
            DType::U64 => fill!(u64, self.next() & 1),
            DType::F8E4M3Fn => fill!(f8e4m3fn, f8e4m3fn::from_f32(self.unit() as f32)),
            DType::F8E5M2 => fill!(f8e5m2, f8e5m2::from_f32(self.unit() as f32)),
            DType::F8E4M3Fnuz => fill!(f8e4m3fnuz, f8e4m3fnuz::from_f32(self.unit() as f32)),
            DType::F8E5M2Fnuz => fill!(f8e5m2fnuz, f8e5m2fnuz::from_f32(self.unit() as f32)),
            DType::F8E8M0Fnu => fill!(f8e8m0fnu, f8e8m0fnu::from_f32(self.unit() as f32)),
            DType::C32 => {
                fill!(Complex<f16>, Complex::new(f16::from_f64(self.unit()), f16::from_f64(self.unit())))
            }
            DType::C64 => fill!(Complex<f32>, Complex::new(self.unit() as f32, self.unit() as f32)),
            DType::C128 => fill!(Complex<f64>, Complex::new(self.unit(), self.unit())),
        }
        Ok(tensor)
    }
}
