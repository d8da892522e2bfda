//! The work of compiling grows with the size of a program, and not faster: each shape of program is compiled at some size and
//! at twice that, and the times are compared. Nothing is said of how long either takes.

use aoti_compiler::compile::{Options, compile};
use aoti_compiler::frontend::torch::aten::text::parse;
use aoti_compiler::frontend::torch::functionalize::functionalize;
use aoti_compiler::graph::text::print;
use bytes::Bytes;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Twice the size may take this many times as long: twice, a logarithm, and noise. A quadratic part that counts at these sizes
/// comes to 4, an exponential one to far more.
const MOST: f64 = 3.5;
/// Of times that are too far apart, the smallest of so many are compared.
const ATTEMPTS: usize = 4;

fn options() -> Options {
    Options::new("net", ["native"])
}

fn compiled(program: &str) -> Duration {
    let program = parse(&format!("program {{\n{program}}}")).expect("the text parses");
    let start = Instant::now();
    let graph = functionalize(&program).unwrap_or_else(|error| panic!("{error}"));
    let text = Bytes::from(print(&graph));
    compile(text, &options()).unwrap_or_else(|error| panic!("{error}"));
    start.elapsed()
}

/// Compares programs of `size` and of twice that.
fn grows_with_size(name: &str, size: usize, program: fn(usize) -> String) {
    let (mut once, mut twice) = (Duration::MAX, Duration::MAX);
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        once = once.min(compiled(&program(size)));
        twice = twice.min(compiled(&program(2 * size)));
        ratio = twice.as_secs_f64() / once.as_secs_f64();
        println!("{name}: {size} in {once:?}, twice as many in {twice:?}, {ratio:.2}");
        if ratio < MOST {
            return;
        }
    }
    panic!("{name}: twice the size takes {ratio:.2} times as long, {twice:?} after {once:?}");
}

/// A chain of `count` steps, each of which turns `%v<k>` into `%v<k + 1>`, all of one type.
fn chain(ty: &str, count: usize, step: impl Fn(usize, &str, &str) -> String) -> String {
    let mut text = format!("input %v0: {ty}\n");
    for k in 0..count {
        text += &step(k, &format!("%v{k}"), &format!("%v{}", k + 1));
    }
    text + &format!("output %v{count}\n")
}

#[test]
fn chains_of_reshapes_and_transposes() {
    grows_with_size("reshapes", 12, |n| {
        chain("f32[14, 15]", n, |k, from, to| {
            format!(
                "%a{k}: f32[6, 35] = aten.view.default(self = {from}, size = [6, 35])\n\
                 %b{k}: f32[35, 6] = aten.t.default(self = %a{k})\n\
                 {to}: f32[14, 15] = aten.reshape.default(self = %b{k}, shape = [14, 15])\n"
            )
        })
    });
}

#[test]
fn chains_of_reshapes_with_operations_between() {
    grows_with_size("reshapes and negations", 12, |n| {
        chain("f32[14, 15]", n, |k, from, to| {
            format!(
                "%a{k}: f32[6, 35] = aten.view.default(self = {from}, size = [6, 35])\n\
                 %b{k}: f32[35, 6] = aten.t.default(self = %a{k})\n\
                 %c{k}: f32[14, 15] = aten.reshape.default(self = %b{k}, shape = [14, 15])\n\
                 {to}: f32[14, 15] = aten.neg.default(self = %c{k})\n"
            )
        })
    });
}

#[test]
fn chains_of_slices_flips_and_concatenations() {
    grows_with_size("slices and concatenations", 60, |n| {
        chain("f32[8, 6]", n, |k, from, to| {
            format!(
                "%a{k}: f32[4, 6] = aten.slice.Tensor(self = {from}, dim = 0, start = 4, end = 8)\n\
                 %b{k}: f32[4, 6] = aten.slice.Tensor(self = {from}, dim = 0, start = 0, end = 4)\n\
                 %c{k}: f32[4, 6] = aten.flip.default(self = %b{k}, dims = [1])\n\
                 {to}: f32[8, 6] = aten.cat.default(tensors = [%a{k}, %c{k}], dim = 0)\n"
            )
        })
    });
}

#[test]
fn chains_of_pads() {
    grows_with_size("pads", 60, |n| {
        chain("f32[8, 6]", n, |k, from, to| {
            format!(
                "%a{k}: f32[10, 6] = aten.constant_pad_nd.default(self = {from}, pad = [0, 0, 1, 1], value = 2.0)\n\
                 {to}: f32[8, 6] = aten.slice.Tensor(self = %a{k}, dim = 0, start = 0, end = 8)\n"
            )
        })
    });
}

#[test]
fn towers_of_choices_between_one_value_and_itself() {
    // At these sizes kernels are as large as they may become, and only their number grows.
    grows_with_size("choices", 340, |n| {
        chain("f32[16]", n, |k, from, to| {
            format!(
                "%a{k}: bool[16] = aten.gt.Scalar(self = {from}, other = {k})\n\
                 %b{k}: f32[16] = aten.add.Tensor(self = {from}, other = {from})\n\
                 {to}: f32[16] = aten.where.self(condition = %a{k}, self = %b{k}, other = {from})\n"
            )
        })
    });
}

#[test]
fn sums_of_many_inputs() {
    grows_with_size("inputs", 150, |n| {
        let mut text = String::new();
        for k in 0..=n {
            writeln!(text, "input %x{k}: f32[16]").expect("text is written");
        }
        text += "%s0: f32[16] = aten.neg.default(self = %x0)\n";
        for k in 0..n {
            writeln!(text, "%s{}: f32[16] = aten.add.Tensor(self = %s{k}, other = %x{})", k + 1, k + 1)
                .expect("text is written");
        }
        text + &format!("output %s{n}\n")
    });
}

#[test]
fn many_outputs_of_one_input() {
    grows_with_size("outputs", 100, |n| {
        let mut text = "input %x: f32[16]\n".to_owned();
        for k in 0..n {
            writeln!(text, "%y{k}: f32[16] = aten.mul.Scalar(self = %x, other = {k}.5)")
                .expect("text is written");
        }
        (0..n).fold(text, |text, k| text + &format!("output %y{k}\n"))
    });
}

#[test]
fn concatenations_of_many_operands() {
    grows_with_size("operands", 100, |n| {
        let mut text = "input %x: f32[16]\n".to_owned();
        for k in 0..n {
            writeln!(text, "%y{k}: f32[16] = aten.mul.Scalar(self = %x, other = {k}.5)")
                .expect("text is written");
        }
        let operands: Vec<String> = (0..n).map(|k| format!("%y{k}")).collect();
        let size = 16 * n;
        text + &format!(
            "%all: f32[{size}] = aten.cat.default(tensors = [{}], dim = 0)\noutput %all\n",
            operands.join(", ")
        )
    });
}
