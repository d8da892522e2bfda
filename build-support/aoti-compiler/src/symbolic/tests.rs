//! Facts about expressions that stages rely on.

use super::*;

fn table() -> RangeTable {
    let mut table = RangeTable::default();
    table.set(Symbol::size(0), Interval::new(1, 1024));
    table.set_extent(Symbol::axis(0), Expr::int(6));
    table.set_extent(Symbol::axis(1), Expr::int(4));
    table.set_extent(Symbol::axis(2), Expr::sym(Symbol::size(0)));
    table
}

fn expr(text: &str) -> Expr {
    parse(text, &|name| {
        let index = name[1..].parse().ok()?;
        match &name[..1] {
            "s" => Some(Expr::sym(Symbol::size(index))),
            "i" => Some(Expr::axis(index as usize)),
            _ => None,
        }
    })
    .expect("test expressions parse")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(expr(text).simplify(&table()).to_string(), expected);
}

#[test]
fn canonical_sums() {
    check("i0 + 2*i1 - i0 + 3", "2*i1 + 3");
    check("(s0 + 1)*(s0 - 1)", "s0*s0 - 1");
    check("0*s0", "0");
}

#[test]
fn reshapes_cancel() {
    // [6, 4] -> [24] -> [6, 4]
    check("(4*i0 + i1) // 4", "i0");
    check("(4*i0 + i1) % 4", "i1");
    // [24] read through [6, 4]
    check("4*(i5 // 4) + i5 % 4", "i5");
    // symbolic inner size
    check("(s0*i0 + i2) // s0", "i0");
    check("(s0*i0 + i2) % s0", "i2");
    check("s0*(i5 // s0) + i5 % s0", "i5");
    check("12*((i5 // 4) % 3) + 3*(i5 % 4)", "3*(i5 % 12)");
    // [24, 5] -> [4, 30] -> [2, 12, 5]: parts of rows that were cut elsewhere.
    check("60*((30*i0 + i5) // 60) + 5*((6*i0 + i5 // 5) % 12) + i5 % 5", "30*i0 + i5");
    check("(i5 // 4 + i0) % 6 + 6*((i5 // 4 + i0) // 6)", "i0 + i5 // 4");
}

#[test]
fn remainders_and_what_they_leave_complement_each_other() {
    check("s0 - s0 % 4", "4*(s0 // 4)");
    check("(s0 - s0 % 4 + 4) // ((s0 - s0 % 4) // 4 + 1)", "4");
    check("3*s0 - 12*(s0 // 4)", "3*(s0 % 4)");
    check("s0*i0 + i5 - s0*((s0*i0 + i5) // s0)", "i5 % s0");
    check("s0 - (s0 + 1) % 4", "s0 - ((s0 + 1) % 4)");
}

#[test]
fn nested_divisions_join() {
    check("(i5 // 4) // 3", "i5 // 12");
    check("(i5 % 12) // 4", "(i5 // 4) % 3");
    check("(i5 % 12) % 4", "i5 % 4");
    check("(8*i0 + 2*i1 + 1) // 8", "i0");
    check("(i5 // 4 + 3) // 2", "(i5 + 4) // 8 + 1");
    check("((i5 // 4 + 3) // 2 + s0) // 5", "(8*s0 + i5 + 12) // 40");
    // Neither of two quotients, nor of a multiple of one.
    check("(i5 // 4 + i0 // 3 + 1) // 2", "(i0 // 3 + i5 // 4 + 1) // 2");
    check("(3*(i5 // 4) + 1) // 2", "(3*(i5 // 4) + 1) // 2");
}

#[test]
fn sums_divide_what_they_are_multiplied_by() {
    let sum = expr("s0*(i5 // 4) - s0");
    assert_eq!((&sum * 8).cofactor(&sum), Some(Expr::int(8)));
    assert_eq!((&(&sum * &sum) * &expr("s0")).cofactor(&sum), Some(&sum * &expr("s0")));
    assert_eq!((&sum + 1).cofactor(&sum), None);
    assert_eq!(expr("s0 + 3").cofactor(&expr("s0 + 1")), None);
    check("(2*s0*i5 + 4*s0) // (8*s0)", "(i5 + 2) // 4");
    let (square, root) = (expr("s0*s0 + 2*s0*i5 + i5*i5 + s0 + i5"), expr("s0 + i5 + 1"));
    assert_eq!(square.cofactor(&root), Some(expr("s0 + i5")));
}

#[test]
fn python_rounding() {
    assert_eq!(expr("-7 // 2").as_int(), Some(-4));
    assert_eq!(expr("-7 % 3").as_int(), Some(2));
}

#[test]
fn affine_parts() {
    let (coefficient, rest) = expr("s0*i0 + 3*i0 + i1").affine_in(Symbol::axis(0)).expect("affine");
    assert_eq!((coefficient.to_string(), rest.to_string()), ("s0 + 3".into(), "i1".into()));
    assert!(expr("i0 // 4").affine_in(Symbol::axis(0)).is_none());
}

#[test]
fn text_round_trips() {
    for text in
        ["-s0 + 2", "2*(i0 // 4) + s0*s1", "max(s0, 3) % 5", "(s0 + 1) // 2", "-(i0 // 3)", "2*(s0 % 3)"]
    {
        let once = expr(text);
        assert_eq!(expr(&once.to_string()), once, "{text} -> {once}");
    }
}

#[test]
fn hostile_text_is_refused() {
    let deep = "(".repeat(100_000);
    assert!(parse(&deep, &|_| None).is_err());
    assert!(parse("99999999999999999999", &|_| None).is_err());
}

#[test]
fn simplification_keeps_values() {
    // Every small expression of this shape, at every small assignment.
    let table = table();
    for a in 1..5i64 {
        for b in 1..5i64 {
            for d in 1..7i64 {
                let raw = format!("({a}*i0 + {b}*i1 + 1) // {d} * {b} + ({a}*i0 + {b}*i1 + 1) % {d}");
                let simple = expr(&raw).simplify(&table);
                for i0 in 0..6 {
                    for i1 in 0..4 {
                        let value = simple.evaluate(&|s| Some(if s.index == 0 { i0 } else { i1 }));
                        let inner = a * i0 + b * i1 + 1;
                        assert_eq!(value, Some(inner / d * b + inner % d), "{raw} -> {simple}");
                    }
                }
            }
        }
    }
}

#[test]
fn division_by_zero_is_kept() {
    let s = Expr::sym(Symbol::size(0));
    let rest = s.modulo(&Expr::int(0));
    let quotient = s.floor_div(&Expr::int(0));
    assert_eq!((&rest + &quotient).evaluate(&|_| Some(4)), None);
    assert_eq!((&rest + &Expr::int(1)).to_string(), "s0 % 0 + 1");
}
