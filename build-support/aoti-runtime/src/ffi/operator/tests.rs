//! A Rust function, called as generated code calls it.

use super::*;
use crate::ffi::abi;

crate::operator! {
    signature = "TfuR";
    /// Adds a number to each element, on the threads of the run.
    fn test_shifted(x: TensorView<f32>, by: f64, mode: Option<&str>, y: TensorViewMut<f32>; threads) -> Result<(), String> {
        match mode {
            Some("fail") => return Err("asked to fail".to_owned()),
            Some("panic") => panic!("asked to panic"),
            Some("panic inside") => threads.for_each(8, |_, _| panic!("inside")),
            Some("bombs inside") => threads.for_each(8, |_, _| std::panic::panic_any(Bomb)),
            Some("bomb") => std::panic::panic_any(Bomb),
            _ => {}
        }
        let x = x.data();
        threads.for_each_part(y.into_data(), 2, |part, first| {
            for (k, y) in part.iter_mut().enumerate() {
                *y = x[first + k] + by as f32;
            }
        });
        Ok(())
    }
}

/// Panics whenever something happens to it.
struct Bomb;

impl Display for Bomb {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("shown")
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped")
        }
    }
}

/// As generated code declares it.
mod declared {
    use super::*;
    unsafe extern "C" {
        #[link_name = "aoti_operator_test_shifted_TfuR"]
        pub(super) fn test_shifted(
            x: *const AotiTensor,
            by: f64,
            mode: *const c_char,
            y: *const AotiTensor,
            context: *const AotiContext,
            error: *mut AotiError,
        ) -> i32;
    }
}

type Loop = unsafe extern "C" fn(*mut std::ffi::c_void, i64, abi::AotiParallelBody, *mut std::ffi::c_void);

fn context(parallel_for: Option<Loop>, threads: i32) -> AotiContext {
    AotiContext {
        parallel_for,
        pool: ptr::null_mut(),
        threads,
        fork_join_ns: 0,
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
    }
}

fn called(dtype: DType, mode: Option<&CStr>, threads: i32) -> Result<Vec<f32>, String> {
    let sizes = [5i64];
    let (x, mut y) = ([1f32, 2.0, 3.0, 4.0, 5.0], [0f32; 5]);
    let tensor = |data: *mut f32, dtype: DType| AotiTensor {
        data: data.cast(),
        sizes: sizes.as_ptr(),
        strides: ptr::null(),
        rank: 1,
        dtype: dtype.code(),
        device: abi::AotiDevice { kind: 0, index: 0 },
    };
    unsafe extern "C" fn backwards(
        _: *mut std::ffi::c_void,
        n: i64,
        body: abi::AotiParallelBody,
        arg: *mut std::ffi::c_void,
    ) {
        for part in (0..n).rev() {
            // SAFETY: what the loop runner of a run does.
            unsafe { body.expect("a body")(arg, part, part + 1, 0) };
        }
    }
    let context = context(Some(backwards), threads);
    let mut error = AotiError { code: 0, message: [0; abi::AOTI_MESSAGE_BYTES as usize] };
    let (input, output) = (tensor(x.as_ptr().cast_mut(), dtype), tensor(y.as_mut_ptr(), DType::F32));
    // SAFETY: as generated code calls it.
    let status = unsafe {
        declared::test_shifted(
            &input,
            0.5,
            mode.map_or(ptr::null(), CStr::as_ptr),
            &output,
            &context,
            &mut error,
        )
    };
    if status == 0 {
        return Ok(y.to_vec());
    }
    assert_eq!(status, abi::AOTI_ERROR_OPERATOR as i32);
    // SAFETY: messages end with a zero.
    Err(unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_string_lossy().into_owned())
}

#[test]
fn functions_get_what_is_passed() {
    for threads in [1, 3] {
        assert_eq!(called(DType::F32, None, threads), Ok(vec![1.5, 2.5, 3.5, 4.5, 5.5]));
    }
}

#[test]
#[cfg_attr(panic = "abort", ignore = "panics end the program")]
fn errors_and_panics_are_messages() {
    let said = |mode: &CStr, threads| called(DType::F32, Some(mode), threads).unwrap_err();
    assert_eq!(said(c"fail", 1), "asked to fail");
    assert_eq!(said(c"panic", 1), "the function panicked: asked to panic");
    assert_eq!(said(c"panic inside", 3), "the function panicked: inside");
    assert_eq!(called(DType::I32, None, 1).unwrap_err(), "`x` is i32, the function takes f32");
    assert_eq!(said(c"\xff", 1), "`mode` is no UTF-8");
}

#[test]
#[cfg_attr(panic = "abort", ignore = "panics end the program")]
fn whatever_panics_is_a_message() {
    let said = |mode: &CStr, threads| called(DType::F32, Some(mode), threads).unwrap_err();
    assert_eq!(said(c"bomb", 1), "the function panicked: with a value that is no text");
    assert_eq!(said(c"bombs inside", 3), "the function panicked: with a value that is no text");
    let fails = |function: fn() -> Result<(), Bomb>| {
        let context = context(None, 1);
        let mut error = AotiError { code: 0, message: [0; abi::AOTI_MESSAGE_BYTES as usize] };
        // SAFETY: both live as long as the call.
        let status = unsafe { run_operator(&context, &mut error, |_| Ok(function())) };
        assert_eq!(status, abi::AOTI_ERROR_OPERATOR as i32);
        // SAFETY: messages end with a zero.
        unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_string_lossy().into_owned()
    };
    assert_eq!(fails(|| Err(Bomb)), "the function panicked: shown");
}

#[test]
fn parts_cover_slices_of_elements_without_size() {
    let context = context(None, 1);
    // The last part of 8 ends behind the largest number.
    let mut all = vec![(); usize::MAX];
    let seen = Mutex::new(0);
    Threads(&context).for_each_part(&mut all, 1 << 3, |part, _| *seen.lock().unwrap() += part.len());
    assert_eq!(seen.into_inner().unwrap(), usize::MAX);
}

#[test]
fn bytes_that_are_no_bools_are_refused() {
    let received = |bytes: &[u8]| {
        let sizes = [bytes.len() as i64];
        let tensor = AotiTensor {
            data: bytes.as_ptr().cast_mut().cast(),
            sizes: sizes.as_ptr(),
            strides: ptr::null(),
            rank: 1,
            dtype: DType::Bool.code(),
            device: abi::AotiDevice { kind: 0, index: 0 },
        };
        // SAFETY: the tensor lives as long as the call.
        let view = unsafe { TensorView::<bool>::receive(&raw const tensor, "mask") };
        view.map(|view| view.data().to_vec()).map_err(|error| error.to_string())
    };
    assert_eq!(received(&[0, 1, 1]), Ok(vec![false, true, true]));
    assert_eq!(received(&[0, 165]), Err("`mask` holds a byte that is no bool".to_owned()));
}

#[test]
fn signatures_are_compared_letter_by_letter() {
    assert!(fits(b"TfuR", "TfuR"));
    assert!(!fits(b"TfuR", "TfsR") && !fits(b"TfuR", "TfuRR") && !fits(b"TfuR", "TfuRe"));
}
