//! What a search found.

use super::groups::{Assignment, Group};
use super::placement::PlacementFilter;
use super::statistics::{Timing, rank_correlation};

/// What is known of one way to run a group of kernels.
#[derive(Clone, PartialEq, Debug)]
pub enum Knowledge {
    /// It was not tried: no time was left, or it is thought to be hopeless.
    Untried,
    /// It was measured.
    Timed(Timing),
    /// It does not give what it should, or ends the process.
    Refused(String),
}

/// Whole runs without records and with the winners; none if no run counts.
pub type Whole = Option<[Timing; 2]>;

/// What a search found.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// For each group what is known of each of its ways.
    pub known: Vec<Vec<Knowledge>>,
    /// The way of each group that wins.
    pub winners: Assignment,
    /// Those in one go; none, too, where nothing but the first ways won.
    pub whole: Whole,
    /// Where the threads were meanwhile.
    pub apart: PlacementFilter,
}

impl Outcome {
    /// The time of a way.
    pub fn timing(&self, group: usize, way: usize) -> Option<Timing> {
        match &self.known[group][way] {
            Knowledge::Timed(timing) => Some(*timing),
            Knowledge::Untried | Knowledge::Refused(_) => None,
        }
    }

    /// Whether nothing but the first ways was measured or refused.
    pub fn is_empty(&self) -> bool {
        self.known.iter().all(|known| known.iter().skip(1).all(|own| *own == Knowledge::Untried))
    }

    /// Whether the first way of any group was measured.
    pub fn has_firsts(&self) -> bool {
        (0..self.known.len()).any(|group| self.timing(group, 0).is_some())
    }

    /// The ways of a group that were measured, fastest first.
    pub fn ranked(&self, group: usize) -> Vec<(usize, Timing)> {
        let candidates = 0..self.known[group].len();
        let mut all: Vec<(usize, Timing)> =
            candidates.filter_map(|way| Some((way, self.timing(group, way)?))).collect();
        all.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
        all
    }

    /// How well predicted costs order what was measured, for each template and kind of question: its name, the mean over kernels, and their number.
    /// Times that noise does not tell apart are equal; a kernel of which all are says nothing.
    pub fn correlations(&self, groups: &[Group]) -> Vec<(String, f64, usize)> {
        let mut all: Vec<(String, f64, usize)> = Vec::new();
        for (position, group) in groups.iter().enumerate() {
            let timed = self.ranked(position);
            let measured: Vec<(f64, Timing)> =
                timed.iter().map(|(way, timing)| (group.candidates[*way].cost, *timing)).collect();
            let Some(own) = rank_correlation(&measured) else { continue };
            let template = group.candidates[0].setting.kind();
            match all.iter_mut().find(|(name, ..)| name == template) {
                Some((_, mean, count)) => {
                    *mean = (*mean * *count as f64 + own) / (*count as f64 + 1.0);
                    *count += 1;
                }
                None => all.push((template.to_owned(), own, 1)),
            }
        }
        all
    }

    /// How many of the groups' first ways are within 15 % of the best, and of how many.
    pub fn good_defaults(&self) -> (usize, usize) {
        let measured: Vec<bool> = (0..self.known.len())
            .filter_map(|group| {
                let first = self.timing(group, 0)?;
                let best = self.ranked(group).first()?.1;
                Some(first.median <= 1.15 * best.median)
            })
            .collect();
        (measured.iter().filter(|good| **good).count(), measured.len())
    }
}
