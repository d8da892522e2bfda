//! Prints programs.

use super::plain_access;
use crate::dtype::DType;
use crate::graph::text::{
    Detail, bracketed, collective_text, constant_text, conv_text, extern_text, guard_line, guard_text,
    note_line, print_scalar, quoted, quoted_name, symbol_line,
};
use crate::graph::{Combine, Scalar};
use crate::loops::{
    Access, Accumulator, Attention, Axis, AxisKernel, AxisOp, BufferId, Channels, Convolution, Effect,
    Elsewhere, Guard, Index, Kernel, KernelId, KernelKind, MatrixOperand, Nest, Program, Site, Sorting,
    Stage, Step, Storage, Term, TypedTerm,
};
use crate::symbolic::Expr;
use cranelift_entity::EntityRef;

/// The whole program; [`super::parse`] gives it back.
pub fn print(program: &Program) -> String {
    printed(program, Detail::Full)
}

/// For people: the data of larger constants is left out, so it cannot be parsed again.
pub fn print_short(program: &Program) -> String {
    printed(program, Detail::Short)
}

fn printed(program: &Program, detail: Detail) -> String {
    print_with(program, detail, 0, &|_| vec![])
}

/// A program `depth` steps to the right, with lines of `decisions` in each kernel.
pub(crate) fn print_with(
    program: &Program,
    detail: Detail,
    depth: usize,
    decisions: &dyn Fn(KernelId) -> Vec<String>,
) -> String {
    let mut printer = Printer { program, detail, decisions, depth, text: String::new() };
    printer.block(&format!("loops {}", quoted(&program.name)), Printer::program);
    printer.text
}

/// What a kernel computes, without its name and the calls that it comes from.
pub(crate) fn print_kernel(program: &Program, kernel: &Kernel) -> String {
    let decisions = |_: KernelId| vec![];
    let mut printer =
        Printer { program, detail: Detail::Short, decisions: &decisions, depth: 0, text: String::new() };
    printer.kernel_kind(kernel);
    printer.text
}

struct Printer<'a> {
    program: &'a Program,
    detail: Detail,
    decisions: &'a dyn Fn(KernelId) -> Vec<String>,
    depth: usize,
    text: String,
}

impl Printer<'_> {
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

    fn program(&mut self) {
        let program = self.program;
        for (index, symbol) in program.symbols.iter().enumerate() {
            self.line(&symbol_line(index, symbol));
        }
        for guard in &program.guards {
            self.line(&guard_line(guard));
        }
        for (id, constant) in &program.constants {
            let text = constant_text(constant, self.detail);
            self.line(&format!("const c{}{}: {text}", id.index(), quoted_name(&constant.name)));
        }
        for (id, buffer) in &program.buffers {
            let place = match buffer.storage {
                Storage::Input(position) => format!("input {position}"),
                Storage::Output(position) => format!("output {position}"),
                Storage::State(position) => format!("state {position}"),
                Storage::Constant(constant) => format!("constant c{}", constant.index()),
                Storage::Generator => "generator".to_owned(),
                Storage::Temporary => "temporary".to_owned(),
                Storage::Local { outer } => format!("row {outer}"),
            };
            let name = quoted_name(&buffer.name);
            let numbers = if buffer.is_complex { " complex" } else { "" };
            let ty = format!("{}{}", buffer.dtype, bracketed(&buffer.shape));
            self.line(&format!("buffer {id}{name}: {ty} {place}{numbers}"));
        }
        self.line(&format!("inputs {}", bracketed(&program.inputs)));
        self.line(&format!("graph_inputs {}", bracketed(&program.graph_inputs)));
        self.line(&format!("outputs {}", bracketed(&program.outputs)));
        for (buffer, constant) in &program.states {
            self.line(&format!("state {buffer} c{}", constant.index()));
        }
        for site in &program.sites {
            let word = match site {
                Site::Index(_) => "site",
                Site::Assertion(_) => "assertion",
            };
            self.line(&format!("{word} {}", quoted(site.text())));
        }
        self.steps(&program.steps);
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Kernel(id) => {
                    let kernel = &self.program.kernels[*id];
                    self.block(&format!("kernel {}", quoted(&kernel.name)), |printer| {
                        printer.kernel(*id, kernel)
                    });
                }
                Step::Read { buffer, symbol, place } => {
                    self.line(&format!("read {symbol} {buffer} {}", quoted(place)))
                }
                Step::Require(guard) => self.line(&format!("require {}", guard_text(guard))),
                Step::Assert(buffer, message) => self.line(&format!("assert {buffer} {}", quoted(message))),
                Step::If { predicate, then, otherwise } => {
                    self.block(&format!("if {predicate}"), |printer| printer.steps(then));
                    self.block("else", |printer| printer.steps(otherwise));
                }
                Step::Loop { condition, predicate, body } => {
                    self.block("loop", |printer| printer.steps(condition));
                    self.block(&format!("while {predicate}"), |printer| printer.steps(body));
                }
            }
        }
    }

    fn kernel(&mut self, id: KernelId, kernel: &Kernel) {
        for origin in &kernel.origins {
            self.line(&note_line(origin));
        }
        for line in (self.decisions)(id) {
            self.line(&line);
        }
        self.kernel_kind(kernel);
    }

    fn kernel_kind(&mut self, kernel: &Kernel) {
        match &kernel.kind {
            KernelKind::Nest(nest) => {
                self.block(&loops_over(nest), |printer| printer.nest(nest));
            }
            KernelKind::MatMul(matmul) => {
                let (a, b) = (operand(&matmul.a), operand(&matmul.b));
                let (over, depth) = (axes(&matmul.axes), &matmul.depth);
                let head = format!("matmul {} {a}, {b} over {over} depth [{depth}]", matmul.dtype);
                self.block(&head, |printer| printer.stage(&matmul.epilogue));
                if let Some(rows) = &matmul.row_epilogue {
                    self.block(&format!("then {}", loops_over(rows)), |printer| printer.nest(rows));
                }
            }
            KernelKind::Convolution(own) => {
                let (input, weight, over) = (own.input, own.weight, axes(&own.axes));
                let head = format!(
                    "conv {} {input}, {weight} over {over}{}{}",
                    own.dtype,
                    conv_text(&own.conv),
                    channels_text(own)
                );
                self.block(&head, |printer| printer.stage(&own.epilogue));
            }
            KernelKind::Attention(own) => self.attention(own),
            KernelKind::AxisOp(rows) => self.line(&row_operation(rows)),
            KernelKind::Extern(own) => {
                let tensors = |tensors: &[(BufferId, Vec<Expr>)]| -> Vec<String> {
                    tensors.iter().map(|(buffer, shape)| format!("{buffer} {}", bracketed(shape))).collect()
                };
                let (inputs, outputs) = (tensors(&own.inputs).join(", "), tensors(&own.outputs).join(", "));
                let by = match &own.by {
                    Elsewhere::Function(call) => format!("extern {}", extern_text(call)),
                    Elsewhere::Ranks(own) => format!("{} {}", own.kind.name(), collective_text(own)),
                };
                self.line(&format!("{by} from ({inputs}) to ({outputs})"));
            }
        }
    }

    fn nest(&mut self, nest: &Nest) {
        for (index, accumulator) in nest.accumulators.iter().enumerate() {
            self.line(&accumulator_line(index, accumulator));
        }
        for stage in &nest.stages {
            self.block(&format!("stage {}", axes(&stage.axes)), |printer| printer.stage(stage));
        }
    }

    fn attention(&mut self, own: &Attention) {
        let [queries, keys, values] = [&own.queries, &own.keys, &own.values].map(operand);
        let (over, depth) = (axes(&own.axes), &own.depth);
        let reach = own.reach.as_ref().map_or(String::new(), |reach| format!(" reach [{reach}]"));
        let zeros = own.of_nothing.word();
        let head = format!(
            "attention {} {queries}, {keys}, {values} over {over} depth [{depth}]{reach}{zeros}",
            own.dtype
        );
        let [scores, epilogue] = &own.stages;
        self.block(&head, |printer| {
            printer.block(&format!("scores {}", axes(&scores.axes)), |printer| printer.stage(scores));
            printer.block("result", |printer| printer.stage(epilogue));
        });
    }

    /// Terms and effects.
    fn stage(&mut self, stage: &Stage) {
        for (id, term) in stage.terms.iter().enumerate() {
            let text = self.term(term);
            self.line(&format!("t{id}: {} = {text}", term.dtype));
        }
        for effect in &stage.effects {
            match effect {
                Effect::Store { access, value, combine } => {
                    let how = match combine {
                        Combine::Set => String::new(),
                        Combine::Add | Combine::Mul | Combine::Max | Combine::Min => {
                            format!("{} ", combine.name())
                        }
                    };
                    let access = self.access(access);
                    self.line(&format!("store {how}{access} = t{value}"));
                }
                Effect::Accumulate { accumulator, value } => {
                    self.line(&format!("accumulate acc{accumulator} t{value}"));
                }
            }
        }
    }

    fn term(&self, typed: &TypedTerm) -> String {
        match &typed.term {
            Term::Literal(value) => print_scalar(*value),
            Term::Index(expr) => format!("index [{expr}]"),
            Term::Load { access, guards, fill } => {
                let access = self.access(access);
                let held =
                    if guards.is_empty() { String::new() } else { format!(" if {}", conditions(guards)) };
                let fill = print_scalar(*fill);
                let is_plain = guards.is_empty() && fill == print_scalar(zero(typed.dtype));
                let otherwise = if is_plain { String::new() } else { format!(" else {fill}") };
                format!("load {access}{held}{otherwise}")
            }
            Term::Unary(op, a) => format!("{} t{a}", op.name()),
            Term::Binary(op, a, b) => format!("{} t{a}, t{b}", op.name()),
            Term::Select(c, a, b) => format!("select t{c}, t{a}, t{b}"),
            Term::Cast(a) => format!("cast t{a}"),
            Term::Inside(guards) => format!("inside {}", conditions(guards)),
            Term::CheckIndex { index, size, wraps, site } => {
                let name = if *wraps { "wrap" } else { "check" };
                format!("{name} t{index} below [{size}] site {site}")
            }
            Term::Accumulated(accumulator) => format!("result acc{accumulator}"),
            Term::Earlier { stage, term } => format!("earlier {stage} t{term}"),
            Term::Sum => "total".to_owned(),
        }
    }

    fn access(&self, access: &Access) -> String {
        let coords: Vec<String> = access
            .coords
            .iter()
            .map(|coord| match coord {
                Index::Expr(expr) => expr.to_string(),
                Index::Term(term) => format!("t{term}"),
            })
            .collect();
        let mut text = format!("{}{}", access.buffer, bracketed(&coords));
        let plain = plain_access(access.buffer, &self.program.buffers[access.buffer], access.coords.clone());
        if access.offset != plain.offset {
            text += &format!(" at [{}]", access.offset);
        }
        if access.indirect != plain.indirect {
            let strides: Vec<String> =
                access.indirect.iter().map(|(term, stride)| format!("t{term}: {stride}")).collect();
            text += &format!(" by {}", bracketed(&strides));
        }
        text
    }
}

/// What a load without guards is said to be filled with.
pub(super) fn zero(dtype: DType) -> Scalar {
    Scalar::Int(0).cast(dtype)
}

fn loops_over(nest: &Nest) -> String {
    let serial = if nest.serial { " serial" } else { "" };
    format!("for {}{serial}", axes(&nest.axes))
}

fn axes(axes: &[Axis]) -> String {
    let axes: Vec<String> = axes.iter().map(|axis| format!("{} < {}", axis.symbol, axis.extent)).collect();
    bracketed(&axes)
}

fn conditions(guards: &[Guard]) -> String {
    let guards: Vec<String> =
        guards.iter().map(|guard| format!("{} < {}", guard.coordinate, guard.size)).collect();
    bracketed(&guards)
}

/// Where channels are, where that is not as programs have it.
fn channels_text(conv: &Convolution) -> String {
    let place = |word: &str, channels: Channels| match channels {
        Channels::First => String::new(),
        Channels::Last => format!(" {word} channels_last"),
    };
    place("from", conv.input_channels) + &place("to", conv.output_channels)
}

fn operand(operand: &MatrixOperand) -> String {
    let MatrixOperand { buffer, offset, row_stride, column_stride } = operand;
    format!("{buffer} [{offset}, {row_stride}, {column_stride}]")
}

fn accumulator_line(index: usize, accumulator: &Accumulator) -> String {
    let Accumulator { op, dtype, stage, position } = accumulator;
    let position = position.as_ref().map_or(String::new(), |position| format!(" at [{position}]"));
    format!("accumulator acc{index}: {} {dtype} in stage {stage}{position}", op.name())
}

fn sorting_text(sorting: &Sorting) -> String {
    let part =
        |word: &str, count: Option<i64>| count.map_or(String::new(), |count| format!(" {word} {count}"));
    format!(
        "sort{}{}{}{}",
        if sorting.descending { " descending" } else { "" },
        part("runs", sorting.run),
        part("of", sorting.merged),
        part("first", sorting.kept)
    )
}

fn row_operation(rows: &AxisKernel) -> String {
    let op = match &rows.op {
        AxisOp::Fourier(fourier) => &format!("fourier {}", fourier.text()),
        AxisOp::Recurrent(own) => &format!("recurrent {}", own.text()),
        AxisOp::Scan(op) => op.name(),
        AxisOp::Sort(sorting) => &sorting_text(sorting),
        AxisOp::NthElement { ties, rank } => {
            let rank = rank.map_or(String::new(), |rank| format!(" rank {rank}"));
            &format!("nth_element{}{rank}", ties.text())
        }
        AxisOp::SearchSorted { right: false } => "searchsorted",
        AxisOp::SearchSorted { right: true } => "searchsorted right",
        AxisOp::Matrices(routine) => routine.name(),
    };
    let (inputs, outputs) = (bracketed(&rows.inputs), bracketed(&rows.outputs));
    let sizes = bracketed(&[&rows.outer, &rows.length, &rows.inner]);
    format!("rows {op} {} from {inputs} to {outputs} sizes {sizes}", rows.dtype)
}
