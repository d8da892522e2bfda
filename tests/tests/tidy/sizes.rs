//! Files and functions are short enough to be read in one go.

use std::collections::BTreeSet;

use super::{Source, sources};

/// Lines of a file.
const FILE: usize = 500;
/// Lines of a function, from its name to its closing brace.
const FUNCTION: usize = 80;

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

/// Fails where something is longer than it may be.
fn check(lengths: &BTreeSet<(String, usize)>, budget: usize, what: &str) {
    let is_long = |(_, lines): &&(String, usize)| *lines > budget;
    let long: Vec<String> =
        lengths.iter().filter(is_long).map(|(name, lines)| format!("{name}: {lines} lines")).collect();
    assert!(long.is_empty(), "these {what} are too long:\n{}", long.join("\n"));
}

#[test]
fn files_are_short() {
    let sources = sources();
    let ours =
        sources.iter().filter(|source| source.has_extension(&["rs", "h", "c", "cpp"]) && is_written(source));
    let lengths = ours.map(|source| (source.path.clone(), source.text.lines().count()));
    check(&lengths.collect(), FILE, "files");
}

#[test]
fn functions_are_short() {
    let sources = sources();
    let ours = sources.iter().filter(|source| source.has_extension(&["rs"]) && is_written(source));
    let lengths = ours.flat_map(|source| {
        let own = functions(&source.text).into_iter();
        own.map(|(name, lines)| (format!("{} {name}", source.path), lines)).collect::<Vec<_>>()
    });
    check(&lengths.collect(), FUNCTION, "functions");
}

#[test]
fn functions_are_measured() {
    let text = "impl S {\n    pub(crate) const fn first(\n        self,\n    ) -> S {\n        self\n    }\n}\n\nfn second() {\n}\n\
                trait T {\n    fn declared(&self);\n}\n// an fn here\n";
    assert_eq!(functions(text), [("first", 5), ("second", 2)]);
}
