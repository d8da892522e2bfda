//! Which operators of a program cannot be compiled whatever their arguments are: those without a rule, and those that
//! no rule can serve.

use super::super::{Entry, Refusal, Registry};
use crate::diagnostic::{Code, Diagnostic};
use crate::frontend::torch::aten::{Call, Program};
use crate::graph::Origin;
use indexmap::IndexMap;

/// Places beyond the first that a finding names.
const MORE_PLACES: usize = 4;

/// The calls of one operator that is not supported.
struct Unsupported<'a> {
    refusal: Option<Refusal>,
    calls: Vec<&'a Origin>,
}

/// One finding for each operator that is not supported, at its first call.
pub(crate) fn unsupported_operators(program: &Program, registry: &Registry) -> Vec<Diagnostic> {
    let mut operators = IndexMap::new();
    collect(program, registry, &mut operators);
    operators.into_iter().map(|(target, unsupported)| finding(target, &unsupported)).collect()
}

/// Whether a call is a reason for one of these findings: by its own operator or by one inside its bodies.
pub(crate) fn is_unsupported(call: &Call, registry: &Registry) -> bool {
    let is_known = registry.declared(&call.target).is_some() || registry.find(&call.target).is_some();
    let own = !is_structural(&call.target) && !is_known;
    let mut bodies = call.args.iter().filter_map(|(_, arg)| arg.graph());
    own || bodies.any(|body| body.calls.iter().any(|call| is_unsupported(call, registry)))
}

fn collect<'a>(
    program: &'a Program,
    registry: &Registry,
    operators: &mut IndexMap<&'a str, Unsupported<'a>>,
) {
    for call in &program.calls {
        if registry.declared(&call.target).is_some() {
            continue;
        }
        let refusal = match registry.entry(&call.target) {
            Some(Entry::Rule(_)) => continue,
            Some(Entry::Refused(refusal)) => Some(refusal),
            None => None,
        };
        if refusal.is_some() || !is_structural(&call.target) {
            let entry = operators.entry(&call.target);
            entry.or_insert_with(|| Unsupported { refusal, calls: vec![] }).calls.push(&call.origin);
        }
        for (_, arg) in &call.args {
            if let Some(body) = arg.graph() {
                collect(body, registry, operators);
            }
        }
    }
}

fn finding(target: &str, unsupported: &Unsupported) -> Diagnostic {
    let (first, more) = unsupported.calls.split_first().expect("an operator is here for a call");
    let times = if more.is_empty() { "once".to_owned() } else { format!("{} times", more.len() + 1) };
    let message = format!("operator `{target}` is not supported (called {times})");
    let mut finding = Diagnostic::new(Code::Operator, message).at(first);
    for origin in more.iter().take(MORE_PLACES) {
        let module =
            if origin.module.is_empty() { String::new() } else { format!(" (module {})", origin.module) };
        if !origin.source.is_empty() {
            finding = finding.note(format!("also at {}{module}", origin.source));
        }
    }
    match unsupported.refusal {
        Some(Refusal { reason, help }) => finding.note(reason).help(help),
        None => match declarable_name(target) {
            Some(name) => finding.help(format!(
                "say what computes it in `[package.metadata.aoti.operators.\"{name}\"]`: `schema`, and `symbol` of a C function \
                 or `graph` of `.aoti` text"
            )),
            None => finding.help("`cargo aoti inspect --ops` lists the supported operators"),
        },
    }
}

/// The name that a project can declare an operator by, if it is nobody's whose operators are rules here.
fn declarable_name(target: &str) -> Option<String> {
    const KNOWN: [&str; 5] = ["aten", "higher_order", "prim", "prims", "quantized_decomposed"];
    let (library, operator) = target.split_once('.')?;
    let operator = operator.strip_suffix(".default").unwrap_or(operator);
    let is_foreign = !KNOWN.contains(&library) && !library.starts_with('_') && !library.starts_with("torch");
    is_foreign.then(|| format!("{library}::{operator}"))
}

/// Calls that concern sizes and control flow, which the walk handles itself.
pub fn is_structural(target: &str) -> bool {
    let prefixes = ["_operator.", "math.", "torch.sym_", "torch._sym_", "builtins."];
    prefixes.iter().any(|prefix| target.starts_with(prefix))
        || matches!(
            target,
            "higher_order.cond"
                | "higher_order.while_loop"
                | "higher_order.scan"
                | "higher_order.map_impl"
                | "higher_order.associative_scan"
                | "aten.sym_size.int"
                | "aten.sym_stride.int"
                | "aten.sym_numel.default"
                | "aten.sym_storage_offset.default"
                | "aten.sym_constrain_range_for_size.default"
                | "aten.sym_constrain_range.default"
                | "aten._assert_scalar.default"
                | "aten._assert_tensor_metadata.default"
        )
}
