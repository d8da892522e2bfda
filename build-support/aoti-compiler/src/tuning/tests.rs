//! Keys say what a kernel computes and nothing else; records choose among the ways that there are.

use super::key::Roles;
use super::*;
use crate::kernels::mapping::{Block, Split};
use crate::loops::Program;
use crate::loops::text::parse;
use crate::schedule::setting::Layout;
use crate::schedule::{Implementation, Setting, decide, implementations, verify};
use crate::target::Target;

const CPU: [&str; 1] = ["x86-64-v4"];

/// A product of `x` and a constant, in a program with other things before it where `shifted`.
fn product(shifted: bool, name: &str, value: f64, m: i64, dtype: &str) -> Program {
    let before = if shifted {
        "const c0 \"other\": f32[1] = splat 1\nbuffer b0 \"o\": f32[1] constant c0\n"
    } else {
        ""
    };
    let (c, b) = if shifted { (1, 1) } else { (0, 0) };
    let [x, w, y] = [b, b + 1, b + 2];
    parse(&format!(
        r#"loops {{
            {before}
            const c{c} "{name}": {dtype}[64, 48] = splat {value}
            buffer b{x} "{name}_in": {dtype}[{m}, 64] input 0
            buffer b{w}: {dtype}[64, 48] constant c{c}
            buffer b{y} "out": {dtype}[{m}, 48] output 0
            kernel "{name}" {{ matmul {dtype} b{x} [0, 64, 1], b{w} [0, 48, 1] over [i{x} < {m}, i{w} < 48] depth [64] {{
                t0: f32 = total t1: {dtype} = cast t0 store b{y}[i{x}, i{w}] = t1 }} }}
        }}"#
    ))
    .unwrap_or_else(|error| panic!("{error}"))
}

fn key(program: &Program) -> TuningKey {
    let kernel = program.kernels.values().next().expect("one kernel");
    TuningKey::of(program, kernel, &Target::cpu(&CPU))
}

fn settings(program: &Program) -> Vec<Setting> {
    let kernel = program.kernels.values().next().expect("one kernel");
    let ranges = crate::graph::ranges_of(&program.symbols);
    implementations(program, kernel, &ranges, &Target::cpu(&CPU))
        .iter()
        .map(Implementation::setting)
        .collect()
}

#[test]
fn names_numbers_and_weights_are_no_part_of_a_key() {
    let plain = key(&product(false, "a", 0.5, 16, "f32"));
    assert_eq!(plain, key(&product(true, "b", 0.25, 16, "f32")));
    assert_ne!(plain, key(&product(false, "a", 0.5, 17, "f32")), "sizes are");
    assert_ne!(plain, key(&product(false, "a", 0.5, 16, "bf16")), "element types are");
    let program = product(false, "a", 0.5, 16, "f32");
    let kernel = program.kernels.values().next().expect("one kernel");
    let gpu = |name| Target::Gpu(crate::target::GpuTarget::named(name).expect("it is in the table"));
    let on = |target| TuningKey::of(&program, kernel, &target);
    assert_eq!(on(Target::cpu(&["x86-64"])), plain, "levels share a schedule");
    assert_ne!(on(gpu("sm_90a")), plain);
    assert_ne!(on(gpu("sm_90a")), on(gpu("sm_80")));
    assert_eq!(TuningKey::parse(&plain.to_string()), Some(plain));
    assert_eq!((TuningKey::parse("0123"), TuningKey::parse("XYZ3456789abcdef")), (None, None));
}

#[test]
fn element_types_are_not_taken_for_axes() {
    let mut roles = Roles::default();
    let text = roles.renamed("t0: i32 = load b7[i32, s3]\nt1: i64 = wrap t0 below [s3] site 12\n");
    assert_eq!(text, "t0: i32 = load b0[i0, s0]\nt1: i64 = wrap t0 below [s0] site @0\n");
}

#[test]
fn the_first_way_is_the_default_and_all_differ() {
    let program = product(false, "a", 0.5, 16, "f32");
    let all = settings(&program);
    assert_eq!(all[0].to_string(), "gemm.packed split rows 64 lanes outer grain 65536");
    let texts: Vec<String> = all.iter().map(Setting::to_string).collect();
    assert!(
        texts.contains(&"gemm.packed split rows 64 lanes outer grain 65536 block rows 8".to_owned()),
        "{texts:#?}"
    );
    assert!(texts.iter().any(|text| text.starts_with("gemm.general")), "{texts:#?}");
    for (position, text) in texts.iter().enumerate() {
        assert_eq!(text.parse::<Setting>().as_ref(), Ok(&all[position]), "{text}");
        assert!(!texts[..position].contains(text), "{text} is there twice");
    }
    assert!("gemm.packed split sideways".parse::<Setting>().is_err());
    assert!("".parse::<Setting>().is_err());
}

#[test]
fn a_record_names_the_way_and_an_impossible_one_is_passed_over() {
    let program = product(false, "a", 0.5, 16, "f32");
    let (key, target, ranges) = (key(&program), Target::cpu(&CPU), crate::graph::ranges_of(&program.symbols));
    for setting in settings(&program) {
        let mut records = Records::none();
        records.set(key.clone(), setting.clone());
        let schedule = decide(program.clone(), &ranges, &target, &records);
        assert_eq!(verify(&schedule), Vec::<String>::new(), "{setting}");
        let (choice, mapping) = (&schedule.choices.values().next(), &schedule.mappings.values().next());
        assert_eq!(Setting::of(choice.expect("one"), mapping.expect("one")), setting);
        let text = crate::schedule::text::print(&schedule);
        assert_eq!(crate::schedule::text::parse(&text).as_ref(), Ok(&schedule), "{text}");
    }
    let typical = settings(&program).swap_remove(0);
    let Setting::Kernel { algorithm, layout: Layout::Cpu { lanes, enough, .. } } = typical else {
        panic!("for a processor")
    };
    let layout = Layout::Cpu { split: Split::Axes(7), lanes, enough, block: Block::Rows(-3) };
    let mut records = Records::none();
    records.set(key, Setting::Kernel { algorithm, layout });
    let none = decide(program.clone(), &ranges, &target, &Records::none());
    assert_eq!(decide(program, &ranges, &target, &records), none);
}

#[test]
fn tiles_of_gpus_are_ways_too() {
    let program = product(false, "a", 0.5, 4096, "bf16");
    let kernel = program.kernels.values().next().expect("one kernel");
    let target = Target::Gpu(crate::target::GpuTarget::named("sm_90a").expect("it is in the table"));
    let ranges = crate::graph::ranges_of(&program.symbols);
    let all: Vec<String> = implementations(&program, kernel, &ranges, &target)
        .iter()
        .map(|way| way.setting().to_string())
        .collect();
    assert_eq!(all[0], "gemm.any tile [64, 64] by units threads 128");
    assert!(all.contains(&"gemm.any tile [128, 128] by units threads 256".to_owned()), "{all:#?}");
}

#[test]
fn work_that_threads_share_takes_less_and_sharing_takes_time() {
    let prices = crate::cost::CostModel::TYPICAL;
    let setting = Setting::Parts(4);
    let cost = Cost::of(crate::cost::WorkKind::VectorFma, 1e6);
    let on = |parts: Option<i64>, threads: u16| {
        let shares = parts.map(|parts| WorkSplit { work: parts, enough: 1, unit: 1, is_loop: false });
        let facts = MachineInfo { more_threads: threads - 1, ..MachineInfo::default() };
        Alternative { shares, ..Alternative::new(setting.clone(), cost) }.cost_on(facts, &prices)
    };
    assert_eq!((on(None, 1), on(Some(8), 1), on(Some(1), 4)), (1e6, 1e6, 1e6));
    assert_eq!((on(None, 4), on(Some(4), 4)), (on(Some(8), 4), on(Some(8), 4)));
    assert!(on(Some(8), 4) < on(Some(2), 4) && on(Some(2), 4) < 1e6);
    assert!(on(Some(2), 2) > 0.5e6, "threads have to begin and to be waited for");
}
