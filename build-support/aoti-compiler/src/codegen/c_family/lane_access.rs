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

/// The elements between lanes, where they are fixed and few; back by one where a row is reversed.
pub(super) fn short_step(step: &Expr) -> Option<i64> {
    step.as_int().filter(|step| *step == -1 || (1..=SHORT_STEP).contains(step))
}

/// A remainder by less than this is small too often for its lanes to be side by side.
const SHORT_ROW: i64 = 64;

/// The most lanes that a kernel has, of which others have a part: where rows have as many elements, one of them begins anew among
/// the lanes at most.
pub(in crate::codegen) const MOST_LANES: i64 = 16;

/// Elements side by side up to where a row begins anew: how many lanes that takes, and how much further the others lie than if
/// it went on.
pub(super) struct Wrap {
    pub(super) left: String,
    pub(super) jump: i64,
}

/// How the elements of lanes lie side by side but for the begin of one row, where all quotients and remainders that move with the
/// lanes are of one position and one size.
pub(super) fn wrapped(offset: &Expr, vector: Symbol) -> Option<Wrap> {
    let (_, terms) = offset.as_sum();
    let (mut of, mut step, mut jump) = (None, 0, 0);
    for (term, coefficient) in &terms {
        if !term.mentions(vector) {
            continue;
        }
        if let Some((own, _)) = term.affine_in(vector) {
            step += own.as_int()? * coefficient;
            continue;
        }
        let (Node::Mod(position, size) | Node::FloorDiv(position, size)) = term.node() else { return None };
        let moves = position.affine_in(vector).is_some_and(|(own, _)| own.is(1));
        let length = size.as_int().filter(|length| moves && *length >= MOST_LANES)?;
        if of.get_or_insert((position, length)) != &(position, length) {
            return None;
        }
        let is_remainder = matches!(term.node(), Node::Mod(..));
        (step, jump) = if is_remainder {
            (step + coefficient, jump - length * coefficient)
        } else {
            (step, jump + coefficient)
        };
    }
    let (position, length) = of.filter(|_| step == 1)?;
    let size = Expr::int(length);
    Some(Wrap { left: scalar(&(&size - &position.modulo(&size))), jump })
}

/// Channels up to which pixels are put together out of registers of each plane: of four, each has so few lanes that an element
/// at a time is as fast.
const MOST_PLANES: i64 = 3;
/// Planes that are further apart have no places of 32 bits among each other.
const MOST_APART: i64 = 1 << 26;

/// Pixels of planes of channels, the channels of each side by side.
pub(super) struct Interleaving {
    pub(super) channels: i64,
    /// The channel of the first lane.
    pub(super) phase: String,
    /// Elements between planes.
    pub(super) plane: i64,
}

/// How lanes go over the channels of pixels that are planes in memory: the quotient of one position steps, the remainder goes
/// from plane to plane.
pub(super) fn interleaved(offset: &Expr, vector: Symbol) -> Option<Interleaving> {
    let (position, channels, plane) = planes(offset, vector, MOST_PLANES)?;
    let phase = scalar(&position.modulo(&Expr::int(channels)));
    Some(Interleaving { channels, phase, plane })
}

/// The position, of at most so many channels, and the elements between planes.
fn planes(offset: &Expr, vector: Symbol, most: i64) -> Option<(Expr, i64, i64)> {
    let (_, terms) = offset.as_sum();
    let (mut of, mut step, mut plane) = (None, 0, 0);
    for (term, coefficient) in terms.iter().filter(|(term, _)| term.mentions(vector)) {
        let (Node::Mod(position, size) | Node::FloorDiv(position, size)) = term.node() else { return None };
        let moves = position.affine_in(vector).is_some_and(|(own, _)| own.is(1));
        let channels = size.as_int().filter(|count| moves && (2..=most).contains(count))?;
        if of.get_or_insert((position, channels)) != &(position, channels) {
            return None;
        }
        let part = if matches!(term.node(), Node::Mod(..)) { &mut plane } else { &mut step };
        *part += coefficient;
    }
    let (position, channels) = of.filter(|_| step == 1 && i64::abs(plane) < MOST_APART)?;
    Some((position.clone(), channels, plane))
}

/// Pixels of which those within an image have planes, as many as the first channels.
pub(super) struct ImageLanes {
    pub(super) channels: i64,
    /// Channels that there are.
    pub(super) planes: i64,
    /// Elements between planes.
    pub(super) apart: i64,
    /// The first pixel within, and the first one behind, counted from that of the first lane; and what holds for all of them.
    pub(super) window: String,
}

/// The same of pixels under guards, some of whose channels are not there, nor is what is around an image: where vectors begin with a
/// pixel, as the first lane's position is a multiple of the number of channels.
pub(super) fn image_lanes(
    offset: &Expr,
    guards: &[Guard],
    vector: Symbol,
    (first_lane, width): (i64, &str),
) -> Option<ImageLanes> {
    let (position, channels, plane) = planes(offset, vector, first_lane)?;
    let (_, rest) = position.affine_in(vector)?;
    let begins = first_lane % channels == 0 && rest.modulo(&Expr::int(channels)).is(0);
    let (quotient, remainder) =
        (position.floor_div(&Expr::int(channels)), position.modulo(&Expr::int(channels)));
    let (mut planes, mut tests) = (channels, Vec::new());
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for guard in guards {
        if !guard.coordinate.mentions(vector) {
            tests.push(scalar_test(guard));
        } else if guard.coordinate == remainder {
            planes = planes.min(guard.size.as_int()?);
        } else if !(&guard.coordinate - &quotient).mentions(vector) {
            low.push(scalar(&-&guard.coordinate));
            high.push(scalar(&(&guard.size - &guard.coordinate)));
        } else {
            return None;
        }
    }
    let join = |parts: Vec<String>, function: &str, none: &str| {
        parts.into_iter().reduce(|a, b| format!("{function}({a}, {b})")).unwrap_or_else(|| none.to_owned())
    };
    let test = if tests.is_empty() { "true".to_owned() } else { tests.join(" && ") };
    let window = format!("{}, {}, {test}", join(low, "max_i64", "0"), join(high, "min_i64", width));
    (begins && planes > 0).then_some(ImageLanes { channels, planes, apart: plane, window })
}

/// Ways to see an expression as a number that grows by a step from lane to lane, where tests of the first lane hold.
struct Progression {
    step: i64,
    tests: Vec<String>,
}

/// Ways that are looked at of an expression: a reflection has four.
const MOST_WAYS: usize = 4;

/// When the elements of all lanes lie side by side, where that depends on the first lane: quotients and remainders of a
/// position that moves with the lanes do not begin anew between them, and the same operand is the smaller or larger one in all.
pub(super) fn unbroken(offset: &Expr, vector: Symbol, width: &str) -> Option<String> {
    let ways = progressions(offset, vector, width);
    let found = ways.into_iter().find(|way| way.step == 1 && !way.tests.is_empty())?;
    Some(format!("({})", found.tests.join(" && ")))
}

fn progressions(expr: &Expr, vector: Symbol, width: &str) -> Vec<Progression> {
    let step =
        if expr.mentions(vector) { expr.affine_in(vector).map(|(step, _)| step) } else { Some(Expr::int(0)) };
    if let Some(step) = step {
        return step.as_int().map(|step| Progression { step, tests: vec![] }).into_iter().collect();
    }
    match expr.node() {
        Node::Mod(position, size) | Node::FloorDiv(position, size) => {
            let moves = position.affine_in(vector).is_some_and(|(own, _)| own.is(1));
            if !moves || size.mentions(vector) || size.as_int().is_some_and(|size| size < SHORT_ROW) {
                return vec![];
            }
            let test = format!("{} + {width} <= {}", scalar(&position.modulo(size)), scalar(size));
            vec![Progression { step: i64::from(matches!(expr.node(), Node::Mod(..))), tests: vec![test] }]
        }
        Node::Max(a, b) => of_one([a, b], 1, vector, width),
        Node::Min(a, b) => of_one([a, b], -1, vector, width),
        Node::Int(_) | Node::Sym(_) | Node::Product(_) => vec![],
        Node::Sum { .. } => {
            let mut all = vec![Progression { step: 0, tests: vec![] }];
            for (term, coefficient) in expr.as_sum().1 {
                let own = progressions(&term, vector, width);
                let with = |way: &Progression| {
                    let both = |more: &Progression| way.with(more, coefficient);
                    own.iter().map(both).collect::<Vec<_>>()
                };
                all = all.iter().flat_map(with).take(MOST_WAYS).collect();
            }
            all
        }
    }
}

/// Either operand of a maximum, or with a `sign` of -1 of a minimum, where it is the one that counts in all lanes: in those at
/// both ends.
fn of_one([a, b]: [&Expr; 2], sign: i64, vector: Symbol, width: &str) -> Vec<Progression> {
    let [of_a, of_b] = [a, b].map(|operand| progressions(operand, vector, width));
    let choose = |(own, other): (&Expr, &Expr), (mine, others): (&[Progression], &[Progression])| {
        let lead = &(own - other) * sign;
        let of_pair = |(way, beside): (&Progression, &Progression)| {
            let mut both = way.with(beside, 0);
            // Where the lead becomes less from lane to lane, the last one has the least.
            let loss = (sign * (beside.step - way.step)).max(0);
            let least = if loss == 0 { "0".to_owned() } else { format!("{loss} * ({width} - 1)") };
            both.tests.push(format!("{} >= {least}", scalar(&lead)));
            both
        };
        let pairs = mine.iter().flat_map(|way| others.iter().map(move |beside| (way, beside)));
        pairs.map(of_pair).collect::<Vec<_>>()
    };
    let mut all = choose((a, b), (&of_a, &of_b));
    all.extend(choose((b, a), (&of_b, &of_a)));
    // What moves by single steps is what is looked for.
    all.sort_by_key(|way| way.step.abs() != 1);
    all.truncate(MOST_WAYS);
    all
}

impl Progression {
    /// The sum with some times another one.
    fn with(&self, other: &Progression, times: i64) -> Progression {
        let mut tests = self.tests.clone();
        tests.extend(other.tests.iter().filter(|test| !self.tests.contains(test)).cloned());
        Progression { step: self.step.saturating_add(other.step.saturating_mul(times)), tests }
    }
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
        let step = step.as_int().filter(|step| *step != 0)?;
        let lanes_below = |distance: Expr| (&distance + (step.abs() - 1)).floor_div(&Expr::int(step.abs()));
        let [first, behind] = if step > 0 {
            [-&guard.coordinate, &guard.size - &guard.coordinate]
        } else {
            [&(&guard.coordinate - &guard.size) + 1, &guard.coordinate + 1]
        };
        low.push(scalar(&lanes_below(first)));
        high.push(scalar(&lanes_below(behind)));
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
    fn lanes_that_step_either_way_are_within_a_window() {
        let (row, vector) = (Expr::axis(0), Symbol::axis(1));
        let window = |step: i64| {
            let coordinate = &row + &(&Expr::sym(vector) * step);
            guard_window(&[Guard { coordinate, size: Expr::int(10) }], vector, "8")
        };
        assert_eq!(window(1).as_deref(), Some("-i0 - i1, -i0 - i1 + 10, true"));
        assert_eq!(window(-1).as_deref(), Some("i0 - i1 - 9, i0 - i1 + 1, true"));
        assert_eq!(window(0).as_deref(), Some("0, 8, u64(i0) < u64(10)"));
    }

    #[test]
    fn rows_begin_anew_among_lanes() {
        let vector = Symbol::axis(1);
        let at = &Expr::sym(vector) + 7;
        let of = |offset: &Expr| wrapped(offset, vector).map(|wrap| (wrap.left, wrap.jump));
        let (rolled, rows) = (at.modulo(&Expr::int(33)), at.floor_div(&Expr::int(33)));
        let begin = &Expr::axis(0) * 33;
        assert_eq!(of(&(&rolled + &begin)), Some(("-floor_mod(i1 + 7, 33) + 33".to_owned(), -33)), "rolled");
        let part_of_rows = &(&rows * 50) + &rolled;
        assert_eq!(of(&part_of_rows).map(|(_, jump)| jump), Some(17), "a part of each row");
        assert_eq!(of(&at), None, "no row begins");
        assert_eq!(of(&(&rows + &(&rolled * 50))), None, "a turned matrix");
        assert_eq!(of(&at.modulo(&Expr::int(15))), None, "several rows may begin");
        let other = (&at + 1).floor_div(&Expr::int(33));
        assert_eq!(of(&(&rolled + &(&other * 50))), None, "rows that begin at two lanes");
    }

    #[test]
    fn channels_of_pixels_come_from_planes() {
        let vector = Symbol::axis(1);
        let at = &Expr::sym(vector) + 7;
        let of = |offset: &Expr| interleaved(offset, vector).map(|own| (own.channels, own.phase, own.plane));
        let [pixel, channel] = [at.floor_div(&Expr::int(3)), at.modulo(&Expr::int(3))];
        let image = &Expr::axis(0) * 300;
        let planes = &(&pixel + &(&channel * 100)) + &image;
        assert_eq!(of(&planes), Some((3, "floor_mod(i1 + 1, 3)".to_owned(), 100)));
        assert_eq!(of(&(&(&pixel * 2) + &(&channel * 100))), None, "every other pixel");
        assert_eq!(of(&(&pixel + &at)), None, "nothing but pixels and channels");
        let other = at.modulo(&Expr::int(4));
        assert_eq!(of(&(&pixel + &(&other * 100))), None, "two numbers of channels");
    }

    #[test]
    fn pixels_within_an_image_come_from_planes() {
        let vector = Symbol::axis(1);
        let four = Expr::int(4);
        let of_lanes = |first_lane: i64, at: &Expr, guards: &[(Expr, i64)]| {
            let [pixel, channel] = [at.floor_div(&four), at.modulo(&four)];
            let offset = &(&(&pixel + &(&channel * 100)) + &(&Expr::axis(0) * 10)) - 13;
            let guards: Vec<Guard> = guards
                .iter()
                .map(|(coordinate, size)| Guard { coordinate: coordinate.clone(), size: Expr::int(*size) })
                .collect();
            image_lanes(&offset, &guards, vector, (first_lane, "8"))
                .map(|own| (own.planes, own.apart, own.window))
        };
        let at = Expr::sym(vector);
        let [pixel, channel] = [at.floor_div(&four), at.modulo(&four)];
        let guards = [(channel, 3), (&pixel - 3, 10), (&Expr::axis(0) - 1, 8)];
        let window = "-floor_div(i1, 4) + 3, -floor_div(i1, 4) + 13, u64(i0 - 1) < u64(8)";
        let of = |at: &Expr, guards: &[(Expr, i64)]| of_lanes(4, at, guards);
        assert_eq!(of(&at, &guards), Some((3, 100, window.to_owned())));
        assert_eq!(of_lanes(8, &at, &guards), Some((3, 100, window.to_owned())));
        assert_eq!(of_lanes(2, &at, &guards), None, "vectors may begin within a pixel");
        assert_eq!(of_lanes(1, &at, &guards), None, "vectors may begin anywhere");
        assert_eq!(of(&at, &[(&pixel * 2, 10)]), None, "every other pixel");
        assert_eq!(of(&(&at + 2), &[]), None, "the first lane is no first channel");
    }

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
        // Between two ends: where neither is reached.
        let from = &Expr::sym(vector) - 2;
        let kept = from.maximum(&Expr::int(0)).minimum(&Expr::int(99));
        assert_eq!(
            of(&(&kept + &row)).as_deref(),
            Some("(i1 - 2 >= 0 && -max_i64(0, i1 - 2) + 99 >= 1 * (8 - 1))"),
            "an edge that is repeated"
        );
        // Mirrored at both ends.
        let mirrored = |value: Expr| value.maximum(&-&value);
        let reflected = &Expr::int(99) - &mirrored(&Expr::int(99) - &mirrored(from));
        assert!(of(&reflected).is_some(), "a reflection");
        assert_eq!(of(&(&kept * 2)), None, "every other element of a row with repeated edges");
    }
}
