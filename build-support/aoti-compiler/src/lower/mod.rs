//! Lowers a core graph to kernels: decides which values get buffers, turns views into coordinates, and writes one loop
//! nest or contraction for each value that has a buffer.
//!
//! Fuses nothing: that is the scheduler's. Knows no C++ and no device by name.

mod attention;
mod bytes;
mod copies;
mod element;
mod expand;
mod layout;
mod layout_cost;
mod layout_regions;
mod layout_spread;
mod nodes;
mod realize;
mod sorting;
mod whole_rows;
mod widening;

use crate::graph::{Graph, InputRole, Node, Op, OutputRole, ValueId};
use crate::loops::{Access, Buffer, BufferId, Index, Program, Step, Storage};
use crate::symbolic::RangeTable;
use crate::target::Target;
use crate::tuning::Decisions;
use attention::Attentions;
use bytes::Bytes;
use cranelift_entity::SecondaryMap;
use indexmap::IndexMap;
use layout::Layouts;

/// Lowers a graph for a target.
pub fn lower(graph: &Graph, target: &Target, questions: &mut Decisions) -> Program {
    let mut program = Program {
        name: graph.name.clone(),
        symbols: graph.symbols.clone(),
        guards: graph.guards.clone(),
        ..Program::default()
    };
    let mut homes = SecondaryMap::new();
    let mut user_inputs = 0;
    for input in &graph.inputs {
        let ty = graph.ty(input.value).clone();
        let storage = match input.role {
            InputRole::User => {
                user_inputs += 1;
                Storage::Input(user_inputs - 1)
            }
            InputRole::State(_) => Storage::State(program.states.len()),
            InputRole::Generator => Storage::Generator,
        };
        let buffer = program.buffers.push(Buffer {
            dtype: ty.dtype,
            shape: ty.shape,
            storage,
            name: input.name.clone(),
            is_complex: input.is_complex,
        });
        program.graph_inputs.push(buffer);
        match input.role {
            InputRole::User => program.inputs.push(buffer),
            InputRole::State(initial) => {
                let initial = program.constants.push(graph.constants[initial].clone());
                program.states.push((buffer, initial));
            }
            InputRole::Generator => {}
        }
        homes[input.value] = Some(buffer);
    }
    let targets = output_buffers(graph, &mut program);
    let ranges = graph.ranges();
    let mut steps = Vec::new();
    let mut scope = Scope::new(graph, &mut program, (&ranges, target), questions, homes, &mut steps);
    scope.run(&targets);
    scope.write_states();
    program.steps = steps;
    program.number_kernels();
    program
}

/// A buffer for each result that the caller gets; what becomes state is written at the end.
fn output_buffers(graph: &Graph, program: &mut Program) -> Vec<Option<BufferId>> {
    graph
        .outputs
        .iter()
        .map(|output| match output.role {
            OutputRole::User | OutputRole::Mutation(_) => {
                let ty = graph.ty(output.value).clone();
                let storage = Storage::Output(program.outputs.len());
                let (name, is_complex) = (output.name.clone(), output.is_complex);
                let buffer = Buffer { dtype: ty.dtype, shape: ty.shape, storage, name, is_complex };
                let buffer = program.buffers.push(buffer);
                program.outputs.push(buffer);
                Some(buffer)
            }
            OutputRole::State(_) => None,
        })
        .collect()
}

/// One graph (the program or a body) while it is lowered.
struct Scope<'a> {
    graph: &'a Graph,
    program: &'a mut Program,
    ranges: &'a RangeTable,
    target: &'a Target,
    /// What is decided as records say.
    questions: &'a mut Decisions,
    /// The buffer that holds a value, for values that have one.
    homes: SecondaryMap<ValueId, Option<BufferId>>,
    /// The copy of a value with channels last that convolutions read, where one was made.
    turned_copies: SecondaryMap<ValueId, Option<BufferId>>,
    /// Position of the node that makes a value.
    producers: Vec<Option<usize>>,
    /// What becomes one kernel of several nodes.
    attentions: Attentions,
    /// Which contractions read bytes.
    bytes: Bytes,
    /// In which order the axes of values lie in memory.
    layouts: Layouts,
    /// Values that must get a buffer.
    realized: SecondaryMap<ValueId, bool>,
    /// The caller's buffer for a value that is a result.
    targets: IndexMap<ValueId, BufferId>,
    steps: &'a mut Vec<Step>,
}

impl<'a> Scope<'a> {
    fn new(
        graph: &'a Graph,
        program: &'a mut Program,
        (ranges, target): (&'a RangeTable, &'a Target),
        questions: &'a mut Decisions,
        homes: SecondaryMap<ValueId, Option<BufferId>>,
        steps: &'a mut Vec<Step>,
    ) -> Scope<'a> {
        let attentions = Attentions::find(graph, ranges, target);
        let mut bytes = Bytes::find(graph, target);
        let layouts = Layouts::decide(graph, target, (&attentions, &bytes), questions);
        bytes.keep_last(graph, &layouts);
        let realized = realize::decide(graph, ranges, target, (&attentions, &bytes));
        let producers = graph.producers();
        let targets = IndexMap::new();
        Scope {
            graph,
            program,
            ranges,
            target,
            questions,
            homes,
            turned_copies: SecondaryMap::new(),
            producers,
            attentions,
            bytes,
            layouts,
            realized,
            targets,
            steps,
        }
    }

    /// Lowers every node, then fills the targets that were not written in place.
    fn run(&mut self, targets: &[Option<BufferId>]) {
        for (output, target) in self.graph.outputs.iter().zip(targets) {
            if let Some(target) = target
                && self.realized[output.value]
                && self.homes[output.value].is_none()
                && !self.is_constant(output.value)
            {
                self.targets.entry(output.value).or_insert(*target);
            }
        }
        let graph = self.graph;
        for (position, node) in graph.nodes.iter().enumerate() {
            if !self.attentions.absorbs(position) {
                self.node(node);
            }
        }
        for (output, target) in self.graph.outputs.iter().zip(targets) {
            if let Some(target) = target
                && self.homes[output.value] != Some(*target)
            {
                self.copy(output.value, *target);
            }
        }
    }

    /// Writes the next values of states, after everything has read the old ones.
    fn write_states(&mut self) {
        let mut pending = Vec::new();
        for output in &self.graph.outputs {
            let OutputRole::State(position) = output.role else { continue };
            let state = self.homes[self.graph.inputs[position].value].expect("inputs have buffers");
            if self.homes[output.value] == Some(state) {
                continue;
            }
            // A value that is computed from several states is held apart, so that no state changes too early.
            let held = self.realize_now(output.value);
            pending.push((held, state));
        }
        // So is the old value of a state that becomes another's.
        let changing: Vec<BufferId> = pending.iter().map(|(_, state)| *state).collect();
        for (held, _) in pending.iter_mut().filter(|(held, _)| changing.contains(held)) {
            let Buffer { dtype, shape, name, .. } = self.program.buffers[*held].clone();
            let apart = self.temporary(dtype, shape, &name);
            self.copy_buffer(*held, apart);
            *held = apart;
        }
        for (held, state) in pending {
            self.copy_buffer(held, state);
        }
    }

    fn producer(&self, value: ValueId) -> Option<&'a Node> {
        use cranelift_entity::EntityRef;
        self.producers[value.index()].map(|position| &self.graph.nodes[position])
    }

    fn is_constant(&self, value: ValueId) -> bool {
        self.producer(value).is_some_and(|node| matches!(node.op, Op::Constant(_)))
    }

    /// The buffer of a value that has one by decision or by nature.
    fn home(&mut self, value: ValueId) -> Option<BufferId> {
        if let Some(buffer) = self.homes[value] {
            return Some(buffer);
        }
        let Some(Node { op: Op::Constant(id), .. }) = self.producer(value) else { return None };
        let constant = self.graph.constants[*id].clone();
        let ty = self.graph.ty(value).clone();
        let name = constant.name.clone();
        let id = self.program.constants.push(constant);
        let storage = Storage::Constant(id);
        let buffer = Buffer { dtype: ty.dtype, shape: ty.shape, storage, name, is_complex: false };
        let buffer = self.program.buffers.push(buffer);
        self.homes[value] = Some(buffer);
        Some(buffer)
    }

    /// A new buffer for a value: the caller's where it is a result, else a temporary one.
    fn new_home(&mut self, value: ValueId) -> BufferId {
        let buffer = match self.targets.get(&value) {
            Some(target) => *target,
            None => {
                let data = &self.graph.values[value];
                self.program.buffers.push(Buffer {
                    dtype: data.ty.dtype,
                    shape: self.layouts.of(value).in_memory(&data.ty.shape),
                    storage: Storage::Temporary,
                    name: data.name.clone(),
                    is_complex: false,
                })
            }
        };
        self.homes[value] = Some(buffer);
        buffer
    }

    /// The element of a value's buffer at coordinates as the program has them.
    fn access(&self, value: ValueId, buffer: BufferId, coords: &[Index], ranges: &RangeTable) -> Access {
        let coords = self.layouts.of(value).in_memory(coords);
        Access::new(buffer, &self.program.buffers[buffer], coords, ranges)
    }
}
