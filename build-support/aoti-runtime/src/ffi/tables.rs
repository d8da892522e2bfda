//! Reads a model's static tables into owned Rust values.

use super::Api;
use super::abi::{
    self, AotiCandidate, AotiConstantInfo, AotiDimInfo, AotiKernelInfo, AotiModelInfo, AotiPlan,
    AotiValueInfo,
};
use super::model::{LoadOptions, Model};
use super::state::StateTensor;
use crate::{
    Candidate, ConstantInfo, DType, Device, DimInfo, Error, ErrorCode, KernelInfo, ModelInfo, Plan,
    ValueInfo, Verdict,
};
use std::{
    ffi::{CStr, c_char},
    slice,
    sync::Arc,
};

impl Model {
    /// Which of the library's codes runs, and why.
    pub fn plan(&self) -> Plan {
        let plan = self.api.table.plan.expect("the table was checked");
        let native = self.native();
        // SAFETY: the native model is alive, and its plan lives as long as it.
        unsafe {
            let plan = plan(native.raw.as_ptr());
            if plan.is_null() {
                Plan { level: String::new(), candidates: Vec::new() }
            } else {
                read_plan(&*plan)
            }
        }
    }

    /// The model at each level that this machine runs, with the same weights; once on a GPU.
    pub(crate) fn at_every_level(&self) -> impl Iterator<Item = (String, Result<Model, Error>)> + '_ {
        let levels = self.plan().candidates.into_iter().enumerate();
        let is_cpu = self.device() == Device::Cpu;
        let chosen = levels.filter(move |(_, one)| match one.verdict {
            Verdict::Picked => true,
            Verdict::PassedOver => is_cpu,
            Verdict::CannotRun => false,
        });
        chosen.map(move |(number, one)| {
            let cpu_level = if is_cpu { u16::try_from(number).ok() } else { self.cpu_level };
            let options = LoadOptions { weights: self.weights(), cpu_level, device: self.device() };
            (one.name, Model::from_checked_api(self.api.clone(), options))
        })
    }

    /// The code in use, such as `x86-64-v3`.
    pub fn level(&self) -> String {
        self.plan().level
    }
}

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
            kernels: table(info.kernels, info.n_kernels)
                .iter()
                .map(|kernel| read_kernel(kernel))
                .collect::<Result<_, _>>()?,
            weights_bytes: length(info.weights_bytes)?,
            state_bytes: length(info.state_bytes)?,
            state_tensors: state_tensors(info)?,
            collectives: usize::try_from(info.n_collectives).unwrap_or(0),
            library: text(info.library_digest),
            embedded_weights: (!info.weights_digest.is_null()).then(|| text(info.weights_digest)),
            api: Some(api),
        })
    }
}

unsafe fn values(values: *const AotiValueInfo, count: i32) -> Result<Vec<ValueInfo>, Error> {
    // SAFETY: as for `read`.
    unsafe { table(values, count).iter().map(|value| read_value(value)).collect() }
}

/// The tensors of a state, whose sizes are fixed.
unsafe fn state_tensors(info: &AotiModelInfo) -> Result<Arc<[StateTensor]>, Error> {
    // SAFETY: as for `read`.
    let offsets = unsafe { table(info.state_offsets, info.n_states) };
    // SAFETY: as for `read`.
    let values = unsafe { values(info.states, info.n_states) }?;
    let tensor = |(value, offset): (ValueInfo, &i64)| {
        let ValueInfo { name, dtype, dims } = value;
        let sizes = dims.iter().map(|dim| Ok(length(dim.max)? as usize)).collect::<Result<_, Error>>()?;
        Ok(StateTensor { name, dtype, sizes, offset: length(*offset)? as usize })
    };
    values.into_iter().zip(offsets).map(tensor).collect::<Result<Vec<_>, Error>>().map(Arc::from)
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

unsafe fn read_kernel(kernel: &AotiKernelInfo) -> Result<KernelInfo, Error> {
    // SAFETY: as for `read`.
    unsafe {
        let lines = |lines| text(lines).lines().map(str::to_owned).collect();
        Ok(KernelInfo {
            name: text(kernel.name),
            calls: lines(kernel.calls),
            source: lines(kernel.source),
            module: text(kernel.module),
            outputs: values(kernel.outputs, kernel.n_outputs)?,
        })
    }
}

/// # Safety
///
/// As for [`read`].
pub(super) unsafe fn read_plan(plan: &AotiPlan) -> Plan {
    let candidate = |candidate: &AotiCandidate| Candidate {
        // SAFETY: the caller vouches for every table.
        name: unsafe { text(candidate.name) },
        verdict: match u32::try_from(candidate.verdict) {
            Ok(abi::AOTI_PICKED) => Verdict::Picked,
            Ok(abi::AOTI_PASSED_OVER) => Verdict::PassedOver,
            _ => Verdict::CannotRun,
        },
        // SAFETY: as above.
        reason: unsafe { text(candidate.reason) },
    };
    // SAFETY: as above.
    unsafe {
        let candidates = table(plan.candidates, plan.n_candidates).iter().map(candidate).collect();
        Plan { level: text(plan.level), candidates }
    }
}

pub(super) unsafe fn table<'a, T>(first: *const T, count: i32) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: as for `read`.
        Ok(count) if !first.is_null() => unsafe { slice::from_raw_parts(first, count) },
        _ => &[],
    }
}

pub(super) unsafe fn text(text: *const c_char) -> String {
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
