//! What records know a question by: a digest of what it is about and of the kind of target.
//!
//! Buffers, values and symbols have numbers by the order in which the text mentions them, so that neither names nor weights nor
//! the rest of a model are part of a key. The key of two kernels that may become one is a digest of both, in which what they
//! share has one number; that of a question about a graph is one of the nodes that it concerns. Keys of
//! kernels are made in `loops/key.rs`.

use crate::graph::text::print_part;
use crate::graph::{Graph, Node, SymbolInfo, ValueId};
use crate::target::Target;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;

/// Digits of a key.
const DIGITS: usize = 16;

/// Stands for what a question is about, on a kind of target: a kernel, two that may become one, a part of a graph.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KernelKey(String);

impl KernelKey {
    /// The key of a question of some kind about nodes of a graph and values among theirs, and the sizes that it leaves open.
    pub fn of_nodes(
        what: &str,
        graph: &Graph,
        (nodes, values): (&[&Node], &[ValueId]),
        target: &Target,
    ) -> (KernelKey, Vec<usize>) {
        let mut roles = Roles { keeps_axes: true, ..Roles::default() };
        let text = format!("{}{what}\n{}", kind_of(target), roles.renamed(&print_part(graph, nodes, values)));
        let (sizes, ranges) = roles.ranges(&graph.symbols);
        (KernelKey::digest(&(text + &ranges)), sizes)
    }

    /// The key of a text in which all names are roles.
    pub(crate) fn digest(text: &str) -> KernelKey {
        KernelKey(blake3::hash(text.as_bytes()).to_hex()[..DIGITS].to_owned())
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

/// The kind of a target: levels of processors share a schedule.
pub(crate) fn kind_of(target: &Target) -> String {
    match target {
        Target::Cpu(_) => "cpu\n".to_owned(),
        Target::Gpu(gpu) => format!("gpu {}\n", gpu.architecture),
    }
}

/// New numbers for buffers, sizes, axes and places in the user's program, each in the order in which they come.
#[derive(Default)]
pub(crate) struct Roles {
    numbers: BTreeMap<(char, u32), usize>,
    counts: BTreeMap<char, usize>,
    /// Whether axes keep their numbers: those of a graph's coordinates mean something.
    keeps_axes: bool,
    /// Whether buffers alone have roles.
    only_buffers: bool,
}

impl Roles {
    /// Roles for buffers, where all else keeps its number.
    pub(crate) fn of_buffers() -> Roles {
        Roles { only_buffers: true, ..Roles::default() }
    }

    /// The text with roles for names.
    pub(crate) fn renamed(&mut self, text: &str) -> String {
        let mut renamed = String::with_capacity(text.len());
        let mut rest = text;
        let (mut after_site, mut after_percent, mut depth) = (false, false, 0_usize);
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
                _ if self.only_buffers => None,
                // Elsewhere `i32` is an element type.
                ('s', Some(index)) if depth > 0 => Some((first, index)),
                ('i', Some(index)) if depth > 0 && !self.keeps_axes => Some((first, index)),
                _ if after_percent => number(word).map(|index| ('%', index)),
                _ if after_site => number(word).map(|index| ('@', index)),
                _ => None,
            };
            match role {
                Some(('%', index)) => {
                    let _ = write!(renamed, "{}", self.number('%', index));
                }
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
            after_percent = word == "%";
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

    /// The numbers of buffers that were mentioned, with their roles.
    pub(crate) fn buffers(&self) -> Vec<(u32, String)> {
        self.of_kind('b')
    }

    /// The sizes that were mentioned, and a line for the range of each.
    pub(crate) fn ranges(&self, symbols: &[SymbolInfo]) -> (Vec<usize>, String) {
        let (mut sizes, mut text) = (Vec::new(), String::new());
        for (index, role) in self.of_kind('s') {
            let symbol = index as usize;
            if let Some(info) = symbols.get(symbol) {
                let _ = writeln!(text, "{role} in {}..{}", info.range.min, info.range.max);
            }
            sizes.push(symbol);
        }
        (sizes, text)
    }
}
