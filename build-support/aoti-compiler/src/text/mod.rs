//! The lexer of all text forms. What they share beyond it, such as symbols, guards and constants, is in `graph/text/`.
//!
//! One statement a line by custom, `#` starts a comment. Knows none of the representations.

#[cfg(test)]
pub(crate) mod altered;
mod cursor;

pub(crate) use cursor::{Cursor, SyntaxError};
