//! What there is to try: the kernels of a model that are one by their key, with their ways, and before that what decides
//! which kernels there are.

use aoti_compiler::compile::{OpenKernel, TuningCandidate};
use aoti_compiler::schedule::{Records, Setting, TuningKey, TuningStage};

/// Kernels of one key, which are run in one way; or a question whose answers make other kernels, wherever it comes.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// What records know them by.
    pub key: TuningKey,
    /// The sizes that the key leaves open: the input and the axis of each, where it is one of an input.
    pub sizes: Vec<Option<(usize, usize)>>,
    /// The first kernel's name, or what the question is about.
    pub name: String,
    /// Positions among the kernels of a run, with the first way.
    pub kernels: Vec<usize>,
    /// With each of the other ways, where these make other kernels; else empty.
    pub others: Vec<Vec<usize>>,
    /// The ways to run them; the first is taken without a record.
    pub candidates: Vec<TuningCandidate>,
    /// The ways that are tried, by position: never the first, which is always measured.
    pub tried: Vec<usize>,
}

/// The way of each group, by position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment(pub Vec<usize>);

impl Group {
    /// Positions of its kernels in a run where it alone may have another way than the first.
    pub fn positions(&self, way: usize) -> &[usize] {
        way.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.kernels)
    }

    /// Whether its ways make other kernels.
    pub fn makes_kernels(&self) -> bool {
        !self.others.is_empty()
    }

    /// Tries a way in the place of one that is the same, if one is tried; gives the position of that.
    pub fn try_this(&mut self, way: usize) -> Option<usize> {
        let position =
            self.tried.iter().position(|tried| self.candidates[*tried].is_same(&self.candidates[way]))?;
        self.tried[position] = way;
        Some(position)
    }

    /// The same, before the others: where time runs out, it is measured.
    pub fn try_first(&mut self, way: usize) {
        if let Some(position) = self.try_this(way) {
            self.tried[..=position].rotate_right(1);
        }
    }
}

impl Assignment {
    /// As without records.
    pub fn first(groups: &[Group]) -> Assignment {
        Assignment(vec![0; groups.len()])
    }

    /// The groups that have another way than the first, with that.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let all = self.0.iter().copied().enumerate();
        all.filter(|(_, way)| *way != 0).collect()
    }

    /// Only these groups have another way than the first.
    pub fn of(groups: &[Group], pairs: &[(usize, usize)]) -> Assignment {
        let mut all = Assignment::first(groups);
        pairs.iter().for_each(|(group, way)| all.0[*group] = *way);
        all
    }

    /// Records that make a build take these ways, beside others.
    pub fn records(&self, groups: &[Group], mut records: Records) -> Records {
        for (group, way) in groups.iter().zip(&self.0) {
            records.set(group.key.clone(), group.candidates[*way].setting.clone());
        }
        records
    }
}

/// The groups of a model that have more than one way, of those targets and names that are wanted, in the order of the run.
pub fn groups(kernels: &[OpenKernel], families: &[&str], threads: u16, only: &[String]) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    let is_wanted = |kernel: &&OpenKernel| families.iter().any(|family| kernel.is_for(family));
    for kernel in kernels.iter().filter(is_wanted) {
        let Some(index) = kernel.index else { continue };
        if let Some(known) = all.iter_mut().find(|group| group.key == kernel.key) {
            known.kernels.push(index);
            if only.contains(&kernel.name) {
                known.name.clone_from(&kernel.name);
            }
            continue;
        }
        let mut tried: Vec<usize> = Vec::new();
        for (position, way) in kernel.candidates.iter().enumerate().skip(1) {
            let is_new = |known: &usize| !kernel.candidates[*known].is_same(way);
            if way.is_worth_trying(threads) && tried.iter().chain([&0]).all(is_new) {
                tried.push(position);
            }
        }
        all.push(Group {
            key: kernel.key.clone(),
            sizes: kernel.sizes.clone(),
            name: kernel.name.clone(),
            kernels: vec![index],
            others: Vec::new(),
            tried,
            candidates: kernel.candidates.clone(),
        });
    }
    all.retain(|group| !group.tried.is_empty() && (only.is_empty() || only.contains(&group.name)));
    all
}

/// Gives the kernels of a model where one question is answered by a setting.
type Kernels<'a, E> = dyn Fn(&TuningKey, &Setting) -> Result<Vec<OpenKernel>, E> + 'a;

/// What decides at some time which kernels a model has, where other answers are worth trying, of those names that are wanted.
pub fn questions<E>(
    kernels: &[OpenKernel],
    families: &[&str],
    (decided, threads): (TuningStage, u16),
    only: &[String],
    other: &Kernels<'_, E>,
) -> Result<Vec<Group>, E> {
    let is_wanted = |kernel: &&OpenKernel| {
        kernel.index.is_none()
            && kernel.candidates[0].setting.decided() == decided
            && families.iter().any(|family| kernel.is_for(family))
            && (only.is_empty() || only.contains(&kernel.name))
    };
    let mut all = Vec::new();
    for question in kernels.iter().filter(is_wanted) {
        let worth = |way: &usize| question.candidates[*way].is_worth_trying(threads);
        let wanted: Vec<usize> = (1..question.candidates.len()).filter(worth).collect();
        let mut made = vec![kernels.to_vec()];
        for way in 1..question.candidates.len() {
            let is_wanted = wanted.contains(&way);
            made.push(if is_wanted {
                other(&question.key, &question.candidates[way].setting)?
            } else {
                vec![]
            });
        }
        let runs: Vec<Vec<(usize, &TuningKey)>> = made.iter().map(|own| run_of(own, families)).collect();
        let keys = |way: usize| sorted(runs[way].iter().map(|(_, key)| *key).collect());
        let tried: Vec<usize> = wanted.into_iter().filter(|way| keys(*way) != keys(0)).collect();
        let Some(first) = tried.first() else { continue };
        let common =
            tried[1..].iter().fold(common(keys(0), &keys(*first)), |all, way| common(all, &keys(*way)));
        let mut own: Vec<Vec<usize>> = runs.iter().map(|run| beside(run, &common)).collect();
        // What takes no time by itself is measured by all that there is.
        if own[0].is_empty() || tried.iter().any(|way| own[*way].is_empty()) {
            own = runs.iter().map(|run| beside(run, &[])).collect();
        }
        let others = own.split_off(1);
        all.push(Group {
            key: question.key.clone(),
            sizes: question.sizes.clone(),
            name: question.name.clone(),
            kernels: own.remove(0),
            others,
            candidates: question.candidates.clone(),
            tried,
        });
    }
    // Where time runs out, the most promising were measured.
    let least =
        |group: &Group| group.tried.iter().map(|way| group.candidates[*way].cost).fold(f64::MAX, f64::min);
    all.sort_by(|a, b| least(a).total_cmp(&least(b)));
    Ok(all)
}

/// The kernels of a run, in order.
fn run_of<'a>(kernels: &'a [OpenKernel], families: &[&str]) -> Vec<(usize, &'a TuningKey)> {
    let is_for = |kernel: &&OpenKernel| families.iter().any(|family| kernel.is_for(family));
    kernels.iter().filter(is_for).filter_map(|kernel| Some((kernel.index?, &kernel.key))).collect()
}

fn sorted(mut keys: Vec<&TuningKey>) -> Vec<&TuningKey> {
    keys.sort_unstable();
    keys
}

/// What two runs have both, as often as both have it.
fn common<'a>(keys: Vec<&'a TuningKey>, other: &[&TuningKey]) -> Vec<&'a TuningKey> {
    let mut left = other.to_vec();
    let mut is_there = |key: &TuningKey| {
        let at = left.iter().position(|own| *own == key);
        at.map(|at| left.swap_remove(at)).is_some()
    };
    keys.into_iter().filter(|key| is_there(key)).collect()
}

/// Positions of kernels of a run beside some, each of which counts once.
fn beside(run: &[(usize, &TuningKey)], some: &[&TuningKey]) -> Vec<usize> {
    let mut left = some.to_vec();
    let mut is_beside = |key: &TuningKey| {
        let at = left.iter().position(|own| *own == key);
        at.map(|at| left.swap_remove(at)).is_none()
    };
    run.iter().filter(|(_, key)| is_beside(key)).map(|(position, _)| *position).collect()
}

/// Assignments that have every way that is tried in one of them: as few as there can be, or one for each way.
pub fn assignments(groups: &[Group], together: bool) -> Vec<Assignment> {
    // Where two answers make kernels, nobody knows whose the kernels are that are new.
    if !together || groups.iter().any(Group::makes_kernels) {
        let pairs =
            groups.iter().enumerate().flat_map(|(group, own)| own.tried.iter().map(move |way| (group, *way)));
        return pairs.map(|pair| Assignment::of(groups, &[pair])).collect();
    }
    let most = groups.iter().map(|group| group.tried.len()).max().unwrap_or(0);
    let nth =
        |n: usize| Assignment(groups.iter().map(|group| group.tried.get(n).copied().unwrap_or(0)).collect());
    (0..most).map(nth).collect()
}
