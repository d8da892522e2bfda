//! Parses stages: terms, accesses and effects.

use super::parse::Parser;
use super::plain_access;
use super::print::zero;
use crate::dtype::DType;
use crate::graph::text::{clip, parse_scalar};
use crate::graph::{BinaryOp, Combine, UnaryOp};
use crate::loops::{Access, Axis, Effect, Guard, Index, Stage, Term, TermId, TypedTerm};
use crate::symbolic::Expr;
use crate::text::SyntaxError;

impl Parser<'_, '_> {
    /// Terms and effects in braces.
    pub(super) fn stage(&mut self, axes: Vec<Axis>) -> Result<Stage, SyntaxError> {
        let mut stage = Stage { axes, ..Stage::default() };
        self.cursor.expect('{')?;
        while !self.cursor.eat('}') {
            match self.cursor.peek_word() {
                "store" | "accumulate" => stage.effects.push(self.effect()?),
                _ => {
                    let expected = stage.terms.len();
                    stage.terms.push(self.typed_term(expected)?);
                }
            }
        }
        Ok(stage)
    }

    fn effect(&mut self) -> Result<Effect, SyntaxError> {
        if self.cursor.word()? == "accumulate" {
            return Ok(Effect::Accumulate { accumulator: self.id("acc")?, value: self.id("t")? });
        }
        let combine = Combine::from_name(self.cursor.peek_word());
        if combine.is_some() {
            self.cursor.word()?;
        }
        let access = self.access()?;
        self.cursor.expect('=')?;
        Ok(Effect::Store { access, value: self.id("t")?, combine: combine.unwrap_or(Combine::Set) })
    }

    fn typed_term(&mut self, expected: TermId) -> Result<TypedTerm, SyntaxError> {
        if self.id("t")? != expected {
            return Err(self.cursor.error(format!("expected `t{expected}`: terms are numbered in order")));
        }
        self.cursor.expect(':')?;
        let dtype = self.cursor.dtype()?;
        self.cursor.expect('=')?;
        Ok(TypedTerm { term: self.term(dtype)?, dtype })
    }

    fn term(&mut self, dtype: DType) -> Result<Term, SyntaxError> {
        let word = self.cursor.word()?;
        if let Some(number) = parse_scalar(word) {
            return Ok(Term::Literal(number));
        }
        Ok(match word {
            "index" => Term::Index(self.cursor.expression()?),
            "load" => self.load(dtype)?,
            "select" => {
                let [c, a, b] = self.operands()?;
                Term::Select(c, a, b)
            }
            "cast" => Term::Cast(self.id("t")?),
            "inside" => Term::Inside(self.guards()?),
            name @ ("check" | "wrap") => {
                let index = self.id("t")?;
                self.cursor.expect_word("below")?;
                let size = self.cursor.expression()?;
                self.cursor.expect_word("site")?;
                Term::CheckIndex { index, size, wraps: name == "wrap", site: self.cursor.position()? }
            }
            "result" => Term::Accumulated(self.id("acc")?),
            "earlier" => Term::Earlier { stage: self.cursor.position()?, term: self.id("t")? },
            "total" => Term::Sum,
            name => self.function(name)?,
        })
    }

    fn function(&mut self, name: &str) -> Result<Term, SyntaxError> {
        if let Some(op) = UnaryOp::from_name(name) {
            return Ok(Term::Unary(op, self.id("t")?));
        }
        let Some(op) = BinaryOp::from_name(name) else {
            return Err(self.cursor.error(format!("`{}` is not a term", clip(name))));
        };
        let [a, b] = self.operands()?;
        Ok(Term::Binary(op, a, b))
    }

    fn operands<const N: usize>(&mut self) -> Result<[TermId; N], SyntaxError> {
        let mut operands = [0; N];
        for (position, operand) in operands.iter_mut().enumerate() {
            if position > 0 {
                self.cursor.expect(',')?;
            }
            *operand = self.id("t")?;
        }
        Ok(operands)
    }

    fn load(&mut self, dtype: DType) -> Result<Term, SyntaxError> {
        let access = self.access()?;
        let guards = if self.cursor.eat_word("if") { self.guards()? } else { vec![] };
        let fill = if self.cursor.eat_word("else") {
            let number = parse_scalar(self.cursor.word()?);
            number.ok_or_else(|| self.cursor.error("expected a number"))?
        } else {
            zero(dtype)
        };
        Ok(Term::Load { access, guards, fill })
    }

    fn guards(&mut self) -> Result<Vec<Guard>, SyntaxError> {
        let pairs = self.pairs()?;
        Ok(pairs.into_iter().map(|(coordinate, size)| Guard { coordinate, size }).collect())
    }

    /// `b0[i0, t3] at [offset] by [t3: stride]`.
    fn access(&mut self) -> Result<Access, SyntaxError> {
        let id = self.buffer()?;
        let items = self.cursor.bracketed()?;
        let coords: Result<Vec<Index>, SyntaxError> = items
            .into_iter()
            .map(|item| match term_id(item) {
                Some(term) => Ok(Index::Term(term)),
                None => self.cursor.parse_expr(item).map(Index::Expr),
            })
            .collect();
        let (coords, buffer) = (coords?, &self.program.buffers[id]);
        let mut access = plain_access(id, buffer, coords);
        if self.cursor.eat_word("at") {
            access.offset = self.cursor.expression()?;
        }
        if self.cursor.eat_word("by") {
            access.indirect = self.strides()?;
        }
        Ok(access)
    }

    fn strides(&mut self) -> Result<Vec<(TermId, Expr)>, SyntaxError> {
        let items = self.cursor.bracketed()?;
        let stride = |item: &str| {
            let pair = item.split_once(':').and_then(|(term, stride)| Some((term_id(term.trim())?, stride)));
            let (term, stride) =
                pair.ok_or_else(|| self.cursor.error("expected a stride such as `t3: 4`"))?;
            Ok((term, self.cursor.parse_expr(stride.trim())?))
        };
        items.into_iter().map(stride).collect()
    }
}

fn term_id(word: &str) -> Option<TermId> {
    word.strip_prefix('t')?.parse().ok()
}
