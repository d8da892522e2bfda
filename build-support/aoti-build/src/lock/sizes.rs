//! The sizes at which a kernel was measured that its key leaves open.

use std::fmt;

/// A size for each symbol of a kernel's key, in the order of the key. Of one that depends on data nothing is known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Sizes(Vec<Option<i64>>);

impl Sizes {
    /// Of a key that leaves these open, for inputs of these sizes.
    pub fn of(open: &[Option<(usize, usize)>], inputs: &[Vec<i64>]) -> Sizes {
        let of_axis = |(input, axis): (usize, usize)| inputs.get(input)?.get(axis).copied();
        Sizes(open.iter().map(|place| place.and_then(of_axis)).collect())
    }

    /// Whether the key leaves none open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads what [`fmt::Display`] writes of sizes that are not empty.
    pub(super) fn parse(text: &str) -> Option<Sizes> {
        let size = |word: &str| match word {
            UNKNOWN => Some(None),
            digits => digits.parse::<i64>().ok().filter(|size| *size >= 0).map(Some),
        };
        text.split(BETWEEN).map(size).collect::<Option<_>>().map(Sizes)
    }
}

const BETWEEN: char = 'x';
const UNKNOWN: &str = "?";

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, size) in self.0.iter().enumerate() {
            if position > 0 {
                write!(f, "{BETWEEN}")?;
            }
            match size {
                Some(size) => write!(f, "{size}")?,
                None => f.write_str(UNKNOWN)?,
            }
        }
        Ok(())
    }
}
