//! How far a result is from what was expected.

use aoti_runtime::{DType, DynTensor};

use super::complex;

/// How far floating-point values may be apart: `|a - b| <= atol + rtol * |b|`, where `b` is expected.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// The absolute part.
    pub atol: f64,
    /// The part in proportion to what is expected.
    pub rtol: f64,
}

/// How far each output may be off.
#[derive(Clone, PartialEq, Debug)]
pub enum Tolerances {
    /// All by as much.
    Same(Tolerance),
    /// In order.
    Each(Vec<Tolerance>),
    /// All by as much, but by two of their last digits where those are few: as the ONNX project's own tests have it.
    Digits(Tolerance),
}

/// Two of the last digits of a `bf16`.
const BF16_DIGITS: f64 = 1.0 / 64.0;

impl Tolerances {
    fn of(&self, output: usize, dtype: DType) -> Result<Tolerance, String> {
        match self {
            Tolerances::Same(tolerance) => Ok(*tolerance),
            Tolerances::Digits(Tolerance { atol, rtol }) => {
                let rtol = if dtype == DType::Bf16 { rtol.max(BF16_DIGITS) } else { *rtol };
                Ok(Tolerance { atol: *atol, rtol })
            }
            Tolerances::Each(all) => {
                all.get(output).copied().ok_or_else(|| "the case has no tolerance for it".to_owned())
            }
        }
    }
}

/// The largest differences over all elements that are finite in both.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Distance {
    /// Of differences.
    pub max_abs: f64,
    /// Of differences in proportion to what is expected.
    pub max_rel: f64,
}

/// What the outputs are without the rounding of their element types.
#[derive(Clone, Copy, Debug)]
pub struct Exact<'a> {
    /// In order.
    pub outputs: &'a [DynTensor],
    /// A result may be so many times as far from them as what is expected is at most, in the same output.
    pub times: f64,
}

/// Compares element types, sizes and values. NaN equals NaN and infinities equal themselves; integers and booleans are
/// equal or not. The error is a sentence about the first tensor that differs.
pub fn all(
    found: &[DynTensor],
    expected: &[DynTensor],
    tolerances: &Tolerances,
    exact: Option<Exact<'_>>,
) -> (Distance, Result<(), String>) {
    let mut distance = Distance::default();
    if found.len() != expected.len() {
        let message = format!("{} outputs instead of {}", found.len(), expected.len());
        return (distance, Err(message));
    }
    let mut first = Ok(());
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let truth = match exact {
            Some(exact) => match truth(exact, index, expected) {
                Ok(truth) => Some(truth),
                Err(message) => return (distance, Err(format!("output {index}: {message}"))),
            },
            None => None,
        };
        let tolerance = tolerances.of(index, expected.dtype());
        let result = tolerance.and_then(|tolerance| one(found, expected, tolerance, truth, &mut distance));
        if let (Ok(()), Err(message)) = (&first, result) {
            first = Err(format!("output {index}: {message}"));
        }
    }
    (distance, first)
}

/// The differences of all floating-point outputs, as a part of what is expected: root mean squares of both.
pub fn apart(found: &[DynTensor], expected: &[DynTensor]) -> f64 {
    let (mut errors, mut sizes) = (0.0, 0.0);
    for (found, expected) in found.iter().zip(expected).filter(|(found, _)| found.dtype().is_float()) {
        for (a, b) in values(found).into_iter().zip(values(expected)).filter(|(a, b)| (a - b).is_finite()) {
            errors += (a - b) * (a - b);
            sizes += b * b;
        }
    }
    if errors == 0.0 { 0.0 } else { (errors / sizes).sqrt() }
}

/// The exact elements of an output, and how far from them a result may be.
fn truth(exact: Exact<'_>, index: usize, expected: &DynTensor) -> Result<(Vec<f64>, f64), String> {
    let output = exact.outputs.get(index).filter(|output| output.sizes() == expected.sizes());
    let output = output.ok_or("the reference has no output of these sizes")?;
    let truth = values(output);
    let apart = values(expected).into_iter().zip(&truth).map(|(a, b)| (a - b).abs());
    let most = apart.filter(|apart| apart.is_finite()).fold(0.0, f64::max);
    Ok((truth, exact.times * most))
}

fn one(
    found: &DynTensor,
    expected: &DynTensor,
    tolerance: Tolerance,
    truth: Option<(Vec<f64>, f64)>,
    distance: &mut Distance,
) -> Result<(), String> {
    // Not every file can hold complex numbers as such.
    let parts = |tensor| complex::to_parts(tensor).map_err(|error| error.to_string());
    let (found, expected) = (&parts(found)?, &parts(expected)?);
    if found.dtype() != expected.dtype() {
        return Err(format!("element type {} instead of {}", found.dtype(), expected.dtype()));
    }
    if found.sizes() != expected.sizes() {
        return Err(format!("sizes {:?} instead of {:?}", found.sizes(), expected.sizes()));
    }
    if found.bytes() == expected.bytes() {
        return Ok(());
    }
    let is_float = found.dtype().is_float();
    let (mut wrong, mut worst): (usize, Option<(f64, usize)>) = (0, None);
    let (a, b) = (values(found), values(expected));
    for (at, (&a, &b)) in a.iter().zip(&b).enumerate() {
        if a == b || (a.is_nan() && b.is_nan()) {
            continue;
        }
        let apart = (a - b).abs();
        if apart.is_finite() {
            distance.max_abs = distance.max_abs.max(apart);
            distance.max_rel = distance.max_rel.max(apart / b.abs().max(f64::MIN_POSITIVE));
        }
        let is_true = || truth.as_ref().is_some_and(|(truth, most)| (a - truth[at]).abs() <= *most);
        let is_near = is_float
            && apart.is_finite()
            && (apart <= tolerance.atol + tolerance.rtol * b.abs() || is_true());
        if !is_near {
            wrong += 1;
            let badness = if apart.is_finite() { apart } else { f64::INFINITY };
            if worst.is_none_or(|(worst, _)| badness > worst) {
                worst = Some((badness, at));
            }
        }
    }
    let Some((_, at)) = worst else { return Ok(()) };
    let place = unravel(at, found.sizes());
    let (got, wanted, count) = (a[at], b[at], a.len());
    Err(format!("{wrong} of {count} elements differ, most at {place:?}: {got} instead of {wanted}"))
}

/// The elements as numbers. 64-bit integers beyond 2^53 lose their last digits, on both sides.
fn values(tensor: &DynTensor) -> Vec<f64> {
    fn cast<T: aoti_runtime::Element>(tensor: &DynTensor, value: impl Fn(T) -> f64) -> Vec<f64> {
        tensor.as_slice::<T>().unwrap_or_default().iter().map(|&element| value(element)).collect()
    }
    let Ok(parts) = complex::to_parts(tensor) else { return Vec::new() };
    let tensor = &parts;
    match tensor.dtype() {
        DType::Bool => cast::<bool>(tensor, |x| f64::from(u8::from(x))),
        DType::U8 => cast::<u8>(tensor, f64::from),
        DType::I8 => cast::<i8>(tensor, f64::from),
        DType::I16 => cast::<i16>(tensor, f64::from),
        DType::I32 => cast::<i32>(tensor, f64::from),
        DType::I64 => cast::<i64>(tensor, |x| x as f64),
        DType::F16 => cast::<aoti_runtime::f16>(tensor, |x| x.to_f64()),
        DType::Bf16 => cast::<aoti_runtime::bf16>(tensor, |x| x.to_f64()),
        DType::F32 => cast::<f32>(tensor, f64::from),
        DType::F64 => cast::<f64>(tensor, |x| x),
        DType::U16 => cast::<u16>(tensor, f64::from),
        DType::U32 => cast::<u32>(tensor, f64::from),
        DType::U64 => cast::<u64>(tensor, |x| x as f64),
        DType::F8E4M3Fn => cast::<aoti_runtime::f8e4m3fn>(tensor, f64::from),
        DType::F8E5M2 => cast::<aoti_runtime::f8e5m2>(tensor, f64::from),
        DType::F8E4M3Fnuz => cast::<aoti_runtime::f8e4m3fnuz>(tensor, f64::from),
        DType::F8E5M2Fnuz => cast::<aoti_runtime::f8e5m2fnuz>(tensor, f64::from),
        DType::F8E8M0Fnu => cast::<aoti_runtime::f8e8m0fnu>(tensor, f64::from),
        // Seen as their parts above.
        DType::C32 | DType::C64 | DType::C128 => Vec::new(),
    }
}

/// The largest absolute value among the finite elements.
pub fn largest(tensor: &DynTensor) -> f64 {
    values(tensor).into_iter().map(f64::abs).filter(|value| value.is_finite()).fold(0.0, f64::max)
}

fn unravel(mut at: usize, sizes: &[usize]) -> Vec<usize> {
    let mut place = vec![0; sizes.len()];
    for (place, &size) in place.iter_mut().zip(sizes).rev() {
        *place = at % size.max(1);
        at /= size.max(1);
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: &Tolerances = &Tolerances::Same(Tolerance { atol: 1e-4, rtol: 1e-3 });

    fn f32s(values: &[f32]) -> DynTensor {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        DynTensor::from_bytes(DType::F32, &[values.len()], &bytes).unwrap()
    }

    fn check(a: &[f32], b: &[f32]) -> Result<(), String> {
        all(&[f32s(a)], &[f32s(b)], TOLERANCE, None).1
    }

    #[test]
    fn near_is_equal_and_so_are_nan_and_infinity() {
        check(&[1.0, f32::NAN, f32::INFINITY], &[1.0005, f32::NAN, f32::INFINITY]).unwrap();
        assert!(check(&[f32::NAN], &[1.0]).is_err());
        assert!(check(&[f32::INFINITY], &[f32::NEG_INFINITY]).is_err());
        assert!(check(&[f32::MAX], &[f32::INFINITY]).is_err());
    }

    #[test]
    fn each_output_has_its_own_tolerance() {
        let each = |numbers: &[f64]| {
            let tolerances = numbers.iter().map(|&atol| Tolerance { atol, rtol: 0.0 }).collect();
            let (found, expected) = ([f32s(&[1.0]), f32s(&[1.0])], [f32s(&[1.5]), f32s(&[1.5])]);
            all(&found, &expected, &Tolerances::Each(tolerances), None).1
        };
        each(&[0.5, 0.5]).unwrap();
        assert!(each(&[0.5, 0.4]).unwrap_err().starts_with("output 1: 1 of 1 elements differ"));
        assert_eq!(each(&[0.5]).unwrap_err(), "output 1: the case has no tolerance for it");
    }

    #[test]
    fn few_digits_may_differ_by_two() {
        let of = |numbers: [u16; 1]| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|bits| bits.to_ne_bytes()).collect();
            DynTensor::from_bytes(DType::Bf16, &[1], &bytes).unwrap()
        };
        let tolerance = Tolerance { atol: 0.0, rtol: 1e-3 };
        // 1, and two and three digits more.
        let check =
            |tolerances: Tolerances, bits: u16| all(&[of([bits])], &[of([0x3f80])], &tolerances, None).1;
        check(Tolerances::Digits(tolerance), 0x3f82).unwrap();
        assert!(check(Tolerances::Digits(tolerance), 0x3f83).is_err());
        assert!(check(Tolerances::Same(tolerance), 0x3f82).is_err());
    }

    #[test]
    fn a_difference_is_described() {
        let message = check(&[1.0, 2.0, 3.0], &[1.0, 2.5, 4.0]).unwrap_err();
        assert_eq!(message, "output 0: 2 of 3 elements differ, most at [2]: 3 instead of 4");
    }

    #[test]
    fn type_size_and_count_matter() {
        assert!(check(&[1.0], &[1.0, 2.0]).unwrap_err().contains("sizes [1] instead of [2]"));
        let byte = DynTensor::from_bytes(DType::U8, &[1], &[1]).unwrap();
        let (_, result) = all(&[byte], &[f32s(&[1.0])], TOLERANCE, None);
        assert_eq!(result.unwrap_err(), "output 0: element type u8 instead of f32");
        assert_eq!(all(&[], &[f32s(&[1.0])], TOLERANCE, None).1.unwrap_err(), "0 outputs instead of 1");
    }

    #[test]
    fn integers_are_exact() {
        let int = |value: i64| DynTensor::from_bytes(DType::I64, &[1], &value.to_ne_bytes()).unwrap();
        assert!(all(&[int(100_000)], &[int(100_001)], TOLERANCE, None).1.is_err());
    }

    #[test]
    fn a_result_may_be_as_far_from_the_truth_as_what_is_expected() {
        let exact = [f32s(&[100.0, 200.0])];
        let with = |found: &[f32], times: f64| {
            let exact = Exact { outputs: &exact, times };
            all(&[f32s(found)], &[f32s(&[101.0, 200.0])], TOLERANCE, Some(exact)).1
        };
        with(&[99.0, 201.5], 2.0).unwrap();
        assert!(with(&[99.0, 201.5], 1.0).is_err());
        assert!(with(&[99.0, 203.0], 2.0).unwrap_err().contains("most at [1]"));
        let other = Exact { outputs: &[], times: 1.0 };
        let message = all(&[f32s(&[1.0])], &[f32s(&[1.0])], TOLERANCE, Some(other)).1.unwrap_err();
        assert!(message.contains("reference"), "{message}");
    }
}
