//! Files and functions are short enough to be read in one go.

use std::collections::BTreeSet;

use super::{Source, sources};

/// Lines of a file.
const FILE: usize = 500;
/// Lines of a function, from its name to its closing brace.
const FUNCTION: usize = 80;

/// Files that are longer, with the lines that they may have. The list only shrinks, and so do its numbers.
const FILES: &[(&str, usize)] = &[
    ("build-support/aoti-compiler/src/frontend/onnx/ops/recurrent.rs", 531),
    ("build-support/aoti-compiler/tests/device/driver.cpp", 519),
    ("build-support/aoti-runtime/src/ffi/model.rs", 524),
    ("tests/tests/random_graphs/generate.rs", 583),
];

/// Functions that are longer, with the lines that they may have. The list only shrinks, and so do its numbers.
const FUNCTIONS: &[(&str, &str, usize)] = &[
    ("build-support/aoti-compiler/src/graph/verify/ops.rs", "op", 115),
    ("tests/tests/first_hour.rs", "a_project_grows_from_nothing", 85),
];

/// What people write, and not a generator.
fn is_written(source: &Source) -> bool {
    !source.is_golden() && !source.path.ends_with("ffi/abi.rs") && !source.path.contains("onnx/proto")
}

/// The functions of a file with their lines, as rustfmt lays them out: the brace that ends one is as far from the margin as
/// its first line.
fn functions<'text>(text: &'text str) -> Vec<(&'text str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let function = |(start, line): (usize, &&'text str)| {
        let code = line.trim_start();
        let (before, after) = code.split_once("fn ")?;
        let words = ["pub", "const", "unsafe", "async", "extern", "\"C\"", "default"];
        let is_word = |word: &str| words.contains(&word) || word.starts_with("pub(") || word.ends_with(')');
        let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        if end == 0 || !before.split_whitespace().all(is_word) {
            return None;
        }
        let closing = format!("{}}}", &line[..line.len() - code.len()]);
        let length = lines[start..].iter().position(|line| *line == closing)? + 1;
        Some((&after[..end], length))
    };
    lines.iter().enumerate().filter_map(function).collect()
}

/// Fails where something is longer than it may be, and where an exception is no longer one.
fn check(lengths: &BTreeSet<(String, usize)>, budget: usize, listed: &[(String, usize)], what: &str) {
    let most = |name: &str| listed.iter().find(|(own, _)| own == name).map_or(budget, |(_, most)| *most);
    let is_long = |(name, lines): &&(String, usize)| *lines > most(name);
    let long: Vec<String> =
        lengths.iter().filter(is_long).map(|(name, lines)| format!("{name}: {lines} lines")).collect();
    assert!(long.is_empty(), "these {what} are too long:\n{}", long.join("\n"));
    let is_over = |name: &str| lengths.iter().any(|(own, lines)| own == name && *lines > budget);
    let short: Vec<&str> =
        listed.iter().map(|(name, _)| name.as_str()).filter(|name| !is_over(name)).collect();
    assert!(short.is_empty(), "take these {what} from the list, they are short now:\n{}", short.join("\n"));
}

#[test]
fn files_are_short() {
    let sources = sources();
    let ours =
        sources.iter().filter(|source| source.has_extension(&["rs", "h", "c", "cpp"]) && is_written(source));
    let lengths = ours.map(|source| (source.path.clone(), source.text.lines().count()));
    let listed: Vec<_> = FILES.iter().map(|(path, lines)| ((*path).to_owned(), *lines)).collect();
    check(&lengths.collect(), FILE, &listed, "files");
}

#[test]
fn functions_are_short() {
    let sources = sources();
    let ours = sources.iter().filter(|source| source.has_extension(&["rs"]) && is_written(source));
    let lengths = ours.flat_map(|source| {
        let own = functions(&source.text).into_iter();
        own.map(|(name, lines)| (format!("{} {name}", source.path), lines)).collect::<Vec<_>>()
    });
    let listed: Vec<_> =
        FUNCTIONS.iter().map(|(path, name, lines)| (format!("{path} {name}"), *lines)).collect();
    check(&lengths.collect(), FUNCTION, &listed, "functions");
}

#[test]
fn functions_are_measured() {
    let text = "impl S {\n    pub(crate) const fn first(\n        self,\n    ) -> S {\n        self\n    }\n}\n\nfn second() {\n}\n\
                trait T {\n    fn declared(&self);\n}\n// an fn here\n";
    assert_eq!(functions(text), [("first", 5), ("second", 2)]);
}
