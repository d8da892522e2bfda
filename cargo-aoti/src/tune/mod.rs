//! Measures the ways to run a model's kernels and keeps the fastest that gives what it should.
//!
//! `search` decides what is tried and what wins, over a [`bench::Bench`] that makes libraries and runs them; `helper` is
//! the process in which they run, `client` its other end, `machine` the bench of this machine. What was found goes to
//! `aoti.lock`, which `aoti-build` writes.
//!
//! A library has another way for many kernels at once, and a run of it tells the time of each kernel where it stands in the
//! model, with the caches as they are there. On a GPU kernels are not timed one by one; there a library differs from the
//! first in one kernel.

pub(crate) mod apart;
pub(crate) mod bench;
mod client;
pub(crate) mod groups;
pub(crate) mod helper;
pub(crate) mod log;
pub(crate) mod machine;
pub(crate) mod outcome;
mod place;
pub(crate) mod search;
pub(crate) mod statistics;
#[cfg(test)]
mod tests;
