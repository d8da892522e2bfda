//! Puts checks where an access cannot be shown to stay within its buffer.
//!
//! What depends on sizes alone is checked once: before the run where its sizes are known then, else right before the
//! kernel. What depends on positions in a way that has no simple bound is checked at each position, as indices are.

use super::copies;
use super::facts::at_lowest;
use super::goals::{self, Goal, Place};
use super::{Prover, Unproven};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine, Condition, Guard as SizeGuard, Relation, Scalar, SymbolSource};
use crate::loops::{
    Access, Buffer, BufferId, Effect, Guard, Index, Kernel, KernelId, KernelKind, Nest, Program, Site, Stage,
    Step, Storage, Term, TermId, TypedTerm,
};
use crate::symbolic::{Expr, RangeTable, Symbol, SymbolKind};
use std::collections::{BTreeMap, BTreeSet};

/// Adds the checks that a program needs; what no check can be placed for is a mistake of the compiler's, one sentence each.
pub fn enforce(program: &mut Program) -> Result<(), Vec<String>> {
    let mut ctx =
        Ctx { prover: Prover::new(program), is_nested: false, computed: BTreeMap::new(), findings: vec![] };
    let steps = std::mem::take(&mut program.steps);
    program.steps = ctx.steps(program, steps);
    program.number_kernels();
    if ctx.findings.is_empty() { Ok(()) } else { Err(ctx.findings) }
}

struct Ctx {
    prover: Prover,
    /// Whether the steps are those of a branch or a loop, which may not run.
    is_nested: bool,
    /// Booleans that say of an expression over sizes that it is not negative.
    computed: BTreeMap<BufferId, Expr>,
    findings: Vec<String>,
}

impl Ctx {
    fn steps(&mut self, program: &mut Program, steps: Vec<Step>) -> Vec<Step> {
        let mut checked = Vec::with_capacity(steps.len());
        for mut step in steps {
            match &mut step {
                Step::Kernel(id) => {
                    self.kernel(program, *id, &mut checked);
                    self.computed.extend(condition_of(&program.kernels[*id]));
                }
                Step::Assert(buffer, _) => {
                    let known = self.computed.get(buffer).cloned();
                    known.into_iter().for_each(|condition| self.prover.facts.assume(condition));
                }
                Step::Require(guard) => self.prover.require(&guard.condition),
                Step::Read { .. } => {}
                Step::If { then, otherwise, .. } => {
                    for list in [then, otherwise] {
                        self.within(program, list);
                    }
                }
                Step::Loop { condition, body, .. } => {
                    for list in [condition, body] {
                        self.within(program, list);
                    }
                }
            }
            checked.push(step);
        }
        checked
    }

    /// What is checked inside a branch or a loop is not known outside it.
    fn within(&mut self, program: &mut Program, list: &mut Vec<Step>) {
        let known = self.prover.facts.count();
        let was_nested = std::mem::replace(&mut self.is_nested, true);
        *list = self.steps(program, std::mem::take(list));
        self.is_nested = was_nested;
        self.prover.facts.forget(known);
    }

    fn kernel(&mut self, program: &mut Program, id: KernelId, before: &mut Vec<Step>) {
        let mut required = Vec::new();
        // A check of positions takes away the goals of its access: look again until nothing is left to do.
        loop {
            let goals = goals::of_kernel(program, &program.kernels[id], &self.prover.ranges);
            // What is required of a run holds there, whether or not that is seen when the goal is looked at again.
            let mut is_left = |goal: &Goal| {
                !self.prover.proves(goal)
                    && self.size_condition(goal).is_none_or(|condition| !required.contains(&condition))
            };
            let Some(goal) = goals.into_iter().find(|goal| is_left(goal)) else { return };
            if let Some(condition) = self.size_condition(&goal) {
                required.push(condition.clone());
                self.prover.facts.assume(condition.clone());
                self.require(program, id, &goal, condition, before);
            } else if let Some(copy) = copies::copied(program, id, &goal, &self.prover.ranges) {
                self.kernel(program, copy, before);
                before.push(Step::Kernel(copy));
            } else if !check_positions(program, id, &goal, &self.prover.ranges) {
                self.findings.push(super::finding(program, &Unproven { kernel: id, goal }));
                return;
            }
        }
    }

    /// An expression over sizes that is negative exactly where the goal is missed.
    fn size_condition(&self, goal: &Goal) -> Option<Expr> {
        // What is known about an axis that an index is looked up along does not depend on positions, guarded or not.
        if !goal.guards.is_empty() && !goal.is_of_sizes() {
            return None;
        }
        let mut ranges = self.prover.ranges.clone();
        goal.axes.iter().for_each(|axis| ranges.set_extent(axis.symbol, axis.extent.clone()));
        let low = if goal.axes.iter().all(|axis| is_affine(&goal.expr, axis.symbol)) {
            at_lowest(&goal.expr, &ranges)?
        } else if goal.place == Place::Operand {
            // No position of an operand can be checked.
            lowest_of_products(goal, &ranges)?
        } else {
            return None;
        };
        let mut symbols = BTreeSet::new();
        low.collect_symbols(&mut symbols);
        // What is known to be missed has no condition, unless the program itself asks for it.
        let is_known = symbols.is_empty() && !goal.of_index;
        if is_known || symbols.iter().any(|symbol| symbol.kind == SymbolKind::Axis) {
            return None;
        }
        // Without positions, or any within the guards, nothing is accessed: then the condition holds.
        let extents = goal.axes.iter().map(|axis| &axis.extent);
        let extents = extents.chain(goal.guards.iter().map(|guard| &guard.size));
        let possible = extents.filter(|extent| extent.interval(&ranges).min < 1);
        Some(possible.fold(low, |condition, extent| condition.maximum_in(&-extent, &ranges)))
    }

    fn require(
        &self,
        program: &mut Program,
        id: KernelId,
        goal: &Goal,
        condition: Expr,
        before: &mut Vec<Step>,
    ) {
        let mut symbols = BTreeSet::new();
        condition.collect_symbols(&mut symbols);
        let from_data = |symbol: &Symbol| {
            program.symbols.get(symbol.index as usize).is_none_or(|info| info.source == SymbolSource::Data)
        };
        if !self.is_nested && !symbols.iter().any(from_data) {
            let condition = Condition::compare(condition, Relation::Ge, 0);
            let message =
                if goal.of_index { nothing_to_look_up(&program.kernels[id]) } else { String::new() };
            let guard = SizeGuard { condition, message };
            if !program.guards.contains(&guard) {
                program.guards.push(guard);
            }
            return;
        }
        let kernel = &program.kernels[id];
        let message = if goal.of_index {
            nothing_to_look_up(kernel)
        } else {
            format!("a size does not fit: {condition} must not be negative {}", place_of(kernel))
        };
        before.extend(asserted(program, condition, message));
    }
}

fn nothing_to_look_up(kernel: &Kernel) -> String {
    format!("an index is looked up along an axis without elements {}", place_of(kernel))
}

/// Where a kernel comes from, for messages.
fn place_of(kernel: &Kernel) -> String {
    kernel.origins.first().map_or_else(
        || format!("in `{}`", kernel.name),
        |origin| format!("in {} {}", origin.node, origin.source).trim_end().to_owned(),
    )
}

/// Steps that fail the run where `condition` is negative.
fn asserted(program: &mut Program, condition: Expr, message: String) -> [Step; 2] {
    let storage = Storage::Temporary;
    let verdict =
        Buffer { dtype: DType::Bool, shape: vec![], storage, name: "fits".to_owned(), is_complex: false };
    let verdict = program.buffers.push(verdict);
    let mut stage = Stage::default();
    let value = stage.term(Term::Index(condition), DType::I64);
    let zero = stage.term(Term::Literal(Scalar::Int(0)), DType::I64);
    let holds = Term::Binary(BinaryOp::Compare(Relation::Ge), value, zero);
    let holds = stage.term(holds, DType::Bool);
    let access = Access { buffer: verdict, coords: vec![], offset: Expr::int(0), indirect: vec![] };
    stage.effects.push(Effect::Store { access, value: holds, combine: Combine::Set });
    let kind = KernelKind::Nest(Nest { stages: vec![stage], ..Nest::default() });
    let kernel = program.kernels.push(Kernel { name: "fits".to_owned(), origins: vec![], kind });
    [Step::Kernel(kernel), Step::Assert(verdict, message)]
}

/// The buffer and the expression of a kernel that [`asserted`] made.
fn condition_of(kernel: &Kernel) -> Option<(BufferId, Expr)> {
    let KernelKind::Nest(Nest { axes, stages, .. }) = &kernel.kind else { return None };
    let ([], [stage]) = (axes.as_slice(), stages.as_slice()) else { return None };
    let [Effect::Store { access, value, combine: Combine::Set }] = stage.effects.as_slice() else {
        return None;
    };
    let term = |id: TermId| &stage.terms[id].term;
    let Term::Binary(BinaryOp::Compare(Relation::Ge), a, b) = term(*value) else { return None };
    match (term(*a), term(*b)) {
        (Term::Index(expr), Term::Literal(Scalar::Int(0))) if stage.axes.is_empty() => {
            Some((access.buffer, expr.clone()))
        }
        _ => None,
    }
}

/// The least value of an expression whose axes are multiplied by sizes alone, of which it need not be known whether they are
/// negative.
fn lowest_of_products(goal: &Goal, ranges: &RangeTable) -> Option<Expr> {
    let of_sizes = |expr: &Expr| goal.axes.iter().all(|axis| !expr.mentions(axis.symbol));
    let (mut rest, mut low) = (goal.expr.clone(), Expr::int(0));
    for axis in &goal.axes {
        let (coefficient, others) = rest.affine_in(axis.symbol)?;
        if !of_sizes(&coefficient) || !of_sizes(&axis.extent) {
            return None;
        }
        low = &low + &(&coefficient * &(&axis.extent - 1)).minimum_in(&Expr::int(0), ranges);
        rest = others;
    }
    Some(&rest + &low)
}

fn is_affine(expr: &Expr, symbol: Symbol) -> bool {
    !expr.mentions(symbol)
        || expr.affine_in(symbol).is_some_and(|(coefficient, _)| coefficient.as_int().is_some())
}

/// Makes the place that a goal is about an index that is checked at each position.
fn check_positions(program: &mut Program, id: KernelId, goal: &Goal, ranges: &RangeTable) -> bool {
    let site = site(program, id);
    let shape = goals::stored_shape(program, goal.buffer).to_vec();
    let kernel = &mut program.kernels[id];
    match goal.place {
        Place::Operand => false,
        Place::Load { stage, term, axis } => {
            let (stages, stage) = kernel.stages_beside_mut(stage);
            let Term::Load { access, guards, .. } = &stages[stage].terms[term].term else { return false };
            let Some((expr, size)) = unchecked(access, axis, &shape) else { return false };
            let (access, guards) = (access.clone(), guards.clone());
            let check = check_terms(&mut stages[stage], &expr, &size, &guards, site);
            let access = with_index(&access, axis, check, &shape, ranges);
            if let Term::Load { access: own, .. } = &mut stages[stage].terms[term].term {
                *own = access;
            }
            sort_terms(stages, stage);
            true
        }
        Place::Store { stage, effect, axis } => {
            let (stages, stage) = kernel.stages_beside_mut(stage);
            let Effect::Store { access, .. } = &stages[stage].effects[effect] else { return false };
            let Some((expr, size)) = unchecked(access, axis, &shape) else { return false };
            let access = access.clone();
            let check = check_terms(&mut stages[stage], &expr, &size, &[], site);
            let access = with_index(&access, axis, check, &shape, ranges);
            if let Effect::Store { access: own, .. } = &mut stages[stage].effects[effect] {
                *own = access;
            }
            true
        }
    }
}

/// The expression that is to be checked, and against what; `None` where it is checked already.
fn unchecked(access: &Access, axis: Option<usize>, shape: &[Expr]) -> Option<(Expr, Expr)> {
    match axis {
        Some(axis) => match &access.coords[axis] {
            Index::Expr(expr) => Some((expr.clone(), shape[axis].clone())),
            Index::Term(_) => None,
        },
        None => access.is_direct().then(|| (access.offset.clone(), Expr::product(shape))),
    }
}

fn with_index(
    access: &Access,
    axis: Option<usize>,
    check: TermId,
    shape: &[Expr],
    ranges: &RangeTable,
) -> Access {
    let Some(axis) = axis else {
        let indirect = vec![(check, Expr::int(1))];
        return Access { buffer: access.buffer, coords: vec![], offset: Expr::int(0), indirect };
    };
    let mut coords = access.coords.clone();
    coords[axis] = Index::Term(check);
    Access::with_shape(access.buffer, shape, coords, ranges)
}

/// Terms that check an expression where guards hold.
fn check_terms(stage: &mut Stage, expr: &Expr, size: &Expr, guards: &[Guard], site: usize) -> TermId {
    let mut index = stage.term(Term::Index(expr.clone()), DType::I64);
    if !guards.is_empty() {
        let inside = stage.term(Term::Inside(guards.to_vec()), DType::Bool);
        let zero = stage.term(Term::Literal(Scalar::Int(0)), DType::I64);
        index = stage.term(Term::Select(inside, index, zero), DType::I64);
    }
    stage.term(Term::CheckIndex { index, size: size.clone(), wraps: false, site }, DType::I64)
}

/// Puts every term of a stage behind those that it uses.
fn sort_terms(stages: &mut [Stage], index: usize) {
    let terms = std::mem::take(&mut stages[index].terms);
    let mut numbers: Vec<Option<TermId>> = vec![None; terms.len()];
    let mut sorted: Vec<TypedTerm> = Vec::with_capacity(terms.len());
    for first in 0..terms.len() {
        let mut open = vec![first];
        while let Some(id) = open.last().copied() {
            let waiting = terms[id].term.operands().into_iter().find(|operand| numbers[*operand].is_none());
            match (numbers[id], waiting) {
                (None, Some(operand)) => open.push(operand),
                (None, None) => {
                    let mut typed = terms[id].clone();
                    typed.term.renumber(&|old| numbers[old].expect("operands come first"));
                    numbers[id] = Some(sorted.len());
                    sorted.push(typed);
                    open.pop();
                }
                (Some(_), _) => {
                    open.pop();
                }
            }
        }
    }
    let new = |old: TermId| numbers[old].expect("every term has a place");
    stages[index].terms = sorted;
    for effect in &mut stages[index].effects {
        match effect {
            Effect::Store { access, value, .. } => {
                access.renumber(&new);
                *value = new(*value);
            }
            Effect::Accumulate { value, .. } => *value = new(*value),
        }
    }
    for typed in stages[index + 1..].iter_mut().flat_map(|stage| &mut stage.terms) {
        if let Term::Earlier { stage, term } = &mut typed.term
            && *stage == index
        {
            *term = new(*term);
        }
    }
}

/// The entry for messages about a kernel.
fn site(program: &mut Program, id: KernelId) -> usize {
    let kernel = &program.kernels[id];
    let text = match kernel.origins.first() {
        Some(origin) if origin.source.is_empty() => origin.node.clone(),
        Some(origin) => format!("{} at {}", origin.node, origin.source),
        None => kernel.name.clone(),
    };
    program.site(Site::Index(text))
}
