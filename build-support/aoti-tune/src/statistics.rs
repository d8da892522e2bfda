//! What many measurements of one thing say.

/// The middle of many measurements, and how far they lie apart.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Timing {
    /// The median, in microseconds.
    pub median: f64,
    /// Half the distance between the quartiles.
    pub spread: f64,
    /// The lower quartile: what others do on the machine meanwhile moves it least.
    pub low: f64,
    /// Measurements.
    pub count: usize,
}

impl Timing {
    /// Of measurements in any order; none where there are none.
    pub fn of(mut samples: Vec<f64>) -> Option<Timing> {
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
    pub fn margin(self, other: Timing) -> f64 {
        (LEAST_GAIN * other.median).max((self.spread + other.spread) / 2.0).max(RESOLUTION)
    }

    /// Whether it is so much less than a way that is recorded that the record changes: spreads are those of minutes, and do not
    /// tell what another day brings.
    pub fn displaces(self, recorded: Timing) -> bool {
        let most = (LEAST_CHANGE * recorded.median).max(CERTAIN * self.margin(recorded));
        self.is_faster_than(recorded) && self.median + most < recorded.median
    }

    /// Whether it is less than the other beyond noise.
    pub fn is_faster_than(self, other: Timing) -> bool {
        self.median + self.margin(other) < other.median && self.low * (1.0 + LEAST_GAIN) < other.low
    }
}

/// Gains below this part are not worth a choice.
const LEAST_GAIN: f64 = 0.02;
/// Gains below this part are not worth a change of what is recorded.
const LEAST_CHANGE: f64 = 0.05;
/// Gains of fewer margins are not certain enough for that.
const CERTAIN: f64 = 3.0;
/// Microseconds that clocks tell apart.
const RESOLUTION: f64 = 0.01;

/// How well costs order what was measured (Somers' D): 1 where every two that measurements tell apart are in the order of
/// their costs, -1 where none are; two of one cost are half right. None where noise tells no two apart.
pub fn rank_correlation(measured: &[(f64, Timing)]) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for (position, (cost, timing)) in measured.iter().enumerate() {
        for (other_cost, other) in &measured[..position] {
            let (less, more) = if timing.is_faster_than(*other) {
                (cost, other_cost)
            } else if other.is_faster_than(*timing) {
                (other_cost, cost)
            } else {
                continue;
            };
            count += 1;
            sum += match less.total_cmp(more) {
                std::cmp::Ordering::Less => 1.0,
                std::cmp::Ordering::Equal => 0.0,
                std::cmp::Ordering::Greater => -1.0,
            };
        }
    }
    (count > 0).then(|| sum / f64::from(count))
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
    fn a_record_changes_for_what_another_day_would_show_too() {
        let timing = |median: f64, spread: f64| Timing { median, spread, low: median - spread, count: 9 };
        let recorded = timing(100.0, 2.0);
        assert!(timing(93.0, 2.0).displaces(recorded) && !timing(95.0, 2.0).displaces(recorded));
        assert!(timing(96.0, 2.0).is_faster_than(recorded), "but none would be taken without a record");
        assert!(!timing(80.0, 20.0).displaces(timing(100.0, 20.0)));
        assert!(!timing(0.2, 0.0).displaces(timing(0.21, 0.0)), "one tick of the clock");
    }

    #[test]
    fn correlation_is_of_what_noise_tells_apart() {
        let timing = |median: f64| Timing { median, spread: 0.1, low: median - 0.1, count: 9 };
        let correlation = |pairs: &[(f64, f64)]| {
            let measured: Vec<_> = pairs.iter().map(|(cost, median)| (*cost, timing(*median))).collect();
            rank_correlation(&measured)
        };
        assert_eq!(correlation(&[(1.0, 10.0), (2.0, 1e6), (3.0, 1e9)]), Some(1.0));
        assert_eq!(correlation(&[(1.0, 30.0), (2.0, 20.0), (3.0, 10.0)]), Some(-1.0));
        assert_eq!(correlation(&[(1.0, 30.0), (1.0, 20.0), (1.0, 10.0)]), Some(0.0));
        assert_eq!(correlation(&[(1.0, 30.0), (2.0, 30.0), (3.0, 30.1)]), None);
        assert_eq!(correlation(&[(1.0, 10.0), (3.0, 10.1), (2.0, 20.0)]), Some(0.0), "the first two are one");
        assert_eq!(correlation(&[(1.0, 10.0), (2.0, 20.0)]), Some(1.0));
        assert_eq!(correlation(&[(1.0, 10.0)]), None);
    }
}
