//! Factorisations by elimination, and what is solved, inverted or measured with them.
//!
//! Where PyTorch raises an error because of a matrix's elements, the run fails with the operator's name; the `_ex` forms give
//! `info` instead.

use super::super::operand::Operand;
use super::super::registry::rules;
use super::super::{Args, Context, Outputs, RuleError};
use super::ldl::ldl;
use crate::dtype::DType;
use crate::frontend::torch::aten::Arg;
use crate::graph::{FloatUnary, IntBinary, ReduceOp, Relation, Routine, UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;
type Value = Result<ValueId, RuleError>;

rules! {
    pure "aten.linalg_lu_factor_ex.default" => |cx, a| {
        let [lu, pivots, info] = lu_of(cx, a, "A")?;
        checked(cx, a, info)?;
        several(cx, [lu, pivots, info])
    },
    pure "aten.linalg_lu_factor.default" => |cx, a| {
        let [lu, pivots, info] = lu_of(cx, a, "A")?;
        demand(cx, info, "torch.linalg.lu_factor: a pivot is zero")?;
        several(cx, [lu, pivots])
    },
    pure "aten.linalg_lu.default" => |cx, a| {
        let [lu, pivots, _] = lu_of(cx, a, "A")?;
        Ok(Outputs::Many(unpacked(cx, lu, pivots)?.map(Some).to_vec()))
    },
    pure "aten.lu_unpack.default" => |cx, a| {
        let (lu, pivots) = (a.tensor("LU_data")?, a.tensor("LU_pivots")?);
        let (_, rows, _) = sides(cx, lu)?;
        cx.check_pivots(a, pivots, &rows, false)?;
        Ok(Outputs::Many(unpacked(cx, lu, pivots)?.map(Some).to_vec()))
    },
    pure "aten.linalg_lu_solve.default" => |cx, a| {
        let (lu, pivots, b) = (a.tensor("LU")?, a.tensor("pivots")?, a.tensor("B")?);
        Ok(lu_solve(cx, a, lu, pivots, b)?.into())
    },
    pure "aten.lu_solve.default" => |cx, a| {
        let (lu, pivots, b) = (a.tensor("LU_data")?, a.tensor("LU_pivots")?, a.tensor("self")?);
        Ok(lu_solve(cx, a, lu, pivots, b)?.into())
    },
    pure "aten._linalg_solve_ex.default" => |cx, a| {
        let solved = solved(cx, a)?;
        checked(cx, a, solved.info)?;
        several(cx, [solved.x, solved.lu, solved.pivots, solved.info])
    },
    pure "aten.linalg_solve_ex.default" => |cx, a| {
        let solved = solved(cx, a)?;
        checked(cx, a, solved.info)?;
        several(cx, [solved.x, solved.info])
    },
    pure "aten.linalg_solve.default" => |cx, a| {
        let solved = solved(cx, a)?;
        demand(cx, solved.info, "torch.linalg.solve: the matrix is singular")?;
        Ok(solved.x.into())
    },
    pure "aten.linalg_inv_ex.default" => |cx, a| {
        let (x, info) = inverse(cx, a.tensor("A")?)?;
        checked(cx, a, info)?;
        several(cx, [x, info])
    },
    pure "aten.linalg_inv.default" => |cx, a| Ok(cx.matrix_inverse(a.tensor("A")?)?.into()),
    pure "aten.inverse.default" => |cx, a| Ok(cx.matrix_inverse(a.tensor("self")?)?.into()),
    pure "aten.linalg_det.default" => |cx, a| Ok(determinant(cx, a.tensor("A")?)?[0].into()),
    pure "aten.det.default" => |cx, a| Ok(determinant(cx, a.tensor("self")?)?[0].into()),
    pure "aten._linalg_det.default" => |cx, a| { let all = determinant(cx, a.tensor("A")?)?; several(cx, all) },
    pure "aten.linalg_slogdet.default" => |cx, a| { let [sign, log, ..] = log_determinant(cx, a, "A")?; several(cx, [sign, log]) },
    pure "aten.slogdet.default" => |cx, a| { let [sign, log, ..] = log_determinant(cx, a, "self")?; several(cx, [sign, log]) },
    pure "aten._linalg_slogdet.default" => |cx, a| { let all = log_determinant(cx, a, "A")?; several(cx, all) },
    pure "aten.logdet.default" => |cx, a| {
        let [sign, log, ..] = log_determinant(cx, a, "self")?;
        let dtype = cx.b.dtype(log);
        Ok(cx.apply([sign, log], dtype, |[sign, log]| sign.lt(0.0).select(f64::NAN, log))?.into())
    },
    pure "aten.linalg_cholesky_ex.default" => |cx, a| {
        let [l, info] = cholesky(cx, a)?;
        checked(cx, a, info)?;
        several(cx, [l, info])
    },
    pure "aten.linalg_cholesky.default" => |cx, a| positive_definite(cx, a),
    pure "aten.cholesky.default" => |cx, a| positive_definite(cx, a),
    pure "aten.cholesky_solve.default" => |cx, a| {
        let (b, l) = (a.tensor("self")?, a.tensor("input2")?);
        Ok(cholesky_solve(cx, a, b, l)?.into())
    },
    pure "aten.cholesky_inverse.default" => |cx, a| {
        let l = a.tensor("self")?;
        demand_inverse_of_factor(cx, &[l])?;
        let ty = cx.b.ty(l).clone();
        let b = cx.identity_matrix(ty.dtype, &ty.shape)?;
        Ok(cholesky_solve(cx, a, b, l)?.into())
    },
    pure "aten.linalg_solve_triangular.default" => |cx, a| {
        let (m, b) = (a.tensor("self")?, a.tensor("B")?);
        let form = Triangle { upper: a.bool_or("upper", false)?, unit: a.bool_or("unitriangular", false)? };
        if a.bool_or("left", true)? {
            return Ok(triangular(cx, m, b, form)?.into());
        }
        let (m, b) = (adjoint(cx, m)?, adjoint(cx, b)?);
        let x = triangular(cx, m, b, Triangle { upper: !form.upper, ..form })?;
        Ok(adjoint(cx, x)?.into())
    },
    pure "aten.triangular_solve.default" => |cx, a| {
        let (b, m) = (a.tensor("self")?, a.tensor("A")?);
        let form = Triangle { upper: a.bool_or("upper", true)?, unit: a.bool_or("unitriangular", false)? };
        let x = match a.bool_or("transpose", false)? {
            false => triangular(cx, m, b, form)?,
            true => {
                let turned = adjoint(cx, m)?;
                triangular(cx, turned, b, Triangle { upper: !form.upper, ..form })?
            }
        };
        several(cx, [x, m])
    },
    pure "aten.linalg_ldl_factor_ex.default" => |cx, a| {
        let [ld, pivots, info] = ldl(cx, a)?;
        checked(cx, a, info)?;
        several(cx, [ld, pivots, info])
    },
    pure "aten.linalg_ldl_factor.default" => |cx, a| {
        let [ld, pivots, info] = ldl(cx, a)?;
        demand(cx, info, "torch.linalg.ldl_factor: a block of the diagonal is zero")?;
        several(cx, [ld, pivots])
    },
    pure "aten.linalg_ldl_solve.default" => |cx, a| {
        let (ld, pivots, b) = (a.tensor("LD")?, a.tensor("pivots")?, a.tensor("B")?);
        let (ld, b) = same_batch(cx, ld, b)?;
        let (_, rows, _) = sides(cx, ld)?;
        cx.check_pivots(a, pivots, &rows, true)?;
        let pivots = cx.b.cast(pivots, DType::I64);
        let pivots = over_batch(cx, pivots, ld)?;
        Ok(cx.b.routine(Routine::LdlSolve, &[ld, pivots, b])?[0].into())
    },
    pure "aten._linalg_check_errors.default" => |cx, a| {
        // Calls for an effect name no operands.
        let Operand::Tensor(info) = a.operand(&["info"], 0)? else {
            return Err(RuleError::Malformed("`info` is not a tensor".to_owned()));
        };
        let named = a.raw("api_name").or_else(|| a.call.args.get(1).map(|(_, arg)| arg));
        let name = if let Some(Arg::Str(name)) = named { name } else { "torch.linalg" };
        let what = format!("{name}: the matrix is singular, or not what the operator needs");
        demand(cx, info, &what)?;
        Ok(Outputs::Nothing)
    },
}

/// Results, pivots and `info` as PyTorch has them.
fn several<const N: usize>(cx: &mut Context, values: [ValueId; N]) -> Rule {
    let narrow = |value: ValueId| {
        let is_integer = cx.b.dtype(value) == DType::I64;
        Some(if is_integer { cx.b.cast(value, DType::I32) } else { value })
    };
    Ok(Outputs::Many(values.into_iter().map(narrow).collect()))
}

/// The run fails where `info` is not zero.
pub(crate) fn demand(cx: &mut Context, info: ValueId, what: &str) -> Result<(), RuleError> {
    let fine = cx.with_number(Relation::Eq, info, 0i64)?;
    cx.assert_all(fine, what)
}

/// The run fails where an element of the diagonal of a factor is zero, in all of its parts: `cholesky_inverse` has no `info`.
pub(crate) fn demand_inverse_of_factor(cx: &mut Context, factor: &[ValueId]) -> Result<(), RuleError> {
    let mut fine = None;
    for part in factor {
        let mut shape = cx.b.shape(*part);
        let rank = shape.len() - 1;
        shape.truncate(rank);
        let coords = (0..rank).chain([rank - 1]).map(Expr::axis).collect();
        let diagonal = cx.b.view(*part, &shape, coords)?;
        let own = cx.with_number(Relation::Ne, diagonal, 0.0)?;
        fine = Some(match fine {
            None => own,
            Some(other) => cx.binary(IntBinary::Or, other, own)?,
        });
    }
    let what = "torch.cholesky_inverse: the diagonal holds a zero: the matrix is singular";
    fine.map_or(Ok(()), |fine| cx.assert_all(fine, what))
}

/// An `_ex` form that is asked to raise.
pub(crate) fn checked(cx: &mut Context, a: &Args, info: ValueId) -> Result<(), RuleError> {
    if a.bool_or("check_errors", false)? {
        demand(cx, info, &format!("{}: the matrix is singular, or not what the operator needs", a.target()))?;
    }
    Ok(())
}

/// Rows and columns exchanged.
pub(crate) fn adjoint(cx: &mut Context, x: ValueId) -> Value {
    let rank = cx.b.rank(x);
    if rank < 2 {
        return Err(RuleError::Malformed("a matrix has two axes".to_owned()));
    }
    Ok(cx.b.transpose(x, rank - 2, rank - 1)?)
}

/// The last two sizes.
pub(crate) fn sides(cx: &Context, x: ValueId) -> Result<(Vec<Expr>, Expr, Expr), RuleError> {
    let mut shape = cx.b.shape(x);
    match (shape.pop(), shape.pop()) {
        (Some(columns), Some(rows)) => Ok((shape, rows, columns)),
        _ => Err(RuleError::Malformed("a matrix has two axes".to_owned())),
    }
}

/// Where `column - row <relation> 0` the elements stay, else they are zero; on the diagonal they may be ones.
pub(crate) fn part(cx: &mut Context, x: ValueId, relation: Relation, unit: bool) -> Value {
    let (_, rows, columns) = sides(cx, x)?;
    let tail = [rows, columns];
    let distance = &Expr::axis(1) - &Expr::axis(0);
    let kept = cx.index_is(relation, distance.clone(), &tail)?;
    let zero = cx.b.full_like(0.0, x);
    let kept = cx.b.select(kept, x, zero)?;
    if !unit {
        return Ok(kept);
    }
    let diagonal = cx.index_is(Relation::Eq, distance, &tail)?;
    let one = cx.b.full_like(1.0, x);
    Ok(cx.b.select(diagonal, one, kept)?)
}

/// Both with the axes before the last two that they have in common.
fn same_batch(cx: &mut Context, x: ValueId, y: ValueId) -> Result<(ValueId, ValueId), RuleError> {
    let ((first, rows, columns), (second, m, n)) = (sides(cx, x)?, sides(cx, y)?);
    let leading = cx.b.broadcast(&[first, second])?;
    let x = cx.b.expand(x, &[leading.clone(), vec![rows, columns]].concat())?;
    Ok((x, cx.b.expand(y, &[leading, vec![m, n]].concat())?))
}

/// Pivots for every matrix of a batch.
fn over_batch(cx: &mut Context, pivots: ValueId, matrices: ValueId) -> Value {
    let (mut shape, ..) = sides(cx, matrices)?;
    shape.extend(cx.b.shape(pivots).pop());
    Ok(cx.b.expand(pivots, &shape)?)
}

fn lu(cx: &mut Context, x: ValueId) -> Result<[ValueId; 3], RuleError> {
    let all = cx.b.routine(Routine::Lu, &[x])?;
    Ok([all[0], all[1], all[2]])
}

fn lu_of(cx: &mut Context, a: &Args, name: &str) -> Result<[ValueId; 3], RuleError> {
    if !a.bool_or("pivot", true)? {
        return Err(RuleError::unsupported("a factorisation without pivots"));
    }
    let x = a.tensor(name)?;
    lu(cx, x)
}

/// As many pivots as rows: where there are fewer columns, rows below stay.
pub(crate) fn all_pivots(cx: &mut Context, pivots: ValueId, rows: &Expr) -> Value {
    let pivots = cx.b.cast(pivots, DType::I64);
    let mut shape = cx.b.shape(pivots);
    let last = shape.len() - 1;
    if cx.b.same_size(&shape[last], rows) {
        return Ok(pivots);
    }
    let mut amounts = vec![(Expr::int(0), Expr::int(0)); shape.len()];
    amounts[last].1 = rows - &shape[last];
    let padded = cx.b.pad(pivots, &amounts, 0i64)?;
    shape[last] = rows.clone();
    let own = cx.b.index(&Expr::axis(last) + 1, &shape);
    let is_given = cx.with_number(Relation::Gt, padded, 0i64)?;
    Ok(cx.b.select(is_given, padded, own)?)
}

/// The permutation that the exchanges undo, L and U.
pub(crate) fn unpacked(cx: &mut Context, lu: ValueId, pivots: ValueId) -> Result<[ValueId; 3], RuleError> {
    let dtype = cx.b.dtype(lu);
    let (leading, m, n) = sides(cx, lu)?;
    let least = m.minimum_in(&n, cx.b.ranges());
    let pivots = all_pivots(cx, pivots, &m)?;
    let square = [leading.clone(), vec![m.clone(), m.clone()]].concat();
    let identity = cx.identity_matrix(dtype, &square)?;
    let exchanged = cx.b.routine(Routine::Exchange, &[pivots, identity])?[0];
    let p = adjoint(cx, exchanged)?;
    let rank = leading.len() + 2;
    let left = cx.b.slice(lu, rank - 1, &Expr::int(0), &least, 1)?;
    let l = part(cx, left, Relation::Lt, true)?;
    let upper = cx.b.slice(lu, rank - 2, &Expr::int(0), &least, 1)?;
    let u = part(cx, upper, Relation::Ge, false)?;
    Ok([p, l, u])
}

/// Which triangle of a matrix counts, and whether its diagonal is one of ones.
#[derive(Clone, Copy)]
struct Triangle {
    upper: bool,
    unit: bool,
}

/// X of A X = B with a triangular A.
fn triangular(cx: &mut Context, a: ValueId, b: ValueId, form: Triangle) -> Value {
    let (mut a, b) = same_batch(cx, a, b)?;
    if form.unit {
        a = part(cx, a, if form.upper { Relation::Gt } else { Relation::Lt }, true)?;
    }
    let routine = if form.upper { Routine::SolveUpper } else { Routine::SolveLower };
    Ok(cx.b.routine(routine, &[a, b])?[0])
}

/// X of A X = B with a triangular A that has ones on its diagonal, whatever is there.
pub(crate) fn unit_triangular(cx: &mut Context, a: ValueId, b: ValueId, upper: bool) -> Value {
    triangular(cx, a, b, Triangle { upper, unit: true })
}

/// X of A X = B with an A that is factored.
fn with_factors(cx: &mut Context, lu: ValueId, pivots: ValueId, b: ValueId) -> Value {
    let (lu, b) = same_batch(cx, lu, b)?;
    let pivots = cx.b.cast(pivots, DType::I64);
    let pivots = over_batch(cx, pivots, lu)?;
    let b = cx.b.routine(Routine::Exchange, &[pivots, b])?[0];
    let y = triangular(cx, lu, b, Triangle { upper: false, unit: true })?;
    triangular(cx, lu, y, Triangle { upper: true, unit: false })
}

/// X of A^T X = B.
fn with_turned_factors(cx: &mut Context, lu: ValueId, pivots: ValueId, b: ValueId) -> Value {
    let (lu, b) = same_batch(cx, lu, b)?;
    let turned = adjoint(cx, lu)?;
    let y = triangular(cx, turned, b, Triangle { upper: false, unit: false })?;
    let x = triangular(cx, turned, y, Triangle { upper: true, unit: true })?;
    let pivots = cx.b.cast(pivots, DType::I64);
    let pivots = over_batch(cx, pivots, lu)?;
    row_exchanges(cx, pivots, x, true)
}

/// The rows of X exchanged as pivots of `i64` say, one for each row, or back.
pub(crate) fn row_exchanges(cx: &mut Context, pivots: ValueId, x: ValueId, back: bool) -> Value {
    if !back {
        return Ok(cx.b.routine(Routine::Exchange, &[pivots, x])?[0]);
    }
    let (mut square, rows, _) = sides(cx, x)?;
    square.extend([rows.clone(), rows]);
    let identity = cx.identity_matrix(cx.b.dtype(x), &square)?;
    let exchanged = cx.b.routine(Routine::Exchange, &[pivots, identity])?[0];
    let back = adjoint(cx, exchanged)?;
    Ok(cx.b.matmul(back, x)?)
}

fn lu_solve(cx: &mut Context, a: &Args, lu: ValueId, pivots: ValueId, b: ValueId) -> Value {
    let (left, turned) = (a.bool_or("left", true)?, a.bool_or("adjoint", false)?);
    let (_, rows, _) = sides(cx, lu)?;
    cx.check_pivots(a, pivots, &rows, false)?;
    let b = if left { b } else { adjoint(cx, b)? };
    // From the right it is the transpose that meets the transposed unknown.
    let x = if left != turned {
        with_factors(cx, lu, pivots, b)?
    } else {
        with_turned_factors(cx, lu, pivots, b)?
    };
    if left { Ok(x) } else { adjoint(cx, x) }
}

struct Solved {
    x: ValueId,
    lu: ValueId,
    pivots: ValueId,
    info: ValueId,
}

/// Whether the right-hand sides of these matrices are vectors, one for each.
pub(crate) fn are_vectors(cx: &mut Context, matrices: ValueId, sides: ValueId) -> bool {
    let (shape, own) = (cx.b.shape(matrices), cx.b.shape(sides));
    own.len() == 1
        || (own.len() + 1 == shape.len() && own.iter().zip(&shape).all(|(a, b)| cx.b.same_size(a, b)))
}

/// X of A X = B, and `info`.
pub(crate) fn solution(cx: &mut Context, m: ValueId, b: ValueId) -> Result<[ValueId; 2], RuleError> {
    let [lu, pivots, info] = lu(cx, m)?;
    Ok([with_factors(cx, lu, pivots, b)?, info])
}

/// X of A X = B or X A = B; B may be vectors, one for each matrix.
fn solved(cx: &mut Context, a: &Args) -> Result<Solved, RuleError> {
    let (m, mut b) = (a.tensor("A")?, a.tensor("B")?);
    let is_vector = are_vectors(cx, m, b);
    if is_vector {
        b = cx.b.unsqueeze(b, cx.b.rank(b))?;
    }
    let [lu, pivots, info] = lu(cx, m)?;
    let mut x = match is_vector || a.bool_or("left", true)? {
        true => with_factors(cx, lu, pivots, b)?,
        false => {
            let b = adjoint(cx, b)?;
            let x = with_turned_factors(cx, lu, pivots, b)?;
            adjoint(cx, x)?
        }
    };
    if is_vector {
        let last = cx.b.rank(x) - 1;
        x = cx.b.squeeze(x, &[last])?;
    }
    Ok(Solved { x, lu, pivots, info })
}

fn inverse(cx: &mut Context, x: ValueId) -> Result<(ValueId, ValueId), RuleError> {
    let ty = cx.b.ty(x).clone();
    let [lu, pivots, info] = lu(cx, x)?;
    let identity = cx.identity_matrix(ty.dtype, &ty.shape)?;
    Ok((with_factors(cx, lu, pivots, identity)?, info))
}

/// What comes of inverting each matrix, and its `info`.
pub(crate) fn tried_inverse(cx: &mut Context, x: ValueId) -> Result<[ValueId; 2], RuleError> {
    let (x, info) = inverse(cx, x)?;
    Ok([x, info])
}

impl Context {
    /// The inverse of each matrix; the run fails where one has none.
    pub(crate) fn matrix_inverse(&mut self, x: ValueId) -> Result<ValueId, RuleError> {
        let (x, info) = inverse(self, x)?;
        demand(self, info, "linalg.inv: the matrix is singular")?;
        Ok(x)
    }
}

/// The diagonal of U, and the sign that the exchanges give.
pub(crate) fn diagonal_and_sign(
    cx: &mut Context,
    lu: ValueId,
    pivots: ValueId,
) -> Result<[ValueId; 2], RuleError> {
    let (leading, _, n) = sides(cx, lu)?;
    let last = leading.len();
    let mut coords: Vec<Expr> = (0..=last).map(Expr::axis).collect();
    coords.push(Expr::axis(last));
    let mut shape = leading;
    shape.push(n);
    let diagonal = cx.b.view(lu, &shape, coords)?;
    let own = cx.b.index(&Expr::axis(last) + 1, &shape);
    let dtype = cx.b.dtype(lu);
    let moved = cx.binary(Relation::Ne, pivots, own)?;
    let signs = cx.apply([moved], dtype, |[moved]| 1.0 - moved * 2.0)?;
    let sign = cx.b.reduce(ReduceOp::Prod, signs, &[last], false)?;
    Ok([diagonal, sign])
}

/// The determinant of each matrix, its LU factors and their pivots.
pub(crate) fn determinant(cx: &mut Context, x: ValueId) -> Result<[ValueId; 3], RuleError> {
    let [lu, pivots, _] = lu(cx, x)?;
    let [diagonal, sign] = diagonal_and_sign(cx, lu, pivots)?;
    let last = cx.b.rank(diagonal) - 1;
    let product = cx.b.reduce(ReduceOp::Prod, diagonal, &[last], false)?;
    Ok([cx.mul(product, sign)?, lu, pivots])
}

fn log_determinant(cx: &mut Context, a: &Args, name: &str) -> Result<[ValueId; 4], RuleError> {
    let x = a.tensor(name)?;
    let [lu, pivots, _] = lu(cx, x)?;
    let [diagonal, sign] = diagonal_and_sign(cx, lu, pivots)?;
    let last = cx.b.rank(diagonal) - 1;
    let signs = cx.unary(UnaryOp::Sign, diagonal);
    let signs = cx.b.reduce(ReduceOp::Prod, signs, &[last], false)?;
    let magnitudes = cx.unary(UnaryOp::Abs, diagonal);
    let logs = cx.unary(FloatUnary::Log, magnitudes);
    Ok([cx.mul(sign, signs)?, cx.sum(logs, &[last], false)?, lu, pivots])
}

/// L of the lower triangle, or its transpose of the upper one.
fn cholesky(cx: &mut Context, a: &Args) -> Result<[ValueId; 2], RuleError> {
    let x = a.tensor("self")?;
    let upper = a.bool_or("upper", false)?;
    let x = if upper { adjoint(cx, x)? } else { x };
    let all = cx.b.routine(Routine::Cholesky, &[x])?;
    Ok([if upper { adjoint(cx, all[0])? } else { all[0] }, all[1]])
}

fn positive_definite(cx: &mut Context, a: &Args) -> Rule {
    let [l, info] = cholesky(cx, a)?;
    demand(cx, info, "linalg.cholesky: the matrix is not positive-definite")?;
    Ok(l.into())
}

fn cholesky_solve(cx: &mut Context, a: &Args, b: ValueId, factor: ValueId) -> Value {
    let upper = a.bool_or("upper", false)?;
    let turned = adjoint(cx, factor)?;
    let (lower, other) = if upper { (turned, factor) } else { (factor, turned) };
    let y = triangular(cx, lower, b, Triangle { upper: false, unit: false })?;
    triangular(cx, other, y, Triangle { upper: true, unit: false })
}

/// Powers of a matrix below zero are those of its inverse.
pub(crate) fn base_of_power(cx: &mut Context, x: ValueId, n: i64) -> Value {
    if n < 0 { cx.matrix_inverse(x) } else { Ok(x) }
}
