//! The program's size symbols, their ranges, and where their values come from at run time.
//!
//! A symbol that is exactly the size of an input's axis takes that size. One that occurs only inside a linear
//! expression, such as `2*s0`, is replaced by what solves it for the size of that axis. Symbols of values that are
//! read from data are declared where they are first met.

use super::expr::{Scope, Tree, parse};
use super::schema::RangeConstraint;
use crate::frontend::import::MinSize;
use crate::graph::{Condition, Relation, SymbolInfo, SymbolSource};
use crate::symbolic::{Expr, Interval, RangeTable, Ranges, Symbol};
use indexmap::IndexMap;
use std::collections::BTreeSet;

/// Stands for the symbol that is being solved for.
const UNKNOWN: Symbol = Symbol { kind: crate::symbolic::SymbolKind::Size, index: u32::MAX };

/// The minimum that export states where it assumes that a size is neither 0 nor 1.
const ASSUMED: i64 = 2;

/// One place where the size of a user's input is an expression.
pub(super) struct Occurrence {
    /// The input's name.
    pub(super) input: String,
    /// Where its value comes from when the program runs.
    pub(super) source: SymbolSource,
    /// The size as written.
    pub(super) tree: Tree,
}

impl Occurrence {
    /// Whether it is a size, which is never negative, not an integer that a caller passes.
    fn is_size(&self) -> bool {
        matches!(self.source, SymbolSource::InputDim { .. })
    }
}

/// Symbols by their names in the file.
pub(super) struct Symbols {
    constraints: IndexMap<String, RangeConstraint>,
    min: MinSize,
    /// Whether every size has the minimum that the file states.
    are_stated: bool,
    values: IndexMap<String, Expr>,
    infos: Vec<SymbolInfo>,
    ranges: RangeTable,
    /// Symbols of sizes that no input has.
    underived: BTreeSet<String>,
    /// Integers that calls compute from other than integers, and their symbols.
    computed: IndexMap<Tree, Symbol>,
    /// User inputs' sizes by input name, for guards.
    inputs: IndexMap<String, Vec<Expr>>,
    /// Integers among the user inputs by their names, for guards.
    numbers: IndexMap<String, Expr>,
    /// The names of all that the user passes, in order; of what was specialised, nothing.
    passed: Vec<Option<String>>,
}

impl Symbols {
    /// Declares the symbols of the inputs' sizes.
    pub(super) fn new(
        constraints: IndexMap<String, RangeConstraint>,
        min: MinSize,
        places: &[Occurrence],
    ) -> Symbols {
        let mut symbols = Symbols {
            constraints,
            min,
            are_stated: true,
            values: IndexMap::new(),
            infos: Vec::new(),
            ranges: RangeTable::default(),
            underived: BTreeSet::new(),
            computed: IndexMap::new(),
            inputs: IndexMap::new(),
            numbers: IndexMap::new(),
            passed: Vec::new(),
        };
        for place in places {
            if let Tree::Symbol(name) = &place.tree
                && !symbols.values.contains_key(name)
            {
                let range = symbols.constraint(name, place.is_size());
                let symbol = symbols.declare(label(place), range, place.source.clone());
                symbols.values.insert(name.clone(), Expr::sym(symbol));
            }
        }
        // Solving one symbol may make another the only unknown of its expression.
        while places.iter().any(|place| symbols.solve(place)) {}
        symbols
    }

    /// The finished table and the names of symbols whose values nothing determines.
    pub(super) fn finish(self) -> (Vec<SymbolInfo>, BTreeSet<String>) {
        (self.infos, self.underived)
    }

    /// Whether every size has the minimum that the file states.
    pub(super) fn are_stated(&self) -> bool {
        self.are_stated
    }

    /// Tells the sizes of a user input, which guards refer to.
    pub(super) fn set_input(&mut self, name: &str, sizes: Vec<Expr>) {
        self.inputs.insert(name.to_owned(), sizes);
    }

    /// Tells the value of an integer among the user inputs, which guards refer to.
    pub(super) fn set_number(&mut self, name: &str, value: Expr) {
        self.numbers.insert(name.to_owned(), value);
    }

    /// Tells what the user passes next.
    pub(super) fn pass(&mut self, name: Option<&str>) {
        self.passed.push(name.map(str::to_owned));
    }

    /// The name of the input that a guard means. Strict export traces a function of all that is passed, flattened into one
    /// list, and its guards count in that. Other guards have Python's names, of which inputs have the lower case.
    fn input_named<'s>(&'s self, name: &'s str) -> &'s str {
        if let Some(own) = self.exactly(name) {
            return own;
        }
        if let Some(position) = name.strip_prefix("flat_args_").and_then(|text| text.parse::<usize>().ok()) {
            return self.passed.get(position).and_then(Option::as_deref).unwrap_or(name);
        }
        let lower = name.to_lowercase();
        // Where that is the name of several, export numbers them, and which one a guard means is not known.
        match self.exactly(&lower) {
            Some(own) if self.exactly(&format!("{lower}_1")).is_none() => own,
            _ => name,
        }
    }

    fn exactly(&self, name: &str) -> Option<&str> {
        let number = || self.numbers.get_key_value(name).map(|(own, _)| own);
        self.inputs.get_key_value(name).map(|(own, _)| own).or_else(number).map(String::as_str)
    }

    /// What the file states of expressions: a size that is a formula has a range of its own beside those of its symbols.
    pub(super) fn stated_of_expressions(&mut self) -> Vec<Condition> {
        let constraints: Vec<(Tree, RangeConstraint)> = self
            .constraints
            .iter()
            .filter_map(|(text, range)| Some((parse(text).ok()?, *range)))
            .filter(|(tree, _)| !matches!(tree, Tree::Symbol(_)))
            .collect();
        let mut stated = Vec::new();
        for (tree, RangeConstraint { min_val, max_val }) in constraints {
            let mut names = Vec::new();
            tree.symbols(&mut names);
            // A range of what the program does not have says nothing of it.
            if names.iter().any(|name| !self.values.contains_key(name)) {
                continue;
            }
            let Ok(value) = tree.integer(self) else { continue };
            let is_assumed = matches!(self.min, MinSize::Lowered(_)) && min_val == Some(ASSUMED);
            self.are_stated &= !is_assumed;
            let least = min_val.filter(|_| !is_assumed);
            let least = least.map(|least| Condition::compare(value.clone(), Relation::Ge, least));
            let most = max_val.filter(|most| *most < i64::MAX - 1);
            let most = most.map(|most| Condition::compare(value, Relation::Le, most));
            stated.extend(least.into_iter().chain(most));
        }
        stated
    }

    /// Whether `symbol` is read from data.
    pub(super) fn is_data(&self, symbol: Symbol) -> bool {
        self.infos.get(symbol.index as usize).is_some_and(|info| info.source == SymbolSource::Data)
    }

    /// Restricts the range of a symbol; an empty intersection leaves it.
    pub(super) fn narrow(&mut self, symbol: Symbol, range: Interval) {
        let Some(info) = self.infos.get_mut(symbol.index as usize) else { return };
        let narrowed = Interval::new(info.range.min.max(range.min), info.range.max.min(range.max));
        if narrowed.min <= narrowed.max {
            info.range = narrowed;
            self.ranges.set(symbol, narrowed);
        }
    }

    /// Declares a symbol of an integer that a call computes.
    pub(super) fn declare_computed(&mut self, tree: Tree) -> Expr {
        let name = format!("number_{}", self.computed.len());
        let symbol = self.declare(name, Interval::ALL, SymbolSource::Data);
        self.computed.insert(tree, symbol);
        Expr::sym(symbol)
    }

    fn declare(&mut self, name: String, range: Interval, source: SymbolSource) -> Symbol {
        let symbol = Symbol::size(u32::try_from(self.infos.len()).unwrap_or(u32::MAX - 1));
        self.infos.push(SymbolInfo { name, range, source, most: None });
        self.ranges.set(symbol, range);
        symbol
    }

    /// The stated range; the largest values of 64 bits stand for infinity.
    fn constraint(&mut self, name: &str, is_size: bool) -> Interval {
        let stated = self.constraints.get(name);
        let min = stated.and_then(|range| range.min_val).unwrap_or(i64::MIN);
        let max = stated.and_then(|range| range.max_val).unwrap_or(i64::MAX);
        let min = match self.min {
            MinSize::Lowered(lowered) if is_size && min == ASSUMED => {
                self.are_stated = false;
                lowered
            }
            MinSize::Lowered(_) | MinSize::Stated => min,
        };
        let min = if is_size { min.max(0) } else { min };
        let max = if max >= i64::MAX - 1 { i64::MAX } else { max };
        Interval::new(min, max.max(min))
    }

    /// Solves the expression of `place` for its only unknown symbol, if it has just one and is linear in it.
    fn solve(&mut self, place: &Occurrence) -> bool {
        let mut names = Vec::new();
        place.tree.symbols(&mut names);
        let mut unknown = names.into_iter().filter(|name| !self.values.contains_key(name));
        let (Some(name), None) = (unknown.next(), unknown.next()) else { return false };
        let range = self.constraint(&name, place.is_size());
        self.ranges.set(UNKNOWN, range);
        self.values.insert(name.clone(), Expr::sym(UNKNOWN));
        let size = place.tree.integer(self);
        self.values.shift_remove(&name);
        let Some((coefficient, rest)) = size.as_ref().ok().and_then(|size| size.affine_in(UNKNOWN)) else {
            return false;
        };
        let Some(scale) = coefficient.as_int().filter(|scale| *scale > 0) else { return false };
        let Ok(size) = size else { return false };
        let range = size.interval(&self.ranges);
        let lowest = if place.is_size() { range.min.max(0) } else { range.min };
        let symbol = self.declare(label(place), Interval::new(lowest, range.max), place.source.clone());
        let value = (Expr::sym(symbol) - rest).floor_div_in(&Expr::int(scale), &self.ranges);
        self.values.insert(name, value);
        true
    }
}

/// The export keeps no names of dimensions; the first place where one occurs names it.
fn label(place: &Occurrence) -> String {
    match &place.source {
        SymbolSource::InputDim { axis, .. } => format!("{}_d{axis}", place.input),
        SymbolSource::InputValue { .. } | SymbolSource::Data => place.input.clone(),
    }
}

impl Scope for Symbols {
    fn symbol(&mut self, name: &str) -> Result<Expr, String> {
        if let Some(value) = self.values.get(name) {
            return Ok(value.clone());
        }
        if self.infos.len() >= 1 << 20 {
            return Err("the program has too many symbols".to_owned());
        }
        if name.starts_with("zuf") || name.starts_with("zf") {
            return Err(format!("`{name}` is a floating-point number"));
        }
        // Sizes are `s<k>`; what is read from data is `u<k>`.
        if !name.starts_with('u') {
            self.underived.insert(name.to_owned());
        }
        let range = self.constraint(name, false);
        let symbol = self.declare(name.to_owned(), range, SymbolSource::Data);
        self.values.insert(name.to_owned(), Expr::sym(symbol));
        Ok(Expr::sym(symbol))
    }

    fn size(&mut self, name: &str, axis: usize) -> Result<Expr, String> {
        let size = self.inputs.get(self.input_named(name)).and_then(|sizes| sizes.get(axis));
        size.cloned().ok_or_else(|| format!("`{name}` is no input with an axis {axis}"))
    }

    fn value(&mut self, name: &str) -> Result<Expr, String> {
        self.numbers
            .get(self.input_named(name))
            .cloned()
            .ok_or_else(|| format!("`{name}` is no integer input"))
    }

    fn computed(&self, tree: &Tree) -> Option<Expr> {
        if self.computed.is_empty() { None } else { self.computed.get(tree).copied().map(Expr::sym) }
    }

    fn ranges(&self) -> &dyn Ranges {
        &self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::super::expr::parse;
    use super::*;

    fn place(input: usize, axis: usize, text: &str) -> Occurrence {
        let source = SymbolSource::InputDim { input, axis };
        Occurrence { input: format!("x{input}"), source, tree: parse(text).unwrap() }
    }

    #[test]
    fn sizes_come_from_the_first_input_that_has_them() {
        let places = [place(0, 0, "2*s9"), place(0, 1, "s4"), place(1, 0, "s9")];
        let mut symbols = Symbols::new(IndexMap::new(), MinSize::Stated, &places);
        assert_eq!(symbols.symbol("s9").unwrap(), Expr::sym(Symbol::size(1)));
        let (infos, underived) = symbols.finish();
        assert_eq!(infos[0].name, "x0_d1");
        assert_eq!(infos[1].source, SymbolSource::InputDim { input: 1, axis: 0 });
        assert!(underived.is_empty());
    }

    #[test]
    fn formulas_keep_ranges_of_their_own() {
        let range = |min, max| RangeConstraint { min_val: Some(min), max_val: max };
        let constraints = || {
            IndexMap::from([
                ("2*s9".to_owned(), range(4, Some(16))),
                ("s9".to_owned(), range(2, Some(8))),
                ("s9 + 1".to_owned(), range(3, Some(i64::MAX))),
                ("s9 + s4".to_owned(), range(3, None)),
            ])
        };
        let places = [place(0, 0, "2*s9"), place(1, 0, "s9 + 1")];
        for min in [MinSize::Lowered(0), MinSize::Lowered(1), MinSize::Stated] {
            let mut symbols = Symbols::new(constraints(), min, &places);
            let stated = symbols.stated_of_expressions();
            let t = Symbol::size(0);
            let hold = |size| {
                let value = |symbol| (symbol == t).then_some(size);
                stated.iter().all(|condition| condition.evaluate(&value))
            };
            assert_eq!([2, 4, 16, 18].map(hold), [false, true, true, false]);
            assert_eq!(stated.len(), 3);
        }
        // Where export only assumes a minimum, smaller sizes are taken.
        let assumed = || IndexMap::from([("s9 + 1".to_owned(), range(2, None))]);
        let mut symbols = Symbols::new(assumed(), MinSize::Lowered(0), &places);
        assert!(symbols.stated_of_expressions().is_empty() && !symbols.are_stated());
        let mut symbols = Symbols::new(assumed(), MinSize::Stated, &places);
        assert_eq!(symbols.stated_of_expressions().len(), 1);
    }

    #[test]
    fn an_assumed_minimum_is_lowered() {
        let assumed =
            || IndexMap::from([("s9".to_owned(), RangeConstraint { min_val: Some(2), max_val: None })]);
        let min_of = |min| {
            let mut symbols = Symbols::new(assumed(), min, &[place(0, 0, "s9")]);
            symbols.symbol("s9").unwrap();
            (symbols.are_stated(), symbols.finish().0[0].range.min)
        };
        let found = [MinSize::Lowered(0), MinSize::Lowered(1), MinSize::Stated].map(min_of);
        assert_eq!(found, [(false, 0), (false, 1), (true, 2)]);
    }

    #[test]
    fn linear_expressions_are_solved() {
        let range = RangeConstraint { min_val: Some(1), max_val: Some(8) };
        let places = [place(0, 0, "2*s9 + 1")];
        let mut symbols = Symbols::new(IndexMap::from([("s9".to_owned(), range)]), MinSize::Stated, &places);
        let t = Symbol::size(0);
        let value = symbols.symbol("s9").unwrap();
        assert_eq!(value.evaluate(&|symbol| (symbol == t).then_some(9)), Some(4));
        assert_eq!(symbols.finish().0[0].range, Interval::new(3, 17));
    }

    #[test]
    fn guards_of_strict_export_count_what_is_passed() {
        let mut symbols = Symbols::new(IndexMap::new(), MinSize::Stated, &[]);
        symbols.set_input("x", vec![Expr::int(3)]);
        symbols.set_number("n", Expr::int(7));
        for name in [Some("x"), None, Some("n")] {
            symbols.pass(name);
        }
        assert_eq!(symbols.size("flat_args_0", 0).unwrap(), Expr::int(3));
        assert_eq!(symbols.value("flat_args_2").unwrap(), Expr::int(7));
        // Neither what was specialised has a size nor what is not there.
        for name in ["flat_args_1", "flat_args_2", "flat_args_3", "flat_args_"] {
            symbols.size(name, 0).unwrap_err();
        }
        // An input of that name is itself.
        symbols.set_input("flat_args_0", vec![Expr::int(5)]);
        assert_eq!(symbols.size("flat_args_0", 0).unwrap(), Expr::int(5));
    }

    #[test]
    fn guards_have_the_names_of_python() {
        let mut symbols = Symbols::new(IndexMap::new(), MinSize::Stated, &[]);
        symbols.set_input("r6", vec![Expr::int(3)]);
        symbols.set_number("n_top", Expr::int(7));
        assert_eq!(symbols.size("R6", 0).unwrap(), Expr::int(3));
        assert_eq!(symbols.value("N_top").unwrap(), Expr::int(7));
        symbols.size("R7", 0).unwrap_err();
        // `a` and `A` are `a` and `a_1`, in their order.
        symbols.set_input("a", vec![Expr::int(4)]);
        symbols.set_input("a_1", vec![Expr::int(5)]);
        assert_eq!(symbols.size("a", 0).unwrap(), Expr::int(4));
        symbols.size("A", 0).unwrap_err();
    }

    #[test]
    fn symbols_of_no_input_are_told() {
        let mut symbols = Symbols::new(IndexMap::new(), MinSize::Stated, &[]);
        symbols.symbol("u0").unwrap();
        symbols.symbol("s1").unwrap();
        assert_eq!(symbols.finish().1, BTreeSet::from(["s1".to_owned()]));
    }
}
