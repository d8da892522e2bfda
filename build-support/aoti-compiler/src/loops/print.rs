//! The text form of programs at loop level, for `inspect --emit loops` and `--emit schedule`.

use super::{Access, Axis, Effect, Index, Kernel, KernelKind, Nest, Program, Stage, Step, Term};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (id, buffer) in &self.buffers {
            writeln!(f, "{id}: {}{:?} {:?} {}", buffer.dtype, buffer.shape, buffer.storage, buffer.name)?;
        }
        steps(f, &self.steps, 0)
    }
}

fn steps(f: &mut Formatter<'_>, list: &[Step], depth: usize) -> fmt::Result {
    let pad = "  ".repeat(depth);
    for step in list {
        match step {
            Step::Kernel(kernel) => f.write_str(&indent(&kernel.to_string(), &pad))?,
            Step::Read(buffer, symbol) => writeln!(f, "{pad}read {symbol} = {buffer}")?,
            Step::Assert(buffer, message) => writeln!(f, "{pad}assert {buffer} {message:?}")?,
            Step::If { predicate, then, otherwise } => {
                writeln!(f, "{pad}if {predicate}")?;
                steps(f, then, depth + 1)?;
                writeln!(f, "{pad}else")?;
                steps(f, otherwise, depth + 1)?;
            }
            Step::Loop { condition, predicate, body } => {
                writeln!(f, "{pad}loop")?;
                steps(f, condition, depth + 1)?;
                writeln!(f, "{pad}  while {predicate}")?;
                steps(f, body, depth + 1)?;
            }
        }
    }
    Ok(())
}

fn indent(text: &str, pad: &str) -> String {
    text.lines().fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "{pad}{line}");
        out
    })
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {}", self.name)?;
        for note in &self.notes {
            writeln!(f, "  # {note}")?;
        }
        match &self.kind {
            KernelKind::Nest(nest) => write!(f, "{nest}"),
            KernelKind::MatMul(m) => {
                writeln!(
                    f,
                    "  matmul {} {} over {} depth {}",
                    m.a.buffer,
                    m.b.buffer,
                    axes(&m.axes),
                    m.depth
                )?;
                stage(f, &m.epilogue, "    ")
            }
            KernelKind::Convolution(c) => {
                writeln!(f, "  conv {} {} over {} {:?}", c.input, c.weight, axes(&c.axes), c.conv)?;
                stage(f, &c.epilogue, "    ")
            }
            KernelKind::Rows(r) => {
                writeln!(
                    f,
                    "  {:?} {:?} -> {:?} [{}, {}, {}]",
                    r.op, r.inputs, r.outputs, r.outer, r.length, r.inner
                )
            }
        }
    }
}

impl Display for Nest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "  for {}{}", axes(&self.axes), if self.serial { " serial" } else { "" })?;
        for (index, acc) in self.accumulators.iter().enumerate() {
            writeln!(f, "    acc{index}: {} {} in stage {}", acc.op.name(), acc.dtype, acc.stage)?;
        }
        for (index, inner) in self.stages.iter().enumerate() {
            writeln!(f, "    stage {index} {}", axes(&inner.axes))?;
            stage(f, inner, "      ")?;
        }
        Ok(())
    }
}

fn axes(list: &[Axis]) -> String {
    let parts: Vec<String> = list.iter().map(|axis| format!("{}<{}", axis.symbol, axis.extent)).collect();
    format!("({})", parts.join(", "))
}

fn stage(f: &mut Formatter<'_>, stage: &Stage, pad: &str) -> fmt::Result {
    for (id, term) in stage.terms.iter().enumerate() {
        writeln!(f, "{pad}t{id}: {} = {}", term.dtype, term.term)?;
    }
    for effect in &stage.effects {
        match effect {
            Effect::Store { access, value, combine } => {
                writeln!(f, "{pad}{} {access} t{value}", combine.name())?
            }
            Effect::Accumulate { accumulator, value } => writeln!(f, "{pad}acc{accumulator} <- t{value}")?,
        }
    }
    Ok(())
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let coords: Vec<String> = self
            .coords
            .iter()
            .map(|coord| match coord {
                Index::Expr(expr) => expr.to_string(),
                Index::Term(term) => format!("t{term}"),
            })
            .collect();
        write!(f, "{}[{}]", self.buffer, coords.join(", "))
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Term::Literal(value) => write!(f, "{value}"),
            Term::Index(expr) => write!(f, "index {expr}"),
            Term::Load { access, guards, .. } if guards.is_empty() => write!(f, "{access}"),
            Term::Load { access, guards, fill } => write!(f, "{access} if {guards:?} else {fill}"),
            Term::Unary(op, a) => write!(f, "{} t{a}", op.name()),
            Term::Binary(op, a, b) => write!(f, "{} t{a} t{b}", op.name()),
            Term::Select(c, a, b) => write!(f, "select t{c} t{a} t{b}"),
            Term::Cast(a) => write!(f, "cast t{a}"),
            Term::Inside(guards) => write!(f, "inside {guards:?}"),
            Term::CheckIndex { index, size, .. } => write!(f, "check t{index} < {size}"),
            Term::Accumulated(acc) => write!(f, "acc{acc}"),
            Term::Earlier { stage, term } => write!(f, "stage {stage} t{term}"),
            Term::Sum => f.write_str("sum"),
        }
    }
}
