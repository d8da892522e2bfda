//! The stages of the compiler import downwards only, and so do the files of the build crate.

use std::collections::BTreeSet;

use super::{Source, sources};

/// A crate whose imports are checked.
struct Crate {
    /// Where its sources are.
    folder: &'static str,
    /// Its folders and files, each of which may import what stands before it. A part of a folder that stands elsewhere is a
    /// row of its own.
    order: &'static [&'static str],
    /// Rows that only the files of one folder import, and that folder.
    private: &'static [(&'static str, &'static str)],
}

const CRATES: [Crate; 2] = [
    Crate { folder: "build-support/aoti-compiler/src/", order: COMPILER, private: PRIVATE },
    Crate { folder: "build-support/aoti-build/src/", order: BUILD, private: &[] },
];

const COMPILER: &[&str] = &[
    // Data without meaning: numbers, text, expressions over sizes.
    "constants",
    "json",
    "halves",
    "float8",
    "dtype",
    "random",
    "symbolic",
    "names",
    "origin",
    "diagnostic",
    "text",
    // What is compiled, and for what.
    "fourier",
    "graph",
    // What work costs, and what tuning may decide.
    "cost",
    "target",
    "tuning",
    // From files to graphs, and from graph to graph.
    "interpret",
    "passes",
    "frontend/torch/custom",
    "frontend/import",
    "frontend/stack_trace",
    "frontend/torch/aten",
    "frontend/torch/rules",
    "frontend/torch/functionalize",
    "frontend/torch/pt2",
    "frontend/torch",
    "frontend",
    // From graphs to kernels.
    "loops",
    "kernels",
    "lower",
    "schedule",
    "interpret/schedule",
    // From kernels to source text.
    "runplan",
    "codegen",
    "compile",
];

/// ATen is known to the front end of torch.export alone: what other front ends share with it takes values and numbers.
const PRIVATE: &[(&str, &str)] = &[
    ("frontend/torch/aten", "frontend/torch/"),
    ("frontend/torch/functionalize", "frontend/torch/"),
    ("frontend/torch/pt2", "frontend/torch/"),
];

/// Rows that a folder does not import although they stand before it: what prints a schedule decides nothing, so it knows no costs and
/// asks no records.
const CLOSED: &[(&str, &[&str])] = &[
    ("runplan", &["cost", "tuning", "passes", "lower"]),
    ("codegen", &["cost", "tuning", "passes", "lower"]),
];

const BUILD: &[&str] = &[
    // What people are told, and files.
    "system",
    "locate",
    "problem",
    "error",
    "files",
    "progress",
    "variables",
    "installed",
    "machine",
    "layout",
    "artefacts",
    // What is built.
    "operators",
    "lock",
    "model",
    "samples",
    "manifest",
    // How.
    "plan",
    "state",
    "session",
    "choices",
    "shared_records",
    "pipeline",
    "harness",
    // For build scripts.
    "build_mode",
    "builder",
    "tool",
];

/// Macros live at the root of the crate, wherever they are defined.
const MACROS: [(&str, &str); 5] = [
    ("json_fields", "json"),
    ("json_words", "json"),
    ("json_key", "json"),
    ("from_json", "json"),
    ("to_json", "json"),
];

/// The row of an order that a path of names belongs to, by its longest prefix.
fn row(order: &[&str], names: &[&str]) -> Option<usize> {
    (1..=names.len()).rev().find_map(|length| {
        let prefix = names[..length].join("/");
        order.iter().position(|row| *row == prefix)
    })
}

/// The module that a file is, as names from the crate's root. `None` for tests and for the root.
fn module<'path>(folder: &str, path: &'path str) -> Option<Vec<&'path str>> {
    let inside = path.strip_prefix(folder)?.strip_suffix(".rs")?;
    let mut names: Vec<&str> = inside.split('/').collect();
    if names.last() == Some(&"mod") {
        names.pop();
    }
    let is_test = names.iter().any(|name| ["tests", "testing"].contains(name) || name.ends_with("_tests"));
    (!is_test && names != ["lib"]).then_some(names)
}

/// The paths from the crate's root that a text names, without those of its tests.
fn paths(text: &str, depth: usize) -> BTreeSet<Vec<String>> {
    let own = text.find("#[cfg(test)]\nmod tests {").map_or(text, |end| &text[..end]);
    let lines = own.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut found = BTreeSet::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in code.match_indices(&root) {
            let is_whole = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if is_whole {
                spread(&code[at + root.len()..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads a path, with what follows it in braces, and returns the rest.
fn spread<'text>(
    text: &'text str,
    before: &mut Vec<String>,
    found: &mut BTreeSet<Vec<String>>,
) -> &'text str {
    let depth = before.len();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            loop {
                rest = spread(rest, before, found).trim_start();
                match rest.strip_prefix(',') {
                    Some(next) => rest = next,
                    None => break,
                }
            }
            rest = rest.strip_prefix('}').unwrap_or(rest);
            break;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end > 0 {
            before.push(rest[..end].to_owned());
        }
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(next) => rest = next,
            None => {
                found.insert(before.clone());
                break;
            }
        }
    }
    before.truncate(depth);
    rest.strip_prefix(" as ")
        .map_or(rest, |alias| alias.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The rows that a file of a crate imports.
fn imported(own: &Crate, source: &Source) -> BTreeSet<usize> {
    let Some(names) = module(own.folder, &source.path) else { return BTreeSet::new() };
    let target = |path: Vec<String>| {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let first = MACROS.iter().find(|(name, _)| names.first() == Some(name));
        first.map_or_else(|| row(own.order, &names), |(_, home)| row(own.order, &[home]))
    };
    paths(&source.text, names.len()).into_iter().filter_map(target).collect()
}

/// The rows behind its own that a file of a crate imports.
fn upward(own: &Crate, source: &Source) -> BTreeSet<&'static str> {
    let Some(names) = module(own.folder, &source.path) else { return BTreeSet::new() };
    let place = row(own.order, &names).unwrap_or_else(|| panic!("{} is in no row of its order", source.path));
    imported(own, source).into_iter().filter(|row| *row > place).map(|row| own.order[row]).collect()
}

#[test]
fn imports_go_downwards() {
    let sources = sources();
    for own in CRATES {
        let found: Vec<String> = sources
            .iter()
            .flat_map(|source| {
                let rows = upward(&own, source).into_iter();
                rows.map(|row| format!("{} imports `{row}`", source.path)).collect::<Vec<_>>()
            })
            .collect();
        assert!(found.is_empty(), "these files import what stands behind them:\n{}", found.join("\n"));
    }
}

#[test]
fn private_folders_are_imported_by_their_own_alone() {
    let sources = sources();
    for own in CRATES {
        for (private, folder) in own.private {
            let place = own.order.iter().position(|row| row == private).expect("it is a row of the order");
            let strangers: Vec<&str> = sources
                .iter()
                .filter(|source| imported(&own, source).contains(&place))
                .map(|source| source.path.as_str())
                .filter(|path| !path.strip_prefix(own.folder).is_some_and(|path| path.starts_with(folder)))
                .collect();
            assert!(strangers.is_empty(), "only files of `{folder}` may import `{private}`: {strangers:?}");
        }
    }
}

#[test]
fn what_prints_decides_nothing() {
    let sources = sources();
    let own = CRATES.iter().find(|own| own.order == COMPILER).expect("it is one of them");
    for source in &sources {
        let Some(names) = module(own.folder, &source.path) else { continue };
        let rows = CLOSED.iter().filter(|(folder, _)| names.first() == Some(folder));
        let closed: Vec<&str> = rows.flat_map(|(_, rows)| rows.iter().copied()).collect();
        let found: Vec<&str> = imported(own, source).into_iter().map(|row| COMPILER[row]).collect();
        let wrong: Vec<&&str> = found.iter().filter(|row| closed.contains(row)).collect();
        assert!(wrong.is_empty(), "{} imports {wrong:?}, which a schedule has decided by", source.path);
    }
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "use crate::graph::{Graph, text::{self, print}};\nuse crate::{json, target as machine, loops::Kernel};\n\
                // use crate::compile;\nfn f() -> super::super::kernels::Choice {}\n\
                #[cfg(test)]\nmod tests {\n    use crate::codegen;\n}\n";
    let found: BTreeSet<&str> = paths(text, 2)
        .iter()
        .filter_map(|path| row(COMPILER, &path.iter().map(String::as_str).collect::<Vec<_>>()))
        .map(|row| COMPILER[row])
        .collect();
    assert_eq!(found, BTreeSet::from(["graph", "json", "kernels", "loops", "target"]));
    assert!(paths(text, 2).contains(&vec!["graph".to_owned(), "text".to_owned(), "print".to_owned()]));
}
