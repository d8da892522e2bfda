//! Hands tensors by name to a library, which makes its weights of them.

use super::{
    Api,
    abi::{AotiContext, AotiNamedTensor, AotiPrepareOptions},
    buffer::Buffer,
    call,
    described::{Described, wide},
    model::{fork_join_ns, parallel_for},
    view::CPU,
};
use crate::{Error, ErrorCode, Executor, ModelInfo, NamedTensor, Weights, named::refuse};
use std::{
    any::Any,
    ffi::{CStr, CString, c_char, c_void},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr,
};

/// What the library tells while it works.
struct Listener<'a> {
    progress: Option<&'a mut dyn FnMut(u64, u64)>,
    findings: Vec<String>,
    /// What the program's own function panicked with: nothing may unwind through C.
    panic: Option<Box<dyn Any + Send>>,
}

/// Makes weights of tensors whose bytes are as many as their types say and whose names hold no zero.
pub(crate) fn prepare(
    info: &ModelInfo,
    tensors: &[(&str, NamedTensor<'_>)],
    executor: &dyn Executor,
    progress: Option<&mut dyn FnMut(u64, u64)>,
) -> Result<Weights, Error> {
    let functions =
        info.api.as_ref().and_then(|Api { table, .. }| Some((table.prepare_bytes?, table.prepare_weights?)));
    let Some((prepare_bytes, prepare_weights)) = functions else {
        let message = format!(
            "`{}` takes no weights by name: build it with `weights = \"external\"` or `named-weights = true`",
            info.name
        );
        return Err(Error::new(ErrorCode::Weights, message));
    };
    let length = |bytes: u64| usize::try_from(bytes).map_err(|_| Error::memory(usize::MAX));
    let threads = executor.threads().clamp(1, i32::MAX as usize) as i32;
    // SAFETY: the table is a model's, and the function takes any number of threads.
    let workspace_bytes = length(unsafe { prepare_bytes(threads) }.max(0) as u64)?;
    let weights_bytes = length(info.weights_bytes)?;
    let (mut weights, mut workspace) = (Buffer::new(), Buffer::new());
    weights.reserve(weights_bytes)?;
    workspace.reserve(workspace_bytes)?;
    let names: Vec<CString> =
        tensors.iter().map(|(name, _)| CString::new(*name).expect("names hold no zero")).collect();
    let aligned = tensors.iter().map(|(_, tensor)| Aligned::new(tensor)).collect::<Result<Vec<_>, _>>()?;
    let mut described = Described::default();
    for ((_, tensor), aligned) in tensors.iter().zip(&aligned) {
        let data = aligned.data().cast_mut().cast();
        described.push(data, tensor.dtype, CPU, tensor.sizes.iter().map(wide));
    }
    let named = names.iter().zip(described.finish());
    let named: Vec<AotiNamedTensor> =
        named.map(|(name, tensor)| AotiNamedTensor { name: name.as_ptr(), tensor: *tensor }).collect();
    let context = AotiContext {
        parallel_for: if threads > 1 { Some(parallel_for) } else { None },
        pool: ptr::from_ref(&executor).cast_mut().cast(),
        threads,
        fork_join_ns: fork_join_ns(executor, threads),
        stream: ptr::null_mut(),
        on_kernel: None,
        on_kernel_arg: ptr::null_mut(),
        seed: 0,
        offset: 0,
        on_time: None,
        on_time_arg: ptr::null_mut(),
        allocate_output: None,
        allocate_output_arg: ptr::null_mut(),
        communicator: ptr::null(),
    };
    let mut listener = Listener { progress, findings: Vec::new(), panic: None };
    let options = AotiPrepareOptions {
        context: &raw const context,
        progress: listener.progress.is_some().then_some(on_progress as _),
        finding: Some(on_finding),
        arg: (&raw mut listener).cast(),
    };
    // SAFETY: tensors are described by slices of their lengths, which live as long as the call; weights and workspace
    // are as long as the library wants them, aligned, and borrowed by nobody else; the callbacks get what they expect.
    let done = call(|error| unsafe {
        prepare_weights(
            named.as_ptr(),
            named.len() as i32,
            weights.as_mut_ptr().cast(),
            weights.capacity() as i64,
            workspace.as_mut_ptr().cast(),
            workspace.capacity() as i64,
            &raw const options,
            error,
        )
    });
    if let Some(panic) = listener.panic {
        resume_unwind(panic);
    }
    if !listener.findings.is_empty() {
        return Err(refuse(info, &listener.findings));
    }
    done?;
    Ok(Weights::from_buffer(weights, weights_bytes))
}

/// The bytes of a tensor where its elements may lie: files pack them more tightly.
enum Aligned<'a> {
    Given(&'a [u8]),
    Copied(Buffer),
}

impl<'a> Aligned<'a> {
    fn new(tensor: &NamedTensor<'a>) -> Result<Aligned<'a>, Error> {
        if tensor.bytes.as_ptr().addr() % tensor.dtype.size() == 0 {
            return Ok(Aligned::Given(tensor.bytes));
        }
        let mut copy = Buffer::new();
        copy.reserve(tensor.bytes.len())?;
        copy.elements_mut::<u8>(tensor.bytes.len()).copy_from_slice(tensor.bytes);
        Ok(Aligned::Copied(copy))
    }

    fn data(&self) -> *const u8 {
        match self {
            Aligned::Given(bytes) => bytes.as_ptr(),
            Aligned::Copied(buffer) => buffer.as_ptr(),
        }
    }
}

unsafe extern "C" fn on_progress(arg: *mut c_void, done: i64, total: i64) {
    // SAFETY: `arg` is the listener of the call under way, which the library hands to one callback at a time.
    let listener = unsafe { &mut *arg.cast::<Listener<'_>>() };
    let Some(progress) = listener.progress.as_mut().filter(|_| listener.panic.is_none()) else { return };
    let told = catch_unwind(AssertUnwindSafe(|| progress(done.max(0) as u64, total.max(0) as u64)));
    listener.panic = told.err();
}

unsafe extern "C" fn on_finding(arg: *mut c_void, message: *const c_char) {
    // SAFETY: as above.
    let listener = unsafe { &mut *arg.cast::<Listener<'_>>() };
    if !message.is_null() {
        // SAFETY: the library gives a string that ends with zero and lives for the call.
        let message = unsafe { CStr::from_ptr(message) };
        listener.findings.push(message.to_string_lossy().into_owned());
    }
}
