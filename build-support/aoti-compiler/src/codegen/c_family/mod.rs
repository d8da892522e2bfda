//! What C++ for processors and CUDA or HIP for GPUs have in common: integer expressions, the terms and effects of a stage,
//! the parameters of a kernel function.
//!
//! Stages are printed in the vocabulary of `include/aoti`, which every target has; loops, threads and templates are the
//! business of the target's own printer.

pub(super) mod contraction;
pub(super) mod expr;
pub(super) mod function;
pub(super) mod lane_access;
mod needed;
pub(super) mod operations;
mod quantised;
pub(super) mod rows;
mod stores;
pub(super) mod terms;
pub(super) mod whole;

/// Indents every non-empty line by `depth` steps.
pub(super) fn indent(text: &str, depth: usize) -> String {
    let pad = "  ".repeat(depth);
    text.lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{pad}{line}\n") })
        .collect()
}
