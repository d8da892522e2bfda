// Typed interface of a compiled model, written by cargo-aoti; changes are lost at the next build.

/// The compiled model `digits`.
///
/// | input | elements | sizes | bounds |
/// |---|---|---|---|
/// | `image` | `f32` | `[batch, 1, 28, 28]` | `batch`: 1 to 64 |
///
/// | output | elements | sizes | bounds |
/// |---|---|---|---|
/// | `logits` | `f32` | `[batch, 10]` | `batch`: 1 to 64 |
#[allow(clippy::all, clippy::nursery, clippy::pedantic, clippy::restriction, dead_code, unreachable_pub)]
pub mod digits {
    ::aoti_runtime::__library! {
        digits, "",
        #[link(name = "aoti_digits", kind = "static")],
        #[cfg_attr(target_env = "musl", link(name = "gcc"))]
    }

    /// The model, loaded. Threads may share it.
    #[derive(Debug)]
    pub struct Model {
        inner: ::aoti_runtime::Model,
    }

    impl Model {
        /// Loads the model with the weights inside the program.
        pub fn load() -> Result<Self, ::aoti_runtime::Error> {
            Self::load_from(::aoti_runtime::Weights::embedded())
        }

        /// Loads the model with weights from elsewhere, laid out as the build wrote them.
        pub fn load_from(weights: ::aoti_runtime::Weights) -> Result<Self, ::aoti_runtime::Error> {
            Self::load_with(::aoti_runtime::LoadOptions { weights, ..Default::default() })
        }

        /// Loads the model with full control.
        pub fn load_with(options: ::aoti_runtime::LoadOptions) -> Result<Self, ::aoti_runtime::Error> {
            Ok(Self { inner: library_model(options)? })
        }

        /// What the model says about itself; needs no weights.
        pub fn info() -> Result<::aoti_runtime::ModelInfo, ::aoti_runtime::Error> {
            library_info()
        }

        /// Runs the model on the program's shared thread pool.
        pub fn run(
            &self,
            inputs: &Inputs<'_>,
        ) -> Result<Outputs, ::aoti_runtime::Error> {
            let mut outputs = Outputs::default();
            self.inner.run_shared(&[inputs.image.erase()], &mut [outputs.logits.as_dyn_mut()], None)?;
            Ok(outputs)
        }

        /// Runs the model into outputs, with a workspace and on threads that the caller keeps. Allocates nothing
        /// when outputs and workspace have served such sizes before.
        pub fn run_with(
            &self,
            inputs: &Inputs<'_>,
            outputs: &mut Outputs,
            workspace: &mut ::aoti_runtime::Workspace,
            executor: &dyn ::aoti_runtime::Executor,
        ) -> Result<(), ::aoti_runtime::Error> {
            self.inner.run(&[inputs.image.erase()], &mut [outputs.logits.as_dyn_mut()], None, workspace, executor)
        }

        /// The same model without types, with what it says about itself.
        pub fn untyped(&self) -> &::aoti_runtime::Model {
            &self.inner
        }
    }

    /// What a run reads.
    #[derive(Clone, Debug)]
    pub struct Inputs<'a> {
        /// `image`: `f32` of sizes `[batch, 1, 28, 28]`; `batch`: 1 to 64.
        pub image: ::aoti_runtime::TensorView<'a, f32>,
    }

    /// Outputs of a run, resized as needed.
    #[derive(Clone, Debug, Default)]
    pub struct Outputs {
        /// `logits`: `f32` of sizes `[batch, 10]`; `batch`: 1 to 64.
        pub logits: ::aoti_runtime::Tensor<f32>,
    }

    #[cfg(test)]
    mod samples {
        /// The model gives the outputs that are stored beside it.
        #[test]
        fn outputs_match() {
            let model = super::Model::load().expect("the model loads");
            let checked = ::aoti_runtime::__samples::check(
                model.untyped(),
                concat!(env!("CARGO_MANIFEST_DIR"), "/models/digits.safetensors"),
                &[
                    ::aoti_runtime::__samples::Sample { index: 0, sizes: &[2, 1, 28, 28], offset: 176 },
                ],
                &[
                    ::aoti_runtime::__samples::Sample { index: 0, sizes: &[2, 10], offset: 6448 },
                ],
            );
            if let Err(message) = checked {
                panic!("samples: {}", message);
            }
        }
    }
}
