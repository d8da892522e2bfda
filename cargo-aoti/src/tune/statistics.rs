//! What many measurements of one thing say.

/// The middle of many measurements, and how far they lie apart.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Timing {
    /// The median, in microseconds.
    pub(crate) median: f64,
    /// Half the distance between the quartiles.
    pub(crate) spread: f64,
    /// The lower quartile: what others do on the machine meanwhile moves it least.
    pub(crate) low: f64,
    /// Measurements.
    pub(crate) count: usize,
}

impl Timing {
    /// Of measurements in any order; none where there are none.
    pub(crate) fn of(mut samples: Vec<f64>) -> Option<Timing> {
        samples.retain(|sample| sample.is_finite());
        samples.sort_by(f64::total_cmp);
        let at = |part: f64| samples[((samples.len() - 1) as f64 * part).round() as usize];
        (!samples.is_empty()).then(|| Timing {
            median: at(0.5),
            spread: (at(0.75) - at(0.25)) / 2.0,
            low: at(0.25),
            count: samples.len(),
        })
    }

    /// How much less than `other` it must be so that nobody takes noise for a gain.
    pub(crate) fn margin(self, other: Timing) -> f64 {
        (LEAST_GAIN * other.median).max((self.spread + other.spread) / 2.0)
    }

    /// Whether it is less than the other beyond noise.
    pub(crate) fn is_faster_than(self, other: Timing) -> bool {
        self.median + self.margin(other) < other.median && self.low * (1.0 + LEAST_GAIN) < other.low
    }
}

/// Gains below this part are not worth a choice.
const LEAST_GAIN: f64 = 0.02;

/// Numbers that order measurements, given fastest first, as far as they differ beyond noise: equal ones have one number.
pub(crate) fn classes(sorted: &[Timing]) -> Vec<f64> {
    let (mut fastest, mut class) = (sorted.first().copied(), 0.0);
    let of = |timing: &Timing| {
        if fastest.is_some_and(|fastest| fastest.is_faster_than(*timing)) {
            (fastest, class) = (Some(*timing), class + 1.0);
        }
        class
    };
    sorted.iter().map(of).collect()
}

/// Spearman's correlation of ranks: 1 where one order is the other, -1 where it is its reverse, 0 where the first values are
/// all equal and know of none. None for fewer than three, and where the second values are equal.
pub(crate) fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let a = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let b = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let of = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let (own, other) = (of(&a, &a), of(&b, &b));
    (other > 0.0).then(|| if own > 0.0 { of(&a, &b) / (own * other).sqrt() } else { 0.0 })
}

/// The rank of each value; equal ones share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_not_moved_by_a_few_that_are_far_off() {
        let timing = Timing::of(vec![10.0, 11.0, 12.0, 9.0, 1e9]).unwrap();
        assert_eq!((timing.median, timing.spread, timing.count), (11.0, 1.0, 5));
        assert_eq!(Timing::of(vec![f64::INFINITY, f64::NAN]), None);
        assert_eq!(Timing::of(vec![]), None);
    }

    #[test]
    fn noise_is_no_gain() {
        let timing = |median: f64, spread: f64| Timing { median, spread, low: median - spread, count: 9 };
        assert!(timing(90.0, 1.0).is_faster_than(timing(100.0, 1.0)));
        assert!(!timing(99.0, 0.1).is_faster_than(timing(100.0, 0.1)));
        assert!(!timing(90.0, 15.0).is_faster_than(timing(100.0, 15.0)));
        assert!(
            !timing(90.0, 1.0).is_faster_than(Timing { low: 89.0, ..timing(100.0, 11.0) }),
            "others were busy"
        );
    }

    #[test]
    fn times_that_noise_does_not_tell_apart_are_equal() {
        let timing = |median: f64, spread: f64| Timing { median, spread, low: median - spread, count: 9 };
        let sorted =
            [timing(10.0, 0.1), timing(10.1, 0.1), timing(12.0, 0.1), timing(12.1, 3.0), timing(20.0, 0.1)];
        assert_eq!(classes(&sorted), [0.0, 0.0, 1.0, 1.0, 2.0]);
        assert_eq!(classes(&[]), [0.0; 0]);
    }

    #[test]
    fn correlation_is_of_ranks() {
        let correlation = |pairs: &[(f64, f64)]| rank_correlation(pairs);
        assert_eq!(correlation(&[(1.0, 10.0), (2.0, 1e6), (3.0, 1e9)]), Some(1.0));
        assert_eq!(correlation(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), Some(-1.0));
        assert_eq!(correlation(&[(1.0, 3.0), (1.0, 2.0), (1.0, 1.0)]), Some(0.0));
        assert_eq!(correlation(&[(1.0, 3.0), (2.0, 3.0), (3.0, 3.0)]), None);
        assert_eq!(correlation(&[(1.0, 3.0), (2.0, 2.0)]), None);
    }
}
