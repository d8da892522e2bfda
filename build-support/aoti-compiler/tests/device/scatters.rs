//! Scatters in drawn forms: element types, ways to meet, shapes, indices that collide seldom or always, and no updates at all.

use super::drawn::{Draw, Text};
use std::fmt::Write;

/// A graph of `count` scatters.
pub(crate) fn graph(seed: u64, count: usize) -> String {
    let (mut draw, mut text) = (Draw::new(seed), Text::default());
    for number in 0..count {
        scatter(&mut draw, &mut text, number, &format!("a{number}_"));
    }
    format!("graph \"drawn\" {{\n{}{}{}}}\n", text.inputs, text.body, text.outputs)
}

const FLOATS: [&str; 4] = ["f32", "f64", "f16", "bf16"];
const INTEGERS: [&str; 7] = ["i32", "i64", "u8", "i8", "i16", "u32", "bool"];

fn list(sizes: &[u64]) -> String {
    format!("[{}]", sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

/// One scatter: the first is a histogram, the second a sum of many updates, and what comes after them is drawn.
fn scatter(draw: &mut Draw, text: &mut Text, number: usize, p: &str) {
    let dtype = if draw.below(3) == 0 { draw.one_of(&INTEGERS) } else { draw.one_of(&FLOATS) };
    let combine = draw.one_of(&["set", "set", "add", "add", "add", "mul", "max", "min"]);
    // Single updates, few, many, and more than a block sorts or an update counts.
    let updates = draw.one_of(&[0, 1, 3, 8, 9, 60, 700, 4200, 5000, 5000]);
    let rows = draw.one_of(&[1, 2, 7, 40, 300, 70_000]);
    let wide = draw.one_of(&[1, 3, 8, 16, 24]);
    let one = draw.one_of(&[1, 2, 5]);
    let (mut dtype, mut combine, mut updates, mut rows, mut form) =
        (dtype, combine, updates, rows, draw.below(9));
    match number {
        0 => (dtype, combine, updates, rows, form) = (draw.one_of(&["i32", "i64"]), "add", 5000, 40, 3),
        1 => (dtype, combine, updates, form) = ("f64", "add", 5000, 0),
        _ => {}
    }
    let small = updates.min(700);
    let turned = format!("[$0, (i0 + i1) % {wide}]");
    // The target, the updates, the coordinates, and the updates' axes that indices have.
    let (base, shape, coords, indexed): (Vec<u64>, Vec<u64>, &str, &[u64]) = match form {
        0 => (vec![rows, wide], vec![updates, wide], "[$0, i1]", &[0]),
        1 => (vec![rows.min(300), wide], vec![small, wide], "[$0, i1]", &[0, 1]),
        2 => (vec![one, rows.min(300)], vec![one, small], "[i0, $0]", &[0, 1]),
        3 | 8 => (vec![rows], vec![updates], "[$0]", &[0]),
        4 => (vec![rows.min(300), 4, wide], vec![small, 2, wide], "[$0, i1 + 1, i2]", &[0]),
        5 => (vec![one, rows.min(300), wide], vec![one, updates.min(60), wide], "[i0, $0, i2]", &[1]),
        // Neither of these has parts that can be told apart.
        6 => (vec![rows.min(300), wide], vec![small, wide], &turned, &[0]),
        _ => (vec![rows.min(300), wide], vec![small, 2 * wide], "[$0, i1 // 2]", &[0]),
    };
    let values = elements(draw, text, &format!("{p}x"), dtype, &shape, combine);
    let start = elements(draw, text, &format!("{p}b"), dtype, &base, combine);
    let (axis, index_shape) = (base[if coords.starts_with("[i0") { 1 } else { 0 }], &shape);
    let index = indices(draw, text, &format!("{p}i"), axis, index_shape, indexed);
    let name = text.let_be(
        &format!("{p}y"),
        &format!("{dtype}{}", list(&base)),
        &format!("scatter {start}, {values}, {index} {combine} {coords}"),
    );
    let _ = writeln!(text.outputs, "  output {name} \"{p}y\"");
}

/// Elements whose sums in any order are near each other: of narrow types they are exact.
fn elements(draw: &mut Draw, text: &mut Text, p: &str, dtype: &str, shape: &[u64], combine: &str) -> String {
    let shape = list(shape);
    let ty = format!("{dtype}{shape}");
    let exact = |text: &mut Text| {
        let raw = text.input(&format!("{p}r"), &format!("i64{shape}"));
        text.let_be(&format!("{p}c"), &ty, &format!("cast {raw}"))
    };
    match (dtype, combine) {
        ("f32" | "f64", "mul") => {
            let raw = text.input(&format!("{p}r"), &ty);
            let little = text.let_be(&format!("{p}l"), &ty, "full 0.001");
            let part = text.let_be(&format!("{p}p"), &ty, &format!("mul {raw}, {little}"));
            let one = text.let_be(&format!("{p}o"), &ty, "full 1.0");
            text.let_be(&format!("{p}e"), &ty, &format!("add {one}, {part}"))
        }
        ("f32" | "f64", _) => {
            let raw = text.input(&format!("{p}r"), &ty);
            if combine == "add" && draw.below(3) == 0 {
                let mut sum = raw;
                for (name, test, limit, far) in [("a", "gt", "1.49", "inf"), ("b", "lt", "-1.49", "-inf")] {
                    let limit = text.let_be(&format!("{p}{name}l"), &ty, &format!("full {limit}"));
                    let test = format!("{test} {sum}, {limit}");
                    let is = text.let_be(&format!("{p}{name}i"), &format!("bool{shape}"), &test);
                    let far = text.let_be(&format!("{p}{name}f"), &ty, &format!("full {far}"));
                    sum = text.let_be(&format!("{p}{name}s"), &ty, &format!("select {is}, {far}, {sum}"));
                }
                return sum;
            }
            if matches!(combine, "max" | "min") && draw.below(2) == 0 {
                // NaN, and zeros of both signs.
                let up = text.let_be(&format!("{p}u"), &ty, &format!("trunc {raw}"));
                let other = text.input(&format!("{p}q"), &ty);
                let half = text.let_be(&format!("{p}h"), &ty, "full 1.49");
                let is =
                    text.let_be(&format!("{p}g"), &format!("bool{shape}"), &format!("gt {other}, {half}"));
                let nan = text.let_be(&format!("{p}n"), &ty, "full nan");
                return text.let_be(&format!("{p}s"), &ty, &format!("select {is}, {nan}, {up}"));
            }
            raw
        }
        ("f16" | "bf16", "mul") => {
            // Powers of two near 1, which underflow and overflow nowhere: signs.
            let raw = exact(text);
            let zero = text.let_be(&format!("{p}z"), &ty, "full 0.0");
            let is = text.let_be(&format!("{p}g"), &format!("bool{shape}"), &format!("gt {raw}, {zero}"));
            let (one, minus) = ("full 1.0", "full -1.0");
            let one = text.let_be(&format!("{p}o"), &ty, one);
            let minus = text.let_be(&format!("{p}m"), &ty, minus);
            text.let_be(&format!("{p}s"), &ty, &format!("select {is}, {one}, {minus}"))
        }
        ("f16" | "bf16", "add") => {
            // 0, 1 or -1 where many meet.
            let raw = text.input(&format!("{p}r"), &format!("f32{shape}"));
            let whole = text.let_be(&format!("{p}u"), &format!("f32{shape}"), &format!("trunc {raw}"));
            text.let_be(&format!("{p}c"), &ty, &format!("cast {whole}"))
        }
        _ => exact(text),
    }
}

/// Indices below `size`, of some of the axes of a shape: spread evenly, or mostly small, or all the same.
fn indices(draw: &mut Draw, text: &mut Text, p: &str, size: u64, shape: &[u64], axes: &[u64]) -> String {
    let own: Vec<u64> = axes.iter().map(|axis| shape[*axis as usize]).collect();
    let (ty, whole) = (format!("f32{}", list(&own)), format!("i64{}", list(&own)));
    let raw = text.input(&format!("{p}r"), &ty);
    let third = text.let_be(&format!("{p}t"), &ty, "full 0.333");
    let half = text.let_be(&format!("{p}h"), &ty, "full 0.5");
    let scaled = text.let_be(&format!("{p}s"), &ty, &format!("mul {raw}, {third}"));
    let mut part = text.let_be(&format!("{p}p"), &ty, &format!("add {scaled}, {half}"));
    if draw.below(3) == 0 {
        for power in 0..3 {
            part = text.let_be(&format!("{p}p{power}"), &ty, &format!("mul {part}, {part}"));
        }
    }
    let count = text.let_be(&format!("{p}n"), &ty, &format!("full {size}.0"));
    let place = text.let_be(&format!("{p}m"), &ty, &format!("mul {part}, {count}"));
    let mut index = text.let_be(&format!("{p}w"), &whole, &format!("cast {place}"));
    if draw.below(6) == 0 {
        index = text.let_be(&format!("{p}e"), &whole, &format!("full {}", size - 1));
    }
    let coords: Vec<String> = axes.iter().map(|axis| format!("i{axis}")).collect();
    let view = format!("view {index} [{}]", coords.join(", "));
    text.let_be(&format!("{p}v"), &format!("i64{}", list(shape)), &view)
}
