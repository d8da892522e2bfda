//! What the text forms of all intermediate representations share: the lexer, numbers and data, and the statements that
//! occur in each of them (symbols, guards, constants, expressions over sizes).
//!
//! One statement a line by custom, `#` starts a comment. Knows none of the representations.

#[cfg(test)]
pub(crate) mod altered;
mod cursor;
mod data;
mod extern_call;
mod grammar;
mod print;

pub(crate) use cursor::{Cursor, SyntaxError};
pub(crate) use data::{clip, parse_scalar, print_scalar};
pub(crate) use extern_call::extern_text;
pub(crate) use print::{
    Detail, bracketed, condition_text, constant_text, conv_text, guard_line, guard_text, note_line,
    origin_text, quoted, quoted_name, range_text, symbol_line,
};
