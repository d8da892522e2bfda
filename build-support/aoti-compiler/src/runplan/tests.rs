//! Facts about run plans, in their text form.

use super::plan::unverified;
use super::text::{parse, print};
use super::weights::Layout;
use super::{Action, Launch, LaunchPart, Place, RunPlan, plan};
use crate::loops;
use crate::schedule::decide;
use crate::symbolic::{RangeTable, Symbol};
use crate::target::{MathLibrary, Target};
use crate::text::altered;
use proptest::prelude::*;

/// The plan of a program in the text form of the loop level.
fn planned(program: &str) -> RunPlan {
    let program = loops::text::parse(program).expect("the program parses");
    let mut ranges = RangeTable::default();
    for (index, info) in program.symbols.iter().enumerate() {
        ranges.set(Symbol::size(u32::try_from(index).expect("few")), info.range);
    }
    let target = Target::cpu(&["x86-64-v3"]);
    // Some of these programs read what nothing writes, which their text is not about.
    let schedule = decide(program, &ranges, &target, &crate::schedule::Records::none());
    unverified(&schedule, &ranges, Layout::default()).run
}

/// A program whose steps stand between declarations and the closing brace.
fn program(steps: &str) -> String {
    format!(
        r#"loops "m" {{
  symbol s0 "batch" in 1..8 from input 0 axis 0
  symbol s1 "found" in 0..64 from data
  guard [s0] le [4]
  const c0 "w": f32[8] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
  buffer b0 "x": f32[s0, 8] input 0
  buffer b1 "y": f32[s0, 8] output 0
  buffer b2 "flag": bool[] temporary
  buffer b3 "count": i64[] temporary
  buffer b4 "w": f32[8] constant c0
  buffer b5 "cache": f32[8] state 0
  buffer b6 "h": f32[s0, 8] temporary
  inputs [b0]
  graph_inputs [b0, b5]
  outputs [b1]
  state b5 c0
  {steps}
}}"#
    )
}

/// A kernel that copies one buffer of `[s0, 8]` to another.
fn copies(name: &str, from: &str, to: &str) -> String {
    format!(
        r#"kernel "{name}" {{
  note "aten.clone.default of {name}" at "m.py:3"
  for [i0 < s0, i1 < 8] {{
    stage [] {{
      t0: f32 = load {from}[i0, i1]
      store {to}[i0, i1] = t0
    }}
  }}
}}
"#
    )
}

#[test]
fn actions_follow_the_steps_and_every_address_is_known() {
    let add = r#"kernel "add" {
  for [i0 < 8] {
    stage [] {
      t0: f32 = load b4[i0]
      store b5[i0] = t0
    }
  }
}
"#;
    let steps = [
        &copies("h", "b0", "b6"),
        "read s1 b3 \"m.py:4\"\nassert b2 \"x must be positive\"\n",
        "if b2 {\n",
        &copies("y", "b6", "b1"),
        "}\nelse {\n",
        add,
        "}\nloop {\n}\nwhile b2 {\n",
        add,
        "}\n",
    ]
    .concat();
    let expected = r#"run {
  arena [64*((s0 + 1) // 2) + 64]
  failure e0 "the model requires batch <= 4"
  failure e1 "the size found that is read from data must be in 0..=64, at m.py:4"
  failure e2 "x must be positive"
  check e0 guard [s0] le [4]
  state 0 weights 64 bytes 32
  kernel k0 "h" {
    note "aten.clone.default of h" at "m.py:3"
    writes f32[s0, 8] "h" in arena [64]
  }
  kernel k1 "y" {
    note "aten.clone.default of y" at "m.py:3"
    writes f32[s0, 8] "y" in output 0
  }
  kernel k2 "add" {
    writes f32[8] "cache" in state 0
  }
  kernel k3 "add" {
    writes f32[8] "cache" in state 0
  }
  call k0 f0 (f32 input 0, f32 arena [64]) [s0]
  read s1 in 0..64 e1 i64 arena [0]
  assert e2 bool arena [0]
  if bool arena [0] {
    call k1 f0 (f32 arena [64], f32 output 0) [s0]
  }
  else {
    call k2 f1 (f32 weights 0, f32 state 0) []
  }
  loop {
  }
  while bool arena [0] {
    call k3 f1 (f32 weights 0, f32 state 0) []
  }
}
"#;
    assert_eq!(print(&planned(&program(&steps))), expected);
}

#[test]
fn kernels_that_do_the_same_share_a_function_and_keep_their_names() {
    let steps = [copies("copy", "b0", "b6"), copies("again", "b6", "b1")].concat();
    let plan = planned(&program(&steps));
    let names: Vec<&str> = plan.kernels.values().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["copy", "again"]);
    let text = print(&plan);
    assert!(text.contains("call k0 f0 (f32 input 0, f32 arena [0]) [s0]"), "{text}");
    assert!(text.contains("call k1 f0 (f32 arena [0], f32 output 0) [s0]"), "{text}");
}

#[test]
fn kernels_that_differ_in_where_they_begin_share_a_function() {
    let row = |name: &str, load: &str, store: &str| {
        format!(
            "kernel \"{name}\" {{\n  for [i0 < 8] {{\n    stage [] {{\n      t0: f32 = load {load}\n      \
             store {store} = t0\n    }}\n  }}\n}}\n"
        )
    };
    let steps = [
        row("first", "b0[0, i0]", "b6[0, i0]"),
        row("third", "b0[2, i0]", "b6[3, i0]"),
        row("last", "b0[s0 - 1, i0]", "b1[s0 - 1, i0]"),
        row("state", "b0[1, i0]", "b5[i0]"),
        // One row in the other, from the first of the two.
        row("next", "b6[0, i0]", "b6[1, i0]"),
        row("after", "b6[2, i0]", "b6[3, i0]"),
        // A row ahead of memory, of which nothing is read, is no place to begin at.
        row("ahead", "b4[i0 - 4] if [i0 - 4 < 8] else 0.0", "b5[i0]"),
    ];
    let text = print(&planned(&program(&steps.concat())));
    let calls = [
        "call k0 f0 (f32 input 0, f32 arena [0]) []",
        "call k1 f0 (f32 input 0 from [64], f32 arena [0] from [96]) []",
        "call k2 f0 (f32 input 0 from [32*s0 - 32], f32 output 0 from [32*s0 - 32]) []",
        "call k3 f0 (f32 input 0 from [32], f32 state 0) []",
        "call k4 f1 (f32 arena [0]) []",
        "call k5 f1 (f32 arena [0] from [64]) []",
        "call k6 f2 (f32 weights 0, f32 state 0) []",
    ];
    for call in calls {
        assert!(text.contains(call), "{call}\n{text}");
    }
}

#[test]
fn what_a_kernel_writes_is_where_the_next_one_reads_it() {
    let steps = [copies("h", "b0", "b6"), copies("y", "b6", "b1")].concat();
    let plan = planned(&program(&steps));
    let written: Vec<&Place> = plan
        .kernels
        .values()
        .flat_map(|kernel| &kernel.outputs)
        .map(|written| &written.tensor.place)
        .collect();
    assert_eq!(written, [&Place::Arena(crate::symbolic::Expr::int(0)), &Place::Output(0)]);
}

#[test]
fn launches_with_an_address_of_the_callers_are_counted() {
    let launch =
        |tensors: &str| format!("launch k0 f0 ({tensors}) [] grid [1, 1, 1] block [256, 1, 1] shared [0]\n");
    let launches = [
        "f32 input 0, f32 arena [0]",
        "f32 weights 0, f32 arena [0]",
        "f32 arena [64], f32 state 0",
        "i64 generator, f32 arena [0]",
        "f32 input 0, f32 output 0",
    ];
    let text = format!("run {{\narena [64]\nkernel k0 \"k\" {{\n}}\n{}}}", launches.map(launch).concat());
    let plan = parse(&text).expect("it parses");
    assert!(plan.launches_only());
    assert_eq!(plan.given_launches(), 3);
}

/// What takes more memory than the weights hold is made once, however many kernels read it, and the weights hold no more than
/// it is made of.
#[test]
fn forms_that_grow_are_made_of_what_the_weights_hold() {
    let conv = |from: &str, to: &str| {
        format!(
            r#"kernel "{to}" {{ conv f32 {from}, b1 over [i0 < 1, i1 < 32, i2 < 16, i3 < 16]
                stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1
                {{ t0: f32 = total store {to}[i0, i1, i2, i3] = t0 }} }}
"#
        )
    };
    let program = format!(
        r#"loops {{
            const c0 "w": f32[32, 32, 3, 3] = splat 0.5
            buffer b0 "x": f32[1, 32, 16, 16] input 0
            buffer b1: f32[32, 32, 3, 3] constant c0
            buffer b2: f32[1, 32, 16, 16] temporary
            buffer b3: f32[1, 32, 16, 16] output 0
            inputs [b0]
            graph_inputs [b0]
            outputs [b3]
            {}{}
        }}"#,
        conv("b0", "b2"),
        conv("b2", "b3")
    );
    let program = loops::text::parse(&program).unwrap_or_else(|error| panic!("{error}"));
    let (ranges, target) = (RangeTable::default(), Target::cpu(&["x86-64-v3"]));
    let schedule = decide(program, &ranges, &target, &crate::schedule::Records::none());
    let planned = plan(&schedule, &ranges);
    assert_eq!(planned.layout.bytes(), 32 * 32 * 9 * 4);
    let text = print(&planned.run);
    assert_eq!(text.matches("expand 0 weights 0 winograd [32, 32]\n").count(), 1, "{text}");
    assert_eq!(text.matches("f32 expanded 0,").count(), 2, "{text}");
    assert_eq!(planned.run.expanded_bytes(), 32 * 32 * 16 * 4);
}

#[test]
fn products_for_a_library_are_data() {
    let launch = "launch k0 f0 (f32 input 0) [] grid [1, 1, 1] block [256, 1, 1] shared [0]";
    let library = "library 0 [40, 48, 64] (f32 input 0, f32 weights 0, f32 output 0) leading [64, 64, 48] \
                   right-turned tf32 relu bias 6144 with u8 arena [64]";
    let text = format!("run {{\n  arena [64]\n  kernel k0 \"k\" {{\n  }}\n  {launch} {library}\n}}\n");
    let plan = parse(&text).expect("it parses");
    assert_eq!(print(&plan), text);
    let product = plan.products().next().expect("there is one");
    assert_eq!((product.sizes, product.turned, product.bias), ([40, 48, 64], [false, true], Some(6144)));
    assert!(product.rounded && product.relu);
}

#[test]
fn maps_of_tensors_are_data() {
    let launch = "launch k0 f0 (bf16 input 0) [s0] grid [s0, 1, 1] block [256, 1, 1] shared [0] persistent";
    let map = |strides: &str| format!("map bf16 input 0 from [64] [24, 33, s0] by {strides} boxes [64, 128]");
    let run = |map: &str| format!("run {{\n  arena [64]\n  kernel k0 \"k\" {{\n  }}\n  {launch} {map}\n}}\n");
    let text = run(&map("[24, 792]"));
    let plan = parse(&text).expect("it parses");
    assert_eq!(print(&plan), text);
    let [Action::Launch(Launch { persistent: true, maps, .. })] = plan.actions.as_slice() else {
        panic!("one persistent launch")
    };
    assert_eq!(
        (maps[0].extents.as_slice(), maps[0].sizes.len(), maps[0].strides.len()),
        ([64, 128].as_slice(), 3, 2)
    );
    assert!(parse(&run(&map("[24]"))).is_err(), "an axis has no stride");
}

#[test]
fn libraries_are_looked_for_under_the_names_of_the_header() {
    for library in MathLibrary::ALL {
        let header = match library {
            MathLibrary::CublasLt | MathLibrary::HipblasLt => {
                include_str!("../../include/aoti/gpu/library.h")
            }
            MathLibrary::OpenBlas | MathLibrary::OneDnn => include_str!("../../include/aoti/blas.h"),
        };
        for file in library.files() {
            assert!(header.contains(&format!("\"{file}\"")), "{file}");
        }
    }
}

/// Every statement of the form.
const EVERYTHING: &str = r#"run {
  arena [64*s0 + 128]
  failure e0 "the model requires \"batch\" <= 8"
  failure e1 "found is outside 0..=12"
  check e0 guard [s0] le [8]
  state 64 weights 128 bytes 32
  expand 64 weights 192 winograd [32, 16]
  kernel k0 "relu" {
    note "aten.relu.default of relu" at "m.py:3" in "encoder.act"
    writes f32[s0, 16] "relu" in arena [64*s0]
    writes bool[] in output 1
  }
  kernel k1 "on_device" {
  }
  call k0 f0 (f32 input 0, bf16 weights 64, f32 expanded 64, f32 arena [64*s0]) [s0, s1]
  launch k1 f1 () [] grid [s0, 1, 1] block [256, 1, 1] shared [4*s0]
  read s1 in 0..12 e1 i64 arena [0]
  assert e1 guard [2*s1] lt [24]
  if bool arena [0] {
    assert e0 bool output 1
  }
  else {
    loop {
      call k0 f0 () []
    }
    while bool arena [0] {
    }
  }
}
"#;

#[test]
fn text_comes_back_unchanged() {
    assert_eq!(print(&parse(EVERYTHING).expect("it parses")), EVERYTHING);
}

#[test]
fn what_is_not_declared_is_refused_with_its_place() {
    let error = parse("run {\n  call k0 f0 () []\n}").expect_err("there is no kernel");
    assert!(error.to_string().contains("line 2, column 8: there is no such kernel"), "{error}");
    assert!(parse("run {\n assert e0 bool arena [0]\n}").is_err());
}

proptest! {
    #[test]
    fn altered_text_never_panics(edits in altered::edits("[<\"{}()\\[\\],:=kefs019 \n-]{1,3}")) {
        let text = altered::altered(EVERYTHING, edits);
        let _ = parse(&text).map(|plan| print(&plan));
    }
}

/// The actions of a plan, a line each, for steps over late buffers: `b2` and `b3` of a size that is read, and the output `b1`.
fn late_actions(range: &str, steps: &str) -> Vec<String> {
    let text = format!(
        r#"loops "m" {{
  symbol s0 "found" in {range} from data
  buffer b0 "x": f32[8] input 0
  buffer b1 "y": f32[s0, 8] output 0
  buffer b2 "h": f32[s0, 8] temporary
  buffer b3 "g": f32[s0, 8] temporary
  buffer b4 "count": i64[] temporary
  buffer b5 "flag": bool[] temporary
  inputs [b0]
  graph_inputs [b0]
  outputs [b1]
  {steps}
}}"#
    );
    let plan = planned(&text);
    let printed = print(&plan);
    assert_eq!(parse(&printed).expect("it parses"), plan);
    let lines = printed.lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
    let is_told = |line: &&str| {
        let word = line.trim_start().split(' ').next().unwrap_or("");
        ["allocate", "free", "call", "read", "if", "else", "loop", "while"].contains(&word)
    };
    lines.filter(is_told).map(str::to_owned).collect()
}

/// A kernel that fills a buffer of `[s0, 8]`.
fn fills(to: &str) -> String {
    format!(
        "kernel \"fill\" {{\n  for [i0 < s0, i1 < 8] {{\n    stage [] {{\n      t0: f32 = load b0[i1]\n      store {to}[i0, i1] = t0\n    }}\n  }}\n}}\n"
    )
}

/// A kernel that reverses the rows of one buffer into another, so that it cannot lie in its place.
fn turns(from: &str, to: &str) -> String {
    copies("turn", from, to).replace(&format!("load {from}[i0, i1]"), &format!("load {from}[i0, 7 - i1]"))
}

#[test]
fn memory_without_a_bound_is_allocated_when_its_size_is_read_and_freed_after_its_last_use() {
    let steps = format!("read s0 b4 \"m.py:4\"\n{}{}{}", fills("b2"), turns("b2", "b3"), turns("b3", "b1"));
    assert_eq!(
        late_actions("0..inf", &steps),
        [
            "read s0 in 0..inf e0 i64 arena [0]",
            "allocate m1 [32*s0] e1",
            "call k0 f0 (f32 input 0, f32 late m1) [s0]",
            "allocate m2 [32*s0] e2",
            "call k1 f1 (f32 late m1 from [28], f32 late m2) [s0]",
            "free m1",
            "allocate m0 [32*s0] output 0 e3",
            "call k2 f1 (f32 late m2 from [28], f32 output 0) [s0]",
            "free m2",
        ]
    );
}

#[test]
fn memory_is_set_aside_for_sizes_with_a_bound_that_is_not_out_of_all_proportion() {
    let steps = format!("read s0 b4 \"m.py:4\"\n{}{}{}", fills("b2"), turns("b2", "b3"), turns("b3", "b1"));
    let allocated = |range: &str| late_actions(range, &steps).iter().any(|line| line.starts_with("allocate"));
    assert!(!allocated("0..1000000"), "a stated bound");
    assert!(allocated("0..93824992236885"), "what no memory holds bounds nothing");
}

#[test]
fn what_is_read_in_an_iteration_is_allocated_and_freed_there_and_what_is_known_before_is_allocated_once() {
    let read = "read s0 b4 \"m.py:4\"\n";
    let body = [&fills("b2"), &turns("b2", "b3"), &turns("b3", "b1")].map(String::as_str).concat();
    let inside = late_actions("0..inf", &format!("loop {{\n}}\nwhile b5 {{\n{read}{body}}}\n"));
    let first = inside.iter().position(|line| line.contains("allocate m1")).expect("it is allocated");
    assert!(inside[first].starts_with("  ") && inside[first - 1].contains("read s0"), "{inside:#?}");
    assert!(inside.iter().any(|line| line == "  free m2"), "{inside:#?}");

    let outside = late_actions("0..inf", &format!("{read}loop {{\n}}\nwhile b5 {{\n{body}}}\n"));
    let depth = |word: &str| {
        let own = outside.iter().filter(|line| line.trim_start().starts_with(word));
        own.map(|line| line.starts_with(' ')).collect::<Vec<_>>()
    };
    assert_eq!((depth("allocate"), depth("free")), (vec![false; 3], vec![false; 2]), "{outside:#?}");
}

#[test]
fn a_branch_allocates_what_it_alone_needs() {
    let branch = [fills("b2"), turns("b2", "b1")].concat();
    let actions = late_actions(
        "0..inf",
        &format!("read s0 b4 \"m.py:4\"\nif b5 {{\n{branch}}}\nelse {{\n{}}}\n", fills("b1")),
    );
    let own: Vec<&String> = actions.iter().filter(|line| line.contains("m1")).collect();
    assert!(own.len() == 4 && own.iter().all(|line| line.starts_with("  ")), "{actions:#?}");
    let outputs = actions.iter().filter(|line| line.contains("output 0 e")).count();
    assert_eq!(outputs, 2, "each branch asks for the output: {actions:#?}");
}

#[test]
fn launches_of_one_kernel_are_told_apart() {
    let launch = |part: &str| {
        format!("  launch k0 f0 (f32 input 0) [] grid [1, 1, 1] block [256, 1, 1] shared [0]{part}\n")
    };
    let launches = ["", " first", " middle", " last"].map(launch).concat();
    let text = format!("run {{\n  arena [64]\n  kernel k0 \"k\" {{\n  }}\n{launches}}}\n");
    let plan = parse(&text).expect("it parses");
    assert_eq!(print(&plan), text);
    let parts = plan.actions.iter().map(|action| {
        let Action::Launch(launch) = action else { panic!("{action:?}") };
        launch.part
    });
    let expected = [LaunchPart::Whole, LaunchPart::First, LaunchPart::Middle, LaunchPart::Last];
    assert_eq!(parts.collect::<Vec<_>>(), expected);
}
