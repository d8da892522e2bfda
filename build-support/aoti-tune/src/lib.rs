//! Measures the implementations of a model's kernels on this machine and keeps the fastest that computes what it should.
//!
//! [`search`] decides what is tried and what wins, over a [`bench::Bench`] that makes libraries and runs them. [`machine`] is
//! the bench of this machine: it builds libraries with a session of `aoti-build` and has a [`worker`] run them, a process of
//! its own, so that a crash, a hang or damaged memory is the candidate's affair. What was found goes to `aoti.lock`, which
//! `aoti-build` writes. [`peaks`] measures what the machine reaches, independent of any model.
//!
//! A library has another implementation of many kernels at once, and a run of it tells the time of each kernel where it stands
//! in the model, with the caches as they are there. On a GPU kernels are not timed one by one; there a library differs from the
//! first in one kernel.
//!
//! The crate reads no command line and prints nothing: `cargo-aoti` does.

pub mod bench;
mod crash_marker;
pub mod error;
pub mod files;
pub mod groups;
pub mod log;
pub mod machine;
pub mod outcome;
pub mod peaks;
pub mod placement;
pub mod search;
pub mod statistics;
pub mod system;
pub mod tensors;
#[cfg(test)]
mod tests;
pub mod worker;
mod worker_client;

pub use error::Error;
