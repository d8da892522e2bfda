//! What is usual of a compilation, and how a caller says what is not.

use super::{Options, WeightsType};
use crate::cost::Rates;
use crate::frontend::torch::custom::Operator;
use crate::passes::rename::Names;
use crate::target::{MathLibrary, Tf32};
use crate::tuning::Records;

impl Options {
    /// For a model of this name on processors of these levels, lowest first: of no package, with its weights inside, and nothing
    /// measured.
    pub fn new(name: impl Into<String>, levels: impl IntoIterator<Item = impl Into<String>>) -> Options {
        Options {
            name: name.into(),
            package: String::new(),
            levels: levels.into_iter().map(Into::into).collect(),
            gpus: vec![],
            embed_weights: true,
            named_weights: false,
            weights_type: WeightsType::default(),
            names: Names::default(),
            tf32: Tf32::default(),
            libraries: vec![],
            records: Records::default(),
            rates: None,
            operators: vec![],
        }
    }

    /// For GPUs of these architectures alone.
    pub fn for_gpus(
        name: impl Into<String>,
        architectures: impl IntoIterator<Item = impl Into<String>>,
    ) -> Options {
        Options::new(name, [""; 0]).with_gpus(architectures)
    }

    /// For GPUs of these architectures too.
    #[must_use]
    pub fn with_gpus(self, architectures: impl IntoIterator<Item = impl Into<String>>) -> Options {
        Options { gpus: architectures.into_iter().map(Into::into).collect(), ..self }
    }

    /// Of a package, with its version.
    #[must_use]
    pub fn with_package(self, package: impl Into<String>) -> Options {
        Options { package: package.into(), ..self }
    }

    /// Whether the weights are linked into the library.
    #[must_use]
    pub fn with_embedded_weights(self, embed_weights: bool) -> Options {
        Options { embed_weights, ..self }
    }

    /// Whether the library takes weights by their names.
    #[must_use]
    pub fn with_named_weights(self, named_weights: bool) -> Options {
        Options { named_weights, ..self }
    }

    /// With the type that the weights of large products are rounded to.
    #[must_use]
    pub fn with_weights_type(self, weights_type: WeightsType) -> Options {
        Options { weights_type, ..self }
    }

    /// With names that go before the program's own.
    #[must_use]
    pub fn with_names(self, names: Names) -> Options {
        Options { names, ..self }
    }

    /// With what of `f32` may be multiplied as TF32.
    #[must_use]
    pub fn with_tf32(self, tf32: Tf32) -> Options {
        Options { tf32, ..self }
    }

    /// With libraries that products may be left to.
    #[must_use]
    pub fn with_libraries(self, libraries: Vec<MathLibrary>) -> Options {
        Options { libraries, ..self }
    }

    /// With what measurements say, of kernels and of the machines that the library is meant for.
    #[must_use]
    pub fn with_measurements(self, records: Records, rates: Option<Rates>) -> Options {
        Options { records, rates, ..self }
    }

    /// With operators of the user's project.
    #[must_use]
    pub fn with_operators(self, operators: Vec<Operator>) -> Options {
        Options { operators, ..self }
    }
}
