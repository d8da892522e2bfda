//! Plans that are broken on purpose.

use super::verify;
use crate::loops::{self, BufferId};
use crate::runplan::plan::unverified;
use crate::runplan::weights::Layout;
use crate::runplan::{Action, Call, LaunchPart, Place, Planned};
use crate::schedule::{FunctionId, Records, Schedule, decide};
use crate::symbolic::{Expr, RangeTable, Symbol};
use crate::target::{GpuTarget, Target};
use cranelift_entity::EntityRef;

/// A program of these steps over some buffers, planned for a processor.
fn planned(steps: &str) -> (Schedule, Planned) {
    let text = format!(
        r#"loops "m" {{
  symbol s0 "batch" in 1..8 from input 0 axis 0
  symbol s1 "found" in 0..64 from data
  const c0 "w": f32[8] = splat 0.5
  buffer b0 "x": f32[s0, 8] input 0
  buffer b1 "y": f32[s0, 8] output 0
  buffer b2: bool[] temporary
  buffer b3: i64[] temporary
  buffer b4: f32[8] constant c0
  buffer b5: f32[s0, 8] temporary
  buffer b6: f32[s0, 8] temporary
  buffer b7: f32[s1, 8] temporary
  inputs [b0]
  graph_inputs [b0]
  outputs [b1]
  {steps}
}}"#
    );
    planned_for(&text, &Target::cpu(&["x86-64-v3"]))
}

fn planned_for(text: &str, target: &Target) -> (Schedule, Planned) {
    let program = loops::text::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let mut ranges = RangeTable::default();
    for (index, info) in (0..).zip(&program.symbols) {
        ranges.set(Symbol::size(index), info.range);
    }
    let schedule = decide(program, &ranges, target, &Records::none());
    let planned = unverified(&schedule, &ranges, Layout::default());
    (schedule, planned)
}

/// A kernel that adds one to a buffer of `[s0, 8]`.
fn adds(name: &str, from: &str, to: &str) -> String {
    format!(
        "kernel \"{name}\" {{ for [i0 < s0, i1 < 8] {{ stage [] {{ t0: f32 = load {from}[i0, i1] \
         t1: f32 = add t0, t0 store {to}[i0, i1] = t1 }} }} }}\n"
    )
}

/// A kernel that writes one number.
fn writes(to: &str, dtype: &str, value: &str) -> String {
    format!("kernel \"{to}\" {{ for [] {{ stage [] {{ t0: {dtype} = {value} store {to}[] = t0 }} }} }}\n")
}

/// Three kernels in a row.
fn chain() -> (Schedule, Planned) {
    planned(&[adds("a", "b0", "b5"), adds("b", "b5", "b6"), adds("c", "b6", "b1")].concat())
}

fn call(planned: &mut Planned, number: usize) -> &mut Call {
    match &mut planned.run.actions[number] {
        Action::Call(call) => call,
        Action::Launch(launch) => &mut launch.call,
        Action::Exchange(_)
        | Action::Read(_)
        | Action::Assert(_)
        | Action::Allocate(_)
        | Action::Free(_)
        | Action::If { .. }
        | Action::Loop { .. } => panic!("no call"),
    }
}

/// The findings after a plan has been changed.
fn broken(
    (mut schedule, mut planned): (Schedule, Planned),
    harm: impl FnOnce(&mut Schedule, &mut Planned),
) -> String {
    assert_eq!(verify(&schedule, &planned), Vec::<String>::new());
    harm(&mut schedule, &mut planned);
    verify(&schedule, &planned).join("\n")
}

#[test]
fn calls_have_what_their_functions_take() {
    let found = broken(chain(), |_, planned| drop(call(planned, 1).tensors.pop()));
    assert_eq!(found, "kernel `b` is given 1 tensors, and its function takes 2");
    let found = broken(chain(), |_, planned| call(planned, 1).function = FunctionId::new(7));
    assert_eq!(found, "kernel `b` calls f7, which is not its function 0");
    let found = broken(chain(), |_, planned| call(planned, 1).sizes.clear());
    assert!(found.contains("kernel `b` is given other sizes than its function takes"), "{found}");
    assert!(found.contains("kernel `b` gives f0 other types than another call does"), "{found}");
    let found = broken(chain(), |_, planned| call(planned, 2).tensors.swap(0, 1));
    assert_eq!(found, "kernel `c` is given b6 where it is not\nkernel `c` is given b1 where it is not");
    let found = broken(chain(), |_, planned| drop(planned.run.actions.remove(0)));
    assert_eq!(found, "kernel `a` is called 0 times and not 1");
}

#[test]
fn buffers_are_written_before_they_are_read() {
    let found = broken(chain(), |_, planned| planned.run.actions.swap(0, 1));
    let found: Vec<&str> = found.lines().collect();
    assert_eq!(found[0], "kernel `b` reads b5, which nothing has written");
    assert_eq!(found[1], "kernel `c` reads b6, over which kernel `a` has written", "they share a place");
    let branch = [
        &writes("b2", "bool", "true"),
        "if b2 {\n",
        &adds("then", "b0", "b5"),
        "}\nelse {\n",
        &adds("else", "b0", "b5"),
        "}\n",
        &adds("y", "b5", "b1"),
    ]
    .concat();
    let found = broken(planned(&branch), |_, planned| {
        let Action::If { otherwise, .. } = &mut planned.run.actions[1] else { panic!("a branch") };
        let own = std::mem::take(otherwise);
        planned.run.actions.extend(own);
    });
    assert_eq!(found, "kernel `y` reads b5, which nothing has written");
}

#[test]
fn buffers_that_are_alive_at_once_have_places_of_their_own() {
    // `b6` is written while `b5` is still to be read.
    let steps =
        [adds("a", "b0", "b5"), adds("b", "b0", "b6"), adds("c", "b5", "b1"), adds("d", "b6", "b1")].concat();
    let found = broken(planned(&steps), |schedule, planned| {
        let [a, b] = [0, 1].map(|number| call(planned, number).tensors[1].place.clone());
        let Place::Arena(start) = &a else { panic!("{a:?}") };
        for number in 0..4 {
            let own = call(planned, number).tensors.iter_mut().filter(|tensor| tensor.place == b);
            own.for_each(|tensor| tensor.place = a.clone());
        }
        schedule.memory.offsets.values_mut().for_each(|offset| *offset = start.clone());
    });
    assert_eq!(found, "kernel `c` reads b5, over which kernel `b` has written");
    let found = broken(chain(), |schedule, _| schedule.memory.arena_bytes = Expr::int(32));
    assert!(found.contains("b5 of kernel `a` ends behind the arena"), "{found}");
}

#[test]
fn loops_leave_what_their_next_iteration_reads() {
    let steps = [
        &adds("before", "b0", "b5"),
        "loop {\n",
        &writes("b2", "bool", "true"),
        "}\nwhile b2 {\n",
        &adds("body", "b5", "b6"),
        "}\n",
        &adds("y", "b5", "b1"),
    ]
    .concat();
    let found = broken(planned(&steps), |schedule, planned| {
        let Action::Loop { body, .. } = &mut planned.run.actions[1] else { panic!("a loop") };
        let Action::Call(own) = &mut body[0] else { panic!("a call") };
        own.tensors[1].place = own.tensors[0].place.clone();
        let Place::Arena(start) = &own.tensors[0].place else { panic!("no arena") };
        schedule.memory.offsets.insert(BufferId::new(6), start.clone());
    });
    assert!(found.contains("kernel `body` reads b5, over which kernel `body` has written"), "{found}");
}

#[test]
fn sizes_are_known_where_they_are_used() {
    let steps = [
        &writes("b3", "i64", "5"),
        "read s1 b3 \"m.py:1\"\n",
        "kernel \"z\" { for [i0 < s1, i1 < 8] { stage [] { t0: f32 = load b4[i1] store b7[i0, i1] = t0 } } }\n",
        &adds("y", "b0", "b1"),
    ]
    .concat();
    let found = broken(planned(&steps), |_, planned| planned.run.actions.swap(0, 1));
    assert_eq!(found, "the size s1 is read where nothing has written it");
    let found = broken(planned(&steps), |_, planned| planned.run.actions.swap(1, 2));
    assert_eq!(found, "kernel `z` needs s1, which is not known there");
}

/// A row that no block of a GPU sorts by itself, so that there is scratch.
fn sorted() -> (Schedule, Planned) {
    let text = r#"loops {
  buffer b0 "x": f32[2, 65536] input 0
  buffer b1: f32[2, 65536] output 0
  buffer b2: i64[2, 65536] output 1
  inputs [b0]
  graph_inputs [b0]
  outputs [b1, b2]
  kernel "sort" { rows sort f32 from [b0] to [b1, b2] sizes [2, 65536, 1] }
}"#;
    planned_for(text, &Target::Gpu(GpuTarget::named("sm_80").expect("it is in the table")))
}

#[test]
fn scratch_lies_behind_the_buffers_of_a_device() {
    let found = broken(sorted(), |_, planned| planned.run.arena_bytes = Expr::int(64));
    assert_eq!(found, "scratch is not within the memory behind the arena's buffers");
    let found = broken(sorted(), |_, planned| call(planned, 0).tensors[0].place = Place::Output(0));
    assert_eq!(found, "scratch is in memory that is not for it");
}

#[test]
fn launches_have_blocks_that_devices_have() {
    let found = broken(sorted(), |_, planned| {
        let Action::Launch(launch) = &mut planned.run.actions[0] else { panic!("a launch") };
        (launch.block, launch.part) = ([2048, 1, 1], LaunchPart::Last);
    });
    assert_eq!(found, "kernel `sort` is launched out of order\nkernel `sort` has blocks of 2048 threads");
}
