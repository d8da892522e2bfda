//! Which operators a program calls, and what translates them.

use super::aten::Program;
use super::custom::Operators;
use super::rules::{Entry, Registry, is_structural};
use crate::diagnostic::Diagnostics;
use crate::frontend::import::{OperatorCounts, Support};
use bytes::Bytes;

/// The operators of a program and of its bodies.
pub(super) fn operators_of(file: Bytes, declared: &Operators) -> Result<OperatorCounts, Diagnostics> {
    let registry = Registry::with(declared);
    let mut counts = OperatorCounts::new();
    count(&super::program("", file)?, &registry, &mut counts);
    Ok(counts)
}

fn count(program: &Program, registry: &Registry, counts: &mut OperatorCounts) {
    for call in &program.calls {
        let entry = counts.entry(call.target.clone()).or_insert_with(|| (0, support(&call.target, registry)));
        entry.0 += 1;
        call.args.iter().filter_map(|(_, arg)| arg.graph()).for_each(|body| count(body, registry, counts));
    }
}

fn support(target: &str, registry: &Registry) -> Support {
    match registry.entry(target) {
        Some(Entry::Rule(_)) => Support::Rule,
        Some(Entry::Refused(refusal)) => Support::Refused(refusal.reason),
        None if is_structural(target) => Support::Rule,
        None if registry.declared(target).is_some() => Support::Project,
        None => Support::None,
    }
}
