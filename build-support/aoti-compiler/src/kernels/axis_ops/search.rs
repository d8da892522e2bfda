//! Searches in sorted rows.

use super::{Code, OnGpus, Operand, RUN, RowBlock, flag, is_row_each, no_scratch, sizes};
use crate::kernels::launch::{Launch, MAX_BLOCKS};
use crate::kernels::{self, Algorithm, Call, Parameter};
use crate::loops::{AxisKernel, AxisOp};

pub(crate) static SEARCH: Algorithm = Algorithm {
    word: "rows.search",
    version: 1,
    description: "searches in sorted rows",
    headers: |_| &["rows.h"],
    code: kernels::Code::AxisOp(Code {
        scratch: no_scratch,
        processors: Some(call),
        gpus: Some(OnGpus {
            headers: &["rows.h", "gpu/scan.h", "gpu/sort.h"],
            block: |_, _| RowBlock::ROW_EACH,
            fits: is_row_each,
            launches: |rows, RowBlock { threads, rows: at_once }| {
                Launch::of(&(&rows.outer * &rows.inner), at_once, threads, MAX_BLOCKS).into()
            },
            calls: |rows, _| call(rows).into(),
        }),
    }),
};

fn call(rows: &AxisKernel) -> Call<Operand> {
    let AxisOp::SearchSorted { right } = rows.op else { unreachable!("its rows are searched") };
    let operands = [RUN, Operand::Input(0), Operand::Input(1), Operand::Output(0)];
    Call::new("search_sorted", operands.into_iter().chain(sizes(rows)))
        .with([Parameter::Element, flag(right)])
}
