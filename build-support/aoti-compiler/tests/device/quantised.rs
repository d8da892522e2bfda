//! Products with weights of a few bits, scaled in groups, drawn by number.

use super::{GFX9, NVIDIA, compiled_text, emulated, kernels};
use std::fmt::Write;

/// Weights of a product: their type when they are scaled, bits of a number, elements of a group, and whether numbers have zero points.
#[derive(Clone, Copy)]
struct Weights {
    dtype: &'static str,
    bits: u32,
    /// Of the whole depth where it is none.
    group: Option<usize>,
    zeros: bool,
}

/// Rows, depth and columns, and weights.
type Product = ((String, [usize; 2]), Weights);

/// The statements of a product of `[m, k]` by `[k, n]`, by number.
fn product(at: usize, (m, [k, n]): &(String, [usize; 2]), own: Weights) -> [String; 2] {
    let Weights { dtype, bits, group, zeros } = own;
    let (k, n) = (*k, *n);
    let group = group.unwrap_or(k);
    let (count, mask) = (k / group, (1 << bits) - 1);
    let split = format!("[{n}, {count}, {group}]");
    // Sums of whole columns are scaled, and numbers never rounded.
    let exact = group == k && dtype != "f32";
    let scales = if exact { "splat 0.25".to_owned() } else { format!("random {}", 3 * at + 1) };
    let mut constants = format!(
        "const c{a} \"q{at}\": u8{split} = random {a} const c{b} \"s{at}\": {dtype}[{n}, {count}] = {scales}
         const c{c} \"z{at}\": u8[{n}, {count}] = random {c}\n",
        a = 3 * at,
        b = 3 * at + 1,
        c = 3 * at + 2,
    );
    let _ = writeln!(constants, "input %x{at} \"x{at}\": {dtype}[{m}, {k}]");
    let p = |name: &str| format!("%{name}{at}");
    let zero = if zeros {
        format!(
            "{y}: u8[{n}, {count}] = constant c{c} {ym}: u8[{n}, {count}] = full {mask} {ya}: u8[{n}, {count}] = bit_and {y}, {ym}
             {z}: u8{split} = view {ya} [i0, i1] {zi}: i32{split} = cast {z}",
            c = 3 * at + 2, y = p("y"), ym = p("ym"), ya = p("ya"), z = p("z"), zi = p("zi")
        )
    } else {
        format!("{}: i32{split} = full {}", p("zi"), 1 << (bits - 1))
    };
    let statements = format!(
        "{q}: u8{split} = constant c{a} {v}: u8{split} = full 37 {x}: u8{split} = mul {q}, {v}
         {f}: u8{split} = full {mask} {l}: u8{split} = bit_and {x}, {f} {i}: i32{split} = cast {l}
         {zero} {d}: i32{split} = sub {i}, {zi} {w}: {dtype}{split} = cast {d}
         {sl}: {dtype}[{n}, {count}] = constant c{b} {sx}: {dtype}[{n}, {count}] = full 0.0625
         {s}: {dtype}[{n}, {count}] = mul {sl}, {sx} {sv}: {dtype}{split} = view {s} [i0, i1] {g}: {dtype}{split} = mul {w}, {sv}
         {r}: {dtype}[{n}, {k}] = view {g} [i0, i1 // {group}, i1 % {group}] {t}: {dtype}[{k}, {n}] = view {r} [i1, i0]
         {o}: {dtype}[{m}, {n}] = matmul %x{at}, {t} {e}: {dtype}[{m}, {n}] = abs {o} output {e} \"o{at}\"\n",
        a = 3 * at, b = 3 * at + 1, q = p("q"), v = p("v"), x = p("xq"), f = p("f"), l = p("l"), i = p("i"), zi = p("zi"), d = p("d"), w = p("w"),
        s = p("s"), sl = p("sl"), sx = p("sx"), sv = p("sv"), g = p("g"), r = p("r"), t = p("t"), o = p("o"), e = p("e")
    );
    [constants, statements]
}

fn graph(name: &str, products: &[Product]) -> String {
    let all: Vec<[String; 2]> =
        products.iter().enumerate().map(|(at, (sizes, own))| product(at, sizes, *own)).collect();
    let part = |position: usize| all.iter().map(|own| own[position].as_str()).collect::<String>();
    format!("graph \"{name}\" {{ {} {} }}", part(0), part(1))
}

/// Each kind of group by some type, of few and of many rows.
fn drawn() -> Vec<Product> {
    let groups = [Some(32), Some(64), Some(128), None, Some(96)];
    let dtypes = ["bf16", "f16", "f32"];
    let each = |at: usize| {
        let (bits, group, dtype) = ([4, 8][at % 2], groups[at % 5], dtypes[at % 3]);
        let depth = group.map_or(416, |group| group * [3, 9, 4][at / 3 % 3]);
        let (rows, columns) = ([1, 5, 8, 9, 16, 17, 40][at % 7], [65, 48, 70][at % 3]);
        ((rows.to_string(), [depth, columns]), Weights { dtype, bits, group, zeros: at % 4 == 1 })
    };
    (1..16).map(each).collect()
}

#[test]
fn products_with_numbers_of_a_few_bits_agree_with_the_evaluator() {
    let all = drawn();
    let text = graph("quantised", &all);
    let bundle = compiled_text("quantised", text.clone(), "sm_90a");
    assert_eq!(kernels(&bundle).matches("Grouped<").count(), all.len(), "{}", kernels(&bundle));
    assert!(kernels(&bundle).matches("contract_grouped<").count() > all.len() / 2);
    emulated("quantised", &text, NVIDIA);
    emulated("quantised", &graph("quantised", &all[..5]), GFX9);
}

#[test]
fn rows_are_counted_when_a_model_runs() {
    let weights = Weights { dtype: "bf16", bits: 4, group: Some(64), zeros: true };
    let product = |rows: &str| ((rows.to_owned(), [128, 72]), weights);
    // Five rows, and forty.
    let text = graph("open", &[product("s0"), product("s0 * 8")]);
    let text = text.replacen('{', "{ symbol s0 \"batch\" in 1..64 from input 0 axis 0 ", 1);
    let bundle = compiled_text("open", text.clone(), "sm_90a");
    for call in ["contract_grouped<bf16, 16>", "contract_units<bf16, 128, 128, 256, 8>"] {
        assert_eq!(kernels(&bundle).matches(call).count(), 2, "{call}\n{}", kernels(&bundle));
    }
    emulated("open", &text, NVIDIA);
}
