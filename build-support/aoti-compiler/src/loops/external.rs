//! What is computed elsewhere: by functions of the user's project, or together with other ranks.

use super::BufferId;
use crate::graph::{Collective, ExternCall};
use crate::symbolic::Expr;

/// What computes it, with all that is given beside tensors.
#[derive(Clone, PartialEq, Debug)]
pub enum Elsewhere {
    /// A function of the user's project.
    Function(ExternCall),
    /// All ranks of a group.
    Ranks(Collective),
}

/// Something that is computed elsewhere.
#[derive(Clone, PartialEq, Debug)]
pub struct ExternKernel {
    /// By whom.
    pub by: Elsewhere,
    /// Operands, with the sizes that they have in the graph; row-major.
    pub inputs: Vec<(BufferId, Vec<Expr>)>,
    /// Results, likewise.
    pub outputs: Vec<(BufferId, Vec<Expr>)>,
}

impl ExternKernel {
    /// The function that it is a call of.
    pub fn function(&self) -> Option<&ExternCall> {
        match &self.by {
            Elsewhere::Function(call) => Some(call),
            Elsewhere::Ranks(_) => None,
        }
    }

    /// What ranks compute together.
    pub fn collective(&self) -> Option<&Collective> {
        match &self.by {
            Elsewhere::Function(_) => None,
            Elsewhere::Ranks(own) => Some(own),
        }
    }

    /// Operands, then results.
    pub fn tensors(&self) -> impl Iterator<Item = &(BufferId, Vec<Expr>)> {
        self.inputs.iter().chain(&self.outputs)
    }

    /// All sizes that the call mentions.
    pub fn sizes(&self) -> impl Iterator<Item = &Expr> {
        let (function, ranks) = (self.function(), self.collective());
        let own = function.into_iter().flat_map(ExternCall::sizes);
        let own = own.chain(ranks.into_iter().flat_map(|own| own.kind.sizes()));
        self.tensors().flat_map(|(_, shape)| shape).chain(own)
    }
}
