//! Tensors that other libraries share without a copy, in the layout of DLPack 0.x (`dlpack.h`), which all of them know.

use super::view::AnyView;
use crate::{DType, Device, DynTensor, Error, ErrorCode};
use std::ffi::c_void;
use std::{fmt, ptr, ptr::NonNull};

/// `DLDevice`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct DLDevice {
    /// 1 for memory of the processor, 2 for CUDA, 10 for ROCm.
    pub device_type: i32,
    /// Number of the device.
    pub device_id: i32,
}

/// `DLDataType`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct DLDataType {
    /// Kind of number.
    pub code: u8,
    /// Bits of one element.
    pub bits: u8,
    /// Elements of a vector; 1.
    pub lanes: u16,
}

/// `DLTensor`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DLTensor {
    /// The allocation.
    pub data: *mut c_void,
    /// Where it lies.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// Sizes, outermost first.
    pub shape: *mut i64,
    /// Strides in elements; null for row-major.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `DLManagedTensor`.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// What the deleter needs.
    pub manager_ctx: *mut c_void,
    /// Frees all of it; may be null.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// Every element type beside DLPack's code for its kind.
const KINDS: [(DType, u8); 21] = [
    (DType::I8, 0),
    (DType::I16, 0),
    (DType::I32, 0),
    (DType::I64, 0),
    (DType::U8, 1),
    (DType::U16, 1),
    (DType::U32, 1),
    (DType::U64, 1),
    (DType::F16, 2),
    (DType::F32, 2),
    (DType::F64, 2),
    (DType::Bf16, 4),
    (DType::C32, 5),
    (DType::C64, 5),
    (DType::C128, 5),
    (DType::Bool, 6),
    (DType::F8E4M3Fn, 10),
    (DType::F8E4M3Fnuz, 11),
    (DType::F8E5M2, 12),
    (DType::F8E5M2Fnuz, 13),
    (DType::F8E8M0Fnu, 14),
];

fn data_type(dtype: DType) -> DLDataType {
    let code = KINDS.iter().find(|(known, _)| *known == dtype).map_or(0, |(_, code)| *code);
    DLDataType { code, bits: (8 * dtype.size()) as u8, lanes: 1 }
}

fn dtype_of(wanted: DLDataType) -> Result<DType, Error> {
    let found = KINDS.iter().map(|(dtype, _)| *dtype).find(|dtype| data_type(*dtype) == wanted);
    let DLDataType { code, bits, lanes } = wanted;
    let unknown =
        || format!("DLPack's element type {code} of {bits} bits and {lanes} lanes is not supported");
    found.ok_or_else(|| Error::new(ErrorCode::DType, unknown()))
}

fn device_of(device: DLDevice) -> Result<Device, Error> {
    let DLDevice { device_type, device_id } = device;
    Device::of_dlpack(device_type, device_id).ok_or_else(|| {
        Error::new(ErrorCode::Device, format!("DLPack's device type {device_type} is not supported"))
    })
}

/// A tensor of another library, which is told when this value is dropped.
pub struct Dlpack {
    raw: NonNull<DLManagedTensor>,
    data: *const c_void,
    device: Device,
    dtype: DType,
    sizes: Vec<usize>,
    /// `None` exactly for row-major contiguous tensors.
    strides: Option<Vec<usize>>,
}

// SAFETY: who made the value promised that the tensor and its deleter belong to no thread.
unsafe impl Send for Dlpack {}
// SAFETY: as above; a shared reference only reads.
unsafe impl Sync for Dlpack {}

impl Dlpack {
    /// Takes a tensor over: of PyTorch, the pointer in the capsule that `torch.utils.dlpack.to_dlpack` returns. Its deleter is
    /// called even if it is refused.
    ///
    /// # Errors
    /// Element types and devices that models do not know, strides below 0, strides in memory of a GPU, and elements that are
    /// not aligned.
    ///
    /// # Safety
    ///
    /// `raw` is a tensor that nobody else will delete; its elements stay in place and unchanged until then, are values of their
    /// type (a `bool` is 0 or 1), and it may be read and deleted on any thread.
    pub unsafe fn from_raw(raw: NonNull<DLManagedTensor>) -> Result<Dlpack, Error> {
        // SAFETY: the caller vouches for the tensor.
        let tensor = unsafe { raw.as_ref() }.dl_tensor;
        let (sizes, strides) = (Vec::new(), None);
        let mut own =
            Dlpack { raw, data: ptr::null(), device: Device::Cpu, dtype: DType::U8, sizes, strides };
        // From here on, an error drops `own`, which deletes the tensor.
        (own.device, own.dtype) = (device_of(tensor.device)?, dtype_of(tensor.dtype)?);
        let rank = usize::try_from(tensor.ndim).unwrap_or(0);
        // SAFETY: there are so many sizes, and so many strides if there are any.
        let numbers = |from: *const i64| unsafe {
            if rank == 0 { &[][..] } else { std::slice::from_raw_parts(from, rank) }
        };
        let sized = numbers(tensor.shape).iter().map(|&size| usize::try_from(size));
        own.sizes =
            sized.collect::<Result<_, _>>().map_err(|_| Error::new(ErrorCode::Size, "a size is below 0"))?;
        if rank > 0 && !tensor.strides.is_null() {
            let strides = numbers(tensor.strides);
            own.strides = own.strided(strides)?;
        }
        own.data = tensor.data.cast::<u8>().cast_const().wrapping_add(tensor.byte_offset as usize).cast();
        let is_empty = own.sizes.contains(&0);
        let align = own.dtype.part().unwrap_or(own.dtype).size();
        if is_empty {
            // There may be no memory at all.
            own.data = ptr::without_provenance(align);
            own.strides = None;
        } else if own.data.addr() % align != 0 || own.data.is_null() {
            return Err(Error::new(
                ErrorCode::Alignment,
                format!("the data is not aligned to {align} bytes"),
            ));
        }
        Ok(own)
    }

    /// Strides as views have them: none if they say what sizes say anyway.
    fn strided(&self, strides: &[i64]) -> Result<Option<Vec<usize>>, Error> {
        let (mut packed, mut is_packed) = (1usize, true);
        for (&size, &stride) in self.sizes.iter().zip(strides).rev() {
            // A stride over a single element leads nowhere.
            is_packed &= size == 1 || usize::try_from(stride).is_ok_and(|stride| stride == packed);
            packed = packed.saturating_mul(size);
        }
        if is_packed || packed == 0 {
            return Ok(None);
        }
        if self.device != Device::Cpu {
            return Err(Error::new(ErrorCode::Stride, "a tensor on a GPU must be row-major contiguous"));
        }
        let of = |(&size, &stride): (&usize, &i64)| if size == 1 { Ok(0) } else { usize::try_from(stride) };
        let strides = self.sizes.iter().zip(strides).map(of).collect::<Result<_, _>>();
        strides.map(Some).map_err(|_| Error::new(ErrorCode::Stride, "a stride is below 0"))
    }

    /// The tensor as an input of runs.
    pub fn view(&self) -> AnyView<'_> {
        // SAFETY: the tensor stays in place as long as `self`, and was checked when it was taken over.
        unsafe { AnyView::of_parts(self.device, self.dtype, &self.sizes, self.strides.as_deref(), self.data) }
    }
}

impl Drop for Dlpack {
    fn drop(&mut self) {
        // SAFETY: the tensor is alive until here, and this is the one call of its deleter.
        unsafe {
            if let Some(deleter) = self.raw.as_ref().deleter {
                deleter(self.raw.as_ptr());
            }
        }
    }
}

impl fmt::Debug for Dlpack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dlpack")
            .field("device", &self.device)
            .field("view", &self.view())
            .finish_non_exhaustive()
    }
}

/// What a tensor that was given away is kept by. The first field is what others see.
#[repr(C)]
struct Kept {
    managed: DLManagedTensor,
    tensor: DynTensor,
    /// Sizes, then strides.
    numbers: Vec<i64>,
}

unsafe extern "C" fn free(raw: *mut DLManagedTensor) {
    // SAFETY: the tensor is the first field of a box of `Kept`, and whoever has it deletes it once.
    drop(unsafe { Box::from_raw(raw.cast::<Kept>()) });
}

impl DynTensor {
    /// Gives the tensor to another library without a copy: a `DLManagedTensor` that belongs to whoever has the pointer, and is
    /// freed by its deleter.
    pub fn into_dlpack(self) -> NonNull<DLManagedTensor> {
        let sizes = self.sizes().iter().map(|&size| size as i64);
        let mut numbers: Vec<i64> = sizes.collect();
        let rank = numbers.len();
        numbers.extend(std::iter::repeat_n(1, rank));
        // Some readers want strides even where they say nothing new.
        for axis in (1..rank).rev() {
            numbers[rank + axis - 1] = numbers[rank + axis].saturating_mul(numbers[axis].max(1));
        }
        let dl_tensor = DLTensor {
            data: ptr::null_mut(),
            device: DLDevice { device_type: 1, device_id: 0 },
            ndim: rank as i32,
            dtype: data_type(self.dtype()),
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        };
        let managed = DLManagedTensor { dl_tensor, manager_ctx: ptr::null_mut(), deleter: Some(free) };
        let mut kept = Box::new(Kept { managed, tensor: self, numbers });
        let (data, numbers) = (kept.tensor.data_mut_ptr(), kept.numbers.as_mut_ptr());
        let shared = &mut kept.managed.dl_tensor;
        (shared.data, shared.shape, shared.strides) = (data.cast(), numbers, numbers.wrapping_add(rank));
        NonNull::from(Box::leak(kept)).cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;

    fn tensor() -> DynTensor {
        Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap().into_dyn()
    }

    #[test]
    fn layouts_are_those_of_the_header() {
        let wide = size_of::<usize>() == 8;
        assert_eq!(size_of::<DLTensor>(), if wide { 48 } else { 40 });
        assert_eq!(size_of::<DLManagedTensor>(), if wide { 64 } else { 48 });
        for (dtype, _) in KINDS {
            assert_eq!(dtype_of(data_type(dtype)).unwrap(), dtype);
        }
    }

    #[test]
    fn a_tensor_goes_out_and_comes_in_without_a_copy() {
        let raw = tensor().into_dlpack();
        // SAFETY: the tensor was just made.
        let data = unsafe { raw.as_ref() }.dl_tensor.data;
        // SAFETY: nobody else has it.
        let shared = unsafe { Dlpack::from_raw(raw) }.unwrap();
        assert_eq!((shared.data.addr(), shared.view().strides()), (data.addr(), None));
        assert_eq!(shared.view().to_tensor().unwrap(), tensor());
    }

    #[test]
    fn strides_are_kept_on_processors_and_refused_where_no_run_reads_them() {
        let altered = |change: fn(&mut DLTensor, &mut [i64])| {
            let mut raw = tensor().into_dlpack();
            // SAFETY: nobody else has it, and it has two sizes and two strides.
            unsafe {
                let shared = &mut raw.as_mut().dl_tensor;
                let numbers = std::slice::from_raw_parts_mut(shared.shape, 4);
                change(shared, numbers);
                Dlpack::from_raw(raw)
            }
        };
        let turned = altered(|_, numbers| numbers.copy_from_slice(&[3, 2, 1, 3])).unwrap();
        assert_eq!(
            turned.view().to_tensor().unwrap().as_slice(),
            Some(&[1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0][..])
        );
        let later = altered(|shared, numbers| {
            shared.byte_offset = 4;
            numbers.copy_from_slice(&[1, 2, 77, 1]);
        });
        assert_eq!(later.unwrap().view().to_tensor().unwrap().as_slice(), Some(&[2.0f32, 3.0][..]));
        let code = |change| altered(change).unwrap_err().code();
        assert_eq!(code(|_, numbers| numbers[3] = -1), ErrorCode::Stride);
        assert_eq!(code(|shared, _| shared.byte_offset = 1), ErrorCode::Alignment);
        assert_eq!(code(|shared, _| shared.dtype.lanes = 4), ErrorCode::DType);
        assert_eq!(code(|shared, _| shared.device.device_type = 7), ErrorCode::Device);
        let on_gpu = |shared: &mut DLTensor, numbers: &mut [i64]| {
            shared.device = DLDevice { device_type: 2, device_id: 1 };
            numbers.copy_from_slice(&[3, 2, 1, 3]);
        };
        assert_eq!(code(on_gpu), ErrorCode::Stride);
        let on_gpu = altered(|shared, _| shared.device = DLDevice { device_type: 2, device_id: 1 }).unwrap();
        assert_eq!(on_gpu.device, Device::Cuda(1));
        assert_eq!(on_gpu.view().to_tensor().unwrap_err().code(), ErrorCode::Device);
    }
}
