//! Sizes that operators require to be the same, where the program has a symbol for each.
//!
//! The exporter relates sizes only where its own description of an operator compares them: the lengths of keys and values of
//! an attention stay separate symbols. What a rule requires of sizes becomes a guard. An equation among the guards is solved
//! for the size of an input, and the program is read again with that size written as the others, so that whatever compares
//! sizes sees them as one. The equation stays as a check of the run; nothing else mentions the symbol that it was solved for.

use crate::frontend::torch::aten::Program;
use crate::graph::{Condition, Guard, Relation, SymbolInfo, SymbolSource, ranges_of};
use crate::symbolic::{Expr, Interval, NoRanges, Node, Ranges, Symbol};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A program, and what its sizes were found to be.
pub(crate) struct Unified<'p> {
    program: Cow<'p, Program>,
    solved: BTreeMap<Symbol, Expr>,
}

impl<'p> Unified<'p> {
    /// Nothing is known yet.
    pub(crate) fn new(program: &'p Program) -> Unified<'p> {
        Unified { program: Cow::Borrowed(program), solved: BTreeMap::new() }
    }

    /// The program with the sizes that are known so far.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Solves the equations among what a reading of the program required; whether there is anything new. It ends: every
    /// equation takes a symbol out of the program.
    pub(crate) fn learn(&mut self, guards: &[Guard]) -> bool {
        let known = self.solved.len();
        for guard in guards {
            for (left, right) in equations(&guard.condition) {
                if let Some((symbol, value)) = self.solve(&(left - right)) {
                    self.take(symbol, &value, &guard.message);
                }
            }
        }
        self.solved.len() > known
    }

    /// The symbol that the equation `gap == 0` determines, and its value.
    fn solve(&self, gap: &Expr) -> Option<(Symbol, Expr)> {
        let symbols = &self.program.symbols;
        let gap = gap.substitute(&|symbol| self.solved.get(&symbol).cloned(), &NoRanges);
        let ranges = ranges_of(symbols);
        let candidate = |term: &Expr| {
            let Node::Sym(symbol) = term.node() else { return None };
            let info = symbols.get(symbol.index as usize)?;
            let (coefficient, rest) = gap.affine_in(*symbol)?;
            let value = match coefficient.as_int()? {
                1 => -&rest,
                -1 => rest,
                _ => return None,
            };
            let is_early = !mentions_data(&value, symbols);
            let is_size = matches!(info.source, SymbolSource::InputDim { .. });
            (is_size && is_early).then_some((*symbol, value))
        };
        let candidates = gap.as_sum().1.into_iter().filter_map(|(term, _)| candidate(&term));
        // What is never negative is a size as it stands; inputs that come first keep their own.
        candidates.max_by_key(|(symbol, value)| (value.interval(&ranges).min >= 0, symbol.index))
    }

    /// Writes the symbol as its value from here on.
    fn take(&mut self, symbol: Symbol, value: &Expr, message: &str) {
        let program = self.program.to_mut();
        narrow(&mut program.symbols, symbol, value);
        let ranges = ranges_of(&program.symbols);
        let only = |own: Symbol| (own == symbol).then(|| value.clone());
        let replace = |expr: &Expr| {
            if expr.mentions(symbol) { expr.substitute(&only, &ranges) } else { expr.clone() }
        };
        program.replace_expressions(&replace);
        // Of an earlier equation the side that it was solved for stays.
        let is_solved = |expr: &Expr| matches!(expr.node(), Node::Sym(own) if self.solved.contains_key(own));
        for guard in &mut program.guards {
            guard.condition = match &guard.condition {
                Condition::Compare(left, Relation::Eq, right) if is_solved(left) => {
                    Condition::Compare(left.clone(), Relation::Eq, replace(right))
                }
                condition @ (Condition::Compare(..)
                | Condition::Fits(_)
                | Condition::All(_)
                | Condition::Any(_)) => condition.map(&replace),
            };
        }
        let condition = Condition::compare(symbol, Relation::Eq, value.clone());
        program.guards.push(Guard { condition, message: message.to_owned() });
        self.solved.values_mut().for_each(|own| *own = replace(own));
        self.solved.insert(symbol, value.clone());
    }
}

fn mentions_data(value: &Expr, symbols: &[SymbolInfo]) -> bool {
    let mut mentioned = BTreeSet::new();
    value.collect_symbols(&mut mentioned);
    let is_data = |symbol: &Symbol| {
        symbols.get(symbol.index as usize).is_none_or(|info| info.source == SymbolSource::Data)
    };
    mentioned.iter().any(is_data)
}

/// The equations that hold wherever a condition does.
fn equations(condition: &Condition) -> Vec<(&Expr, &Expr)> {
    match condition {
        Condition::Compare(left, Relation::Eq, right) => vec![(left, right)],
        Condition::All(parts) => parts.iter().flat_map(equations).collect(),
        Condition::Compare(
            _,
            Relation::Ne | Relation::Ge | Relation::Gt | Relation::Le | Relation::Lt,
            _,
        )
        | Condition::Fits(_)
        | Condition::Any(_) => vec![],
    }
}

/// Of two symbols that are one, each obeys the range of the other.
fn narrow(symbols: &mut [SymbolInfo], symbol: Symbol, value: &Expr) {
    let Node::Sym(other) = value.node() else { return };
    let own = ranges_of(symbols).range(symbol);
    let Some(info) = symbols.get_mut(other.index as usize) else { return };
    let (min, max) = (info.range.min.max(own.min), info.range.max.min(own.max));
    if min <= max {
        info.range = Interval::new(min, max);
    }
}

#[cfg(test)]
mod tests {
    use crate::frontend::torch::aten::text::parse;
    use crate::frontend::torch::functionalize::functionalize;
    use crate::graph::Graph;
    use crate::interpret::{Tensor, evaluate};

    fn graph(statements: &str) -> Graph {
        let program = parse(&format!("program {{ {statements} }}")).unwrap_or_else(|error| panic!("{error}"));
        functionalize(&program).unwrap_or_else(|error| panic!("{error}"))
    }

    fn ones(sizes: &[usize]) -> Tensor {
        Tensor::from_f32(sizes, &vec![1.0; sizes.iter().product()])
    }

    /// The sizes of the result for inputs of ones, or the error.
    fn sizes(graph: &Graph, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        let inputs: Vec<Tensor> = inputs.iter().map(|sizes| ones(sizes)).collect();
        evaluate(graph, &inputs).map(|results| results[0].sizes().to_vec()).map_err(|error| error.to_string())
    }

    #[test]
    fn lengths_of_keys_and_values_are_one() {
        let attention = graph(
            r#"symbol s0 "q_d1" in 0..inf from input 0 axis 1
            symbol s1 "k_d1" in 0..inf from input 1 axis 1
            symbol s2 "v_d1" in 0..inf from input 2 axis 1
            symbol s3 "q_d2" in 0..inf from input 0 axis 2
            symbol s4 "k_d2" in 0..inf from input 1 axis 2
            input %q: f32[2, s0, s3]
            input %k: f32[2, s1, s4]
            input %v: f32[2, s2, 5]
            %y: f32[2, s0, 5] = aten.scaled_dot_product_attention.default(query = %q, key = %k, value = %v) @ "y" "m.py:3 in forward: attend(q, k, v)" ""
            output %y"#,
        );
        // The product asks it, and whatever reads the value says the key's length.
        assert_eq!(
            attention.inputs.iter().map(|input| attention.ty(input.value).to_string()).collect::<Vec<_>>(),
            ["f32[2, s0, s3]", "f32[2, s1, s3]", "f32[2, s1, 5]"]
        );
        let check =
            attention.guards.iter().find(|guard| guard.message.contains("m.py:3")).expect("it is checked");
        assert!(check.message.starts_with("sizes that must be the same"), "{}", check.message);
        for (q, k, width) in [(1, 1, 1), (3, 4, 8), (5, 1, 2), (0, 2, 3), (2, 7, 1)] {
            assert_eq!(sizes(&attention, &[&[2, q, width], &[2, k, width], &[2, k, 5]]), Ok(vec![2, q, 5]));
        }
        sizes(&attention, &[&[2, 3, 8], &[2, 4, 8], &[2, 5, 5]])
            .expect_err("keys and values differ in number");
        sizes(&attention, &[&[2, 3, 8], &[2, 4, 7], &[2, 4, 5]])
            .expect_err("queries and keys differ in width");
    }

    #[test]
    fn lengths_that_only_add_up_to_the_same_are_checked_as_sums() {
        let cache = graph(
            r#"symbol s0 "a_d1" in 0..inf from input 0 axis 1
            symbol s1 "b_d1" in 0..inf from input 1 axis 1
            symbol s2 "c_d0" in 0..inf from input 2 axis 0
            symbol s3 "d_d0" in 0..inf from input 3 axis 0
            input %a: f32[2, s0]
            input %b: f32[2, s1]
            input %c: f32[s2, 4]
            input %d: f32[s3, 4]
            %left: f32[2, s0 + s1] = aten.cat.default(tensors = [%a, %b], dim = 1)
            %right: f32[s2 + s3, 4] = aten.cat.default(tensors = [%c, %d])
            %y: f32[2, 4] = aten.mm.default(self = %left, mat2 = %right)
            output %y"#,
        );
        for [a, b, c] in [[3, 4, 5], [0, 2, 1], [7, 0, 0], [1, 1, 2]] {
            assert_eq!(sizes(&cache, &[&[2, a], &[2, b], &[c, 4], &[a + b - c, 4]]), Ok(vec![2, 4]));
        }
        sizes(&cache, &[&[2, 3], &[2, 4], &[5, 4], &[1, 4]]).expect_err("the sums differ");
    }

    #[test]
    fn sizes_follow_from_other_sizes_and_from_numbers() {
        let text = |call: &str, shape: &str| {
            format!(
                r#"symbol s0 "x_d0" in 0..inf from input 0 axis 0
                symbol s1 "x_d1" in 0..inf from input 0 axis 1
                symbol s2 "w_d1" in 0..inf from input 1 axis 1
                symbol s3 "w_d0" in 0..inf from input 1 axis 0
                input %x: f32[s0, s1]
                input %w: f32[s3, s2]
                {call}
                output %{shape}"#
            )
        };
        let product =
            graph(&text("%y: f32[s0, s3] = aten.linear.default(input = %x, weight = %w, bias = none)", "y"));
        assert_eq!(sizes(&product, &[&[3, 5], &[2, 5]]), Ok(vec![3, 2]));
        sizes(&product, &[&[3, 5], &[2, 4]]).expect_err("the weight has other columns");
        let convolved = graph(&text(
            "%i: f32[1, s0, s1] = aten.unsqueeze.default(self = %x, dim = 0)
             %k: f32[s3, s2, 1] = aten.unsqueeze.default(self = %w, dim = 2)
             %y: f32[1, s3, s1] = aten.conv1d.default(input = %i, weight = %k)",
            "y",
        ));
        assert_eq!(sizes(&convolved, &[&[3, 5], &[2, 3]]), Ok(vec![1, 2, 5]));
        sizes(&convolved, &[&[3, 5], &[2, 4]]).expect_err("the weight has other channels");
        let joined = graph(&text("%y: f32[s0 + s3, s1] = aten.cat.default(tensors = [%x, %w])", "y"));
        assert_eq!(sizes(&joined, &[&[3, 5], &[2, 5]]), Ok(vec![5, 5]));
        sizes(&joined, &[&[3, 5], &[2, 4]]).expect_err("the columns differ");
    }

    #[test]
    fn a_branch_may_require_what_the_program_does_not() {
        let branches = graph(
            r#"symbol s0 "x_d1" in 1..inf from input 0 axis 1
            symbol s1 "y_d0" in 1..inf from input 1 axis 0
            input %x: f32[2, s0]
            input %y: f32[s1, 2]
            %flag: bool[] = aten.any.default(self = %x)
            %z: f32[2, 2] = higher_order.cond(%flag, program "then" {
                input %x: f32[2, s0]
                input %y: f32[s1, 2]
                %z: f32[2, 2] = aten.mm.default(self = %x, mat2 = %y)
                output %z
            }, program "else" {
                input %x: f32[2, s0]
                input %y: f32[s1, 2]
                %z: f32[2, 2] = aten.ones.default(size = [2, 2])
                output %z
            }, [%x, %y])
            output %z"#,
        );
        assert_eq!(sizes(&branches, &[&[2, 3], &[3, 2]]), Ok(vec![2, 2]));
        sizes(&branches, &[&[2, 3], &[4, 2]]).expect_err("the product is taken, and its sizes differ");
    }
}
