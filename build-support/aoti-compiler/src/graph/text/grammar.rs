//! Parses what occurs in every form.

use super::data;
use crate::dtype::DType;
use crate::fourier::{Form, Fourier, LONGEST, Norm};
use crate::graph::{
    self, Cell, Condition, Constant, ConstantSource, Conv, Directions, Guard, Origin, Recurrent, Relation,
    Scalar, SymbolInfo, SymbolSource, TensorType, Ties, WIDEST,
};
use crate::symbolic::{self, Expr, Interval, Symbol};
use crate::text::{Cursor, SyntaxError};
use std::sync::Arc;

/// Longer expressions are refused: simplification takes more than linear time.
const MAX_EXPR: usize = 4096;

impl<'a> Cursor<'a> {
    /// An element type.
    pub(crate) fn dtype(&mut self) -> Result<DType, SyntaxError> {
        DType::from_name(self.word()?).ok_or_else(|| self.error("expected an element type"))
    }

    /// Element type and sizes.
    pub(crate) fn tensor_type(&mut self) -> Result<TensorType, SyntaxError> {
        let dtype = self.dtype()?;
        Ok(TensorType { dtype, shape: self.expressions()? })
    }

    /// Expressions in brackets.
    pub(crate) fn expressions(&mut self) -> Result<Vec<Expr>, SyntaxError> {
        let items = self.bracketed()?;
        items.into_iter().map(|item| self.parse_expr(item)).collect()
    }

    /// One expression in brackets.
    pub(crate) fn expression(&mut self) -> Result<Expr, SyntaxError> {
        match self.expressions()?.as_slice() {
            [expr] => Ok(expr.clone()),
            _ => Err(self.error("expected one expression in brackets")),
        }
    }

    /// An expression over sizes `s0, s1, ...` and axes `i0, i1, ...`.
    pub(crate) fn parse_expr(&self, text: &str) -> Result<Expr, SyntaxError> {
        if text.len() > MAX_EXPR {
            return Err(self.error("the expression is too long"));
        }
        let number = |name: &str| name.get(1..).and_then(|number| number.parse().ok());
        let resolve = |name: &str| match name.chars().next()? {
            's' => number(name).map(|k| Expr::sym(Symbol::size(k))),
            'i' => number(name).map(|k| Expr::sym(Symbol::axis(k))),
            _ => None,
        };
        symbolic::parse(text, &resolve).map_err(|error| self.error(error.to_string()))
    }

    /// Integers in brackets.
    pub(crate) fn integers(&mut self) -> Result<Vec<i64>, SyntaxError> {
        let numbers: Option<Vec<i64>> = self.bracketed()?.iter().map(|item| item.parse().ok()).collect();
        numbers.ok_or_else(|| self.error("expected a list of integers"))
    }

    /// A number, taken as one of `dtype`.
    pub(crate) fn scalar(&mut self, dtype: DType) -> Result<Scalar, SyntaxError> {
        let number = data::parse_scalar(self.word()?);
        let number = number.ok_or_else(|| self.error("expected a number"))?;
        // The bits of a NaN are kept.
        Ok(if number.to_f64().is_nan() { number } else { number.cast(dtype) })
    }

    /// Definitions of symbols, constants and the like are numbered in order.
    pub(crate) fn next_reference(&mut self, prefix: char, expected: usize) -> Result<(), SyntaxError> {
        let number = self.reference(prefix)?;
        if number as usize == expected {
            return Ok(());
        }
        Err(self.error(format!("expected `{prefix}{expected}`: definitions are numbered in order")))
    }

    /// `symbol s0 "batch" in 1..4096 from input 0 axis 0`, the first of these words taken.
    pub(crate) fn symbol(&mut self, symbols: &mut Vec<SymbolInfo>) -> Result<(), SyntaxError> {
        self.next_reference('s', symbols.len())?;
        let name = self.optional_string()?.unwrap_or_default();
        self.expect_word("in")?;
        let range = self.range()?;
        self.expect_word("from")?;
        let source = match self.word()? {
            "input" => {
                let input = self.position()?;
                self.expect_word("axis")?;
                SymbolSource::InputDim { input, axis: self.position()? }
            }
            "value" => SymbolSource::InputValue { input: self.position()? },
            "data" => SymbolSource::Data,
            _ => return Err(self.error("expected `input`, `value` or `data`")),
        };
        let most = if self.eat_word("most") { Some(self.expression()?) } else { None };
        symbols.push(SymbolInfo { name, range, source, most });
        Ok(())
    }

    /// Bounds, both included.
    pub(crate) fn range(&mut self) -> Result<Interval, SyntaxError> {
        let word = self.word()?;
        let bound = |text: &str| match text {
            "-inf" => Some(i64::MIN),
            "inf" => Some(i64::MAX),
            text => text.parse().ok(),
        };
        let bounds = word.split_once("..").and_then(|(min, max)| Some((bound(min)?, bound(max)?)));
        let (min, max) = bounds.ok_or_else(|| self.error("expected a range such as `1..4096`"))?;
        Ok(Interval::new(min, max))
    }

    /// `[2*s0] le [4096] "what is said of it"`.
    pub(crate) fn guard(&mut self) -> Result<Guard, SyntaxError> {
        let condition = self.condition()?;
        Ok(Guard { condition, message: self.optional_string()?.unwrap_or_default() })
    }

    /// One comparison, `fits [s0 * s1]`, `true`, `false`, or several in parentheses, joined by one of `and`, `or`.
    pub(crate) fn condition(&mut self) -> Result<Condition, SyntaxError> {
        if self.eat('(') {
            self.enter()?;
            let mut parts = vec![self.condition()?];
            let is_all = self.peek_word() != "or";
            while self.eat_word(if is_all { "and" } else { "or" }) {
                parts.push(self.condition()?);
            }
            self.expect(')')?;
            self.leave();
            return Ok(if is_all { Condition::all(parts) } else { Condition::any(parts) });
        }
        match self.peek_word() {
            "fits" => {
                self.word()?;
                return Ok(Condition::Fits(self.expression()?));
            }
            word @ ("true" | "false") => {
                self.word()?;
                return Ok(if word == "true" { Condition::TRUE } else { Condition::FALSE });
            }
            _ => {}
        }
        let left = self.expression()?;
        let relation = Relation::from_name(self.word()?);
        let relation = relation.ok_or_else(|| self.error("expected a relation such as `le`"))?;
        Ok(Condition::Compare(left, relation, self.expression()?))
    }

    /// Node, line and module.
    pub(crate) fn origin(&mut self) -> Result<Origin, SyntaxError> {
        Ok(Origin { node: self.string()?, source: self.string()?, module: self.string()? })
    }

    /// `"aten.sum of sum_1" at "m.py:3" in "layers.0"`; what is empty is left out.
    pub(crate) fn note(&mut self) -> Result<Origin, SyntaxError> {
        let mut origin = Origin { node: self.string()?, ..Origin::default() };
        if self.eat_word("at") {
            origin.source = self.string()?;
        }
        if self.eat_word("in") {
            origin.module = self.string()?;
        }
        Ok(origin)
    }

    /// Type and data of a constant.
    pub(crate) fn constant(&mut self, name: String) -> Result<Constant, SyntaxError> {
        let dtype = self.dtype()?;
        let items = self.bracketed()?;
        let sizes: Option<Vec<i64>> = items.iter().map(|item| item.parse().ok()).collect();
        let sizes = sizes.ok_or_else(|| self.error("the sizes of a constant are numbers"))?;
        let is_weight = self.eat_word("weight");
        self.expect('=')?;
        let data = data::parse(self, dtype, &sizes)?.into();
        let source = if is_weight {
            ConstantSource::Weight
        } else if self.eat_word("from") {
            let output = self.position()?;
            ConstantSource::Derived { output, recipe: Arc::new(graph::text::parse_nested(self)?) }
        } else {
            ConstantSource::Fixed
        };
        Ok(Constant { name, dtype, sizes, data, source, groups: None })
    }

    /// Which of equal elements has a rank.
    pub(crate) fn ties(&mut self) -> Ties {
        if self.eat_word("partitioned") { Ties::Partitioned } else { Ties::Stable }
    }

    /// The parameters of a Fourier transform.
    pub(crate) fn fourier(&mut self) -> Result<Fourier, SyntaxError> {
        let word = self.word()?;
        let form = Form::ALL.into_iter().find(|form| form.name() == word);
        let form = form.ok_or_else(|| self.error("expected a form of transform"))?;
        let length = self.number()?;
        if !(1..=LONGEST).contains(&length) {
            return Err(self.error(format!("expected a length from 1 to {LONGEST}")));
        }
        let word = self.word()?;
        let norm = Norm::ALL.into_iter().find(|norm| norm.name() == word);
        Ok(Fourier { form, length, norm: norm.ok_or_else(|| self.error("expected a norm"))? })
    }

    /// The parameters of a recurrent layer.
    pub(crate) fn recurrent(&mut self) -> Result<Recurrent, SyntaxError> {
        let word = self.word()?;
        let cell = Cell::ALL.into_iter().find(|cell| cell.name() == word);
        let cell = cell.ok_or_else(|| self.error("expected a cell"))?;
        let word = self.word()?;
        let directions = Directions::ALL.into_iter().find(|own| own.name() == word);
        let directions = directions.ok_or_else(|| self.error("expected a direction"))?;
        self.expect_word("hidden")?;
        let hidden = self.units()?;
        let projected = if self.eat_word("projected") { Some(self.units()?) } else { None };
        let [batch_first, has_bias, has_start] =
            ["batch_first", "bias", "start"].map(|word| self.eat_word(word));
        Ok(Recurrent { cell, directions, hidden, projected, batch_first, has_bias, has_start })
    }

    /// How many units a recurrent layer has.
    fn units(&mut self) -> Result<i64, SyntaxError> {
        let count = self.number()?;
        let is_some = (1..=WIDEST).contains(&count);
        if is_some { Ok(count) } else { Err(self.error(format!("expected 1 to {WIDEST} units"))) }
    }

    /// The parameters of a convolution.
    pub(crate) fn conv(&mut self) -> Result<Conv, SyntaxError> {
        self.expect_word("stride")?;
        let stride = self.integers()?;
        self.expect_word("padding")?;
        let items = self.bracketed()?;
        let pair = |item: &str| {
            let (low, high) = item.split_once(':')?;
            Some((low.trim().parse().ok()?, high.trim().parse().ok()?))
        };
        let padding: Option<Vec<(i64, i64)>> = items.into_iter().map(pair).collect();
        let padding = padding.ok_or_else(|| self.error("expected paddings such as `[1:1, 0:0]`"))?;
        self.expect_word("dilation")?;
        let dilation = self.integers()?;
        self.expect_word("groups")?;
        let groups = self.number()?;
        let transposed = self.eat_word("transposed");
        let output_padding =
            if self.eat_word("output_padding") { self.integers()? } else { vec![0; stride.len()] };
        Ok(Conv { stride, padding, dilation, groups, transposed, output_padding })
    }
}
