//! Functions of a library that is opened at run time, as a table.

/// Declares a table, and how it is found in an open library.
macro_rules! functions {
    ($($name:ident: $symbol:literal ($($parameter:ty),*) -> $result:ty,)*) => {
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($parameter),*) -> $result,)*
        }

        impl Functions {
            /// # Safety
            ///
            /// The library is the one that these are of, and outlives the functions.
            unsafe fn find(library: &libloading::Library) -> Result<Functions, libloading::Error> {
                // SAFETY: signatures as the library's header has them.
                Ok(unsafe { Functions { $($name: *library.get($symbol)?,)* } })
            }
        }
    };
}
