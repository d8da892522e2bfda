//! Recurrent layers of drawn forms: cells, directions, layouts, types, biases, states at the start; units that one block has, and that
//! a cluster would have.

use super::drawn::{Draw, Text};
use super::{NVIDIA, emulated};

/// A graph of `count` layers.
fn graph(seed: u64, count: usize) -> String {
    let (mut draw, mut text) = (Draw::new(seed), Text::default());
    for number in 0..count {
        layer(&mut draw, &mut text, &format!("a{number}_"));
    }
    format!("graph \"recurrent\" {{\n{}{}{}}}\n", text.inputs, text.body, text.outputs)
}

fn layer(draw: &mut Draw, text: &mut Text, p: &str) {
    let (cell, gates) = draw.one_of(&[("lstm", 4), ("gru", 3), ("tanh", 1), ("relu", 1)]);
    let (directions, count) = draw.one_of(&[("forward", 1), ("reverse", 1), ("both", 2)]);
    let units = draw.one_of(&[1, 7, 16, 31, 40, 64, 70, 100, 128]);
    let (steps, batch) = (2 + draw.below(4), 1 + draw.below(9));
    let dtype = draw.one_of(&["f32", "f32", "f16", "bf16"]);
    let [batch_first, bias, start] = ["batch_first", "bias", "start"].map(|word| draw.one_of(&["", word]));
    let sequence = |columns: u64| match batch_first {
        "" => format!("{dtype}[{steps}, {batch}, {columns}]"),
        _ => format!("{dtype}[{batch}, {steps}, {columns}]"),
    };
    let state = format!("{dtype}[{count}, {batch}, {units}]");
    let width = gates * units;
    let mut operands = vec![
        text.input(&format!("{p}x"), &sequence(count * width)),
        text.input(&format!("{p}w"), &format!("{dtype}[{count}, {width}, {units}]")),
    ];
    if !bias.is_empty() {
        operands.push(text.input(&format!("{p}b"), &format!("{dtype}[{count}, {width}]")));
    }
    if !start.is_empty() {
        operands.push(text.input(&format!("{p}h"), &state));
        operands.extend((cell == "lstm").then(|| text.input(&format!("{p}c"), &state)));
    }
    let flags = [batch_first, bias, start].into_iter().filter(|word| !word.is_empty());
    let flags: String = flags.map(|word| format!(" {word}")).collect();
    let mut results = vec![format!("%{p}y: {}", sequence(count * units)), format!("%{p}last: {state}")];
    results.extend((cell == "lstm").then(|| format!("%{p}memory: {state}")));
    let (results, operands) = (results.join(", "), operands.join(", "));
    text.body
        .push_str(&format!("  {results} = recurrent {operands} {cell} {directions} hidden {units}{flags}\n"));
    for result in ["y", "last", "memory"].iter().take(if cell == "lstm" { 3 } else { 2 }) {
        text.outputs.push_str(&format!("  output %{p}{result}\n"));
    }
}

#[test]
fn layers_of_drawn_forms_are_those_of_the_evaluator() {
    for seed in 0..3 {
        emulated(&format!("recurrent{seed}"), &graph(seed, 5), NVIDIA);
    }
}
