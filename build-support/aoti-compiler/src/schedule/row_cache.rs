//! Rows that the threads of a GPU read in several stages are read once: the first stage that loads an element keeps it in a row
//! of the kernel, where the mapping has such rows in registers.

use super::setting::Setting;
use crate::cost::Cost;
use crate::graph::Combine;
use crate::kernels::mapped;
use crate::kernels::nest::simt;
use crate::loops::{
    Access, Axis, Buffer, Effect, Index, KernelId, KernelKind, Nest, Program, Stage, Storage, Term,
};
use crate::symbolic::{Expr, NoRanges, Ranges};
use crate::target::Target;
use crate::tuning::{Alternative, Decisions, TuningKey};
use std::collections::BTreeSet;

/// Whether a kernel keeps the rows that several of its stages read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowCaching {
    /// The first of these stages does, for the others.
    Cached,
    /// Each of them reads for itself.
    Reloaded,
}

/// Keeps what is read repeatedly, in every kernel whose rows then all fit into registers, where no record says otherwise.
pub(super) fn hold_rows(
    program: &mut Program,
    ranges: &dyn Ranges,
    target: &Target,
    questions: &mut Decisions,
) {
    let Target::Gpu(gpu) = target else { return };
    let mut trial = program.clone();
    let mut fits = |id: KernelId| {
        cache_rows(&mut trial, id)
            && mapped::keeps_rows_in_registers(&trial, &trial.kernels[id], ranges, gpu)
            && is_better(program, &trial, id, target, questions)
    };
    let held: Vec<KernelId> = program.kernels.keys().filter(|id| fits(*id)).collect();
    for id in held {
        cache_rows(program, id);
    }
}

/// Whether a kernel keeps what it reads repeatedly, as in a trial, rather than read it again.
fn is_better(
    program: &Program,
    trial: &Program,
    id: KernelId,
    target: &Target,
    questions: &mut Decisions,
) -> bool {
    let cost = |program: &Program| {
        let KernelKind::Nest(nest) = &program.kernels[id].kind else { return Cost::default() };
        simt::memory_cost(program, nest, 0.0)
    };
    let kernel = &program.kernels[id];
    let answers = vec![
        Alternative::new(Setting::RowCaching(RowCaching::Cached), cost(trial)),
        Alternative::new(Setting::RowCaching(RowCaching::Reloaded), cost(program)),
    ];
    let key = TuningKey::of_kernel("rows", program, kernel, target);
    questions.ask(key, answers, || format!("rows of {}", kernel.name)).is_none_or(|recorded| recorded == 0)
}

/// Keeps what one kernel reads repeatedly; false if there is nothing.
fn cache_rows(program: &mut Program, id: KernelId) -> bool {
    let KernelKind::Nest(nest) = &program.kernels[id].kind else { return false };
    let repeated = repeated_loads(nest);
    if repeated.is_empty() || nest.serial {
        return false;
    }
    let mut nest = nest.clone();
    for load in &repeated {
        keep(program, &mut nest, load);
    }
    program.kernels[id].kind = KernelKind::Nest(nest);
    true
}

/// An element that several stages load, in terms of the axis of the first of them.
struct Repeated {
    access: Access,
    axis: Axis,
    stages: BTreeSet<usize>,
}

/// What stages over one axis each load without conditions, from buffers that the kernel does not write.
fn repeated_loads(nest: &Nest) -> Vec<Repeated> {
    let written: BTreeSet<_> = nest.stages.iter().flat_map(Stage::writes).collect();
    let mut found: Vec<Repeated> = vec![];
    for (number, stage) in nest.stages.iter().enumerate() {
        let [axis] = stage.axes.as_slice() else { continue };
        for (access, guards) in stage.loads() {
            let is_plain = guards.is_empty() && access.is_direct() && access.offset.mentions(axis.symbol);
            if !is_plain || written.contains(&access.buffer) {
                continue;
            }
            let same = found.iter_mut().find(|other| {
                other.axis.extent == axis.extent && is_same(access, axis, &other.access, &other.axis)
            });
            match same {
                Some(other) => {
                    other.stages.insert(number);
                }
                None => found.push(Repeated {
                    access: access.clone(),
                    axis: axis.clone(),
                    stages: BTreeSet::from([number]),
                }),
            }
        }
    }
    found.retain(|load| load.stages.len() > 1);
    found
}

/// Whether two accesses are of one element, each at the same place of its own axis.
fn is_same(one: &Access, axis: &Axis, other: &Access, others: &Axis) -> bool {
    let renamed = |symbol| (symbol == axis.symbol).then(|| Expr::sym(others.symbol));
    one.buffer == other.buffer && one.offset.substitute(&renamed, &NoRanges) == other.offset
}

/// The first of the stages stores what it loads in a row, from which the others load.
fn keep(program: &mut Program, nest: &mut Nest, load: &Repeated) {
    let dtype = program.buffers[load.access.buffer].dtype;
    let outer = nest.axes.iter().map(|axis| &axis.extent);
    let row = program.buffers.push(Buffer {
        dtype,
        shape: outer.chain([&load.axis.extent]).cloned().collect(),
        storage: Storage::Local { outer: nest.axes.len() },
        name: String::new(),
        is_complex: false,
    });
    let first = load.stages.first().copied();
    for number in &load.stages {
        let stage = &mut nest.stages[*number];
        let axis = stage.axes[0].clone();
        let coords = vec![Index::Expr(Expr::sym(axis.symbol))];
        let own = Access::with_shape(row, std::slice::from_ref(&axis.extent), coords, &NoRanges);
        let is_it = |term: &Term| {
            let Term::Load { access, guards, .. } = term else { return false };
            guards.is_empty() && access.is_direct() && is_same(access, &axis, &load.access, &load.axis)
        };
        if Some(*number) == first {
            let value = stage.terms.iter().position(|typed| is_it(&typed.term));
            let value = value.expect("the stage loads it");
            stage.effects.insert(0, Effect::Store { access: own, value, combine: Combine::Set });
        } else {
            for typed in stage.terms.iter_mut().filter(|typed| is_it(&typed.term)) {
                if let Term::Load { access, .. } = &mut typed.term {
                    *access = own.clone();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::text::parse;
    use crate::kernels::mapping::{GpuMapping, Mapping, Rows, Teams};
    use crate::loops::{KernelKind, Term};
    use crate::lower::lower;
    use crate::schedule::{Schedule, schedule, text, verify};
    use crate::target::{GpuTarget, Target};
    use crate::tuning::Decisions;

    fn scheduled(body: &str) -> Schedule {
        let graph = parse(&format!("graph \"rows\" {{\n{body}\n}}")).expect("the text parses");
        let target = Target::Gpu(GpuTarget::named("sm_90a").expect("it is in the table"));
        let lowered = lower(&graph, &target, &mut Decisions::default());
        let (schedule, _) =
            schedule(lowered, &graph.ranges(), &target, &mut Decisions::default()).expect("it fits");
        assert_eq!(verify(&schedule), Vec::<String>::new());
        let printed = text::print(&schedule);
        assert_eq!(text::parse(&printed).as_ref(), Ok(&schedule), "{printed}");
        schedule
    }

    fn softmax(dtype: &str, length: &str) -> Schedule {
        scheduled(&format!(
            "input %x \"x\": {dtype}[8192, {length}]
             %w: f32[8192, {length}] = cast %x
             %m: f32[8192] = max %w axes [1]
             %mm: f32[8192, {length}] = view %m [i0]
             %d: f32[8192, {length}] = sub %w, %mm
             %e: f32[8192, {length}] = exp %d
             %s: f32[8192] = sum %e axes [1]
             %ss: f32[8192, {length}] = view %s [i0]
             %y: f32[8192, {length}] = div %e, %ss
             %z: {dtype}[8192, {length}] = cast %y
             output %z \"y\""
        ))
    }

    fn teams(schedule: &Schedule) -> &Teams {
        match schedule.mappings.values().next() {
            Some(Mapping::Gpu(GpuMapping::Teams(teams))) => teams,
            other => panic!("{other:?}"),
        }
    }

    /// How many loads of the first kernel are of its input.
    fn loads_of_input(schedule: &Schedule) -> usize {
        let kernel = schedule.program.kernels.values().next().expect("there is a kernel");
        let KernelKind::Nest(nest) = &kernel.kind else { panic!("{kernel:?}") };
        let terms = nest.stages.iter().flat_map(|stage| &stage.terms);
        let input = schedule.program.inputs[0];
        terms
            .filter(|typed| matches!(&typed.term, Term::Load { access, .. } if access.buffer == input))
            .count()
    }

    #[test]
    fn short_rows_stay_in_registers_and_are_read_once() {
        let halves = softmax("f16", "4096");
        assert_eq!(
            (teams(&halves).rows, teams(&halves).lanes, teams(&halves).size),
            (Rows::Registers, 8, 256)
        );
        assert_eq!(loads_of_input(&halves), 1);
        let wide = softmax("f32", "1000");
        assert_eq!((teams(&wide).rows, teams(&wide).lanes), (Rows::Registers, 4));
        assert_eq!(loads_of_input(&wide), 1);
    }

    #[test]
    fn long_rows_are_read_again() {
        let long = softmax("f32", "262144");
        assert_ne!(teams(&long).rows, Rows::Registers);
        assert_eq!(loads_of_input(&long), 2);
    }

    #[test]
    fn rows_that_other_threads_read_are_refused() {
        let printed = text::print(&softmax("f16", "4096")).replace("along inner", "along outer");
        let schedule = text::parse(&printed).expect("it is well formed");
        assert!(verify(&schedule).iter().any(|finding| finding.contains("other threads")), "{printed}");
    }
}
