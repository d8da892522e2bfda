//! Which operators of a program cannot be compiled at all: all of them, before anything is done.

use super::Registry;
use crate::aten::{Arg, Program};
use crate::diagnostic::{Code, Diagnostic};
use crate::graph::Origin;
use indexmap::IndexMap;

/// One finding for each operator that has no rule, at its first call.
pub(super) fn unsupported_operators(program: &Program, registry: &Registry) -> Vec<Diagnostic> {
    let mut calls: IndexMap<&str, Vec<&Origin>> = IndexMap::new();
    collect_unsupported(program, registry, &mut calls);
    calls
        .into_iter()
        .map(|(target, origins)| {
            let times =
                if origins.len() == 1 { "once".to_owned() } else { format!("{} times", origins.len()) };
            let mut finding = Diagnostic::new(
                Code::Operator,
                format!("operator `{target}` is not supported (called {times})"),
            )
            .at(origins[0])
            .help("`cargo aoti inspect --ops` lists the supported operators");
            for origin in origins.iter().skip(1).take(4) {
                if !origin.source.is_empty() {
                    finding = finding.note(format!("also at {}", origin.source));
                }
            }
            finding
        })
        .collect()
}

fn collect_unsupported<'a>(
    program: &'a Program,
    registry: &Registry,
    calls: &mut IndexMap<&'a str, Vec<&'a Origin>>,
) {
    for call in &program.calls {
        if !is_structural(&call.target) && registry.find(&call.target).is_none() {
            calls.entry(&call.target).or_default().push(&call.origin);
        }
        for (_, arg) in &call.args {
            if let Arg::Graph(body) = arg {
                collect_unsupported(body, registry, calls);
            }
        }
    }
}

/// Calls that concern sizes and control flow, which the walk handles itself.
pub(super) fn is_structural(target: &str) -> bool {
    target.starts_with("_operator.")
        || target.starts_with("math.")
        || matches!(
            target,
            "higher_order.cond"
                | "higher_order.while_loop"
                | "aten.sym_size.int"
                | "aten.sym_stride.int"
                | "aten.sym_numel.default"
                | "aten.sym_storage_offset.default"
                | "aten.sym_constrain_range_for_size.default"
                | "aten.sym_constrain_range.default"
                | "aten._assert_scalar.default"
                | "aten._assert_tensor_metadata.default"
                | "torch.sym_max"
                | "torch.sym_min"
                | "torch.sym_not"
                | "torch.sym_float"
        )
}
