//! What ranks compute together: each runs a program of its own, and all meet in the same collectives in the same order.

use super::TensorType;
use crate::dtype::Category;
use crate::symbolic::Expr;

/// A collective of a group of ranks. Operands and results are row-major; what ranks exchange are blocks along the first axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Collective {
    /// What is exchanged.
    pub kind: CollectiveKind,
    /// The group's name in the program. Which ranks belong to it is known when the program runs.
    pub group: String,
}

/// What the ranks of a group exchange. Ranks are numbered within the group.
#[derive(Clone, PartialEq, Debug)]
pub enum CollectiveKind {
    /// Each rank gets all ranks' operands, reduced.
    AllReduce(RankReduction),
    /// Each rank gets all ranks' operands, one behind the other.
    AllGather {
        /// Ranks of the group.
        ranks: i64,
    },
    /// Each rank gets its own block of all ranks' operands, reduced.
    ReduceScatter {
        /// The reduction.
        reduction: RankReduction,
        /// Ranks of the group.
        ranks: i64,
    },
    /// Each rank sends each rank a block; the blocks that it gets lie one behind the other.
    AllToAll {
        /// Sizes of the blocks for each rank.
        send: Vec<Expr>,
        /// Sizes of the blocks from each rank.
        receive: Vec<Expr>,
    },
    /// Each rank gets the operand of one.
    Broadcast {
        /// Whose.
        root: i64,
    },
}

/// How the operands of ranks become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RankReduction {
    /// Their sum.
    Sum,
    /// Their mean.
    Average,
    /// Their product.
    Product,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Bits that all have.
    And,
    /// Bits that one has.
    Or,
    /// Bits that an odd number of them has.
    Xor,
}

impl RankReduction {
    /// All by their names: PyTorch's, which are also those of text forms. A position is the number in the C interface.
    const NAMES: [(RankReduction, &'static str); 8] = [
        (RankReduction::Sum, "sum"),
        (RankReduction::Average, "avg"),
        (RankReduction::Product, "product"),
        (RankReduction::Min, "min"),
        (RankReduction::Max, "max"),
        (RankReduction::And, "band"),
        (RankReduction::Or, "bor"),
        (RankReduction::Xor, "bxor"),
    ];

    /// As in text forms.
    pub fn name(self) -> &'static str {
        RankReduction::NAMES[self.code()].1
    }

    /// The inverse of [`RankReduction::name`].
    pub fn from_name(name: &str) -> Option<RankReduction> {
        RankReduction::NAMES.into_iter().find(|(_, own)| *own == name).map(|(reduction, _)| reduction)
    }

    /// The number in the C interface (`AotiReduction`).
    pub fn code(self) -> usize {
        RankReduction::NAMES.iter().position(|(own, _)| *own == self).unwrap_or_default()
    }

    /// Whether elements of a category have it.
    pub fn is_of(self, category: Category) -> bool {
        match self {
            RankReduction::Sum | RankReduction::Product | RankReduction::Min | RankReduction::Max => true,
            RankReduction::Average => category == Category::Float,
            RankReduction::And | RankReduction::Or | RankReduction::Xor => category != Category::Float,
        }
    }
}

impl CollectiveKind {
    /// As in text forms.
    pub fn name(&self) -> &'static str {
        match self {
            CollectiveKind::AllReduce(_) => "all_reduce",
            CollectiveKind::AllGather { .. } => "all_gather",
            CollectiveKind::ReduceScatter { .. } => "reduce_scatter",
            CollectiveKind::AllToAll { .. } => "all_to_all",
            CollectiveKind::Broadcast { .. } => "broadcast",
        }
    }

    /// The reduction that is part of it.
    pub fn reduction(&self) -> Option<RankReduction> {
        match self {
            CollectiveKind::AllReduce(reduction) | CollectiveKind::ReduceScatter { reduction, .. } => {
                Some(*reduction)
            }
            CollectiveKind::AllGather { .. }
            | CollectiveKind::AllToAll { .. }
            | CollectiveKind::Broadcast { .. } => None,
        }
    }

    /// How many ranks the group has, where that is known.
    pub fn ranks(&self) -> Option<i64> {
        match self {
            CollectiveKind::AllGather { ranks } | CollectiveKind::ReduceScatter { ranks, .. } => Some(*ranks),
            CollectiveKind::AllToAll { send, .. } => i64::try_from(send.len()).ok(),
            CollectiveKind::AllReduce(_) | CollectiveKind::Broadcast { .. } => None,
        }
    }

    /// The sizes of blocks that it mentions.
    pub fn sizes(&self) -> impl Iterator<Item = &Expr> {
        let (send, receive): (&[Expr], &[Expr]) = match self {
            CollectiveKind::AllToAll { send, receive } => (send, receive),
            CollectiveKind::AllReduce(_)
            | CollectiveKind::AllGather { .. }
            | CollectiveKind::ReduceScatter { .. }
            | CollectiveKind::Broadcast { .. } => (&[], &[]),
        };
        send.iter().chain(receive)
    }

    /// What it gives for an operand of this type. Sizes of blocks are the caller's to compare with the operand's.
    ///
    /// # Errors
    /// A sentence about an operand that it cannot have.
    pub fn result(&self, operand: &TensorType) -> Result<TensorType, String> {
        if let Some(reduction) = self.reduction()
            && !reduction.is_of(operand.dtype.category())
        {
            return Err(format!("ranks cannot reduce {} by `{}`", operand.dtype, reduction.name()));
        }
        if self.ranks().is_some_and(|ranks| ranks < 1) {
            return Err("a group has at least one rank".to_owned());
        }
        let mut result = operand.clone();
        let first = match self {
            CollectiveKind::AllReduce(_) => return Ok(result),
            CollectiveKind::Broadcast { root } => {
                return if *root < 0 { Err(format!("there is no rank {root}")) } else { Ok(result) };
            }
            CollectiveKind::AllGather { ranks } => operand.shape.first().map(|size| size * *ranks),
            CollectiveKind::ReduceScatter { ranks, .. } => {
                operand.shape.first().map(|size| size.floor_div(&Expr::int(*ranks)))
            }
            CollectiveKind::AllToAll { send, receive } => {
                if send.len() != receive.len() {
                    let (send, receive) = (send.len(), receive.len());
                    return Err(format!("blocks for {send} ranks and from {receive}"));
                }
                operand.shape.first().map(|_| receive.iter().fold(Expr::int(0), |all, size| &all + size))
            }
        };
        result.shape[0] = first.ok_or("a tensor without axes has no blocks")?;
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{Op, text, verify};
    use crate::passes::optimize;

    fn graph(nodes: &str) -> String {
        format!(
            "graph \"g\" {{\n  symbol s0 \"n\" in 0..64 from input 0 axis 0\n  origin o0 = \"\" \"\" \"\"\n  input %0 \"x\": f32[s0, 3]\n  \
             {nodes}\n  output %0 \"x\"\n}}\n"
        )
    }

    #[test]
    fn text_forms_come_back() {
        let nodes = [
            "%1: f32[s0, 3] = all_reduce %0 avg of \"tp\"",
            "%1: f32[4*s0, 3] = all_gather %0 ranks 4 of \"tp\"",
            "%1: f32[s0 // 2, 3] = reduce_scatter %0 max ranks 2 of \"tp\"",
            "%1: f32[s0, 3] = all_to_all %0 send [s0 - 1, 1] receive [s0 - 2, 2] of \"tp\"",
            "%1: f32[s0, 3] = broadcast %0 root 1 of \"tp\"",
        ];
        for node in nodes {
            let own = text::parse(&graph(node)).expect(node);
            verify(&own).expect(node);
            let printed = text::print(&own);
            assert!(printed.contains(node), "{printed}");
            assert_eq!(text::print(&text::parse(&printed).expect("printed text is read")), printed);
        }
    }

    #[test]
    fn what_ranks_cannot_do_is_found() {
        for node in [
            "%1: f32[s0, 3] = all_reduce %0 band of \"tp\"",
            "%1: f32[s0, 3] = all_gather %0 ranks 2 of \"tp\"",
            "%1: f32[s0, 3] = all_gather %0 ranks 0 of \"tp\"",
            "%1: f32[s0, 3] = all_to_all %0 send [s0] receive [s0 - 2, 2] of \"tp\"",
            "%1: f32[s0, 3] = broadcast %0 root -1 of \"tp\"",
        ] {
            assert!(text::parse(&graph(node)).and_then(|own| verify(&own)).is_err(), "{node}");
        }
    }

    #[test]
    fn collectives_stay_as_they_are() {
        // Nobody reads them, two are equal, and the last is of a constant.
        let nodes = "%1: f32[s0, 3] = all_reduce %0 sum of \"0\"\n  %2: f32[s0, 3] = all_reduce %0 sum of \"0\"\n  \
                     %3: f32[2] = full 1.0\n  %4: f32[2] = all_reduce %3 max of \"0\"";
        let own = optimize(text::parse(&graph(nodes)).expect("the graph is read"));
        assert_eq!(own.nodes.iter().filter(|node| matches!(node.op, Op::Collective(_))).count(), 3);
    }
}
