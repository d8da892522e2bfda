//! Networks of convolutions in drawn forms: sizes, channels that can and cannot be read several at a time, windows, strides,
//! borders, and what stands between convolutions: pooling, joins, slices, sums over positions, transposes.

use super::drawn::{Draw, Text};
use std::fmt::Write;

/// A value `[n, c, h, w]`.
#[derive(Clone)]
struct Image {
    name: String,
    sizes: [u64; 4],
}

/// A graph of `count` networks.
pub(crate) fn graph(seed: u64, count: usize) -> String {
    let mut network = Network {
        draw: Draw::new(seed),
        text: Text::default(),
        constants: String::new(),
        numbers: 0,
        names: 0,
    };
    for number in 0..count {
        network.draw_one(number);
    }
    let Text { inputs, body, outputs } = network.text;
    format!("graph \"drawn\" {{\n{}{inputs}{body}{outputs}}}\n", network.constants)
}

struct Network {
    draw: Draw,
    text: Text,
    constants: String,
    /// Constants so far.
    numbers: usize,
    /// Values so far.
    names: usize,
}

impl Network {
    fn draw_one(&mut self, number: usize) {
        // Sums of halves are rounded at each step, so they are not chained.
        let dtype = self.draw.one_of(&["f32", "f32", "f16", "bf16"]);
        let sizes = [
            1 + self.draw.below(3),
            self.draw.one_of(&[1, 3, 6, 8, 16, 24, 64]),
            6 + self.draw.below(9),
            6 + self.draw.below(9),
        ];
        let name = self.text.input(&format!("x{number}"), &format!("{dtype}{sizes:?}"));
        let mut image = self.convolution(dtype, &Image { name, sizes });
        for _ in 0..if dtype == "f32" { 4 } else { 0 } {
            image = self.step(&image);
        }
        let _ = writeln!(self.text.outputs, "  output {} \"y{number}\"", image.name);
    }

    fn let_be(&mut self, dtype: &str, sizes: [u64; 4], value: &str) -> Image {
        self.names += 1;
        let name = self.text.let_be(&format!("v{}", self.names), &format!("{dtype}{sizes:?}"), value);
        Image { name, sizes }
    }

    fn constant(&mut self, dtype: &str, sizes: &[u64]) -> String {
        let count: u64 = sizes.iter().product();
        let numbers: Vec<String> =
            (0..count).map(|_| format!("{:.4}", self.draw.below(1000) as f64 / 2000.0 - 0.25)).collect();
        let number = self.numbers;
        self.numbers += 1;
        let _ = writeln!(
            self.constants,
            "  const c{number} \"c{number}\": {dtype}{sizes:?} = [{}]",
            numbers.join(", ")
        );
        self.text.let_be(&format!("c{number}"), &format!("{dtype}{sizes:?}"), &format!("constant c{number}"))
    }

    /// A convolution with what often follows it.
    fn convolution(&mut self, dtype: &str, x: &Image) -> Image {
        let [n, c, h, w] = x.sizes;
        let groups = if c % 2 == 0 && self.draw.below(5) == 0 { self.draw.one_of(&[2, c]) } else { 1 };
        let out: u64 = self.draw.one_of(&[4, 6, 8, 16, 40]);
        let out = out.next_multiple_of(groups);
        let k = self.draw.one_of(&[1, 1, 3, 3, 5]).min(h).min(w);
        let (stride, padding) = (1 + self.draw.below(2), self.draw.below(3));
        let dilation = if k == 3 && h > 6 && w > 6 { 1 + self.draw.below(2) } else { 1 };
        let size = |size: u64| (size + 2 * padding - dilation * (k - 1) - 1) / stride + 1;
        let weight = self.constant(dtype, &[out, c / groups, k, k]);
        let sizes = [n, out, size(h), size(w)];
        let parameters = format!(
            "stride [{stride}, {stride}] padding [{padding}:{padding}, {padding}:{padding}] \
             dilation [{dilation}, {dilation}] groups {groups}"
        );
        let mut y = self.let_be(dtype, sizes, &format!("conv {}, {weight} {parameters}", x.name));
        if self.draw.below(3) > 0 {
            let bias = self.constant(dtype, &[out]);
            let bias = self.let_be(dtype, sizes, &format!("view {bias} [i1]"));
            y = self.let_be(dtype, sizes, &format!("add {}, {}", y.name, bias.name));
        }
        if self.draw.below(2) == 0 {
            let zero = self.let_be(dtype, sizes, "full 0.0");
            y = self.let_be(dtype, sizes, &format!("maximum {}, {}", y.name, zero.name));
        }
        y
    }

    fn step(&mut self, x: &Image) -> Image {
        let [n, c, h, w] = x.sizes;
        match self.draw.below(8) {
            0 if h > 2 && w > 2 => {
                let (h, w) = ((h - 2) / 2 + 1, (w - 2) / 2 + 1);
                self.names += 1;
                let windows = self.text.let_be(
                    &format!("v{}", self.names),
                    &format!("f32[{n}, {c}, {h}, {w}, 2, 2]"),
                    &format!("view {} [i0, i1, 2*i2 + i4, 2*i3 + i5]", x.name),
                );
                self.let_be("f32", [n, c, h, w], &format!("max {windows} axes [4, 5]"))
            }
            1 => {
                // What a layer says of each channel, multiplied into it.
                self.names += 1;
                let sums = self.text.let_be(
                    &format!("v{}", self.names),
                    &format!("f32[{n}, {c}]"),
                    &format!("sum {} axes [2, 3]", x.name),
                );
                let sums = self.let_be("f32", x.sizes, &format!("view {sums} [i0, i1]"));
                let gates = self.let_be("f32", x.sizes, &format!("sigmoid {}", sums.name));
                self.let_be("f32", x.sizes, &format!("mul {}, {}", x.name, gates.name))
            }
            2 if c > 1 => {
                let own = 1 + self.draw.below(c - 1);
                self.let_be("f32", [n, own, h, w], &format!("view {} [i0, i1 + {}, i2, i3]", x.name, c - own))
            }
            3 => {
                let other = self.convolution("f32", x);
                let wide = [n, other.sizes[1], h, w];
                let view = format!(
                    "view {} [i0, i1, min(i2, {}), min(i3, {})]",
                    other.name,
                    other.sizes[2] - 1,
                    other.sizes[3] - 1
                );
                let other = self.let_be("f32", wide, &view);
                let joined = [n, c + wide[1], h, w];
                self.let_be("f32", joined, &format!("cat {}, {} axis 1", x.name, other.name))
            }
            4 => {
                let turned = self.let_be("f32", [n, c, w, h], &format!("view {} [i0, i1, i3, i2]", x.name));
                self.convolution("f32", &turned)
            }
            5 => {
                let mixed = self.let_be("f32", [n, h, c, w], &format!("view {} [i0, i2, i1, i3]", x.name));
                self.convolution("f32", &mixed)
            }
            _ => self.convolution("f32", x),
        }
    }
}
