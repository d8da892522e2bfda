//! Reads a model's static tables into owned Rust values.

use super::Api;
use super::abi::{AotiConstantInfo, AotiDimInfo, AotiModelInfo, AotiValueInfo};
use crate::{ConstantInfo, DType, DimInfo, Error, ErrorCode, ModelInfo, ValueInfo};
use std::{
    ffi::{CStr, c_char},
    slice,
};

/// # Safety
///
/// Every pointer in the tables is null with a count of zero, or valid for its count; strings end with zero.
pub(super) unsafe fn read(info: &AotiModelInfo, api: Api) -> Result<ModelInfo, Error> {
    // SAFETY: the caller vouches for every table.
    unsafe {
        Ok(ModelInfo {
            name: text(info.name),
            compiler: text(info.compiler),
            inputs: values(info.inputs, info.n_inputs)?,
            outputs: values(info.outputs, info.n_outputs)?,
            states: values(info.states, info.n_states)?,
            constants: table(info.constants, info.n_constants)
                .iter()
                .map(|constant| read_constant(constant))
                .collect::<Result<_, _>>()?,
            weights_bytes: length(info.weights_bytes)?,
            state_bytes: length(info.state_bytes)?,
            api: Some(api),
        })
    }
}

unsafe fn values(values: *const AotiValueInfo, count: i32) -> Result<Vec<ValueInfo>, Error> {
    // SAFETY: as for `read`.
    unsafe { table(values, count).iter().map(|value| read_value(value)).collect() }
}

unsafe fn read_value(value: &AotiValueInfo) -> Result<ValueInfo, Error> {
    // SAFETY: as for `read`.
    unsafe {
        Ok(ValueInfo {
            name: text(value.name),
            dtype: dtype(value.dtype)?,
            dims: table(value.dims, value.rank).iter().map(|dim| read_dim(dim)).collect(),
        })
    }
}

unsafe fn read_dim(dim: &AotiDimInfo) -> DimInfo {
    // SAFETY: as for `read`.
    let expression = (!dim.expression.is_null()).then(|| unsafe { text(dim.expression) });
    DimInfo { expression, min: dim.min, max: dim.max }
}

unsafe fn read_constant(constant: &AotiConstantInfo) -> Result<ConstantInfo, Error> {
    // SAFETY: as for `read`.
    unsafe {
        Ok(ConstantInfo {
            name: text(constant.name),
            dtype: dtype(constant.dtype)?,
            sizes: table(constant.sizes, constant.rank).to_vec(),
            tied_to: usize::try_from(constant.tied_to).ok(),
            is_read: constant.is_read != 0,
        })
    }
}

unsafe fn table<'a, T>(first: *const T, count: i32) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: as for `read`.
        Ok(count) if !first.is_null() => unsafe { slice::from_raw_parts(first, count) },
        _ => &[],
    }
}

unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as for `read`.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn dtype(code: i32) -> Result<DType, Error> {
    DType::from_code(code).ok_or_else(|| {
        Error::new(ErrorCode::Version, format!("the model uses an unknown element type {code}"))
    })
}

fn length(bytes: i64) -> Result<u64, Error> {
    u64::try_from(bytes).map_err(|_| Error::new(ErrorCode::Version, "the model gives a negative length"))
}
