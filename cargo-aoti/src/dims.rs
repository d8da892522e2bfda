//! Sizes for dimensions that a model leaves open: from `--dim name=size`, else the smallest.

use std::collections::BTreeMap;

use aoti_build::suggest;
use aoti_compiler::symbolic::Interval;
use aoti_runtime::{DimInfo, ModelInfo};

use crate::chosen::Chosen;
use crate::failure::Failure;

/// The largest size that is tried for a symbol that no dimension bounds by itself.
const MOST: i64 = 4096;

/// Reads `name=size`.
pub(crate) fn parse(text: &str) -> Result<(String, i64), String> {
    let (name, size) = text.split_once('=').ok_or("expected NAME=SIZE")?;
    let size = size.trim().parse::<i64>().map_err(|error| error.to_string())?;
    if size < 0 { Err("a size is not negative".to_owned()) } else { Ok((name.trim().to_owned(), size)) }
}

/// Refuses dimensions that a model does not have, and sizes outside their range, before it is compiled.
pub(crate) fn check(chosen: &Chosen, given: &[(String, i64)]) -> Result<(), Failure> {
    if given.is_empty() {
        return Ok(());
    }
    let graph = chosen.graph()?;
    let known: Vec<&str> = graph.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    known_or_refused(&known, given)?;
    let ranges: Vec<(&str, Interval)> =
        graph.symbols.iter().map(|symbol| (symbol.name.as_str(), symbol.range)).collect();
    in_range_or_refused(&ranges, given)
}

fn in_range_or_refused(ranges: &[(&str, Interval)], given: &[(String, i64)]) -> Result<(), Failure> {
    for (name, size) in given {
        let range = ranges.iter().find(|(own, _)| own == name).map(|(_, range)| *range);
        if let Some(range) = range.filter(|range| !range.meets(Interval::point(*size))) {
            let Interval { min, max } = range;
            return Err(Failure::Usage(format!(
                "the dimension `{name}` cannot be {size}; it must be in {min}..={max}"
            )));
        }
    }
    Ok(())
}

fn known_or_refused(known: &[&str], given: &[(String, i64)]) -> Result<(), Failure> {
    let Some((name, _)) = given.iter().find(|(name, _)| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let mut each: Vec<&str> = Vec::new();
    known.iter().for_each(|name| {
        if !each.contains(name) {
            each.push(name)
        }
    });
    if each.is_empty() {
        return Err(Failure::Usage(format!("the model has no dimension `{name}`; all its sizes are fixed")));
    }
    let near = suggest(name, each.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    let (known, near) = (each.join("`, `"), near.unwrap_or_default());
    Err(Failure::Usage(format!("the model has no dimension `{name}`; it has `{known}`{near}")))
}

/// The sizes of each input.
pub(crate) fn of_inputs(info: &ModelInfo, given: &[(String, i64)]) -> Result<Vec<Vec<usize>>, Failure> {
    let mut symbols: BTreeMap<String, i64> = given.iter().cloned().collect();
    let dims = || info.inputs.iter().flat_map(|input| &input.dims);
    for dim in dims() {
        if let Some(name) = dim.expression.as_ref().filter(|text| is_name(text)) {
            symbols.entry(name.clone()).or_insert(dim.min.max(1));
        }
    }
    for dim in dims() {
        settle(dim, &mut symbols);
    }
    let known: Vec<&str> =
        dims().filter_map(|dim| dim.expression.as_deref()).filter(|text| is_name(text)).collect();
    known_or_refused(&known, given)?;
    let size = |dim: &DimInfo| {
        let value = match &dim.expression {
            None => Some(dim.min),
            Some(text) => evaluate(text, &symbols),
        };
        let size = value.and_then(|value| usize::try_from(value).ok());
        size.ok_or_else(|| {
            let text = dim.expression.as_deref().unwrap_or_default();
            Failure::Usage(format!("cannot find sizes for the dimension `{text}`; give them with `--dim`"))
        })
    };
    info.inputs.iter().map(|input| input.dims.iter().map(size).collect()).collect()
}

/// Gives the one symbol of an expression that has no size yet the smallest that suits the bounds.
fn settle(dim: &DimInfo, symbols: &mut BTreeMap<String, i64>) {
    let Some(text) = &dim.expression else { return };
    let unknown: Vec<String> = names(text).into_iter().filter(|name| !symbols.contains_key(name)).collect();
    let [name] = &unknown[..] else { return };
    for size in 1..=MOST {
        symbols.insert(name.clone(), size);
        if evaluate(text, symbols).is_some_and(|value| value >= dim.min.max(1) && value <= dim.max) {
            return;
        }
    }
    symbols.remove(name);
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn names(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| is_name(word) && !FUNCTIONS.contains(word)).map(str::to_owned).collect()
}

const FUNCTIONS: [&str; 2] = ["max", "min"];

/// The value of an expression of `+ - * / // %`, parentheses, `max` and `min`. `None` for anything else, for unknown names
/// and for what overflows.
fn evaluate(text: &str, symbols: &BTreeMap<String, i64>) -> Option<i64> {
    let mut parser = Parser { rest: text, symbols, depth: 0 };
    let value = parser.sum()?;
    parser.rest.trim().is_empty().then_some(value)
}

struct Parser<'a> {
    rest: &'a str,
    symbols: &'a BTreeMap<String, i64>,
    depth: usize,
}

impl Parser<'_> {
    fn sum(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > 64 {
            return None;
        }
        let mut value = self.product()?;
        loop {
            if self.eat("+") {
                value = value.checked_add(self.product()?)?;
            } else if self.eat("-") {
                value = value.checked_sub(self.product()?)?;
            } else {
                self.depth -= 1;
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.factor()?;
        loop {
            if self.eat("*") {
                value = value.checked_mul(self.factor()?)?;
            } else if self.eat("//") || self.eat("/") {
                value = value.checked_div_euclid(self.factor()?)?;
            } else if self.eat("%") {
                value = value.checked_rem_euclid(self.factor()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn factor(&mut self) -> Option<i64> {
        if self.eat("-") {
            return self.factor()?.checked_neg();
        }
        if self.eat("(") {
            let value = self.sum()?;
            return self.eat(")").then_some(value);
        }
        let word = self.word();
        if let Ok(number) = word.parse::<i64>() {
            return Some(number);
        }
        if FUNCTIONS.contains(&word.as_str()) {
            let (a, b) = (self.eat("(").then(|| self.sum())??, self.eat(",").then(|| self.sum())??);
            let value = if word == "max" { a.max(b) } else { a.min(b) };
            return self.eat(")").then_some(value);
        }
        self.symbols.get(&word).copied()
    }

    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(token) {
            Some(after) => {
                self.rest = after;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> String {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = after;
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(dims: &[(Option<&str>, i64, i64)]) -> ModelInfo {
        let dim = |&(expression, min, max): &(Option<&str>, i64, i64)| DimInfo {
            expression: expression.map(str::to_owned),
            min,
            max,
        };
        let input = aoti_runtime::ValueInfo {
            name: "x".to_owned(),
            dtype: aoti_runtime::DType::F32,
            dims: dims.iter().map(dim).collect(),
        };
        let mut info = ModelInfo::default();
        info.inputs.push(input);
        info
    }

    #[test]
    fn sizes_are_given_or_smallest() {
        let info = info(&[(Some("batch"), 2, 10), (Some("2*seq + 1"), 5, 99), (None, 3, 3)]);
        assert_eq!(of_inputs(&info, &[]).unwrap(), [[2, 5, 3]]);
        assert_eq!(of_inputs(&info, &[("batch".to_owned(), 7)]).unwrap(), [[7, 5, 3]]);
        assert!(matches!(of_inputs(&info, &[("bach".to_owned(), 7)]), Err(Failure::Usage(_))));
    }

    #[test]
    fn sizes_outside_their_range_are_refused() {
        let ranges = [("batch", Interval::new(1, 8))];
        let check = |size| in_range_or_refused(&ranges, &[("batch".to_owned(), size)]);
        assert!(check(1).is_ok() && check(8).is_ok());
        let Err(Failure::Usage(message)) = check(9) else { panic!("9 is too large") };
        assert_eq!(message, "the dimension `batch` cannot be 9; it must be in 1..=8");
    }

    #[test]
    fn expressions_have_values() {
        let symbols = BTreeMap::from([("s0".to_owned(), 7)]);
        let value = |text| evaluate(text, &symbols);
        assert_eq!(value("2*(s0 - 1) + 3"), Some(15));
        assert_eq!(value("(s0 + 1)//2 % 3"), Some(1));
        assert_eq!(value("max(s0, 9) - min(1, s0)"), Some(8));
        assert_eq!(
            (value("s1"), value("s0 s0"), value("1/0"), value("9223372036854775807*2")),
            (None, None, None, None)
        );
        assert_eq!(value(&"(".repeat(10_000)), None);
    }

    #[test]
    fn arguments_are_read() {
        assert_eq!(parse("b=4"), Ok(("b".to_owned(), 4)));
        assert!(parse("b").is_err() && parse("b=-1").is_err() && parse("b=x").is_err());
    }
}
