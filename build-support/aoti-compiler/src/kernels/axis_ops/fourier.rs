//! Fourier transforms of rows.

use super::{Code, Operand, RUN, element_bytes};
use crate::fourier::{FftMethod, Form, Fourier, Plan};
use crate::kernels::scratch::aligned;
use crate::kernels::{self, Algorithm, Call, Scratch};
use crate::loops::{AxisKernel, AxisOp};
use crate::symbolic::Expr;

pub(crate) static FOURIER: Algorithm = Algorithm {
    word: "rows.fourier",
    version: 1,
    description: "Fourier transforms of rows",
    headers: |_| &["fourier.h"],
    code: kernels::Code::AxisOp(Code {
        scratch: |rows, target| {
            let bytes = Plan::of(fourier(rows), rows.dtype).work() * element_bytes(rows);
            Scratch::of_worker(aligned(&Expr::int(bytes), target))
        },
        processors: Some(call),
        // Products take its place.
        gpus: None,
    }),
};

/// The transform.
fn fourier(rows: &AxisKernel) -> &Fourier {
    match &rows.op {
        AxisOp::Fourier(own) => own,
        AxisOp::Scan(_)
        | AxisOp::Sort(_)
        | AxisOp::NthElement { .. }
        | AxisOp::SearchSorted { .. }
        | AxisOp::Matrices(_)
        | AxisOp::Recurrent(_) => unreachable!("its rows are transformed"),
    }
}

/// The call of `fourier.h`.
fn call(rows: &AxisKernel) -> Call<Operand> {
    let own = fourier(rows);
    let plan = Plan::of(own, rows.dtype);
    let form = match own.form {
        Form::Forward => "fourier::kForward",
        Form::Inverse => "fourier::kInverse",
        Form::ToHalf => "fourier::kToHalf",
        Form::FromHalf => "fourier::kFromHalf",
    };
    let way = match plan.way {
        FftMethod::MixedRadix => "fourier::kPlain",
        FftMethod::RealPacked => "fourier::kHalved",
        FftMethod::Bluestein => "fourier::kConvolved",
        FftMethod::Matrix => unreachable!("products have taken its place"),
    };
    let radices = plan.radices.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let radices = format!("fourier::Radices<{radices}>");
    let (outer, scale) = (Operand::Size(rows.outer.clone()), Operand::Number(own.scale()));
    let tensors = [Operand::Input(0), Operand::Input(1), Operand::Output(0)];
    let operands = [RUN, Operand::WorkerBytes, outer].into_iter().chain(tensors).chain([scale]);
    let parameters = [form.into(), way.into(), own.length.to_string().into(), radices.into()];
    Call::new("fourier_rows", operands).with(parameters)
}
