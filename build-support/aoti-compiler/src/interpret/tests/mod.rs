//! Tests of the evaluator.

mod functions;
mod ops;
