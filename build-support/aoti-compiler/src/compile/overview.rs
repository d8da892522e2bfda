//! What a model is compiled to, for pictures: kernels with what they read and write, where buffers lie and when, and guards.

use std::collections::BTreeMap;

use super::{Options, stages};
use crate::diagnostic::Diagnostics;
use crate::frontend::ModelFile;
use crate::graph::text::condition_text;
use crate::graph::{Guard, SymbolSource};
use crate::loops::work::{Work, work};
use crate::loops::{Buffer, BufferId, KernelKind, Program, Storage};
use crate::schedule::Schedule;
use crate::symbolic::{Expr, Symbol};

/// A kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct KernelView {
    /// Its name.
    pub name: String,
    /// What it computes, in a word.
    pub kind: &'static str,
    /// The calls of the program that it computes: operator and node.
    pub calls: Vec<String>,
    /// The lines of the user's program that they are in.
    pub source: Vec<String>,
    /// The module of the first of them; may be empty.
    pub module: String,
    /// Positions of the buffers that it reads.
    pub reads: Vec<usize>,
    /// Positions of those that it writes.
    pub writes: Vec<usize>,
    /// How much it does, if that is known.
    pub work: Option<Work>,
}

/// A buffer.
#[derive(Clone, PartialEq, Debug)]
pub struct BufferView {
    /// Its name; may be empty.
    pub name: String,
    /// Its element type.
    pub dtype: &'static str,
    /// Its sizes, in terms of the model's dimensions.
    pub sizes: Vec<String>,
    /// Where it lives.
    pub place: Place,
    /// Bytes, if they are known.
    pub bytes: Option<i64>,
    /// Where in the arena it begins, for one that lies there.
    pub offset: Option<i64>,
    /// The positions of the first and the last kernel that use it.
    pub life: Option<(usize, usize)>,
}

/// Where a buffer lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// An input of the model.
    Input,
    /// One of its outputs.
    Output,
    /// One of its states.
    State,
    /// A weight or another constant.
    Constant,
    /// The arena of temporaries.
    Arena,
    /// Memory that is allocated during the run.
    Late,
    /// A worker's own memory within one kernel, or the seed of random numbers.
    Inside,
}

impl Place {
    /// The place in a word.
    pub fn name(self) -> &'static str {
        match self {
            Place::Input => "input",
            Place::Output => "output",
            Place::State => "state",
            Place::Constant => "constant",
            Place::Arena => "arena",
            Place::Late => "allocated",
            Place::Inside => "inside",
        }
    }
}

/// What a model is compiled to.
#[derive(Clone, PartialEq, Debug)]
pub struct Overview {
    /// In the order in which they run.
    pub kernels: Vec<KernelView>,
    /// In no order that matters.
    pub buffers: Vec<BufferView>,
    /// Bytes of the arena, if they are known.
    pub arena_bytes: Option<i64>,
    /// What is checked of sizes when a run begins.
    pub guards: Vec<String>,
    /// The sizes at which bytes and work are given.
    pub sizes: Vec<(String, i64)>,
}

/// Looks at the schedule for the levels of the options, at these sizes of its open dimensions and else at the smallest.
///
/// # Errors
/// As [`compile`](super::compile).
pub fn overview(
    model: impl Into<ModelFile>,
    options: &Options,
    sizes: &[(String, i64)],
) -> Result<Overview, Diagnostics> {
    let schedule = stages(model.into(), options)?.schedule;
    let program = &schedule.program;
    let value_of = |symbol: Symbol| {
        let info = program.symbols.get(symbol.index as usize)?;
        let given = sizes.iter().find(|(name, _)| *name == info.name).map(|(_, size)| *size);
        match info.source {
            SymbolSource::InputDim { .. } => Some(given.unwrap_or(info.range.min.max(1))),
            SymbolSource::InputValue { .. } | SymbolSource::Data => given,
        }
    };
    let is_open = |source: &SymbolSource| matches!(source, SymbolSource::InputDim { .. });
    let open = program.symbols.iter().enumerate().filter(|(_, info)| is_open(&info.source));
    let known = open.filter_map(|(index, info)| {
        let symbol = Symbol::size(u32::try_from(index).ok()?);
        Some((info.name.clone(), value_of(symbol)?))
    });
    let kernels = kernels(program, &value_of);
    Ok(Overview {
        buffers: buffers(&schedule, &kernels, &value_of),
        kernels,
        arena_bytes: schedule.memory.arena_bytes.evaluate(&value_of),
        guards: program.guards.iter().map(|guard| guard_text(program, guard)).collect(),
        sizes: known.collect(),
    })
}

/// What the program says of a guard, else its condition with the names of dimensions.
fn guard_text(program: &Program, guard: &Guard) -> String {
    if !guard.message.is_empty() {
        return guard.message.clone();
    }
    let text = condition_text(&guard.condition);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut named = String::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let index = word.strip_prefix('s').and_then(|digits| digits.parse::<usize>().ok());
        let symbol = index.and_then(|index| program.symbols.get(index));
        named.push_str(symbol.map_or(word, |symbol| symbol.name.as_str()));
        let separators = after.find(is_part).unwrap_or(after.len());
        named.push_str(&after[..separators]);
        rest = &after[separators..];
    }
    named
}

fn kernels(program: &Program, value_of: &dyn Fn(Symbol) -> Option<i64>) -> Vec<KernelView> {
    let positions = |buffers: Vec<BufferId>| {
        buffers.into_iter().map(|buffer| buffer.as_u32() as usize).collect::<Vec<usize>>()
    };
    let view = |kernel: &crate::loops::Kernel| KernelView {
        name: kernel.name.clone(),
        kind: match &kernel.kind {
            KernelKind::Nest(_) => "loops",
            KernelKind::MatMul(_) => "matrix product",
            KernelKind::Convolution(_) => "convolution",
            KernelKind::Attention(_) => "attention",
            KernelKind::AxisOp(_) => "rows",
            KernelKind::Extern(own) => own.collective().map_or("function of the project", |_| "collective"),
        },
        calls: kernel.origins.iter().map(|origin| origin.node.clone()).collect(),
        source: kernel.origins.iter().map(|origin| origin.source.clone()).collect(),
        module: kernel.origins.first().map(|origin| origin.module.clone()).unwrap_or_default(),
        reads: positions(kernel.reads()),
        writes: positions(kernel.writes()),
        work: work(program, kernel, value_of),
    };
    program.kernels.values().map(view).collect()
}

fn buffers(
    schedule: &Schedule,
    kernels: &[KernelView],
    value_of: &dyn Fn(Symbol) -> Option<i64>,
) -> Vec<BufferView> {
    let mut lives: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (position, kernel) in kernels.iter().enumerate() {
        for buffer in kernel.reads.iter().chain(&kernel.writes) {
            lives.entry(*buffer).or_insert((position, position)).1 = position;
        }
    }
    let (program, memory) = (&schedule.program, &schedule.memory);
    let view = |(id, buffer): (BufferId, &Buffer)| BufferView {
        name: buffer.name.clone(),
        dtype: buffer.dtype.name(),
        sizes: buffer.shape.iter().map(|size| program.size_text(size)).collect(),
        place: match buffer.storage {
            Storage::Input(_) => Place::Input,
            Storage::Output(_) => Place::Output,
            Storage::State(_) => Place::State,
            Storage::Constant(_) => Place::Constant,
            Storage::Temporary if memory.offsets.contains_key(&id) => Place::Arena,
            Storage::Temporary => Place::Late,
            Storage::Local { .. } | Storage::Generator => Place::Inside,
        },
        bytes: bytes(buffer, value_of),
        offset: memory.offsets.get(&id).and_then(|offset| offset.evaluate(value_of)),
        life: lives.get(&(id.as_u32() as usize)).copied(),
    };
    program.buffers.iter().map(view).collect()
}

fn bytes(buffer: &Buffer, value_of: &dyn Fn(Symbol) -> Option<i64>) -> Option<i64> {
    let elements = Expr::product(&buffer.shape).evaluate(value_of)?;
    elements.checked_mul(i64::try_from(buffer.dtype.size()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "\
graph \"steps\" {
  symbol s0 \"batch\" in 2..9 from input 0 axis 0
  origin o0 = \"aten.cumsum.default of cumsum\" \"m.py:7 in forward: y = x.cumsum(0)\" \"scan\"
  input %x \"x\": f32[s0, 4]
  %y \"sums\": f32[s0, 4] = cumsum %x axis 1 @ o0
  %z \"powers\": f32[s0, 4] = cumsum %y axis 0 @ o0
  %t \"total\": f32[s0, 4] = cumsum %z axis 1 @ o0
  output %t \"total\"
}
";

    #[test]
    fn kernels_buffers_and_their_lives_are_told() {
        let options = Options::new("steps", [""; 0]);
        let found = overview(MODEL.as_bytes().to_vec(), &options, &[]).expect("it compiles");
        assert_eq!(found.sizes, [("batch".to_owned(), 2)]);
        assert!(found.kernels.iter().any(|kernel| kernel.source[0].starts_with("m.py:7")), "{found:?}");
        let arena: Vec<&BufferView> =
            found.buffers.iter().filter(|buffer| buffer.place == Place::Arena).collect();
        assert!(!arena.is_empty() && found.arena_bytes.is_some_and(|bytes| bytes >= 32), "{found:?}");
        for buffer in arena {
            let (from, to) = buffer.life.expect("it is used");
            assert!(from < to && to < found.kernels.len() && buffer.bytes == Some(32), "{buffer:?}");
        }
        let larger = overview(MODEL.as_bytes().to_vec(), &options, &[("batch".to_owned(), 8)]);
        let larger = larger.expect("it compiles");
        assert!(larger.arena_bytes > found.arena_bytes);
    }
}
