//! Front ends: the only part of the compiler that knows file formats.

pub mod pt2;
