//! Rotary embeddings of positions.

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::embedding::embedding;
use crate::graph::ValueId;
use crate::symbolic::Expr;

operators! { "";
    "RotaryEmbedding" => rotary_embedding,
}

/// How pairs of columns are turned.
pub(super) struct Turn {
    /// `[batch or 1, rows, pairs]`.
    pub(super) cos: ValueId,
    pub(super) sin: ValueId,
    /// Pairs are neighbours; otherwise they are half of the columns apart.
    pub(super) interleaved: bool,
}

impl Onnx<'_> {
    /// Rows of a table, at positions.
    pub(super) fn table_rows(&mut self, table: ValueId, at: ValueId) -> Result<ValueId, RuleError> {
        let at = self.b.cast(at, DType::I64);
        embedding(self, table, at)
    }

    /// Turns the first columns of `[batch, heads, rows, width]`, two for each pair, by the angles of the rows.
    pub(super) fn turned(&mut self, x: ValueId, turn: &Turn) -> Result<ValueId, RuleError> {
        let shape = self.b.shape(x);
        let (cos, sin) = (self.b.unsqueeze(turn.cos, 1)?, self.b.unsqueeze(turn.sin, 1)?);
        let pairs = self.b.shape(cos)[3].clone();
        let columns = &pairs * 2;
        let rest = &shape[3] - &columns;
        let (zero, step) = (Expr::int(0), if turn.interleaved { 2 } else { 1 });
        let second = if turn.interleaved { Expr::int(1) } else { pairs.clone() };
        let a = self.b.slice(x, 3, &zero, &pairs, step)?;
        let b = self.b.slice(x, 3, &second, &pairs, step)?;
        let dtype = self.b.dtype(x);
        let real = self.apply([a, b, cos, sin], dtype, |[a, b, cos, sin]| a * cos - b * sin)?;
        let imaginary = self.apply([a, b, cos, sin], dtype, |[a, b, cos, sin]| a * sin + b * cos)?;
        let mut turned = if turn.interleaved {
            let parts = [self.b.unsqueeze(real, 4)?, self.b.unsqueeze(imaginary, 4)?];
            let parts = self.b.cat(&parts, 4)?;
            self.merge_axes(parts, 3, 5)?
        } else {
            self.b.cat(&[real, imaginary], 3)?
        };
        if !rest.is(0) {
            let kept = self.b.slice(x, 3, &columns, &rest, 1)?;
            turned = self.b.cat(&[turned, kept], 3)?;
        }
        self.required_shape(turned, &shape)
    }
}

fn rotary_embedding(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let heads = match cx.b.rank(x) {
        3 => Some(c.int("num_heads", 0)?),
        4 => None,
        other => return Err(malformed(format!("a tensor of {other} axes"))),
    };
    let own = match heads {
        Some(heads) => cx.with_heads(x, heads)?,
        None => x,
    };
    let (mut cos, mut sin) = (c.tensor(1)?, c.tensor(2)?);
    if let Some(at) = c.opt_tensor(3)? {
        (cos, sin) = (cx.table_rows(cos, at)?, cx.table_rows(sin, at)?);
    }
    // How many columns are turned follows from the width of the tables, and has to agree.
    let pairs = match c.int("rotary_embedding_dim", 0)? {
        0 => cx.b.shape(own)[3].floor_div_in(&Expr::int(2), cx.b.ranges()),
        columns => Expr::int(columns / 2),
    };
    for table in [&mut cos, &mut sin] {
        let mut sizes = cx.b.shape(*table);
        let last = sizes.last_mut().ok_or_else(|| malformed("the tables have no axes"))?;
        *last = pairs.clone();
        *table = cx.required_shape(*table, &sizes)?;
    }
    let turn = Turn { cos, sin, interleaved: c.flag("interleaved", false)? };
    let value = cx.turned(own, &turn)?;
    one(if heads.is_some() { cx.without_heads(value)? } else { value })
}

#[cfg(test)]
mod tests {
    use crate::frontend::onnx::testing::{Model, int};
    use crate::interpret::Tensor;

    /// Row 1 of the tables is a quarter of a turn: pairs (a, b) become (-b, a).
    #[test]
    fn pairs_are_turned() {
        let of = |interleaved: i64| {
            Model::new(23)
                .input("x", Tensor::from_f32(&[1, 1, 5], &[1.0, 2.0, 3.0, 4.0, 5.0]))
                .constant("cos", &Tensor::from_f32(&[2, 2], &[1.0, 1.0, 0.0, 0.0]))
                .constant("sin", &Tensor::from_f32(&[2, 2], &[0.0, 0.0, 1.0, 1.0]))
                .input("at", Tensor::from_i64(&[1, 1], &[1]))
                .node(
                    "RotaryEmbedding",
                    &["x", "cos", "sin", "at"],
                    &["y"],
                    &[int("num_heads", 1), int("rotary_embedding_dim", 4), int("interleaved", interleaved)],
                )
                .numbers()
        };
        assert_eq!(of(0), [-3.0, -4.0, 1.0, 2.0, 5.0]);
        assert_eq!(of(1), [-2.0, 1.0, -4.0, 3.0, 5.0]);
    }
}
