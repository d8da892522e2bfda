//! All pairs of numbers below a size, in the order of PyTorch's `combinations`. Knows no operator.

use super::{Context, Formula, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Scalar, ValueId};
use crate::symbolic::Expr;

impl Context {
    /// The first and the second number of each pair below `n` of which the second is larger, or not smaller if numbers may
    /// repeat: `i64` vectors.
    pub(crate) fn pairs(&mut self, n: &Expr, repeat: bool) -> Result<[ValueId; 2], RuleError> {
        let own = i64::from(repeat);
        // Row i of the triangle has n - i - 1 pairs, or one more.
        let at = Expr::axis(0);
        let both = &at * &(&(&(n * 2) - &at) + (2 * own - 1));
        let starts = both.floor_div_in(&Expr::int(2), &self.b.axis_ranges(std::slice::from_ref(n)));
        let starts = self.b.index(starts, std::slice::from_ref(n));
        let count = (n * &(n + (2 * own - 1))).floor_div_in(&Expr::int(2), self.b.ranges());
        let place = self.b.index(at, &[count]);
        let behind = self.b.search_sorted(starts, place, true)?;
        let row = self.with_number(BinaryOp::Sub, behind, 1i64)?;
        let size = self.b.index(n.clone(), &[]);
        let whole = |number: i64| Formula::from(Scalar::Int(number.into()));
        let column = self.apply([row, place, size], DType::I64, |[row, place, n]| {
            let start = (&row * (n * whole(2) - &row + whole(2 * own - 1))).trunc_div(whole(2));
            place - start + row + whole(1 - own)
        })?;
        Ok([row, column])
    }
}
