//! Contractions as device code: tiles of rows and columns over blocks, operands as functions of (row, depth) and
//! (depth, column), the epilogue as a lambda.

use super::{Launch, MAX_BLOCKS, Printed, index_type};
use crate::codegen::c_family::contraction::{literal, merge_pixels, sum_type};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::{Context, Earlier, type_name};
use crate::loops::{Axis, ConvShape, Convolution, MatMul, MatrixOperand, Program, Stage};
use crate::schedule::mapping::IndexWidth;
use crate::symbolic::{Expr, NoRanges, Symbol};
use std::fmt::Write;

/// Rows of a tile that matrix units multiply: `gpu/mma.h` has the same.
const MATRIX_UNITS: i64 = 128;

/// How a contraction is laid over blocks.
pub(super) struct Tiling {
    rows: i64,
    columns: i64,
    threads: i64,
    index: &'static str,
}

impl Tiling {
    pub(super) fn new([rows, columns]: [i64; 2], threads: i64, index: IndexWidth) -> Tiling {
        Tiling { rows, columns, threads, index: index_type(index) }
    }
}

/// The epilogue as statements that use `lanes` and `sum`, lanes along `vector`.
fn epilogue(parameters: &Parameters, stage: &Stage, vector: Symbol) -> String {
    let context = Context {
        parameters,
        stage,
        prefix: String::new(),
        vector: Some(vector),
        earlier: Earlier::OneLane,
        width: "lanes.width",
    };
    let printed = context.print();
    format!("{}{}{}", printed.uniform, printed.body, printed.effects)
}

/// The positions of axes from the number of a unit.
fn positions(axes: &[Axis], unit: &str, index: &str) -> String {
    let mut text = String::new();
    for (k, axis) in axes.iter().enumerate() {
        let stride = Expr::product(axes[k + 1..].iter().map(|axis| &axis.extent));
        let name = symbol_name(axis.symbol);
        let _ = writeln!(
            text,
            "const {index} {name} = {unit} / ({}) % ({});\n(void){name};",
            scalar(&stride),
            scalar(&axis.extent)
        );
    }
    text
}

/// A launch of one block for each tile of each batch.
fn launch(batches: &Expr, rows: &Expr, columns: &Expr, tile: &Tiling) -> Launch {
    let tiles = |size: &Expr, step: i64| size.ceil_div(&Expr::int(step), &NoRanges);
    let units = &(batches * &tiles(rows, tile.rows)) * &tiles(columns, tile.columns);
    Launch::of(&units, 1, tile.threads, MAX_BLOCKS)
}

/// The loop over tiles around the call of the template.
fn tiles(batches: &Expr, tile: &Tiling, inside: &str) -> String {
    let index = tile.index;
    format!(
        "const {index} across = ceil_div(n, {columns}), down = ceil_div(m, {rows});\n\
         for ({index} unit = {index}(block_index()); unit < across * down * ({}); unit += {index}(block_count())) {{\n\
         \x20 const {index} column0 = unit % across * {columns}, row0 = unit / across % down * {rows}, batch = unit / across / down;\n\
         \x20 (void)batch;\n{}}}\n",
        scalar(batches),
        indent(inside, 1),
        columns = tile.columns,
        rows = tile.rows,
    )
}

pub(super) fn matmul(parameters: &Parameters, matmul: &MatMul, tile: &Tiling) -> Printed {
    let index = tile.index;
    let rank = matmul.axes.len();
    let (batch, matrix) = matmul.axes.split_at(rank - 2);
    let (row, column) = (&matrix[0], &matrix[1]);
    let batches = Expr::product(batch.iter().map(|axis| &axis.extent));
    let element = |operand: &MatrixOperand, row: &str, column: &str| {
        let pointer = parameters.buffer(operand.buffer);
        let mut parts = vec![];
        if !operand.offset.is(0) {
            parts.push(format!("({})", scalar(&operand.offset)));
        }
        for (position, stride) in [(row, &operand.row_stride), (column, &operand.column_stride)] {
            if stride.is(1) {
                parts.push(position.to_owned());
            } else if !stride.is(0) {
                parts.push(format!("{position} * ({})", scalar(stride)));
            }
        }
        if parts.is_empty() { format!("{pointer}[0]") } else { format!("{pointer}[{}]", parts.join(" + ")) }
    };
    let (i, j) = (symbol_name(row.symbol), symbol_name(column.symbol));
    let sum = sum_type(matmul.dtype);
    let epilogue_text = indent(&epilogue(parameters, &matmul.epilogue, column.symbol), 3);
    let sizes = format!(
        "const {index} m = {}, n = {}, k = {};\n",
        scalar(&row.extent),
        scalar(&column.extent),
        scalar(&matmul.depth)
    );
    if tile.rows == MATRIX_UNITS {
        let element = type_name(matmul.dtype);
        let operand = |operand: &MatrixOperand, outer: &Expr, depth: &Expr| {
            let pointer = parameters.buffer(operand.buffer);
            let start = if operand.offset.is(0) {
                String::new()
            } else {
                format!(" + ({})", scalar(&operand.offset))
            };
            format!(
                "HalfOperand<{element}, {index}>{{{pointer}{start}, {}, {}}}",
                scalar(outer),
                scalar(depth)
            )
        };
        let call = format!(
            "{}contract_halves<{element}>(row0, column0, m, n, k,\n    {},\n    {},\n\
             \x20   [&]({index} {i}, {index} {j}, auto lanes, auto sum) {{\n      (void){i}, (void){j};\n{epilogue_text}    }});\n",
            positions(batch, "batch", index),
            operand(&matmul.a, &matmul.a.row_stride, &matmul.a.column_stride),
            operand(&matmul.b, &matmul.b.column_stride, &matmul.b.row_stride),
        );
        return Printed {
            body: sizes + &tiles(&batches, tile, &call),
            launch: launch(&batches, &row.extent, &column.extent, tile),
            headers: vec!["gpu/mma.h"],
        };
    }
    // Neighbouring threads load neighbouring elements: along the depth where that is contiguous, else along the rows.
    let a_by_depth = matmul.a.column_stride.is(1);
    let b_by_depth = matmul.b.row_stride.is(1) && !matmul.b.column_stride.is(1);
    let call = format!(
        "{}contract<{sum}, {}, {}, {a_by_depth}, {b_by_depth}>(row0, column0, m, n, k,\n\
         \x20   [&]({index} row, {index} depth) {{ (void)row, (void)depth; return widen<{sum}>({}); }},\n\
         \x20   [&]({index} depth, {index} column) {{ (void)column, (void)depth; return widen<{sum}>({}); }},\n\
         \x20   [&]({index} {i}, {index} {j}, auto lanes, auto sum) {{\n      (void){i}, (void){j};\n{}    }});\n",
        positions(batch, "batch", index),
        tile.rows,
        tile.columns,
        element(&matmul.a, "row", "depth"),
        element(&matmul.b, "depth", "column"),
        epilogue_text
    );
    Printed {
        body: sizes + &tiles(&batches, tile, &call),
        launch: launch(&batches, &row.extent, &column.extent, tile),
        headers: vec!["gpu/contract.h"],
    }
}

/// A convolution as a product: rows are the output channels of a group, columns the pixels of all images, the depth runs
/// over input channels and taps. Groups are batches.
pub(super) fn convolution(
    program: &Program,
    parameters: &Parameters,
    conv: &Convolution,
    tile: &Tiling,
) -> Printed {
    let (shape, index) = (ConvShape::new(program, conv), tile.index);
    let (stage, pixel) = merge_pixels(conv);
    let (image, channel) = (&conv.axes[0], &conv.axes[1]);
    let pixels = Expr::product(conv.axes[2..].iter().map(|axis| &axis.extent));
    let groups = Expr::int(shape.groups);
    let rows = channel.extent.floor_div(&groups);
    let columns = &image.extent * &pixels;
    let sum = sum_type(conv.dtype);
    let (x, w) = (parameters.buffer(conv.input), parameters.buffer(conv.weight));
    let function = if conv.conv.transposed { "transposed" } else { "direct" };
    let (n, c, p) = (symbol_name(image.symbol), symbol_name(channel.symbol), symbol_name(pixel));
    let call = format!(
        "contract<{sum}, {}, {}, {}, false>(row0, column0, m, n, k,\n\
         \x20   [&]({index} row, {index} depth) {{ return widen<{sum}>({w}[shape.weight_{function}(batch, row, depth)]); }},\n\
         \x20   [&]({index} depth, {index} column) {{\n\
         \x20     const {index} at = shape.{function}(batch, depth, column);\n\
         \x20     return at < 0 ? {sum}(0) : widen<{sum}>({x}[at]);\n    }},\n\
         \x20   [&]({index} row, {index} column, auto lanes, auto sum) {{\n\
         \x20     const {index} {c} = batch * m + row, {n} = column / ({pixels}), {p} = column % ({pixels});\n\
         \x20     (void){c}, (void){n}, (void){p};\n{}    }});\n",
        tile.rows,
        tile.columns,
        !conv.conv.transposed,
        indent(&epilogue(parameters, &stage, pixel), 3),
        pixels = scalar(&pixels),
    );
    let prelude = format!(
        "const ConvSizes<{index}> shape{};\n\
         const {index} m = {}, n = {}, k = shape.depth();\n",
        literal(&shape),
        scalar(&rows),
        scalar(&columns),
    );
    Printed {
        body: prelude + &tiles(&groups, tile, &call),
        launch: launch(&groups, &rows, &columns, tile),
        headers: vec!["gpu/contract.h", "gpu/conv.h"],
    }
}
