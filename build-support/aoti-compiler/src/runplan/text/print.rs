//! Prints run plans.

use crate::graph::text::{
    bracketed, collective_text, guard_line, note_line, quoted, quoted_name, range_text,
};
use crate::kernels::Scratch;
use crate::runplan::{
    Action, Allocate, Assert, Call, Condition, Exchange, Expanded, InitialState, KernelFacts, Launch,
    LaunchPart, Map, Place, Pointer, Product, Read, RunPlan,
};
use crate::schedule::text::window_text;

/// The whole plan; [`super::parse`] gives it back.
pub fn print(plan: &RunPlan) -> String {
    let mut printer = Printer { depth: 0, text: String::new() };
    printer.block("run", |printer| printer.plan(plan));
    printer.text
}

struct Printer {
    depth: usize,
    text: String,
}

impl Printer {
    fn line(&mut self, line: &str) {
        self.text.push_str(&"  ".repeat(self.depth));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn block(&mut self, head: &str, body: impl FnOnce(&mut Self)) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("}");
    }

    fn plan(&mut self, plan: &RunPlan) {
        self.line(&format!("arena [{}]", plan.arena_bytes));
        for (id, message) in &plan.failures {
            self.line(&format!("failure {id} {}", quoted(message)));
        }
        for check in &plan.checks {
            self.line(&format!("check {} {}", check.failure, guard_line(&check.holds)));
        }
        for InitialState { offset, value, bytes } in &plan.states {
            self.line(&format!("state {offset} weights {value} bytes {bytes}"));
        }
        for Expanded { from, to, form } in &plan.expansions {
            let (word, sizes) = form.words();
            self.line(&format!("expand {to} weights {from} {word} {}", bracketed(&sizes)));
        }
        for (id, kernel) in &plan.kernels {
            self.block(&format!("kernel {id} {}", quoted(&kernel.name)), |printer| printer.facts(kernel));
        }
        self.actions(&plan.actions);
    }

    fn facts(&mut self, kernel: &KernelFacts) {
        for origin in &kernel.origins {
            self.line(&note_line(origin));
        }
        for written in &kernel.outputs {
            let (shape, name) = (bracketed(&written.shape), quoted_name(&written.name));
            self.line(&format!("writes {}{shape}{name} in {}", written.tensor.dtype, place(&written.tensor)));
        }
    }

    fn actions(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Call(own) => self.line(&format!("call {}", call(own))),
                Action::Launch(Launch {
                    call: own,
                    grid,
                    block,
                    shared,
                    persistent,
                    part,
                    maps,
                    product,
                }) => self.line(&format!(
                    "launch {} grid {} block {} shared [{shared}]{}{}{}{}",
                    call(own),
                    bracketed(grid),
                    bracketed(block),
                    if *persistent { " persistent" } else { "" },
                    part_text(*part),
                    maps.iter().map(map_text).collect::<String>(),
                    product.as_deref().map_or_else(String::new, product_text)
                )),
                Action::Exchange(Exchange { kernel, collective, input, given, output, made, failure }) => {
                    let (name, what) = (collective.kind.name(), collective_text(collective));
                    let (input, output) = (pointer(input), pointer(output));
                    self.line(&format!(
                        "exchange {kernel} {name} {what} from {input} [{given}] to {output} [{made}] {failure}"
                    ));
                }
                Action::Read(Read { from, symbol, range, failure }) => {
                    let range = range_text(*range);
                    self.line(&format!("read {symbol} in {range} {failure} {}", pointer(from)));
                }
                Action::Assert(own) => self.line(&format!("assert {}", assertion(own))),
                Action::Allocate(Allocate {
                    late,
                    bytes: Scratch { shared, worker, units },
                    output,
                    failure,
                }) => {
                    let own = if worker.is(0) { String::new() } else { format!(" threads [{worker}]") };
                    let units = units.as_ref().map_or_else(String::new, |units| format!(" units [{units}]"));
                    let output = output.map_or_else(String::new, |position| format!(" output {position}"));
                    self.line(&format!("allocate {late} [{shared}]{own}{units}{output} {failure}"));
                }
                Action::Free(late) => self.line(&format!("free {late}")),
                Action::If { predicate, then, otherwise } => {
                    self.block(&format!("if {}", pointer(predicate)), |printer| printer.actions(then));
                    self.block("else", |printer| printer.actions(otherwise));
                }
                Action::Loop { condition, predicate, body } => {
                    self.block("loop", |printer| printer.actions(condition));
                    self.block(&format!("while {}", pointer(predicate)), |printer| printer.actions(body));
                }
            }
        }
    }
}

fn call(call: &Call) -> String {
    let tensors: Vec<String> = call.tensors.iter().map(pointer).collect();
    let scratch = call.scratch.map_or_else(String::new, |late| format!(" scratch {late}"));
    format!("{} {} ({}) {}{scratch}", call.kernel, call.function, tensors.join(", "), bracketed(&call.sizes))
}

fn part_text(part: LaunchPart) -> &'static str {
    match part {
        LaunchPart::Whole => "",
        LaunchPart::First => " first",
        LaunchPart::Middle => " middle",
        LaunchPart::Last => " last",
    }
}

fn map_text(Map { tensor, sizes, strides, extents, window }: &Map) -> String {
    let (sizes, strides, extents) = (bracketed(sizes), bracketed(strides), bracketed(extents));
    let window = window.as_ref().map_or_else(String::new, window_text);
    format!(" map {} {sizes} by {strides} boxes {extents}{window}", pointer(tensor))
}

fn product_text(product: &Product) -> String {
    let Product { number, sizes, matrices, leading, turned, rounded, relu, bias, workspace } = product;
    let words =
        [(turned[0], " left-turned"), (turned[1], " right-turned"), (*rounded, " tf32"), (*relu, " relu")];
    let words: String = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    let bias = bias.map_or_else(String::new, |offset| format!(" bias {offset}"));
    let matrices: Vec<String> = matrices.iter().map(pointer).collect();
    let (sizes, leading) = (bracketed(sizes), bracketed(leading));
    format!(
        " library {number} {sizes} ({}) leading {leading}{words}{bias} with {}",
        matrices.join(", "),
        pointer(workspace)
    )
}

fn assertion(assert: &Assert) -> String {
    let condition = match &assert.condition {
        Condition::Holds(flag) => pointer(flag),
        Condition::Sizes(guard) => guard_line(guard),
        Condition::Succeeded(report) => format!("succeeded {}", pointer(report)),
    };
    format!("{} {condition}", assert.failure)
}

fn pointer(pointer: &Pointer) -> String {
    let start = if pointer.start.is(0) { String::new() } else { format!(" from [{}]", pointer.start) };
    format!("{} {}{start}", pointer.dtype, place(pointer))
}

fn place(pointer: &Pointer) -> String {
    match &pointer.place {
        Place::Input(position) => format!("input {position}"),
        Place::Output(position) => format!("output {position}"),
        Place::Generator => "generator".to_owned(),
        Place::State(offset) => format!("state {offset}"),
        Place::Weights(offset) => format!("weights {offset}"),
        Place::Expanded(offset) => format!("expanded {offset}"),
        Place::Arena(offset) => format!("arena [{offset}]"),
        Place::Late(late) => format!("late {late}"),
    }
}
