//! Complex functions where a part is infinite, not a number or nothing, as PyTorch has them.

use super::super::tests::{evaluated, refused};
use crate::interpret::Tensor;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

const INFINITY: f64 = f64::INFINITY;
const NEG_INFINITY: f64 = f64::NEG_INFINITY;
const NAN: f64 = f64::NAN;

/// Where the functions are evaluated.
const PLACES: [[f64; 2]; 7] = [
    [INFINITY, NAN],
    [NEG_INFINITY, INFINITY],
    [NAN, INFINITY],
    [0.0, INFINITY],
    [INFINITY, 0.0],
    [1e30, -1e30],
    [0.0, 0.0],
];

/// What PyTorch 2.15 prints for each.
const FUNCTIONS: [(&str, [[f64; 2]; 7]); 12] = [
    (
        "exp",
        [
            [INFINITY, NAN],
            [0.0, 0.0],
            [NAN, NAN],
            [NAN, NAN],
            [INFINITY, 0.0],
            [NEG_INFINITY, NEG_INFINITY],
            [1.0, 0.0],
        ],
    ),
    (
        "sinh",
        [
            [INFINITY, NAN],
            [INFINITY, NAN],
            [NAN, NAN],
            [0.0, NAN],
            [INFINITY, 0.0],
            [NEG_INFINITY, NEG_INFINITY],
            [0.0, 0.0],
        ],
    ),
    (
        "cos",
        [
            [NAN, NAN],
            [INFINITY, NAN],
            [INFINITY, NAN],
            [INFINITY, -0.0],
            [NAN, 0.0],
            [NEG_INFINITY, INFINITY],
            [1.0, -0.0],
        ],
    ),
    ("tanh", [[1.0, 0.0], [-1.0, 0.0], [NAN, NAN], [0.0, NAN], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]),
    (
        "sqrt",
        [
            [INFINITY, NAN],
            [INFINITY, INFINITY],
            [INFINITY, INFINITY],
            [INFINITY, INFINITY],
            [INFINITY, 0.0],
            [1098684113467810.0, -455089860562227.3],
            [0.0, 0.0],
        ],
    ),
    (
        "asin",
        [
            [NAN, INFINITY],
            [-FRAC_PI_4, INFINITY],
            [NAN, INFINITY],
            [0.0, INFINITY],
            [FRAC_PI_2, INFINITY],
            [FRAC_PI_4, -70.11727356066129],
            [0.0, 0.0],
        ],
    ),
    (
        "acos",
        [
            [NAN, NEG_INFINITY],
            [2.356194490192345, NEG_INFINITY],
            [NAN, NEG_INFINITY],
            [FRAC_PI_2, NEG_INFINITY],
            [0.0, NEG_INFINITY],
            [FRAC_PI_4, 70.11727356066129],
            [FRAC_PI_2, 0.0],
        ],
    ),
    (
        "acosh",
        [
            [INFINITY, NAN],
            [INFINITY, 2.356194490192345],
            [INFINITY, NAN],
            [INFINITY, FRAC_PI_2],
            [INFINITY, 0.0],
            [70.11727356066129, -FRAC_PI_4],
            [0.0, FRAC_PI_2],
        ],
    ),
    (
        "atanh",
        [
            [0.0, NAN],
            [-0.0, FRAC_PI_2],
            [0.0, FRAC_PI_2],
            [0.0, FRAC_PI_2],
            [0.0, FRAC_PI_2],
            [5e-31, -FRAC_PI_2],
            [0.0, 0.0],
        ],
    ),
    (
        "reciprocal",
        [
            [NAN, NAN],
            [NAN, NAN],
            [NAN, NAN],
            [0.0, -0.0],
            [0.0, 0.0],
            [4.9999999999999995e-31, 4.9999999999999995e-31],
            [INFINITY, NAN],
        ],
    ),
    ("sigmoid", [[1.0, 0.0], [NAN, NAN], [NAN, NAN], [NAN, NAN], [1.0, 0.0], [1.0, 0.0], [0.5, 0.0]]),
    (
        "rsqrt",
        [
            [NAN, NAN],
            [NAN, NAN],
            [NAN, NAN],
            [NAN, NAN],
            [0.0, 0.0],
            [7.768869870150186e-16, 3.217971264527913e-16],
            [INFINITY, NAN],
        ],
    ),
];

#[test]
fn infinite_parts_leave_what_does_not_depend_on_them() {
    let bytes: Vec<u8> = PLACES.iter().flatten().flat_map(|part| part.to_le_bytes()).collect();
    let places = Tensor::new(crate::dtype::DType::F64, vec![7, 2], bytes).expect("seven pairs");
    for (name, expected) in FUNCTIONS {
        let statements =
            format!("input %z: complex f64[7] %y: complex f64[7] = aten.{name}.default(self = %z) output %y");
        let found = evaluated(&statements, std::slice::from_ref(&places)).expect("it runs")[0].to_f64();
        for (place, (found, expected)) in found.iter().zip(expected.iter().flatten()).enumerate() {
            let same = found == expected || (found.is_nan() && expected.is_nan());
            let close = same || (found - expected).abs() <= 1e-9 * expected.abs().min(f64::MAX);
            assert!(close, "{name} of {:?}: {found} instead of {expected}", PLACES[place / 2]);
        }
    }
}

#[test]
fn quotients_by_zero_are_infinite_where_the_dividend_is_not_zero() {
    let pairs = |parts: [f64; 6]| {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_le_bytes()).collect();
        Tensor::new(crate::dtype::DType::F64, vec![3, 2], bytes).expect("three pairs")
    };
    let statements = "input %x: complex f64[3] input %y: complex f64[3]
        %q: complex f64[3] = aten.div.Tensor(self = %x, other = %y) output %q";
    let operands = [pairs([1.0, -2.0, 0.0, 3.0, 4.0, 2.0]), pairs([0.0, 0.0, 0.0, 0.0, 1e300, 1e300])];
    let found = evaluated(statements, &operands).expect("it runs")[0].to_f64();
    assert_eq!(found[..2], [INFINITY, NEG_INFINITY]);
    assert!(found[2].is_nan() && found[3] == INFINITY, "{found:?}");
    assert!((found[4] - 3e-300).abs() < 1e-312 && (found[5] + 1e-300).abs() < 1e-312, "{found:?}");
}

/// Pairs of doubles, `count` of them.
fn pairs(parts: &[f64]) -> Tensor {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_le_bytes()).collect();
    Tensor::new(crate::dtype::DType::F64, vec![parts.len() / 2, 2], bytes).expect("pairs")
}

fn reals(parts: &[f64]) -> Tensor {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_le_bytes()).collect();
    Tensor::new(crate::dtype::DType::F64, vec![parts.len()], bytes).expect("numbers")
}

#[test]
fn real_data_has_no_imaginary_part() {
    let sum = "input %x: f64[2] %y: complex f64[] = aten.sum.default(self = %x, dtype = f64) output %y";
    let found = evaluated(sum, &[reals(&[1.0, 2.0])]).expect("it runs")[0].to_f64();
    assert_eq!(found, [3.0, 0.0]);
    let diff = "input %x: complex f64[2] input %p: f64[1]
        %y: complex f64[2] = aten.diff.default(self = %x, prepend = %p) output %y";
    let found = evaluated(diff, &[pairs(&[1.0, 2.0, 4.0, 8.0]), reals(&[5.0])]).expect("it runs")[0].to_f64();
    assert_eq!(found, [-4.0, 2.0, 3.0, 6.0]);
}

#[test]
fn complex_points_of_an_integral_are_multiplied_by() {
    let [x, y] = [pairs(&[0.0, 0.0, 1.0, 2.0]), pairs(&[1.0, 1.0, 3.0, 5.0])];
    for (name, kind) in [("trapezoid", "f64[]"), ("trapz", "f64[]"), ("cumulative_trapezoid", "f64[1]")] {
        let statements = format!(
            "input %y: complex f64[2] input %x: complex f64[2]
            %r: complex {kind} = aten.{name}.x(y = %y, x = %x) output %r"
        );
        let found = evaluated(&statements, &[y.clone(), x.clone()]).expect("it runs")[0].to_f64();
        // (4 + 6i) (1 + 2i) / 2
        assert_eq!(found, [-4.0, 7.0], "{name}");
    }
    let slopes = "input %y: complex f64[3] input %x: complex f64[3]
        [%r: complex f64[3]] = aten.gradient.tensorarray(self = %y, spacing = [%x]) output %r";
    let findings = refused(slopes);
    assert!(findings.iter().any(|finding| finding.contains("complex `x`")), "{findings:?}");
}

#[test]
fn complex_tensors_lend_their_shapes() {
    for operand in ["complex f64[2]", "f64[2]"] {
        let x = if operand == "f64[2]" { reals(&[1.0, 2.0]) } else { pairs(&[1.0, 0.0, 2.0, 0.0]) };
        for (name, shape) in [("expand_as", "[3, 2]"), ("view_as", "[2, 1]"), ("reshape_as", "[2, 1]")] {
            let result = operand.replace("[2]", shape);
            let statements = format!(
                "input %x: {operand} input %o: complex f64{shape}
                %y: {result} = aten.{name}.default(self = %x, other = %o)
                %z: {result} = aten.clone.default(self = %y) output %z"
            );
            let count = if name == "expand_as" { 6 } else { 2 };
            let own = if name == "expand_as" { vec![3, 2, 2] } else { vec![2, 1, 2] };
            let other = Tensor::new(crate::dtype::DType::F64, own, vec![0; count * 16]).expect("zeros");
            let found = evaluated(&statements, &[x.clone(), other]).expect("it runs")[0].to_f64();
            let per = if operand == "f64[2]" { 1 } else { 2 };
            assert_eq!(found.len(), count * per, "{name} of {operand}");
            assert_eq!(found[..=per], if per == 1 { vec![1.0, 2.0] } else { vec![1.0, 0.0, 2.0] }, "{name}");
        }
    }
}

#[test]
fn spreads_of_both_parts_are_added_and_means_stay_complex() {
    let statements = "input %x: complex f64[2]
        [%v: f64[], %m: complex f64[]] = aten.var_mean.correction(self = %x, correction = 0)
        output %v output %m";
    let found = evaluated(statements, &[pairs(&[1.0, 2.0, 3.0, 8.0])]).expect("it runs");
    assert_eq!(found[0].to_f64(), [10.0]);
    assert_eq!(found[1].to_f64(), [2.0, 5.0]);
}

#[test]
fn numbers_without_an_imaginary_part_are_real() {
    let statements = "input %x: complex f64[3] %y: bool[3] = aten.isreal.default(self = %x) output %y";
    let found = evaluated(statements, &[pairs(&[1.0, 0.0, 0.0, 8.0, NAN, -0.0])]).expect("it runs");
    assert_eq!(found[0].to_f64(), [1.0, 0.0, 1.0]);
}
