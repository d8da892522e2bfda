//! The cost model: kinds of work and what each costs, what machines reach, and how threads split work.
//!
//! Knows no target, graph or kernel: stages say how much work of each kind there is, and compare sums.

mod model;
mod peaks;
mod split;

pub use model::{Cost, CostModel, MachineInfo, WorkKind};
pub use peaks::Rates;
pub(crate) use split::FORK_JOIN;
pub use split::WorkSplit;
