//! Fourier transforms of rows.

use super::{Code, Operand, RUN, element_bytes};
use crate::fourier::{Form, Fourier, Plan, Way};
use crate::kernels::scratch::aligned;
use crate::kernels::{self, Algorithm, Call, Scratch};
use crate::loops::{RowOp, RowOperation};
use crate::symbolic::Expr;

pub(crate) static FOURIER: Algorithm = Algorithm {
    word: "rows.fourier",
    version: 1,
    description: "Fourier transforms of rows",
    headers: |_| &["fourier.h"],
    code: kernels::Code::Rows(Code {
        scratch: |rows, target| {
            let bytes = Plan::of(fourier(rows), rows.dtype).work() * element_bytes(rows);
            Scratch::of_worker(aligned(&Expr::int(bytes), target))
        },
        processors: call,
        // Products take its place.
        gpus: None,
    }),
};

/// The transform.
fn fourier(rows: &RowOperation) -> &Fourier {
    match &rows.op {
        RowOp::Fourier(own) => own,
        RowOp::Scan(_)
        | RowOp::Sort(_)
        | RowOp::SearchSorted { .. }
        | RowOp::Matrices(_)
        | RowOp::Recurrent(_) => unreachable!("its rows are transformed"),
    }
}

/// The call of `fourier.h`.
fn call(rows: &RowOperation) -> Call<Operand> {
    let own = fourier(rows);
    let plan = Plan::of(own, rows.dtype);
    let form = match own.form {
        Form::Forward => "fourier::kForward",
        Form::Inverse => "fourier::kInverse",
        Form::ToHalf => "fourier::kToHalf",
        Form::FromHalf => "fourier::kFromHalf",
    };
    let way = match plan.way {
        Way::Plain => "fourier::kPlain",
        Way::Halved => "fourier::kHalved",
        Way::Convolved => "fourier::kConvolved",
        Way::Product => unreachable!("products have taken its place"),
    };
    let radices = plan.radices.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let radices = format!("fourier::Radices<{radices}>");
    let (outer, scale) = (Operand::Size(rows.outer.clone()), Operand::Number(own.scale()));
    let tensors = [Operand::Input(0), Operand::Input(1), Operand::Output(0)];
    let operands = [RUN, Operand::WorkerBytes, outer].into_iter().chain(tensors).chain([scale]);
    let parameters = [form.into(), way.into(), own.length.to_string().into(), radices.into()];
    Call::new("fourier_rows", operands).with(parameters)
}
