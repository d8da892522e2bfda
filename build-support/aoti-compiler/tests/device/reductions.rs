//! Reductions of drawn shapes: of the last axes, of the first, of those between, in all operations.

use super::drawn::{Draw, Text};
use super::emulated::{GFX9, NVIDIA, emulated};
use std::fmt::Write;

fn list(sizes: &[u64]) -> String {
    format!("[{}]", sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

/// A graph of `count` reductions.
fn graph(seed: u64, count: usize) -> String {
    let (mut draw, mut text) = (Draw::new(seed), Text::default());
    for number in 0..count {
        one(&mut draw, &mut text, number);
    }
    let Text { inputs, body, outputs } = text;
    format!("graph \"reductions\" {{\n{inputs}{body}{outputs}}}\n")
}

/// A value for each axis: short ones, long ones, and multiples of what lanes hold.
fn shape(draw: &mut Draw) -> Vec<u64> {
    let rank = 1 + draw.below(4);
    let mut left = 6000;
    let sizes = (0..rank).map(|_| {
        let size = match draw.below(4) {
            0 => 1 + draw.below(8),
            1 => 1 + draw.below(60),
            2 => 8 * (1 + draw.below(40)),
            _ => 1 + draw.below(3000),
        };
        let size = size.clamp(1, left);
        left = (left / size).max(1);
        size
    });
    let mut sizes: Vec<u64> = sizes.collect();
    for place in (1..sizes.len()).rev() {
        let other = usize::try_from(draw.below(place as u64 + 1)).expect("small");
        sizes.swap(place, other);
    }
    sizes
}

fn one(draw: &mut Draw, text: &mut Text, number: usize) {
    let sizes = shape(draw);
    let op = draw.one_of(&["sum", "max", "min", "argmax", "argmin", "any"]);
    let is_place = op.starts_with("arg");
    let mut axes: Vec<u64> = (0..sizes.len() as u64).filter(|_| draw.below(2) == 0).collect();
    if axes.is_empty() || is_place {
        axes = vec![draw.below(sizes.len() as u64)];
    }
    let ty = draw.one_of(&["f32", "f16", "bf16", "f32"]);
    reduction(text, number, (op, ty), &sizes, &axes);
}

/// One reduction, of whole numbers: extremes have equals, and sums are exact.
fn reduction(text: &mut Text, number: usize, (op, ty): (&str, &str), sizes: &[u64], axes: &[u64]) {
    let is_place = op.starts_with("arg");
    let kept: Vec<u64> =
        (0..sizes.len()).filter(|axis| !axes.contains(&(*axis as u64))).map(|axis| sizes[axis]).collect();
    let given = text.input(&format!("x{number}"), &format!("{ty}{}", list(sizes)));
    let whole =
        text.let_be(&format!("w{number}"), &format!("{ty}{}", list(sizes)), &format!("trunc {given}"));
    let (operand, result) = match op {
        "any" => {
            let flags = format!("bool{}", list(sizes));
            let none = text.let_be(&format!("n{number}"), &format!("{ty}{}", list(sizes)), "full 1.0");
            (text.let_be(&format!("b{number}"), &flags, &format!("gt {whole}, {none}")), "bool")
        }
        "sum" => {
            let wide = format!("f32{}", list(sizes));
            let wide = if ty == "f32" {
                whole
            } else {
                text.let_be(&format!("c{number}"), &wide, &format!("cast {whole}"))
            };
            (wide, "f32")
        }
        _ => (whole, if is_place { "i64" } else { ty }),
    };
    let value = format!("{op} {operand} axes {}", list(axes));
    let y = text.let_be(&format!("y{number}"), &format!("{result}{}", list(&kept)), &value);
    let _ = writeln!(text.outputs, "  output {y} \"y{number}\"");
}

#[test]
fn drawn_reductions_agree_with_the_evaluator() {
    const EACH: usize = 12;
    for part in 0..2 {
        let text = graph(part, EACH);
        emulated("reductions", &text, if part % 2 == 0 { NVIDIA } else { GFX9 });
    }
}

#[test]
fn few_columns_agree_with_the_evaluator() {
    let mut text = Text::default();
    let shapes: [&[u64]; 6] = [&[700, 3], &[901, 11], &[512, 2], &[2, 300, 7], &[333, 31], &[2, 3, 400, 5]];
    let ops = ["sum", "argmax", "max", "argmin", "any", "argmax"];
    for (number, (sizes, op)) in shapes.into_iter().zip(ops).enumerate() {
        let axis = sizes.len() as u64 - 2;
        reduction(&mut text, number, (op, "f32"), sizes, &[axis]);
    }
    let Text { inputs, body, outputs } = text;
    let text = format!("graph \"columns\" {{\n{inputs}{body}{outputs}}}\n");
    for machine in [NVIDIA, GFX9] {
        emulated("columns", &text, machine);
    }
}
