//! Attention as one kernel: scores, their softmax and the weighted sums of values, with no matrix of scores in memory.

use super::{Axis, MatrixOperand, Stage};
use crate::dtype::DType;
use crate::symbolic::Expr;

/// What a query gets all of whose scores are negative infinity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OfNothing {
    /// NaN, as what comes of dividing by their sum.
    Nothing,
    /// Zeros.
    Zeros,
    /// Zeros; and so does every query the sum of whose weights is NaN.
    ZerosForNan,
}

impl OfNothing {
    /// Its number in the headers of kernels.
    pub fn number(self) -> u8 {
        match self {
            OfNothing::Nothing => 0,
            OfNothing::Zeros => 1,
            OfNothing::ZerosForNan => 2,
        }
    }

    /// Its words in the text form.
    pub fn word(self) -> &'static str {
        match self {
            OfNothing::Nothing => "",
            OfNothing::Zeros => " zeros",
            OfNothing::ZerosForNan => " zeros nan",
        }
    }
}

/// For each query, the mean of the rows of values, weighted by the softmax of the query's scores against all keys.
///
/// A score is a function of the product of query and key. The epilogue runs at each position of (batch axes..., query,
/// column) with the mean.
#[derive(Clone, PartialEq, Debug)]
pub struct Attention {
    /// Batch axes, then query, then column of the values.
    pub axes: Vec<Axis>,
    /// Length of queries and keys.
    pub depth: Expr,
    /// Queries by depth.
    pub queries: MatrixOperand,
    /// Depth by keys.
    pub keys: MatrixOperand,
    /// Keys by columns.
    pub values: MatrixOperand,
    /// Keys behind the query's own position plus this are hidden from it; none are where there is nothing.
    pub reach: Option<Expr>,
    /// What a query gets that sees nothing.
    pub of_nothing: OfNothing,
    /// Element type of the weights and the result.
    pub dtype: DType,
    /// What a score is, over the one axis of keys inside batch axes and query, fed to accumulator 0; then the epilogue.
    pub stages: [Stage; 2],
}

impl Attention {
    /// The axis of keys.
    pub fn key(&self) -> &Axis {
        self.stages[0].axes.first().expect("scores have one axis, that of keys")
    }

    /// Batch axes, then query, then key: the positions of scores.
    pub fn score_axes(&self) -> Vec<Axis> {
        let outer = self.axes.split_last().map_or(&[][..], |(_, outer)| outer);
        outer.iter().chain([self.key()]).cloned().collect()
    }
}
