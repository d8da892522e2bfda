//! Collectives in text: `all_reduce %0 sum of "0"`, `all_gather %0 ranks 2 of "0"`, `all_to_all %0 send [2, 2] receive
//! [s0, 2] of "0"`.

use super::statements::{bracketed, quoted};
use crate::graph::{Collective, CollectiveKind, RankReduction};
use crate::text::{Cursor, SyntaxError};

/// A collective without its name and operand.
pub(crate) fn collective_text(own: &Collective) -> String {
    let parameters = match &own.kind {
        CollectiveKind::AllReduce(reduction) => reduction.name().to_owned(),
        CollectiveKind::AllGather { ranks } => format!("ranks {ranks}"),
        CollectiveKind::ReduceScatter { reduction, ranks } => format!("{} ranks {ranks}", reduction.name()),
        CollectiveKind::AllToAll { send, receive } => {
            format!("send {} receive {}", bracketed(send), bracketed(receive))
        }
        CollectiveKind::Broadcast { root } => format!("root {root}"),
    };
    format!("{parameters} of {}", quoted(&own.group))
}

impl Cursor<'_> {
    /// The collective of a name, without its operand.
    pub(crate) fn collective(&mut self, name: &str) -> Result<Collective, SyntaxError> {
        let kind = match name {
            "all_reduce" => CollectiveKind::AllReduce(self.rank_reduction()?),
            "all_gather" => CollectiveKind::AllGather { ranks: self.ranks()? },
            "reduce_scatter" => {
                CollectiveKind::ReduceScatter { reduction: self.rank_reduction()?, ranks: self.ranks()? }
            }
            "all_to_all" => {
                self.expect_word("send")?;
                let send = self.expressions()?;
                self.expect_word("receive")?;
                CollectiveKind::AllToAll { send, receive: self.expressions()? }
            }
            "broadcast" => {
                self.expect_word("root")?;
                CollectiveKind::Broadcast { root: self.number()? }
            }
            _ => return Err(self.error("expected a collective")),
        };
        self.expect_word("of")?;
        Ok(Collective { kind, group: self.string()? })
    }

    fn rank_reduction(&mut self) -> Result<RankReduction, SyntaxError> {
        let reduction = RankReduction::from_name(self.word()?);
        reduction.ok_or_else(|| self.error("expected a reduction such as `sum`"))
    }

    fn ranks(&mut self) -> Result<i64, SyntaxError> {
        self.expect_word("ranks")?;
        self.number()
    }
}
