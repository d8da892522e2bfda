//! Finds, probes and runs native compilers, and caches their results.
//!
//! This is the only crate of the project that starts processes. It knows nothing of models, graphs or generated
//! code: it is handed bytes and arguments, and hands back files.
//!
//! In the order in which a build meets them:
//!
//! 1. [`Environment`]: a snapshot of variables, host and jobserver, taken once at the edge of the program.
//! 2. [`Definition`]: what a toolchain is, read from `toolchains/*.toml`.
//! 3. [`Toolchains`]: finds and probes candidates and resolves (device, target, requirements) to a [`Toolchain`];
//!    [`Resolution`] has the reason for each that was considered, and [`Toolchains::report`] lists everything that was found.
//! 4. [`Toolchain::compile`] and its siblings: plan an [`Action`], a pure value with a content [`Key`];
//!    [`Toolchain::device_code`] plans the code of many GPU architectures, and [`inspect`] says what came out.
//! 5. [`Executor`]: runs many actions under cargo's jobserver, through an [`ActionStore`].
//! 6. [`audit`]: proves that what was linked needs nothing beyond libc, libm and libgcc.

pub mod audit;

mod action;
mod advice;
mod beneath;
mod cache;
mod definition;
mod device;
mod device_class;
mod device_code;
mod embed;
mod environment;
mod error;
mod events;
mod executor;
mod fields;
mod find;
mod gpu;
mod jobs;
mod lock;
mod outputs;
mod present;
mod probe;
mod probe_cache;
mod process;
mod report;
mod resolve;
mod system;
mod target;
mod temporary;
mod turns;
mod user;

pub use action::{Action, Content, FileContent, Input, Key, KeyField, Tool, Work};
pub use beneath::{is_plain_file_name, is_plain_name, make_folder, open_file, read_file};
#[cfg(feature = "remote")]
pub use cache::RemoteStore;
pub use cache::{
    ActionStore, CacheStat, Difference, Fetched, GcReport, LayeredStore, LocalStore, Manifest,
    ManifestOutput, Miss, cache_size, open_store, parse_size,
};
pub use definition::{Arguments, Definition, DeviceArguments, Family, Level, definitions, place_variable};
pub use device::{DeviceImage, DeviceJob, DevicePart, DevicePlan, PartReport};
pub use device_class::Device;
pub use device_code::{DeviceCode, DeviceCodeError, Form, bundle, inspect};
pub use embed::{embed_assembly, embed_text};
pub use environment::Environment;
pub use error::{Error, InputError};
pub use events::{Event, Events, NoEvents};
pub use executor::Executor;
pub use find::{FoundBy, Launch};
pub use gpu::{GpuArchitecture, Scope, gpu_architectures};
pub use jobs::{ArchiveJob, AssembleJob, CompileJob, Goal, Language, LinkJob, Linking, Mode, Sanitizer};
pub use lock::{FileLock, FileLockGuard};
pub use outputs::{OutputFile, Outputs};
pub use present::{PresentDevice, PresentDevices, present_devices};
pub use probe::{Compiler, Identity};
pub use report::{Report, ReportEntry, TargetEntry};
pub use resolve::{Consideration, Requirements, Resolution, ResolveError, Toolchain, Toolchains, Verdict};
pub use system::tree::ProcessTree;
pub use target::{ObjectFormat, Platform, Target};
pub use temporary::{FileAside, TemporaryFolder, sweep_temporaries, temporary_folder};
pub use user::{UserToolchain, UserToolchains, user_file};
