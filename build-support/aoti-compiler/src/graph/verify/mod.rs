//! Checks that a graph keeps the rules that every stage relies on. All breaches are reported together.
//!
//! * A constant has as many bytes as its type and sizes need; one that is derived is an output of a closed graph.
//! * A symbol's range is not empty and its source exists: an axis of an input, or a one-element integer input.
//! * A guard is over sizes that are known where it stands; so is the bound of a symbol when a run begins.
//! * A shape mentions size symbols only, each of them known by then: symbols from data are known once read.
//! * A value is defined once, before its uses.
//! * A node's operands, parameters and results have the types that [`super::Op`] states.
//! * A coordinate mentions axes of its iteration space only and is not always out of bounds.
//! * An output's value is defined; a state or mutation output has the type of its input, which has the role for it.
//! * An input of state has a constant of its type; at most one input is the generator, two `i64`.
//! * A node's origin exists.
//! * A body has no symbols, guards or state, and its interface fits its node.

mod ops;
#[cfg(test)]
mod tests;

use super::{
    Constant, ConstantSource, Graph, Guard, Input, InputRole, Node, Op, OutputRole, SymbolInfo, SymbolSource,
    TensorType, ValueId, generator_type,
};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::dtype::Category;
use crate::dtype::DType;
use crate::symbolic::{Expr, RangeTable, SymbolKind};
use cranelift_entity::EntityRef;
use std::collections::BTreeSet;

/// Reports every breach of the rules.
pub fn verify(graph: &Graph) -> Result<(), Diagnostics> {
    let known = graph.symbols.iter().map(|symbol| symbol.source != SymbolSource::Data).collect();
    let mut ctx = Ctx { symbols: &graph.symbols, ranges: graph.ranges(), known, findings: Vec::new() };
    ctx.interface(graph);
    ctx.graph(graph);
    if ctx.findings.is_empty() { Ok(()) } else { Err(Diagnostics(ctx.findings)) }
}

struct Ctx<'a> {
    symbols: &'a [SymbolInfo],
    ranges: RangeTable,
    /// Which symbols have a value so far.
    known: Vec<bool>,
    findings: Vec<Diagnostic>,
}

/// What is wrong with the graph that a constant is computed by.
fn fault_of_recipe(constant: &Constant, recipe: &Graph, output: usize) -> Option<String> {
    if !recipe.inputs.is_empty() || !recipe.symbols.is_empty() {
        return Some("comes from a graph that depends on more than constants".to_owned());
    }
    let Some(output) = recipe.outputs.get(output) else {
        return Some(format!("is output {output} of a graph that has {}", recipe.outputs.len()));
    };
    if let Err(findings) = verify(recipe) {
        return Some(format!("comes from a malformed graph: {findings}"));
    }
    let fits = ops::is_type_of(constant, recipe.ty(output.value));
    (!fits).then(|| "is not of the type that its graph gives".to_owned())
}

impl Ctx<'_> {
    fn report(&mut self, message: impl Into<String>) {
        self.findings.push(Diagnostic::new(Code::Graph, message));
    }

    /// What only the outermost graph has.
    fn interface(&mut self, graph: &Graph) {
        for (index, symbol) in graph.symbols.iter().enumerate() {
            if symbol.range.min > symbol.range.max {
                self.report(format!("the range of symbol s{index} is empty"));
            }
            let fits = match symbol.source {
                SymbolSource::InputDim { input, axis } => {
                    input_type(graph, input).is_some_and(|ty| axis < ty.rank())
                }
                SymbolSource::InputValue { input } => {
                    input_type(graph, input).is_some_and(|ty| ops::is_one(ty, Category::Int))
                }
                SymbolSource::Data => true,
            };
            if !fits {
                self.report(format!("the source of symbol s{index} does not exist"));
            }
        }
        for (index, symbol) in graph.symbols.iter().enumerate() {
            let Some(most) = &symbol.most else { continue };
            let problem = match (&symbol.source, self.mentions(most, 0, true)) {
                (SymbolSource::Data, Ok(())) => continue,
                (SymbolSource::Data, Err(problem)) => problem,
                (SymbolSource::InputDim { .. } | SymbolSource::InputValue { .. }, _) => {
                    "it is not read from data".to_owned()
                }
            };
            self.report(format!("the bound of symbol s{index}: {problem}"));
        }
        for guard in &graph.guards {
            if let Err(problem) = self.guard(guard) {
                self.report(format!("guard: {problem}"));
            }
        }
        for (position, input) in graph.inputs.iter().enumerate() {
            if let InputRole::State(id) = input.role {
                let constant = graph.constants.get(id);
                let fits = constant.is_some_and(|constant| {
                    graph.values.get(input.value).is_some_and(|value| ops::is_type_of(constant, &value.ty))
                });
                if !fits {
                    self.report(format!(
                        "state input {position} `{}` has no constant of its type",
                        input.name
                    ));
                }
            }
        }
        self.complex_numbers(graph);
        let generators: Vec<_> =
            graph.inputs.iter().filter(|input| input.role == InputRole::Generator).collect();
        let is_typed =
            |input: &&Input| graph.values.get(input.value).is_some_and(|value| value.ty == generator_type());
        if generators.len() > 1 || !generators.iter().all(is_typed) {
            self.report("the generator is not one input of two `i64`".to_owned());
        }
    }

    /// What the caller sees as complex numbers is pairs.
    fn complex_numbers(&mut self, graph: &Graph) {
        let inputs = graph.inputs.iter().filter(|input| input.is_complex);
        let inputs = inputs.map(|input| ("input", &input.name, input.value));
        let outputs = graph.outputs.iter().filter(|output| output.is_complex);
        let outputs = outputs.map(|output| ("output", &output.name, output.value));
        for (kind, name, value) in inputs.chain(outputs) {
            let are_pairs = graph.values.get(value).is_some_and(|value| {
                let has_type = matches!(value.ty.dtype, DType::F16 | DType::F32 | DType::F64);
                has_type && value.ty.shape.last().is_some_and(|size| size.is(2))
            });
            if !are_pairs {
                self.report(format!(
                    "{kind} `{name}` of complex numbers does not have two parts as its last axis"
                ));
            }
        }
    }

    /// A condition over symbols that are known.
    fn guard(&self, guard: &Guard) -> Result<(), String> {
        guard.condition.expressions().into_iter().try_for_each(|expr| self.mentions(expr, 0, true))
    }

    fn graph(&mut self, graph: &Graph) {
        for (id, constant) in &graph.constants {
            let needed = constant.sizes.iter().try_fold(constant.dtype.size(), |bytes, size| {
                usize::try_from(*size).ok().and_then(|size| bytes.checked_mul(size))
            });
            if needed != Some(constant.data.len()) {
                let (given, sizes) = (constant.data.len(), &constant.sizes);
                self.report(format!(
                    "constant {} has {given} bytes for {}{sizes:?}",
                    id.index(),
                    constant.dtype
                ));
            }
            if let ConstantSource::Derived { recipe, output } = &constant.source
                && let Some(fault) = fault_of_recipe(constant, recipe, *output)
            {
                self.report(format!("constant {} {fault}", id.index()));
            }
        }
        let mut is_defined = vec![false; graph.values.len()];
        for input in &graph.inputs {
            self.define(graph, input.value, &mut is_defined);
        }
        for node in &graph.nodes {
            let before = self.findings.len();
            self.node(graph, node, &mut is_defined);
            if let Some(origin) = graph.origins.get(node.origin) {
                for finding in &mut self.findings[before..] {
                    finding.origin.get_or_insert_with(|| origin.clone());
                }
            }
        }
        self.outputs(graph, &is_defined);
    }

    fn define(&mut self, graph: &Graph, value: ValueId, is_defined: &mut [bool]) {
        let Some(slot) = is_defined.get_mut(value.index()) else {
            return self.report(format!("value {value:?} does not exist"));
        };
        if std::mem::replace(slot, true) {
            self.report(format!("value {value:?} is defined twice"));
        }
        for size in &graph.ty(value).shape {
            match self.mentions(size, 0, true) {
                Err(problem) => self.report(format!("shape of {value:?}: {problem}")),
                Ok(()) if size.interval(&self.ranges).max < 0 => {
                    self.report(format!("shape of {value:?}: the size {size} is negative"));
                }
                Ok(()) => {}
            }
        }
    }

    fn node(&mut self, graph: &Graph, node: &Node, is_defined: &mut [bool]) {
        let at = node.outputs.first().map_or_else(String::new, |value| format!("{value:?} = "));
        let at = format!("{at}{}", node.op.name());
        if graph.origins.get(node.origin).is_none() {
            self.report(format!("{at}: origin {} does not exist", node.origin.index()));
        }
        let undefined =
            node.inputs.iter().find(|value| !is_defined.get(value.index()).copied().unwrap_or(false));
        if let Some(value) = undefined {
            self.report(format!("{at}: {value:?} is used before it is defined"));
        }
        let missing = |values: &[ValueId]| values.iter().any(|value| graph.values.get(*value).is_none());
        if missing(&node.inputs) || missing(&node.outputs) {
            return self.report(format!("{at}: a value does not exist"));
        }
        if let Err(problem) = self.op(graph, node) {
            self.report(format!("{at}: {problem}"));
        }
        if let Op::Read(symbol) = &node.op
            && let Some(slot) = self.known.get_mut(symbol.index as usize)
        {
            *slot = true;
        }
        self.bodies(node);
        for value in &node.outputs {
            self.define(graph, *value, is_defined);
        }
    }

    fn bodies(&mut self, node: &Node) {
        let (Op::Cond { then: first, otherwise: second } | Op::While { condition: first, body: second, .. }) =
            &node.op
        else {
            return;
        };
        let bodies = [first, second];
        for body in bodies {
            let is_plain = body.inputs.iter().all(|input| input.role == InputRole::User)
                && body.outputs.iter().all(|output| output.role == OutputRole::User);
            if !body.symbols.is_empty() || !body.guards.is_empty() || !is_plain {
                self.report(format!("body `{}` has symbols, guards or state of its own", body.name));
            }
            // What one branch reads is not known after it.
            let known = self.known.clone();
            self.graph(body);
            self.known = known;
        }
    }

    fn outputs(&mut self, graph: &Graph, is_defined: &[bool]) {
        for (position, output) in graph.outputs.iter().enumerate() {
            if !is_defined.get(output.value.index()).copied().unwrap_or(false) {
                self.report(format!("output {position} `{}` is not defined", output.name));
                continue;
            }
            let (input, is_state) = match output.role {
                OutputRole::User => continue,
                OutputRole::State(input) => (input, true),
                OutputRole::Mutation(input) => (input, false),
            };
            let has_role = graph.inputs.get(input).is_some_and(|i| match i.role {
                InputRole::User => !is_state,
                InputRole::State(_) => is_state,
                InputRole::Generator => false,
            });
            let own = graph.ty(output.value);
            let fits = input_type(graph, input).is_some_and(|ty| self.same_type(ty, own));
            if !has_role || !fits {
                let what = if is_state { "state" } else { "mutated" };
                self.report(format!("output {position} `{}` does not fit {what} input {input}", output.name));
            }
        }
    }

    /// Whether the expression mentions only axes below `rank` and symbols that exist and, if asked, are known.
    fn mentions(&self, expr: &Expr, rank: usize, need_known: bool) -> Result<(), String> {
        let mut symbols = BTreeSet::new();
        expr.collect_symbols(&mut symbols);
        for symbol in symbols {
            let index = symbol.index as usize;
            match symbol.kind {
                SymbolKind::Axis if index < rank => {}
                SymbolKind::Axis => return Err(format!("`{expr}` mentions axis {symbol} of {rank}")),
                SymbolKind::Size if index >= self.symbols.len() => {
                    return Err(format!("`{expr}` mentions {symbol}, which does not exist"));
                }
                SymbolKind::Size if need_known && !self.known[index] => {
                    return Err(format!("`{expr}` mentions {symbol} before it is read"));
                }
                SymbolKind::Size => {}
            }
        }
        Ok(())
    }

    fn same_size(&self, a: &Expr, b: &Expr) -> bool {
        a == b || (a - b).simplify(&self.ranges).is(0)
    }

    fn same_shape(&self, a: &[Expr], b: &[Expr]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same_size(a, b))
    }

    fn same_type(&self, a: &TensorType, b: &TensorType) -> bool {
        a.dtype == b.dtype && self.same_shape(&a.shape, &b.shape)
    }
}

fn input_type(graph: &Graph, input: usize) -> Option<&TensorType> {
    graph.inputs.get(input).and_then(|input| graph.values.get(input.value)).map(|value| &value.ty)
}
