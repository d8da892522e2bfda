//! Plans the passes by which a transform is computed: the cheapest order of factors.

use super::{Form, Fourier};
use crate::dtype::DType;
use std::collections::BTreeMap;

/// Shorter rows are products with a matrix: passes want a few vectors of every level.
const SHORTEST: i64 = 32;
/// The factors that passes are written for.
const RADICES: [i64; 18] = [2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 23, 29];
/// Bytes of the vectors that costs are counted for.
const VECTOR: i64 = 64;

/// How rows are computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FftMethod {
    /// As a product with the matrix of roots, which is no pass.
    Matrix,
    /// By passes over the row.
    MixedRadix,
    /// As half as many complex numbers, of which real ones are the parts.
    RealPacked,
    /// As a convolution with a chirp, by transforms of a length without large factors.
    Bluestein,
}

/// What the passes of a transform are.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The length of the transform.
    pub length: i64,
    /// How rows are computed.
    pub way: FftMethod,
    /// The factors, in the order of passes; none of a product, else two at least.
    pub radices: Vec<i64>,
}

impl Plan {
    /// The plan for elements of a type.
    pub fn of(fourier: &Fourier, dtype: DType) -> Plan {
        let width = VECTOR / i64::try_from(dtype.size()).expect("a few bytes");
        let length = fourier.length;
        let plan = |way, radices| Plan { length, way, radices };
        if length < SHORTEST {
            return plan(FftMethod::Matrix, vec![]);
        }
        let is_real = matches!(fourier.form, Form::ToHalf | Form::FromHalf);
        if is_real
            && length % 2 == 0
            && let Some((_, radices)) = Search::new(length / 2, width).best(length / 2)
        {
            return plan(FftMethod::RealPacked, radices);
        }
        if let Some((_, radices)) = Search::new(length, width).best(length) {
            return plan(FftMethod::MixedRadix, radices);
        }
        let longer = smooth_lengths(2 * length - 1);
        let best = longer.into_iter().filter_map(|m| Search::new(m, width).best(m));
        let best = best.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a power of two is among them");
        plan(FftMethod::Bluestein, best.1)
    }

    /// The length of the passes.
    pub fn pass_length(&self) -> i64 {
        self.radices.iter().product()
    }

    /// Elements that a row is worked on in: two pieces of memory with two planes each, as `fourier.h` has them.
    pub fn work(&self) -> i64 {
        4 * ((self.pass_length() + 15) / 16 * 16 + 32)
    }
}

/// Multiples of 16 from `least` up to the power of two behind it, without primes above 5.
fn smooth_lengths(least: i64) -> Vec<i64> {
    let most = i64::try_from(u64::try_from(least).expect("positive").next_power_of_two()).expect("small");
    let mut lengths = Vec::new();
    let powers = |base: i64| std::iter::successors(Some(1), move |power| Some(power * base));
    for fives in powers(5).take_while(|power| *power <= most) {
        for threes in powers(3).take_while(|power| fives * power <= most) {
            let odd = fives * threes;
            lengths.extend(
                powers(2).skip(4).map(|even| even * odd).take_while(|m| *m <= most).filter(|m| *m >= least),
            );
        }
    }
    lengths
}

/// Looks for the cheapest order of factors.
struct Search {
    n: i64,
    width: i64,
    known: BTreeMap<i64, Option<(f64, Vec<i64>)>>,
}

impl Search {
    fn new(n: i64, width: i64) -> Search {
        Search { n, width, known: BTreeMap::new() }
    }

    /// The cost of the passes that are left, and their factors, when `left` is still to be transformed.
    fn best(&mut self, left: i64) -> Option<(f64, Vec<i64>)> {
        if let Some(known) = self.known.get(&left) {
            return known.clone();
        }
        let mut best: Option<(f64, Vec<i64>)> = None;
        for radix in RADICES.into_iter().filter(|radix| left % radix == 0) {
            let (done, m) = (self.n / left, left / radix);
            // There is a first pass and a last one.
            if done == 1 && m == 1 {
                continue;
            }
            let rest = if m == 1 { Some((0.0, vec![])) } else { self.best(m) };
            let Some((rest, mut radices)) = rest else { continue };
            let cost = self.cost(radix, done, m) + rest;
            if best.as_ref().is_none_or(|best| cost < best.0) {
                radices.insert(0, radix);
                best = Some((cost, radices));
            }
        }
        self.known.insert(left, best.clone());
        best
    }

    /// Instructions of a pass, in elements of vectors.
    fn cost(&self, radix: i64, done: i64, m: i64) -> f64 {
        /// Loads and stores of both parts.
        const MEMORY: f64 = 8.0;
        /// Where numbers and factors exceed the registers.
        const SPILLED: f64 = 4.0;
        let (r, width) = (radix as f64, self.width);
        let turned = if m > 1 { 4.0 * (r - 1.0) / r } else { 0.0 };
        let spilled = if radix > 8 { SPILLED * (r - 8.0) / 8.0 } else { 0.0 };
        let each = MEMORY + operations(radix) / r + turned + spilled;
        let filled = |count: i64| ((count + width - 1) / width * width) as f64 / count as f64;
        let shuffled = if done == 1 {
            // As many shuffles for rows of a vector as for shorter ones.
            2.0 * (width as f64).log2() * filled(radix)
        } else {
            0.0
        };
        let lanes = if done == 1 { filled(m) } else { filled(done) };
        self.n as f64 * lanes * (each + shuffled)
    }
}

/// Instructions of the transform of a few numbers, as `fourier_radix.h` computes it.
fn operations(radix: i64) -> f64 {
    let r = radix as f64;
    match radix {
        2 => 4.0,
        4 => 16.0,
        _ if radix % 2 == 0 || radix == 9 || radix == 15 => {
            let (a, b) = match radix {
                8 => (2, 4),
                16 => (4, 4),
                9 => (3, 3),
                15 => (3, 5),
                _ if radix % 4 == 0 => (4, radix / 4),
                _ => (2, radix / 2),
            };
            let turned = if a % 2 == b % 2 && radix != 15 { 4.0 * ((a - 1) * (b - 1)) as f64 } else { 0.0 };
            b as f64 * operations(a) + a as f64 * operations(b) + turned
        }
        _ => {
            let half = (r - 1.0) / 2.0;
            10.0 * half + 4.0 * half * half
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FftMethod, Plan};
    use crate::dtype::DType;
    use crate::fourier::{Form, Fourier, Norm};

    fn plan(form: Form, length: i64) -> Plan {
        Plan::of(&Fourier { form, length, norm: Norm::One }, DType::F32)
    }

    #[test]
    fn passes_have_the_length_of_the_row() {
        for length in (32..=400).chain([1000, 1155, 10007, 44100]) {
            for form in Form::ALL {
                let plan = plan(form, length);
                assert!(plan.radices.len() >= 2, "{plan:?}");
                match plan.way {
                    FftMethod::Matrix => panic!("{plan:?}"),
                    FftMethod::MixedRadix => assert_eq!(plan.pass_length(), length),
                    FftMethod::RealPacked => assert_eq!(2 * plan.pass_length(), length),
                    FftMethod::Bluestein => {
                        assert!(plan.pass_length() >= 2 * length - 1);
                        assert_eq!(plan.pass_length() % 16, 0);
                    }
                }
                assert_eq!(i64::try_from(plan.roots().len()), Ok(plan.root_count()));
            }
        }
    }

    #[test]
    fn ways_go_by_factors() {
        assert_eq!(plan(Form::Forward, 31).way, FftMethod::Matrix);
        assert_eq!(plan(Form::Forward, 1024).way, FftMethod::MixedRadix);
        assert_eq!(plan(Form::ToHalf, 1024).way, FftMethod::RealPacked);
        assert_eq!(plan(Form::ToHalf, 1155).way, FftMethod::MixedRadix);
        assert_eq!(plan(Form::ToHalf, 34).way, FftMethod::MixedRadix, "half of it is one pass");
        assert_eq!(plan(Form::Forward, 10007).way, FftMethod::Bluestein);
        assert_eq!(plan(Form::FromHalf, 2 * 10007).way, FftMethod::Bluestein);
    }
}
