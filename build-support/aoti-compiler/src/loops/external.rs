//! Calls of functions of the user's project. What these compute is not known.

use super::BufferId;
use crate::graph::ExternCall;
use crate::symbolic::Expr;

/// A call of a function of the user's project.
#[derive(Clone, PartialEq, Debug)]
pub struct ExternKernel {
    /// What is called, and with what beside tensors.
    pub call: ExternCall,
    /// Operands, with the sizes that they have in the graph; row-major.
    pub inputs: Vec<(BufferId, Vec<Expr>)>,
    /// Results, likewise.
    pub outputs: Vec<(BufferId, Vec<Expr>)>,
}

impl ExternKernel {
    /// Operands, then results.
    pub fn tensors(&self) -> impl Iterator<Item = &(BufferId, Vec<Expr>)> {
        self.inputs.iter().chain(&self.outputs)
    }

    /// All sizes that the call mentions.
    pub fn sizes(&self) -> impl Iterator<Item = &Expr> {
        self.tensors().flat_map(|(_, shape)| shape).chain(self.call.sizes())
    }
}
