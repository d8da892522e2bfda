//! The front end of torch.export: from a `.pt2` archive to a core graph.
//!
//! `pt2` reads the archive as a program of ATen calls (`aten`); `functionalize` walks that program and makes mutation explicit;
//! `rules` says what each operator computes. `custom` has the operators that the user's project declares.

pub mod aten;
pub mod custom;
pub mod functionalize;
pub mod pt2;
pub mod rules;

use aten::Program;

/// A program, and for which sizes it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// The program.
    pub program: Program,
    /// Whether all sizes have the minimum that the file states.
    pub is_stated: bool,
}
