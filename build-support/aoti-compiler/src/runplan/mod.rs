//! What a run of a model does, as data: which kernels are called, in which order, on which memory, and what is checked
//! on the way.
//!
//! Every address and every condition is decided here. A printer makes C++ calls of a plan, or a driver's launches, and
//! decides nothing. Knows neither kernels' insides nor any language.

mod group_panels;
mod group_tiles;
pub(crate) mod late;
pub mod pack;
mod plan;
#[cfg(test)]
mod tests;
pub mod text;
mod verify;
pub(crate) mod weights;

pub use plan::of_schedule;
pub(crate) use plan::{Planned, fixed_bytes, plan, plan_with};
pub use weights::WeightsBlob;

use self::weights::{Expansion, expanded_bytes};
use crate::dtype::DType;
use crate::graph::{Collective, Guard, Origin};
use crate::kernels::Scratch;
use crate::kernels::gemm::tensor_map::Window;
use crate::loops::KernelId;
use crate::schedule::FunctionId;
use crate::schedule::memory::LateId;
use crate::symbolic::{Expr, Interval, Symbol};
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use std::collections::BTreeSet;

/// A way in which a run can fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FailureId(u32);
entity_impl!(FailureId, "e");

/// Everything that a run does.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunPlan {
    /// The kernels of the scheduled program. Each is called by one action.
    pub kernels: PrimaryMap<KernelId, KernelFacts>,
    /// What must hold of the sizes before anything runs.
    pub checks: Vec<Check>,
    /// What happens, in order.
    pub actions: Vec<Action>,
    /// What is said where a check or an assertion does not hold.
    pub failures: PrimaryMap<FailureId, String>,
    /// Where states lie in the caller's memory and what they hold at first.
    pub states: Vec<InitialState>,
    /// What a model makes of its weights when it is created, one after the other.
    pub expansions: Vec<Expanded>,
    /// Bytes of the arena.
    pub arena_bytes: Expr,
}

/// A kernel as profiles and taps see it.
#[derive(Clone, PartialEq, Debug)]
pub struct KernelFacts {
    /// Its name; no other kernel of the model has it.
    pub name: String,
    /// The calls of the user's program that it computes.
    pub origins: Vec<Origin>,
    /// What it writes.
    pub outputs: Vec<Written>,
}

/// A tensor that a kernel writes.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
    /// The value's name in the program, or empty.
    pub name: String,
    /// Sizes.
    pub shape: Vec<Expr>,
    /// Where it lies.
    pub tensor: Pointer,
}

/// The first element of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pointer {
    /// Element type.
    pub dtype: DType,
    /// Where.
    pub place: Place,
    /// Bytes from there.
    pub start: Expr,
}

/// An address as a run sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// The caller's input at this position.
    Input(usize),
    /// The caller's output at this position.
    Output(usize),
    /// So many bytes into the caller's state.
    State(u64),
    /// The seed and the offset of the run's random numbers.
    Generator,
    /// So many bytes into the weights.
    Weights(u64),
    /// So many bytes into what the model made of its weights.
    Expanded(u64),
    /// So many bytes into the arena.
    Arena(Expr),
    /// Memory that the run has allocated.
    Late(LateId),
}

/// One thing that a run does.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Calls a kernel on the host.
    Call(Call),
    /// Launches a kernel on a device.
    Launch(Launch),
    /// Has ranks compute something together.
    Exchange(Exchange),
    /// Reads a size from memory.
    Read(Read),
    /// Fails the run where a condition does not hold.
    Assert(Assert),
    /// Allocates memory whose size has been read.
    Allocate(Allocate),
    /// Frees it; what is not freed when a run ends is freed then.
    Free(LateId),
    /// Does one of two things.
    If {
        /// A boolean.
        predicate: Pointer,
        /// Where it is true.
        then: Vec<Action>,
        /// Where it is false.
        otherwise: Vec<Action>,
    },
    /// Does `condition`, then, while the predicate holds, `body` and `condition` again.
    Loop {
        /// Computes the predicate.
        condition: Vec<Action>,
        /// A boolean.
        predicate: Pointer,
        /// One iteration.
        body: Vec<Action>,
    },
}

/// A kernel's function and what it is given.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Which kernel of the model this is.
    pub kernel: KernelId,
    /// The function that computes it.
    pub function: FunctionId,
    /// Tensors, in the order of the function's parameters.
    pub tensors: Vec<Pointer>,
    /// Sizes, which come after the tensors.
    pub sizes: Vec<Symbol>,
    /// The memory that is its scratch, where that is not the run's.
    pub scratch: Option<LateId>,
}

/// Which of the launches of one kernel a launch is: the others are given the same.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LaunchPart {
    /// The only one.
    #[default]
    Whole,
    /// The first of several.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last.
    Last,
}

/// A call on a device, with the shape of its threads.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// What is called.
    pub call: Call,
    /// Blocks in each dimension. Where one is zero nothing is launched.
    pub grid: [Expr; 3],
    /// Threads of a block in each dimension.
    pub block: [u32; 3],
    /// Bytes of shared memory beyond those that the kernel declares.
    pub shared: Expr,
    /// Whether each multiprocessor has one block at most, which then does the work of several.
    pub persistent: bool,
    /// Which of the launches of its kernel it is.
    pub part: LaunchPart,
    /// Maps of tensors, which the kernel is given before its tensors.
    pub maps: Vec<Map>,
    /// What a library is asked for instead, where there is one.
    pub product: Option<Box<Product>>,
}

/// A map of a tensor, by which a device's copy engine finds boxes of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Map {
    /// The first element.
    pub tensor: Pointer,
    /// Sizes, that of the contiguous axis first.
    pub sizes: Vec<Expr>,
    /// Elements between neighbours along the axes behind that.
    pub strides: Vec<Expr>,
    /// Elements of a box along the first axes; one along the others.
    pub extents: Vec<i64>,
    /// How the windows of a convolution move over it.
    pub window: Option<Window>,
}

/// A matrix product as a library computes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    /// Which of the run's products it is.
    pub number: usize,
    /// Rows, columns, and the length of sums.
    pub sizes: [i64; 3],
    /// The left operand, the right one and the results, all of one type.
    pub matrices: [Pointer; 3],
    /// Elements between their rows; between the columns of those that are turned.
    pub leading: [i64; 3],
    /// Whether columns of each operand lie side by side rather than rows.
    pub turned: [bool; 2],
    /// Whether `f32` may be rounded to TF32.
    pub rounded: bool,
    /// Whether negative results become zero.
    pub relu: bool,
    /// Byte offset in the weights of what is added to each row of results.
    pub bias: Option<u64>,
    /// Memory of the library's own.
    pub workspace: Pointer,
}

/// What ranks compute together.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchange {
    /// Which kernel of the model this is.
    pub kernel: KernelId,
    /// What is exchanged; blocks are counted in elements.
    pub collective: Collective,
    /// This rank's operand.
    pub input: Pointer,
    /// Its elements.
    pub given: Expr,
    /// What this rank gets.
    pub output: Pointer,
    /// Its elements.
    pub made: Expr,
    /// Where ranks cannot.
    pub failure: FailureId,
}

/// A size that is known only when a kernel has written it.
#[derive(Clone, PartialEq, Debug)]
pub struct Read {
    /// An `i64`.
    pub from: Pointer,
    /// The size.
    pub symbol: Symbol,
    /// What it may be.
    pub range: Interval,
    /// Where it is something else.
    pub failure: FailureId,
}

/// A relation between sizes that must hold before anything runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// What must hold.
    pub holds: Guard,
    /// Where it does not.
    pub failure: FailureId,
}

/// A condition that must hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Assert {
    /// What must hold.
    pub condition: Condition,
    /// Where it does not.
    pub failure: FailureId,
}

/// Memory that is allocated when its size is known.
#[derive(Clone, PartialEq, Debug)]
pub struct Allocate {
    /// Which it is.
    pub late: LateId,
    /// How much: the sum for all threads and for each.
    pub bytes: Scratch,
    /// The caller's output that it is for.
    pub output: Option<usize>,
    /// Where there is no such memory.
    pub failure: FailureId,
}

/// Something that is true or false during a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Condition {
    /// A boolean in memory.
    Holds(Pointer),
    /// A relation between sizes that are known where it is asked.
    Sizes(Guard),
    /// The function called last reported no error here.
    Succeeded(Pointer),
}

/// A tensor of the caller's state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitialState {
    /// Its byte offset in the state.
    pub offset: u64,
    /// Byte offset of its first value in the weights.
    pub value: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A form of a constant that a model makes of another when it is created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expanded {
    /// Byte offset of what it is made of in the weights.
    pub from: u64,
    /// Byte offset in what is made.
    pub to: u64,
    /// The form.
    pub form: Expansion,
}

impl RunPlan {
    /// Bytes of what a model makes of its weights.
    pub(crate) fn expanded_bytes(&self) -> u64 {
        let end = |last: &Expanded| (last.to + expanded_bytes(&last.form)).next_multiple_of(64);
        self.expansions.last().map_or(0, end)
    }

    /// Whether a run never waits for what its kernels write: then it launches the same each time.
    pub(crate) fn launches_only(&self) -> bool {
        self.actions.iter().all(|action| match action {
            Action::Launch(_) | Action::Exchange(_) => true,
            Action::Call(_)
            | Action::Read(_)
            | Action::Assert(_)
            | Action::Allocate(_)
            | Action::Free(_)
            | Action::If { .. }
            | Action::Loop { .. } => false,
        })
    }

    /// How many launches are given an address of the caller's, in a run that does nothing else.
    pub(crate) fn given_launches(&self) -> usize {
        let is_given = |pointer: &Pointer| match pointer.place {
            Place::Input(_) | Place::Output(_) | Place::State(_) => true,
            Place::Generator | Place::Weights(_) | Place::Expanded(_) | Place::Arena(_) | Place::Late(_) => {
                false
            }
        };
        let launches = self.actions.iter().filter_map(|action| match action {
            Action::Launch(launch) => Some(launch),
            Action::Call(_)
            | Action::Exchange(_)
            | Action::Read(_)
            | Action::Assert(_)
            | Action::Allocate(_)
            | Action::Free(_)
            | Action::If { .. }
            | Action::Loop { .. } => None,
        });
        launches.filter(|launch| launch.call.tensors.iter().any(is_given)).count()
    }

    /// Pieces of memory that a run allocates.
    pub(crate) fn late(&self) -> usize {
        late::count(&self.actions)
    }

    /// The products that a library may be asked for, in the order of their numbers.
    pub(crate) fn products(&self) -> impl Iterator<Item = &Product> {
        let mut all = Vec::new();
        Action::walk(&self.actions, &mut |action| {
            if let Action::Launch(launch) = action {
                all.extend(launch.product.as_deref());
            }
        });
        all.into_iter()
    }

    /// The failures of which a function says more than is known here, and where it does.
    pub(crate) fn reports(&self) -> Vec<(FailureId, &Pointer)> {
        let mut all = Vec::new();
        Action::walk(&self.actions, &mut |action| {
            if let Action::Assert(Assert { condition: Condition::Succeeded(report), failure }) = action {
                all.push((*failure, report));
            }
        });
        all
    }

    /// What ranks compute together.
    pub(crate) fn exchanges(&self) -> Vec<&Exchange> {
        let mut all = Vec::new();
        Action::walk(&self.actions, &mut |action| {
            if let Action::Exchange(own) = action {
                all.push(own);
            }
        });
        all
    }

    /// The sizes that each failure is about, whose values are told with it.
    pub(crate) fn failure_symbols(&self) -> SecondaryMap<FailureId, Vec<Symbol>> {
        let mut symbols: SecondaryMap<FailureId, Vec<Symbol>> = SecondaryMap::new();
        for check in &self.checks {
            symbols[check.failure] = check.holds.condition.symbols().into_iter().collect();
        }
        Action::walk(&self.actions, &mut |action| match action {
            Action::Read(read) => symbols[read.failure] = vec![read.symbol],
            Action::Allocate(Allocate { bytes, failure, .. }) => {
                let mut about = BTreeSet::new();
                late::symbols_of_scratch(bytes, &mut about);
                symbols[*failure] = about.into_iter().collect();
            }
            Action::Assert(Assert { condition: Condition::Sizes(guard), failure }) => {
                symbols[*failure] = guard.condition.symbols().into_iter().collect();
            }
            Action::Assert(Assert { condition: Condition::Holds(_) | Condition::Succeeded(_), .. })
            | Action::Call(_)
            | Action::Launch(_)
            | Action::Exchange(_)
            | Action::Free(_)
            | Action::If { .. }
            | Action::Loop { .. } => {}
        });
        symbols
    }
}

impl Action {
    /// Calls `visit` with every action of a list, outer ones before what is inside them.
    pub(crate) fn walk<'a>(actions: &'a [Action], visit: &mut dyn FnMut(&'a Action)) {
        for action in actions {
            visit(action);
            if let Action::If { then: first, otherwise: second, .. }
            | Action::Loop { condition: first, body: second, .. } = action
            {
                Action::walk(first, visit);
                Action::walk(second, visit);
            }
        }
    }
}
