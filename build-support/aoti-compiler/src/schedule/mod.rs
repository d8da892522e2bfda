//! Decides how kernels run: which are fused, along which axes they loop, and where their buffers lie.
//!
//! Works on loop-level programs; knows no C++ and no devices.

pub mod memory;
