//! A few output channels for each input channel.

use super::{
    BEGIN, Calls, Code, END, EPILOGUE, OnProcessors, Operand, Results, SHAPE, Site, as_they_are, no_scratch,
    one_order,
};
use crate::cost::{Cost, WorkKind};
use crate::kernels::{self, Algorithm, Call};

pub(crate) static DEPTHWISE: Algorithm = Algorithm {
    word: "conv.depthwise",
    version: 1,
    description: "depthwise convolution",
    headers: |_| &["conv.h", "depthwise.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| site.is_packable_first() && site.shape.in_channels.is(site.shape.groups),
        cost: |site| Cost::of(WorkKind::StreamedFma, site.multiply_adds()),
        weights: as_they_are,
        scratch: no_scratch,
        processors: Some(OnProcessors { orders: one_order, call: |site, _, _| calls(site) }),
        gpus: None,
    }),
};

fn calls(site: &Site) -> Calls {
    let operands = [SHAPE, BEGIN, END, Operand::Input, Operand::Weights, EPILOGUE];
    Calls {
        shape: site.shape.clone(),
        before: None,
        results: Results::Pixels,
        units: Call::new("conv_depthwise_units", [SHAPE]),
        call: Call::new("conv_depthwise", operands),
    }
}
