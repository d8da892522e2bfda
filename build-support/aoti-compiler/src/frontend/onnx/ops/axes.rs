//! Axes that are operands: constants in nearly all models, data in some.
//!
//! Where they are data, the shapes that the model states say which axes there can be. Each of these is computed, and the run takes
//! the one that its axes are.

use super::super::call::{Call, malformed, unsupported};
use super::super::walk::Onnx;
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{BinaryOp, IntBinary, ReduceOp, Relation, UnaryOp, ValueId};
use crate::symbolic::Expr;

/// The axes of a node.
#[derive(Clone, Debug)]
pub(super) enum Axes {
    /// These.
    Known(Vec<usize>),
    /// Those that a tensor says, so many, of a tensor of `rank` axes.
    Data { value: ValueId, count: usize, rank: usize },
}

impl Axes {
    /// How many they are.
    pub(super) fn count(&self) -> usize {
        match self {
            Axes::Known(axes) => axes.len(),
            Axes::Data { count, .. } => *count,
        }
    }
}

/// What makes a value of axes.
type OfAxes<'f> = dyn FnMut(&mut Onnx<'_>, &[usize]) -> Result<ValueId, RuleError> + 'f;

/// Alternatives beyond which nobody waits for the compiler.
const MOST: usize = 64;

impl Onnx<'_> {
    /// Axes in a tensor.
    pub(super) fn axes_of(&mut self, value: ValueId, rank: usize) -> Result<Axes, RuleError> {
        if let Some(known) = self.known(value) {
            let axes: Option<Vec<i64>> = known.iter().map(Expr::as_int).collect();
            if let Some(axes) = axes {
                let axes = axes.iter().map(|axis| axis_of(*axis, rank)).collect::<Result<_, _>>()?;
                return Ok(Axes::Known(axes));
            }
        }
        let count = self.b.ty(value).numel().as_int().and_then(|count| usize::try_from(count).ok());
        let count =
            count.ok_or_else(|| unsupported("axes whose number is not known when the model is compiled"))?;
        if count > rank {
            return Err(malformed(format!("{count} axes of a tensor that has {rank}")));
        }
        let value = self.b.cast(value, DType::I64);
        let value = self.flattened(value)?;
        Ok(Axes::Data { value, count, rank })
    }

    /// Axes that are an attribute before a version, and an operand from it on.
    pub(super) fn axes(
        &mut self,
        c: &Call,
        since: i64,
        position: usize,
        rank: usize,
    ) -> Result<Option<Axes>, RuleError> {
        if c.version >= since {
            return c.opt_tensor(position)?.map(|axes| self.axes_of(axes, rank)).transpose();
        }
        let Some(axes) = c.opt_ints("axes")? else { return Ok(None) };
        let axes = axes.iter().map(|axis| axis_of(*axis, rank)).collect::<Result<_, _>>()?;
        Ok(Some(Axes::Known(axes)))
    }

    /// What `compute` makes of the axes; of those that data say, it is computed for all that give the sizes that the model states of
    /// the node's result.
    pub(super) fn over_axes(
        &mut self,
        c: &Call,
        axes: &Axes,
        compute: &mut OfAxes<'_>,
    ) -> Result<ValueId, RuleError> {
        let (value, count, rank) = match axes {
            Axes::Known(axes) => return compute(self, axes),
            Axes::Data { value, count, rank } => (*value, *count, *rank),
        };
        let stated = c.node.output.first().and_then(|name| self.stated.get(name)).cloned();
        let taken = self.taken(value, count, rank)?;
        let mut chosen: Option<ValueId> = None;
        let mut any: Option<ValueId> = None;
        for candidate in subsets(rank, count) {
            let result = match compute(self, &candidate) {
                Ok(result) if self.fits(result, stated.as_deref()) => result,
                Ok(_) | Err(_) => continue,
            };
            let is_this = self.are(taken, rank, &candidate)?;
            (chosen, any) = match (chosen, any) {
                (Some(chosen), Some(any)) => {
                    if self.b.shape(chosen) != self.b.shape(result) {
                        return Err(unsupported("axes that are data, where the model states no sizes"));
                    }
                    let chosen = self.b.select(is_this, result, chosen)?;
                    (Some(chosen), Some(self.b.binary(IntBinary::Or, any, is_this)?))
                }
                _ => (Some(result), Some(is_this)),
            };
        }
        let none = || unsupported("axes that are data, none of which give the sizes that the model states");
        self.b.assert(any.ok_or_else(none)?, "axes other than those that the sizes in the model allow")?;
        chosen.ok_or_else(none)
    }

    /// Which of the axes are among those that a tensor says.
    fn taken(&mut self, axes: ValueId, count: usize, rank: usize) -> Result<ValueId, RuleError> {
        let shape = [Expr::int(count as i64), Expr::int(rank as i64)];
        let below = self.with_number(Relation::Lt, axes, 0i64)?;
        let wrapped = self.with_number(BinaryOp::Add, axes, rank as i64)?;
        let axes = self.b.select(below, wrapped, axes)?;
        let axes = self.b.unsqueeze(axes, 1)?;
        let axis = self.b.index(Expr::axis(1), &shape);
        let hits = self.b.binary(Relation::Eq, axis, axes)?;
        if count == 0 {
            return Ok(self.b.full(false, DType::Bool, &shape[1..]));
        }
        Ok(self.b.reduce(ReduceOp::Any, hits, &[0], false)?)
    }

    /// Whether exactly these axes are taken.
    fn are(&mut self, taken: ValueId, rank: usize, axes: &[usize]) -> Result<ValueId, RuleError> {
        let mut all = self.b.scalar(true, DType::Bool);
        for axis in 0..rank {
            let mut is_taken = self.b.pick(taken, 0, &Expr::int(axis as i64))?;
            if !axes.contains(&axis) {
                is_taken = self.b.unary(UnaryOp::Not, is_taken);
            }
            all = self.b.binary(IntBinary::And, all, is_taken)?;
        }
        Ok(all)
    }

    fn fits(&self, value: ValueId, stated: Option<&[Option<i64>]>) -> bool {
        let Some(stated) = stated else { return true };
        let shape = self.b.shape(value);
        let agree = |(size, stated): (&Expr, &Option<i64>)| match (size.as_int(), stated) {
            (Some(size), Some(stated)) => size == *stated,
            (None, _) | (_, None) => true,
        };
        shape.len() == stated.len() && shape.iter().zip(stated).all(agree)
    }

    /// For each axis of a tensor of `rank` axes the number that a list has for it; the list is of the axes.
    pub(super) fn for_each_axis(
        &mut self,
        list: ValueId,
        axes: &Axes,
        default: i64,
    ) -> Result<Vec<Option<ValueId>>, RuleError> {
        let list = self.b.cast(list, DType::I64);
        match axes {
            Axes::Known(axes) => {
                let rank = axes.iter().max().map_or(0, |last| last + 1);
                let mut all = vec![None; rank];
                for (position, axis) in axes.iter().enumerate() {
                    all[*axis] = Some(self.b.pick(list, 0, &Expr::int(position as i64))?);
                }
                Ok(all)
            }
            Axes::Data { value, count, rank } => {
                let below = self.with_number(Relation::Lt, *value, 0i64)?;
                let wrapped = self.with_number(BinaryOp::Add, *value, *rank as i64)?;
                let own = self.b.select(below, wrapped, *value)?;
                let mut all = Vec::new();
                for axis in 0..*rank {
                    let mut number = self.b.scalar(default, DType::I64);
                    for position in 0..*count {
                        let [at, given] =
                            [own, list].map(|list| self.b.pick(list, 0, &Expr::int(position as i64)));
                        let is_this = self.with_number(Relation::Eq, at?, axis as i64)?;
                        number = self.b.select(is_this, given?, number)?;
                    }
                    all.push(Some(number));
                }
                Ok(all)
            }
        }
    }
}

/// All sets of `count` of the first `rank` numbers, in ascending order.
fn subsets(rank: usize, count: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..count {
        let longer = |own: &Vec<usize>| {
            let first = own.last().map_or(0, |last| last + 1);
            let own = own.clone();
            (first..rank).map(move |next| [own.as_slice(), &[next]].concat())
        };
        all = all.iter().flat_map(longer).collect();
        all.truncate(MOST);
    }
    all
}
