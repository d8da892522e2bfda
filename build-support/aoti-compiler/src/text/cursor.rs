//! Walks over text: words, numbers, strings and bracketed lists, with the place of every fault.

use crate::diagnostic::{Code, Diagnostic, Diagnostics};

/// All data that one text may generate with `splat` and `random`, in bytes.
pub(crate) const GENERATED_BYTES: usize = 256 << 20;

/// Text that does not parse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SyntaxError {
    /// Byte offset.
    at: usize,
    message: String,
}

impl SyntaxError {
    /// With line and column, both from 1.
    fn to_diagnostic(&self, text: &str) -> Diagnostic {
        let before = &text[..self.at.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Diagnostic::new(Code::Text, format!("line {line}, column {column}: {}", self.message))
    }
}

/// A position in a text.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// Where the last token began; what faults point at.
    token: usize,
    /// How many bodies deep.
    depth: usize,
    /// Bytes of data that may still be generated.
    budget: usize,
}

/// Bodies nested deeper than this are refused, so that hostile text cannot exhaust the stack.
const MAX_DEPTH: usize = 16;

/// Letters that make words: names, numbers, references.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '%' | '$' | '-' | '+' | '.' | ':')
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0, token: 0, depth: 0, budget: GENERATED_BYTES }
    }

    /// Parses a whole text; a fault is reported with line and column.
    pub(crate) fn whole<T>(
        text: &'a str,
        parse: impl FnOnce(&mut Cursor<'a>) -> Result<T, SyntaxError>,
    ) -> Result<T, Diagnostics> {
        let mut cursor = Cursor::new(text);
        let result = parse(&mut cursor).and_then(|result| match cursor.peek() {
            None => Ok(result),
            Some(_) => Err(cursor.error("expected the end of the text")),
        });
        result.map_err(|error| error.to_diagnostic(text).into())
    }

    /// Goes into a body; [`Cursor::leave`] goes out of it.
    pub(crate) fn enter(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(self.error("bodies are nested too deeply")) } else { Ok(()) }
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Takes from the bytes that one text may generate.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), SyntaxError> {
        match self.budget.checked_sub(bytes) {
            Some(rest) => {
                self.budget = rest;
                Ok(())
            }
            None => Err(self.error("constants of generated data are too large")),
        }
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError { at: self.token, message: message.into() }
    }

    /// Byte offset of the last token.
    pub(crate) fn place(&self) -> usize {
        self.token
    }

    /// A fault at an earlier place.
    pub(crate) fn error_at(&self, place: usize, message: impl Into<String>) -> SyntaxError {
        SyntaxError { at: place, message: message.into() }
    }

    /// The position, to come back to.
    pub(crate) fn save(&self) -> usize {
        self.at
    }

    /// Goes back to a saved position.
    pub(crate) fn restore(&mut self, at: usize) {
        self.at = at;
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Goes to the next token: over space and comments, line ends too.
    fn skip(&mut self) {
        loop {
            let rest = self.rest().trim_start();
            self.at = self.text.len() - rest.len();
            if !rest.starts_with('#') {
                break;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
        self.token = self.at;
    }

    /// The next token's first letter.
    pub(crate) fn peek(&mut self) -> Option<char> {
        self.skip();
        self.rest().chars().next()
    }

    /// Takes `token`, if it is next.
    pub(crate) fn eat(&mut self, token: char) -> bool {
        let found = self.peek() == Some(token);
        if found {
            self.at += token.len_utf8();
        }
        found
    }

    pub(crate) fn expect(&mut self, token: char) -> Result<(), SyntaxError> {
        if self.eat(token) { Ok(()) } else { Err(self.error(format!("expected `{token}`"))) }
    }

    /// Takes the keyword, if it is next.
    pub(crate) fn eat_word(&mut self, keyword: &str) -> bool {
        let found = self.peek_word() == keyword;
        if found {
            self.at += keyword.len();
        }
        found
    }

    /// The next word without taking it; empty if there is none.
    pub(crate) fn peek_word(&mut self) -> &'a str {
        self.skip();
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        // A colon ends a name before a type, but is part of `1:1` and `nan:7ff8`.
        word.strip_suffix(':').unwrap_or(word)
    }

    pub(crate) fn word(&mut self) -> Result<&'a str, SyntaxError> {
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.error("expected a word"));
        }
        self.at += word.len();
        Ok(word)
    }

    pub(crate) fn expect_word(&mut self, keyword: &str) -> Result<(), SyntaxError> {
        if self.eat_word(keyword) { Ok(()) } else { Err(self.error(format!("expected `{keyword}`"))) }
    }

    pub(crate) fn number(&mut self) -> Result<i64, SyntaxError> {
        self.word()?.parse().map_err(|_| self.error("expected an integer"))
    }

    /// An axis, a position or a count.
    pub(crate) fn position(&mut self) -> Result<usize, SyntaxError> {
        self.word()?.parse().map_err(|_| self.error("expected a number"))
    }

    /// A word that is `prefix` and a number: `c3`, `s0`.
    pub(crate) fn reference(&mut self, prefix: char) -> Result<u32, SyntaxError> {
        let word = self.word()?;
        let number = word.strip_prefix(prefix).and_then(|number| number.parse().ok());
        // The largest number is not a valid id.
        let number = number.filter(|number| *number < u32::MAX);
        number.ok_or_else(|| self.error(format!("expected `{prefix}` and a number")))
    }

    pub(crate) fn string(&mut self) -> Result<String, SyntaxError> {
        self.expect('"')?;
        let mut result = String::new();
        let mut letters = self.rest().char_indices();
        while let Some((offset, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.at += offset + 1;
                    return Ok(result);
                }
                '\n' => break,
                '\\' => match letters.next() {
                    Some((_, 'n')) => result.push('\n'),
                    Some((_, 'u')) => {
                        let code: String = letters
                            .by_ref()
                            .map(|(_, c)| c)
                            .skip_while(|c| *c == '{')
                            .take_while(|c| *c != '}')
                            .take(8)
                            .collect();
                        let decoded = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                        result.push(decoded.ok_or_else(|| self.error("not a code point"))?);
                    }
                    Some((_, letter)) => result.push(letter),
                    None => break,
                },
                letter => result.push(letter),
            }
        }
        Err(self.error("the string does not end on its line"))
    }

    /// A string, if one is next.
    pub(crate) fn optional_string(&mut self) -> Result<Option<String>, SyntaxError> {
        if self.peek() == Some('"') { self.string().map(Some) } else { Ok(None) }
    }

    /// The text between braces.
    pub(crate) fn braced(&mut self) -> Result<&'a str, SyntaxError> {
        self.expect('{')?;
        let rest = self.rest();
        let end = rest.find('}').ok_or_else(|| self.error("missing `}`"))?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    /// The items of a list in brackets, split at commas outside parentheses.
    pub(crate) fn bracketed(&mut self) -> Result<Vec<&'a str>, SyntaxError> {
        self.expect('[')?;
        let rest = self.rest();
        let end = rest.find(']').ok_or_else(|| self.error("missing `]`"))?;
        let inner = &rest[..end];
        self.at += end + 1;
        if inner.trim().is_empty() {
            return Ok(Vec::new());
        }
        let (mut items, mut depth, mut start) = (Vec::new(), 0usize, 0);
        for (offset, letter) in inner.char_indices() {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    items.push(inner[start..offset].trim());
                    start = offset + 1;
                }
                _ => {}
            }
        }
        items.push(inner[start..].trim());
        Ok(items)
    }
}
