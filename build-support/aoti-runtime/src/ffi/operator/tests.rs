//! A Rust function, called as generated code calls it.

use super::*;
use crate::ffi::abi;

crate::operator! {
    /// Adds a number to each element, on the threads of the run.
    fn test_shifted(x: TensorView<f32>, by: f64, mode: Option<&str>, y: TensorViewMut<f32>; threads) -> Result<(), String> {
        match mode {
            Some("fail") => return Err("asked to fail".to_owned()),
            Some("panic") => panic!("asked to panic"),
            Some("panic inside") => threads.for_each(8, |_, _| panic!("inside")),
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

/// As generated code declares it.
mod declared {
    use super::*;
    unsafe extern "C" {
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
    let context = AotiContext {
        parallel_for: Some(backwards),
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
    };
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
fn errors_and_panics_are_messages() {
    let said = |mode: &CStr, threads| called(DType::F32, Some(mode), threads).unwrap_err();
    assert_eq!(said(c"fail", 1), "asked to fail");
    assert_eq!(said(c"panic", 1), "the function panicked: asked to panic");
    assert_eq!(said(c"panic inside", 3), "the function panicked: inside");
    assert_eq!(called(DType::I32, None, 1).unwrap_err(), "`x` is i32, the function takes f32");
    assert_eq!(said(c"\xff", 1), "`mode` is no UTF-8");
}

#[test]
fn signatures_are_compared_letter_by_letter() {
    assert!(fits(b"TfuR", Some("TfuR")) && fits(b"TfuR", None));
    assert!(!fits(b"TfuR", Some("TfsR")) && !fits(b"TfuR", Some("TfuRR")));
}
