//! The macros by which a program gets at its models: the one that users call, and those that generated modules call.

use crate::{Error, ErrorCode};

/// Brings in the module that `aoti-build` generated for the model of this name: `include_model!("digits")` defines
/// `pub mod digits`. The name is the one that the manifest or the file gives; where that is no identifier, the module has
/// one made of it: `include_model!("my-net")` defines `pub mod my_net`.
///
/// Crates that include models may forbid unsafe code.
#[macro_export]
macro_rules! include_model {
    ($name:tt) => {
        include!(env!(
            concat!("AOTI_MODEL_", $name),
            concat!(
                "there is no model `",
                $name,
                "`; the models of this package: ",
                env!(
                    "AOTI_MODELS",
                    "`include_model!` needs a build script that calls `aoti_build::Builder::from_manifest()?.build()`"
                )
            )
        ));
    };
}

/// Makes a Rust function one that models call for an operator of the project.
///
/// `operators."mylib::scaled"` of the package's manifest names it as `symbol = "mylib_scaled"`. The parameters are those of the
/// operator's schema in their order, then its results, and behind a semicolon, if it uses them, the threads of the run:
///
/// | schema | parameter |
/// |---|---|
/// | `Tensor`, `Tensor?`, `Tensor[]` | `TensorView<f32>`, `Option<TensorView<f32>>`, `Vec<TensorView<f32>>`, of any element type |
/// | `int`, `float`, `bool` | `i64`, `f64`, `bool`; as `Option` for `int?` and so on |
/// | `int[]`, `float[]`, `bool[]` | `&[i64]`, `&[f64]`, `Vec<bool>`; as `Option` likewise |
/// | `str`, `str?` | `&str`, `Option<&str>` |
/// | results `Tensor`, `Tensor[]` | `TensorViewMut<f32>`, `Vec<TensorViewMut<f32>>` |
///
/// The build script of the package says which parameters the function must have, and with others it does not compile. In a
/// package that has no operator of this symbol in its manifest, the function states its signature itself, a letter for each
/// parameter as `aoti/operator.h` lists them: `signature = "TfR";`. Its name for the linker is made of both,
/// `aoti_operator_mylib_scaled_TfR`, so that it meets no other function, and calls with another signature do not find it.
///
/// A tensor of another element type, an error that the function returns and a panic in it make the run fail, with the line of
/// the Python program. Runs on several threads may call it at the same time.
///
/// ```
/// #![forbid(unsafe_code)]
/// use aoti_runtime::{TensorView, TensorViewMut};
///
/// aoti_runtime::operator! {
///     signature = "TfR";
///     /// `x * factor`
///     pub fn mylib_scaled(x: TensorView<f32>, factor: f64, y: TensorViewMut<f32>; threads) -> Result<(), String> {
///         if !factor.is_finite() {
///             return Err(format!("the factor is {factor}"));
///         }
///         let x = x.data();
///         threads.for_each_part(y.into_data(), 1024, |part, first| {
///             for (k, y) in part.iter_mut().enumerate() {
///                 *y = x[first + k] * factor as f32;
///             }
///         });
///         Ok(())
///     }
/// }
/// ```
///
/// A function that runs on the calling thread alone names no threads:
///
/// ```
/// # use aoti_runtime::{TensorView, TensorViewMut};
/// aoti_runtime::operator! {
///     signature = "TR";
///     fn mylib_copied(x: TensorView<f32>, y: TensorViewMut<f32>) -> Result<(), String> {
///         y.into_data().copy_from_slice(x.data());
///         Ok(())
///     }
/// }
/// ```
///
/// What the function is given is borrowed for the call:
///
/// ```compile_fail
/// # use aoti_runtime::{TensorView, TensorViewMut};
/// aoti_runtime::operator! {
///     signature = "TR";
///     fn keeps(x: TensorView<'static, f32>, y: TensorViewMut<'static, f32>; threads) -> Result<(), String> {
///         Ok(())
///     }
/// }
/// ```
#[macro_export]
macro_rules! operator {
    (signature = $letters:literal; $($function:tt)+) => {
        $crate::__operator! {
            { $letters }
            {
                ::core::concat!(
                    "the parameters are not those of `signature = \"", $letters, "\"`: `aoti/operator.h` lists what each letter stands for"
                )
            }
            $($function)+
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident($($parameters:tt)*) -> $result:ty $body:block
    ) => {
        $crate::__operator! {
            {
                ::core::env!(
                    ::core::concat!("AOTI_OPERATOR_", ::core::stringify!($name)),
                    ::core::concat!(
                        "no operator in the manifest of this package has the `symbol` `", ::core::stringify!($name),
                        "` (or it has a C++ `source`, or no build script calls `aoti_build::Builder::from_manifest()?.build()`); \
                         for an operator of another package, state its signature: `signature = \"TR\";`"
                    )
                )
            }
            {
                ::core::concat!(
                    "the parameters are not those of the operator's `schema` in the manifest, which are those of `",
                    ::core::env!(::core::concat!("AOTI_FUNCTION_", ::core::stringify!($name))),
                    "` with tensors of any element type"
                )
            }
            $(#[$meta])*
            $vis fn $name($($parameters)*) -> $result $body
        }
    };
}

/// A function of [`operator!`] with its signature, and the function with C linkage around it.
#[doc(hidden)]
#[macro_export]
macro_rules! __operator {
    (
        { $letters:expr }
        { $misfit:expr }
        $(#[$meta:meta])*
        $vis:vis fn $name:ident($($parameter:ident: $type:ty),+ $(,)? $(; $threads:ident)?) -> $result:ty $body:block
    ) => {
        $(#[$meta])*
        $vis fn $name($($parameter: $type,)+ $($threads: $crate::Threads<'_>)?) -> $result $body

        const _: () = assert!(
            $crate::__fits(&[$(<$type as $crate::OperatorParameter>::LETTER),+], $letters),
            "{}",
            $misfit
        );

        const _: () = {
            #[unsafe(export_name = ::core::concat!("aoti_operator_", ::core::stringify!($name), "_", $letters))]
            unsafe extern "C" fn called(
                $($parameter: <$type as $crate::OperatorParameter>::C,)+
                context: *const $crate::abi::AotiContext,
                error: *mut $crate::abi::AotiError,
            ) -> i32 {
                // SAFETY: generated code calls it by a name that holds the signature, which was compared above.
                unsafe {
                    $crate::__run_operator(context, error, |call| {
                        $(
                            let $parameter = call.receive::<$type>($parameter, ::core::stringify!($parameter))?;
                        )+
                        ::core::result::Result::Ok($name($($parameter,)+ $({ let $threads = call.threads; $threads })?))
                    })
                }
            }
        };
    };
}

/// Declares a model's library with two safe functions over it, where `$model` is what stands for the model in symbols. Only
/// libraries that cargo-aoti made export a symbol of that form. Generated modules call this. A library with other digests than these, of its code and of the weights inside it, is refused.
#[doc(hidden)]
#[macro_export]
macro_rules! __library {
    ($model:ident, $digests:literal $(, #[$link:meta])*) => {
        $(#[$link])*
        unsafe extern "C" {
            #[link_name = ::core::concat!("aoti_", ::core::stringify!($model), "_api")]
            fn library_api() -> *const $crate::abi::AotiApi;
        }
        fn library_model(options: $crate::LoadOptions) -> ::core::result::Result<$crate::Model, $crate::Error> {
            // SAFETY: the function is the library's own, and the library is part of the program.
            unsafe { $crate::Model::from_api(library_api(), $digests, options) }
        }
        fn library_info() -> ::core::result::Result<$crate::ModelInfo, $crate::Error> {
            // SAFETY: as above.
            unsafe { $crate::Model::info_of(library_api(), $digests) }
        }
    };
}

/// The two functions for a model of which there are only bindings.
#[doc(hidden)]
#[macro_export]
macro_rules! __absent_library {
    ($name:literal) => {
        fn library_model(_: $crate::LoadOptions) -> ::core::result::Result<$crate::Model, $crate::Error> {
            ::core::result::Result::Err($crate::absent($name))
        }
        fn library_info() -> ::core::result::Result<$crate::ModelInfo, $crate::Error> {
            ::core::result::Result::Err($crate::absent($name))
        }
    };
}

/// The error for a model that was not compiled.
#[doc(hidden)]
pub fn absent(name: &str) -> Error {
    let message = format!(
        "only the bindings of `{name}` were built, not the model: its build script ran with `AOTI_BUILD=bindings` or for a \
         check; build the program with `AOTI_BUILD=full`"
    );
    Error::new(ErrorCode::Library, message)
}
