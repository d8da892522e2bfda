//! Linear algebra made of matrix products: powers, exponentials, chains, Kronecker and cross products.

use super::super::matmul::{as_rows, matmul};
use super::super::registry::rules;
use super::super::{Args, Context, Outputs, RuleError};
use super::solve::base_of_power;
use crate::dtype::DType;
use crate::graph::{BinaryOp, FloatBinary, FloatUnary, ReduceOp, Relation, Rounding, UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.kron.default" => kron,
    pure "aten.bilinear.default" => bilinear,
    pure "aten.chain_matmul.default" => |cx, a| chain(cx, a, "matrices"),
    pure "aten.linalg_multi_dot.default" => |cx, a| chain(cx, a, "tensors"),
    pure "aten.cross.default" => cross,
    pure "aten.linalg_cross.default" => cross,
    pure "aten.matrix_power.default" => matrix_power,
    pure "aten.linalg_matrix_power.default" => matrix_power,
    pure "aten.matrix_exp.default" => matrix_exp,
    pure "aten.linalg_matrix_exp.default" => matrix_exp,
    pure "aten.trace.default" => trace,
}

fn kron(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("self")?, a.tensor("other")?);
    let (x, y) = cx.promoted(x, y)?;
    let rank = cx.b.rank(x).max(cx.b.rank(y));
    let padded = |cx: &Context, value: ValueId| {
        let own = cx.b.shape(value);
        let mut shape = vec![Expr::int(1); rank - own.len()];
        shape.extend(own);
        shape
    };
    let (x_shape, y_shape) = (padded(cx, x), padded(cx, y));
    let one = Expr::int(1);
    let outer: Vec<Expr> = x_shape.iter().flat_map(|size| [size.clone(), one.clone()]).collect();
    let inner: Vec<Expr> = y_shape.iter().flat_map(|size| [one.clone(), size.clone()]).collect();
    let (x, y) = (cx.b.reshape(x, &outer)?, cx.b.reshape(y, &inner)?);
    let product = cx.mul(x, y)?;
    let shape: Vec<Expr> = x_shape.iter().zip(&y_shape).map(|(p, q)| p * q).collect();
    Ok(cx.b.reshape(product, &shape)?.into())
}

/// `out[b, o] = sum_ij x[b, i] w[o, i, j] y[b, j]`: one product over `i`, then a sum over `j`.
fn bilinear(cx: &mut Context, a: &Args) -> Rule {
    let (x, y, weight) = (a.tensor("input1")?, a.tensor("input2")?, a.tensor("weight")?);
    let w_shape = cx.b.shape(weight);
    let [outputs, _, columns] = w_shape.as_slice() else {
        return Err(RuleError::Malformed("the weight has not three axes".to_owned()));
    };
    let x_shape = cx.b.shape(x);
    let mut shape = x_shape[..x_shape.len().saturating_sub(1)].to_vec();
    shape.push(outputs.clone());
    let (x, y) = (as_rows(cx, x)?, as_rows(cx, y)?);
    let weight = cx.b.permute(weight, &[1, 0, 2])?;
    let weight = cx.merge_axes(weight, 1, 3)?;
    let partial = cx.b.matmul(x, weight)?;
    let partial = cx.split_axis(partial, 1, &[outputs.clone(), columns.clone()])?;
    let y = cx.b.unsqueeze(y, 1)?;
    let terms = cx.mul(partial, y)?;
    let mut result = cx.sum(terms, &[2], false)?;
    result = cx.b.reshape(result, &shape)?;
    if let Some(bias) = a.opt_tensor("bias")? {
        result = cx.add(result, bias)?;
    }
    Ok(result.into())
}

/// Product of many matrices in the order that needs the fewest multiplications; the ends may be vectors.
fn chain(cx: &mut Context, a: &Args, name: &str) -> Rule {
    let mut matrices = a.tensors(name)?;
    let (Some(first), Some(last)) = (matrices.first().copied(), matrices.last().copied()) else {
        return Err(RuleError::Malformed("no matrices".to_owned()));
    };
    if matrices.len() == 1 {
        return Ok(first.into());
    }
    let (row, column) = (cx.b.rank(first) == 1, cx.b.rank(last) == 1);
    if row {
        matrices[0] = cx.b.unsqueeze(first, 0)?;
    }
    if column {
        let end = matrices.len() - 1;
        matrices[end] = cx.b.unsqueeze(last, 1)?;
    }
    let mut result = multiply_chain(cx, &matrices)?;
    if column {
        result = cx.b.squeeze(result, &[1])?;
    }
    if row {
        result = cx.b.squeeze(result, &[0])?;
    }
    Ok(result.into())
}

/// The classic dynamic program over split points (Cormen et al., "Introduction to Algorithms", 15.2).
fn multiply_chain(cx: &mut Context, matrices: &[ValueId]) -> Result<ValueId, RuleError> {
    let n = matrices.len();
    // A symbolic size counts as large; the order never changes the value, only the work.
    let size = |expr: &Expr| expr.as_int().unwrap_or(4096) as f64;
    let mut dims: Vec<f64> = matrices.iter().map(|m| size(&cx.b.shape(*m)[0])).collect();
    dims.push(size(&cx.b.shape(matrices[n - 1])[1]));
    let mut cost = vec![vec![0.0f64; n]; n];
    let mut split = vec![vec![0usize; n]; n];
    for span in 1..n {
        for from in 0..n - span {
            let to = from + span;
            cost[from][to] = f64::INFINITY;
            for middle in from..to {
                let work =
                    cost[from][middle] + cost[middle + 1][to] + dims[from] * dims[middle + 1] * dims[to + 1];
                if work < cost[from][to] {
                    cost[from][to] = work;
                    split[from][to] = middle;
                }
            }
        }
    }
    multiply_range(cx, matrices, &split, 0, n - 1)
}

fn multiply_range(
    cx: &mut Context,
    matrices: &[ValueId],
    split: &[Vec<usize>],
    from: usize,
    to: usize,
) -> Result<ValueId, RuleError> {
    if from == to {
        return Ok(matrices[from]);
    }
    let middle = split[from][to];
    let left = multiply_range(cx, matrices, split, from, middle)?;
    let right = multiply_range(cx, matrices, split, middle + 1, to)?;
    matmul(cx, left, right)
}

fn cross(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("self")?, a.tensor("other")?);
    let (x, y) = cx.promoted(x, y)?;
    let shape = cx.b.broadcast_shapes(&[x, y])?;
    let axis = match a.opt_int("dim")? {
        Some(axis) => Context::axis(axis, shape.len())?,
        None if a.target().starts_with("aten.linalg_cross") => Context::axis(-1, shape.len())?,
        None => shape
            .iter()
            .position(|size| size.is(3))
            .ok_or_else(|| RuleError::Malformed("no axis of size 3".to_owned()))?,
    };
    if !shape.get(axis).is_some_and(|size| size.is(3)) {
        return Err(RuleError::Malformed("the axis of a cross product has not size 3".to_owned()));
    }
    let (x, y) = (cx.b.expand(x, &shape)?, cx.b.expand(y, &shape)?);
    let mut rotated = |value: ValueId, by: i64| {
        let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
        coords[axis] = (&Expr::axis(axis) + by).modulo(&Expr::int(3));
        cx.b.view(value, &shape, coords)
    };
    let (x1, x2, y1, y2) = (rotated(x, 1)?, rotated(x, 2)?, rotated(y, 1)?, rotated(y, 2)?);
    let (plus, minus) = (cx.mul(x1, y2)?, cx.mul(x2, y1)?);
    Ok(cx.sub(plus, minus)?.into())
}

fn matrix_power(cx: &mut Context, a: &Args) -> Rule {
    let n = a.int("n")?;
    let x = base_of_power(cx, a.tensor("self")?, n)?;
    let n = n.checked_abs().ok_or_else(|| RuleError::unsupported("an exponent beyond 64 bits"))?;
    if n == 0 {
        let ty = cx.b.ty(x).clone();
        return Ok(cx.identity_matrix(ty.dtype, &ty.shape)?.into());
    }
    if n == 3 {
        // In PyTorch's order, which the rounding of half types shows.
        let square = cx.b.matmul(x, x)?;
        return Ok(cx.b.matmul(square, x)?.into());
    }
    let (mut power, mut left, mut result) = (x, n, None);
    loop {
        if left & 1 == 1 {
            result = Some(match result {
                Some(product) => cx.b.matmul(product, power)?,
                None => power,
            });
        }
        left >>= 1;
        if left == 0 {
            break;
        }
        power = cx.b.matmul(power, power)?;
    }
    Ok(result.expect("a positive exponent has a bit set").into())
}

/// Degree of the Taylor polynomial, the norm up to which it is exact in `f64`, and the largest number of squarings.
const EXP_DEGREE: i32 = 18;
const EXP_RADIUS: f64 = 1.09;
const EXP_SQUARINGS: i32 = 14;

/// Scaling and squaring with a Taylor polynomial (Bader, Blanes, Casas, "Computing the matrix exponential with an
/// optimized Taylor polynomial approximation", 2019, for the radius). The number of squarings depends on the
/// norm of each matrix, so a fixed number are computed and those not needed are not taken.
fn matrix_exp(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    // Squaring amplifies rounding errors by the norm of the matrix, hence the widest type.
    let dtype = cx.b.dtype(x);
    let wide = cx.b.cast(x, DType::F64);
    let result = exponential(cx, wide)?;
    Ok(cx.b.cast(result, dtype).into())
}

fn exponential(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    let ty = cx.b.ty(x).clone();
    let rank = ty.rank();
    if rank < 2 {
        return Err(RuleError::Malformed("a matrix has two axes".to_owned()));
    }
    if ty.numel().is(0) {
        return Ok(x);
    }
    let magnitude = cx.unary(UnaryOp::Abs, x);
    let columns = cx.sum(magnitude, &[rank - 2], true)?;
    let norm = cx.b.reduce(ReduceOp::Max, columns, &[rank - 1], true)?;
    let ratio = cx.with_number(FloatBinary::Div, norm, EXP_RADIUS)?;
    let ratio = cx.with_number(BinaryOp::Maximum, ratio, 1.0)?;
    let exponent = cx.unary(FloatUnary::Log2, ratio);
    let squarings = cx.unary(Rounding::Ceil, exponent);
    let squarings = cx.with_number(BinaryOp::Minimum, squarings, f64::from(EXP_SQUARINGS))?;
    let two = cx.b.full_like(2.0, squarings);
    let scale = cx.binary(BinaryOp::Pow, two, squarings)?;
    let scaled = cx.div(x, scale)?;
    let identity = cx.identity_matrix(ty.dtype, &ty.shape)?;
    // Horner's scheme: I + X/1 (I + X/2 (I + X/3 (...))).
    let mut result = identity;
    for k in (1..=EXP_DEGREE).rev() {
        let step = cx.with_number(FloatBinary::Div, scaled, f64::from(k))?;
        let product = if k == EXP_DEGREE { step } else { cx.b.matmul(step, result)? };
        result = cx.add(product, identity)?;
    }
    for k in 0..EXP_SQUARINGS {
        let wanted = cx.with_number(Relation::Gt, squarings, f64::from(k))?;
        let squared = cx.b.matmul(result, result)?;
        result = cx.b.select(wanted, squared, result)?;
    }
    Ok(result)
}

fn trace(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let shape = cx.b.shape(x);
    let [rows, columns] = shape.as_slice() else {
        return Err(RuleError::Malformed("a matrix has two axes".to_owned()));
    };
    let size = rows.minimum_in(columns, cx.b.ranges());
    let diagonal = cx.b.view(x, &[size], vec![Expr::axis(0), Expr::axis(0)])?;
    let dtype = cx.b.dtype(x);
    let wide = if dtype.is_float() { diagonal } else { cx.b.cast(diagonal, DType::I64) };
    Ok(cx.sum(wide, &[0], false)?.into())
}
