//! Matrix products by a library where there is one when the model is loaded; else as [`super::any`] on GPUs, and as
//! [`super::general`] on processors.
//!
//! On GPUs the vendor's library computes whole kernels as the program wants them: plain products, to whose results a row of
//! weights is added, or of which negative ones become zero. Everything else in an epilogue is left to our own templates. On
//! processors a library computes tiles of sums, which are then handed to the kernel's epilogue, whatever that does.

use super::{BY_TILES, Code, Operand, Product, Site, Tiling, as_it_is, general};
use crate::constants;
use crate::dtype::DType;
use crate::graph::{BinaryOp, Scalar};
use crate::kernels::mapping::Block;
use crate::kernels::scratch::{PANEL, aligned, round_up};
use crate::kernels::{self, Algorithm, Call, Scratch, typical};
use crate::loops::{
    Access, BufferId, Effect, MatMul, MatrixOperand, Program, Stage, Storage, Term, TermId, TypedTerm,
};
use crate::symbolic::{Expr, Symbol};
use crate::target::{MathLibrary, Target};

pub(crate) static CUBLASLT: Algorithm =
    algorithm(MathLibrary::CublasLt, "gemm.cublaslt", "a product by cublaslt, and without that", None);
pub(crate) static HIPBLASLT: Algorithm =
    algorithm(MathLibrary::HipblasLt, "gemm.hipblaslt", "a product by hipblaslt, and without that", None);
pub(crate) static OPENBLAS: Algorithm = algorithm(
    MathLibrary::OpenBlas,
    "gemm.openblas",
    "a product by openblas, and without that",
    Some(|_, _| product("OpenBlas")),
);
pub(crate) static ONEDNN: Algorithm = algorithm(
    MathLibrary::OneDnn,
    "gemm.onednn",
    "a product by onednn, and without that",
    Some(|_, _| product("OneDnn")),
);

/// Nobody knows how fast a library is where the model will run: it counts as fast as the cheapest other way and comes after
/// that, so that only a record takes it.
const fn algorithm(
    library: MathLibrary,
    word: &'static str,
    description: &'static str,
    processors: Option<fn(&MatMul, Block) -> Product>,
) -> Algorithm {
    let applies: fn(&Site) -> bool = match library {
        MathLibrary::CublasLt => |site| is_asked(site, MathLibrary::CublasLt),
        MathLibrary::HipblasLt => |site| is_asked(site, MathLibrary::HipblasLt),
        MathLibrary::OpenBlas => |site| is_asked(site, MathLibrary::OpenBlas),
        MathLibrary::OneDnn => |site| is_asked(site, MathLibrary::OneDnn),
    };
    let gpus = if processors.is_none() { Some(BY_TILES) } else { None };
    Algorithm {
        word,
        version: 1,
        description,
        headers: |_| &["gemm_blas.h"],
        code: kernels::Code::Product(Code {
            applies,
            cost: |site| site.cheapest(),
            weights: as_it_is,
            scratch,
            tiling: Tiling::Library,
            widens: false,
            library: Some(library),
            processors,
            gpus,
        }),
    }
}

/// Rows and columns of the tiles of a library at most, and what their rows are multiples of (`gemm_blas.h`).
const BLAS_ROWS: i64 = constants::BLAS_ROWS;
const BLAS_COLUMNS: i64 = constants::BLAS_COLUMNS;
const BLAS_STEP: i64 = constants::BLAS_STEP;

/// The sums of a tile that a library computes; no less than without one. A vendor's needs no memory of a worker.
fn scratch(site: &Site) -> Scratch {
    if matches!(site.target, Target::Gpu(_)) {
        return Scratch::default();
    }
    let ([m, n, _], size) = (site.sizes, site.element_bytes());
    let (rows, columns) = (m.minimum(&Expr::int(BLAS_ROWS)), n.minimum(&Expr::int(BLAS_COLUMNS)));
    let sums = &(&round_up(&rows, BLAS_STEP) * &round_up(&columns, PANEL)) * size;
    let plain = general::scratch(site.sizes, size, site.target).worker;
    Scratch::of_worker(aligned(&sums.maximum(&plain), site.target))
}

/// What `blas.h` calls a library; nothing where it is for GPUs.
pub(crate) const fn blas_type(library: MathLibrary) -> Option<&'static str> {
    match library {
        MathLibrary::CublasLt | MathLibrary::HipblasLt => None,
        MathLibrary::OpenBlas => Some("OpenBlas"),
        MathLibrary::OneDnn => Some("OneDnn"),
    }
}

/// A tile by a library that `blas.h` calls so.
fn product(library: &'static str) -> Product {
    let sizes = ["m", "n", "k", "a", "b"].map(Operand::Name);
    let operands = [Operand::Name("tile % tiles")].into_iter().chain(sizes);
    let operands = operands.chain([Operand::Worker, Operand::Epilogue]);
    let call = Call::new("gemm_blas", operands).with([library.into()]);
    Product { is_of_words: false, is_packed: false, call }
}

/// Whether a library computes a product on this target.
fn is_asked(site: &Site, library: MathLibrary) -> bool {
    let has_tiles = match site.target {
        Target::Cpu(_) => site.has_tiles(),
        Target::Gpu(_) => true,
    };
    has_tiles && libraries(site.program, site.matmul, site.target).contains(&library)
}

/// A matrix as a vendor's library is told of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LibraryMatrix {
    /// The buffer that it begins at.
    pub buffer: BufferId,
    /// Elements between its rows; between its columns where it is turned.
    pub leading: i64,
    /// Whether its columns lie side by side rather than its rows.
    pub turned: bool,
}

/// A product for a vendor's library: results by rows, which have a leading dimension.
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
        let (leading, length) = if own.column_stride.is(1) {
            (&own.row_stride, columns)
        } else if own.row_stride.is(1) {
            (&own.column_stride, rows)
        } else {
            return false;
        };
        let is_apart =
            leading.as_int().zip(length.as_int()).is_none_or(|(leading, length)| leading >= length);
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
    let (leading, rest) = access.offset.affine_in(row.symbol)?;
    let begins = rest == Expr::sym(column.symbol) && program.buffers[access.buffer].dtype == matmul.dtype;
    let result = LibraryMatrix { buffer: access.buffer, leading: leading.as_int()?, turned: false };
    let is_apart = result.buffer != a.buffer && result.buffer != b.buffer;
    if !(begins && is_apart && is_whole(result.leading, matmul.dtype) && result.leading >= sizes[1]) {
        return None;
    }
    Some(LibraryProduct { sizes, a, b, result, dtype: matmul.dtype, bias: form.bias, relu: form.relu })
}

fn is_whole(leading: i64, dtype: DType) -> bool {
    leading > 0 && leading * dtype.size() as i64 % ROW_BYTES == 0
}

fn operand(program: &Program, own: &MatrixOperand, dtype: DType) -> Option<LibraryMatrix> {
    let strides = [own.row_stride.as_int()?, own.column_stride.as_int()?];
    let (leading, turned) = match strides {
        [leading, 1] => (leading, false),
        [1, leading] => (leading, true),
        _ => return None,
    };
    let fits = program.buffers[own.buffer].dtype == dtype && own.offset.is(0) && is_whole(leading, dtype);
    fits.then_some(LibraryMatrix { buffer: own.buffer, leading, turned })
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
    let is_local = access.is_direct() && guards.is_empty() && access.offset == Expr::sym(column);
    (is_constant && is_local).then_some(access.buffer)
}
