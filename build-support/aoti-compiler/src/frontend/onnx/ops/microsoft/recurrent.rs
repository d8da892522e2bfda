//! An LSTM with quantised weights: what they stand for is computed, and the rest is that of the standard. Steps are not quantised,
//! as they are in ONNX Runtime to be faster.

use super::matrix::standard_results;
use super::operators;
use crate::frontend::onnx::call::{Call, malformed};
use crate::frontend::onnx::ops::Rule;
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::RuleError;
use crate::graph::ValueId;

operators! { "com.microsoft";
    "DynamicQuantizeLSTM" => lstm,
}

fn lstm(cx: &mut Onnx, c: &Call) -> Rule {
    let weight = weight(cx, c, [1, 8, 9])?;
    let hidden_weight = self::weight(cx, c, [2, 10, 11])?;
    let mut inputs = vec![c.input(0), weight.into(), hidden_weight.into(), c.input(3), c.input(4)];
    inputs.extend([c.input(5), c.input(6), c.input(7)]);
    standard_results(cx, c, "LSTM", inputs)
}

/// Numbers are `[directions, inputs, gates]`, with a scale and a zero for each direction, or for each gate of it.
fn weight(cx: &mut Onnx, c: &Call, [numbers, scale, zero]: [usize; 3]) -> Result<ValueId, RuleError> {
    let (numbers, scale) = (c.tensor(numbers)?, c.tensor(scale)?);
    let aligned = |cx: &mut Onnx, table: ValueId| match cx.b.rank(table) {
        0 => Ok(table),
        1 => {
            let table = cx.b.unsqueeze(table, 1)?;
            Ok(cx.b.unsqueeze(table, 2)?)
        }
        2 => Ok(cx.b.unsqueeze(table, 1)?),
        rank => Err(malformed(format!("a scale of {rank} axes"))),
    };
    let dtype = cx.b.dtype(scale);
    let scale = aligned(cx, scale)?;
    let zero = match c.opt_tensor(zero)? {
        Some(zero) => aligned(cx, zero)?,
        None => cx.b.scalar(0.0, dtype),
    };
    let weight = cx.apply([numbers, zero, scale], dtype, |[q, zero, scale]| (q - zero) * scale)?;
    Ok(cx.b.transpose(weight, 1, 2)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::super::testing::{Model, int};
    use crate::dtype::DType;
    use crate::interpret::Tensor;

    #[test]
    fn quantised_weights_are_what_they_stand_for() {
        let numbers = |count: usize, of: &dyn Fn(usize) -> i64| (0..count).map(of).collect::<Vec<i64>>();
        let bytes = |sizes: &[usize], all: &[i64]| {
            let all: Vec<u8> = all.iter().map(|number| *number as u8).collect();
            Tensor::new(DType::U8, sizes.to_vec(), all).unwrap()
        };
        let (w, r) = (numbers(3 * 8, &|k| k as i64 * 7 % 50), numbers(2 * 8, &|k| k as i64 * 5 % 40));
        let model = Model::new(17)
            .input("x", Tensor::from_f32(&[2, 1, 3], &[0.5, -1.0, 2.0, 0.25, 1.0, -0.5]))
            .constant("scale", &Tensor::from_f32(&[1], &[0.03]))
            .constant("zero", &bytes(&[1], &[20]));
        let inputs = ["x", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "zero"];
        let found = model
            .clone()
            .constant("w", &bytes(&[1, 3, 8], &w))
            .constant("r", &bytes(&[1, 2, 8], &r))
            .of_one("com.microsoft::DynamicQuantizeLSTM", &inputs, &[int("hidden_size", 2)]);
        let real = |all: &[i64], rows: usize| {
            let one = |at: usize| (all[at % rows * 8 + at / rows] - 20) as f32 * 0.03;
            Tensor::from_f32(&[1, 8, rows], &(0..8 * rows).map(one).collect::<Vec<f32>>())
        };
        let wanted = model.constant("w", &real(&w, 3)).constant("r", &real(&r, 2)).of_one(
            "LSTM",
            &["x", "w", "r"],
            &[int("hidden_size", 2)],
        );
        assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?} {wanted:?}");
    }
}
