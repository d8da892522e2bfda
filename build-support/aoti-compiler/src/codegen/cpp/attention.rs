//! Attention as C++: blocks of queries as units of work, the function of scores and the epilogue as lambdas.

use super::KernelText;
use super::contraction::{batch_positions, epilogue, matrix_text};
use super::threads::{grain_of, parallel, worker_scratch};
use crate::codegen::c_family::contraction::{scores, types};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::kernels::Selection;
use crate::kernels::attention::{self, Operand};
use crate::kernels::mapping::CpuMapping;
use crate::loops::{Attention, MatrixOperand, Program};
use crate::symbolic::{Expr, Symbol};

pub(super) fn print(
    program: &Program,
    parameters: &Parameters,
    own: &Attention,
    (mapping, choice): (&CpuMapping, &Selection),
    text: &mut KernelText,
) {
    let [batch @ .., query, column] = own.axes.as_slice() else {
        unreachable!("attention has an axis of queries and one of columns")
    };
    let matrix = |operand: &MatrixOperand, name: &str| {
        matrix_text(parameters, operand, program.buffers[operand.buffer].dtype, name)
    };
    let operands = matrix(&own.queries, "q") + &matrix(&own.keys, "k") + &matrix(&own.values, "v");
    let lambda = |name: &str, axes: [Symbol; 2], body: &str| {
        let [row, column] = axes.map(symbol_name);
        format!(
            "const auto {name} = [=, &run](i64 {row}, i64 {column}, auto lanes, auto sum) AOTI_LAMBDA {{\n  (void){row}, (void){column}, (void)lanes;\n{}}};\n",
            indent(body, 1)
        )
    };
    let key = own.key().symbol;
    let score = lambda(
        "score",
        [query.symbol, key],
        &scores(&own.stages[0], |terms| epilogue(parameters, terms, key)),
    );
    let result =
        lambda("result", [query.symbol, column.symbol], &epilogue(parameters, &own.stages[1], column.symbol));
    let reach = own.reach.as_ref().map_or("0".to_owned(), scalar);
    let call = (attention::code(choice.algorithm).processors)(own);
    let call = call.print(types(own.dtype), |operand| match operand {
        Operand::Name(name) => (*name).to_owned(),
        Operand::Reach => reach.clone(),
        Operand::Worker => worker_scratch(&choice.scratch),
    });
    let call = format!("{call};\npacked = unit;\n");
    let body = format!("{}{operands}{score}{result}{call}", batch_positions(batch));
    let blocks = format!(
        "for (i64 block = begin, packed = -1; block < end; ++block) {{\n  const i64 unit = block / blocks;\n{}}}\n",
        indent(&body, 1)
    );
    text.body = format!(
        "const AttentionShape shape{{{}, {}, {}, {}}};\n\
         const i64 blocks = ceil_div(shape.queries, kAttentionRows), units = blocks * ({});\n{}",
        scalar(&query.extent),
        scalar(&own.key().extent),
        scalar(&own.depth),
        scalar(&column.extent),
        scalar(&Expr::product(batch.iter().map(|axis| &axis.extent))),
        parallel("units", &grain_of(&mapping.grain, "units"), &blocks),
    );
    text.weight = 24 + own.stages.iter().map(|stage| stage.terms.len()).sum::<usize>();
}
