//! What cannot be compiled: operators without a rule, and uses that are known to fail only when a program runs.

pub(crate) mod dynamic;
pub(crate) mod report;
pub(crate) mod table;

pub use report::is_structural;
pub use table::Refusal;
