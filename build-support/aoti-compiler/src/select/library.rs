//! Which matrix products may be left to a library.
//!
//! On GPUs the vendor's library computes whole kernels as the program wants them: plain products, to whose results a row of
//! weights is added, or of which negative ones become zero. Everything else in an epilogue is left to our own templates. On
//! processors a library computes tiles of sums, which are then handed to the kernel's epilogue, whatever that does.

use super::typical;
use crate::dtype::DType;
use crate::graph::{BinaryOp, Scalar};
use crate::loops::{
    Access, BufferId, Effect, MatMul, MatrixOperand, Program, Stage, Storage, Term, TermId, TypedTerm,
};
use crate::symbolic::{Expr, Symbol};
use crate::target::{MathLibrary, Target};

/// A matrix as a vendor's library is told of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LibraryMatrix {
    /// The buffer that it begins at.
    pub buffer: BufferId,
    /// Elements between its rows; between its columns where it is turned.
    pub pitch: i64,
    /// Whether its columns lie side by side rather than its rows.
    pub turned: bool,
}

/// A product for a vendor's library: results by rows, which lie a pitch apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LibraryProduct {
    /// Rows, columns, and the length of sums.
    pub sizes: [i64; 3],
    /// The left operand.
    pub a: LibraryMatrix,
    /// The right operand.
    pub b: LibraryMatrix,
    /// The results.
    pub result: LibraryMatrix,
    /// The type of all of them.
    pub dtype: DType,
    /// Weights that are added to each row of results.
    pub bias: Option<BufferId>,
    /// Whether negative results become zero.
    pub relu: bool,
}

/// Multiply-adds from which on products may be left to a library on processors.
const LEAST_PRODUCTS: f64 = 262_144.0;

/// The libraries of the target that a product may be left to.
pub(crate) fn libraries(program: &Program, matmul: &MatMul, target: &Target) -> Vec<MathLibrary> {
    let (named, is_computed) = match target {
        Target::Cpu(cpu) => {
            (cpu.libraries.clone(), matmul.row_epilogue.is_none() && blas_computes(program, matmul))
        }
        Target::Gpu(gpu) => (gpu.library.into_iter().collect(), library_product(program, matmul).is_some()),
    };
    let is_asked = |library: &MathLibrary| is_computed && library.sums().contains(&matmul.dtype);
    named.into_iter().filter(is_asked).collect()
}

/// Whether the operands are as libraries for processors read them: of the type of the results, and with rows or columns that are
/// contiguous and apart. Where distances are not known, the header looks at them in each run.
fn blas_computes(program: &Program, matmul: &MatMul) -> bool {
    let [.., row, column] = matmul.axes.as_slice() else { return false };
    let sizes = [&row.extent, &column.extent, &matmul.depth];
    let is_readable = |own: &MatrixOperand, rows: &Expr, columns: &Expr| {
        let (pitch, length) = if own.column_stride.is(1) {
            (&own.row_stride, columns)
        } else if own.row_stride.is(1) {
            (&own.column_stride, rows)
        } else {
            return false;
        };
        let is_apart = pitch.as_int().zip(length.as_int()).is_none_or(|(pitch, length)| pitch >= length);
        program.buffers[own.buffer].dtype == matmul.dtype && is_apart
    };
    sizes.map(typical).iter().product::<f64>() >= LEAST_PRODUCTS
        && is_readable(&matmul.a, &row.extent, &matmul.depth)
        && is_readable(&matmul.b, &matmul.depth, &column.extent)
}

/// Bytes that rows of matrices are multiples of: libraries then load whole ones.
const ROW_BYTES: i64 = 16;

/// A product as a vendor's library computes it, if it does.
pub(crate) fn library_product(program: &Program, matmul: &MatMul) -> Option<LibraryProduct> {
    let [row, column] = matmul.axes.as_slice() else { return None };
    let sizes = [row.extent.as_int()?, column.extent.as_int()?, matmul.depth.as_int()?];
    if sizes.contains(&0) {
        return None;
    }
    let (a, b) = (operand(program, &matmul.a, matmul.dtype)?, operand(program, &matmul.b, matmul.dtype)?);
    let (access, form) = results(program, matmul)?;
    let (pitch, rest) = access.offset.affine_in(row.symbol)?;
    let begins = rest == Expr::sym(column.symbol) && program.buffers[access.buffer].dtype == matmul.dtype;
    let result = LibraryMatrix { buffer: access.buffer, pitch: pitch.as_int()?, turned: false };
    let is_apart = result.buffer != a.buffer && result.buffer != b.buffer;
    if !(begins && is_apart && is_whole(result.pitch, matmul.dtype) && result.pitch >= sizes[1]) {
        return None;
    }
    Some(LibraryProduct { sizes, a, b, result, dtype: matmul.dtype, bias: form.bias, relu: form.relu })
}

fn is_whole(pitch: i64, dtype: DType) -> bool {
    pitch > 0 && pitch * dtype.size() as i64 % ROW_BYTES == 0
}

fn operand(program: &Program, own: &MatrixOperand, dtype: DType) -> Option<LibraryMatrix> {
    let strides = [own.row_stride.as_int()?, own.column_stride.as_int()?];
    let (pitch, turned) = match strides {
        [pitch, 1] => (pitch, false),
        [1, pitch] => (pitch, true),
        _ => return None,
    };
    let fits = program.buffers[own.buffer].dtype == dtype && own.offset.is(0) && is_whole(pitch, dtype);
    fits.then_some(LibraryMatrix { buffer: own.buffer, pitch, turned })
}

/// What happens to sums.
#[derive(Default)]
struct Form {
    bias: Option<BufferId>,
    relu: bool,
}

/// Where the results go, and what they are of the sums.
fn results<'p>(program: &Program, matmul: &'p MatMul) -> Option<(&'p Access, Form)> {
    let stage = &matmul.epilogue;
    let [Effect::Store { access, value, .. }] = stage.effects.as_slice() else { return None };
    let column = matmul.axes.last()?.symbol;
    let form = form(program, stage, *value, column, matmul.dtype)?;
    access.is_direct().then_some((access, form))
}

/// The form of a term, from the last operation to the sum: every operation is there at most once, in the library's order.
fn form(program: &Program, stage: &Stage, value: TermId, column: Symbol, dtype: DType) -> Option<Form> {
    let TypedTerm { term, dtype: own } = &stage.terms[value];
    match term {
        Term::Sum => Some(Form::default()),
        // Rounding to the type of the results is what the library ends with.
        Term::Cast(of) if *own == dtype => form(program, stage, *of, column, dtype),
        Term::Binary(BinaryOp::Maximum, of, zero) if is_zero(stage, *zero) => {
            let inner = form(program, stage, *of, column, dtype)?;
            (!inner.relu).then_some(Form { relu: true, ..inner })
        }
        Term::Binary(BinaryOp::Add, of, bias) => {
            let inner = form(program, stage, *of, column, dtype)?;
            let bias = bias_of(program, stage, *bias, column, dtype)?;
            (inner.bias.is_none() && !inner.relu).then_some(Form { bias: Some(bias), relu: false })
        }
        Term::Literal(_)
        | Term::Index(_)
        | Term::Load { .. }
        | Term::Unary(..)
        | Term::Binary(..)
        | Term::Select(..)
        | Term::Cast(_)
        | Term::Inside(_)
        | Term::CheckIndex { .. }
        | Term::Accumulated(_)
        | Term::Earlier { .. } => None,
    }
}

fn is_zero(stage: &Stage, term: TermId) -> bool {
    matches!(&stage.terms[term].term, Term::Literal(number) if *number == Scalar::from(0.0))
}

/// The weights of which each column is added one element.
fn bias_of(program: &Program, stage: &Stage, term: TermId, column: Symbol, dtype: DType) -> Option<BufferId> {
    let Term::Load { access, guards, .. } = &stage.terms[term].term else { return None };
    let buffer = &program.buffers[access.buffer];
    let is_constant = matches!(buffer.storage, Storage::Constant(_)) && buffer.dtype == dtype;
    let is_row = access.is_direct() && guards.is_empty() && access.offset == Expr::sym(column);
    (is_constant && is_row).then_some(access.buffer)
}
