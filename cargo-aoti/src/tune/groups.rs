//! What there is to try: the kernels of a model that are one by their key, with their ways, and pairs of kernels that may
//! become one.

use aoti_compiler::compile::{OpenKernel, OpenWay};
use aoti_compiler::schedule::{KernelKey, Records, Setting};

/// Kernels of one key, which are run in one way; or a pair of kernels that may become one, wherever it comes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Group {
    pub(crate) key: KernelKey,
    /// The sizes that the key leaves open: the input and the axis of each, where it is one of an input.
    pub(crate) sizes: Vec<Option<(usize, usize)>>,
    /// The first kernel's name, or the names of both.
    pub(crate) name: String,
    /// Positions among the kernels of a run, with the first way.
    pub(crate) kernels: Vec<usize>,
    /// With another way, where that makes other kernels of them.
    pub(crate) others: Option<Vec<usize>>,
    /// The ways to run them; the first is taken without a record.
    pub(crate) ways: Vec<OpenWay>,
    /// The ways that are tried, by position: never the first, which is always measured.
    pub(crate) tried: Vec<usize>,
}

/// The way of each group, by position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Assignment(pub(crate) Vec<usize>);

impl Group {
    /// Positions of its kernels in a run where it alone may have another way than the first.
    pub(crate) fn positions(&self, way: usize) -> &[usize] {
        self.others.as_ref().filter(|_| way != 0).unwrap_or(&self.kernels)
    }

    /// Whether it is a pair of kernels, whose ways make other kernels.
    pub(crate) fn is_pair(&self) -> bool {
        self.others.is_some()
    }

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

    /// Records that make a build take these ways, beside others.
    pub(crate) fn records(&self, groups: &[Group], mut records: Records) -> Records {
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
        let Some(index) = kernel.index else { continue };
        if let Some(known) = all.iter_mut().find(|group| group.key == kernel.key) {
            known.kernels.push(index);
            if only.contains(&kernel.name) {
                known.name.clone_from(&kernel.name);
            }
            continue;
        }
        let tried = kernel.ways.iter().enumerate().skip(1).filter(|(_, way)| way.is_worth_trying(threads));
        all.push(Group {
            key: kernel.key.clone(),
            sizes: kernel.sizes.clone(),
            name: kernel.name.clone(),
            kernels: vec![index],
            others: None,
            tried: tried.map(|(position, _)| position).collect(),
            ways: kernel.ways.clone(),
        });
    }
    all.retain(|group| !group.tried.is_empty() && (only.is_empty() || only.contains(&group.name)));
    all
}

/// Gives the kernels of a model where one pair is as a setting says.
type Kernels<'a, E> = dyn Fn(&KernelKey, &Setting) -> Result<Vec<OpenKernel>, E> + 'a;

/// The pairs of a model that may become one kernel and are worth trying, of those names that are wanted.
pub(crate) fn pairs<E>(
    kernels: &[OpenKernel],
    families: &[&str],
    threads: u16,
    only: &[String],
    other: &Kernels<'_, E>,
) -> Result<Vec<Group>, E> {
    let is_wanted = |kernel: &&OpenKernel| {
        kernel.index.is_none()
            && families.iter().any(|family| kernel.is_for(family))
            && kernel.ways[1..].iter().all(|way| way.is_worth_trying(threads))
            && (only.is_empty() || only.contains(&kernel.name))
    };
    let mut all = Vec::new();
    for pair in kernels.iter().filter(is_wanted) {
        let after = other(&pair.key, &pair.ways[1].setting)?;
        let (before, after) = (run_of(kernels, families), run_of(&after, families));
        let (own, others) = (missing(&before, &after), missing(&after, &before));
        if own.is_empty() || others.is_empty() {
            continue;
        }
        all.push(Group {
            key: pair.key.clone(),
            sizes: pair.sizes.clone(),
            name: pair.name.clone(),
            kernels: own,
            others: Some(others),
            ways: pair.ways.clone(),
            tried: vec![1],
        });
    }
    // Where time runs out, the most promising were measured.
    all.sort_by(|a, b| a.ways[1].cost.total_cmp(&b.ways[1].cost));
    Ok(all)
}

/// The kernels of a run, in order.
fn run_of<'a>(kernels: &'a [OpenKernel], families: &[&str]) -> Vec<(usize, &'a KernelKey)> {
    let is_for = |kernel: &&OpenKernel| families.iter().any(|family| kernel.is_for(family));
    kernels.iter().filter(is_for).filter_map(|kernel| Some((kernel.index?, &kernel.key))).collect()
}

/// Positions of kernels of one run that the other one has not, or not so many of.
fn missing(run: &[(usize, &KernelKey)], other: &[(usize, &KernelKey)]) -> Vec<usize> {
    let mut left: Vec<&KernelKey> = other.iter().map(|(_, key)| *key).collect();
    let mut is_missing = |key: &KernelKey| match left.iter().position(|own| *own == key) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    run.iter().filter(|(_, key)| is_missing(key)).map(|(position, _)| *position).collect()
}

/// Assignments that have every way that is tried in one of them: as few as there can be, or one for each way.
pub(crate) fn assignments(groups: &[Group], together: bool) -> Vec<Assignment> {
    // Where two pairs change, nobody knows whose the kernels are that are new.
    if !together || groups.iter().any(Group::is_pair) {
        let pairs =
            groups.iter().enumerate().flat_map(|(group, own)| own.tried.iter().map(move |way| (group, *way)));
        return pairs.map(|pair| Assignment::of(groups, &[pair])).collect();
    }
    let most = groups.iter().map(|group| group.tried.len()).max().unwrap_or(0);
    let nth =
        |n: usize| Assignment(groups.iter().map(|group| group.tried.get(n).copied().unwrap_or(0)).collect());
    (0..most).map(nth).collect()
}
