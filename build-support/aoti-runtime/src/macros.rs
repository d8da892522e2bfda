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

/// Declares a model's library with two safe functions over it. Generated modules call this; the symbol must be a model's. A
/// library with other digests than these, of its code and of the weights inside it, is refused.
#[doc(hidden)]
#[macro_export]
macro_rules! __library {
    ($symbol:ident, $digests:literal $(, #[$link:meta])*) => {
        $(#[$link])*
        unsafe extern "C" {
            fn $symbol() -> *const $crate::abi::AotiApi;
        }
        fn library_model(options: $crate::LoadOptions) -> ::core::result::Result<$crate::Model, $crate::Error> {
            // SAFETY: the function is the library's own, and the library is part of the program.
            unsafe { $crate::Model::from_api($symbol(), $digests, options) }
        }
        fn library_info() -> ::core::result::Result<$crate::ModelInfo, $crate::Error> {
            // SAFETY: as above.
            unsafe { $crate::Model::info_of($symbol(), $digests) }
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
