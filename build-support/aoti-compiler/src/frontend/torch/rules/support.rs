//! Small shape manipulations that several families share. Knows no operator of ATen.

use super::{Context, RuleError};
use crate::dtype::DType;
use crate::graph::{Condition, ReduceOp, Relation, ValueId};
use crate::symbolic::{Expr, Node};

impl Context {
    /// Merges axes `from .. to` into one.
    pub(crate) fn merge_axes(&mut self, x: ValueId, from: usize, to: usize) -> Result<ValueId, RuleError> {
        let shape = self.b.shape(x);
        let merged = Expr::product(&shape[from..to]);
        let mut target = shape[..from].to_vec();
        target.push(merged);
        target.extend_from_slice(&shape[to..]);
        Ok(self.b.reshape(x, &target)?)
    }

    /// Replaces one axis by several whose sizes multiply to its size.
    pub(crate) fn split_axis(
        &mut self,
        x: ValueId,
        axis: usize,
        sizes: &[Expr],
    ) -> Result<ValueId, RuleError> {
        let mut target = self.b.shape(x);
        target.splice(axis..=axis, sizes.iter().cloned());
        Ok(self.b.reshape(x, &target)?)
    }

    /// Moves one axis to another position.
    pub(crate) fn move_axis(&mut self, x: ValueId, from: usize, to: usize) -> Result<ValueId, RuleError> {
        let mut order: Vec<usize> = (0..self.b.rank(x)).filter(|axis| *axis != from).collect();
        order.insert(to, from);
        Ok(self.b.permute(x, &order)?)
    }

    /// Inserts axes of size 1 at the end until there are `rank`.
    pub(crate) fn trailing_ones(&mut self, x: ValueId, rank: usize) -> Result<ValueId, RuleError> {
        let mut shape = self.b.shape(x);
        while shape.len() < rank {
            shape.push(Expr::int(1));
        }
        Ok(self.b.reshape(x, &shape)?)
    }

    /// Inserts an axis of size 1 in front.
    pub(crate) fn batched(&mut self, x: ValueId) -> Result<ValueId, RuleError> {
        Ok(self.b.unsqueeze(x, 0)?)
    }

    /// Views a tensor without axes as one with a single axis of size 1; others stay.
    pub(crate) fn at_least_1d(&mut self, x: ValueId) -> Result<ValueId, RuleError> {
        if self.b.rank(x) == 0 { Ok(self.b.reshape(x, &[Expr::int(1)])?) } else { Ok(x) }
    }

    /// All elements in row-major order along one axis.
    pub(crate) fn flattened(&mut self, x: ValueId) -> Result<ValueId, RuleError> {
        let numel = self.b.ty(x).numel();
        Ok(self.b.reshape(x, &[numel])?)
    }

    /// Sum over axes in the type of the operand.
    pub(crate) fn sum(&mut self, x: ValueId, axes: &[usize], keep: bool) -> Result<ValueId, RuleError> {
        Ok(self.b.reduce(ReduceOp::Sum, x, axes, keep)?)
    }

    /// A comparison of a number with every index of a shape: `expr <relation> 0` as booleans.
    pub(crate) fn index_is(
        &mut self,
        relation: Relation,
        expr: Expr,
        shape: &[Expr],
    ) -> Result<ValueId, RuleError> {
        let index = self.b.index(expr, shape);
        self.with_number(relation, index, 0i64)
    }

    /// The run fails with a message where not all elements are true.
    pub(crate) fn assert_all(&mut self, x: ValueId, message: &str) -> Result<(), RuleError> {
        let axes: Vec<usize> = (0..self.b.rank(x)).collect();
        let all = if axes.is_empty() { x } else { self.b.reduce(ReduceOp::All, x, &axes, false)? };
        Ok(self.b.assert(all, message)?)
    }

    /// Ones on the main diagonal of the last two of the axes of `shape`.
    pub(crate) fn identity_matrix(&mut self, dtype: DType, shape: &[Expr]) -> Result<ValueId, RuleError> {
        let rank = shape.len();
        let on = self.index_is(Relation::Eq, &Expr::axis(rank - 2) - &Expr::axis(rank - 1), shape)?;
        Ok(self.b.cast(on, dtype))
    }
}

/// Fixed sizes, or a refusal that names what needs them.
pub(crate) fn fixed(sizes: &[Expr], what: &str) -> Result<Vec<i64>, RuleError> {
    sizes
        .iter()
        .map(|size| {
            size.as_int().ok_or_else(|| {
                RuleError::unsupported(format!("{what} needs fixed sizes, one of them is `{size}`"))
            })
        })
        .collect()
}

/// A small count as the size or number of an axis.
pub(crate) fn count(value: i64) -> Result<usize, RuleError> {
    usize::try_from(value).map_err(|_| RuleError::Malformed(format!("{value} is negative")))
}

/// A length as an `i64`.
pub(crate) fn length(value: usize) -> i64 {
    i64::try_from(value).expect("lengths in memory fit")
}

/// `values`, repeated to `count` entries where there is only one.
pub(crate) fn spread(values: &[i64], count: usize) -> Result<Vec<i64>, RuleError> {
    match values {
        [one] => Ok(vec![*one; count]),
        _ if values.len() == count => Ok(values.to_vec()),
        _ => Err(RuleError::Malformed(format!("{} entries for {count} axes", values.len()))),
    }
}

/// Makes a size of a result that depends on data known: reads `value` into it where it is a symbol that has no value yet,
/// else requires it to have that value.
pub(crate) fn read_size(
    cx: &mut Context,
    value: ValueId,
    size: &Expr,
    most: Option<&Expr>,
) -> Result<(), RuleError> {
    if let Node::Sym(symbol) = size.node()
        && cx.b.is_data(*symbol)
        && !cx.b.is_read(*symbol)
    {
        cx.b.read(value, *symbol)?;
        if let Some(own) = cx.b.element(value) {
            cx.b.require_same(&own, size)?;
        }
        if let Some(most) = most {
            let condition = Condition::compare(size.clone(), Relation::Le, most.clone());
            cx.b.require(condition, "a size that cannot be larger");
        }
        return Ok(());
    }
    let expected = cx.b.index(size.clone(), &[]);
    let value = cx.b.cast(value, DType::I64);
    let value = cx.b.reshape(value, &[])?;
    let same = cx.binary(Relation::Eq, value, expected)?;
    let message = format!("a number that is read from data must be {}", cx.b.size_text(size));
    Ok(cx.b.assert(same, &message)?)
}

/// `sizes`, repeated to `count` entries where there is only one.
pub(crate) fn spread_syms(sizes: &[Expr], count: usize) -> Result<Vec<Expr>, RuleError> {
    match sizes {
        [one] => Ok(vec![one.clone(); count]),
        _ if sizes.len() == count => Ok(sizes.to_vec()),
        _ => Err(RuleError::Malformed(format!("{} entries for {count} axes", sizes.len()))),
    }
}
