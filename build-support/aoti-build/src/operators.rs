//! Custom operators of a project: functions with C linkage and graphs, and where they are.

use std::path::{Path, PathBuf};

use aoti_compiler::diagnostic::Diagnostics;
use aoti_compiler::frontend::torch::custom;

use crate::error::Error;
use crate::files::file_error;

/// An operator that programs of the project call, as `operators."library::name"` of the manifest.
///
/// ```
/// use aoti_build::Operator;
///
/// let scaled = Operator::function("mylib::scaled", "(Tensor x, float factor) -> Tensor", "mylib_scaled");
/// let gated = Operator::graph("mylib::gated", "(Tensor x, Tensor gate) -> Tensor", "operators/gated.aoti");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operator {
    /// Its name as `torch.library` has it: `mylib::scaled`.
    pub name: String,
    /// Its schema: `(Tensor x, float factor) -> Tensor`.
    pub schema: String,
    /// What computes it.
    pub code: OperatorCode,
}

/// What computes an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperatorCode {
    /// A function with C linkage.
    Function {
        /// Its symbol.
        symbol: String,
        /// The C++ file that defines it. Without one the program that the library is linked into does.
        source: Option<PathBuf>,
        /// Whether it says how large its results are.
        decides_sizes: bool,
    },
    /// A file of `.aoti` text.
    Graph(PathBuf),
}

impl Operator {
    /// An operator that a function with C linkage computes.
    pub fn function(
        name: impl Into<String>,
        schema: impl Into<String>,
        symbol: impl Into<String>,
    ) -> Operator {
        let code = OperatorCode::Function { symbol: symbol.into(), source: None, decides_sizes: false };
        Operator { name: name.into(), schema: schema.into(), code }
    }

    /// An operator that a graph in a file of `.aoti` text computes.
    pub fn graph(name: impl Into<String>, schema: impl Into<String>, path: impl Into<PathBuf>) -> Operator {
        Operator { name: name.into(), schema: schema.into(), code: OperatorCode::Graph(path.into()) }
    }

    /// The C++ file that defines the function. A graph has none.
    #[must_use]
    pub fn source(mut self, path: impl Into<PathBuf>) -> Operator {
        if let OperatorCode::Function { source, .. } = &mut self.code {
            *source = Some(path.into());
        }
        self
    }

    /// The function says how large its results are, as `decides-sizes` does. A graph does not.
    #[must_use]
    pub fn decides_sizes(mut self) -> Operator {
        if let OperatorCode::Function { decides_sizes, .. } = &mut self.code {
            *decides_sizes = true;
        }
        self
    }

    /// The file that computes it, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.code {
            OperatorCode::Function { source, .. } => source.as_deref(),
            OperatorCode::Graph(path) => Some(path),
        }
    }

    /// The same with paths from a folder.
    pub(crate) fn within(mut self, folder: &Path) -> Operator {
        match &mut self.code {
            OperatorCode::Function { source, .. } => {
                if let Some(path) = source {
                    *path = folder.join(&*path);
                }
            }
            OperatorCode::Graph(path) => *path = folder.join(&*path),
        }
        self
    }

    /// What the compiler is told.
    ///
    /// # Errors
    /// [`Error::File`] for a graph that cannot be read.
    pub fn read(&self) -> Result<custom::Operator, Error> {
        let code = match &self.code {
            OperatorCode::Function { symbol, .. } => custom::OperatorCode::Function(symbol.clone()),
            OperatorCode::Graph(path) => {
                custom::OperatorCode::Graph(std::fs::read_to_string(path).map_err(file_error("read", path))?)
            }
        };
        let decides_sizes = matches!(self.code, OperatorCode::Function { decides_sizes: true, .. });
        Ok(custom::Operator { name: self.name.clone(), schema: self.schema.clone(), code, decides_sizes })
    }

    /// Everything that is wrong with it.
    pub(crate) fn check(&self) -> Result<Result<(), Diagnostics>, Error> {
        Ok(custom::check(&self.read()?))
    }

    /// What builds follow from: all that is said of it, and what is in its files.
    pub(crate) fn record(&self) -> Result<String, Error> {
        let mut hasher = blake3::Hasher::new();
        let mut files: Vec<PathBuf> = self.file().map(Path::to_owned).into_iter().collect();
        if let OperatorCode::Function { source: Some(source), .. } = &self.code {
            files.extend(headers_beside(source));
        }
        for path in &files {
            let content = std::fs::read(path).map_err(file_error("read", path))?;
            hasher.update(&(content.len() as u64).to_le_bytes()).update(&content);
        }
        let names: Vec<_> = files.iter().filter_map(|path| path.file_name()).collect();
        let (name, schema, code) = (&self.name, &self.schema, &self.code);
        Ok(format!("{name} {schema} {code:?} {names:?} {}", hasher.finalize().to_hex()))
    }
}

/// Headers in the folder of a source, which may include them.
pub(crate) fn headers_beside(source: &Path) -> Vec<PathBuf> {
    let folder = source.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let Ok(listing) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_header = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| ["h", "hpp", "inc"].contains(&extension)) && path.is_file()
    };
    let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).filter(is_header).collect();
    paths.sort();
    paths
}
