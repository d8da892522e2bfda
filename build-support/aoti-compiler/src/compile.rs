//! The pipeline, top to bottom: which stage follows which, and nothing else.

use crate::codegen::bundle::SourceBundle;
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::graph::Graph;

use bytes::Bytes;

/// What the caller decides about one compilation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The model's name: bindings, symbols and messages are named after it.
    pub name: String,
    /// CPU levels to compile kernels for, lowest first, by toolchain name; the first must run on every machine that
    /// the library is meant for.
    pub levels: Vec<String>,
}

/// One stage's text, for `inspect --emit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Emit {
    /// The core graph after all transformations, in `.aoti` text.
    Graph,
    /// Loop nests before fusion.
    Loops,
    /// Loop nests after fusion, with the memory plan.
    Schedule,
    /// C++ kernels.
    Cpp,
    /// The C++ that calls the kernels and checks arguments.
    Wrapper,
    /// The Rust module.
    Bindings,
    /// The C header.
    Header,
}

/// Reads a model of any supported format and lowers it to a core graph.
pub fn import(name: &str, model: Bytes) -> Result<Graph, Diagnostics> {
    let _ = (name, model);
    Err(Diagnostic::new(Code::Version, "not built yet").into())
}

/// Compiles a model to a source bundle.
pub fn compile(model: Bytes, options: &Options) -> Result<SourceBundle, Diagnostics> {
    let _graph = import(&options.name, model)?;
    Err(Diagnostic::new(Code::Version, "not built yet").into())
}

/// The text of one stage.
pub fn emit(model: Bytes, options: &Options, what: Emit) -> Result<String, Diagnostics> {
    let bundle = compile(model, options)?;
    Ok(match what {
        Emit::Bindings => bundle.bindings,
        Emit::Header => bundle.header,
        Emit::Graph | Emit::Loops | Emit::Schedule | Emit::Cpp | Emit::Wrapper => String::new(),
    })
}
