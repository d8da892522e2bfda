// Typed interface of a compiled model, written by cargo-aoti; changes are lost at the next build.

/// The compiled model `Double 'trouble' \u{202e}\`.
///
/// | input | elements | sizes | bounds |
/// |---|---|---|---|
/// | `spectrum` | `c64` | `[seq]` | `seq`: from 2 |
/// | `type_` (`type` in the program) | `f16` | `[seq]` | `seq`: from 2 |
/// | `self_` (`self` in the program) | `bf16` | `[2*seq, seq]` | `2*seq`: from 4, `seq`: from 2 |
/// | `a_b` (`a.b` in the program) | `bool` | `[]` | |
/// | `a_b_2` (`a b` in the program) | `u8` | `[0]` | |
/// | `u5165_u529b` (`入力` in the program) | `i8` | `[3]` | |
/// | `count` | `i16` | `[3]` | |
/// | `x` (`X` in the program) | `i32` | `[3]` | |
/// | `unnamed` (` ` in the program) | `i64` | `[3]` | |
/// | `unnamed_2` (`*/ '\|\u{a}\` in the program) | `f64` | `[3]` | |
/// | `inputs` | `f32` | `[batch\|'x']` | `batch\|'x'`: 1 to 9 |
///
/// | output | elements | sizes | bounds |
/// |---|---|---|---|
/// | `wide` | `c128` | `[seq]` | `seq`: from 2 |
/// | `narrow` | `c32` | `[seq]` | `seq`: from 2 |
/// | `out_0` (`out[0]` in the program) | `bool` | `[]` | |
/// | `out_1` (`out[1]` in the program) | `i64` | `[seq]` | `seq`: from 2 |
/// | `self_` (`self` in the program) | `f16` | `[]` | |
///
/// | state | elements | sizes | bounds |
/// |---|---|---|---|
/// | `cache.k` | `f32` | `[4, 8]` | |
/// | `cache_k` | `f32` | `[]` | |
#[allow(clippy::all, clippy::nursery, clippy::pedantic, clippy::restriction, dead_code, unreachable_pub)]
pub mod double_trouble {
    ::aoti_runtime::__library! {
        double_trouble_085a10a0eec1, "",
        #[link(name = "aoti_double_trouble_085a10a0eec1", kind = "dylib")]
    }

    /// The model, loaded. Threads may share it.
    #[derive(Debug)]
    pub struct Model {
        inner: ::aoti_runtime::Model,
    }

    impl Model {
        /// Loads the model with the weights in `double-0123.weights`, looked for beside
        /// the executable, then where the build put it.
        pub fn load() -> Result<Self, ::aoti_runtime::Error> {
            Self::load_from(::aoti_runtime::Weights::sidecar(
                "double-0123.weights",
                "0123",
                &[concat!(env!("OUT_DIR"), "/aoti")],
            )?)
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

        /// A new state with the values that the program starts from. Runs that belong together share one.
        pub fn state(&self) -> Result<::aoti_runtime::State, ::aoti_runtime::Error> {
            self.inner.state()
        }

        /// Runs the model on the program's shared thread pool.
        pub fn run(
            &self,
            inputs: &Inputs<'_>,
            state: &mut ::aoti_runtime::State,
        ) -> Result<Outputs, ::aoti_runtime::Error> {
            let mut outputs = Outputs::default();
            self.inner.run_shared(&[
                inputs.spectrum.erase(),
                inputs.type_.erase(),
                inputs.self_.erase(),
                inputs.a_b.erase(),
                inputs.a_b_2.erase(),
                inputs.u5165_u529b.erase(),
                inputs.count.erase(),
                inputs.x.erase(),
                inputs.unnamed.erase(),
                inputs.unnamed_2.erase(),
                inputs.inputs.erase(),
            ], &mut [
                outputs.wide.as_dyn_mut(),
                outputs.narrow.as_dyn_mut(),
                outputs.out_0.as_dyn_mut(),
                outputs.out_1.as_dyn_mut(),
                outputs.self_.as_dyn_mut(),
            ], Some(state))?;
            Ok(outputs)
        }

        /// Runs the model into outputs, with a workspace and on threads that the caller keeps. Allocates nothing
        /// when outputs and workspace have served such sizes before.
        pub fn run_with(
            &self,
            inputs: &Inputs<'_>,
            outputs: &mut Outputs,
            state: &mut ::aoti_runtime::State,
            workspace: &mut ::aoti_runtime::Workspace,
            executor: &dyn ::aoti_runtime::Executor,
        ) -> Result<(), ::aoti_runtime::Error> {
            self.inner.run(&[
                inputs.spectrum.erase(),
                inputs.type_.erase(),
                inputs.self_.erase(),
                inputs.a_b.erase(),
                inputs.a_b_2.erase(),
                inputs.u5165_u529b.erase(),
                inputs.count.erase(),
                inputs.x.erase(),
                inputs.unnamed.erase(),
                inputs.unnamed_2.erase(),
                inputs.inputs.erase(),
            ], &mut [
                outputs.wide.as_dyn_mut(),
                outputs.narrow.as_dyn_mut(),
                outputs.out_0.as_dyn_mut(),
                outputs.out_1.as_dyn_mut(),
                outputs.self_.as_dyn_mut(),
            ], Some(state), workspace, executor)
        }

        /// The same model without types, with what it says about itself.
        pub fn untyped(&self) -> &::aoti_runtime::Model {
            &self.inner
        }
    }

    /// What a run reads.
    #[derive(Clone, Debug)]
    pub struct Inputs<'a> {
        /// `spectrum`: `c64` of sizes `[seq]`; `seq`: from 2.
        pub spectrum: ::aoti_runtime::TensorView<'a, ::aoti_runtime::Complex<f32>>,
        /// `type_` (`type` in the program): `f16` of sizes `[seq]`; `seq`: from 2.
        pub type_: ::aoti_runtime::TensorView<'a, ::aoti_runtime::f16>,
        /// `self_` (`self` in the program): `bf16` of sizes `[2*seq, seq]`; `2*seq`: from 4, `seq`: from 2.
        pub self_: ::aoti_runtime::TensorView<'a, ::aoti_runtime::bf16>,
        /// `a_b` (`a.b` in the program): `bool` of sizes `[]`.
        pub a_b: ::aoti_runtime::TensorView<'a, bool>,
        /// `a_b_2` (`a b` in the program): `u8` of sizes `[0]`.
        pub a_b_2: ::aoti_runtime::TensorView<'a, u8>,
        /// `u5165_u529b` (`入力` in the program): `i8` of sizes `[3]`.
        pub u5165_u529b: ::aoti_runtime::TensorView<'a, i8>,
        /// `count`: `i16` of sizes `[3]`.
        pub count: ::aoti_runtime::TensorView<'a, i16>,
        /// `x` (`X` in the program): `i32` of sizes `[3]`.
        pub x: ::aoti_runtime::TensorView<'a, i32>,
        /// `unnamed` (` ` in the program): `i64` of sizes `[3]`.
        pub unnamed: ::aoti_runtime::TensorView<'a, i64>,
        /// `unnamed_2` (`*/ '\|\u{a}\` in the program): `f64` of sizes `[3]`.
        pub unnamed_2: ::aoti_runtime::TensorView<'a, f64>,
        /// `inputs`: `f32` of sizes `[batch\|'x']`; `batch\|'x'`: 1 to 9.
        pub inputs: ::aoti_runtime::TensorView<'a, f32>,
    }

    /// Outputs of a run, resized as needed.
    #[derive(Clone, Debug, Default)]
    pub struct Outputs {
        /// `wide`: `c128` of sizes `[seq]`; `seq`: from 2.
        pub wide: ::aoti_runtime::Tensor<::aoti_runtime::Complex<f64>>,
        /// `narrow`: `c32` of sizes `[seq]`; `seq`: from 2.
        pub narrow: ::aoti_runtime::Tensor<::aoti_runtime::Complex<::aoti_runtime::f16>>,
        /// `out_0` (`out[0]` in the program): `bool` of sizes `[]`.
        pub out_0: ::aoti_runtime::Tensor<bool>,
        /// `out_1` (`out[1]` in the program): `i64` of sizes `[seq]`; `seq`: from 2.
        pub out_1: ::aoti_runtime::Tensor<i64>,
        /// `self_` (`self` in the program): `f16` of sizes `[]`.
        pub self_: ::aoti_runtime::Tensor<::aoti_runtime::f16>,
    }
}
