//! Front ends: the only part of the compiler that knows file formats.

pub mod pt2;
pub mod text;

use crate::aten::{self, Program};
use crate::diagnostic::Diagnostics;
use bytes::Bytes;

/// Reads a model of any known format, told by its content, and checks that the program is well formed. `name` becomes the program's name; tensors share `file`.
pub fn import(name: &str, file: Bytes) -> Result<Program, Diagnostics> {
    let program = pt2::import(name, file)?;
    aten::verify(&program)?;
    Ok(program)
}
