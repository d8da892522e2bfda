//! Builds the models of a cargo project: manifest, compiler, native tools, artefacts.
//!
//! What `build.rs` calls ([`Builder`]) and what the subcommand drives ([`Session`]). Owns the metadata table, the layout
//! of artefacts and what counts as up to date. Knows no file format of models, prints no C++ and starts no process: for
//! the first two there is the compiler, for the last the toolchain crate.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), aoti_build::Error> {
//!     aoti_build::Builder::from_manifest()?.build()
//! }
//! ```

mod artefacts;
mod builder;
mod choices;
mod error;
mod files;
mod harness;
mod layout;
mod lock;
mod machine;
mod manifest;
mod model;
mod operators;
mod pipeline;
mod plan;
mod progress;
mod purpose;
mod session;
mod state;
mod variables;

pub use artefacts::{Artefact, Built};
pub use builder::Builder;
pub use error::{Error, Fault};
pub use files::plain;
pub use layout::Layout;
pub use lock::{FILE as LOCK_FILE, Lock, Machines, Place, Question, Reading, Record, Usable};
pub use machine::Machine;
pub use manifest::{Code, Location, Manifest, Problem, Problems, Wishes, operators_of_project, suggest};
pub use model::{Choices, Gpus, LinkKind, Model, Names, Weights, default_architectures, default_levels};
pub use operators::{Operator, OperatorCode};
pub use progress::{ModelEvent, Progress, Silent};
pub use session::{Job, Session, Settings};
pub use variables::{VARIABLES, Variable};

pub use aoti_toolchain::UserToolchain;

/// What stands for this version of the compiler in the record of what is up to date.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("AOTI_SOURCES"));
