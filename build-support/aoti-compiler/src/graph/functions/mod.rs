//! Scalar functions and reductions: one line of a table gives the name that the text form, the interpreter and
//! generated code share.
//!
//! Functions of numbers are in families by the numbers that they are of, so that a match on a family is about what it
//! can be applied to.

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$op_doc:meta])* $op:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $name { $($(#[$op_doc])* $op,)* }

        impl $name {
            /// Every entry of this table.
            pub const ALL: &'static [$name] = &[$($name::$op,)*];

            /// The name in text forms and generated code.
            pub fn name(self) -> &'static str {
                match self { $($name::$op => $text,)* }
            }

            /// The inverse of `name`.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|op| op.name() == name)
            }
        }
    };
}

/// A table with further tables as families.
macro_rules! families {
    (
        $(#[$doc:meta])* $name:ident { $($(#[$op_doc:meta])* $op:ident $text:literal,)* }
        of { $($(#[$family_doc:meta])* $family:ident($inner:ident),)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $name {
            $($(#[$op_doc])* $op,)*
            $($(#[$family_doc])* $family($inner),)*
        }

        impl $name {
            /// Every function of this table and its families.
            pub fn all() -> impl Iterator<Item = $name> {
                [$($name::$op,)*].into_iter()$(.chain($inner::ALL.iter().copied().map($name::$family)))*
            }

            /// The name in text forms and generated code.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$op => $text,)*
                    $($name::$family(op) => op.name(),)*
                }
            }

            /// The inverse of `name`.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::all().find(|op| op.name() == name)
            }
        }

        $(impl From<$inner> for $name {
            fn from(op: $inner) -> $name {
                $name::$family(op)
            }
        })*
    };
}
mod binary;
mod fold;
mod routine;
mod unary;

pub use binary::{BinaryOp, FloatBinary, IntBinary, Relation, SpecialBinary};
pub use fold::{Combine, ReduceOp, ScanOp};
pub use routine::{Part, Routine, Side};
pub use unary::{Bits, FloatTest, FloatUnary, Rounding, SpecialUnary, UnaryOp};
