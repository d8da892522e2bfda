//! What there is to try: the kernels of a model that are one by their key, with their ways.

use aoti_compiler::compile::{OpenKernel, OpenWay};
use aoti_compiler::schedule::{KernelKey, Records};

/// Kernels of one key: they are run in one way.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Group {
    pub(crate) key: KernelKey,
    /// The first kernel's name.
    pub(crate) name: String,
    /// Positions among the kernels of a run.
    pub(crate) kernels: Vec<usize>,
    /// The ways to run them; the first is taken without a record.
    pub(crate) ways: Vec<OpenWay>,
    /// The ways that are tried, by position: never the first, which is always measured.
    pub(crate) tried: Vec<usize>,
}

/// The way of each group, by position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Assignment(pub(crate) Vec<usize>);

impl Group {
    /// Tries a way before the others: where time runs out, it is measured.
    pub(crate) fn try_first(&mut self, way: usize) {
        if let Some(position) = self.tried.iter().position(|tried| *tried == way) {
            self.tried[..=position].rotate_right(1);
        }
    }
}

impl Assignment {
    /// As without records.
    pub(crate) fn first(groups: &[Group]) -> Assignment {
        Assignment(vec![0; groups.len()])
    }

    /// The groups that have another way than the first, with that.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        let all = self.0.iter().copied().enumerate();
        all.filter(|(_, way)| *way != 0).collect()
    }

    /// Only these groups have another way than the first.
    pub(crate) fn of(groups: &[Group], pairs: &[(usize, usize)]) -> Assignment {
        let mut all = Assignment::first(groups);
        pairs.iter().for_each(|(group, way)| all.0[*group] = *way);
        all
    }

    /// Records that make a build take these ways.
    pub(crate) fn records(&self, groups: &[Group]) -> Records {
        let mut records = Records::none();
        for (group, way) in groups.iter().zip(&self.0) {
            records.set(group.key.clone(), group.ways[*way].setting.clone());
        }
        records
    }
}

/// The groups of a model that have more than one way, of those targets and names that are wanted, in the order of the run.
pub(crate) fn groups(kernels: &[OpenKernel], families: &[&str], threads: u16, only: &[String]) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    let is_wanted = |kernel: &&OpenKernel| families.iter().any(|family| kernel.is_for(family));
    for kernel in kernels.iter().filter(is_wanted) {
        if let Some(known) = all.iter_mut().find(|group| group.key == kernel.key) {
            known.kernels.push(kernel.index);
            if only.contains(&kernel.name) {
                known.name.clone_from(&kernel.name);
            }
            continue;
        }
        let tried = kernel.ways.iter().enumerate().skip(1).filter(|(_, way)| way.is_worth_trying(threads));
        all.push(Group {
            key: kernel.key.clone(),
            name: kernel.name.clone(),
            kernels: vec![kernel.index],
            tried: tried.map(|(position, _)| position).collect(),
            ways: kernel.ways.clone(),
        });
    }
    all.retain(|group| !group.tried.is_empty() && (only.is_empty() || only.contains(&group.name)));
    all
}

/// Assignments that have every way that is tried in one of them: as few as there can be, or one for each way.
pub(crate) fn assignments(groups: &[Group], together: bool) -> Vec<Assignment> {
    if !together {
        let pairs =
            groups.iter().enumerate().flat_map(|(group, own)| own.tried.iter().map(move |way| (group, *way)));
        return pairs.map(|pair| Assignment::of(groups, &[pair])).collect();
    }
    let most = groups.iter().map(|group| group.tried.len()).max().unwrap_or(0);
    let nth =
        |n: usize| Assignment(groups.iter().map(|group| group.tried.get(n).copied().unwrap_or(0)).collect());
    (0..most).map(nth).collect()
}
