//! Names kernels after what the user wrote: the module of the first call that a kernel computes, then the operators.
//!
//! `encoder.layer.0.attention` with `linear` and `gelu` gives `encoder_layer_0_attention_linear_gelu`. Where one call
//! became several kernels, what a kernel does tells them apart; a number does only where that is equal too. Names depend on the
//! program alone, so a kernel keeps its name as long as its calls stay the same.

use super::{Kernel, KernelKind, Program};
use crate::graph::Origin;
use std::collections::{BTreeMap, BTreeSet};

/// Operators that a name mentions at most.
const MAX_OPERATORS: usize = 3;

/// Gives every kernel a name that no other has.
pub(super) fn name_kernels(program: &mut Program) {
    let bases: Vec<String> = program.kernels.values().map(base).collect();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    bases.iter().for_each(|name| *count.entry(name).or_default() += 1);
    let wanted = program.kernels.values().zip(&bases);
    let wanted: Vec<String> = wanted
        .map(|(kernel, name)| if count[name.as_str()] > 1 { work(kernel, name) } else { name.clone() })
        .collect();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    // The number to try next for each name: thousands of kernels can share one.
    let mut next: BTreeMap<String, usize> = BTreeMap::new();
    for (kernel, name) in program.kernels.values_mut().zip(wanted) {
        kernel.name = name.clone();
        while !taken.insert(kernel.name.clone()) {
            let number = next.entry(name.clone()).or_insert(1);
            *number += 1;
            kernel.name = format!("{name}_{number}");
        }
    }
}

/// The name by module and operators.
fn base(kernel: &Kernel) -> String {
    let module = kernel.origins.iter().map(|origin| origin.module.as_str()).find(|module| !module.is_empty());
    let mut parts: Vec<&str> = Vec::new();
    for operator in kernel.origins.iter().filter_map(operator) {
        if !parts.contains(&operator) && parts.len() < MAX_OPERATORS {
            parts.push(operator);
        }
    }
    if parts.is_empty() {
        return kernel.name.clone();
    }
    let parts = parts.into_iter().map(str::to_lowercase);
    let module = module.into_iter().flat_map(|module| module.split('.')).map(str::to_owned);
    module.chain(parts).collect::<Vec<_>>().join("_")
}

/// `linear` of `aten.linear.default of linear_1`, `MatMul` of `MatMul of node_linear_1`.
fn operator(origin: &Origin) -> Option<&str> {
    let call = origin.node.split(" of ").next()?;
    let name = match call.split('.').collect::<Vec<_>>().as_slice() {
        [name] | [_, name] | [_, name, ..] => *name,
        [] => return None,
    };
    Some(name.trim_matches('_')).filter(|name| !name.is_empty())
}

/// The name with what the kernel does.
fn work(kernel: &Kernel, name: &str) -> String {
    let word = match &kernel.kind {
        KernelKind::Nest(nest) if nest.serial => "scatter",
        KernelKind::Nest(nest) if !nest.accumulators.is_empty() => "reduce",
        KernelKind::Nest(_) => "map",
        KernelKind::MatMul(_) => "gemm",
        KernelKind::Convolution(_) => "conv",
        KernelKind::Attention(_) => "attention",
        KernelKind::AxisOp(_) => "rows",
        KernelKind::Extern(own) => own.collective().map_or("extern", |own| own.kind.name()),
    };
    format!("{name}_{word}")
}

#[cfg(test)]
mod tests {
    use crate::loops::text::parse;

    fn names(kernels: &[(&str, &str)]) -> Vec<String> {
        let kernels: Vec<String> =
            kernels.iter().map(|(note, kind)| format!("kernel \"a\" {{ {note} {kind} }}")).collect();
        let text = format!("loops {{ buffer b0: f32[4] temporary {} }}", kernels.join("\n"));
        let mut program = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        program.number_kernels();
        program.kernels.values().map(|kernel| kernel.name.clone()).collect()
    }

    const MAP: &str = "for [i0 < 4] { }";
    const ROWS: &str = "rows cumsum f32 from [b0] to [b0] sizes [1, 4, 1]";

    #[test]
    fn modules_and_operators_name_a_kernel() {
        let fused = "note \"aten.conv2d.default of conv2d_3\" at \"m.py:1\" in \"layer1.0.conv1\"
                     note \"aten.relu_.default of relu__2\" in \"layer1.0.act1\"";
        assert_eq!(names(&[(fused, MAP)]), ["layer1_0_conv1_conv2d_relu"]);
    }

    #[test]
    fn kernels_of_one_call_differ_by_what_they_do() {
        let note = "note \"aten.softmax.int of softmax\" in \"head\"";
        assert_eq!(names(&[(note, MAP), (note, ROWS)]), ["head_softmax_map", "head_softmax_rows"]);
        assert_eq!(names(&[(note, MAP), (note, MAP)]), ["head_softmax_map", "head_softmax_map_2"]);
    }

    #[test]
    fn a_kernel_without_calls_keeps_its_name() {
        assert_eq!(names(&[("", MAP), ("", ROWS)]), ["a_map", "a_rows"]);
    }
}
