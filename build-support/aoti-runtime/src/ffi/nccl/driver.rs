//! What of CUDA's driver ranks need to read each other's memory. It is opened where a group may.

use libloading::Library;
use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    path::Path,
    ptr,
    sync::Arc,
};

const SUCCESS: c_int = 0;
const NOT_READY: c_int = 600;
const PEERS_ALREADY: c_int = 704;
/// Peers may be connected when another process's memory is opened.
const OPEN_PEERS: c_uint = 1;
/// Memory of the host that all contexts see.
const FOR_ALL_DEVICES: c_uint = 3;

pub(super) type Context = *mut c_void;
pub(super) type Stream = *mut c_void;
type Function = *mut c_void;
type Module = *mut c_void;
/// An address in a device's memory.
pub(super) type Address = u64;
/// By which another process finds memory.
pub(super) type IpcHandle = [u8; 64];

/// `CUipcMemHandle`, which is passed as a struct.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Ipc(IpcHandle);

functions! {
    error: "cuGetErrorString" (c_int, *mut *const c_char) -> c_int,
    current: "cuCtxGetCurrent" (*mut Context) -> c_int,
    push: "cuCtxPushCurrent_v2" (Context) -> c_int,
    pop: "cuCtxPopCurrent_v2" (*mut Context) -> c_int,
    device: "cuCtxGetDevice" (*mut c_int) -> c_int,
    can_peer: "cuDeviceCanAccessPeer" (*mut c_int, c_int, c_int) -> c_int,
    enable_peer: "cuCtxEnablePeerAccess" (Context, c_uint) -> c_int,
    allocate: "cuMemAlloc_v2" (*mut Address, usize) -> c_int,
    free: "cuMemFree_v2" (Address) -> c_int,
    allocate_host: "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint) -> c_int,
    free_host: "cuMemFreeHost" (*mut c_void) -> c_int,
    to_device: "cuMemcpyHtoD_v2" (Address, *const c_void, usize) -> c_int,
    to_host: "cuMemcpyDtoH_v2" (*mut c_void, Address, usize) -> c_int,
    fill: "cuMemsetD8_v2" (Address, u8, usize) -> c_int,
    ipc_handle: "cuIpcGetMemHandle" (*mut Ipc, Address) -> c_int,
    ipc_open: "cuIpcOpenMemHandle_v2" (*mut Address, Ipc, c_uint) -> c_int,
    ipc_close: "cuIpcCloseMemHandle" (Address) -> c_int,
    query: "cuStreamQuery" (Stream) -> c_int,
    load: "cuModuleLoadData" (*mut Module, *const c_void) -> c_int,
    unload: "cuModuleUnload" (Module) -> c_int,
    function: "cuModuleGetFunction" (*mut Function, Module, *const c_char) -> c_int,
    launch: "cuLaunchKernel" (Function, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *mut *mut c_void, *mut *mut c_void) -> c_int,
}

/// The driver, opened.
#[derive(Clone)]
pub(super) struct Driver(Arc<(Functions, Library)>);

impl Driver {
    /// The driver in a file. None where it cannot be opened, or has not all of it.
    ///
    /// # Safety
    ///
    /// The file is CUDA's driver.
    pub(super) unsafe fn open_file(path: &Path) -> Option<Driver> {
        // SAFETY: as the caller says.
        unsafe {
            let library = Library::new(path).ok()?;
            let functions = Functions::find(&library).ok()?;
            Some(Driver(Arc::new((functions, library))))
        }
    }

    fn functions(&self) -> &Functions {
        &self.0.0
    }

    fn done(&self, code: c_int, what: &str) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        let mut text = ptr::null();
        // SAFETY: the driver gives a text of its own, or none.
        let known = unsafe { (self.functions().error)(code, &mut text) } == SUCCESS && !text.is_null();
        // SAFETY: the text ends, and stays.
        let text = if known { unsafe { CStr::from_ptr(text) }.to_string_lossy() } else { "an error".into() };
        Err(format!("{what}: {text}"))
    }

    /// The context of this thread, if it has one, and the number of its device.
    pub(super) fn current(&self) -> Option<(Context, c_int)> {
        let (mut context, mut device) = (ptr::null_mut(), 0);
        // SAFETY: the driver writes to these.
        let code = unsafe { (self.functions().current)(&mut context) };
        if code != SUCCESS || context.is_null() {
            return None;
        }
        // SAFETY: as above.
        (unsafe { (self.functions().device)(&mut device) } == SUCCESS).then_some((context, device))
    }

    /// Does something in a context.
    pub(super) fn within(&self, context: Context, own: impl FnOnce()) {
        // SAFETY: the context is that of a communicator that has not left it.
        if unsafe { (self.functions().push)(context) } == SUCCESS {
            own();
            let mut popped = ptr::null_mut();
            // SAFETY: it was pushed above.
            unsafe { (self.functions().pop)(&mut popped) };
        }
    }

    /// Lets this thread's device read the memory of another one of this process. False where it cannot.
    pub(super) fn connect(&self, device: c_int, peer: c_int, context: Context) -> bool {
        let mut can = 0;
        // SAFETY: both devices exist, and the context belongs to a rank that is connecting too.
        unsafe {
            (self.functions().can_peer)(&mut can, device, peer) == SUCCESS
                && can != 0
                && matches!((self.functions().enable_peer)(context, 0), SUCCESS | PEERS_ALREADY)
        }
    }

    pub(super) fn allocate(&self, bytes: usize) -> Result<Address, String> {
        let mut address = 0;
        // SAFETY: the driver writes to it.
        self.done(unsafe { (self.functions().allocate)(&mut address, bytes) }, "memory for the ranks")?;
        // SAFETY: so many bytes were allocated.
        self.done(unsafe { (self.functions().fill)(address, 0, bytes) }, "memory for the ranks")?;
        Ok(address)
    }

    /// A number in the host's memory that devices see, 0 at first.
    pub(super) fn allocate_host(&self) -> Result<*mut u32, String> {
        let mut address = ptr::null_mut();
        let (size, flags) = (size_of::<u32>(), FOR_ALL_DEVICES);
        // SAFETY: the driver writes to it.
        self.done(
            unsafe { (self.functions().allocate_host)(&mut address, size, flags) },
            "memory of the host",
        )?;
        let number = address.cast::<u32>();
        // SAFETY: it was allocated, and nobody else has it yet.
        unsafe { number.write(0) };
        Ok(number)
    }

    /// # Safety
    ///
    /// Each is what the functions above gave, and is used no more.
    pub(super) unsafe fn free(&self, memory: Address, number: *mut u32) {
        // SAFETY: as the caller says.
        unsafe {
            (self.functions().free)(memory);
            (self.functions().free_host)(number.cast());
        }
    }

    pub(super) fn write(&self, to: Address, bytes: &[u8]) -> Result<(), String> {
        let from = bytes.as_ptr().cast();
        // SAFETY: the callers have as many bytes there.
        self.done(unsafe { (self.functions().to_device)(to, from, bytes.len()) }, "telling the ranks")
    }

    pub(super) fn read(&self, from: Address, bytes: &mut [u8]) -> Result<(), String> {
        let (to, count) = (bytes.as_mut_ptr().cast(), bytes.len());
        // SAFETY: the callers have as many bytes there.
        self.done(unsafe { (self.functions().to_host)(to, from, count) }, "hearing of the ranks")
    }

    /// Whether a stream has done what it was given.
    pub(super) fn is_done(&self, stream: Stream) -> Result<bool, String> {
        // SAFETY: the stream is that of the run.
        match unsafe { (self.functions().query)(stream) } {
            NOT_READY => Ok(false),
            code => self.done(code, "connecting the ranks").map(|()| true),
        }
    }

    /// By which other processes open this memory; zeros where none can.
    pub(super) fn ipc_handle(&self, memory: Address) -> IpcHandle {
        let mut handle = Ipc([0; 64]);
        // SAFETY: the memory was allocated.
        let code = unsafe { (self.functions().ipc_handle)(&mut handle, memory) };
        if code == SUCCESS { handle.0 } else { [0; 64] }
    }

    pub(super) fn ipc_open(&self, handle: IpcHandle) -> Option<Address> {
        let mut address = 0;
        // SAFETY: the driver refuses what is no handle.
        let code = unsafe { (self.functions().ipc_open)(&mut address, Ipc(handle), OPEN_PEERS) };
        (code == SUCCESS).then_some(address)
    }

    /// # Safety
    ///
    /// [`Driver::ipc_open`] gave the address, and it is used no more.
    pub(super) unsafe fn ipc_close(&self, address: Address) {
        // SAFETY: as the caller says.
        unsafe { (self.functions().ipc_close)(address) };
    }

    /// Loads code, and finds functions in it.
    pub(super) fn load<const N: usize>(&self, code: &CStr, names: [&CStr; N]) -> Result<Code<N>, String> {
        let mut own = Code { driver: self.clone(), module: ptr::null_mut(), functions: [ptr::null_mut(); N] };
        // SAFETY: the text ends.
        let loaded = unsafe { (self.functions().load)(&mut own.module, code.as_ptr().cast()) };
        self.done(loaded, "the ranks' kernel")?;
        for (function, name) in own.functions.iter_mut().zip(names) {
            // SAFETY: the module is loaded, and the name ends.
            let found = unsafe { (self.functions().function)(function, own.module, name.as_ptr()) };
            self.done(found, "the ranks' kernel")?;
        }
        Ok(own)
    }
}

/// Code on a device.
pub(super) struct Code<const N: usize> {
    driver: Driver,
    module: Module,
    functions: [Function; N],
}

impl<const N: usize> Code<N> {
    /// Starts a function on blocks of threads.
    ///
    /// # Safety
    ///
    /// The arguments are those that the function has, and what it reads and writes is there until the stream is done.
    pub(super) unsafe fn launch<const M: usize>(
        &self,
        function: usize,
        [blocks, threads]: [u32; 2],
        stream: Stream,
        mut arguments: [*mut c_void; M],
    ) -> Result<(), String> {
        let functions = self.driver.functions();
        let (own, arguments) = (self.functions[function], arguments.as_mut_ptr());
        // SAFETY: as the caller says.
        let code = unsafe {
            (functions.launch)(own, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, ptr::null_mut())
        };
        self.driver.done(code, "all_reduce")
    }
}

impl<const N: usize> Drop for Code<N> {
    fn drop(&mut self) {
        if !self.module.is_null() {
            // SAFETY: it was loaded, and nothing of it runs any more.
            unsafe { (self.driver.functions().unload)(self.module) };
        }
    }
}
