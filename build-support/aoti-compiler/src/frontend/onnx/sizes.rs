//! Numbers that a program computes as tensors and that decide sizes: known where they follow from sizes, read from data
//! elsewhere.

use super::call::{malformed, unsupported};
use super::walk::Onnx;
use crate::dtype::DType;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{BinaryOp, LARGEST_SIZE, SymbolInfo, SymbolSource, UnaryOp, ValueId};
use crate::symbolic::{Expr, Interval};

/// A tensor of more sizes is of no shape that there is.
pub(super) const MOST_SIZES: i64 = 64;

/// An integer of any sign that decides a size.
#[derive(Clone)]
pub(super) enum Amount {
    /// An expression over sizes.
    Known(Expr),
    /// Read from data, as what of it is above zero and what is below: symbols are sizes, and one of these is zero.
    Read { above: Expr, below: Expr },
}

impl Amount {
    pub(super) fn zero() -> Amount {
        Amount::Known(Expr::int(0))
    }

    /// The number.
    pub(super) fn signed(&self) -> Expr {
        match self {
            Amount::Known(number) => number.clone(),
            Amount::Read { above, below } => above - below,
        }
    }
}

impl Onnx<'_> {
    /// A tensor of integers from expressions over sizes.
    pub(super) fn vector(&mut self, sizes: &[Expr]) -> Result<ValueId, RuleError> {
        let fixed: Option<Vec<i64>> = sizes.iter().map(Expr::as_int).collect();
        if let Some(fixed) = fixed {
            return Ok(self.b.int_vector(&fixed));
        }
        let rows: Vec<ValueId> =
            sizes.iter().map(|size| self.b.index(size.clone(), &[Expr::int(1)])).collect();
        Ok(self.b.cat(&rows, 0)?)
    }

    /// The elements of a tensor of integers, if they are known when the model is compiled.
    pub(super) fn known(&self, value: ValueId) -> Option<Vec<Expr>> {
        self.b.elements(value)
    }

    /// The elements of a tensor of integers that have to be constants.
    pub(super) fn fixed(&self, value: ValueId, what: &str) -> Result<Vec<i64>, RuleError> {
        let known = self.known(value).and_then(|all| all.iter().map(Expr::as_int).collect());
        known.ok_or_else(|| unsupported(format!("{what} that is not known when the model is compiled")))
    }

    /// The elements of a tensor of integers as sizes; those that data decide are read into symbols.
    pub(super) fn sizes(&mut self, value: ValueId) -> Result<Vec<Expr>, RuleError> {
        if let Some(known) = self.known(value) {
            return Ok(known);
        }
        let ty = self.b.ty(value).clone();
        if ty.dtype.is_float() {
            return Err(malformed("sizes are integers"));
        }
        let count = ty.numel().as_int().filter(|count| *count <= MOST_SIZES);
        let count = count.ok_or_else(|| unsupported("sizes whose number is not known"))?;
        let flat = self.flattened(value)?;
        (0..count)
            .map(|position| {
                let one = self.b.pick(flat, 0, &Expr::int(position))?;
                match self.b.element(one) {
                    Some(known) => Ok(known),
                    None => self.read_size(one, None),
                }
            })
            .collect()
    }

    /// The elements of a tensor of integers that may be negative.
    pub(super) fn amounts(&mut self, value: ValueId) -> Result<Vec<Amount>, RuleError> {
        if let Some(known) = self.known(value) {
            return Ok(known.into_iter().map(Amount::Known).collect());
        }
        let [above, below] = self.signs(value)?;
        let (above, below) = (self.sizes(above)?, self.sizes(below)?);
        Ok(above.into_iter().zip(below).map(|(above, below)| Amount::Read { above, below }).collect())
    }

    /// A number without axes that may be negative.
    pub(super) fn amount(&mut self, value: ValueId) -> Result<Amount, RuleError> {
        if let Some(known) = self.b.element(value) {
            return Ok(Amount::Known(known));
        }
        let [above, below] = self.signs(value)?;
        Ok(Amount::Read { above: self.size_of(above)?, below: self.size_of(below)? })
    }

    /// What of an amount is above zero and how far below zero it is, both as sizes.
    pub(super) fn parts(&self, amount: &Amount) -> [Expr; 2] {
        match amount {
            Amount::Known(number) => {
                let zero = Expr::int(0);
                [number, &(&zero - number)].map(|part| self.b.larger(part, &zero))
            }
            Amount::Read { above, below } => [above.clone(), below.clone()],
        }
    }

    /// What of integers is above zero, and what is below it: symbols are sizes.
    fn signs(&mut self, value: ValueId) -> Result<[ValueId; 2], RuleError> {
        let value = self.b.cast(value, DType::I64);
        let negated = self.b.unary(UnaryOp::Neg, value);
        Ok([
            self.with_number(BinaryOp::Maximum, value, 0i64)?,
            self.with_number(BinaryOp::Maximum, negated, 0i64)?,
        ])
    }

    /// The only element of a tensor of integers as a size.
    pub(super) fn size(&mut self, value: ValueId) -> Result<Expr, RuleError> {
        match self.sizes(value)?.as_slice() {
            [one] => Ok(one.clone()),
            all => Err(super::call::malformed(format!("{} numbers where one is needed", all.len()))),
        }
    }

    /// A number without axes as a size.
    pub(super) fn size_of(&mut self, value: ValueId) -> Result<Expr, RuleError> {
        match self.b.element(value) {
            Some(known) => Ok(known),
            None => self.read_size(value, None),
        }
    }

    /// A size that data decide and that is at most `most`.
    pub(super) fn read_size(&mut self, value: ValueId, most: Option<&Expr>) -> Result<Expr, RuleError> {
        if self.b.is_body() {
            return Err(unsupported("a size that data decide inside of a branch or a loop"));
        }
        let info = SymbolInfo {
            name: String::new(),
            range: Interval::new(0, LARGEST_SIZE),
            source: SymbolSource::Data,
            most: None,
        };
        let symbol = Expr::sym(self.b.symbol(info));
        let value = self.b.cast(value, DType::I64);
        let value = self.b.reshape(value, &[])?;
        crate::frontend::torch::rules::support::read_size(self, value, &symbol, most)?;
        Ok(symbol)
    }
}
