//! Checks that a loop-level program is well formed. A finding is a bug of the compiler, never of a model.
//!
//! * Terms use earlier terms of their stage only; effects use terms that exist.
//! * `Accumulated` names an accumulator that an earlier stage feeds; `Earlier` names a term of an earlier stage
//!   without inner axes.
//! * `Sum` occurs only in the epilogue of a contraction, and in the scores and the epilogue of attention.
//! * The scores of attention, and nothing else there, are fed to an accumulator.
//! * Index expressions, guards and the places of matrices mention only axes that are in scope and size symbols of the
//!   program.
//! * A check of an index blames an operator that is listed.
//! * Nothing is stored to an input or a constant.
//! * A temporary buffer is written before it is read.
//! * Every kernel is run by exactly one step.
//! * What a kernel reads of what it writes itself is there (`flow.rs`).

use super::{
    Attention, Axis, BufferId, Effect, Elsewhere, Kernel, KernelKind, MatMul, MatrixOperand, Nest, Program,
    Stage, Step, Storage, Term,
};
use crate::symbolic::{Expr, Symbol, SymbolKind};
use std::collections::BTreeSet;

/// Everything that is wrong, one sentence each; empty where the program is well formed.
pub fn verify(program: &Program) -> Vec<String> {
    let mut checker = Checker { program, findings: vec![], written: BTreeSet::new() };
    checker.steps(&program.steps);
    let mut running = program.running();
    running.sort_unstable();
    if !running.iter().copied().eq(program.kernels.keys()) {
        checker.findings.push("the steps do not run every kernel once".to_owned());
    }
    checker.findings.extend(super::flow::verify(program));
    checker.findings
}

struct Checker<'a> {
    program: &'a Program,
    findings: Vec<String>,
    written: BTreeSet<BufferId>,
}

impl Checker<'_> {
    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Kernel(id) => match self.program.kernels.get(*id) {
                    Some(kernel) => self.kernel(kernel),
                    None => self.findings.push(format!("a step runs {id}, which does not exist")),
                },
                Step::Read { buffer, .. } | Step::Assert(buffer, _) => self.read("a step", *buffer),
                Step::Require(guard) => {
                    let expressions = guard.condition.expressions();
                    expressions.into_iter().for_each(|expr| self.scope("require", expr, &BTreeSet::new()));
                }
                Step::If { predicate, then, otherwise } => {
                    self.read("a branch", *predicate);
                    let before = self.written.clone();
                    self.steps(then);
                    let after_then = std::mem::replace(&mut self.written, before);
                    self.steps(otherwise);
                    // Only what both branches write is there afterwards.
                    self.written = self.written.intersection(&after_then).copied().collect();
                }
                Step::Loop { condition, predicate, body } => {
                    self.steps(condition);
                    self.read("a loop", *predicate);
                    self.steps(body);
                }
            }
        }
    }

    fn read(&mut self, reader: &str, buffer: BufferId) {
        let storage = self.program.buffers[buffer].storage;
        if storage == Storage::Temporary && !self.written.contains(&buffer) {
            self.findings.push(format!("{reader} reads {buffer} before anything is written there"));
        }
    }

    fn kernel(&mut self, kernel: &Kernel) {
        let own: BTreeSet<BufferId> = kernel.writes().into_iter().collect();
        // A fused kernel may read what an earlier stage of its own stored.
        for buffer in kernel.reads().into_iter().filter(|buffer| !own.contains(buffer)) {
            self.read(&format!("kernel `{}`", kernel.name), buffer);
        }
        for buffer in &own {
            if matches!(
                self.program.buffers[*buffer].storage,
                Storage::Input(_) | Storage::Constant(_) | Storage::Generator
            ) {
                self.findings
                    .push(format!("kernel `{}` writes to {buffer}, which is read only", kernel.name));
            }
        }
        match &kernel.kind {
            KernelKind::Nest(nest) => self.nest(&kernel.name, nest),
            KernelKind::MatMul(matmul) => {
                let axes: BTreeSet<Symbol> = matmul.axes.iter().map(|axis| axis.symbol).collect();
                for MatrixOperand { buffer, offset, row_stride, column_stride } in [&matmul.a, &matmul.b] {
                    let own = self.program.buffers[*buffer].dtype;
                    if own != matmul.dtype && !matmul.dtype.widens(own) {
                        let (name, dtype) = (&kernel.name, matmul.dtype.name());
                        self.findings.push(format!("kernel `{name}` multiplies {} as {dtype}", own.name()));
                    }
                    for expr in [offset, row_stride, column_stride] {
                        self.scope(&kernel.name, expr, &axes);
                    }
                }
                self.stage(&kernel.name, &matmul.epilogue, &axes, true);
                if let Some(rows) = &matmul.row_epilogue {
                    self.row_epilogue(&kernel.name, matmul, rows);
                }
            }
            KernelKind::Convolution(conv) => {
                let axes: BTreeSet<Symbol> = conv.axes.iter().map(|axis| axis.symbol).collect();
                self.stage(&kernel.name, &conv.epilogue, &axes, true);
            }
            KernelKind::Attention(own) => self.attention(&kernel.name, own),
            KernelKind::AxisOp(_) => {}
            KernelKind::Extern(own) => {
                own.sizes().for_each(|size| self.scope(&kernel.name, size, &BTreeSet::new()));
                let (operands, results) = match &own.by {
                    Elsewhere::Function(call) => (call.n_operands(), call.n_results()),
                    Elsewhere::Ranks(_) => (1, 1),
                };
                if own.inputs.len() != operands || own.outputs.len() != results {
                    self.findings
                        .push(format!("kernel `{}`: its tensors are not its arguments", kernel.name));
                }
            }
        }
        self.written.extend(own);
    }

    /// Loops over the rows of a product, at each of which all of that row and nothing of another is there.
    fn row_epilogue(&mut self, name: &str, matmul: &MatMul, rows: &Nest) {
        self.nest(name, rows);
        if rows.axes != matmul.row_axes() || rows.serial {
            self.findings.push(format!("kernel `{name}`: its row epilogue does not run over its rows"));
        }
        if !matmul.keeps_to_rows(rows) {
            self.findings.push(format!("kernel `{name}`: its row epilogue reads another row"));
        }
    }

    fn attention(&mut self, name: &str, own: &Attention) {
        let of = |axes: &[Axis]| axes.iter().map(|axis| axis.symbol).collect::<BTreeSet<Symbol>>();
        let batch = of(&own.axes[..own.axes.len() - 2]);
        for MatrixOperand { offset, row_stride, column_stride, .. } in [&own.queries, &own.keys, &own.values]
        {
            for expr in [offset, row_stride, column_stride] {
                self.scope(name, expr, &batch);
            }
        }
        own.reach.iter().for_each(|reach| self.scope(name, reach, &BTreeSet::new()));
        let [scores, epilogue] = &own.stages;
        self.stage(name, scores, &of(&own.score_axes()), true);
        self.stage(name, epilogue, &of(&own.axes), true);
        if !matches!(scores.effects.as_slice(), [Effect::Accumulate { accumulator: 0, .. }]) {
            self.findings.push(format!("kernel `{name}`: its scores are not fed to accumulator 0 alone"));
        }
        if epilogue.effects.iter().any(|effect| matches!(effect, Effect::Accumulate { .. })) {
            self.findings.push(format!("kernel `{name}`: its epilogue feeds an accumulator"));
        }
    }

    fn nest(&mut self, name: &str, nest: &Nest) {
        let outer: BTreeSet<Symbol> = nest.axes.iter().map(|axis| axis.symbol).collect();
        for (index, stage) in nest.stages.iter().enumerate() {
            let mut axes = outer.clone();
            axes.extend(stage.axes.iter().map(|axis| axis.symbol));
            if axes.len() != outer.len() + stage.axes.len() {
                self.findings.push(format!("kernel `{name}`: stage {index} names an axis twice"));
            }
            self.stage(name, stage, &axes, false);
            self.earlier(name, nest, index);
            let fed = nest.accumulators.iter().filter(|accumulator| accumulator.stage == index);
            for position in fed.filter_map(|accumulator| accumulator.position.as_ref()) {
                self.scope(name, position, &axes);
            }
        }
    }

    fn earlier(&mut self, name: &str, nest: &Nest, index: usize) {
        let stage = &nest.stages[index];
        for (id, typed) in stage.terms.iter().enumerate() {
            let fine = match &typed.term {
                Term::Accumulated(accumulator) => {
                    nest.accumulators.get(*accumulator).is_some_and(|accumulator| accumulator.stage < index)
                }
                Term::Earlier { stage: other, term } => {
                    *other < index
                        && nest.stages[*other].axes.is_empty()
                        && *term < nest.stages[*other].terms.len()
                }
                Term::Literal(_)
                | Term::Index(_)
                | Term::Load { .. }
                | Term::Unary(..)
                | Term::Binary(..)
                | Term::Select(..)
                | Term::Cast(_)
                | Term::Inside(_)
                | Term::CheckIndex { .. }
                | Term::Sum => true,
            };
            if !fine {
                self.findings.push(format!("kernel `{name}`: t{id} of stage {index} uses what comes later"));
            }
        }
        for effect in &stage.effects {
            if let Effect::Accumulate { accumulator, .. } = effect
                && nest.accumulators.get(*accumulator).is_none_or(|accumulator| accumulator.stage != index)
            {
                self.findings.push(format!("kernel `{name}`: stage {index} feeds a foreign accumulator"));
            }
        }
    }

    fn stage(&mut self, name: &str, stage: &Stage, axes: &BTreeSet<Symbol>, is_epilogue: bool) {
        for (id, typed) in stage.terms.iter().enumerate() {
            if typed.term.operands().iter().any(|operand| *operand >= id) {
                self.findings.push(format!("kernel `{name}`: t{id} uses a later term"));
            }
            if matches!(typed.term, Term::Sum) && !is_epilogue {
                self.findings.push(format!("kernel `{name}`: t{id} is a sum outside an epilogue"));
            }
            if let Term::Index(expr) | Term::CheckIndex { size: expr, .. } = &typed.term {
                self.scope(name, expr, axes);
            }
            if let Term::CheckIndex { site, .. } = typed.term
                && site >= self.program.sites.len()
            {
                self.findings.push(format!("kernel `{name}`: t{id} blames a site that does not exist"));
            }
            if let Term::Load { guards, .. } | Term::Inside(guards) = &typed.term {
                for guard in guards {
                    self.scope(name, &guard.coordinate, axes);
                    self.scope(name, &guard.size, axes);
                }
            }
        }
        for access in stage.accesses() {
            self.scope(name, &access.offset, axes);
            if access.indirect.iter().any(|(term, _)| *term >= stage.terms.len()) {
                self.findings.push(format!("kernel `{name}`: an access uses a term that does not exist"));
            }
        }
        for effect in &stage.effects {
            let (Effect::Store { value, .. } | Effect::Accumulate { value, .. }) = effect;
            if *value >= stage.terms.len() {
                self.findings.push(format!("kernel `{name}`: an effect uses a term that does not exist"));
            }
        }
    }

    fn scope(&mut self, name: &str, expr: &Expr, axes: &BTreeSet<Symbol>) {
        let mut symbols = BTreeSet::new();
        expr.collect_symbols(&mut symbols);
        for symbol in symbols {
            let known = match symbol.kind {
                SymbolKind::Axis => axes.contains(&symbol),
                SymbolKind::Size => (symbol.index as usize) < self.program.symbols.len(),
            };
            if !known {
                self.findings
                    .push(format!("kernel `{name}`: `{expr}` mentions {symbol}, which is not in scope"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::text::parse;

    const LOAD: &str = "t0: f32 = load b0[i0]";
    const STORE: &str = "store b1[i0] = t0";

    /// What is found in one kernel over four positions that reads `b0` and writes `b1`.
    fn findings(from: &str, to: &str, axes: &str, stage: &str) -> Vec<String> {
        let program = parse(&format!(
            r#"loops {{
                buffer b0: f32[4] {from}
                buffer b1: f32[4] {to}
                kernel "copy" {{ for [{axes}] {{ stage [] {{ {stage} }} }} }}
            }}"#
        ));
        verify(&program.unwrap_or_else(|error| panic!("{error}")))
    }

    #[track_caller]
    fn finds(stage: &str, text: &str) {
        let findings = findings("input 0", "output 0", "i0 < 4", stage);
        assert!(findings.iter().any(|finding| finding.contains(text)), "{findings:?}");
    }

    #[test]
    fn a_plain_copy_is_well_formed() {
        let stage = format!("{LOAD} {STORE}");
        assert_eq!(findings("input 0", "output 0", "i0 < 4", &stage), Vec::<String>::new());
    }

    #[test]
    fn each_rule_is_checked() {
        let copy = format!("{LOAD} {STORE}");
        let first = |from, to, axes| findings(from, to, axes, &copy).swap_remove(0);
        assert!(first("temporary", "output 0", "i0 < 4").contains("before anything is written"));
        assert!(first("input 0", "input 1", "i0 < 4").contains("read only"));
        assert!(first("input 0", "output 0", "").contains("not in scope"));
        finds("t0: f32 = total", "outside an epilogue");
        finds("t0: f32 = result acc0", "what comes later");
        finds("t0: f32 = earlier 0 t0", "what comes later");
        finds("t0: f32 = cast t7", "later term");
        finds(&format!("{LOAD} accumulate acc0 t0"), "foreign accumulator");
        finds("t0: f32 = load b0[i0] if [i7 < 4] else 0.0", "mentions i7");
        finds("t0: i64 = index [i0] t1: i64 = check t0 below [s3] site 0", "mentions s3");
        finds("t0: i64 = index [i0] t1: i64 = check t0 below [4] site 0", "a site that does not exist");
        finds(&format!("{LOAD} store b1[i0] = t3"), "an effect uses a term that does not exist");
    }
}
