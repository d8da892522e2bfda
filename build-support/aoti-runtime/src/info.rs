//! What a compiled model says about itself, read once from its C tables into plain Rust values.

use crate::{DType, Error, ErrorCode, StateTensor, ffi::Api};
use std::sync::Arc;

/// One dimension of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DimInfo {
    /// `None` for a fixed size; else the size in terms of the model's symbols, such as `batch` or `2*seq`.
    pub expression: Option<String>,
    /// Smallest size, inclusive.
    pub min: i64,
    /// Largest size, inclusive; `i64::MAX` where there is no bound.
    pub max: i64,
}

/// One input, output or state tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueInfo {
    /// The program's own name for it.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Dimensions, outermost first.
    pub dims: Vec<DimInfo>,
}

/// One weight: a tensor of the program's state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstantInfo {
    /// Fully qualified name, such as `layers.0.weight`.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub sizes: Vec<i64>,
    /// Position of the constant of which this is another name (tied weights).
    pub tied_to: Option<usize>,
    /// Whether a result depends on it; if none does, it may be absent from what is given.
    pub is_read: bool,
}

/// A kernel: one function that a run calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelInfo {
    /// Its name; no other kernel of the model has it.
    pub name: String,
    /// Calls of the user's program that it computes, such as `aten.relu.default of relu_1`.
    pub calls: Vec<String>,
    /// Lines of the user's program where they stand.
    pub source: Vec<String>,
    /// Path of the module that made the first of them, or empty.
    pub module: String,
    /// What it writes. Names are those of the program's values, or empty.
    pub outputs: Vec<ValueInfo>,
}

/// Metadata of a compiled model.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ModelInfo {
    /// The model's name.
    pub name: String,
    /// Name and version of the compiler that made it.
    pub compiler: String,
    /// Inputs in order.
    pub inputs: Vec<ValueInfo>,
    /// Outputs in order.
    pub outputs: Vec<ValueInfo>,
    /// Tensors that the program mutates; they live in a [`State`](crate::State).
    pub states: Vec<ValueInfo>,
    /// Weights by name, as the program has them: all of its state where the library takes weights by name.
    pub constants: Vec<ConstantInfo>,
    /// Kernels, in the order in which they stand in a run.
    pub kernels: Vec<KernelInfo>,
    /// Bytes of the weights. What a model makes of them in memory of its own is not counted.
    pub weights_bytes: u64,
    /// Bytes of a [`State`](crate::State); zero where nothing is mutated.
    pub state_bytes: u64,
    /// How many of the kernels compute with other ranks: where there are any, a run needs a
    /// [`Communicator`](crate::Communicator).
    pub collectives: usize,
    /// Digest of all that is compiled into the library.
    pub library: String,
    /// Digest of the weights inside the library; `None` where they are elsewhere.
    pub embedded_weights: Option<String>,
    /// The tensors of a state, and where they lie in it.
    pub(crate) state_tensors: Arc<[StateTensor]>,
    /// What makes weights of tensors by name.
    pub(crate) api: Option<Api>,
}

impl ModelInfo {
    /// Refuses a library that is not the one that the generated module belongs to: one of an older build that the program
    /// finds first, or of another package with the same name and version, whose model's symbol is the same.
    pub(crate) fn check_library(&self, wanted: &str) -> Result<(), Error> {
        let weights = self.embedded_weights.iter().map(String::as_str);
        let found: Vec<&str> = [self.library.as_str()].into_iter().chain(weights).collect();
        if found.join("+") == wanted {
            return Ok(());
        }
        let message = format!(
            "the library of `{}` is not the one that the program was built with: a library of another build lies in its place, \
             or two packages of one name and version have a model of this name, of which one wants another",
            self.name
        );
        Err(Error::new(ErrorCode::Library, message))
    }
}
