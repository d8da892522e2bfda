//! The crate from outside: with real compilers, with shims that record their calls, and with a cache under stress.

mod cache;
mod common;
mod faults;
mod gpu;
mod layers;
mod present;
mod processes;
mod real_compilers;
#[cfg(feature = "remote")]
mod servers;
mod shim;
mod shim_gpu;
mod user;
#[cfg(feature = "remote")]
mod web;
