//! Linear algebra: products, factorisations, and what is solved with them.

pub(crate) mod ldl;
pub(crate) mod orthogonal;
pub(crate) mod products;
pub(crate) mod solve;
pub(crate) mod tensorsolve;
