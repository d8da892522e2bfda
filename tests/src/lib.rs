//! What the tests of the whole share: the subcommand, projects in temporary folders, models, damaged archives.
//!
//! The tests themselves lie in `tests/`, one file a concern.

pub mod archive;
pub mod batch;
pub mod calls;
pub mod cases;
pub mod child;
pub mod chromium;
pub mod families;
pub mod markdown;
pub mod models;
pub mod mutate;
pub mod native;
pub mod project;
pub mod rng;
pub mod schema;
pub mod subcommand;
pub mod tools;
pub mod wire;
