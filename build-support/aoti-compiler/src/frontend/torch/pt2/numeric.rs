//! Numbers of guards that are not integer expressions: quotients, roots and products with fractions, as Python computes them.
//!
//! A [`Number`] is evaluated, bounded, or found to rise or fall with a size. What a comparison of such numbers asks of a
//! single size is an interval of that size, which is found here; anything else is left to the calls that compute it when the
//! program runs (`computed.rs`). Integers are exact, everything else is a double.

use super::expr::{Scope, Tree};
use super::python::{Value, binary_bounds, unary_bounds};
use crate::graph::{Condition, Relation};
use crate::symbolic::{Expr, Interval, Node, Ranges, Symbol};
use std::collections::BTreeSet;

/// Sizes beyond this are in no memory.
const LARGEST: i64 = crate::graph::LARGEST_SIZE;

/// What sympy calls functions, and what Python's operators and `math` do.
const FUNCTIONS: [(&str, &str); 25] = [
    ("Add", "add"),
    ("Mul", "mul"),
    ("Rational", "truediv"),
    ("TrueDiv", "truediv"),
    ("IntTrueDiv", "truediv"),
    ("FloatTrueDiv", "truediv"),
    ("Pow", "pow"),
    ("PowByNatural", "pow"),
    ("FloatPow", "pow"),
    ("FloorDiv", "floordiv"),
    ("CleanDiv", "floordiv"),
    ("Mod", "mod"),
    ("PythonMod", "mod"),
    ("Max", "max"),
    ("Min", "min"),
    ("BitwiseFn_bitwise_and", "and_"),
    ("BitwiseFn_bitwise_or", "or_"),
    ("BitwiseFn_bitwise_xor", "xor"),
    ("LShift", "lshift"),
    ("RShift", "rshift"),
    ("FloorToInt", "floor"),
    ("CeilToInt", "ceil"),
    ("TruncToInt", "trunc"),
    ("RoundToInt", "round"),
    ("ToFloat", "float"),
];

/// Functions of a double that rise wherever they are defined.
const RISING: [&str; 9] = ["sqrt", "exp", "log", "log2", "sinh", "tanh", "asin", "atan", "asinh"];
/// Functions of a double that do not.
const OTHERS: [&str; 5] = ["sin", "cos", "tan", "acos", "cosh"];

/// A number over sizes.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Number {
    /// An integer.
    Whole(Expr),
    /// A double.
    Real(f64),
    /// A function by the name that calls have for it, of one or two operands.
    Apply(&'static str, Vec<Number>),
}

/// How a number changes with a size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trend {
    Fixed,
    Rising,
    Falling,
}

impl Trend {
    fn turned(self) -> Trend {
        match self {
            Trend::Fixed => Trend::Fixed,
            Trend::Rising => Trend::Falling,
            Trend::Falling => Trend::Rising,
        }
    }

    fn and(self, other: Trend) -> Option<Trend> {
        match (self, other) {
            (Trend::Fixed, trend) | (trend, Trend::Fixed) => Some(trend),
            (own, other) => (own == other).then_some(own),
        }
    }
}

impl Number {
    /// What an expression computes. Whatever is an integer expression stays one.
    pub(super) fn of(tree: &Tree, scope: &mut dyn Scope) -> Result<Number, String> {
        if let Ok(whole) = tree.integer(scope)
            && !is_float(tree)
        {
            return Ok(Number::Whole(whole));
        }
        match tree {
            Tree::Real(value) => Ok(Number::Real(*value)),
            Tree::Call(name, args) => Number::call(name, args, scope),
            Tree::Int(_) | Tree::Symbol(_) | Tree::Size(..) | Tree::Value(_) => {
                tree.integer(scope).map(Number::Whole)
            }
        }
    }

    fn call(name: &str, args: &[Tree], scope: &mut dyn Scope) -> Result<Number, String> {
        let operands: Vec<Number> =
            args.iter().map(|arg| Number::of(arg, scope)).collect::<Result<_, String>>()?;
        let opaque = name.strip_prefix("OpaqueUnaryFn_");
        let unary = opaque.and_then(|own| RISING.iter().chain(&OTHERS).find(|known| **known == own));
        let listed = FUNCTIONS.iter().find(|(own, _)| *own == name).map(|(_, function)| function);
        let odd = || format!("`{name}` of {} operands is not understood", args.len());
        match (name, operands.as_slice()) {
            ("Identity", [x]) => Ok(x.clone()),
            ("Abs" | "abs", [x]) => Ok(Number::Apply("abs", vec![x.clone()])),
            ("floor" | "ceiling", [x]) => {
                Ok(Number::Apply(if name == "floor" { "floor" } else { "ceil" }, vec![x.clone()]))
            }
            ("TruncToFloat", [x]) => {
                Ok(Number::Apply("float", vec![Number::Apply("trunc", vec![x.clone()])]))
            }
            (_, [x]) => {
                let function = unary.or(listed).ok_or_else(odd)?;
                Ok(Number::Apply(function, vec![x.clone()]))
            }
            (_, [first, rest @ ..]) => {
                let function = listed.ok_or_else(odd)?;
                let is_chain = matches!(*function, "add" | "mul" | "max" | "min");
                if rest.len() > 1 && !is_chain {
                    return Err(odd());
                }
                let join = |all: Number, next: &Number| Number::Apply(function, vec![all, next.clone()]);
                Ok(rest.iter().fold(first.clone(), join))
            }
            (_, []) => Err(odd()),
        }
    }

    /// Whether it is an integer in Python.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Number::Whole(_) => true,
            Number::Real(_) => false,
            Number::Apply(function, operands) => match *function {
                "floor" | "ceil" | "trunc" | "round" => true,
                "truediv" | "float" => false,
                "pow" => {
                    let exponent = operands.get(1);
                    let natural =
                        matches!(exponent, Some(Number::Whole(n)) if n.as_int().is_some_and(|n| n >= 0));
                    natural && operands[0].is_whole()
                }
                function if RISING.contains(&function) || OTHERS.contains(&function) => false,
                _ => operands.iter().all(Number::is_whole),
            },
        }
    }

    /// The sizes that it depends on.
    fn symbols(&self, into: &mut BTreeSet<Symbol>) {
        match self {
            Number::Whole(expr) => expr.collect_symbols(into),
            Number::Real(_) => {}
            Number::Apply(_, operands) => operands.iter().for_each(|operand| operand.symbols(into)),
        }
    }

    /// Its value in Python, where the size has this one; `None` where Python has an error, or integers leave 64 bits.
    fn evaluate(&self, symbol: Symbol, size: i64) -> Option<Value> {
        match self {
            Number::Whole(expr) => expr.evaluate(&|own| (own == symbol).then_some(size)).map(Value::Int),
            Number::Real(value) => Some(Value::Real(*value)),
            Number::Apply(function, operands) => {
                let values: Option<Vec<Value>> =
                    operands.iter().map(|operand| operand.evaluate(symbol, size)).collect();
                match values?.as_slice() {
                    [x] => x.apply(function),
                    [x, y] => x.combine(function, *y),
                    _ => None,
                }
            }
        }
    }

    /// Bounds of its value, if it always has one.
    fn bounds(&self, ranges: &dyn Ranges) -> Option<(f64, f64)> {
        let found = match self {
            Number::Whole(expr) => {
                let Interval { min, max } = expr.interval(ranges);
                (min as f64, max as f64)
            }
            Number::Real(value) => (*value, *value),
            Number::Apply(function, operands) => {
                let bounds: Option<Vec<(f64, f64)>> =
                    operands.iter().map(|operand| operand.bounds(ranges)).collect();
                match bounds?.as_slice() {
                    [(low, high)] => unary_bounds(function, *low, *high)?,
                    [x, y] => binary_bounds(function, *x, *y)?,
                    _ => return None,
                }
            }
        };
        (!found.0.is_nan() && !found.1.is_nan()).then_some(found)
    }

    /// How it changes with its only size.
    fn trend(&self, symbol: Symbol, ranges: &dyn Ranges) -> Option<Trend> {
        match self {
            Number::Whole(expr) => whole_trend(expr, symbol),
            Number::Real(_) => Some(Trend::Fixed),
            Number::Apply(function, operands) => {
                let trends: Option<Vec<Trend>> =
                    operands.iter().map(|operand| operand.trend(symbol, ranges)).collect();
                match (trends?.as_slice(), operands.as_slice()) {
                    ([x], _) => {
                        let rises = matches!(*function, "floor" | "ceil" | "trunc" | "round" | "float")
                            || RISING.contains(function);
                        (rises || *x == Trend::Fixed).then_some(*x)
                    }
                    ([x, y], [left, right]) => {
                        let fixed = [x, y].iter().all(|trend| **trend == Trend::Fixed);
                        if fixed {
                            Some(Trend::Fixed)
                        } else {
                            binary_trend(function, *x, *y, left, right, ranges)
                        }
                    }
                    _ => None,
                }
            }
        }
    }
}

/// Whether Python computes a float, even where its value is an integer.
fn is_float(tree: &Tree) -> bool {
    match tree {
        Tree::Real(_) => true,
        Tree::Call(name, args) => match name.as_str() {
            "ToFloat" | "Rational" | "TrueDiv" | "IntTrueDiv" | "FloatTrueDiv" | "FloatPow" => true,
            "Add" | "Mul" | "Max" | "Min" | "Identity" | "Pow" => args.iter().any(is_float),
            _ => false,
        },
        Tree::Int(_) | Tree::Symbol(_) | Tree::Size(..) | Tree::Value(_) => false,
    }
}

fn whole_trend(expr: &Expr, symbol: Symbol) -> Option<Trend> {
    if !expr.mentions(symbol) {
        return Some(Trend::Fixed);
    }
    match expr.node() {
        Node::Int(_) | Node::Sym(_) => Some(Trend::Rising),
        Node::Sum { terms, .. } => terms.iter().try_fold(Trend::Fixed, |all, (term, coefficient)| {
            let own = whole_trend(term, symbol)?;
            all.and(if *coefficient < 0 { own.turned() } else { own })
        }),
        Node::FloorDiv(a, b) if b.as_int().is_some_and(|b| b > 0) => whole_trend(a, symbol),
        Node::Min(a, b) | Node::Max(a, b) => whole_trend(a, symbol)?.and(whole_trend(b, symbol)?),
        Node::FloorDiv(..) | Node::Product(_) | Node::Mod(..) => None,
    }
}

fn binary_trend(
    function: &str,
    x: Trend,
    y: Trend,
    left: &Number,
    right: &Number,
    ranges: &dyn Ranges,
) -> Option<Trend> {
    let is_positive =
        |number: &Number, least: f64| number.bounds(ranges).is_some_and(|(low, _)| low >= least);
    let is_negative = |number: &Number| number.bounds(ranges).is_some_and(|(_, high)| high <= 0.0);
    let tiny = f64::MIN_POSITIVE;
    // A product with what is never negative, or never positive.
    let signed = |trend: Trend, factor: &Number| {
        if trend == Trend::Fixed || is_positive(factor, 0.0) {
            Some(trend)
        } else {
            is_negative(factor).then_some(trend.turned())
        }
    };
    match function {
        "add" | "max" | "min" => x.and(y),
        "mul" => signed(x, right)?.and(signed(y, left)?),
        "truediv" if is_positive(right, tiny) => x.and(signed(y.turned(), left)?),
        "pow" if y == Trend::Fixed && is_positive(left, 0.0) => signed(x, right),
        _ => None,
    }
}

/// What a comparison asks of sizes, where it always holds, never does, or depends on a single size and changes with it in one
/// direction.
pub(super) fn compared(
    left: &Number,
    relation: Relation,
    right: &Number,
    ranges: &dyn Ranges,
) -> Option<Condition> {
    let mut symbols = BTreeSet::new();
    left.symbols(&mut symbols);
    right.symbols(&mut symbols);
    if let (Some(a), Some(b)) = (left.bounds(ranges), right.bounds(ranges))
        && let Some(holds) = decided(a, relation, b)
    {
        return Some(if holds { Condition::TRUE } else { Condition::FALSE });
    }
    let mut symbols = symbols.into_iter();
    let (Some(symbol), None) = (symbols.next(), symbols.next()) else { return None };
    let (rising, falling) = (left.trend(symbol, ranges)?, right.trend(symbol, ranges)?);
    // The side that changes less the other one.
    let trend = rising.and(falling.turned())?;
    let range = ranges.range(symbol);
    let (first, last) = (range.min.max(-LARGEST), range.max.min(LARGEST));
    let holds_at = |size: i64, relation: Relation| {
        let (a, b) = (left.evaluate(symbol, size)?, right.evaluate(symbol, size)?);
        Some(match (a, b) {
            (Value::Int(a), Value::Int(b)) => relation.holds(a, b),
            (a, b) => relation.holds(a.real(), b.real()),
        })
    };
    // The least size at which a relation that then stays so holds.
    let start = |relation: Relation| {
        let (mut low, mut high) = (first, last.checked_add(1)?);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds_at(middle, relation)? { high = middle } else { low = middle + 1 }
        }
        Some(low)
    };
    let (reached, passed) = match trend {
        Trend::Fixed | Trend::Rising => (start(Relation::Ge)?, start(Relation::Gt)?),
        Trend::Falling => (start(Relation::Le)?, start(Relation::Lt)?),
    };
    let from = |size: i64| Condition::compare(symbol, Relation::Ge, size);
    let below = |size: i64| Condition::compare(symbol, Relation::Lt, size);
    let relation = if trend == Trend::Falling { swapped(relation) } else { relation };
    Some(match relation {
        Relation::Ge => from(reached),
        Relation::Gt => from(passed),
        Relation::Lt => below(reached),
        Relation::Le => below(passed),
        Relation::Eq => Condition::all([from(reached), below(passed)]),
        Relation::Ne => Condition::any([below(reached), from(passed)]),
    })
}

fn decided(a: (f64, f64), relation: Relation, b: (f64, f64)) -> Option<bool> {
    match relation {
        Relation::Ge if a.0 >= b.1 => Some(true),
        Relation::Ge if a.1 < b.0 => Some(false),
        Relation::Gt if a.0 > b.1 => Some(true),
        Relation::Gt if a.1 <= b.0 => Some(false),
        Relation::Le | Relation::Lt => decided(b, swapped(relation), a),
        Relation::Eq if a.1 < b.0 || b.1 < a.0 => Some(false),
        Relation::Ne if a.1 < b.0 || b.1 < a.0 => Some(true),
        Relation::Ge | Relation::Gt | Relation::Eq | Relation::Ne => None,
    }
}

pub(super) fn swapped(relation: Relation) -> Relation {
    match relation {
        Relation::Le => Relation::Ge,
        Relation::Lt => Relation::Gt,
        Relation::Ge => Relation::Le,
        Relation::Gt => Relation::Lt,
        Relation::Eq | Relation::Ne => relation,
    }
}

#[cfg(test)]
mod tests {
    use super::super::expr::parse;
    use super::*;
    use crate::symbolic::RangeTable;

    struct Sizes(RangeTable);

    impl Scope for Sizes {
        fn symbol(&mut self, name: &str) -> Result<Expr, String> {
            let index = name.strip_prefix('s').and_then(|digits| digits.parse().ok());
            let symbol = Symbol::size(index.ok_or_else(|| format!("unknown `{name}`"))?);
            self.0.set(symbol, Interval::new(0, i64::MAX));
            Ok(Expr::sym(symbol))
        }
        fn ranges(&self) -> &dyn Ranges {
            &self.0
        }
    }

    fn condition(text: &str) -> Condition {
        let tree = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        tree.condition(&mut Sizes(RangeTable::default())).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn guards_of_one_size_hold_where_they_hold_in_python() {
        type Guard = fn(i64) -> bool;
        let guards: [(&str, Guard); 22] = [
            ("math.trunc(0.7*torch.sym_float(s0)) == 7", |s| (0.7 * s as f64).trunc() == 7.0),
            ("TruncToInt(Mul(Float('0.7', precision=53), ToFloat(Symbol('s0')))) != 7", |s| {
                (0.7 * s as f64).trunc() != 7.0
            }),
            ("math.trunc(torch.sym_float(s0) ** 0.5) == 3", |s| (s as f64).powf(0.5).trunc() == 3.0),
            ("math.floor(torch._sym_sqrt(torch.sym_float(s0))) <= 4", |s| (s as f64).sqrt().floor() <= 4.0),
            ("round(0.3*torch.sym_float(s0)) == 4", |s| (0.3 * s as f64).round_ties_even() == 4.0),
            ("math.ceil(s0 / 3) > 5", |s| (s as f64 / 3.0).ceil() > 5.0),
            ("s0 / 7 <= 0.7142857142857143", |s| s as f64 / 7.0 <= 0.714_285_714_285_714_3),
            ("10.0 / (torch.sym_float(s0) + 1.5) >= 0.31", |s| 10.0 / (s as f64 + 1.5) >= 0.31),
            ("0.1*torch.sym_float(s0) == 0.30000000000000004", |s| {
                0.1 * s as f64 == 0.300_000_000_000_000_04
            }),
            ("math.log2(torch.sym_float(s0 + 1)) < 4.5", |s| ((s + 1) as f64).log2() < 4.5),
            ("1 + (s0 & 7) >= 2", |s| 1 + (s & 7) >= 2),
            ("(s0 | 5) == 13 or (s0 ^ 6) > 40", |s| (s | 5) == 13 || (s ^ 6) > 40),
            ("(s0 << 2) > 37 and (s0 >> 1) != 20", |s| (s << 2) > 37 && (s >> 1) != 20),
            ("2 < s0 <= 9", |s| 2 < s && s <= 9),
            ("not (s0 % 4 == 3) and s0 // 5 >= 2", |s| s % 4 != 3 && s / 5 >= 2),
            ("s0**2 > 50", |s| s * s > 50),
            ("min(s0, 9) + max(s0, 4) == 13", |s| s.min(9) + s.max(4) == 13),
            ("abs(s0 - 10) < 3", |s| (s - 10).abs() < 3),
            ("Where(s0 > 4, s0, 0) > 7", |s| (if s > 4 { s } else { 0 }) > 7),
            ("BitwiseFn_bitwise_and(Symbol('s0'), Integer(12)) == 8", |s| s & 12 == 8),
            ("LShift(s0, 1) >= CeilDiv(s0, 3) + 9", |s| 2 * s >= (s + 2) / 3 + 9),
            ("Identity(s0) > 3 and FloorDiv(s0, 2) < 9", |s| s > 3 && s / 2 < 9),
        ];
        for (text, holds) in guards {
            let condition = condition(text);
            for size in 0..400 {
                assert_eq!(condition.evaluate(&|_| Some(size)), holds(size), "{text} for {size}");
            }
        }
    }

    #[test]
    fn what_always_holds_is_no_check() {
        for text in [
            "((1.0 / (torch.sym_float(s0 + 1) ** 0.5))) >= 0.0",
            "torch.sym_float(s0) ** 0.5 >= 0.0",
            "s0 / (s1 + 1) > -0.1",
            "torch._sym_sqrt(torch.sym_float(s0*s1)) + 0.1 > 0",
        ] {
            assert_eq!(condition(text), Condition::TRUE, "{text}");
        }
    }

    #[test]
    fn what_relates_two_sizes_by_doubles_is_no_condition() {
        for text in [
            "s0 / s1 > 0.3",
            "math.sin(torch.sym_float(s0)) > 0.1",
            "(s0 & s1) == 2",
            "0.1*torch.sym_float(s0) < torch.sym_float(s1) ** 0.3",
        ] {
            parse(text).unwrap().condition(&mut Sizes(RangeTable::default())).expect_err(text);
        }
    }
}
