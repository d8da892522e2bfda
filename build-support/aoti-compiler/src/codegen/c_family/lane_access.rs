//! How the elements of lanes lie in memory: what all lanes share, elements side by side, and those within a tensor.

use super::expr::scalar;
use crate::loops::Guard;
use crate::symbolic::{Expr, Node, Symbol};

/// What differs between lanes of an offset, and the rest.
pub(super) fn parts(offset: &Expr, vector: Symbol) -> (Expr, Expr) {
    let (constant, terms) = offset.as_sum();
    let mut parts = (Expr::int(0), Expr::int(constant));
    for (term, coefficient) in &terms {
        let part = if term.mentions(vector) { &mut parts.0 } else { &mut parts.1 };
        *part = &*part + &(term * *coefficient);
    }
    parts
}

pub(super) fn scalar_test(guard: &Guard) -> String {
    // One comparison for both ends: a negative coordinate is a huge unsigned number.
    format!("u64({}) < u64({})", scalar(&guard.coordinate), scalar(&guard.size))
}

pub(super) fn scalar_tests(guards: &[Guard]) -> String {
    guards.iter().map(scalar_test).collect::<Vec<_>>().join(" && ")
}

/// Steps up to here are part of a load's code, so that what is best for each is compiled.
const SHORT_STEP: i64 = 64;

/// The elements between lanes, where they are fixed and few.
pub(super) fn short_step(step: &Expr) -> Option<i64> {
    step.as_int().filter(|step| (1..=SHORT_STEP).contains(step))
}

/// A remainder by less than this is small too often for its lanes to be side by side.
const SHORT_ROW: i64 = 64;

/// When the elements of all lanes lie side by side, where that depends on the first lane: quotients and remainders of a
/// position that moves with the lanes do not begin anew between them.
pub(super) fn unbroken(offset: &Expr, vector: Symbol, width: &str) -> Option<String> {
    let (_, terms) = offset.as_sum();
    let (mut step, mut rows) = (0, Vec::new());
    for (term, coefficient) in terms.iter().filter(|(term, _)| term.mentions(vector)) {
        if let Some((own, _)) = term.affine_in(vector) {
            step += own.as_int()? * coefficient;
            continue;
        }
        let (Node::Mod(position, size) | Node::FloorDiv(position, size)) = term.node() else { return None };
        let moves = position.affine_in(vector).is_some_and(|(own, _)| own.is(1));
        if !moves || size.mentions(vector) || size.as_int().is_some_and(|size| size < SHORT_ROW) {
            return None;
        }
        if matches!(term.node(), Node::Mod(..)) {
            step += coefficient;
        }
        if !rows.contains(&(position, size)) {
            rows.push((position, size));
        }
    }
    let test = |(position, size): &(&Expr, &Expr)| {
        format!("{} + {width} <= {}", scalar(&position.modulo(size)), scalar(size))
    };
    let tests: Vec<String> = rows.iter().map(test).collect();
    (step == 1 && !tests.is_empty()).then(|| format!("({})", tests.join(" && ")))
}

/// `low, high, condition` of the lanes in which guards hold, where each either holds for all lanes or moves with them.
pub(super) fn guard_window(guards: &[Guard], vector: Symbol, width: &str) -> Option<String> {
    let (mut low, mut high, mut tests) = (Vec::new(), Vec::new(), Vec::new());
    for guard in guards {
        if !guard.coordinate.mentions(vector) {
            tests.push(scalar_test(guard));
            continue;
        }
        // Lane k is inside where 0 <= coordinate + k * step < size.
        let (step, _) = guard.coordinate.affine_in(vector)?;
        let step = step.as_int().filter(|step| *step > 0)?;
        let lanes_below = |distance: Expr| (&distance + (step - 1)).floor_div(&Expr::int(step));
        low.push(scalar(&lanes_below(-&guard.coordinate)));
        high.push(scalar(&lanes_below(&guard.size - &guard.coordinate)));
    }
    let join = |parts: Vec<String>, function: &str, none: &str| {
        parts.into_iter().reduce(|a, b| format!("{function}({a}, {b})")).unwrap_or_else(|| none.to_owned())
    };
    let test = if tests.is_empty() { "true".to_owned() } else { tests.join(" && ") };
    Some(format!("{}, {}, {test}", join(low, "max_i64", "0"), join(high, "min_i64", width)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_side_by_side_until_a_row_begins_anew() {
        let vector = Symbol::axis(1);
        let at = &Expr::sym(vector) + 7;
        let row = &Expr::axis(0) * 100;
        let of = |offset: &Expr| unbroken(offset, vector, "8");
        // Rolled: remainders that begin anew.
        let rolled = at.modulo(&Expr::int(100));
        assert_eq!(
            of(&(&rolled + &row)).as_deref(),
            Some("(floor_mod(i1 + 7, 100) + 8 <= 100)"),
            "a rolled row"
        );
        // Several axes as one: neighbours are side by side as long as they are of one row.
        let rows = at.floor_div(&Expr::int(100));
        assert!(of(&(&(&rows * 250) + &rolled)).is_some(), "a part of each row");
        assert_eq!(of(&(&rows + &(&rolled * 250))), None, "a turned matrix");
        assert_eq!(of(&at.modulo(&Expr::int(9))), None, "rows are short");
        assert_eq!(of(&(&at * 2).modulo(&Expr::int(100))), None, "every other element");
    }
}
