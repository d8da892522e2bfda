//! What is particular to GPUs.

use super::*;
use crate::kernels::Algorithm;
use crate::loops::{MatMul, Site};

#[test]
fn parts_of_a_buffer_share_launches_before_they_depend_on_each_other() {
    let graph = graph_of(
        "input %x \"x\": f32[2, 5, 4]
         input %k \"k\": f32[3, 4]
         input %at \"at\": i64[3, 4]
         %first: f32[5, 4] = view %x [0, i0, i1]
         %second: f32[5, 4] = view %x [1, i0, i1]
         %new: f32[5, 4] = scatter %first, %k, %at set [wrap $0, i1]
         %sum: f32[4] = sum %new axes [0]
         %row: f32[3, 4] = view %sum [i1]
         %next: f32[5, 4] = scatter %second, %row, %at set [wrap $0, i1]
         %c: f32[5, 8] = cat %new, %next axis 1
         output %c \"c\"",
    );
    let schedule = scheduled_for(&graph, &gpu(), &Records::none()).schedule;
    gives_the_same(&graph, &schedule);
    let kernels = schedule.program.kernels.len();
    assert_eq!(kernels, 4, "one copies both parts: {}", crate::loops::text::print(&schedule.program));
    assert_eq!(temporaries(&schedule.program), 1, "the sum alone");
}

/// The kernels of a product `[m, depth] x [n, depth]` of halves on a GPU, and who multiplies.
fn product_of([m, n, depth]: [i64; 3]) -> (Schedule, MatMul, MathPath) {
    let graph = graph_of(&format!(
        "input %x \"x\": bf16[{m}, {depth}]
         input %w \"w\": bf16[{n}, {depth}]
         %t: bf16[{depth}, {n}] = view %w [i1, i0]
         %y: bf16[{m}, {n}] = matmul %x, %t
         output %y \"y\""
    ));
    let schedule = scheduled_for(&graph, &gpu(), &Records::none()).schedule;
    assert_eq!(verify(&schedule), Vec::<String>::new());
    let found = schedule.program.kernels.iter().find_map(|(id, kernel)| {
        let KernelKind::MatMul(matmul) = &kernel.kind else { return None };
        Some((id, matmul.clone()))
    });
    let (id, matmul) = found.expect("there is a product");
    let Mapping::Gpu(GpuMapping::Tiles(tile)) = &schedule.mappings[id] else { panic!("a tile") };
    let by = tile.by;
    (schedule, matmul, by)
}

#[test]
fn products_of_few_columns_are_products_of_few_rows() {
    let by = |sizes: [i64; 3]| product_of(sizes).2;
    assert_eq!(by([900, 1, 256]), MathPath::Gemv);
    assert_eq!(by([900, 12, 256]), MathPath::SkinnyTensorCore);
    assert_eq!(by([900, 12, 255]), MathPath::TensorCore, "rows begin anywhere");
    assert_eq!(by([900, 64, 256]), MathPath::TensorCore);
    let (_, matmul, _) = product_of([900, 3, 256]);
    let extents: Vec<i64> = matmul.axes.iter().filter_map(|axis| axis.extent.as_int()).collect();
    assert_eq!(extents, [3, 900]);
}

#[test]
fn operands_whose_rows_begin_anywhere_are_copied_for_large_products() {
    let copied = |sizes: [i64; 3]| {
        let (schedule, matmul, _) = product_of(sizes);
        (
            schedule.program.kernels.len() - 1,
            [matmul.a.row_stride, matmul.b.column_stride].map(|own| own.as_int()),
        )
    };
    assert_eq!(copied([900, 800, 505]), (2, [Some(512), Some(512)]));
    assert_eq!(copied([900, 800, 504]), (0, [Some(504), Some(504)]), "they begin at multiples of 16 bytes");
    assert_eq!(copied([90, 80, 505]), (0, [Some(505), Some(505)]), "copies take longer");
}

/// What is wrong with a product `[m, depth] x [n, depth]` on a GPU when its tile is changed.
fn findings_of(
    [m, n, depth]: [i64; 3],
    dtype: &str,
    architecture: &str,
    change: &dyn Fn(&mut Tile),
) -> Vec<String> {
    let graph = graph_of(&format!(
        "input %x \"x\": {dtype}[{m}, {depth}]
         input %w \"w\": {dtype}[{n}, {depth}]
         %t: {dtype}[{depth}, {n}] = view %w [i1, i0]
         %y: {dtype}[{m}, {n}] = matmul %x, %t
         output %y \"y\""
    ));
    let target = Target::Gpu(GpuTarget::named(architecture).expect("it is in the table"));
    let mut schedule = scheduled_for(&graph, &target, &Records::none()).schedule;
    let id = schedule.program.kernels.keys().next().expect("one kernel");
    let Mapping::Gpu(GpuMapping::Tiles(tile)) = &mut schedule.mappings[id] else { panic!("a tile") };
    change(tile);
    verify(&schedule)
}

#[test]
fn matrix_units_get_operands_that_they_can_read() {
    let findings = |depth: i64, dtype: &str| {
        findings_of([7, 64, depth], dtype, "sm_90a", &|tile| {
            (tile.rows, tile.columns, tile.blocks) = (8, 16, 1);
            tile.by = MathPath::SkinnyTensorCore;
        })
    };
    assert_eq!(findings(96, "bf16"), Vec::<String>::new());
    for (depth, dtype) in [(100, "bf16"), (96, "f32")] {
        let found = findings(depth, dtype);
        assert!(found.iter().any(|finding| finding.contains("matrix units")), "{dtype} {depth}: {found:?}");
    }
}

#[test]
fn threads_copy_only_what_the_copy_engine_can_read() {
    let is_refused = |depth: i64, dtype: &str, architecture: &str| {
        let copied = |tile: &mut Tile| (tile.by, tile.producer_threads) = (MathPath::TensorCore, 128);
        let findings = findings_of([128, 128, depth], dtype, architecture, &copied);
        findings.iter().any(|finding| finding.contains("cannot copy what others multiply"))
    };
    assert!(!is_refused(512, "bf16", "sm_90a") && !is_refused(512, "f16", "sm_90a"));
    assert!(is_refused(516, "bf16", "sm_90a"), "rows begin anywhere");
    assert!(is_refused(512, "f32", "sm_90a"), "of halves alone");
    assert!(is_refused(512, "bf16", "sm_80"), "without an engine");
}

/// The softmax of `[rows, length]` on a GPU, and the teams of its kernels.
fn softmax(rows: i64, length: i64, architecture: &str) -> (Schedule, Vec<Teams>) {
    let graph = graph_of(&format!(
        "input %x \"x\": f32[{rows}, {length}]
         %m: f32[{rows}] = max %x axes [1]
         %mx: f32[{rows}, {length}] = view %m [i0]
         %d: f32[{rows}, {length}] = sub %x, %mx
         %e: f32[{rows}, {length}] = exp %d
         %s: f32[{rows}] = sum %e axes [1]
         %sx: f32[{rows}, {length}] = view %s [i0]
         %y: f32[{rows}, {length}] = div %e, %sx
         output %y \"y\""
    ));
    let target = Target::Gpu(GpuTarget::named(architecture).expect("it is in the table"));
    let schedule = scheduled_for(&graph, &target, &Records::none()).schedule;
    let teams = schedule.mappings.values().filter_map(|mapping| match mapping {
        Mapping::Gpu(GpuMapping::Teams(teams)) => Some(teams.clone()),
        Mapping::Gpu(GpuMapping::Scatter(_) | GpuMapping::Tiles(_) | GpuMapping::Template { .. })
        | Mapping::Cpu(_) => None,
    });
    let teams = teams.collect();
    (schedule, teams)
}

#[test]
fn blocks_share_positions_that_are_few_and_long() {
    let (mut schedule, teams) = softmax(16, 40_000, "sm_90a");
    let [own] = teams.as_slice() else { panic!("one kernel: {teams:?}") };
    assert_eq!((own.blocks, own.rows), (8, Rows::Registers));
    let launch = &schedule.launches.values().next().expect("one kernel")[0];
    assert_eq!((launch.cluster, launch.grid.as_int()), (8, Some(128)));
    assert_eq!(crate::schedule::text::parse(&crate::schedule::text::print(&schedule)), Ok(schedule.clone()));
    let blocks = |rows, length, architecture| {
        softmax(rows, length, architecture).1.iter().map(|teams| teams.blocks).max()
    };
    assert_eq!(blocks(100, 40_000, "sm_90a"), Some(2), "as many as keep the device busy");
    assert_eq!(blocks(16, 400, "sm_90a"), Some(1), "a block has all of a row at once");
    assert_eq!(blocks(1000, 40_000, "sm_90a"), Some(1), "rows enough");
    assert_eq!(blocks(16, 40_000, "sm_80"), Some(1), "blocks there do not meet");
    let id = schedule.mappings.keys().next().expect("one kernel");
    let Mapping::Gpu(GpuMapping::Teams(teams)) = &mut schedule.mappings[id] else { panic!("teams") };
    teams.rows = Rows::Shared;
    let found = verify(&schedule);
    assert!(found.iter().any(|finding| finding.contains("8 blocks cannot share a position")), "{found:?}");
}

/// A scatter of `[updates, 16]` into `[rows, 16]` on a GPU, by indices that data gives.
fn scattered(dtype: &str, rows: i64, updates: i64, combine: &str) -> Schedule {
    let graph = graph_of(&format!(
        "input %x \"x\": {dtype}[{rows}, 16]
         input %u \"u\": {dtype}[{updates}, 16]
         input %at \"at\": i64[{updates}]
         %i: i64[{updates}, 16] = view %at [i0]
         %y: {dtype}[{rows}, 16] = scatter %x, %u, %i {combine} [$0, i1]
         output %y \"y\""
    ));
    scheduled_for(&graph, &gpu(), &Records::none()).schedule
}

fn scattering(schedule: &Schedule) -> Option<Scattering> {
    schedule.mappings.values().find_map(|mapping| match mapping {
        Mapping::Gpu(GpuMapping::Scatter(own)) => Some(*own),
        Mapping::Gpu(GpuMapping::Teams(_) | GpuMapping::Tiles(_) | GpuMapping::Template { .. })
        | Mapping::Cpu(_) => None,
    })
}

#[test]
fn updates_of_a_scatter_meet_as_their_type_allows() {
    let found = |dtype, rows, updates, combine| {
        let schedule = scattered(dtype, rows, updates, combine);
        assert_eq!(
            crate::schedule::text::parse(&crate::schedule::text::print(&schedule)),
            Ok(schedule.clone())
        );
        scattering(&schedule).map(|own| (own.by, own.lanes))
    };
    assert_eq!(found("f32", 100, 100_000, "add"), Some((Meeting::Sorted, 4)));
    assert_eq!(found("f32", 100, 10_000, "add"), Some((Meeting::Fixed, 1)));
    assert_eq!(found("f32", 100, 1000, "add"), Some((Meeting::Columns, 1)));
    assert_eq!(
        found("f32", 40_000, 1000, "add"),
        Some((Meeting::Ranked, 4)),
        "a block has no room for so many sums"
    );
    assert_eq!(found("f64", 100, 10_000, "add"), Some((Meeting::Sorted, 2)));
    assert_eq!(found("f16", 100, 1000, "mul"), Some((Meeting::Ranked, 8)));
    assert_eq!(found("f32", 100, 10_000, "max"), Some((Meeting::Atomics, 1)));
    assert_eq!(found("i64", 100, 10_000, "add"), Some((Meeting::Atomics, 1)));
    assert_eq!(found("f32", 100, 10_000, "set"), Some((Meeting::Last, 4)));
    // A few are done in order, and a single one meets no other.
    assert_eq!(found("f32", 100, 8, "add"), None);
    assert_eq!(found("f32", 100, 1, "set"), None);
}

#[test]
fn scatters_are_not_left_to_chance() {
    let mut schedule = scattered("f32", 100, 10_000, "add");
    let find = |own: &Mapping| matches!(own, Mapping::Gpu(GpuMapping::Scatter(_)));
    let mapping = schedule.mappings.values_mut().find(|own| find(own)).expect("it scatters");
    let Mapping::Gpu(GpuMapping::Scatter(own)) = mapping else { panic!("it scatters") };
    own.by = Meeting::Atomics;
    let findings = verify(&schedule);
    assert!(findings.iter().any(|finding| finding.contains("cannot meet so")), "{findings:?}");
    // Nor are plain loops laid as scatters are.
    for choice in schedule.choices.values_mut().filter(|choice| choice.algorithm.word == "scatter") {
        choice.algorithm = Algorithm::named("loops").expect("it is in the table");
    }
    let findings = verify(&schedule);
    assert!(findings.iter().any(|finding| finding.contains("laid otherwise")), "{findings:?}");
    for text in ["scatter by atomic", "scatter by bins 40", "scatter by last", "scatter by sorted"] {
        let setting: Setting = text.parse().expect("it parses");
        assert_eq!(setting.to_string(), text);
    }
}

#[test]
fn rows_that_are_out_of_step_with_wide_accesses_are_one() {
    let scheduled = |columns: i64, row: &str| {
        let graph = graph_of(&format!(
            "input %x \"x\": f32[300, {columns}]
             %t: f32[300, {columns}] = view %x [{row}, i1]
             %y: f32[300, {columns}] = exp %t
             output %y \"y\""
        ));
        let schedule = scheduled_for(&graph, &gpu(), &Records::none()).schedule;
        gives_the_same(&graph, &schedule);
        outline(&schedule.program)
    };
    assert_eq!(scheduled(501, "-i0 + 299"), ["nest (150300) stages ()"]);
    assert_eq!(scheduled(504, "-i0 + 299"), ["nest (300, 504) stages ()"], "rows begin at whole accesses");
    assert_eq!(scheduled(101, "-i0 + 299"), ["nest (300, 101) stages ()"], "there is no work for all");
}

#[test]
fn several_results_of_a_row_do_not_make_columns_of_rows() {
    let teams = |length: i64| {
        let graph = graph_of(&format!(
            "input %x \"x\": f32[3000, {length}]
             %m: f32[3000] = max %x axes [1]
             %a: i64[3000] = argmax %x axes [1]
             output %m \"m\"
             output %a \"a\""
        ));
        let schedule = scheduled_for(&graph, &gpu(), &Records::none()).schedule;
        let across = schedule.mappings.values().filter_map(|mapping| match mapping {
            Mapping::Gpu(GpuMapping::Teams(teams)) => Some(teams.across),
            Mapping::Gpu(GpuMapping::Scatter(_) | GpuMapping::Tiles(_) | GpuMapping::Template { .. })
            | Mapping::Cpu(_) => None,
        });
        across.collect::<Vec<bool>>()
    };
    assert_eq!(teams(2000), [false], "neighbours in memory are one team's");
    assert_eq!(teams(100), [true], "rows are short");
}

/// Whether something of a schedule is waited for, and the sites of its checks.
fn waits(body: &str) -> (bool, Vec<Site>) {
    let graph = graph_of(body);
    let schedule = scheduled_for(&graph, &gpu(), &Records::none()).schedule;
    assert_eq!(verify(&schedule), Vec::<String>::new());
    let printed = text::print(&schedule);
    assert_eq!(text::parse(&printed).as_ref(), Ok(&schedule), "{printed}");
    let is_waited_for = schedule.program.steps.iter().any(|step| matches!(step, Step::Assert(..)));
    (is_waited_for, schedule.program.sites)
}

#[test]
fn conditions_on_data_are_noted_by_the_kernel_that_computes_them() {
    let (is_waited_for, sites) = waits(
        "input %a \"a\": i64[300]
         input %b \"b\": i64[300]
         %zero: i64[300] = full 0
         %fits: bool[300] = ne %b, %zero
         %all: bool[] = all %fits axes [0]
         assert %all \"a division by zero\"
         %y: i64[300] = floor_div %a, %b
         output %y \"y\"",
    );
    assert!(!is_waited_for);
    assert_eq!(sites, [Site::Assertion("a division by zero".to_owned())]);
}

#[test]
fn conditions_are_waited_for_where_something_relies_on_them() {
    let of_matrices = "input %a \"a\": f32[3, 4, 4]
         %zero: f32[3, 4, 4] = full 0.0
         %fits: bool[3, 4, 4] = ge %a, %zero
         %all: bool[] = all %fits axes [0, 1, 2]
         assert %all \"must not be negative\"
         %l: f32[3, 4, 4], %positive: i64[3] = cholesky %a
         output %l \"l\"";
    assert!(waits(of_matrices).0, "a routine goes on until numbers converge");
    let of_sizes = "symbol s0 \"n\" in 0..64 from input 0 axis 0
         input %a \"a\": f32[s0]
         %size: i64[] = index [s0]
         %five: i64[] = full 5
         %fits: bool[] = ge %size, %five
         assert %fits \"too few\"
         %y: f32[5] = view %a [i0]
         output %y \"y\"";
    assert!(waits(of_sizes).0, "accesses are believed to be within buffers");
}
