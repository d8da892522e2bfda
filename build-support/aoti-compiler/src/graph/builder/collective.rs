//! Collectives, whose ranks exchange blocks along the first axis.

use super::{Builder, Built, ensure};
use crate::graph::{Collective, CollectiveKind, Op, ShapeError, ValueId};
use crate::symbolic::Expr;

impl Builder {
    /// What the ranks of a group make of their operands together.
    pub fn collective(&mut self, kind: CollectiveKind, group: &str, x: ValueId) -> Built {
        let operand = self.ty(x).clone();
        let result = kind.result(&operand).map_err(ShapeError)?;
        match &kind {
            CollectiveKind::ReduceScatter { ranks, .. } => {
                // Every rank gets as much as the others.
                self.require_same(&operand.shape[0], &(&result.shape[0] * *ranks))?;
            }
            CollectiveKind::AllToAll { send, receive } => {
                ensure!(!send.is_empty(), "there are no blocks to exchange");
                send.iter().chain(receive).for_each(|size| self.require_size(size));
                let sent = send.iter().fold(Expr::int(0), |all, size| &all + size);
                self.require_same(&operand.shape[0], &sent)?;
            }
            CollectiveKind::AllReduce(_)
            | CollectiveKind::AllGather { .. }
            | CollectiveKind::Broadcast { .. } => {}
        }
        let own = Collective { kind, group: group.to_owned() };
        Ok(self.push(Op::Collective(own), &[x], vec![result])[0])
    }
}
