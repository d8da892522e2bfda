//! Roots of unity, rounded once, and the tables that the passes of a plan read, in the order in which `fourier.h` reads them.

use super::plan::{FftMethod, Plan};
use super::reference::{Number, chirp, spectrum};
use std::f64::consts::{FRAC_1_SQRT_2, TAU};

/// `e^(-2 pi i k / n)`, from an angle of up to an eighth of a turn: numbers that are equal by symmetry have equal bits, and
/// quarters are exact.
pub(super) fn root(k: usize, n: usize) -> Number {
    let eighth = |k: usize| {
        if k == n {
            return (FRAC_1_SQRT_2, FRAC_1_SQRT_2);
        }
        let angle = TAU * k as f64 / (8 * n) as f64;
        (angle.cos(), angle.sin())
    };
    // In eighths of a turn, of which the odd ones are counted from their ends.
    let part = 8 * (k % n);
    let (octant, rest) = (part / n, part % n);
    let (near, far) = (eighth(rest), eighth(n - rest));
    let (cos, sin) = match octant {
        0 => near,
        1 => (far.1, far.0),
        2 => (-near.1, near.0),
        3 => (-far.0, far.1),
        4 => (-near.0, -near.1),
        5 => (-far.1, -far.0),
        6 => (near.1, -near.0),
        _ => (far.0, -far.1),
    };
    // Without negative zeros.
    (cos + 0.0, 0.0 - sin)
}

fn planes(numbers: impl Iterator<Item = Number> + Clone) -> impl Iterator<Item = f64> {
    numbers.clone().map(|x| x.0).chain(numbers.map(|x| x.1))
}

impl Plan {
    /// The elements that code of this plan reads.
    pub fn roots(&self) -> Vec<f64> {
        let count = |x: i64| usize::try_from(x).expect("a length");
        let n = count(self.length);
        let mut all = Vec::with_capacity(count(self.root_count()));
        let radices: Vec<usize> = self.radices.iter().map(|radix| count(*radix)).collect();
        let whole: usize = radices.iter().product();
        let mut left = whole;
        for (pass, radix) in radices.iter().copied().enumerate() {
            let (length, m) = (left, left / radix);
            left = m;
            if pass == 0 {
                (1..radix).for_each(|j| all.extend(planes((0..m).map(|p| root(p * j, length)))));
            } else if m > 1 {
                let pairs = (0..m).flat_map(|p| (1..radix).map(move |j| root(p * j, length)));
                all.extend(pairs.flat_map(|x| [x.0, x.1]));
            }
        }
        match self.way {
            FftMethod::Matrix | FftMethod::MixedRadix => {}
            FftMethod::RealPacked => all.extend(planes((0..=whole).map(|k| root(k, n)))),
            FftMethod::Bluestein => {
                let chirp = chirp(n);
                all.extend(planes(chirp.iter().copied()));
                let filter = spectrum(&chirp, whole);
                all.extend(planes(filter.iter().map(|x| (x.0 / whole as f64, x.1 / whole as f64))));
            }
        }
        all
    }

    /// How many they are.
    pub fn root_count(&self) -> i64 {
        let whole = self.pass_length();
        let passes = self.radices.iter().scan(whole, |left, radix| {
            *left /= radix;
            Some(if *left > 1 { 2 * (radix - 1) * *left } else { 0 })
        });
        let passes: i64 = passes.sum();
        passes
            + match self.way {
                FftMethod::Matrix | FftMethod::MixedRadix => 0,
                FftMethod::RealPacked => 2 * (whole + 1),
                FftMethod::Bluestein => 2 * (self.length + whole),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::root;

    #[test]
    fn roots_are_symmetric_to_the_last_bit() {
        for n in [8, 12, 30, 64, 1000, 10007] {
            for k in 0..n {
                let (cos, sin) = root(k, n);
                let (mirrored, turned) = (root((n - k) % n, n), root(k + n, n));
                assert_eq!((cos, sin + 0.0), (mirrored.0, 0.0 - mirrored.1), "{k} of {n}");
                assert_eq!((cos, sin), turned);
                let angle = std::f64::consts::TAU * k as f64 / n as f64;
                assert!((cos - angle.cos()).abs() < 1e-15 && (sin + angle.sin()).abs() < 1e-15, "{k} of {n}");
            }
        }
        assert_eq!(root(1, 4), (0.0, -1.0));
        assert_eq!(root(2, 4), (-1.0, 0.0));
        assert_eq!(root(1, 8).0, -root(1, 8).1);
    }
}
