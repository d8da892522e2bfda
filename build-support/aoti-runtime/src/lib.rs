//! The runtime of models compiled by cargo-aoti, which the generated Rust modules depend on: tensors, weights,
//! workspaces, executors, and a safe [`Model`] over the C interface of a compiled library.
//!
//! Knows nothing of any particular model, of graphs or of compilers, reads no environment variables, and starts no
//! processes. `unsafe` is confined to `ffi/`, the macros that declare what is linked, the contract of [`Executor`], and the lines
//! that open a library and map a weights file; everything else is safe Rust.
//!
//! No program that forbids unsafe code can do with this crate what Rust rules out: states and tensors of one model are refused
//! by others, sizes and ranks are checked before memory is asked for, and what panics in code of the program is caught before
//! it reaches a model's. What nobody can check is `unsafe`, and says what it asks for: `Library::open`, [`Weights::map`],
//! [`Stream::from_raw`], [`AnyView::on_device`], [`Model::from_api`].
//!
//! A compiled model is used through its generated module:
//!
//! ```text
//! aoti_runtime::include_model!("digits");
//!
//! let model = digits::Model::load()?;
//! let out = model.run(&digits::Inputs { image: TensorView::new(&pixels, &[1, 28, 28])? })?;
//! ```
//!
//! [`Model`] is the untyped layer below, for programs that learn only at run time which model they use.
#![deny(unsafe_code)]

#[doc(hidden)]
#[path = "samples.rs"]
pub mod __samples;
mod batcher;
mod communicator;
mod complex;
mod device;
mod dtype;
mod error;
mod executor;
#[expect(unsafe_code, reason = "the C interface, aligned memory and the hand-over of work between threads")]
mod ffi;
mod float8;
mod generator;
mod info;
mod kernel;
#[cfg(feature = "dynamic")]
mod library;
mod macros;
mod named;
mod plan;
mod pool;
#[cfg(feature = "rayon")]
mod rayon;
mod saved;
mod tensor;
mod trace;
mod weights;

pub use batcher::{BatchOptions, Batcher, Pending};
pub use communicator::{
    Collective, CollectiveKind, Communicator, Groups, Memory, Reduction, SocketGroup, ThreadGroup, ThreadRank,
};
pub use complex::Complex;
pub use device::{Device, ParseDeviceError};
pub use dtype::{DType, Element};
pub use error::{Error, ErrorCode};
pub use executor::{Executor, Inline};
pub use ffi::abi;
pub use ffi::dlpack::{DLDataType, DLDevice, DLManagedTensor, DLTensor, Dlpack};
pub use ffi::model::{LoadOptions, Model};
#[cfg(feature = "nccl")]
pub use ffi::nccl::{Nccl, NcclCommunicator, NcclId};
pub use ffi::operator::{OperatorParameter, TensorViewMut, Threads, Unfit};
#[doc(hidden)]
pub use ffi::operator::{fits as __fits, run_operator as __run_operator};
pub use ffi::prepared::{DeviceTensor, Prepared, Stream};
pub use ffi::state::{State, StateTensor};
pub use ffi::submitted::{Finished, Submitted};
pub use ffi::view::AnyView;
pub use ffi::workspace::Workspace;
pub use float8::{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu};
pub use generator::Generator;
#[cfg(feature = "half")]
pub use half::{bf16, f16};
pub use info::{ConstantInfo, DimInfo, KernelInfo, ModelInfo, ValueInfo};
pub use kernel::{KernelEvent, KernelPhase};
#[cfg(feature = "dynamic")]
pub use library::Library;
#[doc(hidden)]
pub use macros::absent;
pub use named::{NamedTensor, PrepareOptions};
pub use plan::{Candidate, Plan, Verdict};
pub use pool::ThreadPool;
#[cfg(feature = "rayon")]
pub use rayon::Rayon;
pub use tensor::{DynTensor, Tensor, TensorView};
pub use weights::Weights;
