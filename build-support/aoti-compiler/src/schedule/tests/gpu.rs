//! What is particular to GPUs.

use super::*;

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
            tile.by = Multiplier::FewUnits;
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
        let copied = |tile: &mut Tile| (tile.by, tile.copiers) = (Multiplier::Units, 128);
        let findings = findings_of([512, 512, depth], dtype, architecture, &copied);
        findings.iter().any(|finding| finding.contains("cannot copy what others multiply"))
    };
    assert!(!is_refused(512, "bf16", "sm_90a") && !is_refused(512, "f16", "sm_90a"));
    assert!(is_refused(516, "bf16", "sm_90a"), "rows begin anywhere");
    assert!(is_refused(512, "f32", "sm_90a"), "of halves alone");
    assert!(is_refused(512, "bf16", "sm_80"), "without an engine");
}
