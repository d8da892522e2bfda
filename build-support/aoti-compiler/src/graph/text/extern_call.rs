//! Calls of users' functions in text: `"mylib::scaled" "aoti_operator_mylib_scaled_TfIRM"
//! (tensor, float 2.0, ints none) to (one, list 2)`.

use super::data::{parse_scalar, print_scalar};
use super::statements::quoted;
use crate::graph::{ExternArgument, ExternCall, Number, NumberKind, Scalar};
use crate::text::{Cursor, SyntaxError};

/// A call without its operands.
pub(crate) fn extern_text(call: &ExternCall) -> String {
    let arguments: Vec<String> = call.arguments.iter().map(argument_text).collect();
    let results: Vec<String> = call
        .results
        .iter()
        .map(|count| count.map_or_else(|| "one".to_owned(), |count| format!("list {count}")))
        .collect();
    let (operator, symbol) = (quoted(&call.operator), quoted(&call.symbol));
    format!("{operator} {symbol} ({}) to ({})", arguments.join(", "), results.join(", "))
}

fn argument_text(argument: &ExternArgument) -> String {
    match argument {
        ExternArgument::Tensor => "tensor".to_owned(),
        ExternArgument::Changed => "changed".to_owned(),
        ExternArgument::NoTensor => "no_tensor".to_owned(),
        ExternArgument::Tensors(count) => format!("tensors {count}"),
        ExternArgument::Number(number) => format!("{} {}", number.kind().name(), number_text(number)),
        ExternArgument::Optional(kind, number) => {
            let number = number.as_ref().map_or_else(|| "none".to_owned(), number_text);
            format!("maybe {} {number}", kind.name())
        }
        ExternArgument::Numbers(kind, None) => format!("all {} none", kind.name()),
        ExternArgument::Numbers(kind, Some(numbers)) => {
            let numbers: Vec<String> = numbers.iter().map(number_text).collect();
            format!("all {} ({})", kind.name(), numbers.join(", "))
        }
        ExternArgument::Text(text) => {
            format!("text {}", text.as_ref().map_or_else(|| "none".to_owned(), |text| quoted(text)))
        }
    }
}

fn number_text(number: &Number) -> String {
    match number {
        Number::Int(expr) => format!("[{expr}]"),
        Number::Float(value) => print_scalar(Scalar::Float(*value)),
        Number::Bool(value) => value.to_string(),
    }
}

impl Cursor<'_> {
    /// A call without its operands.
    pub(crate) fn extern_call(&mut self) -> Result<ExternCall, SyntaxError> {
        let (operator, symbol) = (self.string()?, self.string()?);
        let arguments = self.parenthesized(Cursor::extern_argument)?;
        self.expect_word("to")?;
        let results = self.parenthesized(|cursor| match cursor.word()? {
            "one" => Ok(None),
            "list" => cursor.position().map(Some),
            _ => Err(cursor.error("expected `one` or `list`")),
        })?;
        Ok(ExternCall { operator, symbol, arguments, results })
    }

    /// Things between parentheses, with commas between them.
    fn parenthesized<T>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<Vec<T>, SyntaxError> {
        self.expect('(')?;
        let mut all = Vec::new();
        while !self.eat(')') {
            if !all.is_empty() {
                self.expect(',')?;
            }
            all.push(read(self)?);
        }
        Ok(all)
    }

    fn extern_argument(&mut self) -> Result<ExternArgument, SyntaxError> {
        Ok(match self.word()? {
            "tensor" => ExternArgument::Tensor,
            "changed" => ExternArgument::Changed,
            "no_tensor" => ExternArgument::NoTensor,
            "tensors" => ExternArgument::Tensors(self.position()?),
            "text" if self.eat_word("none") => ExternArgument::Text(None),
            "text" => ExternArgument::Text(Some(self.string()?)),
            "maybe" => {
                let kind = self.number_kind()?;
                let number = if self.eat_word("none") { None } else { Some(self.extern_number(kind)?) };
                ExternArgument::Optional(kind, number)
            }
            "all" => {
                let kind = self.number_kind()?;
                let numbers = if self.eat_word("none") {
                    None
                } else {
                    Some(self.parenthesized(|cursor| cursor.extern_number(kind))?)
                };
                ExternArgument::Numbers(kind, numbers)
            }
            word => {
                let kind = NumberKind::from_name(word);
                let kind = kind.ok_or_else(|| self.error("expected an argument such as `tensor`"))?;
                ExternArgument::Number(self.extern_number(kind)?)
            }
        })
    }

    fn number_kind(&mut self) -> Result<NumberKind, SyntaxError> {
        let kind = NumberKind::from_name(self.word()?);
        kind.ok_or_else(|| self.error("expected `int`, `float` or `bool`"))
    }

    fn extern_number(&mut self, kind: NumberKind) -> Result<Number, SyntaxError> {
        Ok(match kind {
            NumberKind::Int => Number::Int(self.expression()?),
            NumberKind::Float => {
                let number = parse_scalar(self.word()?);
                Number::Float(number.ok_or_else(|| self.error("expected a number"))?.to_f64())
            }
            NumberKind::Bool => match self.word()? {
                "true" => Number::Bool(true),
                "false" => Number::Bool(false),
                _ => return Err(self.error("expected `true` or `false`")),
            },
        })
    }
}
