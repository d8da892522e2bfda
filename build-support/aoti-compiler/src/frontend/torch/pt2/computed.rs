//! Guards that no condition on sizes says: calls in front of the program's own compute them, and assert them.

use super::expr::{Scope, Tree, relation_of};
use super::numeric::Number;
use crate::dtype::DType;
use crate::frontend::torch::aten::{Arg, Call, Output, Program, TensorMeta};
use crate::graph::{Origin, Relation};
use crate::symbolic::Expr;

/// Calls that compute truth values.
pub(super) struct Computed<'s> {
    scope: &'s mut dyn Scope,
    calls: Vec<Call>,
    values: Vec<(String, TensorMeta)>,
    /// How many values other guards have.
    taken: usize,
}

/// Has the program assert what a guard says; an error where it is not understood.
pub(super) fn assert(
    program: &mut Program,
    tree: &Tree,
    text: &str,
    taken: &mut usize,
    scope: &mut dyn Scope,
) -> Result<(), String> {
    let mut computed = Computed { scope, calls: Vec::new(), values: Vec::new(), taken: *taken };
    let truth = computed.truth(tree)?;
    let message = Arg::Str(format!("the model requires {text}"));
    computed.calls.push(Call {
        target: "aten._assert_scalar.default".to_owned(),
        args: vec![("self".to_owned(), truth), ("assert_msg".to_owned(), message)],
        outputs: vec![],
        origin: Origin::default(),
    });
    *taken += computed.values.len();
    program.calls.splice(0..0, computed.calls);
    program.tensors.extend(computed.values);
    Ok(())
}

impl Computed<'_> {
    fn truth(&mut self, tree: &Tree) -> Result<Arg, String> {
        if let Ok(condition) = tree.condition(self.scope) {
            return Ok(Arg::Condition(condition));
        }
        let Tree::Call(name, args) = tree else { return Err("not a condition".to_owned()) };
        match (name.as_str(), args.as_slice()) {
            ("And" | "Or", [first, rest @ ..]) => {
                let function = if name == "And" { "and_" } else { "or_" };
                let mut all = self.truth(first)?;
                for part in rest {
                    let part = self.truth(part)?;
                    all = self.value(function, vec![all, part], DType::Bool);
                }
                Ok(all)
            }
            ("Not", [part]) => {
                let part = self.truth(part)?;
                Ok(self.value("not_", vec![part], DType::Bool))
            }
            (name, [left, right]) => {
                let relation =
                    relation_of(name).ok_or_else(|| format!("`{name}` is not a condition on sizes"))?;
                self.comparison(left, relation, right)
            }
            _ => Err(format!("`{name}` is not a condition on sizes")),
        }
    }

    fn comparison(&mut self, left: &Tree, relation: Relation, right: &Tree) -> Result<Arg, String> {
        let (left, right) = (Number::of(left, self.scope)?, Number::of(right, self.scope)?);
        let operands = vec![self.number(&left), self.number(&right)];
        Ok(self.value(relation.name(), operands, DType::Bool))
    }

    fn number(&mut self, number: &Number) -> Arg {
        match number {
            Number::Whole(expr) => Arg::Int(expr.clone()),
            Number::Real(value) => Arg::Float(*value),
            Number::Apply(function, operands) => {
                let operands = operands.iter().map(|operand| self.number(operand)).collect();
                let dtype = if number.is_whole() { DType::I64 } else { DType::F64 };
                self.value(function, operands, dtype)
            }
        }
    }

    /// What a call of these operands gives.
    fn value(&mut self, function: &str, operands: Vec<Arg>, dtype: DType) -> Arg {
        // No name of Python has a dot.
        let name = format!("guard.{}", self.taken + self.values.len());
        let meta = TensorMeta {
            dtype,
            is_complex: false,
            sizes: vec![],
            strides: vec![],
            storage_offset: Expr::int(0),
        };
        self.values.push((name.clone(), meta));
        let named = |(index, operand)| (format!("x{index}"), operand);
        self.calls.push(Call {
            target: format!("_operator.{function}"),
            args: operands.into_iter().enumerate().map(named).collect(),
            outputs: vec![Output::Tensor(name.clone())],
            origin: Origin::default(),
        });
        Arg::Tensor(name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::expr::parse;
    use super::*;
    use crate::frontend::torch::aten::text::parse as parse_program;
    use crate::frontend::torch::functionalize::functionalize;
    use crate::interpret::{Tensor, evaluate};
    use crate::symbolic::{Interval, RangeTable, Ranges, Symbol};

    struct Sizes(RangeTable);

    impl Scope for Sizes {
        fn symbol(&mut self, name: &str) -> Result<Expr, String> {
            let index = if name == "s0" { 0 } else { 1 };
            self.0.set(Symbol::size(index), Interval::new(1, i64::MAX));
            Ok(Expr::sym(Symbol::size(index)))
        }
        fn ranges(&self) -> &dyn Ranges {
            &self.0
        }
    }

    #[test]
    fn guards_of_several_sizes_are_asserted_when_the_program_runs() {
        type Guard = fn(i64, i64) -> bool;
        let guards: [(&str, Guard); 5] = [
            ("s0 / s1 > 0.3", |a, b| a as f64 / b as f64 > 0.3),
            ("(s0 & s1) == 2 or (s0 ^ s1) == 5", |a, b| a & b == 2 || a ^ b == 5),
            ("not math.trunc(0.7*torch.sym_float(s0 + s1)) == 4", |a, b| {
                (0.7 * (a + b) as f64).trunc() != 4.0
            }),
            ("round(s0 / s1) + (s0 << 1) < 9 and s0 > 1", |a, b| {
                (a as f64 / b as f64).round_ties_even() as i64 + 2 * a < 9 && a > 1
            }),
            ("max(0.5*torch.sym_float(s0), torch.sym_float(s1)**0.5) >= 1.7", |a, b| {
                (0.5 * a as f64).max((b as f64).sqrt()) >= 1.7
            }),
        ];
        for (text, holds) in guards {
            let source = r#"program {
                symbol s0 "x_d0" in 1..inf from input 0 axis 0
                symbol s1 "x_d1" in 1..inf from input 0 axis 1
                input %x: f32[s0, s1]
                %y: f32[s0, s1] = aten.neg.default(self = %x)
                output %y
            }"#;
            let mut program = parse_program(source).unwrap_or_else(|error| panic!("{error}"));
            let tree = parse(text).unwrap();
            assert(&mut program, &tree, text, &mut 0, &mut Sizes(RangeTable::default())).unwrap();
            crate::frontend::torch::aten::verify(&program).unwrap_or_else(|error| panic!("{text}: {error}"));
            let graph = functionalize(&program).unwrap_or_else(|error| panic!("{text}: {error}"));
            for (a, b) in (1..7).flat_map(|a| (1..9).map(move |b| (a, b))) {
                let sizes = [a as usize, b as usize];
                let x = Tensor::from_f32(&sizes, &vec![1.0; sizes[0] * sizes[1]]);
                let found = evaluate(&graph, &[x]);
                assert_eq!(found.is_ok(), holds(a, b), "{text} for {a} and {b}");
                if let Err(error) = found {
                    assert!(error.to_string().contains(text), "{error}");
                }
            }
        }
    }
}
