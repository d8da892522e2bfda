//! What commands print with `--format json`, as `docs/schema/messages.json` describes it.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::subcommand::workspace;

/// The part of JSON Schema that the schema uses. Stricter than that in one thing: what it does not name is a mistake here.
#[derive(Debug)]
pub struct Schema(Value);

impl Schema {
    /// The schema of the repository.
    pub fn read() -> Schema {
        let text =
            fs::read(workspace().join("docs/schema/messages.json")).expect("the repository has the schema");
        Schema(serde_json::from_slice(&text).expect("a schema is JSON"))
    }

    /// The mistakes of an object that a command has printed.
    pub fn mistakes(&self, object: &Value) -> Vec<String> {
        let reason = object["reason"].as_str().unwrap_or_default();
        let mut found = Vec::new();
        match self.0["$defs"].get(reason) {
            Some(definition) => check(definition, object, reason, &mut found),
            None => found.push(format!("no object has the reason `{reason}`")),
        }
        found
    }

    /// The reasons of all objects.
    pub fn reasons(&self) -> BTreeSet<String> {
        let definitions = self.0["$defs"].as_object().expect("the schema defines objects");
        definitions.keys().cloned().collect()
    }

    /// The reasons in the list of objects, which a reader of the schema begins with.
    pub fn listed(&self) -> Vec<String> {
        let name =
            |one: &Value| one["$ref"].as_str().map(|name| name.trim_start_matches("#/$defs/").to_owned());
        self.0["oneOf"].as_array().into_iter().flatten().filter_map(name).collect()
    }
}

fn check(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (keyword, wanted) in schema.as_object().expect("a schema is an object") {
        match keyword.as_str() {
            "type" => {
                let is_of = |name: &Value| is_of_type(value, name.as_str().expect("it is a name"));
                if !wanted.as_array().map_or_else(|| is_of(wanted), |all| all.iter().any(is_of)) {
                    found.push(format!("{at} is {value}, not {wanted}"));
                }
            }
            "const" if value != wanted => found.push(format!("{at} is {value}, not {wanted}")),
            "enum" if !wanted.as_array().expect("it is a list").contains(value) => {
                found.push(format!("{at} is {value}, not one of {wanted}"));
            }
            "required" => {
                for key in wanted
                    .as_array()
                    .expect("it is a list")
                    .iter()
                    .map(|key| key.as_str().expect("it is a name"))
                {
                    if value.is_object() && value.get(key).is_none() {
                        found.push(format!("{at} has no `{key}`"));
                    }
                }
            }
            "items" => {
                for one in value.as_array().into_iter().flatten() {
                    check(wanted, one, &format!("{at}[]"), found);
                }
            }
            "properties" => {
                for (key, one) in value.as_object().into_iter().flatten() {
                    match wanted.get(key) {
                        Some(own) => check(own, one, &format!("{at}.{key}"), found),
                        None => found.push(format!("{at} has `{key}`, which the schema does not name")),
                    }
                }
            }
            "additionalProperties" => {
                for (key, one) in value.as_object().into_iter().flatten() {
                    check(wanted, one, &format!("{at}.{key}"), found);
                }
            }
            "const" | "enum" | "description" => {}
            other => panic!("the schema uses `{other}`, which this test does not know"),
        }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("no type is called `{other}`"),
    }
}
