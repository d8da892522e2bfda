//! Discrete Fourier transforms of rows: what one computes, by which passes code for processors computes it, and the roots of
//! unity that it reads. `include/aoti/fourier.h` has the passes.

mod plan;
mod reference;
mod roots;

pub use plan::{FftMethod, Plan};
pub(crate) use reference::{Number, transform};

use crate::symbolic::Expr;

/// The longest transform: its roots are constants of the program.
pub const LONGEST: i64 = 1 << 23;

/// What a row of a transform of length `n` has, and what becomes of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// `[n, 2]` to `[n, 2]`: the sums over j of `x[j] e^(-2 pi i j k / n)`, complex numbers as pairs.
    Forward,
    /// The same with the other sign of the exponent.
    Inverse,
    /// `[n]` to `[n / 2 + 1, 2]`: the first half of the forward transform of real numbers.
    ToHalf,
    /// `[n / 2 + 1, 2]` to `[n]`: the inverse transform of the numbers of which this is the first half, the others
    /// repeating it, conjugated and backwards. Imaginary parts of numbers that are their own repetition do not count.
    FromHalf,
}

/// What results are divided by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Norm {
    /// Nothing.
    One,
    /// The root of the length.
    Root,
    /// The length.
    Length,
}

/// A transform along the last axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fourier {
    /// What it makes of what.
    pub form: Form,
    /// The length, from 1 to [`LONGEST`].
    pub length: i64,
    /// What results are divided by.
    pub norm: Norm,
}

impl Form {
    /// All of them.
    pub const ALL: [Form; 4] = [Form::Forward, Form::Inverse, Form::ToHalf, Form::FromHalf];

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            Form::Forward => "forward",
            Form::Inverse => "inverse",
            Form::ToHalf => "to_half",
            Form::FromHalf => "from_half",
        }
    }

    /// Whether the exponent is positive.
    pub fn is_inverse(self) -> bool {
        matches!(self, Form::Inverse | Form::FromHalf)
    }
}

impl Norm {
    /// All of them.
    pub const ALL: [Norm; 3] = [Norm::One, Norm::Root, Norm::Length];

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            Norm::One => "by_one",
            Norm::Root => "by_root",
            Norm::Length => "by_length",
        }
    }
}

impl Fourier {
    /// The sizes of a row of the operand.
    pub fn operand(&self) -> Vec<i64> {
        match self.form {
            Form::Forward | Form::Inverse => vec![self.length, 2],
            Form::ToHalf => vec![self.length],
            Form::FromHalf => vec![self.length / 2 + 1, 2],
        }
    }

    /// The sizes of a row of the result.
    pub fn result(&self) -> Vec<i64> {
        match self.form {
            Form::Forward | Form::Inverse => vec![self.length, 2],
            Form::ToHalf => vec![self.length / 2 + 1, 2],
            Form::FromHalf => vec![self.length],
        }
    }

    /// The shape of the result for an operand of this shape, if a row of it is one of the transform.
    pub fn result_shape(&self, operand: &[Expr]) -> Option<Vec<Expr>> {
        let row: Vec<Expr> = self.operand().into_iter().map(Expr::int).collect();
        let leading = operand.strip_suffix(row.as_slice())?;
        Some(leading.iter().cloned().chain(self.result().into_iter().map(Expr::int)).collect())
    }

    /// What results are multiplied by.
    pub fn scale(&self) -> f64 {
        match self.norm {
            Norm::One => 1.0,
            Norm::Root => 1.0 / (self.length as f64).sqrt(),
            Norm::Length => 1.0 / self.length as f64,
        }
    }

    /// The parameters in text forms.
    pub(crate) fn text(&self) -> String {
        format!("{} {} {}", self.form.name(), self.length, self.norm.name())
    }

    /// The rows of `x`, transformed one by one.
    pub(crate) fn of_rows(&self, x: &[f64]) -> Vec<f64> {
        let size = usize::try_from(self.operand().iter().product::<i64>()).expect("a length");
        x.chunks_exact(size.max(1)).flat_map(|row| self.of_row(row)).collect()
    }

    fn of_row(&self, row: &[f64]) -> Vec<f64> {
        let n = usize::try_from(self.length).expect("a length");
        let pairs = |row: &[f64]| row.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect::<Vec<Number>>();
        let signal = match self.form {
            Form::Forward | Form::Inverse => pairs(row),
            Form::ToHalf => row.iter().map(|x| (*x, 0.0)).collect(),
            Form::FromHalf => {
                let half = pairs(row);
                let of = |k: usize| match (k, 2 * k) {
                    (0, _) => (half[0].0, 0.0),
                    (_, twice) if twice == n => (half[k].0, 0.0),
                    (_, twice) if twice < n => half[k],
                    _ => (half[n - k].0, -half[n - k].1),
                };
                (0..n).map(of).collect()
            }
        };
        let (all, scale) = (transform(&signal, self.form.is_inverse()), self.scale());
        match self.form {
            Form::Forward | Form::Inverse => all.iter().flat_map(|x| [x.0 * scale, x.1 * scale]).collect(),
            Form::ToHalf => all[..n / 2 + 1].iter().flat_map(|x| [x.0 * scale, x.1 * scale]).collect(),
            Form::FromHalf => all.iter().map(|x| x.0 * scale).collect(),
        }
    }
}
