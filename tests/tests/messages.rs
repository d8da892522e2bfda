//! What commands print with `--format json` is what `docs/schema/messages.json` says: of known objects, with all of their keys and
//! no others.

use std::collections::BTreeSet;

use aoti_tests::cases;
use aoti_tests::models::SCALED;
use aoti_tests::project::Project;
use aoti_tests::schema::Schema;
use aoti_tests::subcommand::{Ended, workspace};
use serde_json::Value;

/// Runs a command and checks what it prints; gives the reasons.
#[track_caller]
fn told(schema: &Schema, project: &Project, arguments: &[&str]) -> BTreeSet<String> {
    let ended = Ended::of(&mut project.aoti(&[arguments, &["--format", "json"]].concat()));
    assert_eq!(ended.code == Some(0), !arguments.contains(&"bad.aoti"), "{arguments:?}: {}", ended.stderr);
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
    let commands: &[&[&str]] = &[
        &["build", "--timings"],
        &["inspect", "scaled"],
        &["inspect", "scaled", "--emit", "graph"],
        &["inspect", "scaled", "--choices"],
        &["inspect", "--ops"],
        &["run", "scaled"],
        &["bench", "scaled", "--secs", "0.01", "--profile", "--compare", "before.json"],
        &["verify", "cases"],
        &["verify", "cases", "--reproduce"],
        &["explain"],
        &["explain", "AOTI0007"],
        &["doctor"],
        &["doctor", "--explain"],
        &["cache", "stat"],
        &["cache", "why", "scaled"],
        &["cache", "gc"],
        &["vendor", "models/scaled.aoti", "vendored", "--cpu", "x86-64"],
        &["package", "models/scaled.aoti", "scaled.tar.zst", "--cpu", "x86-64"],
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
    reasons.extend(told(&schema, &project, &["inspect", "bad.aoti"]));
    let project =
        Project::new("").with_model("digits.pt2", &workspace().join("examples/digits/models/digits.pt2"));
    reasons.extend(told(&schema, &project, &["inspect", "digits", "--explain-fusion"]));
    reasons.extend(told(&schema, &project, &["inspect", "digits", "--ops"]));
    reasons.extend(told(&schema, &project, &["tune", "digits", "--dim", "image_d0=1", "--dry-run"]));
    // The tests of `tune` hold these to the schema.
    reasons.extend(["aoti-tuning", "aoti-tuned", "aoti-taken-over"].map(str::to_owned));
    let unseen: Vec<String> = schema.reasons().difference(&reasons).cloned().collect();
    assert!(unseen.is_empty(), "the schema has objects that no command printed: {unseen:?}");
}

#[test]
fn a_schema_lists_its_objects_once() {
    let schema = Schema::read();
    let listed = schema.listed();
    assert_eq!((listed.len(), listed.into_iter().collect()), (schema.reasons().len(), schema.reasons()));
    assert!(!schema.mistakes(&serde_json::json!({ "reason": "aoti-code", "code": 1 })).is_empty());
}
