//! What all operators of attention have in common: scores, what hides some of them, softmax, the sum of values.
//!
//! The nodes are those that the rules of PyTorch's operators make, in the order in which fused kernels are looked for: scale,
//! cap, bias and masks of data, and last what positions hide.

use super::super::call::malformed;
use super::super::walk::Onnx;
use crate::dtype::DType;
use crate::frontend::torch::rules::attention::{
    default_scale, hide, scaled, share_heads, softmax as attention_softmax,
};
use crate::frontend::torch::rules::{Operand, RuleError};
use crate::graph::{IntBinary, Relation, ValueId};
use crate::symbolic::Expr;

/// One attention. Queries, keys and values are `[batch, heads, rows, width]`; keys may be of fewer heads.
pub(super) struct Attend {
    pub(super) query: ValueId,
    pub(super) key: ValueId,
    pub(super) value: ValueId,
    /// What scores are multiplied by; the inverse root of the width otherwise.
    pub(super) scale: Option<f64>,
    /// Scores become this times the tangent of their share of it, unless it is 0.
    pub(super) cap: f64,
    /// Added to scores; `false` hides where it is of truth values.
    pub(super) masks: Vec<ValueId>,
    /// With it, a query sees keys up to its own position and this.
    pub(super) causal: Option<Expr>,
    /// Added to what the softmax divides by, as if there was one more key of that score: one for each head.
    pub(super) sink: Option<ValueId>,
    /// The type of the softmax, where that is wider than the computing type.
    pub(super) precision: Option<DType>,
}

/// Results of an attention on the way, in the computing type; the output in the type of the queries.
pub(super) struct Attended {
    pub(super) raw: ValueId,
    pub(super) capped: ValueId,
    pub(super) masked: ValueId,
    pub(super) weights: ValueId,
    pub(super) output: ValueId,
}

impl Attend {
    /// Plain attention.
    pub(super) fn new(query: ValueId, key: ValueId, value: ValueId) -> Attend {
        Attend {
            query,
            key,
            value,
            scale: None,
            cap: 0.0,
            masks: Vec::new(),
            causal: None,
            sink: None,
            precision: None,
        }
    }
}

impl Onnx<'_> {
    /// The nodes of an attention.
    pub(super) fn attend(&mut self, own: &Attend) -> Result<Attended, RuleError> {
        let raw = self.scores(own.query, own.key, own.scale)?;
        let mut scores = raw;
        if own.cap != 0.0 {
            let (cap, dtype) = (own.cap, self.b.dtype(scores));
            scores = self.apply([scores], dtype, |[x]| (x / cap).tanh() * cap)?;
        }
        let capped = scores;
        for mask in &own.masks {
            scores = self.masked(scores, *mask)?;
        }
        if let Some(offset) = &own.causal {
            let shape = self.b.shape(scores);
            let gap = &(&Expr::axis(0) + offset) - &Expr::axis(1);
            let visible = self.index_is(Relation::Ge, gap, &shape[2..])?;
            scores = hide(self, scores, visible)?;
        }
        let masked = scores;
        if let Some(precision) = own.precision.filter(|precision| *precision == DType::F64) {
            scores = self.b.cast(scores, precision);
        }
        let weights = match own.sink {
            Some(sink) => self.softmax_with_sink(scores, sink)?,
            None => attention_softmax(self, scores, !own.masks.is_empty())?.0,
        };
        let output = self.weighted(weights, own.query, own.value)?;
        Ok(Attended { raw, capped, masked, weights, output })
    }

    /// The products of queries and keys, scaled, in the computing type.
    pub(super) fn scores(
        &mut self,
        query: ValueId,
        key: ValueId,
        scale: Option<f64>,
    ) -> Result<ValueId, RuleError> {
        let shape = self.b.shape(query);
        if shape.len() != 4 || self.b.rank(key) != 4 {
            return Err(malformed("queries and keys need a batch, heads, rows and columns"));
        }
        let key = self.shared(key, &shape)?;
        let scale = match scale {
            Some(scale) => Operand::Number(scale.into()),
            None => default_scale(self, &shape[3])?,
        };
        let wide = self.b.dtype(query).compute();
        let (query, key) = (self.b.cast(query, wide), self.b.cast(key, wide));
        let key = self.b.transpose(key, 2, 3)?;
        let scores = self.b.matmul(query, key)?;
        scaled(self, scores, &scale)
    }

    /// The sum of values by weights, in the type of the queries.
    pub(super) fn weighted(
        &mut self,
        weights: ValueId,
        query: ValueId,
        value: ValueId,
    ) -> Result<ValueId, RuleError> {
        let shape = self.b.shape(query);
        let value = self.shared(value, &shape)?;
        let weights = self.typed_like(weights, value);
        let output = self.b.matmul(weights, value)?;
        Ok(self.typed_like(output, query))
    }

    /// Heads of keys or values, each for as many heads of queries in a row as there are.
    fn shared(&mut self, x: ValueId, query: &[Expr]) -> Result<ValueId, RuleError> {
        let heads = self.b.shape(x)[1].clone();
        if heads == query[1] {
            return Ok(x);
        }
        if let (Some(queries), Some(own)) = (query[1].as_int(), heads.as_int())
            && (own == 0 || queries % own != 0)
        {
            return Err(malformed(format!("{queries} heads of queries for {own} of keys")));
        }
        share_heads(self, x, query)
    }

    /// Scores with a mask: truth values say what is seen, numbers are added.
    pub(super) fn masked(&mut self, scores: ValueId, mask: ValueId) -> Result<ValueId, RuleError> {
        if self.b.dtype(mask) == DType::Bool {
            return hide(self, scores, mask);
        }
        let bias = self.typed_like(mask, scores);
        // A bias of minus infinity hides whatever the score is.
        let sum = self.add(scores, bias)?;
        let hides = self.with_number(Relation::Eq, bias, f64::NEG_INFINITY)?;
        Ok(self.b.select(hides, bias, sum)?)
    }

    /// Softmax over the last axis with one more score, which nothing is weighted by.
    fn softmax_with_sink(&mut self, scores: ValueId, sink: ValueId) -> Result<ValueId, RuleError> {
        let shape = self.b.shape(scores);
        let sink = self.typed_like(sink, scores);
        let sink = self.b.reshape(sink, &[Expr::int(1), shape[1].clone(), Expr::int(1), Expr::int(1)])?;
        let column = [&shape[..3], &[Expr::int(1)]].concat();
        let sink = self.b.expand(sink, &column)?;
        let all = self.b.cat(&[scores, sink], 3)?;
        let (weights, _) = attention_softmax(self, all, true)?;
        Ok(self.b.slice(weights, 3, &Expr::int(0), &shape[3], 1)?)
    }

    // --- heads -----------------------------------------------------------------------------------------------------

    /// `[batch, rows, heads * width]` as `[batch, heads, rows, width]`.
    pub(super) fn with_heads(&mut self, x: ValueId, heads: i64) -> Result<ValueId, RuleError> {
        let shape = self.b.shape(x);
        if shape.len() != 3 || heads <= 0 {
            return Err(malformed(format!("{} axes and {heads} heads", shape.len())));
        }
        let width = shape[2].floor_div_in(&Expr::int(heads), self.b.ranges());
        let split = self.split_axis(x, 2, &[Expr::int(heads), width])?;
        Ok(self.b.transpose(split, 1, 2)?)
    }

    /// The inverse of it.
    pub(super) fn without_heads(&mut self, x: ValueId) -> Result<ValueId, RuleError> {
        let x = self.b.transpose(x, 1, 2)?;
        self.merge_axes(x, 2, 4)
    }

    // --- positions -------------------------------------------------------------------------------------------------

    /// How far the position of a query is behind that of a key, `[batch or 1, 1, queries, keys]`: queries begin at `offset`, of
    /// all rows or of each (`i64`, `[batch]`).
    pub(super) fn distance(
        &mut self,
        offset: &Start,
        queries: &Expr,
        keys: &Expr,
    ) -> Result<ValueId, RuleError> {
        let shape = [Expr::int(1), Expr::int(1), queries.clone(), keys.clone()];
        let gap = &Expr::axis(2) - &Expr::axis(3);
        match offset {
            Start::All(offset) => Ok(self.b.index(&gap + offset, &shape)),
            Start::Each(starts) => {
                let gap = self.b.index(gap, &shape);
                let starts = self.trailing_ones(*starts, 4)?;
                self.add(gap, starts)
            }
        }
    }

    /// Keys that are at most `left` before a query, and at most `right` behind it, as far as those are limits.
    pub(super) fn in_window(
        &mut self,
        distance: ValueId,
        left: Option<i64>,
        right: Option<i64>,
    ) -> Result<Option<ValueId>, RuleError> {
        let mut visible = None;
        for (relation, limit) in [(Relation::Le, left), (Relation::Ge, right.map(|right| -right))] {
            let Some(limit) = limit else { continue };
            let side = self.with_number(relation, distance, limit)?;
            visible = Some(match visible {
                None => side,
                Some(other) => self.binary(IntBinary::And, other, side)?,
            });
        }
        Ok(visible)
    }

    /// The first keys of each row (`counts`: `[batch]`) are seen, `[batch, 1, 1, keys]`.
    pub(super) fn first_keys(&mut self, counts: ValueId, keys: &Expr) -> Result<ValueId, RuleError> {
        let ones = Expr::int(1);
        let position = self.b.index(Expr::axis(3), &[ones.clone(), ones.clone(), ones, keys.clone()]);
        let counts = self.b.cast(counts, DType::I64);
        let counts = self.trailing_ones(counts, 4)?;
        self.binary(Relation::Lt, position, counts)
    }
}

/// The position of the first query.
pub(super) enum Start {
    /// The same for all rows.
    All(Expr),
    /// Of each row of the batch.
    Each(ValueId),
}
