//! The text of expressions: one grammar for sympy's `srepr`, for infix arithmetic and for the terms of guards.

use super::expr::Tree;

/// Nesting of an expression; sympy's own stay far below.
const MAX_DEPTH: usize = 64;
/// Divisions in one chain of infix operators.
const MAX_DIVISIONS: usize = 8;
/// Denominator of the fractions that stand for floating-point numbers.
const MAX_DENOMINATOR: i32 = 1 << 12;

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Tree, String> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let tree = parser.expression()?;
    parser.space();
    if parser.at < text.len() {
        return Err(format!("unexpected text at byte {}", parser.at));
    }
    Ok(tree)
}

/// Recursive descent; recursion is bounded by [`MAX_DEPTH`].
struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        let trimmed = self.rest().trim_start().len();
        self.at = self.text.len() - trimmed;
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn want(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token) { Ok(()) } else { Err(format!("`{token}` is missing at byte {}", self.at)) }
    }

    /// As [`Parser::eat`], of a word that does not go on.
    fn eat_word(&mut self, word: &str) -> bool {
        self.space();
        let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        self.rest().strip_prefix(word).is_some_and(|rest| !goes_on(rest)) && self.eat(word)
    }

    /// `a if p else b if q else c`, or a condition, or a number.
    fn expression(&mut self) -> Result<Tree, String> {
        let pair = |value, condition| Tree::Call("ExprCondPair".to_owned(), vec![value, condition]);
        let mut branches = Vec::new();
        loop {
            let value = self.either()?;
            if !self.eat_word("if") {
                if branches.is_empty() {
                    return Ok(value);
                }
                branches.push(pair(value, Tree::Symbol("true".to_owned())));
                return Ok(Tree::Call("Piecewise".to_owned(), branches));
            }
            branches.push(pair(value, self.either()?));
            if !self.eat_word("else") {
                return Err(format!("`else` is missing at byte {}", self.at));
            }
        }
    }

    fn either(&mut self) -> Result<Tree, String> {
        let mut parts = vec![self.both()?];
        while self.eat_word("or") {
            parts.push(self.both()?);
        }
        Ok(joined("Or", parts))
    }

    fn both(&mut self) -> Result<Tree, String> {
        let mut parts = vec![self.comparison()?];
        while self.eat_word("and") {
            parts.push(self.comparison()?);
        }
        Ok(joined("And", parts))
    }

    /// `not a < b`; each two of `a < b < c`.
    fn comparison(&mut self) -> Result<Tree, String> {
        let mut is_negated = false;
        while self.eat_word("not") {
            is_negated = !is_negated;
        }
        const RELATIONS: [(&str, &str); 6] =
            [("==", "Eq"), ("!=", "Ne"), (">=", "Ge"), ("<=", "Le"), (">", "Gt"), ("<", "Lt")];
        let mut left = self.bits_or()?;
        let mut parts = Vec::new();
        while let Some((_, name)) = RELATIONS.iter().find(|(token, _)| self.eat(token)) {
            let right = self.bits_or()?;
            parts.push(Tree::Call((*name).to_owned(), vec![left, right.clone()]));
            left = right;
        }
        let whole = if parts.is_empty() { left } else { joined("And", parts) };
        Ok(if is_negated { Tree::Call("Not".to_owned(), vec![whole]) } else { whole })
    }

    fn bits_or(&mut self) -> Result<Tree, String> {
        self.chain(&[("|", "BitwiseFn_bitwise_or")], Self::bits_xor)
    }

    fn bits_xor(&mut self) -> Result<Tree, String> {
        self.chain(&[("^", "BitwiseFn_bitwise_xor")], Self::bits_and)
    }

    fn bits_and(&mut self) -> Result<Tree, String> {
        self.chain(&[("&", "BitwiseFn_bitwise_and")], Self::shift)
    }

    fn shift(&mut self) -> Result<Tree, String> {
        self.chain(&[("<<", "LShift"), (">>", "RShift")], Self::sum)
    }

    /// Operators of one precedence, from left to right. Each nests the tree one level deeper.
    fn chain(
        &mut self,
        operators: &[(&str, &str)],
        operand: fn(&mut Self) -> Result<Tree, String>,
    ) -> Result<Tree, String> {
        let mut left = operand(self)?;
        let mut count = 0;
        while let Some((_, name)) = operators.iter().find(|(token, _)| self.eat(token)) {
            count += 1;
            if count > MAX_DIVISIONS {
                return Err("the expression has too many operators in a row".to_owned());
            }
            left = Tree::Call((*name).to_owned(), vec![left, operand(self)?]);
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Tree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("the expression is nested too deeply".to_owned());
        }
        let mut parts = vec![self.product()?];
        loop {
            if self.eat("+") {
                parts.push(self.product()?);
            } else if self.eat("-") {
                parts.push(negated(self.product()?));
            } else {
                break;
            }
        }
        self.depth -= 1;
        Ok(joined("Add", parts))
    }

    fn product(&mut self) -> Result<Tree, String> {
        let mut factors = vec![self.unary()?];
        let mut divisions = 0;
        loop {
            let name = if self.eat("*") {
                factors.push(self.unary()?);
                continue;
            } else if self.eat("//") {
                "FloorDiv"
            } else if self.eat("/") {
                "TrueDiv"
            } else if self.eat("%") {
                "Mod"
            } else {
                return Ok(joined("Mul", factors));
            };
            // Each division nests the tree, which is walked recursively, one level deeper.
            divisions += 1;
            if divisions > MAX_DIVISIONS {
                return Err("the expression divides too often".to_owned());
            }
            let left = joined("Mul", std::mem::take(&mut factors));
            factors.push(Tree::Call(name.to_owned(), vec![left, self.unary()?]));
        }
    }

    fn unary(&mut self) -> Result<Tree, String> {
        let mut negative = false;
        loop {
            if self.eat("-") {
                negative = !negative;
            } else if !self.eat("+") {
                break;
            }
        }
        let base = self.atom()?;
        let value = if self.eat("**") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err("the expression is nested too deeply".to_owned());
            }
            let exponent = self.unary()?;
            self.depth -= 1;
            Tree::Call("Pow".to_owned(), vec![base, exponent])
        } else {
            base
        };
        Ok(if negative { negated(value) } else { value })
    }

    fn atom(&mut self) -> Result<Tree, String> {
        if self.eat("(") {
            let inner = self.expression()?;
            self.want(")")?;
            return Ok(inner);
        }
        self.space();
        let word = self.word();
        if word.is_empty() {
            return Err(format!("a number or a name is missing at byte {}", self.at));
        }
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            return self.number(word);
        }
        if word == "L" && self.rest().starts_with('[') {
            return self.argument();
        }
        let word = self.path(word);
        if !self.eat("(") {
            return Ok(Tree::Symbol(word));
        }
        match word.as_str() {
            "Symbol" => self.symbol_call(),
            "Float" => self.float_call(),
            "Integer" => {
                let value = self.sum()?;
                self.want(")")?;
                Ok(value)
            }
            _ => {
                let args = self.arguments()?;
                Ok(Tree::Call(sympy_name(&word).to_owned(), args))
            }
        }
    }

    /// After its first word: digits, perhaps with an exponent.
    fn number(&mut self, digits: String) -> Result<Tree, String> {
        let mut text = digits;
        if self.rest().starts_with('.') {
            self.at += 1;
            text = format!("{text}.{}", self.word());
        }
        // An exponent's sign stands between two words.
        if text.ends_with(['e', 'E'])
            && let Some(sign @ ('+' | '-')) = self.rest().chars().next()
        {
            self.at += 1;
            text.push(sign);
            text.push_str(&self.word());
        }
        if text.contains(['.', 'e', 'E']) {
            return fraction(&text);
        }
        text.parse().map(Tree::Int).map_err(|_| format!("`{text}` is not an integer of 63 bits"))
    }

    /// After the first word of a name such as `torch.sym_max`.
    fn path(&mut self, first: String) -> String {
        let mut path = first;
        while self.rest().starts_with('.') {
            self.at += 1;
            path = format!("{path}.{}", self.word());
        }
        path
    }

    fn word(&mut self) -> String {
        let length =
            self.rest().find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest().len());
        let word = self.rest()[..length].to_owned();
        self.at += length;
        word
    }

    fn quoted(&mut self) -> Result<String, String> {
        self.space();
        let quote = match self.rest().chars().next() {
            Some(quote @ ('\'' | '"')) => quote,
            _ => return Err(format!("a quoted name is missing at byte {}", self.at)),
        };
        self.at += 1;
        let Some(length) = self.rest().find(quote) else { return Err("a quote is not closed".to_owned()) };
        let text = self.rest()[..length].to_owned();
        self.at += length + 1;
        Ok(text)
    }

    /// After `Symbol(`: the name, then assumptions such as `integer=True`.
    fn symbol_call(&mut self) -> Result<Tree, String> {
        let name = self.quoted()?;
        while self.eat(",") {
            self.space();
            self.word();
            self.want("=")?;
            self.space();
            self.word();
        }
        self.want(")")?;
        Ok(Tree::Symbol(name))
    }

    /// After `Float(`: decimal text, then the precision.
    fn float_call(&mut self) -> Result<Tree, String> {
        let text = self.quoted()?;
        while self.eat(",") {
            if !self.keyword() {
                self.space();
                self.word();
            }
        }
        self.want(")")?;
        fraction(&text)
    }

    fn arguments(&mut self) -> Result<Vec<Tree>, String> {
        let mut args = Vec::new();
        if self.eat(")") {
            return Ok(args);
        }
        loop {
            if !self.keyword() {
                args.push(self.expression()?);
            }
            if self.eat(")") {
                return Ok(args);
            }
            self.want(",")?;
        }
    }

    /// Skips `evaluate=False` and the like.
    fn keyword(&mut self) -> bool {
        self.space();
        let start = self.at;
        let is_word = !self.word().is_empty();
        if is_word && self.rest().starts_with('=') && !self.rest().starts_with("==") {
            self.at += 1;
            self.word();
            return true;
        }
        self.at = start;
        false
    }

    /// After `L`: `['name'][0].size()[1]`, or `['name'][1]` of an integer.
    fn argument(&mut self) -> Result<Tree, String> {
        let mut parts = Vec::new();
        while self.eat("[") {
            self.space();
            let part = match self.rest().chars().next() {
                Some('\'' | '"') => self.quoted()?,
                _ => self.word(),
            };
            parts.push(part);
            self.want("]")?;
        }
        if !self.eat(".size()[") {
            return Ok(Tree::Value(parts.join("_")));
        }
        let axis = self.word();
        self.want("]")?;
        let axis = axis.parse().map_err(|_| format!("`{axis}` is not an axis"))?;
        Ok(Tree::Size(parts.join("_"), axis))
    }
}

/// A decimal number: where it is a fraction of a small power of two, arithmetic with it is exact.
fn fraction(text: &str) -> Result<Tree, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    let scaled = value * f64::from(MAX_DENOMINATOR);
    if scaled.fract() != 0.0 || scaled.abs() > 1e15 {
        return Ok(Tree::Real(value));
    }
    let parts = vec![Tree::Int(scaled as i64), Tree::Int(i64::from(MAX_DENOMINATOR))];
    Ok(Tree::Call("Rational".to_owned(), parts))
}

/// What sympy calls a function that guards name as Python does.
fn sympy_name(name: &str) -> &str {
    const NAMES: [(&str, &str); 29] = [
        ("torch.sym_max", "Max"),
        ("max", "Max"),
        ("torch.sym_min", "Min"),
        ("min", "Min"),
        ("torch.sym_float", "ToFloat"),
        ("float", "ToFloat"),
        ("torch.sym_int", "TruncToInt"),
        ("int", "TruncToInt"),
        ("math.trunc", "TruncToInt"),
        ("torch.sym_not", "Not"),
        ("torch.sym_ite", "Where"),
        ("math.ceil", "CeilToInt"),
        ("math.floor", "FloorToInt"),
        ("round", "RoundToInt"),
        ("abs", "Abs"),
        ("math.pow", "FloatPow"),
        ("torch._sym_sqrt", "OpaqueUnaryFn_sqrt"),
        ("math.sqrt", "OpaqueUnaryFn_sqrt"),
        ("sqrt", "OpaqueUnaryFn_sqrt"),
        ("math.exp", "OpaqueUnaryFn_exp"),
        ("math.log", "OpaqueUnaryFn_log"),
        ("math.log2", "OpaqueUnaryFn_log2"),
        ("math.sin", "OpaqueUnaryFn_sin"),
        ("math.cos", "OpaqueUnaryFn_cos"),
        ("math.tan", "OpaqueUnaryFn_tan"),
        ("math.sinh", "OpaqueUnaryFn_sinh"),
        ("math.cosh", "OpaqueUnaryFn_cosh"),
        ("math.tanh", "OpaqueUnaryFn_tanh"),
        ("math.atan", "OpaqueUnaryFn_atan"),
    ];
    NAMES.iter().find(|(own, _)| *own == name).map_or(name, |(_, sympy)| sympy)
}

/// One call of many operands: chains must not nest.
fn joined(name: &str, mut parts: Vec<Tree>) -> Tree {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            Tree::Call(name.to_owned(), parts)
        }
        None => Tree::Call(name.to_owned(), parts),
    }
}

fn negated(tree: Tree) -> Tree {
    match tree {
        Tree::Int(value) => Tree::Int(value.saturating_neg()),
        Tree::Real(value) => Tree::Real(-value),
        other @ (Tree::Symbol(_) | Tree::Size(..) | Tree::Value(_) | Tree::Call(..)) => {
            Tree::Call("Mul".to_owned(), vec![Tree::Int(-1), other])
        }
    }
}
