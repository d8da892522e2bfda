//! Reductions, running reductions, and what depends on order.

use super::{Builder, Built, ensure};
use crate::dtype::{DType, bytes_of};
use crate::fourier::{Fourier, LONGEST, Plan};
use crate::graph::{
    Constant, Op, Operands, Part, Recurrent, ReduceOp, Routine, ScanOp, ShapeError, TensorType, Ties, ValueId,
};
use crate::symbolic::Expr;

impl Builder {
    /// Reduces axes; with `keep` they stay with size 1.
    pub fn reduce(&mut self, op: ReduceOp, x: ValueId, axes: &[usize], keep: bool) -> Built {
        let ty = self.ty(x).clone();
        let mut axes = axes.to_vec();
        axes.sort_unstable();
        axes.dedup();
        ensure!(axes.iter().all(|axis| *axis < ty.rank()), "axes {axes:?} of {}", ty.rank());
        let kept: Vec<Expr> = ty
            .shape
            .iter()
            .enumerate()
            .map(|(k, s)| if axes.contains(&k) { Expr::int(1) } else { s.clone() })
            .collect();
        let reduced: Vec<Expr> =
            ty.shape.iter().enumerate().filter(|(k, _)| !axes.contains(k)).map(|(_, s)| s.clone()).collect();
        let needs_element = matches!(op, ReduceOp::Max | ReduceOp::Min | ReduceOp::ArgMax | ReduceOp::ArgMin);
        ensure!(
            !needs_element || axes.iter().all(|axis| !ty.shape[*axis].is(0)),
            "`{}` of an empty axis has no value",
            op.name()
        );
        let dtype = if op.is_arg() { DType::I64 } else { ty.dtype };
        let result = if axes.is_empty() {
            if op.is_arg() { self.full(0i64, DType::I64, &reduced) } else { x }
        } else {
            self.push1(Op::Reduce { op, axes: axes.clone() }, &[x], dtype, reduced)
        };
        if keep { self.reshape(result, &kept) } else { Ok(result) }
    }

    /// Running reduction: values, and indices where the operator has them.
    pub fn scan(&mut self, op: ScanOp, x: ValueId, axis: usize) -> Built<Vec<ValueId>> {
        let ty = self.ty(x).clone();
        ensure!(axis < ty.rank(), "axis {axis} of {}", ty.rank());
        let mut types = vec![ty.clone()];
        if op.has_indices() {
            types.push(TensorType { dtype: DType::I64, shape: ty.shape });
        }
        Ok(self.push(Op::Scan { op, axis }, &[x], types))
    }

    /// Stable sort: values and indices.
    pub fn sort(&mut self, x: ValueId, axis: usize, descending: bool) -> Built<(ValueId, ValueId)> {
        let ty = self.ty(x).clone();
        ensure!(axis < ty.rank(), "axis {axis} of {}", ty.rank());
        let indices = TensorType { dtype: DType::I64, shape: ty.shape.clone() };
        let op = Op::Sort { axis, descending, kept: None };
        let outputs = self.push(op, &[x], vec![ty, indices]);
        Ok((outputs[0], outputs[1]))
    }

    /// The first of a stable sort, `count` of them: values and indices.
    pub fn sort_first(
        &mut self,
        x: ValueId,
        axis: usize,
        descending: bool,
        count: &Expr,
    ) -> Built<(ValueId, ValueId)> {
        let ty = self.ty(x).clone();
        ensure!(axis < ty.rank(), "axis {axis} of {}", ty.rank());
        let first = self.slice(x, axis, &Expr::int(0), count, 1)?;
        self.require_at_least(&ty.shape[axis], count)?;
        let Some(kept) = count.as_int().filter(|_| *count != ty.shape[axis]) else {
            let (values, indices) = self.sort(x, axis, descending)?;
            let slice = |builder: &mut Self, value| builder.slice(value, axis, &Expr::int(0), count, 1);
            return Ok((slice(self, values)?, slice(self, indices)?));
        };
        let shape = self.shape(first);
        let indices = TensorType { dtype: DType::I64, shape: shape.clone() };
        let values = TensorType { dtype: ty.dtype, shape };
        let op = Op::Sort { axis, descending, kept: Some(kept) };
        let outputs = self.push(op, &[x], vec![values, indices]);
        Ok((outputs[0], outputs[1]))
    }

    /// The element of a rank along an axis that is not empty: value and index, on an axis of one, as ranks are.
    pub fn nth_element(
        &mut self,
        x: ValueId,
        ranks: ValueId,
        axis: usize,
        ties: Ties,
    ) -> Built<(ValueId, ValueId)> {
        let (mut ty, of_ranks) = (self.ty(x).clone(), self.ty(ranks).clone());
        ensure!(axis < ty.rank(), "axis {axis} of {}", ty.rank());
        self.require_at_least(&ty.shape[axis], &Expr::int(1))?;
        ty.shape[axis] = Expr::int(1);
        ensure!(of_ranks.dtype == DType::I64 && of_ranks.rank() == ty.rank(), "ranks {of_ranks} of {ty}");
        for (own, wanted) in of_ranks.shape.iter().zip(&ty.shape) {
            self.require_same(own, wanted)?;
        }
        let indices = TensorType { dtype: DType::I64, shape: ty.shape.clone() };
        let outputs = self.push(Op::NthElement { axis, ties }, &[x, ranks], vec![ty, indices]);
        Ok((outputs[0], outputs[1]))
    }

    /// A routine on each matrix.
    pub fn routine(&mut self, routine: Routine, operands: &[ValueId]) -> Built<Vec<ValueId>> {
        let parts = routine.operands();
        ensure!(operands.len() == parts.len(), "{} operands of `{}`", operands.len(), routine.name());
        let whole = self.ty(operands[routine.matrix()]).clone();
        let Some(last) = whole.rank().checked_sub(2) else {
            return Err(ShapeError(format!("`{}` of {whole}, which is no matrix", routine.name())));
        };
        let (leading, m, n) = (&whole.shape[..last], &whole.shape[last], &whole.shape[last + 1]);
        if routine.is_of_squares() {
            self.require_same(m, n)?;
        }
        for (part, operand) in parts.iter().zip(operands) {
            let ty = self.ty(*operand).clone();
            let dtype = if part.is_integer { DType::I64 } else { whole.dtype };
            let shape = part.shape(leading, m, n);
            ensure!(
                ty.dtype == dtype && ty.rank() == shape.len(),
                "`{}` of {ty} beside {whole}",
                routine.name()
            );
            for (own, wanted) in ty.shape.iter().zip(&shape) {
                self.require_same(own, wanted)?;
            }
        }
        let result = |part: &Part| TensorType {
            dtype: if part.is_integer { DType::I64 } else { whole.dtype },
            shape: part.shape(leading, m, n),
        };
        let types = routine.results().iter().map(result).collect();
        Ok(self.push(Op::Routine(routine), operands, types))
    }

    /// The transform of each row; its roots are a constant of the program.
    pub fn fourier(&mut self, fourier: Fourier, x: ValueId) -> Built {
        let ty = self.ty(x).clone();
        ensure!(matches!(ty.dtype, DType::F32 | DType::F64), "a Fourier transform of {}", ty.dtype);
        let n = fourier.length;
        ensure!((1..=LONGEST).contains(&n), "a transform of {n} numbers: 1 to {LONGEST} can be");
        let Some(shape) = fourier.result_shape(&ty.shape) else {
            return Err(ShapeError(format!("{ty} has no rows of a transform of {n} numbers")));
        };
        let roots = Plan::of(&fourier, ty.dtype).roots();
        let sizes = vec![i64::try_from(roots.len()).expect("a few for each number")];
        let data = if ty.dtype == DType::F64 {
            bytes_of(&roots, &f64::to_le_bytes)
        } else {
            bytes_of(&roots, &|root| (root as f32).to_le_bytes())
        };
        let roots = self.constant(Constant::new("", ty.dtype, sizes, data))?;
        Ok(self.push1(Op::Fourier(fourier), &[x, roots], ty.dtype, shape))
    }

    /// A recurrent layer.
    pub fn recurrent(&mut self, own: Recurrent, operands: Operands<ValueId>) -> Built<Vec<ValueId>> {
        let (gates, operands) = (operands.gates, operands.into_list());
        let ty = self.ty(gates).clone();
        ensure!(own.is_sound(), "`{}`", own.text());
        let Some((steps, batch)) = own.steps_and_batch(&ty.shape) else {
            return Err(ShapeError(format!("{ty} is no sequence")));
        };
        let shapes = own.operand_shapes(steps, batch);
        ensure!(operands.len() == shapes.len(), "{} operands of a recurrent layer", operands.len());
        for (value, shape) in operands.iter().zip(shapes) {
            let given = self.ty(*value).clone();
            let fits = given.dtype == ty.dtype && given.rank() == shape.len();
            ensure!(fits, "{given} where {} is wanted", TensorType { dtype: ty.dtype, shape });
            for (own, wanted) in given.shape.iter().zip(&shape) {
                self.require_same(own, wanted)?;
            }
        }
        let results = own.result_shapes(steps, batch).into_iter();
        let types = results.map(|shape| TensorType { dtype: ty.dtype, shape }).collect();
        Ok(self.push(Op::Recurrent(own), &operands, types))
    }

    /// Where values would be inserted into sorted rows.
    pub fn search_sorted(&mut self, sorted: ValueId, values: ValueId, right: bool) -> Built {
        let (rows, ty) = (self.ty(sorted).clone(), self.ty(values).clone());
        ensure!(rows.dtype == ty.dtype, "sorted is {}, values are {}", rows.dtype, ty.dtype);
        ensure!(rows.rank() >= 1 && rows.rank() == ty.rank(), "ranks {} and {}", rows.rank(), ty.rank());
        for (a, b) in rows.shape.iter().zip(&ty.shape).take(rows.rank() - 1) {
            self.require_same(a, b)?;
        }
        Ok(self.push1(Op::SearchSorted { right }, &[sorted, values], DType::I64, ty.shape))
    }
}
