//! One product with a row for each image: the kernel covers the whole input.

use super::{
    BEGIN, Calls, Code, END, EPILOGUE, OnProcessors, Operand, Results, Site, fixed, no_scratch, one_order,
    size,
};
use crate::kernels::{self, Algorithm, Call, Form, Packing};
use crate::loops::ConvShape;

pub(crate) static PRODUCT: Algorithm = Algorithm {
    word: "conv.product",
    version: 2,
    description: "convolution as one GEMM",
    headers: |_| &["gemm.h", "conv.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| site.is_packable_first() && site.shape.groups == 1 && site.shape.covers_input(),
        cost: |site| site.work(),
        weights: |site| product_panels(&site.shape),
        scratch: no_scratch,
        processors: Some(OnProcessors { orders: one_order, call: |site, _, _| calls(site) }),
        gpus: None,
    }),
};

fn calls(site: &Site) -> Calls {
    let rows = ["0", "m"].map(Operand::Name);
    let sizes = ["n", "k", "a"].map(Operand::Name);
    let rest = [Operand::Weights, Operand::Name("nullptr"), EPILOGUE];
    let operands = rows.into_iter().chain([BEGIN, END]).chain(sizes).chain(rest);
    Calls {
        shape: site.shape.clone(),
        before: None,
        results: Results::Rows(&site.shape.in_channels * &site.shape.taps()),
        units: Call::new("gemm_panels", [Operand::Name("n")]),
        call: Call::new("gemm_packed", operands),
    }
}

fn product_panels(shape: &ConvShape) -> Option<Form> {
    let k = size(shape.k()?)?;
    let n = fixed(&shape.out_channels)?;
    Some(Packing::Product { offset: 0, row_stride: 1, col_stride: k, k, n, narrow: false }.into())
}
