//! Rust mirror of the C interface, `include/aoti/abi.h`: layouts only, no behaviour.
//!
//! Written by `cargo xtask regenerate`; change the header instead.

pub const AOTI_ABI_VERSION: u32 = 4;
pub const AOTI_ALIGNMENT: u32 = 64;
pub const AOTI_MESSAGE_BYTES: u32 = 256;
pub const AOTI_BOOL: AotiDType = 0;
pub const AOTI_U8: AotiDType = 1;
pub const AOTI_I8: AotiDType = 2;
pub const AOTI_I16: AotiDType = 3;
pub const AOTI_I32: AotiDType = 4;
pub const AOTI_I64: AotiDType = 5;
pub const AOTI_F16: AotiDType = 6;
pub const AOTI_BF16: AotiDType = 7;
pub const AOTI_F32: AotiDType = 8;
pub const AOTI_F64: AotiDType = 9;
pub const AOTI_U16: AotiDType = 10;
pub const AOTI_U32: AotiDType = 11;
pub const AOTI_U64: AotiDType = 12;
pub const AOTI_F8E4M3FN: AotiDType = 13;
pub const AOTI_F8E5M2: AotiDType = 14;
pub const AOTI_F8E4M3FNUZ: AotiDType = 15;
pub const AOTI_F8E5M2FNUZ: AotiDType = 16;
pub const AOTI_F8E8M0FNU: AotiDType = 17;
pub const AOTI_C32: AotiDType = 18;
pub const AOTI_C64: AotiDType = 19;
pub const AOTI_C128: AotiDType = 20;
pub type AotiDType = ::core::ffi::c_uint;
pub const AOTI_OK: AotiStatus = 0;
pub const AOTI_ERROR_NULL: AotiStatus = 1;
pub const AOTI_ERROR_COUNT: AotiStatus = 2;
pub const AOTI_ERROR_DTYPE: AotiStatus = 3;
pub const AOTI_ERROR_RANK: AotiStatus = 4;
pub const AOTI_ERROR_SIZE: AotiStatus = 5;
pub const AOTI_ERROR_RANGE: AotiStatus = 6;
pub const AOTI_ERROR_GUARD: AotiStatus = 7;
pub const AOTI_ERROR_STRIDE: AotiStatus = 8;
pub const AOTI_ERROR_ALIGNMENT: AotiStatus = 9;
pub const AOTI_ERROR_WORKSPACE: AotiStatus = 10;
pub const AOTI_ERROR_WEIGHTS: AotiStatus = 11;
pub const AOTI_ERROR_CPU: AotiStatus = 12;
pub const AOTI_ERROR_INDEX: AotiStatus = 13;
pub const AOTI_ERROR_ASSERT: AotiStatus = 14;
pub const AOTI_ERROR_MEMORY: AotiStatus = 15;
pub const AOTI_ERROR_DEVICE: AotiStatus = 16;
pub const AOTI_ERROR_OPERATOR: AotiStatus = 17;
pub const AOTI_ERROR_RANKS: AotiStatus = 18;
pub type AotiStatus = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiError {
    pub code: i32,
    pub message: [::core::ffi::c_char; 256usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiError"][::core::mem::size_of::<AotiError>() - 260usize];
    ["Alignment of AotiError"][::core::mem::align_of::<AotiError>() - 4usize];
    [
        "Offset of field: AotiError::code",
    ][::core::mem::offset_of!(AotiError, code) - 0usize];
    [
        "Offset of field: AotiError::message",
    ][::core::mem::offset_of!(AotiError, message) - 4usize];
};
pub const AOTI_CPU: AotiDeviceKind = 0;
pub const AOTI_CUDA: AotiDeviceKind = 1;
pub const AOTI_ROCM: AotiDeviceKind = 2;
pub type AotiDeviceKind = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiDevice {
    pub kind: i32,
    pub index: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiDevice"][::core::mem::size_of::<AotiDevice>() - 8usize];
    ["Alignment of AotiDevice"][::core::mem::align_of::<AotiDevice>() - 4usize];
    [
        "Offset of field: AotiDevice::kind",
    ][::core::mem::offset_of!(AotiDevice, kind) - 0usize];
    [
        "Offset of field: AotiDevice::index",
    ][::core::mem::offset_of!(AotiDevice, index) - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiTensor {
    pub data: *mut ::core::ffi::c_void,
    pub sizes: *const i64,
    pub strides: *const i64,
    pub rank: i32,
    pub dtype: i32,
    pub device: AotiDevice,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiTensor"][::core::mem::size_of::<AotiTensor>() - 40usize];
    ["Alignment of AotiTensor"][::core::mem::align_of::<AotiTensor>() - 8usize];
    [
        "Offset of field: AotiTensor::data",
    ][::core::mem::offset_of!(AotiTensor, data) - 0usize];
    [
        "Offset of field: AotiTensor::sizes",
    ][::core::mem::offset_of!(AotiTensor, sizes) - 8usize];
    [
        "Offset of field: AotiTensor::strides",
    ][::core::mem::offset_of!(AotiTensor, strides) - 16usize];
    [
        "Offset of field: AotiTensor::rank",
    ][::core::mem::offset_of!(AotiTensor, rank) - 24usize];
    [
        "Offset of field: AotiTensor::dtype",
    ][::core::mem::offset_of!(AotiTensor, dtype) - 28usize];
    [
        "Offset of field: AotiTensor::device",
    ][::core::mem::offset_of!(AotiTensor, device) - 32usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiTensors {
    pub data: *const AotiTensor,
    pub count: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiTensors"][::core::mem::size_of::<AotiTensors>() - 16usize];
    ["Alignment of AotiTensors"][::core::mem::align_of::<AotiTensors>() - 8usize];
    [
        "Offset of field: AotiTensors::data",
    ][::core::mem::offset_of!(AotiTensors, data) - 0usize];
    [
        "Offset of field: AotiTensors::count",
    ][::core::mem::offset_of!(AotiTensors, count) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiInts {
    pub data: *const i64,
    pub count: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiInts"][::core::mem::size_of::<AotiInts>() - 16usize];
    ["Alignment of AotiInts"][::core::mem::align_of::<AotiInts>() - 8usize];
    [
        "Offset of field: AotiInts::data",
    ][::core::mem::offset_of!(AotiInts, data) - 0usize];
    [
        "Offset of field: AotiInts::count",
    ][::core::mem::offset_of!(AotiInts, count) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiFloats {
    pub data: *const f64,
    pub count: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiFloats"][::core::mem::size_of::<AotiFloats>() - 16usize];
    ["Alignment of AotiFloats"][::core::mem::align_of::<AotiFloats>() - 8usize];
    [
        "Offset of field: AotiFloats::data",
    ][::core::mem::offset_of!(AotiFloats, data) - 0usize];
    [
        "Offset of field: AotiFloats::count",
    ][::core::mem::offset_of!(AotiFloats, count) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiBools {
    pub data: *const u8,
    pub count: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiBools"][::core::mem::size_of::<AotiBools>() - 16usize];
    ["Alignment of AotiBools"][::core::mem::align_of::<AotiBools>() - 8usize];
    [
        "Offset of field: AotiBools::data",
    ][::core::mem::offset_of!(AotiBools, data) - 0usize];
    [
        "Offset of field: AotiBools::count",
    ][::core::mem::offset_of!(AotiBools, count) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiDimInfo {
    pub expression: *const ::core::ffi::c_char,
    pub min: i64,
    pub max: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiDimInfo"][::core::mem::size_of::<AotiDimInfo>() - 24usize];
    ["Alignment of AotiDimInfo"][::core::mem::align_of::<AotiDimInfo>() - 8usize];
    [
        "Offset of field: AotiDimInfo::expression",
    ][::core::mem::offset_of!(AotiDimInfo, expression) - 0usize];
    [
        "Offset of field: AotiDimInfo::min",
    ][::core::mem::offset_of!(AotiDimInfo, min) - 8usize];
    [
        "Offset of field: AotiDimInfo::max",
    ][::core::mem::offset_of!(AotiDimInfo, max) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiValueInfo {
    pub name: *const ::core::ffi::c_char,
    pub dtype: i32,
    pub rank: i32,
    pub dims: *const AotiDimInfo,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiValueInfo"][::core::mem::size_of::<AotiValueInfo>() - 24usize];
    ["Alignment of AotiValueInfo"][::core::mem::align_of::<AotiValueInfo>() - 8usize];
    [
        "Offset of field: AotiValueInfo::name",
    ][::core::mem::offset_of!(AotiValueInfo, name) - 0usize];
    [
        "Offset of field: AotiValueInfo::dtype",
    ][::core::mem::offset_of!(AotiValueInfo, dtype) - 8usize];
    [
        "Offset of field: AotiValueInfo::rank",
    ][::core::mem::offset_of!(AotiValueInfo, rank) - 12usize];
    [
        "Offset of field: AotiValueInfo::dims",
    ][::core::mem::offset_of!(AotiValueInfo, dims) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiConstantInfo {
    pub name: *const ::core::ffi::c_char,
    pub sizes: *const i64,
    pub dtype: i32,
    pub rank: i32,
    pub tied_to: i32,
    pub is_read: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiConstantInfo"][::core::mem::size_of::<AotiConstantInfo>() - 32usize];
    [
        "Alignment of AotiConstantInfo",
    ][::core::mem::align_of::<AotiConstantInfo>() - 8usize];
    [
        "Offset of field: AotiConstantInfo::name",
    ][::core::mem::offset_of!(AotiConstantInfo, name) - 0usize];
    [
        "Offset of field: AotiConstantInfo::sizes",
    ][::core::mem::offset_of!(AotiConstantInfo, sizes) - 8usize];
    [
        "Offset of field: AotiConstantInfo::dtype",
    ][::core::mem::offset_of!(AotiConstantInfo, dtype) - 16usize];
    [
        "Offset of field: AotiConstantInfo::rank",
    ][::core::mem::offset_of!(AotiConstantInfo, rank) - 20usize];
    [
        "Offset of field: AotiConstantInfo::tied_to",
    ][::core::mem::offset_of!(AotiConstantInfo, tied_to) - 24usize];
    [
        "Offset of field: AotiConstantInfo::is_read",
    ][::core::mem::offset_of!(AotiConstantInfo, is_read) - 28usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiKernelInfo {
    pub name: *const ::core::ffi::c_char,
    pub calls: *const ::core::ffi::c_char,
    pub source: *const ::core::ffi::c_char,
    pub module: *const ::core::ffi::c_char,
    pub outputs: *const AotiValueInfo,
    pub n_outputs: i32,
    pub device: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiKernelInfo"][::core::mem::size_of::<AotiKernelInfo>() - 48usize];
    ["Alignment of AotiKernelInfo"][::core::mem::align_of::<AotiKernelInfo>() - 8usize];
    [
        "Offset of field: AotiKernelInfo::name",
    ][::core::mem::offset_of!(AotiKernelInfo, name) - 0usize];
    [
        "Offset of field: AotiKernelInfo::calls",
    ][::core::mem::offset_of!(AotiKernelInfo, calls) - 8usize];
    [
        "Offset of field: AotiKernelInfo::source",
    ][::core::mem::offset_of!(AotiKernelInfo, source) - 16usize];
    [
        "Offset of field: AotiKernelInfo::module",
    ][::core::mem::offset_of!(AotiKernelInfo, module) - 24usize];
    [
        "Offset of field: AotiKernelInfo::outputs",
    ][::core::mem::offset_of!(AotiKernelInfo, outputs) - 32usize];
    [
        "Offset of field: AotiKernelInfo::n_outputs",
    ][::core::mem::offset_of!(AotiKernelInfo, n_outputs) - 40usize];
    [
        "Offset of field: AotiKernelInfo::device",
    ][::core::mem::offset_of!(AotiKernelInfo, device) - 44usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiModelInfo {
    pub name: *const ::core::ffi::c_char,
    pub compiler: *const ::core::ffi::c_char,
    pub n_inputs: i32,
    pub n_outputs: i32,
    pub n_constants: i32,
    pub n_states: i32,
    pub inputs: *const AotiValueInfo,
    pub outputs: *const AotiValueInfo,
    pub constants: *const AotiConstantInfo,
    pub states: *const AotiValueInfo,
    pub weights_bytes: i64,
    pub state_bytes: i64,
    pub kernels: *const AotiKernelInfo,
    pub n_kernels: i32,
    pub n_collectives: i32,
    pub library_digest: *const ::core::ffi::c_char,
    pub weights_digest: *const ::core::ffi::c_char,
    pub state_offsets: *const i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiModelInfo"][::core::mem::size_of::<AotiModelInfo>() - 120usize];
    ["Alignment of AotiModelInfo"][::core::mem::align_of::<AotiModelInfo>() - 8usize];
    [
        "Offset of field: AotiModelInfo::name",
    ][::core::mem::offset_of!(AotiModelInfo, name) - 0usize];
    [
        "Offset of field: AotiModelInfo::compiler",
    ][::core::mem::offset_of!(AotiModelInfo, compiler) - 8usize];
    [
        "Offset of field: AotiModelInfo::n_inputs",
    ][::core::mem::offset_of!(AotiModelInfo, n_inputs) - 16usize];
    [
        "Offset of field: AotiModelInfo::n_outputs",
    ][::core::mem::offset_of!(AotiModelInfo, n_outputs) - 20usize];
    [
        "Offset of field: AotiModelInfo::n_constants",
    ][::core::mem::offset_of!(AotiModelInfo, n_constants) - 24usize];
    [
        "Offset of field: AotiModelInfo::n_states",
    ][::core::mem::offset_of!(AotiModelInfo, n_states) - 28usize];
    [
        "Offset of field: AotiModelInfo::inputs",
    ][::core::mem::offset_of!(AotiModelInfo, inputs) - 32usize];
    [
        "Offset of field: AotiModelInfo::outputs",
    ][::core::mem::offset_of!(AotiModelInfo, outputs) - 40usize];
    [
        "Offset of field: AotiModelInfo::constants",
    ][::core::mem::offset_of!(AotiModelInfo, constants) - 48usize];
    [
        "Offset of field: AotiModelInfo::states",
    ][::core::mem::offset_of!(AotiModelInfo, states) - 56usize];
    [
        "Offset of field: AotiModelInfo::weights_bytes",
    ][::core::mem::offset_of!(AotiModelInfo, weights_bytes) - 64usize];
    [
        "Offset of field: AotiModelInfo::state_bytes",
    ][::core::mem::offset_of!(AotiModelInfo, state_bytes) - 72usize];
    [
        "Offset of field: AotiModelInfo::kernels",
    ][::core::mem::offset_of!(AotiModelInfo, kernels) - 80usize];
    [
        "Offset of field: AotiModelInfo::n_kernels",
    ][::core::mem::offset_of!(AotiModelInfo, n_kernels) - 88usize];
    [
        "Offset of field: AotiModelInfo::n_collectives",
    ][::core::mem::offset_of!(AotiModelInfo, n_collectives) - 92usize];
    [
        "Offset of field: AotiModelInfo::library_digest",
    ][::core::mem::offset_of!(AotiModelInfo, library_digest) - 96usize];
    [
        "Offset of field: AotiModelInfo::weights_digest",
    ][::core::mem::offset_of!(AotiModelInfo, weights_digest) - 104usize];
    [
        "Offset of field: AotiModelInfo::state_offsets",
    ][::core::mem::offset_of!(AotiModelInfo, state_offsets) - 112usize];
};
pub type AotiParallelBody = ::core::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::core::ffi::c_void,
        begin: i64,
        end: i64,
        worker: i32,
    ),
>;
pub const AOTI_KERNEL_BEGIN: AotiKernelPhase = 0;
pub const AOTI_KERNEL_END: AotiKernelPhase = 1;
pub type AotiKernelPhase = ::core::ffi::c_uint;
pub type AotiKernelCallback = ::core::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::core::ffi::c_void,
        kernel: i32,
        phase: i32,
        outputs: *const AotiTensor,
    ),
>;
pub type AotiTimeCallback = ::core::option::Option<
    unsafe extern "C" fn(arg: *mut ::core::ffi::c_void, kernel: i32, microseconds: f64),
>;
pub type AotiOutputCallback = ::core::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::core::ffi::c_void,
        output: i32,
        sizes: *const i64,
        bytes: i64,
    ) -> *mut ::core::ffi::c_void,
>;
pub const AOTI_ALL_REDUCE: AotiCollectiveKind = 0;
pub const AOTI_ALL_GATHER: AotiCollectiveKind = 1;
pub const AOTI_REDUCE_SCATTER: AotiCollectiveKind = 2;
pub const AOTI_ALL_TO_ALL: AotiCollectiveKind = 3;
pub const AOTI_BROADCAST: AotiCollectiveKind = 4;
pub type AotiCollectiveKind = ::core::ffi::c_uint;
pub const AOTI_SUM: AotiReduction = 0;
pub const AOTI_AVERAGE: AotiReduction = 1;
pub const AOTI_PRODUCT: AotiReduction = 2;
pub const AOTI_MIN: AotiReduction = 3;
pub const AOTI_MAX: AotiReduction = 4;
pub const AOTI_BITS_AND: AotiReduction = 5;
pub const AOTI_BITS_OR: AotiReduction = 6;
pub const AOTI_BITS_XOR: AotiReduction = 7;
pub type AotiReduction = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiCollective {
    pub kind: i32,
    pub reduction: i32,
    pub dtype: i32,
    pub ranks: i32,
    pub root: i32,
    pub device: AotiDevice,
    pub group: *const ::core::ffi::c_char,
    pub input: *const ::core::ffi::c_void,
    pub input_count: i64,
    pub output: *mut ::core::ffi::c_void,
    pub output_count: i64,
    pub send: *const i64,
    pub receive: *const i64,
    pub stream: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiCollective"][::core::mem::size_of::<AotiCollective>() - 96usize];
    ["Alignment of AotiCollective"][::core::mem::align_of::<AotiCollective>() - 8usize];
    [
        "Offset of field: AotiCollective::kind",
    ][::core::mem::offset_of!(AotiCollective, kind) - 0usize];
    [
        "Offset of field: AotiCollective::reduction",
    ][::core::mem::offset_of!(AotiCollective, reduction) - 4usize];
    [
        "Offset of field: AotiCollective::dtype",
    ][::core::mem::offset_of!(AotiCollective, dtype) - 8usize];
    [
        "Offset of field: AotiCollective::ranks",
    ][::core::mem::offset_of!(AotiCollective, ranks) - 12usize];
    [
        "Offset of field: AotiCollective::root",
    ][::core::mem::offset_of!(AotiCollective, root) - 16usize];
    [
        "Offset of field: AotiCollective::device",
    ][::core::mem::offset_of!(AotiCollective, device) - 20usize];
    [
        "Offset of field: AotiCollective::group",
    ][::core::mem::offset_of!(AotiCollective, group) - 32usize];
    [
        "Offset of field: AotiCollective::input",
    ][::core::mem::offset_of!(AotiCollective, input) - 40usize];
    [
        "Offset of field: AotiCollective::input_count",
    ][::core::mem::offset_of!(AotiCollective, input_count) - 48usize];
    [
        "Offset of field: AotiCollective::output",
    ][::core::mem::offset_of!(AotiCollective, output) - 56usize];
    [
        "Offset of field: AotiCollective::output_count",
    ][::core::mem::offset_of!(AotiCollective, output_count) - 64usize];
    [
        "Offset of field: AotiCollective::send",
    ][::core::mem::offset_of!(AotiCollective, send) - 72usize];
    [
        "Offset of field: AotiCollective::receive",
    ][::core::mem::offset_of!(AotiCollective, receive) - 80usize];
    [
        "Offset of field: AotiCollective::stream",
    ][::core::mem::offset_of!(AotiCollective, stream) - 88usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiCommunicator {
    pub exchange: ::core::option::Option<
        unsafe extern "C" fn(
            arg: *mut ::core::ffi::c_void,
            collective: *const AotiCollective,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub poll: ::core::option::Option<
        unsafe extern "C" fn(
            arg: *mut ::core::ffi::c_void,
            waited: i64,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub arg: *mut ::core::ffi::c_void,
    pub id: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiCommunicator"][::core::mem::size_of::<AotiCommunicator>() - 32usize];
    [
        "Alignment of AotiCommunicator",
    ][::core::mem::align_of::<AotiCommunicator>() - 8usize];
    [
        "Offset of field: AotiCommunicator::exchange",
    ][::core::mem::offset_of!(AotiCommunicator, exchange) - 0usize];
    [
        "Offset of field: AotiCommunicator::poll",
    ][::core::mem::offset_of!(AotiCommunicator, poll) - 8usize];
    [
        "Offset of field: AotiCommunicator::arg",
    ][::core::mem::offset_of!(AotiCommunicator, arg) - 16usize];
    [
        "Offset of field: AotiCommunicator::id",
    ][::core::mem::offset_of!(AotiCommunicator, id) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiContext {
    pub parallel_for: ::core::option::Option<
        unsafe extern "C" fn(
            pool: *mut ::core::ffi::c_void,
            n: i64,
            body: AotiParallelBody,
            arg: *mut ::core::ffi::c_void,
        ),
    >,
    pub pool: *mut ::core::ffi::c_void,
    pub threads: i32,
    pub fork_join_ns: i32,
    pub stream: *mut ::core::ffi::c_void,
    pub on_kernel: AotiKernelCallback,
    pub on_kernel_arg: *mut ::core::ffi::c_void,
    pub seed: u64,
    pub offset: u64,
    pub on_time: AotiTimeCallback,
    pub on_time_arg: *mut ::core::ffi::c_void,
    pub allocate_output: AotiOutputCallback,
    pub allocate_output_arg: *mut ::core::ffi::c_void,
    pub communicator: *const AotiCommunicator,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiContext"][::core::mem::size_of::<AotiContext>() - 104usize];
    ["Alignment of AotiContext"][::core::mem::align_of::<AotiContext>() - 8usize];
    [
        "Offset of field: AotiContext::parallel_for",
    ][::core::mem::offset_of!(AotiContext, parallel_for) - 0usize];
    [
        "Offset of field: AotiContext::pool",
    ][::core::mem::offset_of!(AotiContext, pool) - 8usize];
    [
        "Offset of field: AotiContext::threads",
    ][::core::mem::offset_of!(AotiContext, threads) - 16usize];
    [
        "Offset of field: AotiContext::fork_join_ns",
    ][::core::mem::offset_of!(AotiContext, fork_join_ns) - 20usize];
    [
        "Offset of field: AotiContext::stream",
    ][::core::mem::offset_of!(AotiContext, stream) - 24usize];
    [
        "Offset of field: AotiContext::on_kernel",
    ][::core::mem::offset_of!(AotiContext, on_kernel) - 32usize];
    [
        "Offset of field: AotiContext::on_kernel_arg",
    ][::core::mem::offset_of!(AotiContext, on_kernel_arg) - 40usize];
    [
        "Offset of field: AotiContext::seed",
    ][::core::mem::offset_of!(AotiContext, seed) - 48usize];
    [
        "Offset of field: AotiContext::offset",
    ][::core::mem::offset_of!(AotiContext, offset) - 56usize];
    [
        "Offset of field: AotiContext::on_time",
    ][::core::mem::offset_of!(AotiContext, on_time) - 64usize];
    [
        "Offset of field: AotiContext::on_time_arg",
    ][::core::mem::offset_of!(AotiContext, on_time_arg) - 72usize];
    [
        "Offset of field: AotiContext::allocate_output",
    ][::core::mem::offset_of!(AotiContext, allocate_output) - 80usize];
    [
        "Offset of field: AotiContext::allocate_output_arg",
    ][::core::mem::offset_of!(AotiContext, allocate_output_arg) - 88usize];
    [
        "Offset of field: AotiContext::communicator",
    ][::core::mem::offset_of!(AotiContext, communicator) - 96usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiCreateOptions {
    pub weights: *const ::core::ffi::c_void,
    pub weights_bytes: i64,
    pub cpu_level: i32,
    pub reserved: i32,
    pub device: AotiDevice,
    pub device_context: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiCreateOptions"][::core::mem::size_of::<AotiCreateOptions>() - 40usize];
    [
        "Alignment of AotiCreateOptions",
    ][::core::mem::align_of::<AotiCreateOptions>() - 8usize];
    [
        "Offset of field: AotiCreateOptions::weights",
    ][::core::mem::offset_of!(AotiCreateOptions, weights) - 0usize];
    [
        "Offset of field: AotiCreateOptions::weights_bytes",
    ][::core::mem::offset_of!(AotiCreateOptions, weights_bytes) - 8usize];
    [
        "Offset of field: AotiCreateOptions::cpu_level",
    ][::core::mem::offset_of!(AotiCreateOptions, cpu_level) - 16usize];
    [
        "Offset of field: AotiCreateOptions::reserved",
    ][::core::mem::offset_of!(AotiCreateOptions, reserved) - 20usize];
    [
        "Offset of field: AotiCreateOptions::device",
    ][::core::mem::offset_of!(AotiCreateOptions, device) - 24usize];
    [
        "Offset of field: AotiCreateOptions::device_context",
    ][::core::mem::offset_of!(AotiCreateOptions, device_context) - 32usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiNamedTensor {
    pub name: *const ::core::ffi::c_char,
    pub tensor: AotiTensor,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiNamedTensor"][::core::mem::size_of::<AotiNamedTensor>() - 48usize];
    [
        "Alignment of AotiNamedTensor",
    ][::core::mem::align_of::<AotiNamedTensor>() - 8usize];
    [
        "Offset of field: AotiNamedTensor::name",
    ][::core::mem::offset_of!(AotiNamedTensor, name) - 0usize];
    [
        "Offset of field: AotiNamedTensor::tensor",
    ][::core::mem::offset_of!(AotiNamedTensor, tensor) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiPrepareOptions {
    pub context: *const AotiContext,
    pub progress: ::core::option::Option<
        unsafe extern "C" fn(arg: *mut ::core::ffi::c_void, done: i64, total: i64),
    >,
    pub finding: ::core::option::Option<
        unsafe extern "C" fn(
            arg: *mut ::core::ffi::c_void,
            message: *const ::core::ffi::c_char,
        ),
    >,
    pub arg: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    [
        "Size of AotiPrepareOptions",
    ][::core::mem::size_of::<AotiPrepareOptions>() - 32usize];
    [
        "Alignment of AotiPrepareOptions",
    ][::core::mem::align_of::<AotiPrepareOptions>() - 8usize];
    [
        "Offset of field: AotiPrepareOptions::context",
    ][::core::mem::offset_of!(AotiPrepareOptions, context) - 0usize];
    [
        "Offset of field: AotiPrepareOptions::progress",
    ][::core::mem::offset_of!(AotiPrepareOptions, progress) - 8usize];
    [
        "Offset of field: AotiPrepareOptions::finding",
    ][::core::mem::offset_of!(AotiPrepareOptions, finding) - 16usize];
    [
        "Offset of field: AotiPrepareOptions::arg",
    ][::core::mem::offset_of!(AotiPrepareOptions, arg) - 24usize];
};
pub const AOTI_PICKED: AotiVerdict = 0;
pub const AOTI_PASSED_OVER: AotiVerdict = 1;
pub const AOTI_CANNOT_RUN: AotiVerdict = 2;
pub type AotiVerdict = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiCandidate {
    pub name: *const ::core::ffi::c_char,
    pub device: i32,
    pub verdict: i32,
    pub reason: *const ::core::ffi::c_char,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiCandidate"][::core::mem::size_of::<AotiCandidate>() - 24usize];
    ["Alignment of AotiCandidate"][::core::mem::align_of::<AotiCandidate>() - 8usize];
    [
        "Offset of field: AotiCandidate::name",
    ][::core::mem::offset_of!(AotiCandidate, name) - 0usize];
    [
        "Offset of field: AotiCandidate::device",
    ][::core::mem::offset_of!(AotiCandidate, device) - 8usize];
    [
        "Offset of field: AotiCandidate::verdict",
    ][::core::mem::offset_of!(AotiCandidate, verdict) - 12usize];
    [
        "Offset of field: AotiCandidate::reason",
    ][::core::mem::offset_of!(AotiCandidate, reason) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiPlan {
    pub device: AotiDevice,
    pub level: *const ::core::ffi::c_char,
    pub candidates: *const AotiCandidate,
    pub n_candidates: i32,
    pub picked: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiPlan"][::core::mem::size_of::<AotiPlan>() - 32usize];
    ["Alignment of AotiPlan"][::core::mem::align_of::<AotiPlan>() - 8usize];
    [
        "Offset of field: AotiPlan::device",
    ][::core::mem::offset_of!(AotiPlan, device) - 0usize];
    [
        "Offset of field: AotiPlan::level",
    ][::core::mem::offset_of!(AotiPlan, level) - 8usize];
    [
        "Offset of field: AotiPlan::candidates",
    ][::core::mem::offset_of!(AotiPlan, candidates) - 16usize];
    [
        "Offset of field: AotiPlan::n_candidates",
    ][::core::mem::offset_of!(AotiPlan, n_candidates) - 24usize];
    [
        "Offset of field: AotiPlan::picked",
    ][::core::mem::offset_of!(AotiPlan, picked) - 28usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiModel {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiState {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiRun {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiProgram {
    pub name: *const ::core::ffi::c_char,
    pub api: *const AotiApi,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiProgram"][::core::mem::size_of::<AotiProgram>() - 16usize];
    ["Alignment of AotiProgram"][::core::mem::align_of::<AotiProgram>() - 8usize];
    [
        "Offset of field: AotiProgram::name",
    ][::core::mem::offset_of!(AotiProgram, name) - 0usize];
    [
        "Offset of field: AotiProgram::api",
    ][::core::mem::offset_of!(AotiProgram, api) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiStatePart {
    pub begin: i64,
    pub bytes: i64,
    pub stride: i64,
    pub count: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiStatePart"][::core::mem::size_of::<AotiStatePart>() - 32usize];
    ["Alignment of AotiStatePart"][::core::mem::align_of::<AotiStatePart>() - 8usize];
    [
        "Offset of field: AotiStatePart::begin",
    ][::core::mem::offset_of!(AotiStatePart, begin) - 0usize];
    [
        "Offset of field: AotiStatePart::bytes",
    ][::core::mem::offset_of!(AotiStatePart, bytes) - 8usize];
    [
        "Offset of field: AotiStatePart::stride",
    ][::core::mem::offset_of!(AotiStatePart, stride) - 16usize];
    [
        "Offset of field: AotiStatePart::count",
    ][::core::mem::offset_of!(AotiStatePart, count) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiApi {
    pub abi_version: u32,
    pub struct_bytes: u32,
    pub info: *const AotiModelInfo,
    pub create: ::core::option::Option<
        unsafe extern "C" fn(
            options: *const AotiCreateOptions,
            model: *mut *mut AotiModel,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub destroy: ::core::option::Option<unsafe extern "C" fn(model: *mut AotiModel)>,
    pub output_sizes: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            inputs: *const AotiTensor,
            n_inputs: i32,
            sizes: *const *mut i64,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub workspace_bytes: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            inputs: *const AotiTensor,
            n_inputs: i32,
            threads: i32,
            bytes: *mut i64,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub create_state: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            memory: *mut ::core::ffi::c_void,
            state: *mut *mut AotiState,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub reset_state: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            state: *mut AotiState,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub copy_state: ::core::option::Option<
        unsafe extern "C" fn(
            from: *const AotiState,
            memory: *mut ::core::ffi::c_void,
            state: *mut *mut AotiState,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub destroy_state: ::core::option::Option<
        unsafe extern "C" fn(state: *mut AotiState),
    >,
    pub run: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            inputs: *const AotiTensor,
            n_inputs: i32,
            outputs: *const AotiTensor,
            n_outputs: i32,
            sizes: *const *mut i64,
            state: *mut AotiState,
            workspace: *mut ::core::ffi::c_void,
            workspace_bytes: i64,
            context: *const AotiContext,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub prepare: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            inputs: *const AotiTensor,
            n_inputs: i32,
            threads: i32,
            workspace: *mut ::core::ffi::c_void,
            workspace_bytes: i64,
            run: *mut *mut AotiRun,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub submit: ::core::option::Option<
        unsafe extern "C" fn(
            run: *mut AotiRun,
            inputs: *const AotiTensor,
            n_inputs: i32,
            outputs: *const AotiTensor,
            n_outputs: i32,
            state: *mut AotiState,
            context: *const AotiContext,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub wait: ::core::option::Option<
        unsafe extern "C" fn(
            run: *mut AotiRun,
            sizes: *const *mut i64,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub release: ::core::option::Option<unsafe extern "C" fn(run: *mut AotiRun)>,
    pub plan: ::core::option::Option<
        unsafe extern "C" fn(model: *const AotiModel) -> *const AotiPlan,
    >,
    pub prepare_bytes: ::core::option::Option<unsafe extern "C" fn(threads: i32) -> i64>,
    pub prepare_weights: ::core::option::Option<
        unsafe extern "C" fn(
            tensors: *const AotiNamedTensor,
            n_tensors: i32,
            weights: *mut ::core::ffi::c_void,
            weights_bytes: i64,
            workspace: *mut ::core::ffi::c_void,
            workspace_bytes: i64,
            options: *const AotiPrepareOptions,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub allocate: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            bytes: i64,
            memory: *mut *mut ::core::ffi::c_void,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub deallocate: ::core::option::Option<
        unsafe extern "C" fn(model: *const AotiModel, memory: *mut ::core::ffi::c_void),
    >,
    pub copy: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            to: *mut ::core::ffi::c_void,
            to_device: AotiDevice,
            from: *const ::core::ffi::c_void,
            from_device: AotiDevice,
            bytes: i64,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub programs: *const AotiProgram,
    pub n_programs: i32,
    pub reserved: i32,
    pub assign_state: ::core::option::Option<
        unsafe extern "C" fn(
            to: *mut AotiState,
            from: *const AotiState,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub reset_state_part: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            state: *mut AotiState,
            part: *const AotiStatePart,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub read_state: ::core::option::Option<
        unsafe extern "C" fn(
            state: *const AotiState,
            part: *const AotiStatePart,
            to: *mut ::core::ffi::c_void,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub write_state: ::core::option::Option<
        unsafe extern "C" fn(
            state: *mut AotiState,
            part: *const AotiStatePart,
            from: *const ::core::ffi::c_void,
            error: *mut AotiError,
        ) -> i32,
    >,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of AotiApi"][::core::mem::size_of::<AotiApi>() - 216usize];
    ["Alignment of AotiApi"][::core::mem::align_of::<AotiApi>() - 8usize];
    [
        "Offset of field: AotiApi::abi_version",
    ][::core::mem::offset_of!(AotiApi, abi_version) - 0usize];
    [
        "Offset of field: AotiApi::struct_bytes",
    ][::core::mem::offset_of!(AotiApi, struct_bytes) - 4usize];
    ["Offset of field: AotiApi::info"][::core::mem::offset_of!(AotiApi, info) - 8usize];
    [
        "Offset of field: AotiApi::create",
    ][::core::mem::offset_of!(AotiApi, create) - 16usize];
    [
        "Offset of field: AotiApi::destroy",
    ][::core::mem::offset_of!(AotiApi, destroy) - 24usize];
    [
        "Offset of field: AotiApi::output_sizes",
    ][::core::mem::offset_of!(AotiApi, output_sizes) - 32usize];
    [
        "Offset of field: AotiApi::workspace_bytes",
    ][::core::mem::offset_of!(AotiApi, workspace_bytes) - 40usize];
    [
        "Offset of field: AotiApi::create_state",
    ][::core::mem::offset_of!(AotiApi, create_state) - 48usize];
    [
        "Offset of field: AotiApi::reset_state",
    ][::core::mem::offset_of!(AotiApi, reset_state) - 56usize];
    [
        "Offset of field: AotiApi::copy_state",
    ][::core::mem::offset_of!(AotiApi, copy_state) - 64usize];
    [
        "Offset of field: AotiApi::destroy_state",
    ][::core::mem::offset_of!(AotiApi, destroy_state) - 72usize];
    ["Offset of field: AotiApi::run"][::core::mem::offset_of!(AotiApi, run) - 80usize];
    [
        "Offset of field: AotiApi::prepare",
    ][::core::mem::offset_of!(AotiApi, prepare) - 88usize];
    [
        "Offset of field: AotiApi::submit",
    ][::core::mem::offset_of!(AotiApi, submit) - 96usize];
    [
        "Offset of field: AotiApi::wait",
    ][::core::mem::offset_of!(AotiApi, wait) - 104usize];
    [
        "Offset of field: AotiApi::release",
    ][::core::mem::offset_of!(AotiApi, release) - 112usize];
    [
        "Offset of field: AotiApi::plan",
    ][::core::mem::offset_of!(AotiApi, plan) - 120usize];
    [
        "Offset of field: AotiApi::prepare_bytes",
    ][::core::mem::offset_of!(AotiApi, prepare_bytes) - 128usize];
    [
        "Offset of field: AotiApi::prepare_weights",
    ][::core::mem::offset_of!(AotiApi, prepare_weights) - 136usize];
    [
        "Offset of field: AotiApi::allocate",
    ][::core::mem::offset_of!(AotiApi, allocate) - 144usize];
    [
        "Offset of field: AotiApi::deallocate",
    ][::core::mem::offset_of!(AotiApi, deallocate) - 152usize];
    [
        "Offset of field: AotiApi::copy",
    ][::core::mem::offset_of!(AotiApi, copy) - 160usize];
    [
        "Offset of field: AotiApi::programs",
    ][::core::mem::offset_of!(AotiApi, programs) - 168usize];
    [
        "Offset of field: AotiApi::n_programs",
    ][::core::mem::offset_of!(AotiApi, n_programs) - 176usize];
    [
        "Offset of field: AotiApi::reserved",
    ][::core::mem::offset_of!(AotiApi, reserved) - 180usize];
    [
        "Offset of field: AotiApi::assign_state",
    ][::core::mem::offset_of!(AotiApi, assign_state) - 184usize];
    [
        "Offset of field: AotiApi::reset_state_part",
    ][::core::mem::offset_of!(AotiApi, reset_state_part) - 192usize];
    [
        "Offset of field: AotiApi::read_state",
    ][::core::mem::offset_of!(AotiApi, read_state) - 200usize];
    [
        "Offset of field: AotiApi::write_state",
    ][::core::mem::offset_of!(AotiApi, write_state) - 208usize];
};
