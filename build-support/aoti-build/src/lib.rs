//! Builds the models of a cargo project: manifest, compiler, native tools, artefacts.
//!
//! What `build.rs` calls ([`Builder`]) and what the subcommand drives ([`Session`]). Owns the metadata table, the layout
//! of artefacts and what counts as up to date. Knows no model format, prints no C++ and starts no process: the first two
//! are up to the compiler, the last to the toolchain crate.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), aoti_build::Error> {
//!     aoti_build::Builder::from_manifest()?.build()
//! }
//! ```
//!
//! All of this is in the feature `compiler`, which is on by default. Without it the crate is a `Builder` without
//! dependencies, which calls the installed `cargo-aoti` to do the same (`tool.rs`).

#[cfg(feature = "compiler")]
mod artefacts;
#[cfg(feature = "compiler")]
mod build_mode;
#[cfg(feature = "compiler")]
mod builder;
#[cfg(feature = "compiler")]
mod choices;
#[cfg(feature = "compiler")]
mod error;
#[cfg(feature = "compiler")]
mod files;
#[cfg(feature = "compiler")]
mod harness;
mod installed;
#[cfg(feature = "compiler")]
mod layout;
#[cfg(feature = "compiler")]
mod locate;
#[cfg(feature = "compiler")]
mod lock;
#[cfg(feature = "compiler")]
mod machine;
#[cfg(feature = "compiler")]
mod manifest;
#[cfg(feature = "compiler")]
mod model;
#[cfg(feature = "compiler")]
mod operators;
#[cfg(feature = "compiler")]
mod pipeline;
#[cfg(feature = "compiler")]
mod plan;
#[cfg(feature = "compiler")]
mod problem;
#[cfg(feature = "compiler")]
mod progress;
#[cfg(feature = "compiler")]
mod samples;
#[cfg(feature = "compiler")]
mod session;
#[cfg(feature = "compiler")]
mod shared_records;
#[cfg(feature = "compiler")]
mod state;
mod system;
#[cfg(not(feature = "compiler"))]
mod tool;
#[cfg(feature = "compiler")]
mod variables;

pub use installed::installed;
#[cfg(not(feature = "compiler"))]
pub use tool::{Builder, Error};
#[cfg(feature = "compiler")]
pub use with_compiler::*;

/// What there is of this crate beside [`Builder`] and [`Error`].
#[cfg(feature = "compiler")]
mod with_compiler {
    pub use crate::artefacts::{Artefact, Built};
    pub use crate::builder::Builder;
    pub use crate::error::{Error, Fault};
    pub use crate::files::model_file;
    pub use crate::layout::Layout;
    pub use crate::locate::Location;
    pub use crate::lock::{
        ApplicableRecords, FILE as LOCK_FILE, Lock, Machines, Place, Reading, Record, Runner, Sizes,
    };
    pub use crate::machine::Machine;
    pub use crate::manifest::{Architectures, BuildSettings, Manifest, operators_of_project};
    pub use crate::model::{
        Choices, Gpus, LinkKind, MathLibrary, Model, Names, Program, Samples, Tf32, TypicalSizes, Weights,
        WeightsType, default_architectures, default_levels,
    };
    pub use crate::operators::{Operator, OperatorCode};
    pub use crate::pipeline::{Vendored, VendoredObject};
    pub use crate::problem::{Code, Problem, Problems, suggest};
    pub use crate::progress::{ModelEvent, Progress, Silent};
    pub use crate::session::{Job, Session, Settings};
    pub use crate::shared_records::Question;
    pub use crate::variables::{VARIABLES, Variable};
    pub use aoti_toolchain::UserToolchain;

    /// What stands for this version of the compiler in the record of what is up to date.
    pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("AOTI_SOURCES"));
}
