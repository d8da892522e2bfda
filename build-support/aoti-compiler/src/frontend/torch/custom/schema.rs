//! Schemas of operators: `scaled(Tensor x, float factor=1.0, *, int[]? sizes=None) -> (Tensor, Tensor[])`.
//!
//! The grammar is that of `torch.library`; what compiled code cannot be given is refused by name.

use crate::dtype::DType;
use crate::graph::{Graph, InputRole, NumberKind, OutputRole};
use std::fmt;

/// What is wrong with a schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaError(String);

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SchemaError(inner) = self;
        write!(f, "{inner}")
    }
}

impl std::error::Error for SchemaError {}

/// The type of one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// `Tensor`.
    Tensor,
    /// `int`, `SymInt`.
    Int,
    /// `float`, `SymFloat`.
    Float,
    /// `bool`, `SymBool`.
    Bool,
    /// `str`.
    Text,
}

impl Type {
    /// The kind of number that it is, if it is one.
    pub fn number(self) -> Option<NumberKind> {
        match self {
            Type::Int => Some(NumberKind::Int),
            Type::Float => Some(NumberKind::Float),
            Type::Bool => Some(NumberKind::Bool),
            Type::Tensor | Type::Text => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Type::Tensor => "Tensor",
            Type::Int => "int",
            Type::Float => "float",
            Type::Bool => "bool",
            Type::Text => "str",
        }
    }
}

/// What an argument is where a call has none.
#[derive(Clone, PartialEq, Debug)]
pub enum Default {
    /// `None`.
    None,
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Default>),
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its type, or that of its elements.
    pub ty: Type,
    /// Whether it is a list.
    pub is_list: bool,
    /// Whether it may be `None`.
    pub is_optional: bool,
    /// Whether the operator changes the tensor in place: `Tensor(a!)`.
    pub is_changed: bool,
    /// What it is where it is not given.
    pub default: Option<Default>,
}

/// A result: a tensor, or a list of tensors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Returned {
    /// Whether it is a list.
    pub is_list: bool,
}

/// Arguments and results of an operator.
#[derive(Clone, PartialEq, Debug)]
pub struct Schema {
    /// The name in front, where there is one.
    name: String,
    /// In order.
    pub arguments: Vec<Argument>,
    /// In order.
    pub results: Vec<Returned>,
    /// Whether a function says how large its results are: each is followed by a tensor of its sizes.
    pub decides_sizes: bool,
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (list, optional) =
            (if self.is_list { "[]" } else { "" }, if self.is_optional { "?" } else { "" });
        let changed = if self.is_changed { "(a!)" } else { "" };
        write!(f, "{}{changed}{list}{optional}", self.ty.name())
    }
}

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// [`SchemaError`] with the first thing that is wrong.
    pub fn parse(text: &str) -> Result<Schema, SchemaError> {
        let mut parser = Parser { rest: text };
        let schema = parser.schema()?;
        parser.skip();
        if parser.rest.is_empty() { Ok(schema) } else { Err(parser.expected("the end")) }
    }

    /// The schema, if it is one of the operator with this name.
    pub(super) fn of_name(self, operator: &str) -> Result<Schema, SchemaError> {
        let short = operator.split_once("::").map_or(operator, |(_, short)| short);
        if [operator, short, ""].contains(&self.name.as_str()) {
            return Ok(self);
        }
        Err(SchemaError(format!("it is that of `{}`", self.name)))
    }

    /// That of a function that says how large its results are.
    pub(super) fn with_sizes(self) -> Result<Schema, SchemaError> {
        let fault = match self.results.as_slice() {
            [] => "gives no tensor",
            all if all.iter().any(|result| result.is_list) => "gives a list of tensors",
            _ if self.arguments.iter().any(|argument| argument.is_changed) => "changes a tensor in place",
            _ => return Ok(Schema { decides_sizes: true, ..self }),
        };
        Err(SchemaError(format!("a function that says how large its results are {fault}")))
    }

    /// For each result as a function has them, whether it is a list.
    pub(crate) fn functions_results(&self) -> impl Iterator<Item = bool> {
        let times = if self.decides_sizes { 2 } else { 1 };
        self.results.iter().flat_map(move |result| std::iter::repeat_n(result.is_list, times))
    }

    /// A letter for each argument and result: lower case, and upper case for lists; another for what may be absent.
    pub(super) fn letters(&self) -> String {
        let argument = |own: &Argument| match (own.ty, own.is_list, own.is_optional) {
            // It is written as results are.
            (Type::Tensor, ..) if own.is_changed => 'R',
            (Type::Tensor, true, _) => 'L',
            (Type::Tensor, false, false) => 'T',
            (Type::Tensor, false, true) => 't',
            (Type::Int, false, false) => 'i',
            (Type::Int, false, true) => 'j',
            (Type::Int, true, false) => 'I',
            (Type::Int, true, true) => 'J',
            (Type::Float, false, false) => 'f',
            (Type::Float, false, true) => 'g',
            (Type::Float, true, false) => 'F',
            (Type::Float, true, true) => 'G',
            (Type::Bool, false, false) => 'b',
            (Type::Bool, false, true) => 'c',
            (Type::Bool, true, false) => 'B',
            (Type::Bool, true, true) => 'C',
            (Type::Text, _, false) => 's',
            (Type::Text, _, true) => 'u',
        };
        let result = |is_list: bool| if is_list { 'M' } else { 'R' };
        self.arguments.iter().map(argument).chain(self.functions_results().map(result)).collect()
    }

    /// Why a graph does not implement the operator.
    pub(super) fn fault_of_graph(&self, graph: &Graph) -> Option<String> {
        let counted =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        if graph.inputs.len() != self.arguments.len() {
            let (own, wanted) =
                (counted(graph.inputs.len(), "input"), counted(self.arguments.len(), "argument"));
            return Some(format!("has {own}, its schema {wanted}"));
        }
        for (argument, input) in self.arguments.iter().zip(&graph.inputs) {
            let ty = graph.ty(input.value);
            let wanted = match argument.ty {
                Type::Tensor => None,
                Type::Int => Some(DType::I64),
                Type::Float => Some(DType::F64),
                Type::Bool => Some(DType::Bool),
                Type::Text => {
                    return Some(format!("cannot take the text `{}`: input `{}`", argument.name, input.name));
                }
            };
            if argument.is_changed || argument.is_list || argument.is_optional {
                return Some(format!(
                    "cannot take `{argument} {}`: input `{}` is one tensor",
                    argument.name, input.name
                ));
            }
            if wanted.is_some_and(|dtype| ty.dtype != dtype || ty.rank() != 0) {
                let dtype = wanted.map(DType::name).unwrap_or_default();
                return Some(format!("has {ty} as input `{}`, where `{argument}` is {dtype}[]", input.name));
            }
            if input.role != InputRole::User {
                return Some(format!("has input `{}`, which is not the caller's", input.name));
            }
        }
        if graph.outputs.len() != self.results.len() {
            let (own, wanted) =
                (counted(graph.outputs.len(), "output"), counted(self.results.len(), "result"));
            return Some(format!("has {own}, its schema {wanted}"));
        }
        if self.results.iter().any(|result| result.is_list) {
            return Some("cannot give a list of tensors".to_owned());
        }
        let is_own = graph.outputs.iter().all(|output| output.role == OutputRole::User);
        (!is_own).then(|| "changes a tensor in place".to_owned())
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn expected(&self, what: &str) -> SchemaError {
        let found: String = self.rest.chars().take(24).collect();
        let found =
            if found.is_empty() { "the end".to_owned() } else { format!("`{}`", found.escape_debug()) };
        SchemaError(format!("expected {what}, found {found}"))
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), SchemaError> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    /// Letters for which `is_part` holds, perhaps none.
    fn letters(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        self.skip();
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn name(&mut self, what: &str) -> Result<&'a str, SchemaError> {
        let before = self.rest;
        let word = self.letters(|c| c.is_ascii_alphanumeric() || c == '_');
        if word.starts_with(|c: char| !c.is_ascii_digit()) {
            return Ok(word);
        }
        self.rest = before;
        self.skip();
        Err(self.expected(what))
    }

    fn schema(&mut self) -> Result<Schema, SchemaError> {
        let name = self.letters(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.')).to_owned();
        self.expect("(")?;
        let mut arguments: Vec<Argument> = Vec::new();
        while !self.eat(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            // What follows is given by name in Python, and by position here as everything is.
            if self.eat("*") && !self.eat(",") {
                return Err(self.expected("`,`"));
            }
            let argument = self.argument()?;
            if arguments.iter().any(|other| other.name == argument.name) {
                return Err(SchemaError(format!("two arguments are called `{}`", argument.name)));
            }
            arguments.push(argument);
        }
        self.expect("->")?;
        Ok(Schema { name, arguments, results: self.results()?, decides_sizes: false })
    }

    /// A type: what it is of, whether it is a list, whether it may be absent. What is said of views comes back in `alias`.
    fn ty(&mut self, alias: &mut Option<&'a str>) -> Result<(Type, bool, bool), SchemaError> {
        let word = self.name("a type")?;
        let ty = match word {
            "Tensor" => Type::Tensor,
            "int" | "SymInt" => Type::Int,
            "float" | "SymFloat" => Type::Float,
            "bool" | "SymBool" => Type::Bool,
            "str" => Type::Text,
            other => {
                return Err(SchemaError(format!(
                    "the type `{other}` is not supported; use `Tensor`, `int`, `SymInt`, `float`, `bool`, `str`, \
                     lists and optionals of them"
                )));
            }
        };
        if self.eat("(") {
            *alias = Some(self.letters(|c| c != ')'));
            self.expect(")")?;
        }
        let mut is_optional = self.eat("?");
        let is_list = self.eat("[");
        if is_list {
            if is_optional {
                return Err(SchemaError(format!("a list of `{word}?` is not supported")));
            }
            self.letters(|c| c.is_ascii_digit());
            self.expect("]")?;
            is_optional = self.eat("?");
            if self.eat("[") {
                return Err(SchemaError("a list of lists is not supported".to_owned()));
            }
            if ty == Type::Text {
                return Err(SchemaError("a list of `str` is not supported".to_owned()));
            }
        }
        Ok((ty, is_list, is_optional))
    }

    fn argument(&mut self) -> Result<Argument, SchemaError> {
        let mut alias = None;
        let (ty, is_list, is_optional) = self.ty(&mut alias)?;
        let is_changed = alias.is_some_and(|alias| alias.contains('!'));
        let name = self.name("the name of an argument")?.to_owned();
        if is_changed && (is_list || is_optional || ty != Type::Tensor) {
            return Err(SchemaError(format!(
                "`{name}`: only a tensor that is always given can be changed in place"
            )));
        }
        if ty == Type::Tensor && is_list && is_optional {
            return Err(SchemaError(format!("`{name}`: a list of tensors cannot be absent")));
        }
        let default = if self.eat("=") { Some(self.default()?) } else { None };
        let argument = Argument { name, ty, is_list, is_optional, is_changed, default };
        match &argument.default {
            Some(default) if !fits(default, &argument) => {
                Err(SchemaError(format!("the default of `{}` is no `{argument}`", argument.name)))
            }
            _ => Ok(argument),
        }
    }

    fn default(&mut self) -> Result<Default, SchemaError> {
        if self.eat("[") {
            let mut items = Vec::new();
            while !self.eat("]") {
                if !items.is_empty() {
                    self.expect(",")?;
                }
                let item = self.default()?;
                if matches!(item, Default::List(_)) {
                    return Err(SchemaError("a list of lists is not supported".to_owned()));
                }
                items.push(item);
            }
            return Ok(Default::List(items));
        }
        for quote in ['"', '\''] {
            if self.eat(&quote.to_string()) {
                let Some((text, rest)) = self.rest.split_once(quote) else {
                    return Err(self.expected("the end of a text"));
                };
                self.rest = rest;
                return Ok(Default::Text(text.to_owned()));
            }
        }
        let before = self.rest;
        let word = self.letters(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_'));
        let number = || word.parse::<f64>().ok().map(Default::Float);
        let default = match word {
            "None" => Some(Default::None),
            "True" | "true" => Some(Default::Bool(true)),
            "False" | "false" => Some(Default::Bool(false)),
            word => word.parse().ok().map(Default::Int).or_else(number),
        };
        default.ok_or_else(|| {
            self.rest = before;
            self.expected("a default")
        })
    }

    fn results(&mut self) -> Result<Vec<Returned>, SchemaError> {
        if !self.eat("(") {
            return Ok(vec![self.result()?]);
        }
        let mut results = Vec::new();
        while !self.eat(")") {
            if !results.is_empty() {
                self.expect(",")?;
            }
            results.push(self.result()?);
            // A name for people.
            self.letters(|c| c.is_ascii_alphanumeric() || c == '_');
        }
        Ok(results)
    }

    fn result(&mut self) -> Result<Returned, SchemaError> {
        let mut alias = None;
        let (ty, is_list, is_optional) = self.ty(&mut alias)?;
        if let Some(alias) = alias {
            return Err(SchemaError(format!(
                "a result `{}({alias})` is a view of a tensor, which is not supported; give it as a new tensor",
                ty.name()
            )));
        }
        if ty != Type::Tensor || is_optional {
            let optional = if is_optional { "?" } else { "" };
            return Err(SchemaError(format!(
                "a result is `{}{optional}`; only `Tensor` and `Tensor[]` are supported",
                ty.name()
            )));
        }
        Ok(Returned { is_list })
    }
}

fn fits(default: &Default, argument: &Argument) -> bool {
    let is_element = |default: &Default| {
        matches!(
            (default, argument.ty),
            (Default::Int(_), Type::Int | Type::Float)
                | (Default::Float(_), Type::Float)
                | (Default::Bool(_), Type::Bool)
                | (Default::Text(_), Type::Text)
        )
    };
    match default {
        Default::None => argument.is_optional,
        Default::List(items) => argument.is_list && items.iter().all(is_element),
        Default::Int(_) | Default::Float(_) | Default::Bool(_) | Default::Text(_) => {
            !argument.is_list && is_element(default)
        }
    }
}

#[cfg(test)]
mod tests;
