//! Functions of the user's project.

use super::{Algorithm, Code};

pub(crate) static EXTERN: Algorithm = Algorithm {
    word: "extern",
    version: 1,
    description: "a function of the project",
    headers: |_| &["extern.h"],
    code: Code::Extern,
};
