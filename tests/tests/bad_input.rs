//! Models that are damaged, hostile or unknown: each is refused with a code, the file's name and the fault; nothing is
//! written.

use aoti_tests::archive::Archive;
use aoti_tests::models;
use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use serde_json::{Value, json};
use std::time::Instant;

/// Builds a project whose only model is this file; expects a refusal with this code and these words.
#[track_caller]
fn check(file: &str, content: impl AsRef<[u8]>, code: &str, words: &[&str]) {
    let project = Project::new("");
    project.write(&format!("models/{file}"), content);
    let begun = Instant::now();
    let ended = Ended::of(&mut project.aoti(&["build"]));
    let said = &ended.stderr;
    assert_eq!(ended.code, Some(1), "{said}");
    assert!(ended.stdout.is_empty() && !said.contains("panicked"), "{said}");
    for word in
        [&format!("error[{code}]"), file].into_iter().map(|word| word as &str).chain(words.iter().copied())
    {
        assert!(said.contains(word), "no `{word}` in: {said}");
    }
    assert_eq!(project.outputs(), [], "{said}");
    assert!(begun.elapsed().as_secs() < 60, "refusing takes no time");

    let ended = Ended::of(&mut project.aoti(&["build", "--message-format", "json"]));
    let lines: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).expect("lines are objects")).collect();
    assert!(
        lines.iter().any(|line| line["reason"] == "aoti-diagnostic" && line["code"] == code),
        "{lines:?}"
    );
    assert_eq!(lines.last(), Some(&json!({ "reason": "build-finished", "success": false })));
}

fn digits() -> Archive {
    Archive::read(&models::digits())
}

fn edited(entry: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut archive = digits();
    archive.edit(entry, change);
    archive.write()
}

const MODEL: &str = "models/model.json";
const WEIGHTS: &str = "model_weights_config.json";

#[test]
fn an_archive_that_was_only_rewritten_is_built() {
    let project = Project::new("");
    project.write("models/digits.pt2", digits().write());
    project.build();
}

#[test]
fn a_truncated_archive_is_refused() {
    let whole = std::fs::read(models::digits()).unwrap();
    for length in [4, 1000, whole.len() / 2, whole.len() - 1] {
        check("short.pt2", &whole[..length], "AOTI0001", &["archive"]);
    }
    check("empty.pt2", [], "AOTI0001", &["empty"]);
}

#[test]
fn an_entry_that_claims_a_terabyte_is_refused() {
    let mut archive = digits();
    archive.entry("/weight_8").claimed = Some(1 << 40);
    check("huge.pt2", archive.write(), "AOTI0001", &["weight_8", "1099511627776"]);
}

#[test]
fn names_that_leave_the_archive_are_refused() {
    for name in ["/etc/passwd", "digits/../../x", "C:\\x"] {
        let mut archive = digits();
        archive.entry("/weight_3").name = name.to_owned();
        check("leaving.pt2", archive.write(), "AOTI0001", &[&name.escape_debug().to_string()]);
    }
}

#[test]
fn a_description_without_a_field_is_refused() {
    for field in ["graph", "signature"] {
        let file = edited(MODEL, |model| {
            model["graph_module"].as_object_mut().unwrap().shift_remove(field).unwrap();
        });
        check("partial.pt2", file, "AOTI0003", &[field, "model.json"]);
    }
    let file = edited(MODEL, |model| {
        model["graph_module"]["graph"]["nodes"][3].as_object_mut().unwrap().shift_remove("target").unwrap();
    });
    check("partial.pt2", file, "AOTI0003", &["nodes[3]", "target"]);
    let mut archive = digits();
    archive.entry(MODEL).data.truncate(5000);
    check("partial.pt2", archive.write(), "AOTI0003", &["model.json"]);
}

#[test]
fn unknown_operators_are_named_all_at_once_with_their_lines() {
    let file = edited(MODEL, |model| {
        let nodes = model["graph_module"]["graph"]["nodes"].as_array_mut().unwrap();
        nodes[2]["target"] = json!("torch.ops.mine.frobnicate.default");
        nodes[12]["target"] = json!("torch.ops.aten.frobnicate.int");
    });
    let words = ["mine.frobnicate.default", "aten.frobnicate.int", "train.py"];
    check("unknown.pt2", file, "AOTI0007", &words);
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    let mut archive = digits();
    archive.entry("/weight_8").data.truncate(1000);
    check("short_weight.pt2", archive.write(), "AOTI0004", &["network", "weight_8", "1000"]);
    for size in [json!(-16), json!(i64::MAX)] {
        let file = edited(WEIGHTS, |weights| {
            weights["config"]["network.features.0.weight"]["tensor_meta"]["sizes"][0]["as_int"] = size;
        });
        check("sizes.pt2", file, "AOTI0004", &["network.features.0.weight"]);
    }
    let file = edited(WEIGHTS, |weights| {
        weights["config"]["network.features.0.weight"]["path_name"] = json!("../../../etc/passwd");
    });
    check("outside.pt2", file, "AOTI0004", &["network.features.0.weight"]);
}

#[test]
fn malformed_text_is_refused_with_its_line() {
    check("text.aoti", models::SCALED.replace("mul %0", "mul %7"), "AOTI0009", &["%7", "line 8"]);
    check("text.aoti", models::SCALED.replace("mul ", "frobnicate "), "AOTI0009", &["frobnicate", "line 8"]);
    check("text.aoti", models::SCALED.replace("1..1024", "1024..1"), "AOTI0010", &["s0"]);
    check("text.aoti", "graph \u{0}\u{1}\u{ffff}", "AOTI0009", &["line 1"]);
    for other in [&b""[..], &[0xff, 0xfe, 0x00], "(".repeat(1 << 20).as_bytes()] {
        check("text.aoti", other, "AOTI0001", &["the file is"]);
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let project = Project::new("[package.metadata.aoti.models.absent]\npath = \"models/absent.pt2\"\n");
    let ended = Ended::of(&mut project.aoti(&["build"]));
    assert!(ended.code == Some(1) && ended.stderr.contains("absent.pt2"), "{}", ended.stderr);
    assert_eq!(project.outputs(), []);
}

#[test]
fn what_is_no_file_is_no_model() {
    let project = Project::new("[package.metadata.aoti.models.special]\npath = \"/dev/zero\"\n");
    let ended = Ended::of(&mut project.aoti(&["build"]));
    assert!(ended.code == Some(1) && ended.stderr.contains("/dev/zero"), "{}", ended.stderr);
    assert_eq!(project.outputs(), []);

    let project = Project::new("");
    project.write("models/folder.pt2/model.json", "{}");
    std::os::unix::fs::symlink("nowhere", project.folder().join("models/link.pt2")).unwrap();
    let ended = Ended::of(&mut project.aoti(&["build"]));
    assert!(ended.code == Some(1) && ended.stderr.contains("link.pt2"), "{}", ended.stderr);
}

#[test]
fn one_bad_model_does_not_keep_the_others_from_being_built() {
    let project = Project::new("");
    project.write("models/bad.pt2", "PK");
    project.write("models/scaled.aoti", models::SCALED);
    let ended = Ended::of(&mut project.aoti(&["build"]));
    assert!(ended.code == Some(1) && ended.stderr.contains("bad.pt2"), "{}", ended.stderr);
    assert!(project.library("scaled").is_file());
}
