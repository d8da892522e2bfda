//! `inspect --ops`: the operators of a model, or all that are supported.

use aoti_compiler::frontend::torch::custom::Operators;
use aoti_compiler::frontend::torch::rules::Registry;
use aoti_compiler::frontend::{self, Support, onnx};
use bytes::Bytes;
use serde_json::json;

use crate::arguments::Output;
use crate::chosen::Chosen;
use crate::commands::{print, print_json};
use crate::failure::Failure;
use crate::table;

/// An operator of a model.
struct Row {
    name: String,
    /// Calls of it.
    count: usize,
    is_supported: bool,
    /// What there is to say of it.
    note: Option<String>,
}

/// Prints the operators of a model.
pub(super) fn of_model(chosen: &Chosen, file: Bytes, output: Output) -> Result<(), Failure> {
    let declared = Operators::new(&chosen.operators()?)?;
    let all = frontend::operators_of(file, &declared)?;
    let rows: Vec<Row> = all.iter().map(|(name, (count, support))| row(name, *count, *support)).collect();
    if output.is_json() {
        let object = |row: &Row| json!({ "name": row.name, "count": row.count, "supported": row.is_supported, "note": row.note });
        let rows: Vec<_> = rows.iter().map(object).collect();
        print_json(
            &json!({ "reason": "aoti-model-operators", "model": chosen.model.name, "operators": rows }),
        );
        return Ok(());
    }
    let line = |Row { name, count, note, .. }: &Row| {
        let note = note.as_ref().map(|note| format!("  ({note})")).unwrap_or_default();
        format!("{count:6}  {name}{note}\n")
    };
    print(&table::fit(&rows.iter().map(line).collect::<String>(), output.width()));
    Ok(())
}

/// All operators that are supported, those of ONNX with their domains.
pub(super) fn all(is_json: bool) {
    let registry = Registry::new();
    let named = |(domain, name): (&str, &str)| {
        format!("{}::{name}", if domain.is_empty() { "ai.onnx" } else { domain })
    };
    let of_onnx: Vec<String> = onnx::supported().into_iter().map(named).collect();
    if is_json {
        let names: Vec<&str> = registry.names().collect();
        print_json(&json!({ "reason": "aoti-operators", "operators": names, "onnx": of_onnx }));
    } else {
        let own = registry.names().fold(String::new(), |text, name| text + name + "\n");
        print(&of_onnx.iter().fold(own, |text, name| text + name + "\n"));
    }
}

/// Of an operator that the project brings.
const PROJECTS_OWN: &str = "the project's own";

fn row(name: &str, count: usize, support: Support) -> Row {
    let (is_supported, note) = match support {
        Support::Rule => (true, None),
        Support::Function => (true, Some("a function of the model".to_owned())),
        Support::Project => (true, Some(PROJECTS_OWN.to_owned())),
        Support::Refused(reason) => (false, Some(format!("not supported: {reason}"))),
        Support::None => (false, Some("not supported".to_owned())),
    };
    Row { name: name.to_owned(), count, is_supported, note }
}
