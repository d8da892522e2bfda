//! Ways to compute a matrix product.

use super::{
    Candidate, Choice, Gemm, PackedOperand, Packing, Scratch, Template, kind_of_weights, libraries, scratch,
    typical, words,
};
use crate::cost::{Cost, Item};
use crate::dtype::DType;
use crate::loops::{MatMul, Program, Storage};
use crate::symbolic::Expr;
use crate::target::Target;
use crate::target::templates::WORD;

/// The ways to compute a matrix product. Nobody knows how fast a library is where the model will run: it counts as fast as the
/// cheapest other way and comes after that, so that only a record takes it.
pub(super) fn candidates(program: &Program, matmul: &MatMul, target: &Target) -> Vec<Candidate> {
    of_words(program, matmul, target)
        .map_or_else(|| of_numbers(program, matmul, target), |candidate| vec![candidate])
}

fn candidate(gemm: Gemm, packed: Vec<PackedOperand>, scratch: Scratch, cost: Cost) -> Candidate {
    Candidate { choice: Choice { template: Template::Gemm(gemm), packed, scratch }, cost }
}

/// Products of all batches.
fn multiply_adds(matmul: &MatMul) -> f64 {
    let positions: f64 = matmul.axes.iter().map(|axis| typical(&axis.extent)).product();
    positions * typical(&matmul.depth)
}

/// The way to compute a product of words, if it is one.
fn of_words(program: &Program, matmul: &MatMul, target: &Target) -> Option<Candidate> {
    let packing = words::product_words(program, matmul)?;
    let packed = vec![PackedOperand { buffer: matmul.b.buffer, form: packing.into() }];
    let work = Cost::of(Item::Multiply, multiply_adds(matmul) / WORD as f64);
    let rows = &matmul.axes[matmul.axes.len() - 2].extent;
    let scratch = scratch::gemm_packed(rows, &matmul.depth, 1, target);
    Some(candidate(Gemm::PackedWords, packed, scratch, work))
}

/// The ways to compute a product of numbers that are multiplied one by one.
fn of_numbers(program: &Program, matmul: &MatMul, target: &Target) -> Vec<Candidate> {
    let rank = matmul.axes.len();
    let (m, n, k) = (&matmul.axes[rank - 2].extent, &matmul.axes[rank - 1].extent, &matmul.depth);
    let batches: f64 = matmul.axes[..rank - 2].iter().map(|axis| typical(&axis.extent)).product();
    let work = multiply_adds(matmul);
    let sum = tile_sum(matmul.dtype).filter(|_| matches!(target, Target::Cpu(_)));
    let Some(sum) = sum else {
        let (cost, none) = (Cost::of(Item::Single, work), Scratch::default());
        let mut all = vec![candidate(Gemm::Any, vec![], none.clone(), cost)];
        if matches!(target, Target::Gpu(_)) {
            let by = |library| candidate(Gemm::Library(library), vec![], none.clone(), cost);
            all.extend(libraries(program, matmul, target).into_iter().map(by));
        }
        return all;
    };
    // Prices are those of floats: of wider numbers vectors hold fewer.
    let (size, floats) = (scratch::bytes(sum), sum.size() as f64 / DType::F32.size() as f64);
    let packed = batches * typical(n) * typical(k) * floats;
    let units = if sum == DType::F32 { units_cost(matmul, batches, target) } else { None };
    let work = Cost::of(Item::Multiply, work * floats);
    let packing = constant_panels(program, matmul);
    // Of weights of a half type some forms are half as many bytes as others, from wherever weights are. Products of many rows
    // hide that they are read.
    let halves = packing.is_some() && matmul.dtype.size() < sum.size();
    let (weight, weights) = (kind_of_weights(program, target), typical(n) * typical(k));
    let exposed = (1.0 - typical(m) / HIDING_ROWS).max(0.0);
    let read = |part: f64| {
        if halves { Cost::of(weight, weights * part * exposed) } else { Cost::default() }
    };
    let (narrow, wide) = (read(0.5), read(1.0));
    let general = scratch::gemm_general([m, n, k], size, target);
    let packs = Cost::of(Item::Packed, packed).plus(&wide);
    // Of constants every packing after the first is one that need not be.
    let blocks = (typical(m) / scratch::general_block_rows(typical(k), size)).ceil();
    let again = if packing.is_some() { packed * (blocks - 1.0).max(0.0) } else { 0.0 };
    let cost = work.plus(&packs).and(Item::Packed, again);
    let mut all = vec![candidate(Gemm::General, vec![], general, cost)];
    if let Some(cost) = units {
        let scratch = scratch::gemm_general_units(m, n, k, target);
        all.push(candidate(Gemm::GeneralOnUnits, vec![], scratch, cost.plus(&packs)));
    }
    let libraries = libraries(program, matmul, target);
    let with_library = |mut all: Vec<Candidate>| {
        let total = |candidate: &Candidate| target.prices().total(&candidate.cost);
        let cheapest = all.iter().min_by(|a, b| total(a).total_cmp(&total(b))).map(|least| least.cost);
        if let Some(cost) = cheapest {
            let scratch = || scratch::gemm_library([m, n, k], size, target);
            all.extend(libraries.iter().map(|own| candidate(Gemm::Library(*own), vec![], scratch(), cost)));
        }
        all
    };
    let Some(packing) = packing else { return with_library(all) };
    let panels = |narrow: bool| vec![PackedOperand { buffer: matmul.b.buffer, form: packing(narrow).into() }];
    let scratch = if reads_rows_in_place(matmul, sum) {
        Scratch::default()
    } else {
        scratch::gemm_packed(m, k, size, target)
    };
    if halves {
        // Each tile of rows widens them again.
        let tiles = (typical(m) / scratch::TILE_ROWS as f64).ceil();
        let cost = work.plus(&narrow).and(Item::Widened, weights * tiles);
        all.push(candidate(Gemm::PackedNarrow, panels(true), scratch.clone(), cost));
    }
    all.push(candidate(Gemm::Packed, panels(false), scratch.clone(), work.plus(&wide)));
    if let Some(cost) = units {
        let scratch = scratch::gemm_packed_units(m, k, scratch, target);
        all.push(candidate(Gemm::PackedOnUnits, panels(halves), scratch, cost.plus(&narrow)));
    }
    with_library(all)
}

/// Rows whose products take as long as weights take to come from far away.
const HIDING_ROWS: f64 = 28.0;

/// Multiply-adds that matrix units must save, as they need code of their own: a small network's library stays small.
const UNITS_CODE: f64 = 500_000.0;

/// Multiply-adds that take as long as it takes to load an element of a panel, once for each tile of rows.
const LOADED: f64 = 1.5;

/// What a product costs on matrix units, where some machines have them and rows can be enough.
fn units_cost(matmul: &MatMul, batches: f64, target: &Target) -> Option<Cost> {
    let Target::Cpu(cpu) = target else { return None };
    let rank = matmul.axes.len();
    let (m, n, k) = (&matmul.axes[rank - 2].extent, &matmul.axes[rank - 1].extent, &matmul.depth);
    if !cpu.may_have_units() || m.as_int().is_some_and(|m| m < scratch::UNIT_LEAST_ROWS) {
        return None;
    }
    // Planes of a number, and products of planes: those of `matrix_units.h`.
    let (planes, products) = if matmul.dtype == DType::Bf16 {
        (1.0, 1.0)
    } else if matmul.dtype == DType::F16 {
        (2.0, 4.0)
    } else {
        (3.0, 6.0)
    };
    let (m, n, k) = (typical(m), typical(n), typical(k));
    let blocks = (m / scratch::unit_block_rows(k)).ceil();
    Some(
        Cost::of(Item::Unit, batches * m * n * k * products)
            .and(Item::Plane, batches * k * (m + n * blocks) * planes)
            .and(Item::Multiply, UNITS_CODE)
            .and(Item::WithoutUnits, batches * m * n * k * (1.0 + LOADED / scratch::TILE_ROWS as f64)),
    )
}

/// The type that register tiles add products of elements of a type up in (`TileSum` of `tile.h`); none for those that have no
/// such tiles. Products of numbers of one byte are those of what they are converted to.
fn tile_sum(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 | DType::Bf16 | DType::F32 => Some(DType::F32),
        DType::F64 => Some(DType::F64),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F8(_) => None,
    }
}

/// Whether rows of the left operand are read in place without loss: rows that are a page apart share a cache set.
fn reads_rows_in_place(matmul: &MatMul, sum: DType) -> bool {
    let page = scratch::PAGE / scratch::bytes(sum);
    let spread = matmul.a.row_stride.as_int().is_some_and(|stride| stride % page != 0);
    matmul.dtype == sum && matmul.a.column_stride.is(1) && spread
}

/// The packing of a constant right operand that is the same in every batch, of wide or narrow elements.
fn constant_panels(program: &Program, matmul: &MatMul) -> Option<impl Fn(bool) -> Packing> {
    let b = &matmul.b;
    let is_constant = matches!(program.buffers[b.buffer].storage, Storage::Constant(_));
    let read_elsewhere =
        matmul.a.buffer == b.buffer || matmul.epilogue.reads().any(|buffer| buffer == b.buffer);
    if !is_constant || read_elsewhere {
        return None;
    }
    let size = |expr: &Expr| expr.as_int().and_then(|value| usize::try_from(value).ok());
    let (offset, row_stride, col_stride) = (size(&b.offset)?, size(&b.row_stride)?, size(&b.column_stride)?);
    let (k, n) = (size(&matmul.depth)?, size(&matmul.axes.last()?.extent)?);
    Some(move |narrow| Packing::Product { offset, row_stride, col_stride, k, n, narrow })
}
