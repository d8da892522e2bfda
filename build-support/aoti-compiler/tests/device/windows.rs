//! Convolutions of few channels a group in drawn forms: one to three axes, taps, strides, dilations, borders, channels of a
//! group, element types, and where the channels of input and output lie.

use super::drawn::{Draw, Text};
use std::fmt::Write;

/// Where the channels of an input and of what is computed from it lie: what comes from the caller and goes to it has them first.
#[derive(Clone, Copy)]
enum Place {
    First,
    LastToFirst,
    Last,
}

/// A graph of `count` convolutions.
pub(crate) fn graph(seed: u64, count: usize) -> String {
    let (mut draw, mut text, mut constants) = (Draw::new(seed), Text::default(), String::new());
    for number in 0..count {
        let place = [Place::First, Place::Last, Place::LastToFirst][number % 3];
        one(&mut draw, &mut text, &mut constants, number, place);
    }
    let Text { inputs, body, outputs } = text;
    format!("graph \"drawn\" {{\n{constants}{inputs}{body}{outputs}}}\n")
}

fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

fn one(draw: &mut Draw, text: &mut Text, constants: &mut String, number: usize, place: Place) {
    // Only floats of these types have their channels last.
    let dtype = match place {
        Place::First => draw.one_of(&["f32", "f16", "bf16", "f64"]),
        Place::Last | Place::LastToFirst => draw.one_of(&["f32", "f16", "bf16"]),
    };
    let rank = draw.one_of(&[2, 2, 2, 1, 3]);
    let (own, each) = match place {
        Place::First => draw.one_of(&[(1, 1), (1, 1), (1, 3), (2, 4), (3, 2), (4, 4), (8, 8)]),
        Place::Last | Place::LastToFirst => {
            draw.one_of(&[(1, 1), (1, 1), (1, 2), (2, 2), (4, 4), (8, 8), (16, 16)])
        }
    };
    let channels: u64 = match place {
        Place::First => own * draw.one_of(&[2, 3, 5, 8, 20]),
        Place::Last | Place::LastToFirst => 8 * own.max(8) / 8 * draw.one_of(&[1, 2, 3, 5, 9]),
    };
    let groups = if channels == own { 2 } else { channels / own };
    let channels = groups * own;
    let mut axes = vec![];
    for _ in 0..rank {
        let taps = draw.one_of(if rank == 3 { &[1, 2, 3] } else { &[1, 3, 3, 5, 7, 9, 13] });
        let (stride, dilation) = (draw.one_of(&[1, 1, 2, 3]), draw.one_of(&[1, 1, 2, 3]));
        let (before, after) = (draw.below(taps + 1), draw.below(taps + 1));
        let reach = dilation * (taps - 1) + 1;
        let least = reach.saturating_sub(before + after).max(1);
        let size = least + draw.below(if rank == 3 { 5 } else { 18 });
        let size = if draw.below(2) == 0 { size.next_multiple_of(4) } else { size };
        axes.push((
            size,
            taps,
            stride,
            dilation,
            before,
            after,
            (size + before + after - reach) / stride + 1,
        ));
    }
    let batch = 1 + draw.below(3);
    let input = format!("{dtype}[{batch}, {channels}, {}]", list(axes.iter().map(|axis| axis.0)));
    let output = format!("{dtype}[{batch}, {}, {}]", groups * each, list(axes.iter().map(|axis| axis.6)));
    let kernel: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
    let count = groups * each * own * kernel.iter().product::<u64>();
    let scale = f64::from(u32::try_from(own * kernel.iter().product::<u64>()).expect("small")).sqrt();
    let weights = list((0..count).map(|_| format!("{:.4}", (draw.below(1000) as f64 / 500.0 - 1.0) / scale)));
    let weight = format!("{dtype}[{}, {own}, {}]", groups * each, list(&kernel));
    let _ = writeln!(constants, "  const c{number} \"c{number}\": {weight} = [{weights}]");
    let mut x = text.input(&format!("x{number}"), &input);
    if !matches!(place, Place::First) {
        x = text.let_be(&format!("a{number}"), &input, &format!("tanh {x}"));
    }
    let w = text.let_be(&format!("w{number}"), &weight, &format!("constant c{number}"));
    let value = format!(
        "conv {x}, {w} stride [{}] padding [{}] dilation [{}] groups {groups}",
        list(axes.iter().map(|axis| axis.2)),
        list(axes.iter().map(|axis| format!("{}:{}", axis.4, axis.5))),
        list(axes.iter().map(|axis| axis.3)),
    );
    let mut y = text.let_be(&format!("y{number}"), &output, &value);
    if draw.below(2) == 0 {
        y = text.let_be(&format!("z{number}"), &output, &format!("sigmoid {y}"));
    }
    if matches!(place, Place::Last) {
        // The largest of the last axis and of few others are most of what was computed.
        let kept = format!(
            "{dtype}[{batch}, {}, {}]",
            groups * each,
            list(axes[..rank - 1].iter().map(|axis| axis.6).chain([1]).take(rank.max(2) - 1))
        );
        let shape = if rank == 1 { format!("{dtype}[{batch}, {}]", groups * each) } else { kept };
        y = text.let_be(&format!("m{number}"), &shape, &format!("max {y} axes [{}]", rank + 1));
    }
    let _ = writeln!(text.outputs, "  output {y} \"y{number}\"");
}
