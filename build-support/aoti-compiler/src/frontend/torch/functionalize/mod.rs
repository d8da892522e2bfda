//! Turns ATen programs into core graphs: makes mutation explicit and replaces every call by core operators.
//!
//! Mutation and aliasing are handled here once, for all operators: a tensor value is a window (coordinates) onto a
//! storage, an in-place call computes its result functionally and writes it back through the window, and other windows
//! onto that storage are read anew. The technique is functionalisation by replaying views (PyTorch's `functorch` notes
//! describe it); views being index maps, writing back is a scatter. What a call computes is its rule's affair (`rules`).

mod auto_functionalized;
mod autocast;
mod complex;
mod control;
mod copies;
mod custom_op_sizes;
mod custom_ops;
mod default_float;
mod foreach;
mod hints;
mod inline;
mod poison;
mod run;
mod scalars;
mod unify;
mod vmap;
mod windows;

#[cfg(test)]
mod custom_op_tests;
#[cfg(test)]
mod window_tests;

pub use run::{functionalize, functionalize_with};
