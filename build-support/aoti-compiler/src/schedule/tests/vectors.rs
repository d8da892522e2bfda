//! What lets kernels of processors fill their vectors: masks of positions, and products of few columns.

use super::*;
use crate::loops::Term;

#[test]
fn comparisons_of_positions_are_guards() {
    let (program, _) = scheduled(
        "input %0 \"x\": f32[40, 30]
        %1: i64[40, 30] = index [-i0 + i1]
        %2: i64[40, 30] = full 2
        %3: bool[40, 30] = le %1, %2
        %4: f32[40, 30] = full 0.0
        %5: f32[40, 30] = select %3, %0, %4
        output %5 \"y\"",
    );
    let stages = program.kernels.values().flat_map(Kernel::stages);
    let guards: Vec<String> = stages
        .flat_map(|stage| &stage.terms)
        .filter_map(|typed| {
            let Term::Inside(guards) = &typed.term else { return None };
            Some(format!("{} < {}", guards[0].coordinate, guards[0].size))
        })
        .collect();
    // As far as the last position of the first row's end is from the first: all are less.
    assert_eq!(guards, ["i0 - i1 + 2 < 42"]);
}

#[test]
fn products_of_few_columns_whose_rows_lie_side_by_side_are_turned() {
    let columns = |left: &str, count: i64| {
        let (program, _) = scheduled(&format!(
            "input %0 \"x\": f32[500, 64]
            input %1 \"y\": f32[500, {count}]
            input %2 \"z\": f32[64, 500]
            %3: f32[64, 500] = view %0 [i1, i0]
            %4: f32[64, {count}] = matmul {left}, %1
            output %4 \"r\""
        ));
        let KernelKind::MatMul(matmul) = &program.kernels.values().next().expect("a kernel").kind else {
            panic!("a product")
        };
        matmul.axes.last().and_then(|axis| axis.extent.as_int())
    };
    assert_eq!(columns("%3", 3), Some(64), "rows are columns now");
    assert_eq!(columns("%3", 9), Some(9), "columns fill vectors");
    assert_eq!(columns("%2", 3), Some(3), "rows lie apart");
}

#[test]
fn lanes_run_across_rows_that_are_short_for_what_reduces_them() {
    let lanes = |columns: i64, reduced: &str, dtype: &str| {
        let graph = graph_of(&format!(
            "input %0 \"x\": f32[500, {columns}]
            %1: {dtype}[500] = {reduced} %0 axes [1]
            output %1 \"y\""
        ));
        let schedule = scheduled_for(&graph, &Target::cpu(&["x86-64-v3"]), &Records::none()).schedule;
        let (id, _) = schedule.program.kernels.iter().next().expect("a kernel");
        let Mapping::Cpu(own) = &schedule.mappings[id] else { panic!("of a processor") };
        own.lanes
    };
    assert_eq!([2, 4, 12].map(|columns| lanes(columns, "max", "f32")), [Lanes::Outer; 3]);
    assert_eq!(lanes(40, "max", "f32"), Lanes::Inner, "a row fills vectors");
    assert_eq!([4, 12].map(|columns| lanes(columns, "sum", "f32")), [Lanes::Outer, Lanes::Inner]);
    assert_eq!([4, 20].map(|columns| lanes(columns, "argmax", "i64")), [Lanes::Outer; 2]);
}
