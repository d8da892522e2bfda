//! Attention as what it means: all scores, their softmax, and the weighted sums.

use super::Machine;
use super::stage::{Positions, Values};
use crate::dtype::DType;
use crate::interpret::error::EvalError;
use crate::interpret::tensor::Tensor;
use crate::loops::{Attention, MatMul, OfNothing, Stage};

impl Machine<'_> {
    pub(super) fn attention(&mut self, own: &Attention) -> Result<(), EvalError> {
        let axes = own.score_axes();
        let positions = Positions::all(&axes, &self.symbols)?;
        let products = MatMul {
            axes,
            depth: own.depth.clone(),
            a: own.queries.clone(),
            b: own.keys.clone(),
            dtype: DType::F32,
            epilogue: Stage::default(),
            row_epilogue: None,
        };
        let mut values = Values::of_sums(self.products(&products, &positions)?);
        self.stage(&own.stages[0], &positions, &mut values)?;
        let scores = values.fed.get(&0).map(Tensor::to_f64);
        let scores = scores.ok_or_else(|| EvalError::Malformed("attention has no scores".to_owned()))?;
        let weights = self.weights(own, scores, &positions)?;
        let results = Positions::all(&own.axes, &self.symbols)?;
        let means = self.means(own, &weights, &results)?;
        self.stage(&own.stages[1], &results, &mut Values::of_sums(means))
    }

    /// The softmax of each row of scores.
    fn weights(
        &self,
        own: &Attention,
        mut scores: Vec<f64>,
        positions: &Positions,
    ) -> Result<Vec<f64>, EvalError> {
        let [.., query, _] = own.axes.as_slice() else { return Ok(vec![]) };
        if let Some(reach) = &own.reach {
            let reach = self.symbols.value(reach)?;
            let places = positions.along(query.symbol).into_iter().zip(positions.along(own.key().symbol));
            for (score, (query, key)) in scores.iter_mut().zip(places) {
                if key > query + reach {
                    *score = f64::NEG_INFINITY;
                }
            }
        }
        let keys = usize::try_from(self.symbols.value(&own.key().extent)?).unwrap_or(0);
        for row in scores.chunks_mut(keys.max(1)) {
            let is_hidden = row.iter().all(|score| *score == f64::NEG_INFINITY);
            // The sum of the others is NaN where a score is, or where the largest is infinite.
            let is_nan = row.iter().any(|score| score.is_nan() || *score == f64::INFINITY);
            let nothing = match own.of_nothing {
                OfNothing::Nothing => false,
                OfNothing::Zeros => is_hidden,
                OfNothing::ZerosForNan => is_hidden || is_nan,
            };
            if nothing {
                row.fill(0.0);
                continue;
            }
            let peak = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|score| *score = (*score - peak).exp());
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|weight| *weight /= total);
        }
        Ok(scores)
    }

    /// The weighted sum of values at each position of the result.
    fn means(&self, own: &Attention, weights: &[f64], results: &Positions) -> Result<Tensor, EvalError> {
        let [.., _, column] = own.axes.as_slice() else { return Ok(Tensor::from_f32(&[0], &[])) };
        let values = self.tensor(own.values.buffer)?.to_f64();
        let starts = results.values(&own.values.offset, &self.symbols)?;
        let columns = results.along(column.symbol);
        let [width, keys] = [&column.extent, &own.key().extent].map(|size| self.symbols.value(size));
        let (width, keys) = (width?, keys?);
        let [by_key, by_column] =
            [&own.values.row_stride, &own.values.column_stride].map(|e| self.symbols.value(e));
        let (by_key, by_column) = (by_key?, by_column?);
        let (width, keys) = (usize::try_from(width).unwrap_or(0), usize::try_from(keys).unwrap_or(0));
        let mean = |at: usize| {
            let row = &weights[at / width.max(1) * keys..][..keys];
            row.iter().enumerate().try_fold(0.0, |sum, (key, weight)| {
                let place = starts[at] + columns[at] * by_column + key as i64 * by_key;
                let value = usize::try_from(place).ok().and_then(|place| values.get(place));
                let value = value.ok_or_else(|| {
                    EvalError::Malformed(format!("element {place} of the values does not exist"))
                })?;
                Ok::<f64, EvalError>(sum + weight * value)
            })
        };
        let means: Result<Vec<f32>, EvalError> =
            (0..results.count()).map(|at| Ok(mean(at)? as f32)).collect();
        Ok(Tensor::from_f32(&[results.count()], &means?))
    }
}
