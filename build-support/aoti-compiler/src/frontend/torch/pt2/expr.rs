//! Integer expressions as the export writes them: sympy's `srepr` (`Mul(Integer(2), Symbol('s0', ...))`) and the
//! infix text of older versions and of guards (`2*s0`, `L['x'].size()[0]`).
//!
//! Text becomes a [`Tree`] (by [`parse`]), a tree becomes an [`Expr`] in a [`Scope`] that knows the names. Division is exact or
//! rounded explicitly; what is not an integer is refused.

use super::bits;
use super::fraction::{Fraction, checked, product, scale_of_sizes};
use super::numeric::{Number, compared};
pub(super) use super::parse::parse;
use super::relate::with_large_constant;
use crate::graph::{Condition, Relation};
use crate::symbolic::{Expr, Ranges};
use std::hash::{Hash, Hasher};

/// An expression as written.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Tree {
    /// An integer.
    Int(i64),
    /// A number that arithmetic here is not exact with.
    Real(f64),
    /// A symbol.
    Symbol(String),
    /// The size of an argument of the program: path of the argument, axis.
    Size(String, usize),
    /// An integer argument of the program: its path.
    Value(String),
    /// A function or operator by its sympy name.
    Call(String, Vec<Tree>),
}

// No text is parsed to NaN.
impl Eq for Tree {}

impl Hash for Tree {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Tree::Int(number) => number.hash(state),
            // Both zeros are equal.
            Tree::Real(number) => (number + 0.0).to_bits().hash(state),
            Tree::Symbol(name) | Tree::Value(name) => name.hash(state),
            Tree::Size(name, axis) => (name, axis).hash(state),
            Tree::Call(name, args) => (name, args).hash(state),
        }
    }
}

/// What names mean.
pub(super) trait Scope {
    /// The value of a symbol.
    fn symbol(&mut self, name: &str) -> Result<Expr, String>;
    /// The size of axis `axis` of the argument `name`.
    fn size(&mut self, name: &str, axis: usize) -> Result<Expr, String> {
        let _ = axis;
        Err(format!("the size of `{name}` has no meaning here"))
    }
    /// The integer argument `name`.
    fn value(&mut self, name: &str) -> Result<Expr, String> {
        Err(format!("the argument `{name}` has no meaning here"))
    }
    /// What stands for an expression that a call computes.
    fn computed(&self, tree: &Tree) -> Option<Expr> {
        let _ = tree;
        None
    }
    /// What is known of symbols.
    fn ranges(&self) -> &dyn Ranges;
}

impl Tree {
    /// Its value as an integer expression.
    pub(super) fn integer(&self, scope: &mut dyn Scope) -> Result<Expr, String> {
        self.fraction(scope)?.exact(scope.ranges())
    }

    /// Its meaning as a condition.
    pub(super) fn condition(&self, scope: &mut dyn Scope) -> Result<Condition, String> {
        let (name, args) = match self {
            Tree::Symbol(name) if name == "true" => return Ok(Condition::TRUE),
            Tree::Symbol(name) if name == "false" => return Ok(Condition::FALSE),
            Tree::Call(name, args) => (name.as_str(), args.as_slice()),
            Tree::Int(_) | Tree::Real(_) | Tree::Symbol(_) | Tree::Size(..) | Tree::Value(_) => {
                return Err("not a condition".to_owned());
            }
        };
        let mut parts = || args.iter().map(|arg| arg.condition(scope)).collect::<Result<Vec<_>, _>>();
        let relation = match (name, args) {
            ("And" | "BitwiseFn_bitwise_and", _) => return Ok(Condition::all(parts()?)),
            ("Or" | "BitwiseFn_bitwise_or", _) => return Ok(Condition::any(parts()?)),
            ("Not", [part]) => return Ok(part.condition(scope)?.negated()),
            (name, [_, _]) => relation_of(name),
            _ => None,
        };
        let relation = relation.ok_or_else(|| format!("`{name}` is not a condition on sizes"))?;
        exactly(&args[0], relation, &args[1], scope)
            .or_else(|reason| by_doubles(&args[0], relation, &args[1], scope).ok_or(reason))
    }

    /// Adds the names of its symbols to `names`, each once, in order.
    pub(super) fn symbols(&self, names: &mut Vec<String>) {
        match self {
            Tree::Int(_) | Tree::Real(_) | Tree::Size(..) | Tree::Value(_) => {}
            Tree::Symbol(name) => {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            Tree::Call(_, args) => args.iter().for_each(|arg| arg.symbols(names)),
        }
    }

    fn fraction(&self, scope: &mut dyn Scope) -> Result<Fraction, String> {
        if let Some(number) = scope.computed(self) {
            return Ok(Fraction::whole(number));
        }
        match self {
            Tree::Int(value) => Ok(Fraction::whole(Expr::int(*value))),
            Tree::Real(value) => Err(format!("`{value:e}` is not a fraction of a small power of two")),
            Tree::Symbol(name) => Ok(Fraction::whole(scope.symbol(name)?)),
            Tree::Size(name, axis) => Ok(Fraction::whole(scope.size(name, *axis)?)),
            Tree::Value(name) => Ok(Fraction::whole(scope.value(name)?)),
            Tree::Call(name, args) if name == "Piecewise" => piecewise(args, scope),
            Tree::Call(name, args) if name == "Where" && args.len() == 3 => choice(args, scope),
            Tree::Call(name, args) => match rounded_scaled(name, args, scope)? {
                Some(size) => Ok(size),
                None => call(name, args, scope),
            },
        }
    }
}

/// The relation of a sympy name.
pub(super) fn relation_of(name: &str) -> Option<Relation> {
    Some(match name {
        "Equality" | "Eq" => Relation::Eq,
        "Unequality" | "Ne" => Relation::Ne,
        "GreaterThan" | "Ge" => Relation::Ge,
        "LessThan" | "Le" => Relation::Le,
        "StrictGreaterThan" | "Gt" => Relation::Gt,
        "StrictLessThan" | "Lt" => Relation::Lt,
        _ => return None,
    })
}

/// A comparison of integers and of fractions.
fn exactly(
    left: &Tree,
    relation: Relation,
    right: &Tree,
    scope: &mut dyn Scope,
) -> Result<Condition, String> {
    if let Some(condition) = with_large_constant(left, relation, right, scope)? {
        return Ok(condition);
    }
    let (left, right) = (left.fraction(scope)?, right.fraction(scope)?);
    let (left, right) = left.over_common(&right, scope.ranges())?;
    Ok(Condition::Compare(left, relation, right))
}

/// A comparison of floating-point numbers, where it asks something of a single size.
fn by_doubles(left: &Tree, relation: Relation, right: &Tree, scope: &mut dyn Scope) -> Option<Condition> {
    let (left, right) = (Number::of(left, scope).ok()?, Number::of(right, scope).ok()?);
    compared(&left, relation, &right, scope.ranges())
}

/// The value of the first branch whose condition holds; the last branch's condition always does.
fn piecewise(branches: &[Tree], scope: &mut dyn Scope) -> Result<Fraction, String> {
    let Some((last, rest)) = branches.split_last() else {
        return Err("a choice without branches".to_owned());
    };
    let branch = |tree: &Tree, scope: &mut dyn Scope| match tree {
        Tree::Call(name, parts) if name == "ExprCondPair" && parts.len() == 2 => {
            Ok((parts[0].integer(scope)?, parts[1].condition(scope)?))
        }
        Tree::Int(_) | Tree::Real(_) | Tree::Symbol(_) | Tree::Size(..) | Tree::Value(_) | Tree::Call(..) => {
            Err("a branch of a choice is not understood".to_owned())
        }
    };
    let (value, condition) = branch(last, scope)?;
    if condition != Condition::TRUE {
        return Err("no branch of a choice is sure to hold".to_owned());
    }
    let mut result = value;
    for tree in rest.iter().rev() {
        let (value, condition) = branch(tree, scope)?;
        let chosen = condition.indicator(scope.ranges());
        result = checked(&result + &product(&(&value - &result), &chosen)?)?;
    }
    Ok(Fraction::whole(result))
}

/// `Where(condition, then, otherwise)`.
fn choice(args: &[Tree], scope: &mut dyn Scope) -> Result<Fraction, String> {
    let pair =
        |value: &Tree, condition: Tree| Tree::Call("ExprCondPair".to_owned(), vec![value.clone(), condition]);
    let last = pair(&args[2], Tree::Symbol("true".to_owned()));
    piecewise(&[pair(&args[1], args[0].clone()), last], scope)
}

fn call(name: &str, args: &[Tree], scope: &mut dyn Scope) -> Result<Fraction, String> {
    let values: Result<Vec<Fraction>, String> = args.iter().map(|arg| arg.fraction(scope)).collect();
    of_fractions(name, &values?, scope.ranges())
}

/// A size times a floating-point number, rounded to an integer.
fn rounded_scaled(name: &str, args: &[Tree], scope: &mut dyn Scope) -> Result<Option<Fraction>, String> {
    let ("TruncToInt" | "FloorToInt" | "floor" | "CeilToInt" | "ceiling", [Tree::Call(inner, factors)]) =
        (name, args)
    else {
        return Ok(None);
    };
    let ("Mul", [Tree::Real(scale), size] | [size, Tree::Real(scale)]) = (inner.as_str(), factors.as_slice())
    else {
        return Ok(None);
    };
    let is_floor = !matches!(name, "CeilToInt" | "ceiling");
    let Some((p, q)) = scale_of_sizes(*scale, is_floor) else { return Ok(None) };
    let scale = Fraction { numerator: Expr::int(p), denominator: Expr::int(q) };
    let scaled = size.fraction(scope)?.multiply(&scale)?;
    of_fractions(name, &[scaled], scope.ranges()).map(Some)
}

fn of_fractions(name: &str, values: &[Fraction], ranges: &dyn Ranges) -> Result<Fraction, String> {
    let whole = |expr| Ok(Fraction::whole(expr));
    match (name, values) {
        ("Add", [first, rest @ ..]) => rest.iter().try_fold(first.clone(), |sum, value| sum.add(value)),
        ("Mul", [first, rest @ ..]) => rest.iter().try_fold(first.clone(), |all, value| all.multiply(value)),
        ("Pow" | "PowByNatural", [base, exponent]) => power(base, &exponent.exact(ranges)?),
        ("Rational" | "IntTrueDiv" | "TrueDiv" | "FloatTrueDiv", [a, b]) => a.divide(b),
        ("FloorDiv" | "CleanDiv", [a, b]) => whole(a.divide(b)?.floor(ranges)),
        ("FloorToInt" | "floor", [a]) => whole(a.floor(ranges)),
        ("CeilToInt" | "ceiling", [a]) => {
            let negated = Fraction { numerator: -&a.numerator, denominator: a.denominator.clone() };
            whole(-negated.floor(ranges))
        }
        ("TruncToInt", [a]) => {
            let is_floor = a.numerator.never_negative(ranges) && a.denominator.never_negative(ranges);
            if !is_floor && !a.denominator.is(1) {
                return Err("rounding towards zero of what may be negative".to_owned());
            }
            whole(a.floor(ranges))
        }
        ("Mod" | "PythonMod", [a, b]) => whole(remainder(&a.exact(ranges)?, b, ranges)?),
        ("ModularIndexing", [base, divisor, modulus]) => {
            let quotient = base.divide(divisor)?.floor(ranges);
            whole(remainder(&quotient, modulus, ranges)?)
        }
        ("Max", [first, rest @ ..]) => rest
            .iter()
            .try_fold(first.exact(ranges)?, |all, value| Ok(all.maximum_in(&value.exact(ranges)?, ranges)))
            .and_then(whole),
        ("Min", [first, rest @ ..]) => rest
            .iter()
            .try_fold(first.exact(ranges)?, |all, value| Ok(all.minimum_in(&value.exact(ranges)?, ranges)))
            .and_then(whole),
        ("Identity" | "ToFloat", [a]) => Ok(a.clone()),
        // An integer is rounded already.
        ("RoundToInt", [a]) => whole(a.exact(ranges)?),
        ("Abs", [a]) => {
            let a = a.exact(ranges)?;
            whole(a.maximum_in(&-&a, ranges))
        }
        ("CeilDiv", [a, b]) => {
            let quotient = a.divide(b)?;
            whole(-Fraction { numerator: -&quotient.numerator, ..quotient }.floor(ranges))
        }
        (
            "LShift" | "RShift" | "BitwiseFn_bitwise_and" | "BitwiseFn_bitwise_or" | "BitwiseFn_bitwise_xor",
            [a, b],
        ) => whole(bits::combined(name, &a.exact(ranges)?, &b.exact(ranges)?, ranges)?),
        _ => Err(format!("`{name}` of {} operands is not understood", values.len())),
    }
}

fn remainder(a: &Expr, b: &Fraction, ranges: &dyn Ranges) -> Result<Expr, String> {
    let b = b.exact(ranges)?;
    if b.is(0) { Err("division by zero".to_owned()) } else { Ok(a.modulo_in(&b, ranges)) }
}

fn power(base: &Fraction, exponent: &Expr) -> Result<Fraction, String> {
    let Some(exponent) = exponent.as_int().filter(|exponent| exponent.unsigned_abs() <= 16) else {
        return Err(format!("the power `{exponent}` is not a small number"));
    };
    let one = Fraction::whole(Expr::int(1));
    let power = (0..exponent.unsigned_abs()).try_fold(one.clone(), |power, _| power.multiply(base))?;
    if exponent < 0 { one.divide(&power) } else { Ok(power) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolic::{Interval, RangeTable, Symbol};

    struct Sizes(RangeTable);

    impl Scope for Sizes {
        fn symbol(&mut self, name: &str) -> Result<Expr, String> {
            let index = name.strip_prefix('s').and_then(|digits| digits.parse().ok());
            let symbol = Symbol::size(index.ok_or_else(|| format!("unknown `{name}`"))?);
            self.0.set(symbol, Interval::new(1, 1024));
            Ok(Expr::sym(symbol))
        }
        fn ranges(&self) -> &dyn Ranges {
            &self.0
        }
    }

    fn text(source: &str) -> String {
        match parse(source).and_then(|tree| tree.integer(&mut Sizes(RangeTable::default()))) {
            Ok(expr) => expr.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn srepr_and_infix_agree() {
        assert_eq!(text("Mul(Integer(128), Symbol('s7', positive=True, integer=True))"), "128*s7");
        assert_eq!(text("128*s7"), "128*s7");
        assert_eq!(text("Pow(Symbol('s7', integer=True), Integer(2))"), text("s7**2"));
        assert_eq!(text("FloorDiv(Add(Symbol('s1'), Integer(-1)), Integer(2))"), text("(s1 - 1)//2"));
        assert_eq!(text("Mul(Rational(1, 2), Mul(Integer(4), Symbol('s1')))"), "2*s1");
        assert_eq!(text("TruncToInt(IntTrueDiv(Symbol('s1'), Integer(2)))"), text("s1//2"));
        assert_eq!(text("CeilToInt(IntTrueDiv(Symbol('s1'), Integer(1)))"), "s1");
        assert_eq!(text("Max(Integer(1), Symbol('s1'))"), "s1");
        assert_eq!(
            text("TruncToInt(Mul(Float('1.5', precision=53), ToFloat(Symbol('s1'))))"),
            text("3*s1//2")
        );
        assert_eq!(text("PythonMod(Symbol('s1'), Integer(1))"), "0");
        assert_eq!(
            text("TruncToInt(Mul(Float('0.40000000000000002', precision=53), ToFloat(Symbol('s1'))))"),
            text("2*s1//5")
        );
        assert_eq!(text("math.trunc(1.1*torch.sym_float(s1))"), text("11*s1//10"));
        assert_eq!(text("math.ceil(0.7*torch.sym_float(s1))"), text("-((-7*s1)//10)"));
    }

    #[test]
    fn what_is_no_integer_is_refused() {
        for source in
            ["", "s1/2", "s1 +", "Foo(s1)", "9223372036854775807*s1", "1/0", "Mod(s1, 0)", "Symbol(s1", "x"]
        {
            assert!(text(source).starts_with("error"), "{source}: {}", text(source));
        }
        assert!(text(&"(".repeat(100_000)).starts_with("error"));
        assert!(text(&"Add(".repeat(100_000)).starts_with("error"));
        assert!(text(&"1+".repeat(100_000)).starts_with("error"));
        assert!(text("((s0+s1+s2+s3)**16)**16").starts_with("error"));
        // In f64, 49 times the first is less than 1, and 90 times the second less than 63.
        for scale in ["0.020408163265306121", "0.7", "0.3141592653589793", "1e-300", "1e300"] {
            assert!(text(&format!("math.trunc({scale}*torch.sym_float(s1))")).starts_with("error"));
        }
        // 10 times this is more than 11.
        assert!(text("math.ceil(1.1*torch.sym_float(s1))").starts_with("error"));
    }

    #[test]
    fn conditions_are_read() {
        let mut scope = Sizes(RangeTable::default());
        let tree = parse("And(GreaterThan(Symbol('s0', integer=True), Integer(2)), Ne(s0, 5))").unwrap();
        let text = |source: &str| {
            let condition = parse(source).and_then(|tree| tree.condition(&mut Sizes(RangeTable::default())));
            condition.map(|condition| condition.display_with(&|symbol| symbol.to_string()))
        };
        let condition = tree.condition(&mut scope).unwrap();
        assert_eq!(condition.display_with(&|symbol| symbol.to_string()), "s0 >= 2 and s0 != 5");
        assert_eq!(text("Not(Or(Eq(s0, 5), Lt(s0, 2)))").unwrap(), "s0 != 5 and s0 >= 2");
        assert_eq!(text("Eq(Mod(s0, 2), 0)").unwrap(), "s0 % 2 == 0");
        assert_eq!(text("Lt(s0/2, 3)").unwrap(), "s0 < 6");
        assert!(text("Lt(zuf0, 3)").is_err());
        assert!(text("s0").is_err());
        let guard = parse("L['xs'][0].size()[1] == 3").unwrap();
        assert_eq!(guard, Tree::Call("Eq".to_owned(), vec![Tree::Size("xs_0".to_owned(), 1), Tree::Int(3)]));
        let sizes = "L['n'] >= 0 and not (L['n'] == 3 or 4 <= L['n'] < 9)";
        assert!(parse(sizes).is_ok(), "{:?}", parse(sizes));
        assert_eq!(
            text("s0 > 0 and not (s0 == 3 or 5 <= s0 < 9)").unwrap(),
            "s0 > 0 and s0 != 3 and (5 > s0 or s0 >= 9)"
        );
        assert_eq!(
            text("torch.sym_max(1, 5*s0) == (5*s0)").unwrap(),
            text("Eq(Max(1, 5*s0), 5*s0)").unwrap()
        );
        assert_eq!(
            text("math.ceil(((torch.sym_float(s0)) / 2.0)) >= 2").unwrap(),
            text("CeilToInt(s0/2) >= 2").unwrap()
        );
        assert_eq!(
            text("(1 if s0 > 4 else 0) + s0 < 9"),
            text("Piecewise(ExprCondPair(1, s0 > 4), ExprCondPair(0, true)) + s0 < 9")
        );
        assert_eq!(text("s0 <= 9223372036854775807 + ((-1)*s1)").unwrap(), "s0 + s1 is within 64 bits");
        assert_eq!(text("9223372036854775807 < s0").unwrap(), "false");
        assert_eq!(text("torch.sym_float(s0) <= 3.4028234663852886e+38").unwrap(), "s0 is within 64 bits");
        assert_eq!(
            text("-3.4028234663852886e+38 <= s0 and s0 < 0.1").unwrap(),
            "s0 is within 64 bits and s0 < 1"
        );
        assert_eq!(text("s0 == 0.1 or 1e+300 > s0").unwrap(), "s0 is within 64 bits");
        assert_eq!(text("s0 + 0.1 < 3").unwrap(), "s0 < 3");
        assert!(text("s0 > 1 if s0 > 2").is_err());
        assert!(text("s0 > 1 andy").is_err());
        let guard = parse("L['xs'][1] == 3").unwrap();
        assert_eq!(guard, Tree::Call("Eq".to_owned(), vec![Tree::Value("xs_1".to_owned()), Tree::Int(3)]));
    }
}
