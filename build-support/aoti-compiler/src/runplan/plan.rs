//! Plans a run from a scheduled program: gives every buffer its address, every kernel its function, and every check its
//! message.

mod elsewhere;

use super::{
    Action, Allocate, Assert, Call, Check, Condition, Exchange, Expanded, FailureId, InitialState,
    KernelFacts, Launch, LaunchPart, Map, Place, Pointer, Product, Read, RunPlan, Written, late,
    verify::verify,
};
use crate::dtype::DType;
use crate::graph::{ConstantId, Guard, Relation, placed};
use crate::kernels::gemm::library::library_product;
use crate::kernels::launch::MapArgument;
use crate::kernels::{LibraryProduct, Scratch};
use crate::loops::{BufferId, ExternKernel, Kernel, KernelId, KernelKind, Program, Step, Storage};
use crate::runplan::weights::{Expansion, Form, Layout, Packing};
use crate::schedule::memory::{LateId, MemoryPlan};
use crate::schedule::{Argument, Schedule};
use crate::symbolic::{Expr, RangeTable, Ranges, Symbol};
use crate::target::Target;
use indexmap::IndexMap;
use std::collections::BTreeSet;

/// The form of constants that no kernel asks for in another.
const PLAIN: Form = Form::Packed(Packing::Plain);

/// A plan, and what was decided on the way.
pub(crate) struct Planned {
    pub(crate) run: RunPlan,
    pub(crate) layout: Layout,
    /// Offsets of constants in the forms that kernels read, in the weights or in what a model makes of them.
    placements: IndexMap<(ConstantId, Form), u64>,
}

impl Planned {
    /// Whether a constant in some form is at an offset in what a model makes of its weights.
    pub(super) fn is_expanded_at(&self, offset: u64) -> bool {
        let mut placements = self.placements.iter();
        placements.any(|((_, form), own)| matches!(form, Form::Expanded(_)) && *own == offset)
    }
}

/// Plans the run of a schedule.
pub(crate) fn plan(schedule: &Schedule, ranges: &RangeTable) -> Planned {
    plan_with(schedule, ranges, Layout::default())
}

/// Plans the run of a schedule. Its constants go into the weights behind those that
/// are there.
pub(crate) fn plan_with(schedule: &Schedule, ranges: &RangeTable, layout: Layout) -> Planned {
    let planned = unverified(schedule, ranges, layout);
    if cfg!(debug_assertions) {
        let findings = verify(schedule, &planned);
        assert!(findings.is_empty(), "planning made a malformed run:\n{}", findings.join("\n"));
    }
    planned
}

/// The plan as it is made.
pub(super) fn unverified(schedule: &Schedule, ranges: &RangeTable, layout: Layout) -> Planned {
    let (program, memory) = (&schedule.program, &schedule.memory);
    let mut planner = Planner {
        schedule,
        program,
        memory,
        ranges,
        state_offsets: state_offsets(program),
        products: 0,
        planned: Planned {
            run: RunPlan { arena_bytes: memory.total_bytes.clone(), ..RunPlan::default() },
            layout,
            placements: IndexMap::new(),
        },
    };
    for kernel in program.kernels.values() {
        let facts = planner.facts(kernel);
        planner.planned.run.kernels.push(facts);
    }
    planner.checks();
    let all = memory.late.values().copied().collect();
    planner.planned.run.actions = planner.actions(&program.steps, &all, &mut BTreeSet::new());
    planner.states();
    planner.planned
}

/// The plan alone, without the text of kernels.
pub fn of_schedule(schedule: &Schedule, ranges: &RangeTable) -> RunPlan {
    plan(schedule, ranges).run
}

struct Planner<'a> {
    schedule: &'a Schedule,
    program: &'a Program,
    memory: &'a MemoryPlan,
    ranges: &'a RangeTable,
    state_offsets: Vec<u64>,
    /// Products that a library may be asked for, so far.
    products: usize,
    planned: Planned,
}

impl Planner<'_> {
    fn checks(&mut self) {
        for guard in &self.program.guards {
            let failure = self.failure(self.guard_text(guard));
            self.planned.run.checks.push(Check { holds: guard.clone(), failure });
        }
    }

    /// A list of steps, in which the memory `wanted` is allocated; `known` are the symbols that have been read.
    fn actions(
        &mut self,
        steps: &[Step],
        wanted: &BTreeSet<LateId>,
        known: &mut BTreeSet<Symbol>,
    ) -> Vec<Action> {
        let placed = late::place(self.program, self.memory, steps, wanted, known);
        let (mut actions, none) = (Vec::new(), BTreeSet::new());
        // What is required right behind a read is checked first: it tells more than the bound that follows from it.
        let mut unchecked: Vec<(Symbol, &str)> = Vec::new();
        for (position, step) in steps.iter().enumerate() {
            if !matches!(step, Step::Require(_)) {
                actions.extend(unchecked.drain(..).filter_map(|(symbol, place)| self.bound(symbol, place)));
            }
            let before = placed.before.get(&position).into_iter().flatten();
            actions.extend(before.map(|late| self.allocate(*late)));
            let inside = placed.inside.get(&position).unwrap_or(&none);
            if let Step::Kernel(id) = step {
                self.kernel(*id, &mut actions);
            } else {
                actions.push(self.action(step, inside, known));
            }
            if let Step::Read { symbol, place, .. } = step {
                unchecked.push((*symbol, place));
            }
            known.extend(late::read_by(step));
            let behind = placed.behind.get(&position).into_iter().flatten().copied();
            actions.extend(behind.map(Action::Free));
        }
        actions.extend(unchecked.drain(..).filter_map(|(symbol, place)| self.bound(symbol, place)));
        actions
    }

    /// Allocates a tensor.
    fn allocate(&mut self, late: LateId) -> Action {
        let id = late::tensors(self.memory)[&late];
        let buffer = &self.program.buffers[id];
        let size = i64::try_from(buffer.dtype.size()).expect("elements are small");
        let shared = &Expr::product(&buffer.shape) * size;
        let output = if let Storage::Output(position) = buffer.storage { Some(position) } else { None };
        let failure = self.failure(late::tensor_text(self.program, id));
        Action::Allocate(Allocate { late, bytes: Scratch { shared, ..Scratch::default() }, output, failure })
    }

    /// A call of a kernel, with the scratch that is allocated for it alone.
    fn kernel(&mut self, id: KernelId, actions: &mut Vec<Action>) {
        if let KernelKind::Extern(own) = &self.program.kernels[id].kind
            && let Some(collective) = own.collective()
        {
            actions.push(self.exchange(id, own, collective));
            return;
        }
        let first = self.planned.run.failures.len();
        let (calls, own) = self.calls(id);
        debug_assert_eq!(first, self.planned.run.failures.len(), "calls do not fail");
        let free = own.as_ref().map(|(late, _)| Action::Free(*late));
        if let Some((late, bytes)) = own {
            let failure = self.failure(late::scratch_text(self.program, id));
            actions.push(Action::Allocate(Allocate { late, bytes, output: None, failure }));
        }
        actions.extend(calls);
        actions.extend(self.succeeded(id));
        actions.extend(free);
    }

    /// What is said where a condition does not hold.
    fn guard_text(&self, guard: &Guard) -> String {
        let name = |symbol: Symbol| self.program.size_text(&Expr::sym(symbol));
        let condition = guard.condition.display_with(&name);
        if guard.message.is_empty() {
            format!("the model requires {condition}")
        } else {
            format!("{}: {condition}", guard.message)
        }
    }

    fn require(&mut self, guard: &Guard) -> Action {
        let failure = self.failure(self.guard_text(guard));
        Action::Assert(Assert { condition: Condition::Sizes(guard.clone()), failure })
    }

    /// A symbol that was read is within the bound that memory was planned with.
    fn bound(&mut self, symbol: Symbol, place: &str) -> Option<Action> {
        let most = self.program.symbols.get(symbol.index as usize)?.most.clone()?;
        let condition = crate::graph::Condition::compare(symbol, Relation::Le, most);
        let message = placed("a number that is read from data is larger than what follows for it", place);
        Some(self.require(&Guard { condition, message }))
    }

    fn action(&mut self, step: &Step, wanted: &BTreeSet<LateId>, known: &BTreeSet<Symbol>) -> Action {
        // What is read inside is known there alone.
        let mut actions = |steps: &[Step]| self.actions(steps, wanted, &mut known.clone());
        match step {
            Step::Kernel(_) => unreachable!("a kernel may be several actions"),
            Step::Read { buffer, symbol, place } => Action::Read(self.read(*buffer, *symbol, place)),
            Step::Assert(buffer, message) => {
                let condition = Condition::Holds(self.plain(*buffer));
                Action::Assert(Assert { condition, failure: self.failure(message.clone()) })
            }
            Step::Require(guard) => self.require(guard),
            Step::If { predicate, then, otherwise } => Action::If {
                then: actions(then),
                otherwise: actions(otherwise),
                predicate: self.plain(*predicate),
            },
            Step::Loop { condition, predicate, body } => Action::Loop {
                condition: actions(condition),
                body: actions(body),
                predicate: self.plain(*predicate),
            },
        }
    }

    fn read(&mut self, buffer: BufferId, symbol: Symbol, place: &str) -> Read {
        let range = self.ranges.range(symbol);
        let message = format!(
            "the size {} that is read from data must be in {}..={}",
            self.program.size_text(&Expr::sym(symbol)),
            range.min,
            range.max
        );
        let failure = self.failure(placed(&message, place));
        Read { from: self.plain(buffer), symbol, range, failure }
    }

    /// The call of a kernel or its launches, and the scratch that must be allocated for it.
    fn calls(&mut self, id: KernelId) -> (Vec<Action>, Option<(LateId, Scratch)>) {
        let called = &self.schedule.calls[id];
        let launches = &self.schedule.launches[id];
        let bytes = &self.schedule.choices[id].scratch;
        let own = self.memory.late_scratch.get(&id).map(|late| (*late, bytes.clone()));
        let scratch = own.as_ref().map(|(late, _)| *late).filter(|_| launches.is_empty());
        let mut tensors = Vec::new();
        // On a device it is an argument.
        if launches.iter().any(|launch| launch.takes_scratch) {
            tensors.push(match &own {
                Some((late, _)) => {
                    Pointer { dtype: DType::U8, place: Place::Late(*late), start: Expr::int(0) }
                }
                None => self.workspace(),
            });
        }
        if let KernelKind::Extern(_) = self.program.kernels[id].kind {
            tensors.push(self.workspace());
        }
        for Argument { buffer, start } in &called.arguments {
            tensors.push(self.given(id, *buffer, start));
        }
        let call =
            |function, tensors| Call { kernel: id, function, tensors, sizes: called.sizes.clone(), scratch };
        if let ([function], []) = (called.functions.as_slice(), launches.as_slice()) {
            return (vec![Action::Call(call(*function, tensors))], own);
        }
        let last = launches.len() - 1;
        let launches = launches.iter().zip(&called.functions).enumerate();
        let launches = launches.map(|(number, (launch, function))| {
            let part = match (number, last) {
                (_, 0) => LaunchPart::Whole,
                (0, _) => LaunchPart::First,
                (number, last) if number == last => LaunchPart::Last,
                _ => LaunchPart::Middle,
            };
            Action::Launch(Launch {
                call: call(*function, tensors.clone()),
                grid: [launch.grid.clone(), Expr::int(1), Expr::int(1)],
                block: [u32::try_from(launch.threads).expect("blocks have at most 1024 threads"), 1, 1],
                shared: launch.shared.clone(),
                persistent: launch.persistent,
                part,
                maps: launch.maps.iter().map(|own| self.map(id, own)).collect(),
                product: self.product(id).map(Box::new),
            })
        });
        (launches.collect(), own)
    }

    /// A buffer as a kernel is given it, from an element on.
    fn given(&mut self, id: KernelId, buffer: BufferId, start: &Expr) -> Pointer {
        let packed = self.schedule.choices[id].packed.iter().find(|packed| packed.buffer == buffer);
        let pointer = self.pointer(buffer, packed.map_or(&PLAIN, |packed| &packed.form));
        let size = i64::try_from(pointer.dtype.size()).expect("elements are small");
        Pointer { start: start * size, ..pointer }
    }

    fn map(&mut self, id: KernelId, own: &MapArgument) -> Map {
        Map {
            tensor: self.given(id, own.buffer, &own.map.start),
            sizes: own.map.sizes.clone(),
            strides: own.map.strides.clone(),
            extents: own.extents.clone(),
            window: own.map.window.clone(),
        }
    }

    /// What a library is asked for instead of a kernel, where one was chosen.
    fn product(&mut self, id: KernelId) -> Option<Product> {
        let KernelKind::MatMul(matmul) = &self.program.kernels[id].kind else { return None };
        self.schedule.choices[id].algorithm.library()?;
        let form = library_product(self.program, matmul)?;
        let LibraryProduct { sizes, a, b, result, relu, .. } = form;
        let rounded = match &self.schedule.target {
            Target::Cpu(_) => false,
            Target::Gpu(gpu) => gpu.tf32.matmul && form.dtype == DType::F32,
        };
        let matrices = [a, b, result].map(|matrix| self.plain(matrix.buffer));
        let bias = form.bias.map(|bias| match self.plain(bias).place {
            Place::Weights(offset) => offset,
            Place::Input(_)
            | Place::Output(_)
            | Place::State(_)
            | Place::Generator
            | Place::Expanded(_)
            | Place::Arena(_)
            | Place::Late(_) => unreachable!("what a library adds is weights"),
        });
        let workspace = self.workspace();
        let (leading, turned) = ([a.leading, b.leading, result.leading], [a.turned, b.turned]);
        let number = self.products;
        self.products += 1;
        Some(Product { number, sizes, matrices, leading, turned, rounded, relu, bias, workspace })
    }

    /// Memory behind the arena's buffers, for scratch on a device, a library, or the report of an error: kernels run one after
    /// the other.
    fn workspace(&self) -> Pointer {
        let start = self.memory.arena_bytes.clone();
        Pointer { dtype: DType::U8, place: Place::Arena(start), start: Expr::int(0) }
    }

    fn facts(&mut self, kernel: &Kernel) -> KernelFacts {
        let stored = |id: &BufferId| !matches!(self.program.buffers[*id].storage, Storage::Local { .. });
        let written: Vec<BufferId> = kernel.writes().into_iter().filter(stored).collect();
        let mut outputs = Vec::new();
        for id in written {
            let tensor = self.plain(id);
            let buffer = &self.program.buffers[id];
            outputs.push(Written { name: buffer.name.clone(), shape: buffer.shape.clone(), tensor });
        }
        KernelFacts { name: kernel.name.clone(), origins: kernel.origins.clone(), outputs }
    }

    fn failure(&mut self, message: String) -> FailureId {
        self.planned.run.failures.push(message)
    }

    fn plain(&mut self, id: BufferId) -> Pointer {
        self.pointer(id, &PLAIN)
    }

    fn pointer(&mut self, id: BufferId, form: &Form) -> Pointer {
        let buffer = &self.program.buffers[id];
        let place = match buffer.storage {
            Storage::Temporary if self.memory.late.contains_key(&id) => Place::Late(self.memory.late[&id]),
            Storage::Input(position) => Place::Input(position),
            Storage::Output(position) => Place::Output(position),
            Storage::State(position) => Place::State(self.state_offsets[position]),
            Storage::Generator => Place::Generator,
            Storage::Constant(constant) => self.constant(constant, form),
            // A temporary that no step touches has no place of its own, and nobody reads it.
            Storage::Temporary => Place::Arena(self.memory.offsets.get(&id).cloned().unwrap_or_default()),
            Storage::Local { .. } => unreachable!("rows live inside their kernel"),
        };
        Pointer { dtype: buffer.dtype, place, start: Expr::int(0) }
    }

    /// Where a constant lies in the form asked for.
    fn constant(&mut self, constant: ConstantId, form: &Form) -> Place {
        let known = self.planned.placements.get(&(constant, form.clone())).copied();
        let offset = known.unwrap_or_else(|| {
            let offset = match form {
                Form::Packed(packing) => {
                    self.planned.layout.place(constant, &self.program.constants[constant], packing)
                }
                Form::Expanded(expansion) => self.expand(constant, expansion),
            };
            self.planned.placements.insert((constant, form.clone()), offset);
            offset
        });
        match form {
            Form::Packed(_) => Place::Weights(offset),
            Form::Expanded(_) => Place::Expanded(offset),
        }
    }

    /// Notes that a model makes a form of a constant; gives its offset in what is made.
    fn expand(&mut self, constant: ConstantId, form: &Expansion) -> u64 {
        let Place::Weights(from) = self.constant(constant, &form.source().into()) else {
            unreachable!("the form that another is made of is in the weights")
        };
        let run = &mut self.planned.run;
        let to = run.expanded_bytes();
        run.expansions.push(Expanded { from, to, form: form.clone() });
        to
    }

    fn states(&mut self) {
        for (position, (buffer, initial)) in self.program.states.iter().enumerate() {
            let (offset, bytes) = (self.state_offsets[position], fixed_bytes(self.program, *buffer));
            // A copy of its own, so that a state and a constant may have one origin and not one name.
            let constant = &self.program.constants[*initial];
            let value = self.planned.layout.place(*initial, constant, &Packing::Plain);
            self.planned.run.states.push(InitialState { offset, value, bytes });
        }
    }
}

/// Bytes of a buffer of fixed size.
pub(crate) fn fixed_bytes(program: &Program, id: BufferId) -> u64 {
    let buffer = &program.buffers[id];
    let count = Expr::product(&buffer.shape).as_int().unwrap_or(0);
    u64::try_from(count).unwrap_or(0) * buffer.dtype.size() as u64
}

/// Where each state lies in the caller's state.
fn state_offsets(program: &Program) -> Vec<u64> {
    let mut end = 0u64;
    program
        .states
        .iter()
        .map(|(buffer, _)| {
            let own = end;
            end = (end + fixed_bytes(program, *buffer)).next_multiple_of(64);
            own
        })
        .collect()
}

impl RunPlan {
    /// Bytes of the caller's state.
    pub(crate) fn state_bytes(&self) -> u64 {
        self.states.iter().map(|state| (state.offset + state.bytes).next_multiple_of(64)).max().unwrap_or(0)
    }
}
