//! The one error type of this crate: what kind of thing went wrong, and a sentence that names it.

use crate::ffi::abi;
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $abi:ident,)*) => {
        /// What kind of thing went wrong.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
            /// The library speaks another version of the C interface than this crate.
            Version,
            /// A file could not be read or mapped.
            File,
            /// A shared library could not be opened, lacks the model's symbol or is another than the program was built with, or
            /// only bindings were built.
            Library,
            /// Too many requests wait, or a [`Batcher`](crate::Batcher) has stopped.
            Busy,
            /// A status that this version of the crate does not know.
            Unknown(i32),
        }

        impl ErrorCode {
            /// The code for a status of the C interface.
            pub(crate) fn from_status(status: i32) -> ErrorCode {
                match status {
                    $(x if x == abi::$abi as i32 => ErrorCode::$name,)*
                    other => ErrorCode::Unknown(other),
                }
            }
        }
    };
}

codes! {
    /// A pointer that must be given is null.
    Null = AOTI_ERROR_NULL,
    /// The number of inputs or outputs.
    Count = AOTI_ERROR_COUNT,
    /// The element type of a tensor.
    DType = AOTI_ERROR_DTYPE,
    /// The number of dimensions of a tensor.
    Rank = AOTI_ERROR_RANK,
    /// A size of a tensor, or a number of elements that is not the product of the sizes.
    Size = AOTI_ERROR_SIZE,
    /// A dynamic dimension is outside its bounds.
    Range = AOTI_ERROR_RANGE,
    /// A condition between dimensions does not hold.
    Guard = AOTI_ERROR_GUARD,
    /// Strides that reach outside the data, or are not row-major where they must be.
    Stride = AOTI_ERROR_STRIDE,
    /// The address of data or of the workspace.
    Alignment = AOTI_ERROR_ALIGNMENT,
    /// The workspace is too small.
    Workspace = AOTI_ERROR_WORKSPACE,
    /// Weights are missing, of another length or of another digest.
    Weights = AOTI_ERROR_WEIGHTS,
    /// This processor runs none of the compiled levels.
    Cpu = AOTI_ERROR_CPU,
    /// An index tensor holds an index outside its dimension.
    Index = AOTI_ERROR_INDEX,
    /// An assertion of the program does not hold.
    Assert = AOTI_ERROR_ASSERT,
    /// Memory could not be allocated.
    Memory = AOTI_ERROR_MEMORY,
    /// A call of a device's driver failed.
    Device = AOTI_ERROR_DEVICE,
    /// A function of the project, which computes an operator, reported an error.
    Operator = AOTI_ERROR_OPERATOR,
    /// The ranks of a model could not compute something together, or a run has no communicator for it.
    Ranks = AOTI_ERROR_RANKS,
}

/// Why something could not be done.
///
/// `Debug` prints the same sentence as `Display`: it is what a user sees when `main` returns the error.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    message: String,
}

impl Error {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Error {
        Error { code, message: message.into() }
    }

    pub(crate) fn memory(bytes: usize) -> Error {
        Error::new(ErrorCode::Memory, format!("could not allocate {bytes} bytes"))
    }

    /// What kind of thing went wrong.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// A sentence without a full stop; from the model, it names the input, the dimension, the value and the bound.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_main_returns_is_a_sentence() {
        let error = Error::new(ErrorCode::Size, "dimension 1 is 1, not 3");
        assert_eq!(format!("{error:?}"), "dimension 1 is 1, not 3");
    }
}
