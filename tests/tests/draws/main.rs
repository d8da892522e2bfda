//! Draws against the distributions that they are of, by the tests of Kolmogorov and Smirnov and of Pearson.
//!
//! The reference evaluator draws 20,000 numbers of each. `AOTI_DRAWS=10000000` has compiled code draw that many, which
//! needs a C++ compiler and, to end in minutes, `cargo test --release`; `--nocapture` shows what was found.

mod distributions;
mod independence;
mod parameters;
mod program;
mod statistics;
