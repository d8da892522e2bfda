//! The functions of NCCL, or of RCCL, where they have the same names. The library is opened when it is asked for.

use super::driver::Driver;
use crate::communicator::Reduction;
use crate::{DType, Device, Error, ErrorCode};
use libloading::Library;
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    fmt,
    path::Path,
    sync::Arc,
};

const ID_BYTES: usize = 128;
pub(super) const SUCCESS: c_int = 0;
pub(super) const IN_PROGRESS: c_int = 7;

/// What the ranks of a group find each other by. One rank makes it ([`Nccl::id`]), and the program brings it to the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct NcclId(pub [u8; ID_BYTES]);

pub(super) type Comm = *mut c_void;
pub(super) type Stream = *mut c_void;

/// Version 2.14 of `ncclConfig_t`, which every later version takes.
#[repr(C)]
pub(super) struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
}

impl Config {
    /// Of a communicator whose functions come back before they are done.
    pub(super) fn non_blocking() -> Config {
        Config { size: size_of::<Config>(), magic: 0xcafe_beef, version: 21400, blocking: 0 }
    }
}

functions! {
    id: "ncclGetUniqueId" (*mut NcclId) -> c_int,
    connect: "ncclCommInitRankConfig" (*mut Comm, c_int, NcclId, c_int, *mut Config) -> c_int,
    finalize: "ncclCommFinalize" (Comm) -> c_int,
    destroy: "ncclCommDestroy" (Comm) -> c_int,
    abort: "ncclCommAbort" (Comm) -> c_int,
    state: "ncclCommGetAsyncError" (Comm, *mut c_int) -> c_int,
    text: "ncclGetErrorString" (c_int) -> *const c_char,
    all_reduce: "ncclAllReduce" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int,
    all_gather: "ncclAllGather" (*const c_void, *mut c_void, usize, c_int, Comm, Stream) -> c_int,
    reduce_scatter: "ncclReduceScatter" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int,
    broadcast: "ncclBroadcast" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int,
    send: "ncclSend" (*const c_void, usize, c_int, c_int, Comm, Stream) -> c_int,
    receive: "ncclRecv" (*mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int,
    group_start: "ncclGroupStart" () -> c_int,
    group_end: "ncclGroupEnd" () -> c_int,
}

/// CUDA's driver, where the system has it.
const DRIVER: &str = "libcuda.so.1";

/// NCCL or RCCL, opened.
#[derive(Clone)]
pub struct Nccl {
    functions: Arc<(Functions, Library)>,
    driver: Option<Driver>,
}

impl Nccl {
    /// Finds the library for a device where the system has it: `libnccl.so.2`, or `librccl.so.1`.
    ///
    /// # Errors
    /// What the loader says, and [`ErrorCode::Device`] for processors.
    pub fn open(device: Device) -> Result<Nccl, Error> {
        let name = device.collectives().ok_or_else(|| Error::new(ErrorCode::Device, "NCCL is for GPUs"))?;
        // SAFETY: these names are those libraries'.
        unsafe { Nccl::open_file(Path::new(name)) }
    }

    /// Opens the library in a file, such as that of a Python package.
    ///
    /// # Safety
    ///
    /// The file is NCCL or RCCL, from version 2.14 on.
    pub unsafe fn open_file(path: &Path) -> Result<Nccl, Error> {
        let failed = |error: libloading::Error| {
            Error::new(ErrorCode::Library, format!("`{}` cannot be used: {error}", path.display()))
        };
        // SAFETY: as the caller says.
        unsafe {
            let library = Library::new(path).map_err(failed)?;
            let functions = Functions::find(&library).map_err(failed)?;
            Ok(Nccl {
                functions: Arc::new((functions, library)),
                driver: Driver::open_file(Path::new(DRIVER)),
            })
        }
    }

    /// The same with CUDA's driver in this file, instead of `libcuda.so.1`. Without a driver ranks do not read each other's memory.
    ///
    /// # Safety
    ///
    /// The file is CUDA's driver.
    #[must_use]
    pub unsafe fn with_driver_file(mut self, path: &Path) -> Nccl {
        // SAFETY: as the caller says.
        self.driver = unsafe { Driver::open_file(path) };
        self
    }

    pub(super) fn driver(&self) -> Option<&Driver> {
        self.driver.as_ref()
    }

    pub(super) fn functions(&self) -> &Functions {
        &self.functions.0
    }

    /// A new id, for one group.
    ///
    /// # Errors
    /// What the library says.
    pub fn id(&self) -> Result<NcclId, Error> {
        let mut id = NcclId([0; ID_BYTES]);
        // SAFETY: the library writes as many bytes.
        let code = unsafe { (self.functions().id)(&mut id) };
        if code == SUCCESS { Ok(id) } else { Err(Error::new(ErrorCode::Device, self.text(code))) }
    }

    pub(super) fn text(&self, code: c_int) -> String {
        // SAFETY: the library gives a text of its own, which stays.
        let text = unsafe { CStr::from_ptr((self.functions().text)(code)) };
        text.to_string_lossy().into_owned()
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nccl").finish_non_exhaustive()
    }
}

/// `ncclUint8`, by which whatever is not reduced is moved.
pub(super) const BYTES: c_int = 1;

/// The numbers of an element type and of a reduction.
pub(super) fn reduced_by(dtype: DType, reduction: Reduction) -> Result<(c_int, c_int), String> {
    const SUM: c_int = 0;
    const PRODUCT: c_int = 1;
    const MAX: c_int = 2;
    const MIN: c_int = 3;
    const AVERAGE: c_int = 4;
    let unknown = || Err(format!("NCCL does not reduce {dtype} by {reduction:?}"));
    let code = match dtype {
        DType::I8 => 0,
        DType::U8 | DType::Bool => 1,
        DType::I32 => 2,
        DType::U32 => 3,
        DType::I64 => 4,
        DType::U64 => 5,
        DType::F16 => 6,
        DType::F32 => 7,
        DType::F64 => 8,
        DType::Bf16 => 9,
        DType::I16
        | DType::U16
        | DType::F8E4M3Fn
        | DType::F8E5M2
        | DType::F8E4M3Fnuz
        | DType::F8E5M2Fnuz
        | DType::F8E8M0Fnu
        | DType::C32
        | DType::C64
        | DType::C128 => return unknown(),
    };
    let op = match reduction {
        // Truth values are bytes of 0 and 1.
        Reduction::Sum | Reduction::Or if dtype == DType::Bool => MAX,
        Reduction::Product | Reduction::And if dtype == DType::Bool => MIN,
        Reduction::Sum => SUM,
        Reduction::Product => PRODUCT,
        Reduction::Max => MAX,
        Reduction::Min => MIN,
        Reduction::Average if dtype.is_float() => AVERAGE,
        Reduction::Average | Reduction::And | Reduction::Or | Reduction::Xor => return unknown(),
    };
    Ok((code, op))
}
