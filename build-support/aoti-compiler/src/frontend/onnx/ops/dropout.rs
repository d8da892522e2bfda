//! Dropout, and the generator that a seed of it starts.

use super::super::call::Call;
use super::super::walk::Onnx;
use super::{Rule, many, operators};
use crate::dtype::{DType, bytes_of};
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::{Constant, Relation, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "Dropout" => dropout,
}

/// Elements that a seed decides about; for more, as for sizes that are not fixed, numbers are drawn when the model runs.
const MOST_DECIDED: i64 = 1 << 20;

/// The ratio became an operand with version 12. Before version 7 an attribute said whether it is training, after it nothing was
/// until version 12.
fn dropout(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let no_operands = c.version < 12;
    let training = match c.opt_tensor(2)?.filter(|_| !no_operands) {
        Some(flag) => Switch::of(cx, flag)?,
        None => Switch::Known(c.version < 7 && !c.flag("is_test", false)?),
    };
    let ratio = match c.opt_tensor(1)?.filter(|_| !no_operands) {
        Some(ratio) => ratio,
        None => cx.b.scalar(c.float("ratio", 0.5)?, DType::F64),
    };
    let shape = cx.b.shape(x);
    let nothing_goes = matches!(cx.b.numbers(ratio).as_deref(), Some([0.0]));
    let (value, mask) = match training {
        Switch::Known(false) => (x, cx.b.full(true, DType::Bool, &shape)),
        Switch::Known(true) | Switch::Data(_) if nothing_goes => (x, cx.b.full(true, DType::Bool, &shape)),
        Switch::Known(true) => dropped(cx, c, x, ratio)?,
        Switch::Data(is_training) => {
            let (value, mask) = dropped(cx, c, x, ratio)?;
            let all = cx.b.full(true, DType::Bool, &[]);
            (cx.b.select(is_training, value, x)?, cx.b.select(is_training, mask, all)?)
        }
    };
    // The mask was of the type of the elements before version 10.
    let mask_type = if c.version < 10 { cx.b.dtype(x) } else { DType::Bool };
    many([value, cx.b.cast(mask, mask_type)])
}

/// A truth value.
enum Switch {
    Known(bool),
    Data(ValueId),
}

impl Switch {
    fn of(cx: &mut Onnx, value: ValueId) -> Result<Switch, RuleError> {
        let value = cx.b.reshape(value, &[])?;
        let value = cx.b.cast(value, DType::Bool);
        Ok(match cx.b.element(value).and_then(|element| element.as_int()) {
            Some(known) => Switch::Known(known != 0),
            None => Switch::Data(value),
        })
    }
}

/// Elements that stay, scaled so that the mean does, and where they stay.
fn dropped(cx: &mut Onnx, c: &Call, x: ValueId, ratio: ValueId) -> Result<(ValueId, ValueId), RuleError> {
    let ratio = cx.b.reshape(ratio, &[])?;
    let drawn = match seeded(cx, c, x)? {
        Some(drawn) => drawn,
        None => {
            let shape = cx.b.shape(x);
            cx.uniform(DType::F32, &shape)?
        }
    };
    let drawn_type = cx.b.dtype(drawn);
    let least = cx.b.cast(ratio, drawn_type);
    let kept = cx.binary(Relation::Ge, drawn, least)?;
    let dtype = cx.b.dtype(x);
    let value =
        cx.apply([x, ratio], dtype, |[x, ratio]| Formula::from(kept).select(x / (1.0 - ratio), 0.0))?;
    Ok((value, kept))
}

/// The numbers that a seed gives, the same as in the standard's definition.
fn seeded(cx: &mut Onnx, c: &Call, x: ValueId) -> Result<Option<ValueId>, RuleError> {
    let sizes: Option<Vec<i64>> = cx.b.shape(x).iter().map(Expr::as_int).collect();
    let (Some(seed), Some(sizes)) = (c.opt_int("seed")?, sizes) else { return Ok(None) };
    let count: i64 = sizes.iter().product();
    let (Ok(seed), Ok(length)) = (u32::try_from(seed), usize::try_from(count)) else { return Ok(None) };
    if count > MOST_DECIDED {
        return Ok(None);
    }
    let mut twister = Twister::new(seed);
    let drawn: Vec<f64> = (0..length).map(|_| twister.uniform()).collect();
    let data = bytes_of(&drawn, &f64::to_le_bytes);
    Ok(Some(cx.b.constant(Constant::new("", DType::F64, sizes, data))?))
}

/// Words of the state of a Mersenne twister (MT19937).
const WORDS: usize = 624;
/// How far ahead the word is that the next state of a word mixes in.
const AHEAD: usize = 397;

/// The generator by which the standard's definition of random operators is written, NumPy's `RandomState`.
struct Twister {
    state: Vec<u32>,
    position: usize,
}

impl Twister {
    fn new(seed: u32) -> Twister {
        let mut state = vec![seed];
        for k in 1..WORDS as u32 {
            let last = state[state.len() - 1];
            state.push((last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(k));
        }
        Twister { state, position: WORDS }
    }

    fn turn(&mut self) {
        for k in 0..WORDS {
            let joined = (self.state[k] & 0x8000_0000) | (self.state[(k + 1) % WORDS] & 0x7fff_ffff);
            let twist = if joined & 1 == 0 { 0 } else { 0x9908_b0df };
            self.state[k] = self.state[(k + AHEAD) % WORDS] ^ (joined >> 1) ^ twist;
        }
        self.position = 0;
    }

    fn word(&mut self) -> u32 {
        if self.position == WORDS {
            self.turn();
        }
        let mut word = self.state[self.position];
        self.position += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// A number of 53 bits from 0 to below 1.
    fn uniform(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::onnx::testing::{Model, int};
    use crate::interpret::Tensor;

    #[test]
    fn a_seed_decides_what_stays() {
        let of = |training: bool| {
            Model::new(13)
                .input("x", Tensor::from_f32(&[3], &[1.0; 3]))
                .input("training", Tensor::from_bool(&[], &[training]))
                .constant("sizes", &Tensor::from_i64(&[1], &[3]))
                .constant("ratio", &Tensor::from_f32(&[], &[0.6]))
                .node("Reshape", &["x", "sizes"], &["fixed"], &[])
                .node("Dropout", &["fixed", "ratio", "training"], &["y", "mask"], &[int("seed", 0)])
                .run(&["y", "mask"])
        };
        let [value, mask] = of(true).try_into().unwrap();
        let expected = [0.0, 2.5, 2.5];
        assert!(value.to_f64().iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{value:?}");
        assert_eq!(mask.to_f64(), [0.0, 1.0, 1.0]);
        assert_eq!(of(false)[0].to_f64(), [1.0; 3]);
    }

    /// The numbers that `numpy.random.RandomState(0).uniform()` gives.
    #[test]
    fn a_seed_gives_the_numbers_of_the_definition() {
        let mut twister = Twister::new(0);
        let found: Vec<f64> = (0..400).map(|_| twister.uniform()).collect();
        assert_eq!(found[..3], [0.548_813_503_927_324_7, 0.715_189_366_372_419_5, 0.602_763_376_071_643_9]);
        assert_eq!(found[399], 0.185_232_325_236_183_94);
    }
}
