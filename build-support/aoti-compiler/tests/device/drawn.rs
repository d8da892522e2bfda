//! Attention in drawn forms: lengths, widths, element types, masks of every shape, grouped heads, layouts and ways to
//! spell a softmax.

use std::fmt::Write;

/// Numbers that look random and are the same in every run.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    /// Below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).expect("small")]
    }
}

/// The statements of a graph under construction.
#[derive(Default)]
pub(crate) struct Text {
    pub(crate) inputs: String,
    pub(crate) body: String,
    pub(crate) outputs: String,
}

impl Text {
    /// A statement for value `name`, which it gives back.
    pub(crate) fn let_be(&mut self, name: &str, ty: &str, value: &str) -> String {
        let _ = writeln!(self.body, "  %{name}: {ty} = {value}");
        format!("%{name}")
    }

    pub(crate) fn input(&mut self, name: &str, ty: &str) -> String {
        let _ = writeln!(self.inputs, "  input %{name} \"{name}\": {ty}");
        format!("%{name}")
    }
}

/// A graph of `count` attentions.
pub(crate) fn graph(seed: u64, count: usize) -> String {
    let (mut draw, mut text) = (Draw::new(seed), Text::default());
    for number in 0..count {
        attention(&mut draw, &mut text, &format!("a{number}_"));
    }
    format!("graph \"drawn\" {{\n{}{}{}}}\n", text.inputs, text.body, text.outputs)
}

fn attention(draw: &mut Draw, text: &mut Text, p: &str) {
    let dtype = draw.one_of(&["f32", "f16", "bf16"]);
    let (batch, groups, share) = (1 + draw.below(2), 1 + draw.below(2), 1 + draw.below(3));
    let heads = groups * share;
    let length = |draw: &mut Draw| if draw.below(3) == 0 { 1 + draw.below(300) } else { 1 + draw.below(40) };
    // Of one key there is nothing to weigh.
    let (m, n) = (length(draw), 1 + length(draw));
    let (d, e) = (draw.one_of(&[8, 16, 20, 32, 33, 64, 96]), draw.one_of(&[8, 16, 24, 40, 64]));
    let matrix = |b: u64, rows: u64, columns: u64| format!("[{batch}, {b}, {rows}, {columns}]");
    // As a product's result is laid out, with the heads side by side, or as heads of their own.
    let operand = |draw: &mut Draw, text: &mut Text, name: &str, b: u64, rows: u64, columns: u64| {
        if draw.below(2) == 0 {
            return text.input(&format!("{p}{name}"), &format!("{dtype}{}", matrix(b, rows, columns)));
        }
        let flat = text.input(&format!("{p}{name}f"), &format!("{dtype}[{batch}, {rows}, {}]", b * columns));
        let view = format!("view {flat} [i0, i2, {columns}*i1 + i3]");
        text.let_be(&format!("{p}{name}"), &format!("{dtype}{}", matrix(b, rows, columns)), &view)
    };
    let mut q = operand(draw, text, "q", heads, m, d);
    let [mut k, mut v] =
        [("k", d), ("v", e)].map(|(name, columns)| operand(draw, text, name, groups, n, columns));
    if share > 1 {
        for (own, name, columns) in [(&mut k, "kg", d), (&mut v, "vg", e)] {
            let ty = format!("{dtype}{}", matrix(heads, n, columns));
            *own =
                text.let_be(&format!("{p}{name}"), &ty, &format!("view {own} [i0, i1 // {share}, i2, i3]"));
        }
    }
    let (is_half, rounds) = (dtype != "f32", draw.below(2) == 0);
    if is_half && !rounds {
        q = text.let_be(&format!("{p}qw"), &format!("f32{}", matrix(heads, m, d)), &format!("cast {q}"));
        k = text.let_be(&format!("{p}kw"), &format!("f32{}", matrix(heads, n, d)), &format!("cast {k}"));
    }
    let product = if rounds { dtype } else { "f32" };
    let ty = format!("{product}{}", matrix(heads, d, n));
    let kt = text.let_be(&format!("{p}kt"), &ty, &format!("view {k} [i0, i1, i3, i2]"));
    let (scores, space) = (format!("f32{}", matrix(heads, m, n)), matrix(heads, m, n));
    let mut x = text.let_be(&format!("{p}p"), &format!("{product}{space}"), &format!("matmul {q}, {kt}"));
    if is_half && rounds {
        x = text.let_be(&format!("{p}pw"), &scores, &format!("cast {x}"));
    }
    let scale = text.let_be(&format!("{p}scale"), &scores, "full 0.25");
    x = text.let_be(&format!("{p}s"), &scores, &format!("mul {x}, {scale}"));
    x = masked(draw, text, p, x, [batch, heads, m, n]);
    let w = softmax(draw, text, p, &x, [batch, heads, m, n]);
    let w = if is_half {
        text.let_be(&format!("{p}wh"), &format!("{dtype}{space}"), &format!("cast {w}"))
    } else {
        w
    };
    let ty = format!("{dtype}{}", matrix(heads, m, e));
    let y = text.let_be(&format!("{p}y"), &ty, &format!("matmul {w}, {v}"));
    let _ = writeln!(text.outputs, "  output {y} \"{p}y\"");
}

/// Scores of which some are hidden: by position, by a mask, by a bias, in any of the shapes that broadcast.
fn masked(draw: &mut Draw, text: &mut Text, p: &str, scores: String, sizes: [u64; 4]) -> String {
    let [batch, heads, m, n] = sizes;
    let space = format!("[{batch}, {heads}, {m}, {n}]");
    let (ty, mut x) = (format!("f32{space}"), scores);
    // Programs hide with an infinity, or with the least number that there is.
    let least = draw.one_of(&["-inf", "-3.4028234663852886e38"]);
    let hidden = text.let_be(&format!("{p}inf"), &ty, &format!("full {least}"));
    if draw.below(2) == 0 {
        let reach = draw.one_of(&[0, 0, n as i64 - m as i64, -2]);
        let at =
            text.let_be(&format!("{p}at"), &format!("i64[{m}, {n}]"), &format!("index [i0 - i1 + {reach}]"));
        let zero = text.let_be(&format!("{p}zero"), &format!("i64[{m}, {n}]"), "full 0");
        let sees = text.let_be(&format!("{p}sees"), &format!("bool[{m}, {n}]"), &format!("ge {at}, {zero}"));
        let seen =
            text.let_be(&format!("{p}seen"), &format!("bool{space}"), &format!("view {sees} [i2, i3]"));
        x = text.let_be(&format!("{p}causal"), &ty, &format!("select {seen}, {x}, {hidden}"));
    }
    if draw.below(3) == 0 {
        return x;
    }
    let shape: Vec<u64> = sizes.into_iter().map(|size| if draw.below(2) == 0 { 1 } else { size }).collect();
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let small = list(shape.iter().map(ToString::to_string).collect());
    let coords = list((0..4).map(|k| if shape[k] == 1 { "0".to_owned() } else { format!("i{k}") }).collect());
    let raw = text.input(&format!("{p}m"), &format!("f32{small}"));
    if draw.below(2) == 0 {
        let bias = text.let_be(&format!("{p}bias"), &ty, &format!("view {raw} {coords}"));
        return text.let_be(&format!("{p}biased"), &ty, &format!("add {x}, {bias}"));
    }
    let least = text.let_be(&format!("{p}least"), &format!("f32{small}"), "full -0.5");
    let shown = text.let_be(&format!("{p}shown"), &format!("bool{small}"), &format!("gt {raw}, {least}"));
    let shown = text.let_be(&format!("{p}mask"), &format!("bool{space}"), &format!("view {shown} {coords}"));
    text.let_be(&format!("{p}masked"), &ty, &format!("select {shown}, {x}, {hidden}"))
}

/// Softmax over the last axis, plain or with zeros for rows in which everything is hidden.
fn softmax(draw: &mut Draw, text: &mut Text, p: &str, x: &str, sizes: [u64; 4]) -> String {
    let [batch, heads, m, n] = sizes;
    let ty = format!("f32[{batch}, {heads}, {m}, {n}]");
    let (row, rows) = (format!("[{batch}, {heads}, {m}]"), format!("[{batch}, {heads}, {m}, 1]"));
    let guarded = draw.below(2) == 0;
    // `value`, but `instead` where it is `nothing`, along rows.
    let spread = |text: &mut Text, name: &str, value: &str, nothing: &str, instead: &str| {
        if !guarded {
            return text.let_be(&format!("{p}{name}s"), &ty, &format!("view {value} [i0, i1, i2]"));
        }
        let one =
            text.let_be(&format!("{p}{name}1"), &format!("f32{rows}"), &format!("view {value} [i0, i1, i2]"));
        let none = text.let_be(&format!("{p}{name}n"), &format!("f32{rows}"), &format!("full {nothing}"));
        let is = text.let_be(&format!("{p}{name}is"), &format!("bool{rows}"), &format!("eq {one}, {none}"));
        let other = text.let_be(&format!("{p}{name}o"), &format!("f32{rows}"), &format!("full {instead}"));
        let own = text.let_be(
            &format!("{p}{name}g"),
            &format!("f32{rows}"),
            &format!("select {is}, {other}, {one}"),
        );
        text.let_be(&format!("{p}{name}s"), &ty, &format!("view {own} [i0, i1, i2, 0]"))
    };
    let max = text.let_be(&format!("{p}max"), &format!("f32{row}"), &format!("max {x} axes [3]"));
    let peak = spread(text, "peak", &max, "-inf", "0.0");
    let shifted = text.let_be(&format!("{p}d"), &ty, &format!("sub {x}, {peak}"));
    let powers = text.let_be(&format!("{p}e"), &ty, &format!("exp {shifted}"));
    let sum = text.let_be(&format!("{p}sum"), &format!("f32{row}"), &format!("sum {powers} axes [3]"));
    let total = spread(text, "total", &sum, "0.0", "1.0");
    text.let_be(&format!("{p}w"), &ty, &format!("div {powers}, {total}"))
}
