//! The element of a rank in each row: its key is found digit by digit, and nothing is sorted.

use super::{Code, OnGpus, Operand, RUN, RowBlock, flag, number, sizes};
use crate::graph::Ties;
use crate::kernels::launch::{Launch, Launches, MAX_BLOCKS};
use crate::kernels::scratch::aligned;
use crate::kernels::{self, Algorithm, Call, Parameter, Scratch};
use crate::loops::{AxisKernel, AxisOp};
use crate::symbolic::Expr;

pub(crate) static NTH_ELEMENT: Algorithm = Algorithm {
    word: "rows.nth-element",
    version: 1,
    description: "elements by their rank in a row",
    headers: |_| &["nth_element.h"],
    code: kernels::Code::AxisOp(Code {
        // Keys of a row, and their order.
        scratch: |rows, target| {
            let key = if rows.dtype.compute().size() > 4 { 8 } else { 4 };
            Scratch::of_worker(aligned(&(&order_bytes(rows) + &(&rows.length * key)), target))
        },
        processors: Some(|rows| {
            let operands = [RUN].into_iter().chain(operands(rows)).chain(sizes(rows));
            Call::new("nth_elements", operands).with([Parameter::Element, is_partitioned(rows)])
        }),
        gpus: Some(OnGpus {
            headers: &["rows.h", "nth_element.h", "gpu/scan.h", "gpu/nth_element.h"],
            block: |_, _| BLOCK,
            fits: |_, block| block == BLOCK,
            launches: |rows, block| {
                let count = &rows.outer * &rows.inner;
                let launch = Launch::of(&count, block.rows, block.threads, MAX_BLOCKS);
                let order = order_bytes(rows);
                Launches::with_scratch(vec![launch], (!order.is(0)).then(|| &count * &order))
            },
            calls: |rows, block| {
                let memory = Operand::Name(if order_bytes(rows).is(0) { "nullptr" } else { "scratch" });
                let operands = operands(rows).into_iter().chain([memory]).chain(sizes(rows));
                let parameters = [number(block.threads), Parameter::Element, is_partitioned(rows)];
                Call::new("nth_elements", operands).with(parameters).into()
            },
        }),
    }),
};

/// The block that has a row.
const BLOCK: RowBlock = RowBlock { threads: 1024, rows: 1 };

/// Which of equal elements it is, and the rank of all rows.
fn selection(rows: &AxisKernel) -> (Ties, Option<i64>) {
    match rows.op {
        AxisOp::NthElement { ties, rank } => (ties, rank),
        AxisOp::Scan(_)
        | AxisOp::Sort(_)
        | AxisOp::SearchSorted { .. }
        | AxisOp::Matrices(_)
        | AxisOp::Fourier(_)
        | AxisOp::Recurrent(_) => {
            unreachable!("its rows have elements of a rank")
        }
    }
}

/// Whether equal elements are told apart by partitioning.
fn is_partitioned(rows: &AxisKernel) -> Parameter {
    flag(selection(rows).0 == Ties::Partitioned)
}

/// Bytes of the order of a row that is partitioned.
fn order_bytes(rows: &AxisKernel) -> Expr {
    match selection(rows).0 {
        Ties::Stable => Expr::int(0),
        Ties::Partitioned => &rows.length * 8,
    }
}

/// Rows, ranks and results.
fn operands(rows: &AxisKernel) -> [Operand; 4] {
    let ranks = selection(rows).1.map_or(Operand::Input(1), |rank| Operand::Size(Expr::int(rank)));
    [Operand::Input(0), ranks, Operand::Output(0), Operand::Output(1)]
}
