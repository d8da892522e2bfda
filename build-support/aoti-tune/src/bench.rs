//! Where candidates are made and run. What is behind it, `search` does not know: a machine, or a test.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::groups::Assignment;
use crate::error::Error;

/// A library that was made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LibraryId(pub usize);

/// Why a library is of no use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What happened.
    pub reason: String,
    /// The kernel in which it showed, by position; it need not be the one that is to blame.
    pub kernel: Option<usize>,
    /// The library in which it happened, where several were run.
    pub library: Option<LibraryId>,
    /// Whether the kernel was still running when its time was up: then it is to blame, and is not tried again.
    pub is_hang: bool,
}

/// The times of one run.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Sample {
    /// Microseconds of the whole run.
    pub whole: f64,
    /// Of each kernel, where kernels are timed one by one.
    pub kernels: Vec<f64>,
    /// Nanoseconds that the threads took just before it to begin and end a loop together; nothing where there is one.
    pub fork_join: f64,
}

/// Makes libraries and runs them. An `Err` is of the machine or the model as a whole; a candidate's is a [`Fault`].
pub trait Bench {
    /// Whether a run tells the time of each kernel.
    fn times_kernels(&self) -> bool;

    /// Libraries that are best made at the same time.
    fn at_once(&self) -> usize;

    /// How long it takes to make one.
    fn takes_to_make(&self) -> Duration;

    /// Makes a library for each assignment.
    fn make(&mut self, assignments: &[Assignment]) -> Result<Vec<Result<LibraryId, Fault>>, Error>;

    /// Runs a library twice and compares what each kernel writes with what the first library that was made gives.
    fn check(&mut self, library: LibraryId) -> Result<Result<(), Fault>, Error>;

    /// Runs libraries by turns, so many rounds; gives the samples of each.
    fn time(
        &mut self,
        libraries: &[LibraryId],
        rounds: usize,
    ) -> Result<Result<Vec<Vec<Sample>>, Fault>, Error>;
}
