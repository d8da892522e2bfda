//! A complex number as it is stored in tensors.
//!
//! Has no arithmetic; for that, convert it to the types of a crate for numbers.

use std::fmt;

/// A complex number: its real part, then its imaginary part, as C and PyTorch have them in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

impl<T> Complex<T> {
    /// The number with these parts.
    pub const fn new(re: T, im: T) -> Complex<T> {
        Complex { re, im }
    }
}

/// `1 - 2i`, in the precision that is asked for.
impl<T: fmt::Display> fmt::Display for Complex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.re, f)?;
        let im = match f.precision() {
            Some(digits) => format!("{:+.digits$}", self.im),
            None => format!("{:+}", self.im),
        };
        let (sign, size) = im.split_at_checked(1).unwrap_or(("+", &im));
        write!(f, " {sign} {size}i")
    }
}

#[cfg(feature = "num-complex")]
impl<T> From<num_complex::Complex<T>> for Complex<T> {
    fn from(number: num_complex::Complex<T>) -> Complex<T> {
        Complex { re: number.re, im: number.im }
    }
}

#[cfg(feature = "num-complex")]
impl<T> From<Complex<T>> for num_complex::Complex<T> {
    fn from(number: Complex<T>) -> num_complex::Complex<T> {
        num_complex::Complex { re: number.re, im: number.im }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_printed_with_the_sign_of_its_imaginary_part() {
        assert_eq!(Complex::new(1.0, -2.0).to_string(), "1 - 2i");
        assert_eq!(format!("{:.2}", Complex::new(0.5, 0.25)), "0.50 + 0.25i");
    }

    #[test]
    fn a_tensor_is_seen_as_numbers_of_either_crate() {
        let numbers = [Complex::new(1.0f32, 2.0), Complex::new(3.0, -4.0)];
        let mut tensor = crate::DynTensor::zeros(crate::DType::C64, &[2]).unwrap();
        tensor.as_mut_slice().unwrap().copy_from_slice(&numbers);
        assert_eq!(tensor.bytes().len(), 16);
        assert_eq!(tensor.as_slice::<Complex<f32>>().unwrap(), numbers);
        let theirs = tensor.as_slice::<num_complex::Complex<f32>>().unwrap();
        assert_eq!(theirs.iter().copied().map(Complex::from).collect::<Vec<_>>(), numbers);
        assert_eq!(tensor.as_slice::<Complex<f64>>(), None);
    }
}
