//! Comparison of two tensors: element type, sizes, then values within a tolerance.

use aoti_compiler::interpret::Tensor;

/// NaN equals NaN and infinities equal themselves; else `|a - b| <= atol + rtol * |b|`. Integers must be equal.
pub(crate) fn compare(result: &Tensor, expected: &Tensor, atol: f64, rtol: f64) -> Result<(), String> {
    if result.dtype() != expected.dtype() {
        return Err(format!("is {}, expected is {}", result.dtype(), expected.dtype()));
    }
    if result.sizes() != expected.sizes() {
        return Err(format!("has sizes {:?}, expected are {:?}", result.sizes(), expected.sizes()));
    }
    if let (Some(a), Some(b)) = (result.to_i64(), expected.to_i64()) {
        return report(&a, &b, |a, b| a == b);
    }
    report(&result.to_f64(), &expected.to_f64(), |a: f64, b: f64| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= atol + rtol * b.abs() && b.is_finite()
    })
}

fn report<T: Copy + std::fmt::Display>(a: &[T], b: &[T], equal: impl Fn(T, T) -> bool) -> Result<(), String> {
    let wrong: Vec<usize> = (0..a.len()).filter(|k| !equal(a[*k], b[*k])).collect();
    let Some(first) = wrong.first() else {
        return Ok(());
    };
    let (count, total) = (wrong.len(), a.len());
    Err(format!(
        "{count} of {total} elements differ, first is {first}: {} instead of {}",
        a[*first], b[*first]
    ))
}
