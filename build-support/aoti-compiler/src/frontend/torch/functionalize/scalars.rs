//! Numbers beside tensors: what the program asserts of them, and those that calls compute when it runs.
//!
//! An integer is an expression over the program's symbols, a truth value a condition on them. A floating-point number is a
//! tensor without axes, and so is what is computed from one; where an integer is, its symbol is read from that tensor.

use super::super::rules::support::read_size;
use super::super::rules::unsupported::dynamic::TWO_TO_63;
use super::super::rules::{Formula, Outputs, RuleError};
use super::run::Walk;
use crate::dtype::DType;
use crate::frontend::torch::aten::{Arg, Call, Output};
use crate::graph::{
    BinaryOp, Condition, FloatBinary, FloatUnary, IntBinary, Relation, Rounding, UnaryOp, ValueId,
};
use crate::symbolic::{Expr, Node};
use std::collections::BTreeSet;

/// What a program says of an assertion when it says nothing.
const UNSAID: &str = "an assertion of the program does not hold";

impl Walk<'_> {
    // --- assertions ----------------------------------------------------------------------------------------------

    pub(crate) fn assert_scalar(&mut self, call: &Call) -> Result<(), RuleError> {
        let Some((_, asserted)) = call.args.first() else {
            return Err(RuleError::Malformed("nothing is asserted".to_owned()));
        };
        let message = message(call);
        match asserted {
            Arg::Condition(condition) if self.concerns_offsets(condition) => {}
            Arg::Condition(condition) => self.cx.b.require(condition.clone(), message),
            Arg::Bool(true) => {}
            Arg::Bool(false) => self.cx.b.require(Condition::FALSE, message),
            Arg::Int(value) => {
                let condition = Condition::compare(value.clone(), Relation::Ne, 0);
                self.cx.b.require(condition, message);
            }
            Arg::None
            | Arg::Tensor(_)
            | Arg::Tensors(_)
            | Arg::Ints(_)
            | Arg::Float(_)
            | Arg::Floats(_)
            | Arg::Bools(_)
            | Arg::SymBool(_)
            | Arg::SymFloat(_)
            | Arg::Str(_)
            | Arg::Complex { .. }
            | Arg::DType(_)
            | Arg::Other(_)
            | Arg::Graph(_) => {
                let value = self.number(asserted)?;
                self.cx.b.assert(value, message)?;
            }
        }
        Ok(())
    }

    /// Whether a condition is about offsets within PyTorch's storages alone.
    fn concerns_offsets(&self, condition: &Condition) -> bool {
        let mut symbols = BTreeSet::new();
        condition.expressions().into_iter().for_each(|expr| expr.collect_symbols(&mut symbols));
        !symbols.is_empty() && symbols.is_subset(&self.offsets)
    }

    /// `min <= size <= max`, both of which may be absent.
    pub(crate) fn constrain_range(&mut self, call: &Call, least: Option<i64>) -> Result<(), RuleError> {
        let given = |name: &str| call.args.iter().find(|(own, _)| own == name).map(|(_, arg)| arg);
        let Some(Arg::Int(size)) = given("size").or(call.args.first().map(|(_, arg)| arg)) else {
            return Err(RuleError::Malformed("the constrained number is missing".to_owned()));
        };
        let bound = |name: &str| match given(name) {
            Some(Arg::Int(bound)) => Some(bound.clone()),
            _ => None,
        };
        let least = bound("min").or(least.map(Expr::int));
        let (at_least, at_most) = (Relation::Ge, Relation::Le);
        for (bound, relation) in [(least, at_least), (bound("max"), at_most)] {
            if let Some(bound) = bound {
                self.cx.b.require(Condition::Compare(size.clone(), relation, bound), UNSAID);
            }
        }
        Ok(())
    }

    /// What the program says of a tensor must be so. Devices and layouts are not the program's to choose here.
    pub(crate) fn assert_metadata(&mut self, call: &Call) -> Result<(), RuleError> {
        let names = ["a", "size", "stride", "dtype"];
        let given = |position: usize| {
            let named = call.args.iter().find(|(own, _)| own == names[position]);
            let placed = call.args.get(position).filter(|(own, _)| own.is_empty());
            named.or(placed).map(|(_, arg)| arg).filter(|arg| **arg != Arg::None)
        };
        let Some(Arg::Tensor(name)) = given(0) else {
            return Err(RuleError::Malformed("the tensor to check is missing".to_owned()));
        };
        let value = self.read(name)?;
        let mut ty = self.cx.b.ty(value).clone();
        if self.program.tensors.get(name).is_some_and(|meta| meta.is_complex) {
            ty.shape.pop();
        }
        if let Some(Arg::DType(dtype)) = given(3)
            && *dtype != ty.dtype
        {
            let message = format!("a tensor of {dtype} is asserted where it is {}", ty.dtype);
            self.cx.b.require(Condition::FALSE, &message);
        }
        let strides = self.program.tensors.get(name).map(|meta| meta.strides.clone());
        for (position, own, what) in [(1, Some(ty.shape), "sizes"), (2, strides, "strides")] {
            let (Some(Arg::Ints(asserted)), Some(own)) = (given(position), own) else { continue };
            let message = format!("the {what} of a tensor are not those that are asserted");
            if asserted.len() != own.len() {
                self.cx.b.require(Condition::FALSE, &message);
            }
            for (asserted, own) in asserted.iter().zip(own) {
                self.cx.b.require(Condition::Compare(own, Relation::Eq, asserted.clone()), &message);
            }
        }
        Ok(())
    }

    // --- values --------------------------------------------------------------------------------------------------

    /// A number as a tensor without axes.
    pub(crate) fn number(&mut self, arg: &Arg) -> Result<ValueId, RuleError> {
        match arg {
            Arg::Tensor(name) | Arg::SymBool(name) | Arg::SymFloat(name) => self.read(name),
            Arg::Int(value) => Ok(self.cx.b.index(value.clone(), &[])),
            Arg::Float(value) => Ok(self.cx.b.scalar(*value, DType::F64)),
            Arg::Bool(value) => Ok(self.cx.b.scalar(*value, DType::Bool)),
            Arg::Condition(condition) => Ok(self.cx.truth(condition)),
            Arg::None
            | Arg::Tensors(_)
            | Arg::Ints(_)
            | Arg::Floats(_)
            | Arg::Bools(_)
            | Arg::Complex { .. }
            | Arg::Str(_)
            | Arg::DType(_)
            | Arg::Other(_)
            | Arg::Graph(_) => Err(RuleError::unsupported("an operand that is no number")),
        }
    }

    /// Gives a number that a call has computed its name, or its symbol its value.
    pub(crate) fn bind_number(&mut self, output: &Output, value: ValueId) -> Result<(), RuleError> {
        match output {
            Output::SymInt(name) => {
                let Some(size) = self.program.sym_ints.get(name) else {
                    return Err(RuleError::Malformed(format!("number `{name}` is not described")));
                };
                read_size(&mut self.cx, value, size, None)
            }
            Output::SymFloat(name) => {
                let value = self.cx.b.cast(value, DType::F64);
                self.define(name, value);
                Ok(())
            }
            Output::SymBool(name) => {
                let value = self.cx.b.cast(value, DType::Bool);
                self.define(name, value);
                match self.program.conditions.get(name) {
                    Some(condition) => self.define_truth(value, condition),
                    None => Ok(()),
                }
            }
            Output::Tensor(_) | Output::Tensors(_) | Output::None => {
                Err(RuleError::Malformed("the call's results do not fit its operator".to_owned()))
            }
        }
    }

    /// A truth value that is read from data has a symbol, which is 1 where it is true.
    fn define_truth(&mut self, value: ValueId, condition: &Condition) -> Result<(), RuleError> {
        if let Condition::Compare(left, Relation::Eq, right) = condition
            && right.is(1)
        {
            return self.define_size(value, left);
        }
        // The export knew the value from an assertion, which it then dropped.
        if *condition == Condition::TRUE {
            self.cx.b.assert(value, UNSAID)?;
        } else if *condition == Condition::FALSE {
            let opposite = self.cx.b.unary(UnaryOp::Not, value);
            self.cx.b.assert(opposite, UNSAID)?;
        }
        Ok(())
    }

    /// Reads a value into a symbol that has none yet.
    pub(crate) fn define_size(&mut self, value: ValueId, size: &Expr) -> Result<(), RuleError> {
        if let Node::Sym(symbol) = size.node()
            && self.cx.b.is_data(*symbol)
            && !self.cx.b.is_read(*symbol)
        {
            self.cx.b.read(value, *symbol)?;
        }
        Ok(())
    }

    /// Gives the symbols that the program has for sizes of a result their values, where nothing has yet.
    pub(crate) fn define_sizes(&mut self, value: ValueId, sizes: &[Expr]) -> Result<(), RuleError> {
        let own = self.cx.b.shape(value);
        for (own, size) in own.iter().zip(sizes) {
            let Node::Sym(symbol) = size.node() else { continue };
            if own != size && self.cx.b.is_data(*symbol) && !self.cx.b.is_read(*symbol) {
                let value = self.cx.b.index(own.clone(), &[]);
                self.cx.b.read(value, *symbol)?;
                self.cx.b.require_same(own, size)?;
            }
        }
        Ok(())
    }

    // --- calls ---------------------------------------------------------------------------------------------------

    /// A call of numbers. Integers and truth values over symbols are resolved by the front end; the rest is computed.
    pub(crate) fn numbers(&mut self, call: &Call) -> Result<(), RuleError> {
        let Some(output) = call.outputs.first() else { return Ok(()) };
        if matches!(output, Output::SymInt(_)) {
            self.rely_on_description(call)?;
        }
        let is_resolved = match output {
            Output::SymInt(name) => match self.program.sym_ints.get(name).map(Expr::node) {
                Some(Node::Sym(symbol)) => {
                    !self.cx.b.is_data(*symbol) || self.cx.b.is_read(*symbol) || self.offsets.contains(symbol)
                }
                _ => true,
            },
            Output::SymBool(name) => self.program.conditions.contains_key(name),
            Output::SymFloat(_) | Output::Tensor(_) => false,
            Output::Tensors(_) | Output::None => true,
        };
        if is_resolved {
            return Ok(());
        }
        let value = self.computed(call)?;
        self.bind(call, Outputs::One(value), None)
    }

    fn computed(&mut self, call: &Call) -> Result<ValueId, RuleError> {
        let unsupported = || RuleError::unsupported(format!("the number that `{}` gives", call.target));
        let (_, name) = call.target.split_once('.').ok_or_else(unsupported)?;
        if let ("sym_size.int", [(_, Arg::Tensor(tensor)), (_, Arg::Int(axis))]) =
            (name, call.args.as_slice())
        {
            let value = self.read(tensor)?;
            let shape = self.cx.b.shape(value);
            let axis =
                super::super::rules::Context::axis(axis.as_int().ok_or_else(unsupported)?, shape.len())?;
            let size = shape.get(axis).ok_or_else(unsupported)?.clone();
            return Ok(self.cx.b.index(size, &[]));
        }
        let operands: Result<Vec<ValueId>, RuleError> =
            call.args.iter().map(|(_, arg)| self.number(arg)).collect();
        let name = name.strip_prefix("sym_").or(name.strip_prefix("_sym_")).unwrap_or(name);
        match operands?.as_slice() {
            [x] => self.of_one(name, *x)?.ok_or_else(unsupported),
            [x, y] => self.of_two(name, *x, *y)?.ok_or_else(unsupported),
            [condition, x, y] if name == "ite" => {
                let condition = self.cx.b.cast(*condition, DType::Bool);
                let (x, y) = self.common(*x, *y)?;
                Ok(self.cx.b.select(condition, x, y)?)
            }
            _ => Err(unsupported()),
        }
    }

    fn of_one(&mut self, name: &str, x: ValueId) -> Result<Option<ValueId>, RuleError> {
        let b = &mut self.cx.b;
        let rounding = match name {
            "float" => return Ok(Some(b.cast(x, DType::F64))),
            "not" | "not_" => return Ok(Some(b.unary(UnaryOp::Not, x))),
            "neg" => return Ok(Some(b.unary(UnaryOp::Neg, x))),
            "abs" => return Ok(Some(b.unary(UnaryOp::Abs, x))),
            "pos" => return Ok(Some(x)),
            "int" | "trunc" => Rounding::Trunc,
            "floor" => Rounding::Floor,
            "ceil" => Rounding::Ceil,
            "round" => Rounding::Round,
            name => {
                let Some(function) = float_function(name) else { return Ok(None) };
                let wide = b.cast(x, DType::F64);
                let result = b.unary(UnaryOp::Float(function), wide);
                self.demand_value(result, &[wide], name)?;
                return Ok(Some(result));
            }
        };
        let wide = b.cast(x, DType::F64);
        let rounded = b.unary(UnaryOp::Round(rounding), wide);
        self.demand_integer(rounded)?;
        Ok(Some(self.cx.b.cast(rounded, DType::I64)))
    }

    /// As in Python, what has no integer is an error.
    fn demand_integer(&mut self, x: ValueId) -> Result<(), RuleError> {
        let size = self.cx.b.unary(UnaryOp::Abs, x);
        self.demand(Relation::Lt, size, TWO_TO_63, "a number that is no integer of 64 bits")
    }

    /// As in Python, a function of finite numbers is finite, and NaN of nothing but NaN; all else is an error.
    fn demand_value(&mut self, result: ValueId, of: &[ValueId], name: &str) -> Result<(), RuleError> {
        let result = Formula::from(result);
        let holds = of.iter().map(|x| Formula::from(*x)).fold(result.is_finite(), |holds, x| {
            holds.or(x.is_nan()).or(x.is_inf().and(result.is_nan().not()))
        });
        let holds = self.cx.formula(DType::F64, &holds)?;
        Ok(self.cx.b.assert(holds, &format!("`{name}` of a number outside its domain"))?)
    }

    fn demand(&mut self, relation: Relation, x: ValueId, bound: f64, message: &str) -> Result<(), RuleError> {
        let holds = self.cx.with_number(relation, x, bound)?;
        Ok(self.cx.b.assert(holds, message)?)
    }

    fn of_two(&mut self, name: &str, x: ValueId, y: ValueId) -> Result<Option<ValueId>, RuleError> {
        let (x, y) = if name == "truediv" {
            (self.cx.b.cast(x, DType::F64), self.cx.b.cast(y, DType::F64))
        } else {
            self.common(x, y)?
        };
        if matches!(name, "truediv" | "floordiv" | "mod") {
            let nonzero = self.cx.b.cast(y, DType::Bool);
            self.cx.b.assert(nonzero, "a division by zero")?;
        }
        let op = match name {
            "add" => BinaryOp::Add,
            "sub" => BinaryOp::Sub,
            "mul" => BinaryOp::Mul,
            "truediv" => BinaryOp::Float(FloatBinary::Div),
            "floordiv" => BinaryOp::FloorDiv,
            "mod" => BinaryOp::Remainder,
            "pow" | "pow_by_natural" => BinaryOp::Pow,
            "max" => BinaryOp::Maximum,
            "min" => BinaryOp::Minimum,
            "and_" => BinaryOp::Int(IntBinary::And),
            "or_" => BinaryOp::Int(IntBinary::Or),
            "xor" => BinaryOp::Int(IntBinary::Xor),
            "lshift" => BinaryOp::Int(IntBinary::Shl),
            "rshift" => BinaryOp::Int(IntBinary::Shr),
            name => match Relation::from_name(name) {
                Some(relation) => BinaryOp::Compare(relation),
                None => return Ok(None),
            },
        };
        let is_float = self.cx.b.dtype(x) == DType::F64;
        if op == BinaryOp::Int(IntBinary::Shl) {
            self.demand_product_of_power(x, y)?;
        }
        if name.ends_with("shift") {
            self.demand(Relation::Ge, y, 0.0, "a shift by less than nothing")?;
        }
        if op == BinaryOp::Pow && is_float {
            let power = self.cx.binary(op, x, y)?;
            self.demand_value(power, &[x, y], name)?;
            return Ok(Some(power));
        }
        let grows = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Pow);
        if grows && self.cx.b.dtype(x) == DType::I64 {
            let (wide_x, wide_y) = (self.cx.b.cast(x, DType::F64), self.cx.b.cast(y, DType::F64));
            let wide = self.cx.binary(op, wide_x, wide_y)?;
            self.demand_integer(wide)?;
        }
        Ok(Some(self.cx.binary(op, x, y)?))
    }

    /// The product of a number and a power of two is an integer of 64 bits.
    fn demand_product_of_power(&mut self, x: ValueId, exponent: ValueId) -> Result<(), RuleError> {
        let (x, exponent) = (self.cx.b.cast(x, DType::F64), self.cx.b.cast(exponent, DType::F64));
        let (x, exponent) = (Formula::from(x), Formula::from(exponent));
        // Nothing times what is beyond all numbers is nothing.
        let product = x.equals(0.0).select(0.0, &x * exponent.unary(FloatUnary::Exp2));
        let product = self.cx.formula(DType::F64, &product)?;
        self.demand_integer(product)
    }

    /// Both as floating-point numbers where one is, else as integers.
    fn common(&mut self, x: ValueId, y: ValueId) -> Result<(ValueId, ValueId), RuleError> {
        let dtype = self.cx.b.dtype(x).promote(self.cx.b.dtype(y))?;
        Ok((self.cx.b.cast(x, dtype), self.cx.b.cast(y, dtype)))
    }
}

/// The function of a floating-point number that Python's `math` calls so.
fn float_function(name: &str) -> Option<FloatUnary> {
    Some(match name {
        "sqrt" => FloatUnary::Sqrt,
        "log" => FloatUnary::Log,
        "log2" => FloatUnary::Log2,
        "exp" => FloatUnary::Exp,
        "sin" => FloatUnary::Sin,
        "cos" => FloatUnary::Cos,
        "tan" => FloatUnary::Tan,
        "asin" => FloatUnary::Asin,
        "acos" => FloatUnary::Acos,
        "atan" => FloatUnary::Atan,
        "asinh" => FloatUnary::Asinh,
        "sinh" => FloatUnary::Sinh,
        "cosh" => FloatUnary::Cosh,
        "tanh" => FloatUnary::Tanh,
        _ => return None,
    })
}

fn message(call: &Call) -> &str {
    let text = call.args.iter().find_map(|(_, arg)| if let Arg::Str(text) = arg { Some(text) } else { None });
    text.map_or(UNSAID, String::as_str)
}
