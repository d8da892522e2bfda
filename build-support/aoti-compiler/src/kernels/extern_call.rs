//! Functions of the user's project, and collectives.

use super::{Algorithm, Code};

pub(crate) static EXTERN: Algorithm = Algorithm {
    word: "extern",
    version: 1,
    description: "custom operator",
    headers: |_| &["extern.h"],
    code: Code::Extern,
};

pub(crate) static COLLECTIVE: Algorithm = Algorithm {
    word: "collective",
    version: 1,
    description: "collective of all ranks",
    headers: |_| &[],
    code: Code::Extern,
};
