//! Which of the code variants in a library a model runs, and why.

/// The code that was picked, and what became of the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Name of the code in use, such as `x86-64-v3`.
    pub level: String,
    /// All codes of the library, lowest level first.
    pub candidates: Vec<Candidate>,
}

/// A code variant in a library, such as the kernels for one CPU level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// What became of it.
    pub verdict: Verdict,
    /// Why, as a phrase.
    pub reason: String,
}

/// What became of a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It runs.
    Picked,
    /// It would run, but another was preferred or asked for.
    PassedOver,
    /// The machine lacks something.
    CannotRun,
}
