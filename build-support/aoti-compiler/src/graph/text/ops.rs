//! Parses operators: name, operands, parameters.

use super::parse::{Parser, Scope};
use crate::dtype::DType;
use crate::graph::text::clip;
use crate::graph::{BinaryOp, Combine, ConstantId, Coord, Op, ReduceOp, Routine, ScanOp, UnaryOp, ValueId};
use crate::symbolic::Symbol;
use crate::text::SyntaxError;

impl<'a> Parser<'_, 'a> {
    /// An operator with its operands; numbers are taken as `dtype`, the type of the first result.
    pub(super) fn op(
        &mut self,
        scope: &mut Scope<'a>,
        dtype: DType,
    ) -> Result<(Op, Vec<ValueId>), SyntaxError> {
        let name = self.cursor.word()?;
        let place = self.cursor.place();
        let mut inputs = Vec::new();
        if self.cursor.peek_word().starts_with('%') {
            inputs.push(self.value(scope)?);
            while self.cursor.eat(',') {
                inputs.push(self.value(scope)?);
            }
        }
        let op = match self.structural(name, dtype)? {
            Some(op) => op,
            None => self.by_table(name, place)?,
        };
        Ok((op, inputs))
    }

    /// Operators that are the only ones of their form.
    fn structural(&mut self, name: &str, dtype: DType) -> Result<Option<Op>, SyntaxError> {
        Ok(Some(match name {
            "constant" => Op::Constant(ConstantId::from_u32(self.cursor.reference('c')?)),
            "full" => Op::Full(self.cursor.scalar(dtype)?),
            "index" => Op::Index(self.cursor.expression()?),
            "select" => Op::Select,
            "cast" => Op::Cast,
            "view" => Op::View(self.cursor.expressions()?),
            "pad" => {
                let coords = self.cursor.expressions()?;
                self.cursor.expect_word("fill")?;
                Op::Pad { coords, fill: self.cursor.scalar(dtype)? }
            }
            "gather" => Op::Gather(self.coordinates()?),
            "scatter" => {
                let word = self.cursor.word()?;
                let combine =
                    Combine::from_name(word).ok_or_else(|| self.cursor.error("expected a combination"))?;
                Op::Scatter { coords: self.coordinates()?, combine }
            }
            "cat" => Op::Cat { axis: self.axis()? },
            "sort" => Op::Sort {
                axis: self.axis()?,
                descending: self.cursor.eat_word("descending"),
                kept: if self.cursor.eat_word("first") { Some(self.cursor.number()?) } else { None },
            },
            "nth_element" => Op::NthElement { axis: self.axis()?, ties: self.cursor.ties() },
            "searchsorted" => Op::SearchSorted { right: self.cursor.eat_word("right") },
            "fourier" => Op::Fourier(self.cursor.fourier()?),
            "recurrent" => Op::Recurrent(self.cursor.recurrent()?),
            "extern" => Op::Extern(self.cursor.extern_call()?),
            "all_reduce" | "all_gather" | "reduce_scatter" | "all_to_all" | "broadcast" => {
                Op::Collective(self.cursor.collective(name)?)
            }
            "matmul" => Op::MatMul,
            "conv" => Op::Conv(self.cursor.conv()?),
            "read" => Op::Read(Symbol::size(self.cursor.reference('s')?)),
            "assert" => Op::Assert(self.cursor.string()?),
            "require" => Op::Require(self.cursor.guard()?),
            "cond" => {
                self.cursor.expect_word("then")?;
                let then = Box::new(self.graph()?);
                self.cursor.expect_word("else")?;
                Op::Cond { then, otherwise: Box::new(self.graph()?) }
            }
            "while" => {
                self.cursor.expect_word("carried")?;
                let carried = self.cursor.position()?;
                self.cursor.expect_word("condition")?;
                let condition = Box::new(self.graph()?);
                self.cursor.expect_word("body")?;
                Op::While { condition, body: Box::new(self.graph()?), carried }
            }
            _ => return Ok(None),
        }))
    }

    /// Operators that stand in a table.
    fn by_table(&mut self, name: &str, place: usize) -> Result<Op, SyntaxError> {
        if let Some(op) = UnaryOp::from_name(name) {
            return Ok(Op::Unary(op));
        }
        if let Some(op) = BinaryOp::from_name(name) {
            return Ok(Op::Binary(op));
        }
        if let Some(op) = ReduceOp::from_name(name) {
            self.cursor.expect_word("axes")?;
            let axes: Option<Vec<usize>> =
                self.cursor.bracketed()?.iter().map(|item| item.parse().ok()).collect();
            let axes = axes.ok_or_else(|| self.cursor.error("axes are numbers"))?;
            return Ok(Op::Reduce { op, axes });
        }
        if let Some(routine) = Routine::from_name(name) {
            return Ok(Op::Routine(routine));
        }
        if let Some(op) = ScanOp::from_name(name) {
            return Ok(Op::Scan { op, axis: self.axis()? });
        }
        Err(self.cursor.error_at(place, format!("`{}` is not an operator", clip(name))))
    }

    fn axis(&mut self) -> Result<usize, SyntaxError> {
        self.cursor.expect_word("axis")?;
        self.cursor.position()
    }

    fn coordinates(&mut self) -> Result<Vec<Coord>, SyntaxError> {
        let items = self.cursor.bracketed()?;
        items
            .into_iter()
            .map(|item| {
                let number =
                    |text: &str| text.parse().map_err(|_| self.cursor.error("expected `$` and a number"));
                match (item.strip_prefix('$'), item.strip_prefix("wrap $")) {
                    (Some(text), _) => number(text).map(Coord::Indirect),
                    (None, Some(text)) => number(text).map(Coord::Wrapped),
                    (None, None) => self.cursor.parse_expr(item).map(Coord::Expr),
                }
            })
            .collect()
    }
}
