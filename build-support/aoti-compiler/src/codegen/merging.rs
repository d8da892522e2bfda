//! Function merging: kernels that differ in sizes alone become calls of one function, which is told its sizes.
//!
//! What a kernel instantiates of the headers is most of what its compilation takes, and the layers of a network repeat each other at
//! other sizes. Printers mark the numbers on which the speed of the code does not depend ([`size`], [`numbers`]). Where the rest of two
//! bodies is the same text, marks that differ become parameters; all other marks are the numbers that they were. What a printer
//! does not mark, such as the loops of a nest, stays constant.

use std::collections::BTreeMap;

/// Around what is marked. Nothing that is printed has control characters.
const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';

/// Marks an expression over the kernel's parameters. 0 and 1 decide which code there is, and stay.
pub(super) fn size(expression: &str) -> String {
    match expression {
        "0" | "1" => expression.to_owned(),
        _ => format!("{OPEN}{expression}{CLOSE}"),
    }
}

/// Marks the integers of a text, but for 0, 1 and those that types are made of: `Full<1>`.
pub(super) fn numbers(text: &str) -> String {
    let mut marked = String::with_capacity(text.len() + 16);
    let (mut rest, mut before, mut depth) = (text, ' ', 0);
    while let Some(first) = rest.chars().next() {
        let (token, behind) = rest.split_at(token_length(rest, first));
        match first {
            // Comparisons have blanks around them.
            '<' if before.is_ascii_alphanumeric() || before == '_' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ => {}
        }
        let is_number = token.bytes().all(|byte| byte.is_ascii_digit());
        marked.push_str(&if is_number && depth == 0 { size(token) } else { token.to_owned() });
        before = token.chars().next_back().unwrap_or(before);
        rest = behind;
    }
    marked
}

/// Bytes of the word or number that a text begins with, or of what stands between these.
fn token_length(text: &str, first: char) -> usize {
    if !first.is_ascii_alphanumeric() && first != '_' {
        return first.len_utf8();
    }
    let ends = |letter: char| !letter.is_ascii_alphanumeric() && !"_.".contains(letter);
    let word = |from: usize| text[from..].find(ends).map_or(text.len(), |length| from + length);
    let length = word(0);
    // A float's exponent may have a sign.
    let has_exponent = first.is_ascii_digit() && text[..length].ends_with(['e', 'p']);
    if has_exponent && text[length..].starts_with(['+', '-']) { word(length + 1) } else { length }
}

/// A body without marks.
pub(super) fn plain(body: &str) -> String {
    body.chars().filter(|letter| ![OPEN, CLOSE].contains(letter)).collect()
}

/// Kernels of which all but the marked sizes is the same.
#[derive(Debug)]
pub(super) struct Merged {
    /// Their positions.
    pub(super) kernels: Vec<usize>,
    /// The body of the function that they call.
    pub(super) body: String,
    /// Its parameters behind those of the kernels.
    pub(super) parameters: Vec<String>,
    /// What each kernel passes for these.
    pub(super) arguments: Vec<Vec<String>>,
}

/// The kernels to merge, of all with their parameter lists and marked bodies.
pub(super) fn merge(kernels: &[(&str, &str)]) -> Vec<Merged> {
    let mut alike: BTreeMap<(&str, Vec<&str>), Vec<usize>> = BTreeMap::new();
    for (position, (parameters, body)) in kernels.iter().enumerate() {
        alike.entry((parameters, parts(body).step_by(2).collect())).or_default().push(position);
    }
    let mut all: Vec<Merged> =
        alike.into_values().filter(|own| own.len() > 1).map(|own| of(kernels, own)).collect();
    all.sort_by_key(|merged| merged.kernels[0]);
    all
}

/// What is not marked and what is, by turns.
fn parts(body: &str) -> impl Iterator<Item = &str> {
    body.split([OPEN, CLOSE])
}

fn of(all: &[(&str, &str)], kernels: Vec<usize>) -> Merged {
    let sizes: Vec<Vec<&str>> =
        kernels.iter().map(|kernel| parts(all[*kernel].1).skip(1).step_by(2).collect()).collect();
    // Sizes that are equal in every kernel are one parameter.
    let mut open: Vec<Vec<&str>> = Vec::new();
    let mut body = String::new();
    for (index, part) in parts(all[kernels[0]].1).enumerate() {
        if index % 2 == 0 {
            body.push_str(part);
            continue;
        }
        let column: Vec<&str> = sizes.iter().map(|own| own[index / 2]).collect();
        if column.iter().all(|size| *size == column[0]) {
            body.push_str(part);
            continue;
        }
        let known = open.iter().position(|own| *own == column);
        body.push_str(&name(known.unwrap_or(open.len())));
        if known.is_none() {
            open.push(column);
        }
    }
    let arguments = |kernel: usize| open.iter().map(|column| column[kernel].to_owned()).collect();
    let arguments = (0..kernels.len()).map(arguments).collect();
    Merged { arguments, parameters: (0..open.len()).map(name).collect(), kernels, body }
}

/// A parameter's name, unlike those of what kernels have.
fn name(position: usize) -> String {
    format!("size{position}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_types_and_floats_stay_and_so_do_those_that_decide() {
        let text = "load(Full<8>{}, in0 + (64 * i1 + 3)); f<A<2>, 4>(1 < 5, 0, 49.0f, x2, 0x7f, 2e-05)";
        let expected =
            "load(Full<8>{}, in0 + ([64] * i1 + [3])); f<A<2>, 4>(1 < [5], 0, 49.0f, x2, 0x7f, 2e-05)";
        assert_eq!(numbers(text).replace(OPEN, "[").replace(CLOSE, "]"), expected);
        assert_eq!(plain(&numbers(text)), text);
    }

    #[test]
    fn kernels_that_differ_in_sizes_alone_are_one_function_of_them() {
        let body = |n: &str, k: &str, tail: &str| {
            format!("f({}, {}, {}, {});{tail}", size(n), size(k), size(n), size("7"))
        };
        let bodies = [
            body("8", "4", ""),
            body("8", "4", "g();"),
            body("16", "s0", ""),
            body("32", "4", ""),
            body("1", "4", ""),
        ];
        let kernels: Vec<(&str, &str)> = bodies.iter().map(|body| ("i64 s0", body.as_str())).collect();
        let [merged] = merge(&kernels).try_into().expect("one function");
        assert_eq!(merged.kernels, [0, 2, 3]);
        assert_eq!(merged.body, "f(size0, size1, size0, 7);");
        assert_eq!(merged.parameters, ["size0", "size1"]);
        assert_eq!(merged.arguments, [["8", "4"], ["16", "s0"], ["32", "4"]]);
        let others = [("i64 s0", bodies[0].as_str()), ("i64 s1", bodies[2].as_str())];
        assert!(merge(&others).is_empty(), "they have other parameters");
    }
}
