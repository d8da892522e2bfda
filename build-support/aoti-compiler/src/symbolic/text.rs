//! The text form of expressions: `2*s0 + i1 // 4 + max(s0, 3)`, printed and parsed.

use super::{Expr, Node, Symbol, SymbolKind};
use std::fmt;

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SymbolKind::Size => write!(f, "s{}", self.index),
            SymbolKind::Axis => write!(f, "i{}", self.index),
        }
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display_with(&|symbol| symbol.to_string()))
    }
}

/// How tightly an operator binds: sums least, atoms most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Sum,
    Product,
    Atom,
}

impl Expr {
    /// Terms and the constant of a sum, at least 1.
    fn n_terms(&self) -> usize {
        match self.node() {
            Node::Sum { terms, .. } => terms.len() + 1,
            Node::Int(_)
            | Node::Sym(_)
            | Node::Product(_)
            | Node::FloorDiv(..)
            | Node::Mod(..)
            | Node::Min(..)
            | Node::Max(..) => 1,
        }
    }

    /// Prints it with other names for its symbols. `//` and `%` round towards negative infinity.
    pub fn display_with(&self, name: &dyn Fn(Symbol) -> String) -> String {
        self.print(name, Precedence::Sum)
    }

    fn print(&self, name: &dyn Fn(Symbol) -> String, context: Precedence) -> String {
        let (text, own) = match self.node() {
            Node::Int(value) => {
                (value.to_string(), if *value < 0 { Precedence::Product } else { Precedence::Atom })
            }
            Node::Sym(symbol) => (name(*symbol), Precedence::Atom),
            Node::Sum { constant, terms } => return print_sum(*constant, terms, name, context),
            Node::Product(factors) => {
                let factors: Vec<String> =
                    factors.iter().map(|factor| factor.print(name, Precedence::Atom)).collect();
                (factors.join("*"), Precedence::Product)
            }
            Node::FloorDiv(a, b) => (
                format!("{} // {}", a.print(name, Precedence::Atom), b.print(name, Precedence::Atom)),
                Precedence::Product,
            ),
            Node::Mod(a, b) => (
                format!("{} % {}", a.print(name, Precedence::Atom), b.print(name, Precedence::Atom)),
                Precedence::Product,
            ),
            Node::Min(a, b) => (
                format!("min({}, {})", a.print(name, Precedence::Sum), b.print(name, Precedence::Sum)),
                Precedence::Atom,
            ),
            Node::Max(a, b) => (
                format!("max({}, {})", a.print(name, Precedence::Sum), b.print(name, Precedence::Sum)),
                Precedence::Atom,
            ),
        };
        if own < context { format!("({text})") } else { text }
    }
}

fn print_sum(
    constant: i64,
    terms: &[(Expr, i64)],
    name: &dyn Fn(Symbol) -> String,
    context: Precedence,
) -> String {
    let mut text = String::new();
    let mut parts: Vec<(i64, String)> = Vec::new();
    for (term, coefficient) in terms {
        let needs = if *coefficient == 1 { Precedence::Product } else { Precedence::Atom };
        let is_plain_product = matches!(term.node(), Node::Product(_));
        let printed = term.print(name, if is_plain_product { Precedence::Product } else { needs });
        parts.push((*coefficient, printed));
    }
    for (coefficient, printed) in &parts {
        let magnitude = coefficient.unsigned_abs();
        let sign = match (text.is_empty(), *coefficient < 0) {
            (true, true) => "-",
            (true, false) => "",
            (false, true) => " - ",
            (false, false) => " + ",
        };
        text.push_str(sign);
        if magnitude != 1 {
            text.push_str(&format!("{magnitude}*"));
        }
        text.push_str(printed);
    }
    if constant != 0 {
        text.push_str(if constant < 0 { " - " } else { " + " });
        text.push_str(&constant.unsigned_abs().to_string());
    }
    let single = parts.len() == 1 && constant == 0;
    let own = if single { Precedence::Product } else { Precedence::Sum };
    if own < context || (single && context == Precedence::Atom) { format!("({text})") } else { text }
}

/// A text that is not an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The whole text.
    pub text: String,
    /// What was found or missed.
    pub reason: &'static str,
    /// Byte offset of the fault.
    pub at: usize,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { text, reason, at } = self;
        write!(f, "`{text}` is not an integer expression: {reason} at byte {at}")
    }
}

impl std::error::Error for ParseError {}

/// Parses the text form; `resolve` turns a name into an expression (or refuses it). Functions: `min`, `max`.
pub fn parse(text: &str, resolve: &dyn Fn(&str) -> Option<Expr>) -> Result<Expr, ParseError> {
    let mut parser = Parser { text, at: 0, depth: 0, resolve };
    let expr = parser.sum()?;
    parser.skip_space();
    if parser.at < text.len() { Err(parser.error("unexpected text")) } else { Ok(expr) }
}

/// Nesting beyond this is refused, so that hostile text cannot exhaust the stack.
const MAX_DEPTH: usize = 64;

/// A product of sums that would give more terms than this is refused: hostile text could double them with each factor.
const MAX_TERMS: usize = 256;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    resolve: &'a dyn Fn(&str) -> Option<Expr>,
}

impl Parser<'_> {
    fn error(&self, reason: &'static str) -> ParseError {
        ParseError { text: self.text.to_owned(), reason, at: self.at }
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn sum(&mut self) -> Result<Expr, ParseError> {
        let mut sum = self.product()?;
        loop {
            if self.eat("+") {
                sum = &sum + &self.product()?;
            } else if self.eat("-") {
                sum = &sum - &self.product()?;
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Result<Expr, ParseError> {
        let mut product = self.atom()?;
        loop {
            if self.eat("*") {
                let factor = self.atom()?;
                if product.n_terms() * factor.n_terms() > MAX_TERMS {
                    return Err(self.error("product of sums is too large"));
                }
                product = &product * &factor;
            } else if self.eat("//") {
                product = product.floor_div(&self.atom()?);
            } else if self.eat("%") {
                product = product.modulo(&self.atom()?);
            } else {
                return Ok(product);
            }
        }
    }

    fn atom(&mut self) -> Result<Expr, ParseError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        let result = self.atom_inner();
        self.depth -= 1;
        result
    }

    fn atom_inner(&mut self) -> Result<Expr, ParseError> {
        if self.eat("-") {
            return Ok(-self.atom()?);
        }
        if self.eat("(") {
            let inner = self.sum()?;
            return if self.eat(")") { Ok(inner) } else { Err(self.error("missing `)`")) };
        }
        self.skip_space();
        let rest = &self.text[self.at..];
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        if word.is_empty() {
            return Err(self.error("expected a number or a name"));
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let value: i64 = word.parse().map_err(|_| self.error("not a 64-bit integer"))?;
            self.at += word.len();
            return Ok(Expr::int(value));
        }
        if word == "min" || word == "max" {
            self.at += word.len();
            return self.call(word == "min");
        }
        let expr = (self.resolve)(word).ok_or_else(|| self.error("unknown name"))?;
        self.at += word.len();
        Ok(expr)
    }

    fn call(&mut self, is_min: bool) -> Result<Expr, ParseError> {
        if !self.eat("(") {
            return Err(self.error("missing `(`"));
        }
        let mut result = self.sum()?;
        while self.eat(",") {
            let next = self.sum()?;
            result = if is_min { result.minimum(&next) } else { result.maximum(&next) };
        }
        if self.eat(")") { Ok(result) } else { Err(self.error("missing `)`")) }
    }
}
