//! Attention as device code: a block for each tile of queries, operands as strided tables, the function of scores and the
//! epilogue as lambdas.

use super::contraction::{epilogue, in_roles, offset, positions};
use super::{EACH_UNIT, Printed, index_type};
use crate::codegen::c_family::contraction::{scores, types};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::type_name;
use crate::kernels::Selection;
use crate::kernels::attention::{self, Operand};
use crate::kernels::mapping::Tile;
use crate::loops::{Attention, MatrixOperand, Program};
use crate::symbolic::Expr;

pub(super) fn print(
    program: &Program,
    parameters: &Parameters,
    own: &Attention,
    (choice, tile): (&Selection, &Tile),
) -> Printed {
    let [batch @ .., query, column] = own.axes.as_slice() else {
        unreachable!("attention has an axis of queries and one of columns")
    };
    let (rows, index) = (tile.rows, index_type(tile.index));
    let batches = Expr::product(batch.iter().map(|axis| &axis.extent));
    let table = |operand: &MatrixOperand, row: &Expr, column: &Expr| {
        let pointer = parameters.buffer(operand.buffer);
        let start = offset(operand);
        let element = type_name(program.buffers[operand.buffer].dtype);
        format!("Table<{element}, {index}>{{whole({pointer}){start}, {}, {}}}", scalar(row), scalar(column))
    };
    let score = scores(&own.stages[0], |terms| epilogue(parameters, terms, own.key().symbol, None));
    let result = epilogue(parameters, &own.stages[1], column.symbol, None);
    let [i, key, c] = [query.symbol, own.key().symbol, column.symbol].map(symbol_name);
    let reach = own.reach.as_ref().map_or("0".to_owned(), scalar);
    let gpus = &attention::code(choice.algorithm).gpus;
    let template = (gpus.call)(own, tile).open(types(own.dtype), |operand| match operand {
        Operand::Name(name) => (*name).to_owned(),
        Operand::Reach => format!("{index}({reach})"),
        Operand::Worker => unreachable!("blocks of a GPU have no memory of a worker"),
    });
    let call = format!(
        "{}{template},\n    {},\n    {},\n    {},\n\
         \x20   [&]({index} {i}, {index} {key}, auto lanes, auto sum) {{\n      (void){i}, (void){key};\n{}    }},\n\
         \x20   [&]({index} {i}, {index} {c}, auto lanes, auto sum) {{\n      (void){i}, (void){c};\n{}    }});\n",
        positions(batch, "batch", index),
        table(&own.queries, &own.queries.row_stride, &own.queries.column_stride),
        table(&own.keys, &own.keys.column_stride, &own.keys.row_stride),
        table(&own.values, &own.values.row_stride, &own.values.column_stride),
        indent(&score, 3),
        indent(&result, 3),
    );
    // Neighbouring blocks have the same queries where they share the keys.
    let shared = if tile.blocks == 1 { String::new() } else { format!(" / {}", tile.blocks) };
    let units = format!(
        "{EACH_UNIT}for ({index} unit = {index}(block_index(){shared}); unit < down * batches; unit += {index}(block_count(){shared})) {{\n\
         \x20 const TileOfHeads<{}, {index}> place(unit, down, batches);\n\
         \x20 const {index} row0 = place.tile * {rows}, batch = place.batch;\n\
         \x20 (void)batch;\n{}}}\n",
        tile.heads,
        indent(&call, 1),
    );
    let body = format!(
        "AOTI_DYNAMIC_SHARED(shared);\n\
         const {index} m = {}, n = {}, down = ceil_div(m, {index}({rows})), batches = {};\n\
         {}",
        scalar(&query.extent),
        scalar(&own.key().extent),
        scalar(&batches),
        if tile.producer_threads > 0 { in_roles("TileRings", &units) } else { units },
    );
    Printed { body, headers: vec![(gpus.header)(tile)] }
}
