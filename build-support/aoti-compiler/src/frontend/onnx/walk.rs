//! Translates a graph node by node: its operands by name, the rule of its operator, its results.

use super::call::{Call, malformed};
use super::model::{MOST_NODES, Opened};
use super::ops::{self, Operator};
use super::origin::{origin, qualified};
use super::proto::{GraphProto, NodeProto, TypeProto};
use super::tensors;
use super::types::Narrow;
use super::value::Val;
use crate::diagnostic::{Code, Diagnostic};
use crate::frontend::torch::custom::{Declared, Operators};
use crate::frontend::torch::rules::{Context, RuleError};
use crate::graph::{ConstantSource, Origin, ValueId};
use crate::symbolic::Expr;
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

/// Bodies within bodies, and functions that call functions.
const DEEPEST: usize = 64;

/// Operations in the formula of a size.
const LONGEST_SIZE: usize = 1000;

/// Operators whose result has the sizes of their first operand.
const KEEP_SIZES: &[&str] = &[
    "Abs",
    "Cast",
    "CastLike",
    "Ceil",
    "Cos",
    "Erf",
    "Exp",
    "Floor",
    "Identity",
    "Log",
    "Neg",
    "Reciprocal",
    "Relu",
    "Round",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softmax",
    "Sqrt",
    "Tanh",
];

/// Values by name.
pub(super) type Scope = IndexMap<String, Val>;

/// A model on its way to a core graph: the context of rules, and the names that are defined so far.
pub(super) struct Onnx<'m> {
    pub(super) cx: Context,
    pub(super) opened: &'m Opened,
    pub(super) operators: &'m Operators,
    /// What is in sight, innermost last.
    pub(super) scopes: Vec<Scope>,
    /// Versions of the operator sets of the graph or the function that is translated.
    pub(super) versions: IndexMap<String, i64>,
    /// Tensors of types of fewer than eight bits.
    pub(super) narrow: BTreeMap<ValueId, Narrow>,
    /// Fixed sizes that the model states of values.
    pub(super) stated: IndexMap<String, Vec<Option<i64>>>,
    /// Types that the model states of values, where functions of the project's may need them.
    pub(super) types: IndexMap<String, TypeProto>,
    /// Names of sizes.
    pub(super) symbols: IndexMap<String, Expr>,
    pub(super) findings: Vec<Diagnostic>,
    /// Operators without rules, with the number of nodes and the first of them.
    pub(super) unknown: IndexMap<String, (usize, Origin)>,
    pub(super) depth: usize,
    /// Nodes so far, those of functions and bodies as often as they are written out.
    pub(super) seen_nodes: usize,
}

impl Deref for Onnx<'_> {
    type Target = Context;
    fn deref(&self) -> &Context {
        &self.cx
    }
}

impl DerefMut for Onnx<'_> {
    fn deref_mut(&mut self) -> &mut Context {
        &mut self.cx
    }
}

impl<'m> Onnx<'m> {
    /// Goes one level deeper, unless that is too deep.
    pub(super) fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, RuleError>,
    ) -> Result<T, RuleError> {
        if self.depth >= DEEPEST {
            return Err(malformed("bodies and functions are nested too deeply, or call themselves"));
        }
        if self.seen_nodes > MOST_NODES {
            return Err(RuleError::Unsupported(format!(
                "the model has more than {MOST_NODES} nodes when functions and loops are written out"
            )));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    // --- names ---------------------------------------------------------------------------------------------------

    /// What a name stands for.
    pub(super) fn look_up(&self, name: &str) -> Option<&Val> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// What an operand of a node is; one without a name is left out.
    pub(super) fn operand(&self, name: &str) -> Result<Val, RuleError> {
        if name.is_empty() {
            return Ok(Val::Absent);
        }
        self.look_up(name).cloned().ok_or_else(|| malformed(format!("`{name}` is not defined")))
    }

    /// Gives a name a value. Names are assigned once in a scope.
    pub(super) fn define(&mut self, name: &str, value: Val) -> Result<(), RuleError> {
        if let Val::Tensor(value) = &value {
            self.cx.b.name(*value, name);
        }
        let scope = self.scopes.last_mut().expect("there is a scope while names are defined");
        match scope.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(malformed(format!("`{name}` is defined twice"))),
        }
    }

    // --- graphs --------------------------------------------------------------------------------------------------

    /// Translates what a graph has beside its inputs: its weights, its nodes.
    pub(super) fn graph(&mut self, graph: &GraphProto) {
        self.state_sizes(graph);
        self.initializers(graph);
        self.nodes(&graph.node);
    }

    fn state_sizes(&mut self, graph: &GraphProto) {
        self.state_types(graph.value_info.iter().chain(&graph.output));
        for info in graph.value_info.iter().chain(&graph.output) {
            if let Some(sizes) = super::model::stated_sizes(info) {
                self.stated.insert(info.name().to_owned(), sizes);
            }
        }
        // What a function of single elements is of has the sizes of what it gives.
        for node in graph.node.iter().rev() {
            if let ([operand, ..], [result, ..]) = (node.input.as_slice(), node.output.as_slice())
                && KEEP_SIZES.contains(&node.op_type())
                && !self.stated.contains_key(operand)
                && let Some(sizes) = self.stated.get(result).cloned()
            {
                self.stated.insert(operand.clone(), sizes);
            }
        }
    }

    fn initializers(&mut self, graph: &GraphProto) {
        let dense =
            graph.initializer.iter().map(|proto| (proto.name(), tensors::read(proto, &self.opened.beside)));
        let sparse = graph.sparse_initializer.iter().map(|proto| {
            let name = proto.values.as_ref().map_or("", |values| values.name());
            (name, tensors::dense(proto, &self.opened.beside))
        });
        let all: Vec<_> = dense.chain(sparse).collect();
        let mut factors = BTreeSet::new();
        factors_of_sizes(&graph.node, &mut factors);
        for (name, read) in all {
            let value = read.map(|mut read| {
                if !factors.contains(name) {
                    read.constant.source = ConstantSource::Weight;
                }
                self.constant(read)
            });
            let value = match value {
                Ok(Ok(value)) => value.into(),
                Ok(Err(error)) => self.refused(error.to_string()),
                Err(message) => self.refused(message),
            };
            if let Err(error) = self.define(name, value) {
                self.refused(error.to_string());
            }
        }
    }

    fn refused(&mut self, message: String) -> Val {
        self.findings.push(Diagnostic::new(Code::Weights, message));
        Val::Poison
    }

    /// A tensor of the file as a value.
    pub(super) fn constant(&mut self, read: tensors::Read) -> Result<ValueId, RuleError> {
        let mut constant = read.constant;
        // Numbers that say what to do with others are no weights.
        if !constant.dtype.is_float() && read.narrow.is_none() && constant.sizes.len() < 2 {
            constant.source = ConstantSource::Fixed;
        }
        let value = self.cx.b.constant(constant)?;
        if let Some(narrow) = read.narrow {
            self.narrow.insert(value, narrow);
        }
        Ok(value)
    }

    /// Translates nodes in order; what is refused is a finding each.
    pub(super) fn nodes(&mut self, nodes: &[NodeProto]) {
        self.seen_nodes += nodes.len();
        for node in nodes {
            let origin = origin(node);
            self.cx.b.set_origin(origin.clone());
            if let Err(error) = self.node(node, &origin) {
                let message = format!("operator `{}`: {error}", qualified(node));
                self.findings.push(Diagnostic::new(Code::Operands, message).at(&origin));
                self.poison(node);
            }
        }
    }

    fn poison(&mut self, node: &NodeProto) {
        let scope = self.scopes.last_mut().expect("there is a scope while names are defined");
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            scope.insert(name.clone(), Val::Poison);
        }
    }

    fn node(&mut self, node: &NodeProto, origin: &Origin) -> Result<(), RuleError> {
        let inputs =
            node.input.iter().map(|name| self.operand(name)).collect::<Result<Vec<Val>, RuleError>>()?;
        let Some(way) = self.way(node) else {
            let entry = self.unknown.entry(qualified(node)).or_insert_with(|| (0, origin.clone()));
            entry.0 += 1;
            self.poison(node);
            return Ok(());
        };
        // What a project declares has no versions.
        let version = self.versions.get(domain(node)).copied();
        let version = if matches!(way, Way::Project(_)) { version.or(Some(1)) } else { version };
        let version = version.ok_or_else(|| {
            malformed(format!("the model imports no operators of the domain `{}`", domain(node)))
        })?;
        let call = Call { node, version, inputs };
        if call.inputs.iter().any(Val::is_poisoned) {
            self.poison(node);
            return Ok(());
        }
        let results = match way {
            Way::Project(own) => self.custom(&call, own)?,
            Way::Rule(operator) => (operator.run)(self, &call)?,
            Way::Function => self.nested(|onnx| onnx.function(&call))?,
        };
        if results.len() < node.output.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1) {
            return Err(malformed(format!(
                "{} results of which there are {}",
                node.output.len(),
                results.len()
            )));
        }
        for (name, value) in node.output.iter().zip(results).filter(|(name, _)| !name.is_empty()) {
            let value = self.with_stated_sizes(name, value)?;
            self.check_sizes(name, &value)?;
            self.define(name, value)?;
        }
        Ok(())
    }

    fn way(&self, node: &NodeProto) -> Option<Way<'m>> {
        if let Some(own) = self.declared(node) {
            return Some(Way::Project(own));
        }
        if self.opened.function(node).is_some() {
            return Some(Way::Function);
        }
        let operator = ops::find(domain(node), node.op_type());
        operator.map(Way::Rule)
    }

    /// Sizes that grow with every node would take more time and memory than there is.
    fn check_sizes(&self, name: &str, value: &Val) -> Result<(), RuleError> {
        let Val::Tensor(value) = value else { return Ok(()) };
        let mut sizes = self.cx.b.ty(*value).shape.iter();
        if sizes.any(|size| size.is_longer_than(LONGEST_SIZE)) {
            return Err(RuleError::Unsupported(format!(
                "a size of `{name}` is a formula of more than {LONGEST_SIZE} operations; fix sizes of the inputs that it \
                 follows from"
            )));
        }
        Ok(())
    }

    /// Where data decide sizes that the model states, they have to be those.
    fn with_stated_sizes(&mut self, name: &str, value: Val) -> Result<Val, RuleError> {
        let (Val::Tensor(tensor), Some(stated)) = (&value, self.stated.get(name)) else { return Ok(value) };
        let own = self.cx.b.shape(*tensor);
        let is_of_data = |size: &Expr| {
            let mut symbols = BTreeSet::new();
            size.collect_symbols(&mut symbols);
            symbols.iter().any(|symbol| self.cx.b.is_data(*symbol))
        };
        if own.len() != stated.len() || !own.iter().any(is_of_data) {
            return Ok(value);
        }
        let sizes: Vec<Expr> = own
            .iter()
            .zip(stated)
            .map(|(own, stated)| stated.filter(|_| is_of_data(own)).map_or_else(|| own.clone(), Expr::int))
            .collect();
        let narrow = self.narrow.get(tensor).copied();
        let value = self.cx.required_shape(*tensor, &sizes)?;
        if let Some(narrow) = narrow {
            self.narrow.insert(value, narrow);
        }
        Ok(value.into())
    }
}

/// The operands of these nodes that are numbers with a point and decide how large results are. They are no weights.
fn factors_of_sizes<'g>(nodes: &'g [NodeProto], names: &mut BTreeSet<&'g str>) {
    for node in nodes {
        let operands = match (domain(node), node.op_type()) {
            ("", "Resize" | "Upsample") => node.input.get(1..).unwrap_or_default(),
            ("", "Range") => node.input.as_slice(),
            _ => &[],
        };
        names.extend(operands.iter().map(String::as_str));
        for body in node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs)) {
            factors_of_sizes(&body.node, names);
        }
    }
}

/// What translates a node.
enum Way<'m> {
    Project(&'m Declared),
    Rule(&'static Operator),
    Function,
}

/// The domain of a node's operator; the standard's own has two names.
pub(super) fn domain(node: &NodeProto) -> &str {
    canonical_domain(node.domain())
}

/// The standard's own domain has two names.
pub(super) fn canonical_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}
