//! One model as the manifest or a command asks for it.

use std::path::PathBuf;
use std::sync::Arc;

use aoti_compiler::codegen::names;
use aoti_compiler::compile;
pub use aoti_compiler::transform::rename::Names;
use aoti_toolchain::UserToolchains;
use serde::{Deserialize, Serialize};

/// Where the weights of a model lie.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// Inside the library.
    #[default]
    Embed,
    /// In a file beside the program.
    Sidecar,
    /// Given by the program at run time.
    External,
}

/// What kind of library is made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// A static library.
    #[default]
    Static,
    /// A shared library.
    Dylib,
}

/// One model to build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// The package that it belongs to, with its version; empty for none.
    pub package: String,
    /// Where its weights lie.
    pub weights: Weights,
    /// Whether the library takes other weights by name although it has its own; one with external weights always does.
    pub named_weights: bool,
    /// What kind of library is made.
    pub link: LinkKind,
    /// CPU levels; none for the target's defaults.
    pub levels: Vec<String>,
    /// Toolchains that its project brings.
    pub toolchains: Option<Arc<UserToolchains>>,
    /// What its outputs and dimensions are called, where not as the program calls them.
    pub names: Names,
}

impl Model {
    /// A model with default settings.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Model {
        Model {
            name: name.into(),
            path: path.into(),
            package: String::new(),
            weights: Weights::Embed,
            named_weights: false,
            link: LinkKind::Static,
            levels: Vec::new(),
            toolchains: None,
            names: Names::default(),
        }
    }

    /// What the compiler is told.
    pub(crate) fn options(&self, levels: Vec<String>) -> compile::Options {
        compile::Options {
            name: self.name.clone(),
            package: self.package.clone(),
            levels,
            embed_weights: self.weights == Weights::Embed,
            named_weights: self.named_weights || self.weights == Weights::External,
            names: self.names.clone(),
        }
    }

    /// The identifier that stands for it in file names and modules.
    pub fn identifier(&self) -> String {
        names::identifier(&self.name)
    }

    /// What stands for it in symbols and names of libraries, where it may meet models of other packages.
    pub fn symbol(&self) -> String {
        names::symbol(&self.name, &self.package)
    }
}

/// The levels that models are built for on an architecture (as in the first part of a triple) when none are given.
pub fn default_levels(architecture: &str) -> &'static [&'static str] {
    match architecture {
        "x86_64" => &["x86-64", "x86-64-v3", "x86-64-v4"],
        "aarch64" => &["neon"],
        _ => &[],
    }
}
