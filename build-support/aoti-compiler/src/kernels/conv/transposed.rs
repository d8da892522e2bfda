//! Transposed: products with every tap, then their sums.

use super::transposed_any::is_transposed;
use super::{
    BEGIN, Before, Calls, Code, END, EPILOGUE, OnProcessors, Operand, Results, SHAPE, SHARED, Site, fixed,
    one_order, size,
};
use crate::kernels::scratch::aligned;
use crate::kernels::{self, Algorithm, Call, Form, Packing, Scratch};
use crate::loops::ConvShape;
use crate::symbolic::Expr;
use crate::target::Target;

pub(crate) static TRANSPOSED: Algorithm = Algorithm {
    word: "conv.transposed",
    version: 1,
    description: "transposed convolution as GEMM",
    headers: |_| &["conv.h", "transposed.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| is_transposed(site) && site.is_packable(),
        cost: |site| site.work(),
        weights: |site| transposed_panels(&site.shape),
        scratch: |site| conv_transposed(&site.shape, site.target),
        processors: Some(OnProcessors { orders: one_order, call: |site, _, _| calls(site) }),
        gpus: None,
    }),
};

fn calls(site: &Site) -> Calls {
    let products = [SHAPE, BEGIN, END, Operand::Input, Operand::Weights, SHARED];
    Calls {
        shape: site.shape.clone(),
        before: Some(Before {
            units: Call::new("conv_transposed_product_units", [SHAPE]),
            grain: None,
            call: Call::new("conv_transposed_products", products),
        }),
        results: Results::Pixels,
        units: Call::new("conv_transposed_units", [SHAPE]),
        call: Call::new("conv_transposed_gather", [SHAPE, BEGIN, END, SHARED, EPILOGUE]),
    }
}

fn transposed_panels(shape: &ConvShape) -> Option<Form> {
    let groups = size(shape.groups)?;
    let rows = fixed(&shape.out_channels)? / groups.max(1) * fixed(&shape.taps())?;
    Some(Packing::ConvTransposed { groups, in_channels: fixed(&shape.in_channels)?, rows }.into())
}

/// The products with every tap.
fn conv_transposed(shape: &ConvShape, target: &Target) -> Scratch {
    let rows = &shape.out_channels * &shape.taps();
    let floats = &(&shape.batch * &rows) * &Expr::product(&shape.input);
    Scratch::of_all(aligned(&(&floats * 4), target))
}
