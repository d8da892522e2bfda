//! Constants that were made by scaling whole numbers, runs of which share a scale: what a program dequantises when it is compiled.

/// What a constant of floats was made of: each element is an integer, converted, times the scale of its run, and with the offset of its
/// run added to that where there are such. Elements of half types are rounded to them, once.
#[derive(Clone, PartialEq, Debug)]
pub struct Groups {
    /// The integers, in the order of the elements.
    pub integers: Vec<i16>,
    /// Elements of a run; as many as divide all of them.
    pub run: usize,
    /// The scale of each run.
    pub scales: Vec<f32>,
    /// What is added to the numbers of each run after they are scaled, where anything is.
    pub offsets: Option<Vec<f32>>,
}

/// Elements of the shortest runs that are worth it: shorter ones need as much memory for scales as for numbers.
const SHORTEST: usize = 16;
/// Elements from which on a constant is worth it.
const LEAST_ELEMENTS: usize = 4096;

impl Groups {
    /// Of the factors of each element, if they are such.
    pub fn of(integers: &[f64], scales: &[f64]) -> Option<Groups> {
        Groups::with_offsets(integers, scales, None)
    }

    /// Of the factors of each element, and what is added to their product.
    pub fn with_offsets(integers: &[f64], scales: &[f64], offsets: Option<&[f64]>) -> Option<Groups> {
        let count = integers.len();
        if count != scales.len() || count < LEAST_ELEMENTS || offsets.is_some_and(|own| own.len() != count) {
            return None;
        }
        let whole = |number: &f64| (number.fract() == 0.0 && number.abs() <= 255.0).then_some(*number as i16);
        let integers: Vec<i16> = integers.iter().map(whole).collect::<Option<_>>()?;
        let mut run = scales.len();
        let differ = |of: &[f64], at: usize| of[at].to_bits() != of[at - 1].to_bits();
        for at in 1..scales.len() {
            let is_other = differ(scales, at) || offsets.is_some_and(|offsets| differ(offsets, at));
            if is_other && !at.is_multiple_of(run) {
                run = common_divisor(run, at);
                if run < SHORTEST {
                    return None;
                }
            }
        }
        let each = |of: &[f64]| of.iter().step_by(run).map(|number| *number as f32).collect::<Vec<f32>>();
        Some(Groups { integers, run, scales: each(scales), offsets: offsets.map(each) })
    }

    /// Those of several constants, one behind the other.
    pub fn joined(parts: &[&Groups]) -> Option<Groups> {
        let run = parts.iter().map(|part| part.run).reduce(common_divisor).filter(|run| *run >= SHORTEST)?;
        let spread = |part: &Groups, of: &[f32]| -> Vec<f32> {
            of.iter().flat_map(|number| std::iter::repeat_n(*number, part.run / run)).collect()
        };
        let has_offsets = parts.iter().any(|part| part.offsets.is_some());
        let offsets_of = |part: &&Groups| match &part.offsets {
            Some(offsets) => spread(part, offsets),
            None => vec![0.0; part.integers.len() / run],
        };
        Some(Groups {
            integers: parts.iter().flat_map(|part| part.integers.iter().copied()).collect(),
            run,
            scales: parts.iter().flat_map(|part| spread(part, &part.scales)).collect(),
            offsets: has_offsets.then(|| parts.iter().flat_map(offsets_of).collect()),
        })
    }

    /// Of whole numbers that are converted, and not scaled.
    pub fn plain(integers: &[f64]) -> Option<Groups> {
        Groups::of(integers, &vec![1.0; integers.len()])
    }

    /// Whether the scale of each run has a value of its own beside one, or runs have offsets.
    pub fn is_scaled(&self) -> bool {
        self.offsets.is_some() || self.scales.iter().any(|scale| *scale != 1.0)
    }

    /// An element, as a number of `f32`.
    pub fn element(&self, at: usize) -> f32 {
        let product = f32::from(self.integers[at]) * self.scales[at / self.run];
        self.offsets.as_ref().map_or(product, |offsets| product + offsets[at / self.run])
    }

    /// The elements of a group, and the bits of a number, where columns of `k` elements that lie one after the other consist of groups of
    /// so many, a multiple of `least`, without offsets; signed bytes hold what numbers of four bits are counted from.
    pub fn in_columns(&self, k: usize, least: usize) -> Option<(usize, usize)> {
        let rows = if self.run.is_multiple_of(k.max(1)) { k } else { self.run };
        let divides =
            self.offsets.is_none() && rows > 0 && rows.is_multiple_of(least) && k.is_multiple_of(rows);
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
