//! Integer expressions as C++.

use crate::graph::Condition;
use crate::kernels::Scratch;
use crate::symbolic::{Expr, Node, Symbol, SymbolKind};

/// The C++ variable of a symbol.
pub(in crate::codegen) fn symbol_name(symbol: Symbol) -> String {
    match symbol.kind {
        SymbolKind::Size => format!("s{}", symbol.index),
        SymbolKind::Axis => format!("i{}", symbol.index),
    }
}

/// An `i64` expression; division rounds down.
pub(in crate::codegen) fn scalar(expr: &Expr) -> String {
    print(expr, false)
}

/// Bytes of scratch of each worker.
pub(in crate::codegen) fn worker_bytes(scratch: &Scratch) -> String {
    let plain = scalar(&scratch.worker);
    match &scratch.units {
        None => plain,
        Some(units) => format!("has_matrix_units() ? {} : {plain}", scalar(units)),
    }
}

fn print(expr: &Expr, tight: bool) -> String {
    let text = match expr.node() {
        Node::Int(value) => return literal(*value),
        Node::Sym(symbol) => return symbol_name(*symbol),
        Node::Sum { constant, terms } => return sum(*constant, terms, tight),
        Node::Product(factors) => factors.iter().map(|f| print(f, true)).collect::<Vec<_>>().join(" * "),
        Node::FloorDiv(a, b) => return format!("floor_div({}, {})", print(a, false), print(b, false)),
        Node::Mod(a, b) => return format!("floor_mod({}, {})", print(a, false), print(b, false)),
        Node::Min(a, b) => return format!("min_i64({}, {})", print(a, false), print(b, false)),
        Node::Max(a, b) => return format!("max_i64({}, {})", print(a, false), print(b, false)),
    };
    if tight { format!("({text})") } else { text }
}

fn literal(value: i64) -> String {
    if value == i64::MIN {
        "(-9223372036854775807 - 1)".to_owned()
    } else if value < 0 {
        format!("({value})")
    } else {
        value.to_string()
    }
}

fn sum(constant: i64, terms: &[(Expr, i64)], tight: bool) -> String {
    let mut text = String::new();
    for (term, coefficient) in terms {
        let sign = match (text.is_empty(), *coefficient < 0) {
            (true, true) => "-",
            (true, false) => "",
            (false, true) => " - ",
            (false, false) => " + ",
        };
        text.push_str(sign);
        let magnitude = coefficient.unsigned_abs();
        if magnitude != 1 {
            text.push_str(&format!("{magnitude} * "));
        }
        text.push_str(&print(term, true));
    }
    if constant != 0 {
        text.push_str(&format!(" {} {}", if constant < 0 { '-' } else { '+' }, constant.unsigned_abs()));
    }
    if tight { format!("({text})") } else { text }
}

/// As [`scalar`], but a value of the type `Checked`, which tells whether the arithmetic left 64 bits.
pub(in crate::codegen) fn checked(expr: &Expr) -> String {
    let call = |name: &str, a: &Expr, b: &Expr| format!("{name}({}, {})", checked(a), checked(b));
    match expr.node() {
        Node::Int(value) => format!("Checked({})", literal(*value)),
        Node::Sym(symbol) => format!("Checked({})", symbol_name(*symbol)),
        Node::Sum { constant, terms } => {
            let mut parts: Vec<String> = terms
                .iter()
                .map(|(term, coefficient)| match coefficient {
                    1 => checked(term),
                    coefficient => format!("{} * {}", literal(*coefficient), checked(term)),
                })
                .collect();
            if *constant != 0 {
                parts.push(literal(*constant));
            }
            format!("({})", parts.join(" + "))
        }
        Node::Product(factors) => factors.iter().map(checked).collect::<Vec<_>>().join(" * "),
        Node::FloorDiv(a, b) => call("floor_div", a, b),
        Node::Mod(a, b) => call("floor_mod", a, b),
        Node::Min(a, b) => call("min_i64", a, b),
        Node::Max(a, b) => call("max_i64", a, b),
    }
}

/// Whether a condition holds: a comparison of what left 64 bits does not.
pub(in crate::codegen) fn condition(condition: &Condition) -> String {
    let joined = |parts: &[Condition], sign: &str, none: &str| {
        if parts.is_empty() {
            return none.to_owned();
        }
        let parts: Vec<String> = parts.iter().map(self::condition).collect();
        format!("({})", parts.join(sign))
    };
    match condition {
        Condition::Compare(left, relation, right) => {
            format!("{} {} {}", checked(left), relation.sign(), checked(right))
        }
        Condition::Fits(expr) => format!("({}).fits", checked(expr)),
        Condition::All(parts) => joined(parts, " && ", "true"),
        Condition::Any(parts) => joined(parts, " || ", "false"),
    }
}

/// The integers of lanes in which an expression is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::codegen) enum LaneInteger {
    /// Of 32 bits, for what fits them with all its parts.
    I32,
    /// Of 64 bits.
    I64,
}

impl LaneInteger {
    pub(super) fn name(self) -> &'static str {
        match self {
            LaneInteger::I32 => "i32",
            LaneInteger::I64 => "i64",
        }
    }
}

/// A vector of the expression's values in the lanes, lane `k` being `vector + k`.
pub(in crate::codegen) fn lanes(expr: &Expr, vector: Symbol, integer: LaneInteger) -> String {
    let ty = integer.name();
    let lanes = |expr: &Expr| lanes(expr, vector, integer);
    if !expr.mentions(vector) {
        return format!("broadcast(lanes, {ty}({}))", scalar(expr));
    }
    if let Some((coefficient, _)) = expr.affine_in(vector) {
        // The value at lane 0 is the expression itself, the axis variable standing at lane 0.
        let (function, start, step) = match integer {
            LaneInteger::I64 => ("iota", scalar(expr), scalar(&coefficient)),
            LaneInteger::I32 => {
                ("iota32", format!("i32({})", scalar(expr)), format!("i32({})", scalar(&coefficient)))
            }
        };
        let step = if coefficient.is(1) { String::new() } else { format!(", {step}") };
        return format!("{function}(lanes, {start}{step})");
    }
    match expr.node() {
        Node::Int(_) | Node::Sym(_) => unreachable!("constants and symbols are affine"),
        Node::Sum { constant, terms } => {
            let mut text = String::new();
            for (term, coefficient) in terms {
                if !text.is_empty() {
                    text.push_str(" + ");
                }
                text.push_str(&lanes(term));
                if *coefficient != 1 {
                    text.push_str(&format!(" * {ty}({coefficient})"));
                }
            }
            if *constant != 0 {
                text.push_str(&format!(" + {ty}({constant})"));
            }
            format!("({text})")
        }
        Node::Product(factors) => {
            let factors: Vec<String> = factors.iter().map(lanes).collect();
            format!("({})", factors.join(" * "))
        }
        Node::FloorDiv(a, b) => divided("floor_div", &lanes(a), b, &lanes),
        Node::Mod(a, b) => divided("remainder", &lanes(a), b, &lanes),
        Node::Min(a, b) => format!("minimum({}, {})", lanes(a), lanes(b)),
        Node::Max(a, b) => format!("maximum({}, {})", lanes(a), lanes(b)),
    }
}

/// A quotient or remainder in the lanes; those by a fixed number have functions of their own.
fn divided(function: &str, a: &str, b: &Expr, lanes: &dyn Fn(&Expr) -> String) -> String {
    match b.as_int() {
        Some(divisor) if divisor > 0 => format!("{function}_by<{divisor}>({a})"),
        Some(_) | None => format!("{function}({a}, {})", lanes(b)),
    }
}
