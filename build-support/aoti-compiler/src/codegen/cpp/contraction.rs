//! Matrix products as C++: calls of the chosen algorithm, with the epilogue as a lambda.

use super::threads::{grain, grain_of, parallel, worker_scratch};
use super::{KernelText, nest};
use crate::codegen::c_family::contraction::{sum_type, types};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::{Context, Earlier, type_name};
use crate::codegen::merging::{numbers, size};
use crate::dtype::DType;
use crate::kernels::gemm::{self, Operand, Tiling};
use crate::kernels::mapping::{CpuMapping, Split};
use crate::kernels::{Form, PackedOperand, Packing, Selection, all_rows_bytes};
use crate::loops::{Axis, Kernel, MatMul, MatrixOperand, Program, Stage};
use crate::schedule::Schedule;
use crate::symbolic::{Expr, Symbol};
use crate::target::templates::in_words;

/// The epilogue as text: statements that use `lanes` and `sum`, lanes along `vector`.
pub(super) fn epilogue(parameters: &Parameters, stage: &Stage, vector: Symbol) -> String {
    let context = Context {
        whole: None,
        has_own_rows: false,
        given: None,
        parameters,
        stage,
        prefix: String::new(),
        vector: Some(vector),
        earlier: Earlier::OneLane,
        width: "AOTI_LANES",
        first_lane: 1,
        positions: None,
        read_later: vec![],
        turned: &[],
    };
    let printed = context.print();
    format!("{}{}{}", printed.uniform, printed.body, printed.effects)
}

/// Keeps compilers quiet about positions that an epilogue has no use for.
pub(super) fn unused(axes: &[Symbol]) -> String {
    let parts: Vec<String> = axes.iter().map(|axis| format!("(void){}", symbol_name(*axis))).collect();
    format!("  {};\n", parts.join(", "))
}

// --- matrix products ---------------------------------------------------------------------------------------------

/// A part of a matrix product, as C++ expressions.
struct Part<'t> {
    rows: [&'t str; 2],
    panels: [&'t str; 2],
    /// The condition under which these are all panels; none where they always are.
    is_whole: Option<&'t str>,
}

/// The panels of all columns, whose width is that of the type of sums.
fn all_panels(dtype: DType) -> &'static str {
    if dtype == DType::F64 { "gemm_panels<f64>(n)" } else { "gemm_panels(n)" }
}

/// The type of the elements of packed panels.
fn panel_type(program: &Program, matmul: &MatMul, choice: &Selection) -> &'static str {
    let is_narrow =
        |packed: &PackedOperand| matches!(packed.form, Form::Packed(Packing::Product { narrow: true, .. }));
    let has_groups =
        |packed: &PackedOperand| matches!(packed.form, Form::Packed(Packing::ProductGroups { .. }));
    if choice.packed.iter().any(has_groups) {
        "u8"
    } else if choice.packed.iter().any(is_narrow) {
        type_name(program.buffers[matmul.b.buffer].dtype)
    } else {
        sum_type(matmul.dtype)
    }
}

/// A matrix product while it is printed.
struct Product<'a> {
    matmul: &'a MatMul,
    /// The element types of both operands.
    dtypes: [DType; 2],
    own: gemm::Product,
    tiling: Tiling,
    mapping: &'a CpuMapping,
    /// Rows of the largest register tile, where it is not the largest that there is.
    most: Option<i64>,
    scratch: String,
    /// The type of the elements of packed panels.
    panels: &'static str,
    /// Declarations of the rows that a worker keeps in its scratch `worker`, or nothing.
    rows: String,
    worker: String,
}

pub(super) fn matmul(
    (schedule, kernel): (&Schedule, &Kernel),
    parameters: &Parameters,
    matmul: &MatMul,
    choice: &Selection,
    mapping: &CpuMapping,
    text: &mut KernelText,
) {
    let (batch, matrix) = matmul.axes.split_at(matmul.axes.len() - 2);
    let (row, column) = (&matrix[0], &matrix[1]);
    let most = gemm::most_rows(matmul, mapping.block);
    // The template's own scratch is behind the rows that a worker keeps.
    let kept = all_rows_bytes(&schedule.program, kernel, &schedule.target);
    let scratch = match (worker_scratch(&choice.scratch), kept.is(0)) {
        (all, true) => all,
        (_, false) if choice.scratch.units.is_none() && choice.scratch.worker == kept => "nullptr".to_owned(),
        (all, false) => format!("{all} + {}", size(&scalar(&kept))),
    };
    let rows = nest::kept_rows(&schedule.program, parameters);
    let worker = worker_scratch(&choice.scratch);
    let panels = panel_type(&schedule.program, matmul, choice);
    let dtypes = [&matmul.a, &matmul.b].map(|operand| schedule.program.buffers[operand.buffer].dtype);
    let own = gemm::product(choice.algorithm, matmul, mapping.block);
    let depth = if own.is_of_words { in_words(&matmul.depth) } else { matmul.depth.clone() };
    let tiling = gemm::code(choice.algorithm).tiling;
    let product = Product { matmul, dtypes, own, tiling, mapping, most, scratch, panels, rows, worker };
    let [m, n, k] = [&row.extent, &column.extent, &depth].map(|extent| size(&scalar(extent)));
    let plan = match (product.is_on_units(), mapping.split) {
        (false, _) => String::new(),
        (true, Split::RowsFrom(rows)) => format!("const GemmPlan plan = gemm_plan(m, n, {rows});\n"),
        (true, _) => "const GemmPlan plan = gemm_plan(m, n, 0);\n".to_owned(),
    };
    let operands = product.operands(parameters);
    let body = match mapping.split {
        Split::Template => product.by_tiles(batch, &operands),
        Split::Axes(count) if count < matmul.axes.len() - 1 => product.of_batch(batch, &operands),
        Split::RowsFrom(rows) => single(batch) + &operands + &product.by_rows_or_panels(rows),
        Split::Axes(_) | Split::Serial | Split::Chunks(_) => single(batch) + &operands + &product.by_rows(),
    };
    text.body = format!("const i64 m = {m}, n = {n}, k = {k};\n{plan}{body}");
    let rows = matmul.row_epilogue.iter().flat_map(|rows| &rows.stages);
    text.weight = 8 + matmul.epilogue.terms.len() + rows.map(|stage| stage.terms.len() + 2).sum::<usize>();
}

/// The only position of axes that are not split over threads.
fn single(batch: &[Axis]) -> String {
    let zero = |axis: &Axis| {
        let name = symbol_name(axis.symbol);
        format!("constexpr i64 {name} = 0;\n(void){name};\n")
    };
    batch.iter().map(zero).collect()
}

impl Product<'_> {
    fn is_on_units(&self) -> bool {
        self.tiling == Tiling::Units
    }

    /// Both operands and the epilogue.
    fn operands(&self, parameters: &Parameters) -> String {
        let matmul = self.matmul;
        let [.., row, column] = &matmul.axes[..] else { unreachable!("a product has rows and columns") };
        let a = if self.own.is_of_words {
            words_text(parameters, &matmul.a)
        } else {
            matrix_text(parameters, &matmul.a, self.dtypes[0], "a")
        };
        let b = if self.own.is_packed {
            let (element, pointer) = (self.panels, parameters.buffer(matmul.b.buffer));
            format!("const {element} *const b = (const {element} *){pointer};\n")
        } else {
            matrix_text(parameters, &matmul.b, self.dtypes[1], "b")
        };
        let operands = numbers(&(a + &b));
        format!(
            "{operands}const auto epilogue = [=, &run](i64 {}, i64 {}, auto lanes, auto sum) AOTI_LAMBDA {{\n{}{}}};\n",
            symbol_name(row.symbol),
            symbol_name(column.symbol),
            unused(&[row.symbol, column.symbol]),
            indent(&numbers(&epilogue(parameters, &matmul.epilogue, column.symbol)), 1)
        ) + &self.row_epilogue(parameters)
    }

    /// What follows for some rows. It is called from several places, and once for many rows.
    fn row_epilogue(&self, parameters: &Parameters) -> String {
        let Some(rows) = &self.matmul.row_epilogue else { return String::new() };
        let [.., row] = &rows.axes[..] else { unreachable!("a product has rows") };
        let name = symbol_name(row.symbol);
        let body = nest::row_epilogue(parameters, rows);
        format!(
            "const auto row_epilogue = [&](i64 first, i64 last{}) AOTI_ONCE {{\n{}\
             \x20 for (i64 {name} = first; {name} < last; ++{name}) {{\n{}  }}\n}};\n",
            if self.rows.is_empty() { "" } else { ", char *scratch" },
            indent(&self.rows, 1),
            indent(&body, 2)
        )
    }

    /// Its call for some rows.
    fn finish(&self, first: &str, last: &str) -> String {
        let scratch = if self.rows.is_empty() { String::new() } else { format!(", {}", self.worker) };
        format!("row_epilogue({first}, {last}{scratch});")
    }

    /// The row epilogue over all rows, of which threads computed parts unless `by_rows` holds.
    fn row_epilogue_apart(&self, by_rows: &str) -> String {
        let Some(rows) = &self.mapping.rows else { return String::new() };
        let all = parallel("m", &grain(rows), &(self.finish("begin", "end") + "\n"));
        format!("if (!{by_rows})\n{}", indent(&all, 1))
    }

    /// The call of the template for a part.
    fn call(&self, part: &Part) -> String {
        let ([m0, m1], [p0, p1]) = (part.rows, part.panels);
        let rows = match (self.matmul.row_epilogue.is_some(), part.is_whole) {
            (false, _) => String::new(),
            (true, None) if self.rows.is_empty() => ", row_epilogue".to_owned(),
            (true, is_whole) => {
                let unless = is_whole.map_or(String::new(), |is_whole| format!("if ({is_whole}) "));
                let finish = self.finish("first", "last");
                format!(", [&](i64 first, i64 last) AOTI_LAMBDA {{ {unless}{finish} }}")
            }
        };
        let operand = |operand: &Operand| match operand {
            Operand::Name(name) => (*name).to_owned(),
            Operand::Rows => format!("{m0}, {m1}"),
            Operand::Panels => format!("{p0}, {p1}"),
            Operand::Worker => self.scratch.clone(),
            Operand::Epilogue => format!("epilogue{rows}"),
        };
        let call = self.own.call.print(types(self.matmul.dtype), operand);
        format!("{call};\n")
    }

    /// Whole products as units of work.
    fn of_batch(&self, batch: &[Axis], operands: &str) -> String {
        let whole = Part { rows: ["0", "m"], panels: ["0", all_panels(self.matmul.dtype)], is_whole: None };
        let body = format!("{}{operands}{}", batch_positions(batch), self.call(&whole));
        let count = scalar(&Expr::product(batch.iter().map(|axis| &axis.extent)));
        let units = format!("for (i64 unit = begin; unit < end; ++unit) {{\n{}}}\n", indent(&body, 1));
        parallel(&count, &grain(&self.mapping.grain), &units)
    }

    /// Tiles of all products as units of work, which are the same for any number of threads.
    fn by_tiles(&self, batch: &[Axis], operands: &str) -> String {
        let whole = Part { rows: ["0", "m"], panels: ["0", all_panels(self.matmul.dtype)], is_whole: None };
        let unit = if batch.is_empty() { "" } else { "const i64 unit = tile / tiles;\n" };
        let body = format!("{unit}{}{operands}{}", batch_positions(batch), self.call(&whole));
        let count = scalar(&Expr::product(batch.iter().map(|axis| &axis.extent)));
        let tiles = format!("for (i64 tile = begin; tile < end; ++tile) {{\n{}}}\n", indent(&body, 1));
        let count_tiles =
            if self.matmul.dtype == DType::F64 { "gemm_blas_tiles<f64>" } else { "gemm_blas_tiles" };
        format!(
            "const i64 tiles = {count_tiles}(m, n), units = tiles * ({count});\n{}",
            parallel("units", &grain_of(&self.mapping.grain, "units"), &tiles)
        )
    }

    /// Rows of one product as units of work.
    fn by_rows(&self) -> String {
        let panels = ["0", all_panels(self.matmul.dtype)];
        let part = Part { rows: ["begin", "end"], panels, is_whole: None };
        parallel("m", &grain(&self.mapping.grain), &self.call(&part))
    }

    /// Rows of one product as units of work where there are at least so many, else panels of columns; on matrix units as the
    /// plan says.
    fn by_rows_or_panels(&self, rows: i64) -> String {
        let panels = all_panels(self.matmul.dtype);
        let by_rows = if self.is_on_units() { "plan.by_rows" } else { "by_rows" };
        let part = Part { rows: ["m0", "m1"], panels: ["p0", "p1"], is_whole: Some(by_rows) };
        let call = self.call(&part);
        let body = |m0: &str, m1: &str| {
            format!(
                "const i64 m0 = {by_rows} ? {m0} : 0, m1 = {by_rows} ? {m1} : m;\n\
                 const i64 p0 = {by_rows} ? 0 : begin, p1 = {by_rows} ? {panels} : end;\n{call}"
            )
        };
        if self.is_on_units() {
            let least = format!("gemm_grain(run, plan, {})", grain_of(&self.mapping.grain, "plan.units"));
            let body = body("begin * plan.step", "min_i64(end * plan.step, m)");
            return parallel("plan.units", &least, &body) + &self.row_epilogue_apart(by_rows);
        }
        let least = match self.most {
            None => "kGemmRows".to_owned(),
            most => format!("kGemmRowsOf{}", most_rows(most)),
        };
        let grain = format!("max_i64({}, least)", grain_of(&self.mapping.grain, "units"));
        format!(
            "const bool by_rows = m >= {rows};\n\
             const i64 units = by_rows ? m : {panels}, least = by_rows ? {least} : 1;\n{}{}",
            parallel("units", &grain, &body("begin", "end")),
            self.row_epilogue_apart(by_rows)
        )
    }
}

/// The largest register tile as the template's argument; nothing for the largest that there is.
fn most_rows(most: Option<i64>) -> String {
    most.map_or(String::new(), |most| format!("<{most}>"))
}

pub(super) fn batch_positions(axes: &[Axis]) -> String {
    let mut text = String::new();
    for (index, axis) in axes.iter().enumerate() {
        let stride = Expr::product(axes[index + 1..].iter().map(|axis| &axis.extent));
        text.push_str(&format!(
            "const i64 {name} = unit / ({}) % ({});\n(void){name};\n",
            scalar(&stride),
            scalar(&axis.extent),
            name = symbol_name(axis.symbol)
        ));
    }
    text
}

/// A matrix of bytes as one of words, of which a template found that it is made.
fn words_text(parameters: &Parameters, operand: &MatrixOperand) -> String {
    let pointer = parameters.buffer(operand.buffer);
    format!(
        "const Matrix<i32> a{{(const i32 *)({pointer} + ({})), {}, 1}};\n",
        scalar(&operand.offset),
        scalar(&in_words(&operand.row_stride))
    )
}

pub(super) fn matrix_text(
    parameters: &Parameters,
    operand: &MatrixOperand,
    dtype: DType,
    name: &str,
) -> String {
    let pointer = parameters.buffer(operand.buffer);
    let start = if operand.offset.is(0) {
        pointer.to_owned()
    } else {
        format!("{pointer} + ({})", scalar(&operand.offset))
    };
    format!(
        "const Matrix<{}> {name}{{{start}, {}, {}}};\n",
        type_name(dtype),
        scalar(&operand.row_stride),
        scalar(&operand.column_stride)
    )
}
