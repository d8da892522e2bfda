//! What cannot be compiled, and what is said of it.

use super::*;

#[test]
fn sizes_without_a_bound_are_no_fault_beside_what_is() {
    let findings = refused(
        r#"symbol s0 "u0" in 0..inf from data
        input %x: f32[4]
        %some: i64[s0, 1] = aten.nonzero.default(self = %x) @ "nonzero" "m.py:3 in forward: x.nonzero()" ""
        %other: f32[4] = mylib.other.default(self = %x) @ "other" "m.py:4 in forward: other(x)" """#,
    );
    let [unknown] = &findings[..] else { panic!("{findings:#?}") };
    assert!(unknown.contains("m.py:4"), "{unknown}");
}

#[test]
fn what_follows_from_a_refused_call_is_no_finding() {
    let findings = refused(
        r#"symbol s0 "u0" in 0..inf from data
        symbol s1 "u1" in 0..inf from data
        input %x: f32[4]
        %count: i64[] = mylib.count.default(self = %x) @ "count" "m.py:3 in forward: count(x)" ""
        int "item": [s0] = aten.item.default(self = %count)
        aten._assert_scalar.default(self = holds [s0] le [4])
        %ones: f32[s0] = aten.ones.default(size = [s0]) @ "ones" "m.py:4 in forward: torch.ones(n)" ""
        %one: f32[] = aten.select.int(self = %x, dim = 0, index = {s0}) @ "select" "m.py:5 in forward: x[n]" ""
        %rows: i64[s1, 1] = aten.nonzero.default(self = %ones)
        %more: f32[s1] = aten.zeros.default(size = [s1]) @ "zeros" "m.py:6 in forward: torch.zeros(m)" ""
        output %more"#,
    );
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert!(findings[0].contains("`mylib.count.default` is not supported"), "{findings:#?}");
}

#[test]
fn numbers_that_are_used_before_they_are_read_are_refused() {
    let findings = refused(
        r#"symbol s0 "u0" in 0..7 from data
        input %x: f32[8]
        %one: f32[] = aten.select.int(self = %x, dim = 0, index = {s0}) @ "select" "m.py:3 in forward: x[k]" ""
        output %one"#,
    );
    assert!(findings[0].contains("s0 before it is read\n  --> m.py:3"), "{findings:#?}");
}

#[test]
fn positions_that_no_run_is_within_are_refused() {
    let findings = refused(
        r#"symbol s0 "u0" in 64..100 from data
        input %x: f32[8]
        input %i: i64[]
        int "item": [s0] = aten.item.default(self = %i)
        %one: f32[] = aten.select.int(self = %x, dim = 0, index = {s0}) @ "select" "m.py:3 in forward: x[k]" ""
        output %one"#,
    );
    assert!(findings[0].contains("outside an axis of size 8\n  --> m.py:3"), "{findings:#?}");
}

#[test]
fn one_report_names_everything_that_is_not_supported() {
    let findings = refused(
        r#"input %x: f32[4]
        %svd: f32[4] = mylib.svd.default(A = %x) @ "svd" "m.py:3 in forward: svd(x)" "low.rank"
        %pooled: f32[4] = aten.fractional_max_pool2d.default(self = %x) @ "pool" "m.py:4 in forward: pool(x)" "pool"
        %both: f32[4] = aten.add.Tensor(self = %svd, other = %pooled)
        %again: f32[4] = mylib.svd.default(A = %both) @ "svd_1" "m.py:5 in forward: svd(y)" "low.other"
        %flag: bool[] = aten.any.default(self = %x)
        %chosen: f32[4] = higher_order.cond(%flag, program "then" {
            input %x: f32[4]
            %u: f32[4] = aten.uniform_.default(self = %x) @ "uniform_" "m.py:7 in forward: x.uniform_()" ""
            output %u
        }, program "else" { input %x: f32[4] output %x }, [%x]) @ "cond" "m.py:6 in forward: cond(f, g, h)" ""
        output %again
        output %chosen"#,
    );
    let expected = [
        "error[AOTI0007]: operator `mylib.svd.default` is not supported (called 2 times)\n  \
         --> m.py:3 in forward: svd(x)\n  = module: low.rank\n  = node: svd\n  \
         = note: also at m.py:5 in forward: svd(y) (module low.other)\n  \
         = help: say what computes it in `[package.metadata.aoti.operators.\"mylib::svd\"]`: `schema`, and `symbol` of a C \
         function or `graph` of `.aoti` text",
        "error[AOTI0007]: operator `aten.fractional_max_pool2d.default` is not supported (called once)\n  \
         --> m.py:4 in forward: pool(x)\n  = module: pool\n  = node: pool\n  \
         = note: its windows are drawn at random\n  \
         = help: pool with fixed windows when the model is exported",
        // A rule looks at the arguments; what depends on a refused call is no finding of its own.
        "error[AOTI0008]: operator `higher_order.cond`: operator `aten.uniform_.default`: it draws random numbers in a \
         branch or a loop; draw them before, and pass them in\n  --> m.py:6 in forward: cond(f, g, h)\n  = node: cond",
    ];
    assert_eq!(findings, expected);
}
