//! Sorting and running reductions of drawn shapes: rows that several share a block, that one block has, and that several
//! passes take; first, middle and last axes; ties, zeros of both signs, NaN and infinities.

use super::drawn::{Draw, Text};
use super::{GFX9, NVIDIA, emulated};

/// A graph of `count` operations on rows.
fn graph(seed: u64, count: usize) -> String {
    let (mut draw, mut text) = (Draw::new(seed), Text::default());
    for number in 0..count {
        operation(&mut draw, &mut text, &format!("a{number}_"));
    }
    format!("graph \"order\" {{\n{}{}{}}}\n", text.inputs, text.body, text.outputs)
}

fn operation(draw: &mut Draw, text: &mut Text, p: &str) {
    let length = match draw.below(6) {
        0 => 1 + draw.below(8),
        1 => 1 + draw.below(64),
        2 => 1 + draw.below(1000),
        3 => 1000 + draw.below(4000),
        4 => 4097 + draw.below(8000),
        _ => 1 + draw.below(300),
    };
    let (before, behind) = (1 + draw.below(3), draw.one_of(&[1, 1, 1, 3, 40]));
    let behind = if length > 2000 { 1 + behind % 2 } else { behind };
    let of = |length: u64| format!("[{before}, {length}, {behind}]");
    let dtype = draw.one_of(&["f32", "f32", "f64", "f16", "bf16", "i64", "i32", "u8", "i8", "i16", "u64"]);
    let is_small = ["u8", "i8", "i16"].contains(&dtype);
    let given = if is_small { "i32" } else { dtype };
    let x = text.input(&format!("{p}x"), &format!("{given}{}", of(length)));
    let x = if is_small {
        text.let_be(&format!("{p}small"), &format!("{dtype}{}", of(length)), &format!("cast {x}"))
    } else {
        x
    };
    let x = if dtype.starts_with(['f', 'b']) { coarse(text, p, &x, dtype, &of(length)) } else { x };
    let descending = draw.one_of(&["", " descending"]);
    let kept = draw.one_of(&[1, 3, 50, 1500]).min(length);
    let (statement, rows) = match draw.below(7) {
        6 => (nth_element(draw, text, p, &x, (length, &of(1))), 1),
        0 | 1 => (format!("sort {x} axis 1{descending}"), length),
        2 | 3 => (format!("sort {x} axis 1{descending} first {kept}"), kept),
        4 => (format!("{} {x} axis 1", draw.one_of(&["cummax", "cummin"])), length),
        _ => {
            let y = text.let_be(
                &format!("{p}y"),
                &format!("{dtype}{}", of(length)),
                &format!("cumsum {x} axis 1"),
            );
            text.outputs.push_str(&format!("  output {y}\n"));
            return;
        }
    };
    let shape = of(rows);
    text.body.push_str(&format!("  %{p}y: {dtype}{shape}, %{p}i: i64{shape} = {statement}\n"));
    text.outputs.push_str(&format!("  output %{p}y\n  output %{p}i\n"));
}

/// The element of a rank, the same in each row or its own.
fn nth_element(draw: &mut Draw, text: &mut Text, p: &str, x: &str, (length, shape): (u64, &str)) -> String {
    let rank = draw.below(length);
    let ty = format!("i64{shape}");
    let mut ranks = text.let_be(&format!("{p}rank"), &ty, &format!("full {rank}"));
    if draw.below(2) == 0 {
        // Some lead out of the row.
        let own = text.input(&format!("{p}own"), &ty);
        ranks = text.let_be(&format!("{p}ranks"), &ty, &format!("add {ranks}, {own}"));
    }
    format!("nth_element {x}, {ranks} axis 1{}", draw.one_of(&["", " partitioned"]))
}

/// Few values, many of which are equal: of zeros the inverse is infinite, of negative numbers the root is none.
fn coarse(text: &mut Text, p: &str, x: &str, dtype: &str, shape: &str) -> String {
    let ty = format!("{dtype}{shape}");
    let eight = text.let_be(&format!("{p}eight"), &ty, "full 8.0");
    let scaled = text.let_be(&format!("{p}scaled"), &ty, &format!("mul {x}, {eight}"));
    let floor = text.let_be(&format!("{p}floor"), &ty, &format!("floor {scaled}"));
    let root = text.let_be(&format!("{p}root"), &ty, &format!("sqrt {floor}"));
    let one = text.let_be(&format!("{p}one"), &ty, "full 4.0");
    let above = text.let_be(&format!("{p}above"), &format!("bool{shape}"), &format!("gt {floor}, {one}"));
    let inverse = text.let_be(&format!("{p}inverse"), &ty, &format!("div {one}, {floor}"));
    text.let_be(&format!("{p}some"), &ty, &format!("select {above}, {root}, {inverse}"))
}

#[test]
fn rows_of_drawn_shapes_are_in_the_order_of_the_evaluator() {
    for seed in 0..4 {
        emulated(&format!("order{seed}"), &graph(seed, 8), if seed % 2 == 0 { NVIDIA } else { GFX9 });
    }
}
