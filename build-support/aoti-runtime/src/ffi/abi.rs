//! Rust mirror of the C interface, `include/aoti/abi.h`: layouts only, no behaviour.
//!
//! Written by `cargo xtask regenerate`; change the header instead.

pub const AOTI_ABI_VERSION: u32 = 2;
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
pub type AotiStatus = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiError {
    pub code: i32,
    pub message: [::core::ffi::c_char; 256usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
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
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiTensor {
    pub data: *mut ::core::ffi::c_void,
    pub sizes: *const i64,
    pub strides: *const i64,
    pub rank: i32,
    pub dtype: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of AotiTensor"][::core::mem::size_of::<AotiTensor>() - 32usize];
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
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiDimInfo {
    pub expression: *const ::core::ffi::c_char,
    pub min: i64,
    pub max: i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
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
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of AotiModelInfo"][::core::mem::size_of::<AotiModelInfo>() - 80usize];
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
};
pub type AotiParallelBody = ::core::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::core::ffi::c_void,
        begin: i64,
        end: i64,
        worker: i32,
    ),
>;
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
    pub reserved: i32,
    pub stream: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of AotiContext"][::core::mem::size_of::<AotiContext>() - 32usize];
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
        "Offset of field: AotiContext::reserved",
    ][::core::mem::offset_of!(AotiContext, reserved) - 20usize];
    [
        "Offset of field: AotiContext::stream",
    ][::core::mem::offset_of!(AotiContext, stream) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiCreateOptions {
    pub weights: *const ::core::ffi::c_void,
    pub weights_bytes: i64,
    pub cpu_level: i32,
    pub reserved: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of AotiCreateOptions"][::core::mem::size_of::<AotiCreateOptions>() - 24usize];
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
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiNamedTensor {
    pub name: *const ::core::ffi::c_char,
    pub tensor: AotiTensor,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of AotiNamedTensor"][::core::mem::size_of::<AotiNamedTensor>() - 40usize];
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
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct AotiModel {
    _unused: [u8; 0],
}
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
    pub init_state: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            state: *mut ::core::ffi::c_void,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub run: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const AotiModel,
            inputs: *const AotiTensor,
            n_inputs: i32,
            outputs: *const AotiTensor,
            n_outputs: i32,
            sizes: *const *mut i64,
            state: *mut ::core::ffi::c_void,
            workspace: *mut ::core::ffi::c_void,
            workspace_bytes: i64,
            context: *const AotiContext,
            error: *mut AotiError,
        ) -> i32,
    >,
    pub level: ::core::option::Option<
        unsafe extern "C" fn(model: *const AotiModel) -> *const ::core::ffi::c_char,
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
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of AotiApi"][::core::mem::size_of::<AotiApi>() - 88usize];
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
        "Offset of field: AotiApi::init_state",
    ][::core::mem::offset_of!(AotiApi, init_state) - 48usize];
    ["Offset of field: AotiApi::run"][::core::mem::offset_of!(AotiApi, run) - 56usize];
    [
        "Offset of field: AotiApi::level",
    ][::core::mem::offset_of!(AotiApi, level) - 64usize];
    [
        "Offset of field: AotiApi::prepare_bytes",
    ][::core::mem::offset_of!(AotiApi, prepare_bytes) - 72usize];
    [
        "Offset of field: AotiApi::prepare_weights",
    ][::core::mem::offset_of!(AotiApi, prepare_weights) - 80usize];
};
