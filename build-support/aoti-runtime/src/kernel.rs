//! Kernels as those who watch a run see them.

use crate::{AnyView, KernelInfo};

/// A kernel begins or has ended.
#[derive(Clone, Copy, Debug)]
pub struct KernelEvent<'a> {
    /// Its position in [`ModelInfo::kernels`](crate::ModelInfo::kernels).
    pub index: usize,
    /// What it computes.
    pub kernel: &'a KernelInfo,
    /// What is told of it.
    pub phase: KernelPhase<'a>,
}

/// Which of the two moments of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum KernelPhase<'a> {
    /// It is about to run.
    Begin,
    /// It has run: what it wrote, in the order of [`KernelInfo::outputs`]. Later kernels may overwrite it.
    End(&'a [AnyView<'a>]),
}
