//! Constants that were made by scaling whole numbers, runs of which share a scale: what a program dequantises when it is compiled.

/// What a constant of floats was made of: each element is an integer, converted, times the scale of its run. Products of halves are
/// rounded to their type, once.
#[derive(Clone, PartialEq, Debug)]
pub struct Groups {
    /// The integers, in the order of the elements.
    pub integers: Vec<i16>,
    /// Elements of a run; as many as divide all of them.
    pub run: usize,
    /// The scale of each run.
    pub scales: Vec<f32>,
}

/// Elements of the shortest runs that are worth it: shorter ones need as much memory for scales as for numbers.
const SHORTEST: usize = 16;
/// Elements from which on a constant is worth it.
const LEAST_ELEMENTS: usize = 4096;

impl Groups {
    /// Of the factors of each element, if they are such.
    pub fn of(integers: &[f64], scales: &[f64]) -> Option<Groups> {
        if integers.len() != scales.len() || integers.len() < LEAST_ELEMENTS {
            return None;
        }
        let whole = |number: &f64| (number.fract() == 0.0 && number.abs() <= 255.0).then_some(*number as i16);
        let integers: Vec<i16> = integers.iter().map(whole).collect::<Option<_>>()?;
        let mut run = scales.len();
        for at in 1..scales.len() {
            if scales[at].to_bits() != scales[at - 1].to_bits() && !at.is_multiple_of(run) {
                run = common_divisor(run, at);
                if run < SHORTEST {
                    return None;
                }
            }
        }
        let scales = scales.iter().step_by(run).map(|scale| *scale as f32).collect();
        Some(Groups { integers, run, scales })
    }

    /// Of whole numbers that are converted, and not scaled.
    pub fn plain(integers: &[f64]) -> Option<Groups> {
        Groups::of(integers, &vec![1.0; integers.len()])
    }

    /// Whether the scale of each run has a value of its own beside one.
    pub fn is_scaled(&self) -> bool {
        self.scales.iter().any(|scale| *scale != 1.0)
    }

    /// The elements of a group, and the bits of a number, where columns of `k` elements that lie one after the other consist of groups of
    /// so many, a multiple of `least`; signed bytes hold what numbers of four bits are counted from.
    pub fn in_columns(&self, k: usize, least: usize) -> Option<(usize, usize)> {
        let rows = if self.run.is_multiple_of(k.max(1)) { k } else { self.run };
        let divides = rows > 0 && rows.is_multiple_of(least) && k.is_multiple_of(rows);
        let bits = if divides { self.bits(rows)? } else { return None };
        let is_small = |group: &[i16]| group.iter().min().is_some_and(|number| i8::try_from(*number).is_ok());
        let bits = if self.integers.chunks(rows).all(is_small) { bits } else { 8 };
        Some((rows, bits))
    }

    /// The bits of a number in which those of each group of so many elements fit, counted from the least of them.
    pub fn bits(&self, group: usize) -> Option<usize> {
        let extent = |group: &[i16]| {
            let least = group.iter().min().copied().unwrap_or(0);
            i32::from(group.iter().max().copied().unwrap_or(0)) - i32::from(least)
        };
        let extent = self.integers.chunks(group.max(1)).map(extent).max()?;
        [4, 8].into_iter().find(|bits| extent < 1 << bits)
    }
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        let integers: Vec<f64> = (0..8192).map(|k| f64::from(k % 16 - 8)).collect();
        let scales = |run: usize| (0..8192).map(|k| 0.5 + (k / run) as f64).collect::<Vec<f64>>();
        let run = |run| Groups::of(&integers, &scales(run)).map(|groups| (groups.run, groups.scales.len()));
        assert_eq!(run(32), Some((32, 256)));
        assert_eq!(run(8192), Some((8192, 1)));
        assert_eq!(run(8), None);
        let groups = Groups::of(&integers, &scales(32)).expect("they are groups");
        assert_eq!(groups.bits(32), Some(4));
        let odd: Vec<f64> = integers.iter().map(|number| number * 10.0).collect();
        assert_eq!(Groups::of(&odd, &scales(32)).expect("they are groups").bits(32), Some(8));
        assert_eq!(Groups::of(&[0.5; 8192], &scales(32)), None);
        assert_eq!(Groups::of(&[f64::NAN; 8192], &scales(32)), None);
    }
}
