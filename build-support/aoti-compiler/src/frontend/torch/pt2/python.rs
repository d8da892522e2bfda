//! Numbers as Python computes them: integers exactly, everything else in doubles.

/// A number in Python.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Value {
    /// An integer of 64 bits.
    Int(i64),
    /// A float.
    Real(f64),
}

impl Value {
    /// As a float.
    pub(super) fn real(self) -> f64 {
        match self {
            Value::Int(value) => value as f64,
            Value::Real(value) => value,
        }
    }

    /// A function of it; `None` where Python has an error.
    pub(super) fn apply(self, function: &str) -> Option<Value> {
        let x = self.real();
        let whole = |value: f64| (value.abs() < 9e18).then_some(Value::Int(value as i64));
        let real = |value: f64| value.is_finite().then_some(Value::Real(value));
        match (function, self) {
            ("float", _) => real(x),
            ("abs", Value::Int(value)) => value.checked_abs().map(Value::Int),
            ("abs", Value::Real(value)) => real(value.abs()),
            ("floor" | "ceil" | "trunc" | "round", Value::Int(_)) => Some(self),
            ("floor", Value::Real(_)) => whole(x.floor()),
            ("ceil", Value::Real(_)) => whole(x.ceil()),
            ("trunc", Value::Real(_)) => whole(x.trunc()),
            ("round", Value::Real(_)) => whole(x.round_ties_even()),
            ("sqrt", _) => real(x.sqrt()),
            ("exp", _) => real(x.exp()),
            ("log", _) => real(x.ln()),
            ("log2", _) => real(x.log2()),
            ("sinh", _) => real(x.sinh()),
            ("tanh", _) => real(x.tanh()),
            ("asin", _) => real(x.asin()),
            ("atan", _) => real(x.atan()),
            ("asinh", _) => real(x.asinh()),
            _ => None,
        }
    }

    /// A function of it and another; `None` where Python has an error.
    pub(super) fn combine(self, function: &str, other: Value) -> Option<Value> {
        let real = |value: f64| value.is_finite().then_some(Value::Real(value));
        if let (Value::Int(x), Value::Int(y)) = (self, other)
            && function != "truediv"
            && !(function == "pow" && y < 0)
        {
            let value = match function {
                "add" => x.checked_add(y),
                "mul" => x.checked_mul(y),
                "pow" => x.checked_pow(u32::try_from(y).ok()?),
                "max" => Some(x.max(y)),
                "min" => Some(x.min(y)),
                "and_" => Some(x & y),
                "or_" => Some(x | y),
                "xor" => Some(x ^ y),
                "floordiv" | "mod" => {
                    let (quotient, rest) = (x.checked_div_euclid(y)?, x.checked_rem_euclid(y)?);
                    // Python's remainder has the sign of the divisor.
                    let below = y < 0 && rest != 0;
                    let adjusted = if below { (quotient - 1, rest + y) } else { (quotient, rest) };
                    Some(if function == "mod" { adjusted.1 } else { adjusted.0 })
                }
                "rshift" => Some(x >> u32::try_from(y).ok()?.min(63)),
                _ => None,
            };
            return value.map(Value::Int);
        }
        let (x, y) = (self.real(), other.real());
        match function {
            "add" => real(x + y),
            "mul" => real(x * y),
            "truediv" if y != 0.0 => real(x / y),
            "pow" => real(x.powf(y)),
            "max" => Some(if y > x { other } else { self }),
            "min" => Some(if y < x { other } else { self }),
            _ => None,
        }
    }
}

/// Results of library functions differ in their last bits.
fn widened((low, high): (f64, f64)) -> (f64, f64) {
    (low - low.abs() * 1e-14, high + high.abs() * 1e-14)
}

/// Bounds of a function of what is within bounds, where it always has a value.
pub(super) fn unary_bounds(function: &str, low: f64, high: f64) -> Option<(f64, f64)> {
    let each = |f: fn(f64) -> f64| (f(low), f(high));
    match function {
        "float" => Some((low, high)),
        "floor" => Some(each(f64::floor)),
        "ceil" => Some(each(f64::ceil)),
        "trunc" => Some(each(f64::trunc)),
        "round" => Some(each(f64::round_ties_even)),
        "abs" if low >= 0.0 => Some((low, high)),
        "abs" => Some((0.0, high.max(-low))),
        "sqrt" if low >= 0.0 => Some(each(f64::sqrt)),
        "log" if low > 0.0 => Some(widened(each(f64::ln))),
        "log2" if low > 0.0 => Some(widened(each(f64::log2))),
        "exp" => Some(widened(each(f64::exp))),
        "tanh" | "sin" | "cos" => Some((-1.0, 1.0)),
        _ => None,
    }
}

/// The same for two operands.
pub(super) fn binary_bounds(function: &str, x: (f64, f64), y: (f64, f64)) -> Option<(f64, f64)> {
    let corners = |f: &dyn Fn(f64, f64) -> f64| {
        let values = [f(x.0, y.0), f(x.0, y.1), f(x.1, y.0), f(x.1, y.1)];
        let is_known = values.iter().all(|value| !value.is_nan());
        is_known.then(|| {
            (
                values.iter().copied().fold(f64::INFINITY, f64::min),
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            )
        })
    };
    match function {
        "add" => Some((x.0 + y.0, x.1 + y.1)),
        "mul" => corners(&|a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b }),
        "truediv" if y.0 > 0.0 || y.1 < 0.0 => corners(&|a, b| if a == 0.0 { 0.0 } else { a / b }),
        "pow" if x.0 > 0.0 || (x.0 == 0.0 && y.0 > 0.0) => corners(&|a, b| a.powf(b)).map(widened),
        "max" => Some((x.0.max(y.0), x.1.max(y.1))),
        "min" => Some((x.0.min(y.0), x.1.min(y.1))),
        _ => None,
    }
}
