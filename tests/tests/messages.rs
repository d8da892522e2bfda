//! What commands print with `--format json` is what `docs/schema/messages.json` says: of known objects, with all of their keys and
//! no others.

use std::collections::BTreeSet;
use std::fs;

use aoti_tests::cases;
use aoti_tests::models::SCALED;
use aoti_tests::project::Project;
use aoti_tests::subcommand::{Ended, workspace};
use serde_json::Value;

/// The part of JSON Schema that the schema uses. Stricter than that in one thing: what it does not name is a mistake here.
struct Schema(Value);

impl Schema {
    fn read() -> Schema {
        let text = fs::read(workspace().join("docs/schema/messages.json")).unwrap();
        Schema(serde_json::from_slice(&text).unwrap())
    }

    /// The mistakes of an object that a command has printed.
    fn mistakes(&self, object: &Value) -> Vec<String> {
        let reason = object["reason"].as_str().unwrap_or_default();
        let mut found = Vec::new();
        match self.0["$defs"].get(reason) {
            Some(definition) => check(definition, object, reason, &mut found),
            None => found.push(format!("no object has the reason `{reason}`")),
        }
        found
    }
}

fn check(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (keyword, wanted) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "type" => {
                let is_of = |name: &Value| is_of_type(value, name.as_str().unwrap());
                if !wanted.as_array().map_or_else(|| is_of(wanted), |all| all.iter().any(is_of)) {
                    found.push(format!("{at} is {value}, not {wanted}"));
                }
            }
            "const" if value != wanted => found.push(format!("{at} is {value}, not {wanted}")),
            "enum" if !wanted.as_array().unwrap().contains(value) => {
                found.push(format!("{at} is {value}, not one of {wanted}"));
            }
            "required" => {
                for key in wanted.as_array().unwrap().iter().map(|key| key.as_str().unwrap()) {
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

/// Runs a command and checks what it prints; gives the reasons.
#[track_caller]
fn told(schema: &Schema, project: &Project, arguments: &[&str]) -> BTreeSet<String> {
    let ended = Ended::of(&mut project.aoti(&[arguments, &["--format", "json"]].concat()));
    let mut reasons = BTreeSet::new();
    for line in ended.stdout.lines() {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let mistakes = schema.mistakes(&object);
        assert!(mistakes.is_empty(), "{arguments:?}: {mistakes:#?}");
        reasons.insert(object["reason"].as_str().unwrap().to_owned());
    }
    assert!(!reasons.is_empty(), "{arguments:?} prints nothing: {}", ended.stderr);
    reasons
}

#[test]
fn every_object_is_as_the_schema_says() {
    let schema = Schema::read();
    let project = Project::new("");
    project.write("models/scaled.aoti", SCALED);
    project.write("bad.aoti", "graph \"bad\" {\n  input %0 \"x\": f3[2]\n}\n");
    cases::scaled(&project, "scaled", SCALED, &[1.0, 2.0, 3.0]);
    let before = Ended::of(&mut project.aoti(&["bench", "scaled", "--secs", "0.01", "--format", "json"]));
    project.write("before.json", before.succeeded().stdout);
    let commands: [&[&str]; 28] = [
        &["build", "--timings"],
        &["inspect", "scaled"],
        &["inspect", "scaled", "--emit", "graph"],
        &["inspect", "scaled", "--ops"],
        &["inspect", "scaled", "--choices"],
        &["inspect", "--ops"],
        &["inspect", "bad.aoti"],
        &["run", "scaled"],
        &["bench", "scaled", "--secs", "0.01", "--profile", "--compare", "before.json"],
        &["verify", "cases"],
        &["verify", "cases", "--reproduce"],
        &["tune", "scaled", "--dry-run"],
        &["tune", "scaled", "--budget", "2s"],
        &["tune", "scaled", "--budget", "2s"],
        &["explain"],
        &["explain", "AOTI0007"],
        &["doctor"],
        &["doctor", "--explain"],
        &["cache", "stat"],
        &["cache", "why", "scaled"],
        &["cache", "gc"],
        &["vendor", "scaled", "vendored"],
        &["package", "scaled", "scaled.tar.zst"],
        &["new", "other", "--model", "models/scaled.aoti"],
        &["init", "other"],
        &["collect", "dist"],
        &["cache", "clear"],
        &["clean"],
    ];
    let mut reasons = BTreeSet::new();
    for arguments in commands {
        reasons.extend(told(&schema, &project, arguments));
    }
    reasons.extend(fused(&schema));
    let known: BTreeSet<String> = schema.0["$defs"].as_object().unwrap().keys().cloned().collect();
    let unseen: Vec<_> = known.difference(&reasons).collect();
    assert!(unseen.is_empty(), "the schema has objects that no command printed: {unseen:?}");
}

/// A model with kernels that are fused.
fn fused(schema: &Schema) -> BTreeSet<String> {
    let project =
        Project::new("").with_model("digits.pt2", &workspace().join("examples/digits/models/digits.pt2"));
    told(schema, &project, &["inspect", "digits", "--explain-fusion"])
}

#[test]
fn a_schema_lists_its_objects_once() {
    let Schema(schema) = Schema::read();
    let listed =
        schema["oneOf"].as_array().unwrap().iter().map(|one| one["$ref"].as_str().unwrap().to_owned());
    let known = schema["$defs"].as_object().unwrap().keys().map(|name| format!("#/$defs/{name}"));
    assert_eq!(listed.collect::<Vec<_>>(), known.collect::<Vec<_>>());
    assert!(!Schema(schema).mistakes(&serde_json::json!({ "reason": "aoti-code", "code": 1 })).is_empty());
}
