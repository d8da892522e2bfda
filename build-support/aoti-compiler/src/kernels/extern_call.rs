//! Functions of the user's project.

use super::{Algorithm, Code};

pub(crate) static EXTERN: Algorithm = Algorithm {
    word: "extern",
    version: 1,
    description: "custom operator",
    headers: |_| &["extern.h"],
    code: Code::Extern,
};
