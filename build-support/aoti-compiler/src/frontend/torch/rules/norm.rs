//! Norms and distances.

use super::operand::Operand;
use super::registry::rules;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::frontend::torch::aten::Arg;
use crate::graph::{BinaryOp, Condition, Coord, FloatUnary, ReduceOp, Relation, UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.linalg_vector_norm.default" => |cx, a| vector(cx, a, "ord"),
    pure "aten.norm.Scalar" => |cx, a| vector(cx, a, "p"),
    pure "aten.norm.ScalarOpt_dim" => |cx, a| vector(cx, a, "p"),
    pure "aten.norm.ScalarOpt_dtype" => |cx, a| vector(cx, a, "p"),
    pure "aten.norm.ScalarOpt_dim_dtype" => |cx, a| vector(cx, a, "p"),
    pure "aten.native_norm.default" => |cx, a| vector(cx, a, "p"),
    pure "aten.native_norm.ScalarOpt_dim_dtype" => |cx, a| vector(cx, a, "p"),
    pure "aten.frobenius_norm.dim" => |cx, a| vector(cx, a, "ord"),
    pure "aten.linalg_norm.default" => linalg_norm,
    pure "aten.linalg_norm.ord_str" => matrix,
    pure "aten.linalg_matrix_norm.default" => matrix,
    pure "aten.linalg_matrix_norm.str_ord" => matrix,
    pure "aten.dist.default" => dist,
    pure "aten.pairwise_distance.default" => pairwise,
    pure "aten.cosine_similarity.default" => cosine,
    pure "aten.cdist.default" => cdist,
    pure "aten._cdist_forward.default" => cdist,
    pure "aten._euclidean_dist.default" => cdist,
    pure "aten.pdist.default" => pdist,
    pure "aten._pdist_forward.default" => pdist,
    pure "aten.renorm.default" => renorm,
}

impl Context {
    /// The `order`-norm over axes of an `f32` or `f64` tensor.
    pub(crate) fn vector_norm(
        &mut self,
        x: ValueId,
        order: f64,
        axes: &[usize],
        keep: bool,
    ) -> Result<ValueId, RuleError> {
        if order == 2.0 {
            let squares = self.mul(x, x)?;
            let total = self.sum(squares, axes, keep)?;
            return Ok(self.unary(FloatUnary::Sqrt, total));
        }
        if order == 0.0 {
            let nonzero = self.with_number(Relation::Ne, x, 0.0)?;
            let dtype = self.b.dtype(x);
            let ones = self.b.cast(nonzero, dtype);
            return self.sum(ones, axes, keep);
        }
        let magnitude = self.unary(UnaryOp::Abs, x);
        if order.is_infinite() {
            let shape = self.b.shape(x);
            if order > 0.0 && axes.iter().any(|axis| shape[*axis].is(0)) {
                // The largest magnitude of nothing is 0, as is its sum.
                return self.sum(magnitude, axes, keep);
            }
            let op = if order > 0.0 { ReduceOp::Max } else { ReduceOp::Min };
            for axis in axes {
                let exists = Condition::compare(shape[*axis].clone(), Relation::Ge, 1);
                self.b.require(exists, "an infinite norm of nothing");
            }
            return Ok(self.b.reduce(op, magnitude, axes, keep)?);
        }
        if order == 1.0 {
            return self.sum(magnitude, axes, keep);
        }
        let powers = self.with_number(BinaryOp::Pow, magnitude, order)?;
        let total = self.sum(powers, axes, keep)?;
        self.with_number(BinaryOp::Pow, total, 1.0 / order)
    }

    /// As [`Context::vector_norm`], of an order that may be known only at run time. Then it is finite, and powers serve
    /// them all but one: of order 0, elements that differ from zero are counted.
    fn vector_norm_of(
        &mut self,
        x: ValueId,
        order: &Operand,
        axes: &[usize],
        keep: bool,
    ) -> Result<ValueId, RuleError> {
        let dtype = self.b.dtype(x);
        match order {
            Operand::Number(order) => return self.vector_norm(x, order.to_f64(), axes, keep),
            Operand::Size(number) => {
                let shape = self.b.shape(x);
                let reduced: Vec<Expr> = axes.iter().map(|axis| shape[*axis].clone()).collect();
                let exists = Condition::any([
                    Condition::compare(number.clone(), Relation::Ge, 0),
                    Condition::compare(Expr::product(&reduced), Relation::Ge, 1),
                ]);
                self.b.require(exists, "a norm of negative order of nothing");
            }
            Operand::Computed(number, _) => {
                let finite = self.apply([*number], DType::F64, |[order]| order.is_finite())?;
                self.b.assert(finite, "an infinite order of a norm that is a number at run time")?;
            }
            Operand::Tensor(_) | Operand::Truth(_) => {
                return Err(RuleError::unsupported("an order that is no number"));
            }
        }
        let order = order.formula(self, dtype);
        let powers = self.apply([x], dtype, |[x]| {
            let counted = x.equals(0.0).select(0.0, 1.0);
            order.equals(0.0).select(counted, x.abs().pow(&order))
        })?;
        let total = self.sum(powers, axes, keep)?;
        self.apply([total], dtype, |[total]| {
            let root = total.pow(Formula::from(1.0) / &order);
            order.equals(0.0).select(&total, root)
        })
    }
}

/// The operand of a norm in the type that `dtype=` asks for.
fn operand(cx: &mut Context, a: &Args) -> Result<ValueId, RuleError> {
    let x = a.tensor("self")?;
    Ok(match a.opt_dtype("dtype")? {
        Some(dtype) => cx.b.cast(x, dtype),
        None => cx.to_float(x),
    })
}

fn vector(cx: &mut Context, a: &Args, order: &str) -> Rule {
    let x = operand(cx, a)?;
    let order = a.number_or(order, 2.0)?;
    let (axes, keep) = super::reduction::reduced(cx, a, x)?;
    Ok(cx.in_compute_type(x, |cx, x| cx.vector_norm_of(x, &order, &axes, keep))?.into())
}

/// A vector norm for one axis or all of a vector, a matrix norm for two.
fn linalg_norm(cx: &mut Context, a: &Args) -> Rule {
    let rank = { cx.b.rank(a.tensor("self")?) };
    let n_axes = if a.has("dim") { a.ints("dim")?.len() } else { rank };
    if a.has("ord") && n_axes == 2 { matrix(cx, a) } else { vector(cx, a, "ord") }
}

fn matrix(cx: &mut Context, a: &Args) -> Rule {
    let x = operand(cx, a)?;
    let keep = a.bool_or("keepdim", false)?;
    let axes = Context::axes(&a.ints_or("dim", &[-2, -1])?, cx.b.rank(x))?;
    let [rows, columns] = axes.as_slice() else {
        return Err(RuleError::Malformed("a matrix norm is over two axes".to_owned()));
    };
    let order = order_of(a, "ord", "fro")?;
    Ok(of_matrix(cx, x, &[*rows, *columns], &order, keep)?.into())
}

/// A norm's order by its name, `2` for 2.
pub(crate) fn order_of(a: &Args, name: &str, default: &str) -> Result<String, RuleError> {
    Ok(match a.raw(name) {
        None => default.to_owned(),
        Some(Arg::Str(name)) => name.clone(),
        Some(_) => a.scalar(name)?.to_f64().to_string(),
    })
}

/// A norm of the matrices of two axes.
pub(crate) fn of_matrix(
    cx: &mut Context,
    x: ValueId,
    axes: &[usize; 2],
    order: &str,
    keep: bool,
) -> Result<ValueId, RuleError> {
    let [rows, columns] = axes;
    let (summed, compared, op) = match order {
        "fro" => return cx.in_compute_type(x, |cx, x| cx.vector_norm(x, 2.0, axes, keep)),
        "1" => (*rows, *columns, ReduceOp::Max),
        "-1" => (*rows, *columns, ReduceOp::Min),
        "inf" => (*columns, *rows, ReduceOp::Max),
        "-inf" => (*columns, *rows, ReduceOp::Min),
        "nuc" | "2" | "-2" => {
            let mut order_of_axes: Vec<usize> =
                (0..cx.b.rank(x)).filter(|axis| !axes.contains(axis)).collect();
            order_of_axes.extend(axes);
            let moved = cx.b.permute(x, &order_of_axes)?;
            let norm = cx.singular_norm(moved, order)?;
            if !keep {
                return Ok(norm);
            }
            let mut shape = cx.b.shape(x);
            axes.iter().for_each(|axis| shape[*axis] = Expr::int(1));
            return Ok(cx.b.reshape(norm, &shape)?);
        }
        other => return Err(RuleError::unsupported(format!("the order `{other}` of a matrix norm"))),
    };
    cx.in_compute_type(x, |cx, x| {
        let magnitude = cx.unary(UnaryOp::Abs, x);
        let sums = cx.sum(magnitude, &[summed], true)?;
        let result = cx.b.reduce(op, sums, &[compared], true)?;
        if keep { Ok(result) } else { cx.drop_axes(result, axes) }
    })
}

fn dist(cx: &mut Context, a: &Args) -> Rule {
    let order = a.number_or("p", 2.0)?;
    let (x, y) = (a.tensor("self")?, a.tensor("other")?);
    let dtype = cx.float_type(cx.result_type(&[x, y])?);
    let wide = dtype.compute();
    let difference = difference(cx, x, y)?;
    let difference = cx.b.cast(difference, wide);
    let axes: Vec<usize> = (0..cx.b.rank(difference)).collect();
    let result = cx.vector_norm_of(difference, &order, &axes, false)?;
    Ok(cx.b.cast(result, dtype).into())
}

/// `x - y` in the common type; half types stay wide.
fn difference(cx: &mut Context, x: ValueId, y: ValueId) -> Result<ValueId, RuleError> {
    let dtype = cx.result_type(&[x, y])?;
    cx.apply([x, y], dtype.compute(), |[x, y]| x - y)
}

/// `norm(x1 - x2 + eps)` over the last axis, in the computing type; integers are subtracted as integers.
pub(crate) fn pairwise_distance(
    cx: &mut Context,
    x: ValueId,
    y: ValueId,
    (order, eps): (f64, f64),
    keep: bool,
) -> Result<ValueId, RuleError> {
    let difference = difference(cx, x, y)?;
    let difference = cx.apply_float([difference], |[d]| d + eps)?;
    let rank = cx.b.rank(difference);
    let axes: Vec<usize> = rank.checked_sub(1).into_iter().collect();
    cx.vector_norm(difference, order, &axes, keep)
}

fn pairwise(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("x1")?, a.tensor("x2")?);
    let dtype = cx.float_type(cx.result_type(&[x, y])?);
    let parameters = (a.float_or("p", 2.0)?, a.float_or("eps", 1e-6)?);
    let result = pairwise_distance(cx, x, y, parameters, a.bool_or("keepdim", false)?)?;
    Ok(cx.b.cast(result, dtype).into())
}

fn cosine(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("x1")?, a.tensor("x2")?);
    let eps = a.float_or("eps", 1e-8)?;
    let dtype = cx.float_type(cx.result_type(&[x, y])?);
    let wide = dtype.compute();
    let shape = cx.b.broadcast_shapes(&[x, y])?;
    let axis = Context::axis(a.int_or("dim", 1)?, shape.len())?;
    let axes = if shape.is_empty() { vec![] } else { vec![axis] };
    let mut unit = Vec::new();
    for value in [x, y] {
        let value = cx.b.cast(value, wide);
        let value = cx.b.expand(value, &shape)?;
        let norm = cx.vector_norm(value, 2.0, &axes, true)?;
        let norm = cx.with_number(BinaryOp::Maximum, norm, eps)?;
        unit.push(cx.div(value, norm)?);
    }
    let product = cx.mul(unit[0], unit[1])?;
    let result = cx.sum(product, &axes, false)?;
    Ok(cx.b.cast(result, dtype).into())
}

/// Distances between every row of one matrix and every row of another.
fn cdist(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("x1")?, a.tensor("x2")?);
    let order = a.float_or("p", 2.0)?;
    let rank = cx.b.rank(x).min(cx.b.rank(y));
    if rank < 2 {
        return Err(RuleError::Malformed("the operands are not matrices".to_owned()));
    }
    let dtype = cx.float_type(cx.result_type(&[x, y])?);
    let x = cx.b.unsqueeze(x, cx.b.rank(x) - 1)?;
    let y = cx.b.unsqueeze(y, cx.b.rank(y) - 2)?;
    let difference = cx.apply([x, y], dtype.compute(), |[x, y]: [Formula; 2]| x - y)?;
    let last = cx.b.rank(difference) - 1;
    let result = cx.vector_norm(difference, order, &[last], false)?;
    Ok(cx.b.cast(result, dtype).into())
}

/// Distances between all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ...
fn pdist(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let order = a.float_or("p", 2.0)?;
    let dtype = cx.b.dtype(x);
    let shape = cx.b.shape(x);
    let [rows, columns] = shape.as_slice() else {
        return Err(RuleError::Malformed("the operand is not a matrix".to_owned()));
    };
    let pairs = cx.pairs(rows, false)?;
    let count = cx.b.shape(pairs[0])[0].clone();
    let wide = cx.b.cast(x, dtype.compute());
    let mut sides = Vec::new();
    for index in pairs {
        let index = cx.b.unsqueeze(index, 1)?;
        let coords = vec![Coord::Indirect(0), Coord::Expr(Expr::axis(1))];
        sides.push(cx.b.gather(wide, &[index], coords, &[count.clone(), columns.clone()])?);
    }
    let difference = cx.sub(sides[0], sides[1])?;
    let result = cx.vector_norm(difference, order, &[1], false)?;
    Ok(cx.b.cast(result, dtype).into())
}

/// Scales each slice along an axis down to a largest norm.
fn renorm(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let (order, limit) = (a.number_or("p", 2.0)?, a.number_or("maxnorm", 1.0)?);
    let dtype: DType = cx.b.dtype(x);
    cx.require_number(&order, Relation::Gt, 0, "a norm whose order is not positive")?;
    cx.require_number(&limit, Relation::Ge, 0, "a norm that is less than zero")?;
    let limit = limit.formula(cx, dtype.compute());
    let rank = cx.b.rank(x);
    let axis = Context::axis(a.int("dim")?, rank)?;
    let others: Vec<usize> = (0..rank).filter(|k| *k != axis).collect();
    let wide = cx.b.cast(x, dtype.compute());
    let norm = cx.vector_norm_of(wide, &order, &others, true)?;
    let result = cx.apply([wide, norm], dtype.compute(), |[x, norm]| {
        x * norm.gt(&limit).select(&limit / (&norm + 1e-7), 1.0)
    })?;
    Ok(cx.b.cast(result, dtype).into())
}
