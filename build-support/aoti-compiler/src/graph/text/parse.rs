//! Parses graphs. Ids and references are resolved here; whether types fit is the verifier's business.

use crate::diagnostic::Diagnostics;
use crate::dtype::DType;
use crate::graph::text::clip;
use crate::graph::{
    ConstantId, Graph, Input, InputRole, Node, Origin, OriginId, Output, OutputRole, Value, ValueId,
};
use crate::text::{Cursor, SyntaxError};
use cranelift_entity::EntityRef;
use indexmap::IndexMap;

/// Parses the text form. A fault is reported with line and column; the result is not verified.
pub fn parse(text: &str) -> Result<Graph, Diagnostics> {
    Cursor::whole(text, |cursor| Parser { cursor }.graph())
}

/// Parses a graph that stands inside another text.
pub(crate) fn parse_nested(cursor: &mut Cursor<'_>) -> Result<Graph, SyntaxError> {
    Parser { cursor }.graph()
}

pub(super) struct Parser<'c, 'a> {
    pub(super) cursor: &'c mut Cursor<'a>,
}

/// One graph while it is parsed. Values are numbered by first mention until all are known.
#[derive(Default)]
pub(super) struct Scope<'a> {
    graph: Graph,
    /// The value and first mention of each id.
    mentions: IndexMap<&'a str, usize>,
    definitions: Vec<Option<Value>>,
}

impl<'a> Scope<'a> {
    pub(super) fn mention(&mut self, id: &'a str, place: usize) -> ValueId {
        let next = self.mentions.len();
        let entry = self.mentions.entry(id);
        let index = entry.index();
        entry.or_insert(place);
        if index == next {
            self.definitions.push(None);
        }
        ValueId::new(index)
    }
}

impl<'a> Parser<'_, 'a> {
    pub(super) fn graph(&mut self) -> Result<Graph, SyntaxError> {
        self.cursor.enter()?;
        self.cursor.expect_word("graph")?;
        let mut scope = Scope::default();
        scope.graph.name = self.cursor.optional_string()?.unwrap_or_default();
        self.cursor.expect('{')?;
        while !self.cursor.eat('}') {
            self.statement(&mut scope)?;
        }
        self.cursor.leave();
        self.finish(scope)
    }

    fn statement(&mut self, scope: &mut Scope<'a>) -> Result<(), SyntaxError> {
        match self.cursor.peek_word() {
            "symbol" => {
                self.cursor.word()?;
                self.cursor.symbol(&mut scope.graph.symbols)
            }
            "guard" => {
                self.cursor.word()?;
                scope.graph.guards.push(self.cursor.guard()?);
                Ok(())
            }
            "origin" => self.origin(scope),
            "const" => self.constant(scope),
            "input" => self.input(scope),
            "value" => {
                self.cursor.word()?;
                self.definition(scope).map(|_| ())
            }
            "output" => self.output(scope),
            _ => self.node(scope),
        }
    }

    fn origin(&mut self, scope: &mut Scope<'a>) -> Result<(), SyntaxError> {
        self.cursor.word()?;
        self.cursor.next_reference('o', scope.graph.origins.len())?;
        self.cursor.expect('=')?;
        scope.graph.origins.push(self.cursor.origin()?);
        Ok(())
    }

    fn constant(&mut self, scope: &mut Scope<'a>) -> Result<(), SyntaxError> {
        self.cursor.word()?;
        self.cursor.next_reference('c', scope.graph.constants.len())?;
        let name = self.cursor.optional_string()?.unwrap_or_default();
        self.cursor.expect(':')?;
        scope.graph.constants.push(self.cursor.constant(name)?);
        Ok(())
    }

    fn input(&mut self, scope: &mut Scope<'a>) -> Result<(), SyntaxError> {
        self.cursor.word()?;
        let value = self.definition(scope)?;
        let role = if self.cursor.eat_word("state") {
            InputRole::State(ConstantId::from_u32(self.cursor.reference('c')?))
        } else if self.cursor.eat_word("generator") {
            InputRole::Generator
        } else {
            InputRole::User
        };
        let is_complex = self.cursor.eat_word("complex");
        let slot = scope.definitions[value.index()].as_mut().expect("defined above");
        let name = slot.name.clone();
        // A value statement may follow on the next line; a name for the value stands in quotes.
        if self.value_name_follows() {
            slot.name = self.cursor.string()?;
        }
        scope.graph.inputs.push(Input { value, name, role, is_complex });
        Ok(())
    }

    /// Takes the keyword `value` where a string follows it.
    fn value_name_follows(&mut self) -> bool {
        let before = self.cursor.save();
        if self.cursor.eat_word("value") && self.cursor.peek() == Some('"') {
            return true;
        }
        self.cursor.restore(before);
        false
    }

    fn output(&mut self, scope: &mut Scope<'a>) -> Result<(), SyntaxError> {
        self.cursor.word()?;
        let value = self.value(scope)?;
        let name = self.cursor.optional_string()?;
        let name = name.unwrap_or_else(|| format!("output_{}", scope.graph.outputs.len()));
        let role = if self.cursor.eat_word("state") {
            OutputRole::State(self.cursor.position()?)
        } else if self.cursor.eat_word("mutation") {
            OutputRole::Mutation(self.cursor.position()?)
        } else {
            OutputRole::User
        };
        let is_complex = self.cursor.eat_word("complex");
        scope.graph.outputs.push(Output { value, name, role, is_complex });
        Ok(())
    }

    fn node(&mut self, scope: &mut Scope<'a>) -> Result<(), SyntaxError> {
        let mut outputs = Vec::new();
        if self.cursor.peek_word().starts_with('%') {
            outputs.push(self.definition(scope)?);
            while self.cursor.eat(',') {
                outputs.push(self.definition(scope)?);
            }
            self.cursor.expect('=')?;
        }
        let dtype = outputs.first().and_then(|value| scope.definitions[value.index()].as_ref());
        let dtype = dtype.map_or(DType::F32, |value| value.ty.dtype);
        let (op, inputs) = self.op(scope, dtype)?;
        let origin = if self.cursor.eat('@') { self.cursor.reference('o')? } else { 0 };
        scope.graph.nodes.push(Node { op, inputs, outputs, origin: OriginId::from_u32(origin) });
        Ok(())
    }

    /// `%id "name": type`.
    fn definition(&mut self, scope: &mut Scope<'a>) -> Result<ValueId, SyntaxError> {
        let id = self.value(scope)?;
        if scope.definitions[id.index()].is_some() {
            return Err(self.cursor.error("the value is defined twice"));
        }
        let own = scope.mentions.get_index(id.index()).map_or("", |(id, _)| &id[1..]);
        let name = self.cursor.optional_string()?;
        self.cursor.expect(':')?;
        let ty = self.cursor.tensor_type()?;
        // A word is a name for people too.
        let word = if own.starts_with(|c: char| c.is_ascii_digit()) { "" } else { own };
        scope.definitions[id.index()] = Some(Value { ty, name: name.unwrap_or_else(|| word.to_owned()) });
        Ok(id)
    }

    pub(super) fn value(&mut self, scope: &mut Scope<'a>) -> Result<ValueId, SyntaxError> {
        let word = self.cursor.word()?;
        if word.len() < 2 || !word.starts_with('%') {
            return Err(self.cursor.error("expected a value such as `%3`"));
        }
        Ok(scope.mention(word, self.cursor.place()))
    }

    /// Numbers the values and checks that all are defined.
    fn finish(&self, scope: Scope<'a>) -> Result<Graph, SyntaxError> {
        let Scope { mut graph, mentions, definitions } = scope;
        let mut ids = Vec::new();
        for ((id, place), definition) in mentions.iter().zip(&definitions) {
            if definition.is_none() {
                return Err(self.cursor.error_at(*place, format!("`{}` is not defined", clip(id))));
            }
            ids.push(id[1..].parse::<u32>().ok());
        }
        let mut order: Vec<usize> = (0..ids.len()).collect();
        // Numbers are kept as the printer wrote them; words are numbered by first mention.
        if ids.iter().all(Option::is_some) {
            order.sort_by_key(|index| ids[*index]);
        }
        let mut renamed = vec![ValueId::new(0); ids.len()];
        for (to, from) in order.iter().enumerate() {
            renamed[*from] = ValueId::new(to);
        }
        let mut definitions = definitions;
        for from in order {
            graph.values.push(definitions[from].take().expect("checked above"));
        }
        let rename = |value: &mut ValueId| *value = renamed[value.index()];
        graph
            .nodes
            .iter_mut()
            .for_each(|node| node.inputs.iter_mut().chain(&mut node.outputs).for_each(rename));
        graph.inputs.iter_mut().for_each(|input| rename(&mut input.value));
        graph.outputs.iter_mut().for_each(|output| rename(&mut output.value));
        if graph.origins.is_empty() && !graph.nodes.is_empty() {
            graph.origins.push(Origin::default());
        }
        Ok(graph)
    }
}
