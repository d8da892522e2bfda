//! `docs/OPERATORS.md` and `docs/ONNX.md` list the operators that have a rule, and are written from the tables of rules themselves.
//! `UPDATE_GOLDENS=1` rewrites it.

use aoti_compiler::frontend::torch::rules::Registry;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

fn listing() -> String {
    let registry = Registry::new();
    // Overloads by operator, both in order of the alphabet.
    let mut operators: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in registry.names() {
        let (operator, overload) = name.rsplit_once('.').expect("a rule's name ends in its overload");
        operators.entry(operator).or_default().push(overload);
    }
    let mut text = String::from(
        "# Operators\n\nWritten from the table of rules by `UPDATE_GOLDENS=1 cargo test -p aoti-compiler --test operators`; \
         `cargo aoti inspect --ops`\nprints the same table. `*` stands for every overload. An in-place overload `f_` is \
         covered where `f` is, and so are\n`special_f` and, for the tensors of lists, `_foreach_f`.\n\n| operator | overloads |\n|---|---|\n",
    );
    for (operator, overloads) in &mut operators {
        overloads.sort_unstable();
        writeln!(text, "| `{operator}` | {} |", overloads.join(", ").replace('*', "\\*"))
            .expect("text takes text");
    }
    writeln!(text, "\n{} operators.", operators.len()).expect("text takes text");
    text.push_str(
        "\n## What they require of data\n\nA run in which the elements of tensors do not meet what an operator requires of them ends with \
         an error that names\nthe operator and the line of the program. Operators that are not listed have results for all \
         elements.\n\n| operator | requires |\n|---|---|\n",
    );
    for operator in operators.keys() {
        let requirements: Vec<String> =
            registry.checks(operator).iter().map(|check| check.requirement()).collect();
        if !requirements.is_empty() {
            writeln!(text, "| `{operator}` | {} |", requirements.join("; ")).expect("text takes text");
        }
    }
    text
}

/// The operators of the `onnx` package by domain and name, with the operator sets that changed them.
#[cfg(feature = "onnx")]
fn onnx_schemas() -> BTreeMap<(&'static str, &'static str), Vec<&'static str>> {
    let lines = include_str!("onnx_schemas.txt").lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| {
        let mut words = line.split(' ');
        let domain = words.next().expect("a domain").trim_start_matches("ai.onnx").trim_start_matches('.');
        ((domain, words.next().expect("a name")), words.collect())
    });
    parts.collect()
}

/// `docs/ONNX.md`: what of ONNX has a rule.
#[cfg(feature = "onnx")]
fn onnx_listing() -> String {
    use aoti_compiler::frontend::onnx;
    let mut text = String::from(include_str!("onnx_head.md"));
    let schemas = onnx_schemas();
    let mut domains: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (domain, name) in onnx::supported() {
        domains.entry(domain).or_default().push(name);
    }
    for (domain, names) in domains {
        let title = if domain.is_empty() { "ai.onnx" } else { domain };
        let count = names.len();
        writeln!(text, "\n### `{title}`: {count} operators\n").expect("text takes text");
        let short = domain.trim_start_matches("ai.onnx").trim_start_matches('.');
        let is_listed = names.iter().any(|name| schemas.contains_key(&(short, *name)));
        if !is_listed {
            writeln!(text, "`{}`", names.join("`, `")).expect("text takes text");
            continue;
        }
        text.push_str("| operator | operator sets that changed it |\n|---|---|\n");
        for name in names {
            let versions = schemas.get(&(short, name)).map(|own| own.join(", "));
            let versions = versions.unwrap_or_else(|| "of no published set".to_owned());
            writeln!(text, "| `{name}` | {versions} |").expect("text takes text");
        }
    }
    text.push_str("\n## What is refused\n\n| operator | reason |\n|---|---|\n");
    for (name, reason) in onnx::refused() {
        writeln!(text, "| `{name}` | {reason} |").expect("text takes text");
    }
    text
}

/// Each operator of the standard is either translated or refused for a reason.
#[cfg(feature = "onnx")]
#[test]
fn all_onnx_operators_are_accounted_for() {
    use aoti_compiler::frontend::onnx;
    let short = |domain: &'static str| domain.trim_start_matches("ai.onnx").trim_start_matches('.');
    let mut known: Vec<(&str, &str)> =
        onnx::supported().into_iter().map(|(domain, name)| (short(domain), name)).collect();
    known.extend(onnx::refused().iter().map(|(name, _)| match name.split_once("::") {
        Some((domain, name)) => (short(domain), name),
        None => ("", *name),
    }));
    let missing: Vec<_> = onnx_schemas().into_keys().filter(|operator| !known.contains(operator)).collect();
    assert_eq!(missing, [], "of an operator set of the `onnx` package");
}

#[cfg(feature = "onnx")]
#[test]
fn the_list_of_onnx_operators_is_fresh() {
    is_fresh("ONNX.md", &onnx_listing());
}

#[test]
fn the_list_of_operators_is_fresh() {
    is_fresh("OPERATORS.md", &listing());
}

fn is_fresh(name: &str, fresh: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, fresh).expect("the documentation can be written");
    }
    let committed = std::fs::read_to_string(&path).expect("the documentation is there");
    assert!(committed == fresh, "docs/{name} is out of date; run this test with UPDATE_GOLDENS=1");
}
