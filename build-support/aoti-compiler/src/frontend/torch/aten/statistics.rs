//! Normalisations that overwrite running statistics, which their schemas do not mark as changed.

use super::{Arg, Call};

/// The operands that hold running statistics.
pub const STATISTICS: [&str; 2] = ["running_mean", "running_var"];

/// The argument by which calls of an operator overwrite running statistics.
pub fn updates_where(operator: &str) -> Option<&'static str> {
    match operator {
        "batch_norm"
        | "native_batch_norm"
        | "_native_batch_norm_legit"
        | "cudnn_batch_norm"
        | "miopen_batch_norm" => Some("training"),
        "instance_norm" => Some("use_input_stats"),
        _ => None,
    }
}

/// Whether a call overwrites running statistics.
pub fn updates_statistics(call: &Call) -> bool {
    let operator = call.target.strip_prefix("aten.").and_then(|name| name.split('.').next());
    let Some(flag) = operator.and_then(updates_where) else { return false };
    let arg = |wanted: &str| call.args.iter().find(|(name, _)| name == wanted).map(|(_, arg)| arg);
    arg(flag) == Some(&Arg::Bool(true))
        && STATISTICS.iter().any(|name| matches!(arg(name), Some(Arg::Tensor(_))))
}
