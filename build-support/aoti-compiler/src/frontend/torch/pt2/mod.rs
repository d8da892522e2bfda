//! The `.pt2` front end: archives that `torch.export.save` writes become programs of ATen calls.
//!
//! Nothing of the file is copied that can be shared: tensors are slices of the caller's bytes. Everything in the
//! file may be wrong or hostile; whatever is not understood is named in a diagnostic, all of it at once.

mod archive;
mod arguments;
mod bits;
mod body;
mod computed;
mod constants;
mod expr;
mod fraction;
mod guards;
mod import;
mod meta;
mod mutation;
mod numeric;
mod origin;
mod parse;
mod pickle;
mod python;
mod relate;
mod results;
mod samples;
mod schema;
mod signature;
mod symbols;
mod values;

pub use import::{ProgramImport, import};
pub use samples::{SampleInput, sample_inputs};
