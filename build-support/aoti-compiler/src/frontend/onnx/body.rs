//! Bodies: graphs within graphs, which see what is around them.

use super::call::malformed;
use super::proto::GraphProto;
use super::value::Val;
use super::walk::{Onnx, Scope};
use crate::frontend::torch::rules::{Context, RuleError};
use crate::graph::{Graph, InputRole, OutputRole, TensorType, ValueId};
use crate::symbolic::Expr;
use std::collections::{BTreeMap, BTreeSet};

/// A body as a core graph: it takes its own operands, then what it sees of what is around it.
pub(super) struct Body {
    pub(super) graph: Graph,
    /// The values that it takes behind its own.
    pub(super) captured: Vec<ValueId>,
    /// What its outputs make up.
    pub(super) results: Vec<Form>,
    /// The elements of outputs that have one, as far as they are known.
    pub(super) known: Vec<Option<Expr>>,
}

/// What tensors make up a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// None.
    Absent,
    /// One.
    Tensor,
    /// Those of its elements.
    Sequence(Vec<Form>),
    /// One, of which the rows are a sequence.
    Rows,
}

impl Form {
    /// The value that the next tensors make up.
    pub(super) fn filled(&self, tensors: &mut dyn Iterator<Item = ValueId>) -> Val {
        match self {
            Form::Absent => Val::Absent,
            Form::Tensor => tensors.next().into(),
            Form::Sequence(all) => Val::Sequence(all.iter().map(|form| form.filled(tensors)).collect()),
            Form::Rows => tensors.next().map_or(Val::Absent, Val::Rows),
        }
    }
}

/// The form of a value, and its tensors in order; `None` of what was refused.
fn taken_apart(value: &Val, tensors: &mut Vec<ValueId>) -> Option<Form> {
    match value {
        Val::Absent => Some(Form::Absent),
        Val::Tensor(value) => {
            tensors.push(*value);
            Some(Form::Tensor)
        }
        Val::Sequence(all) => {
            all.iter().map(|value| taken_apart(value, tensors)).collect::<Option<_>>().map(Form::Sequence)
        }
        Val::Rows(table) => {
            tensors.push(*table);
            Some(Form::Rows)
        }
        Val::Poison => None,
    }
}

/// What a body sees of what is around it, as far as that is given to it.
struct Captured {
    values: Vec<ValueId>,
    scope: Scope,
}

impl Onnx<'_> {
    /// Translates a body in place: its nodes become nodes of the graph that is built. Gives its outputs.
    pub(super) fn inlined_body(&mut self, body: &GraphProto, given: Vec<Val>) -> Result<Vec<Val>, RuleError> {
        if given.len() != body.input.len() {
            return Err(malformed(format!("a body of {} inputs is given {}", body.input.len(), given.len())));
        }
        let named = body.input.iter().map(|info| info.name().to_owned()).zip(given);
        self.scopes.push(named.collect());
        let results = self.nested(|onnx| {
            onnx.graph(body);
            body.output.iter().map(|info| onnx.operand(info.name())).collect()
        });
        self.scopes.pop();
        results
    }

    /// Translates a body to a graph of its own, for operands of these types. `None` where nodes of it were refused, which is told
    /// already.
    pub(super) fn body(
        &mut self,
        body: &GraphProto,
        types: &[TensorType],
    ) -> Result<Option<Body>, RuleError> {
        if types.len() != body.input.len() {
            return Err(malformed(format!("a body of {} inputs is given {}", body.input.len(), types.len())));
        }
        let mut names = BTreeSet::new();
        free_names(body, &mut BTreeSet::new(), &mut names);
        let outside: Vec<(String, Val)> =
            names.into_iter().filter_map(|name| Some((name.clone(), self.look_up(&name)?.clone()))).collect();
        let inner = Context::new(self.cx.b.child(body.name()));
        let outer = std::mem::replace(&mut self.cx, inner);
        let narrow = std::mem::take(&mut self.narrow);
        let own: Vec<Val> = body
            .input
            .iter()
            .zip(types)
            .map(|(info, ty)| self.cx.b.input(info.name(), ty.clone(), InputRole::User).into())
            .collect();
        let mut captured = Captured { values: Vec::new(), scope: Scope::new() };
        for (name, value) in outside {
            let value = self.captured(&outer, &narrow, &name, &value, &mut captured.values);
            captured.scope.insert(name, value);
        }
        let scopes = std::mem::replace(&mut self.scopes, vec![captured.scope]);
        let results = self.inlined_body(body, own);
        let inner = std::mem::replace(&mut self.cx, outer);
        self.scopes = scopes;
        self.narrow = narrow;
        let mut builder = inner.b;
        let mut tensors = Vec::new();
        let forms: Option<Vec<Form>> =
            results?.iter().map(|value| taken_apart(value, &mut tensors)).collect();
        let Some(results) = forms else { return Ok(None) };
        let known = tensors.iter().map(|value| builder.element(*value)).collect();
        for (position, value) in tensors.into_iter().enumerate() {
            builder.output(&format!("result_{position}"), value, OutputRole::User);
        }
        Ok(Some(Body { graph: builder.finish(), captured: captured.values, results, known }))
    }

    /// What a value of `outer` is inside of the body that is built. What follows from sizes is known there too.
    fn captured(
        &mut self,
        outer: &Context,
        narrow: &BTreeMap<ValueId, super::types::Narrow>,
        name: &str,
        value: &Val,
        values: &mut Vec<ValueId>,
    ) -> Val {
        match value {
            Val::Absent => Val::Absent,
            Val::Poison => Val::Poison,
            Val::Sequence(all) => {
                Val::Sequence(all.iter().map(|own| self.captured(outer, narrow, name, own, values)).collect())
            }
            Val::Rows(table) => Val::Rows(self.captured_tensor(outer, narrow, name, *table, values)),
            Val::Tensor(value) => self.captured_tensor(outer, narrow, name, *value, values).into(),
        }
    }

    fn captured_tensor(
        &mut self,
        outer: &Context,
        narrow: &BTreeMap<ValueId, super::types::Narrow>,
        name: &str,
        value: ValueId,
        values: &mut Vec<ValueId>,
    ) -> ValueId {
        let ty = outer.b.ty(value).clone();
        if let Some(known) = outer.b.elements(value).filter(|known| known.len() <= 64)
            && let Ok(flat) = self.vector(&known)
        {
            let flat = self.cx.b.cast(flat, ty.dtype);
            if let Ok(own) = self.cx.b.reshape(flat, &ty.shape) {
                return own;
            }
        }
        values.push(value);
        let own = self.cx.b.input(name, ty, InputRole::User);
        if let Some(narrow) = narrow.get(&value) {
            self.narrow.insert(own, *narrow);
        }
        own
    }
}

/// The names that a body uses and does not define.
pub(super) fn free_names(body: &GraphProto, defined: &mut BTreeSet<String>, free: &mut BTreeSet<String>) {
    let before = defined.clone();
    defined.extend(body.input.iter().map(|info| info.name().to_owned()));
    defined.extend(body.initializer.iter().map(|tensor| tensor.name().to_owned()));
    let use_name = |name: &String, defined: &BTreeSet<String>, free: &mut BTreeSet<String>| {
        if !name.is_empty() && !defined.contains(name) {
            free.insert(name.clone());
        }
    };
    for node in &body.node {
        node.input.iter().for_each(|name| use_name(name, defined, free));
        for graph in node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs)) {
            free_names(graph, defined, free);
        }
        defined.extend(node.output.iter().cloned());
    }
    body.output.iter().for_each(|info| use_name(&info.name().to_owned(), defined, free));
    *defined = before;
}
