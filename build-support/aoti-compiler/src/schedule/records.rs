//! What is known from measurements: the fastest setting of kernels, by key.
//!
//! The key of a kernel is a digest of what it computes and of the kind of target. Buffers and symbols have numbers by the
//! order in which the kernel mentions them, so that neither names nor weights nor the rest of a model are part of it. The
//! key of two kernels that may become one is a digest of both, in which what they share has one number.

use super::joints::Joint;
use super::mapping::Mapping;
use super::setting::Setting;
use super::ways::{Way, ways};
use crate::loops::text::print_kernel;
use crate::loops::{BufferId, Kernel, Program, Storage};
use crate::select::Choice;
use crate::symbolic::Ranges;
use crate::target::Target;
use crate::text::bracketed;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;

/// Digits of a key.
const DIGITS: usize = 16;

/// Stands for what a kernel computes, or two that may become one, on a kind of target.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KernelKey(String);

impl KernelKey {
    /// The key of a kernel.
    pub fn of(program: &Program, kernel: &Kernel, target: &Target) -> KernelKey {
        KernelKey::with_sizes(program, &[kernel], target).0
    }

    /// The key of a kernel, or of two that may become one, and the sizes that it leaves open: positions among the symbols
    /// of the program, in the order of their roles. Kernels of one key have as many, each of the same meaning.
    pub fn with_sizes(program: &Program, kernels: &[&Kernel], target: &Target) -> (KernelKey, Vec<usize>) {
        let (text, sizes) = canonical(program, kernels, target);
        (KernelKey(blake3::hash(text.as_bytes()).to_hex()[..DIGITS].to_owned()), sizes)
    }

    /// Reads a key.
    pub fn parse(text: &str) -> Option<KernelKey> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == DIGITS && text.bytes().all(is_digit)).then(|| KernelKey(text.to_owned()))
    }
}

impl fmt::Display for KernelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Settings of kernels by their keys. A setting that a kernel cannot have is passed over: records never make a wrong build.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Records(BTreeMap<KernelKey, Setting>);

impl Records {
    /// No records: everything is decided by what it is thought to cost.
    pub fn none() -> Records {
        Records::default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records the setting of a kernel in the place of an earlier one.
    pub fn set(&mut self, key: KernelKey, setting: Setting) {
        self.0.insert(key, setting);
    }

    /// All of them, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&KernelKey, &Setting)> {
        self.0.iter()
    }

    /// The setting of a kernel.
    pub fn get(&self, key: &KernelKey) -> Option<&Setting> {
        self.0.get(key)
    }

    /// Whether two kernels become one, where that is recorded.
    pub(super) fn joint(&self, key: &KernelKey) -> Option<Joint> {
        match self.get(key)? {
            Setting::Pair(joint) => Some(*joint),
            Setting::Kernel { .. } => None,
        }
    }

    /// How a kernel runs.
    pub(super) fn decide(
        &self,
        program: &Program,
        kernel: &Kernel,
        ranges: &dyn Ranges,
        target: &Target,
    ) -> (Choice, Mapping) {
        let mut all = ways(program, kernel, ranges, target);
        let recorded = if self.is_empty() || all.len() == 1 {
            None
        } else {
            self.get(&KernelKey::of(program, kernel, target))
        };
        let found = recorded.and_then(|setting| all.iter().position(|way| way.setting() == *setting));
        let Way { choice, mapping, .. } = all.swap_remove(found.unwrap_or(0));
        (choice, mapping)
    }
}

/// What kernels compute, and what their ways depend on, as text with roles for names; and the symbols in it.
fn canonical(program: &Program, kernels: &[&Kernel], target: &Target) -> (String, Vec<usize>) {
    let mut roles = Roles::default();
    let mut text = match target {
        Target::Cpu(_) => "cpu\n".to_owned(),
        Target::Gpu(gpu) => format!("gpu {}\n", gpu.architecture),
    };
    for kernel in kernels {
        text.push_str(&roles.renamed(&print_kernel(program, kernel)));
    }
    // Shapes may name further symbols, and so come before the ranges of all.
    for (buffer, role) in roles.buffers() {
        let own = &program.buffers[buffer];
        let storage = match own.storage {
            Storage::Constant(_) => "constant".to_owned(),
            Storage::Input(_)
            | Storage::Output(_)
            | Storage::State(_)
            | Storage::Generator
            | Storage::Temporary => "memory".to_owned(),
            Storage::Row { outer } => format!("row {outer}"),
        };
        let shape = roles.renamed(&bracketed(&own.shape));
        let _ = writeln!(text, "{role}: {}{shape} {storage}", own.dtype);
    }
    let sizes = roles.sizes();
    for (symbol, role) in &sizes {
        if let Some(info) = program.symbols.get(*symbol) {
            let _ = writeln!(text, "{role} in {}..{}", info.range.min, info.range.max);
        }
    }
    (text, sizes.into_iter().map(|(symbol, _)| symbol).collect())
}

/// New numbers for buffers, sizes, axes and places in the user's program, each in the order in which they come.
#[derive(Default)]
struct Roles {
    numbers: BTreeMap<(char, u32), usize>,
    counts: BTreeMap<char, usize>,
}

impl Roles {
    fn renamed(&mut self, text: &str) -> String {
        let mut renamed = String::with_capacity(text.len());
        let mut rest = text;
        let (mut after_site, mut depth) = (false, 0_usize);
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let (word, behind) = rest.split_at(length);
            rest = behind;
            let number = |digits: &str| digits.parse::<u32>().ok();
            let role = match (first, number(word.get(1..).unwrap_or_default())) {
                ('b', Some(index)) => Some((first, index)),
                // Elsewhere `i32` is an element type.
                ('s' | 'i', Some(index)) if depth > 0 => Some((first, index)),
                _ if after_site => number(word).map(|index| ('@', index)),
                _ => None,
            };
            match role {
                Some((kind, index)) => {
                    let _ = write!(renamed, "{kind}{}", self.number(kind, index));
                }
                None => renamed.push_str(word),
            }
            match first {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            after_site = word == "site" || (after_site && first == ' ');
        }
        renamed
    }

    fn number(&mut self, kind: char, index: u32) -> usize {
        let count = self.counts.entry(kind).or_default();
        *self.numbers.entry((kind, index)).or_insert_with(|| {
            *count += 1;
            *count - 1
        })
    }

    /// Numbers of one kind with their roles, in the order of the roles.
    fn of_kind(&self, kind: char) -> Vec<(u32, String)> {
        let own = self.numbers.iter().filter(|((own, _), _)| *own == kind);
        let mut all: Vec<(usize, u32)> = own.map(|((_, index), role)| (*role, *index)).collect();
        all.sort_unstable();
        all.into_iter().map(|(role, index)| (index, format!("{kind}{role}"))).collect()
    }

    fn buffers(&self) -> Vec<(BufferId, String)> {
        self.of_kind('b').into_iter().map(|(index, role)| (BufferId::from_u32(index), role)).collect()
    }

    fn sizes(&self) -> Vec<(usize, String)> {
        self.of_kind('s').into_iter().map(|(index, role)| (index as usize, role)).collect()
    }
}

#[cfg(test)]
mod tests;
