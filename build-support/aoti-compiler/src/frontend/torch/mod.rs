//! The front end of torch.export: from a `.pt2` archive to a core graph.
//!
//! `pt2` reads the archive as a program of ATen calls (`aten`); `functionalize` walks that program and makes mutation explicit;
//! `rules` says what each operator computes. `custom` has the operators that the user's project declares.

pub mod aten;
pub mod custom;
pub mod functionalize;
mod listing;
pub mod pt2;
pub mod rules;

use super::import::{Format, Import, MinSize};
use crate::diagnostic::Diagnostics;
use aten::Program;
use bytes::Bytes;
use functionalize::functionalize_with;
use pt2::ProgramImport;
use std::collections::BTreeSet;

/// The row of the table of formats.
pub(super) const FORMAT: Format = Format {
    recognizes: |file| file.starts_with(b"PK"),
    takes_shapes: false,
    files_beside: |_| Ok(Vec::new()),
    import: |min, name, model, operators| {
        let ProgramImport { program, is_stated } =
            program_from(min, name, model.file.clone(), &model.states)?;
        let graph = functionalize_with(&program, operators)?;
        let asked = program.guards.into_iter().map(|guard| guard.condition).collect();
        Ok(Import { graph, is_stated, asked })
    },
    exported: |name, file| Ok(aten::text::print_short(&program(name, file)?)),
    operators: listing::operators_of,
};

/// Reads a program of PyTorch's operators, and checks that it is well formed. `name` becomes the program's name; tensors share
/// `file`.
///
/// # Errors
/// Everything in the file that is wrong or not understood.
pub fn program(name: &str, file: Bytes) -> Result<Program, Diagnostics> {
    Ok(program_from(MinSize::Stated, name, file, &BTreeSet::new())?.program)
}

/// Whether torch.export made up this name for a tensor that no module has: those of two programs have nothing to do with each other.
pub(super) fn is_made_up(name: &str) -> bool {
    let number = name.strip_prefix("lifted_tensor_");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn program_from(
    min: MinSize,
    name: &str,
    file: Bytes,
    states: &BTreeSet<String>,
) -> Result<ProgramImport, Diagnostics> {
    let import = pt2::import(min, name, file, states)?;
    aten::verify(&import.program)?;
    Ok(import)
}
