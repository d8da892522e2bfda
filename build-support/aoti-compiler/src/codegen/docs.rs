//! How values are described in the comments of generated modules and headers.
//!
//! Names in models are arbitrary, so nothing reaches a comment unescaped: no line end, no code mark, nothing invisible.

use super::foreign;
use super::interface::{DimInterface, ValueInterface};

/// Text between code marks, safe in Markdown tables, Rust documentation and C comments.
pub(super) fn code(text: &str) -> String {
    let mut out = String::from("`");
    for c in foreign::shown(text).chars() {
        match c {
            '`' => out.push('\''),
            '|' => out.push_str("\\|"),
            c => out.push(c),
        }
    }
    if out.len() == 1 {
        // Two code marks in a row would start a longer one.
        out.push(' ');
    }
    out.push('`');
    out
}

/// The sizes of a value: `[batch, 3, 224]`.
pub(super) fn sizes(value: &ValueInterface) -> String {
    let dims = value.dims.iter().map(|dim| dim.expression.clone().unwrap_or_else(|| dim.min.to_string()));
    code(&format!("[{}]", dims.collect::<Vec<_>>().join(", ")))
}

/// The bounds of a value's dynamic dimensions: "`batch`: 1 to 64, `seq`: from 2"; empty where there are none.
pub(super) fn bounds(value: &ValueInterface) -> String {
    let bound = |dim: &DimInterface| {
        let expression = code(dim.expression.as_deref()?);
        Some(match dim.max {
            i64::MAX => format!("{expression}: from {}", dim.min),
            max => format!("{expression}: {} to {max}", dim.min),
        })
    };
    let mut all: Vec<String> = value.dims.iter().filter_map(bound).collect();
    all.dedup();
    all.join(", ")
}

/// The lines of a table of values; `names` are their identifiers in the language at hand.
pub(super) fn table(kind: &str, values: &[ValueInterface], names: &[String]) -> Vec<String> {
    if values.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!("| {kind} | elements | sizes | bounds |"), "|---|---|---|---|".to_owned()];
    for (value, name) in values.iter().zip(names) {
        let name = named(name, &value.name);
        let (elements, sizes, bounds) = (code(&value.element.name()), sizes(value), bounds(value));
        lines.push(format!("| {name} | {elements} | {sizes} | {bounds} |").replace("|  |", "| |"));
    }
    lines
}

/// An identifier, with the program's own name where that is another.
pub(super) fn named(identifier: &str, name: &str) -> String {
    if identifier == name {
        code(identifier)
    } else {
        format!("{} ({} in the program)", code(identifier), code(name))
    }
}
