//! What a build does again when something changed, and that it does nothing when nothing did.

use aoti_tests::archive;
use aoti_tests::models;
use aoti_tests::project::Project;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

#[test]
fn a_second_build_does_nothing_and_says_so() {
    let project = Project::new("").with_model("digits.pt2", &models::digits());
    assert!(project.build().tools().contains(&"digits: library"));
    let outputs = artefacts(&project);
    let again = project.build();
    assert_eq!(again.tools(), Vec::<&str>::new());
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    assert!(artefacts(&project) == outputs, "the second build changed an artefact");
}

/// What a build made, but for its record of when it looked at the model: a build that follows within the resolution of
/// file times looks again, and notes that.
fn artefacts(project: &Project) -> Vec<(PathBuf, Vec<u8>)> {
    project.outputs().into_iter().filter(|(path, _)| !path.ends_with("state.json")).collect()
}

#[test]
fn a_touched_model_is_not_compiled_again() {
    let project = Project::new("").with_model("digits.pt2", &models::digits());
    project.build();
    let model = File::options().write(true).open(project.folder().join("models/digits.pt2")).unwrap();
    for seconds in [0, 3600] {
        model.set_modified(SystemTime::now() + Duration::from_secs(seconds)).unwrap();
        let again = project.build();
        assert_eq!(again.tools(), Vec::<&str>::new());
        assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    }
}

#[test]
fn another_weight_makes_weights_again_and_no_kernels() {
    let project = Project::new("").with_model("digits.pt2", &models::digits());
    let first = project.build().tools().len();
    assert!(first > 2);
    let path = project.folder().join("models/digits.pt2");
    let mut file = fs::read(&path).unwrap();
    // The first element of a matrix, and its sign.
    let sign = archive::data_start(&file, "/weight_8") + 3;
    file[sign] ^= 0x80;
    fs::write(&path, &file).unwrap();
    assert_eq!(project.build().tools(), ["digits: weights", "digits: library"]);
    // What was made before is kept.
    file[sign] ^= 0x80;
    fs::write(&path, &file).unwrap();
    assert_eq!(project.build().tools(), Vec::<&str>::new());
}

#[test]
fn a_lost_or_damaged_library_is_made_again() {
    let project = Project::new("").with_model("digits.pt2", &models::digits());
    project.build();
    let library = project.library("digits");
    let content = fs::read(&library).unwrap();
    fs::remove_file(&library).unwrap();
    project.build();
    assert!(fs::read(&library).unwrap() == content);
    fs::write(&library, "damaged").unwrap();
    project.build();
    assert!(fs::read(&library).unwrap() == content);
}

#[test]
fn every_artefact_that_is_lost_or_damaged_is_made_again() {
    let project = Project::new("");
    project.write("models/scaled.aoti", models::SCALED);
    project.build();
    // What is in a lock means nothing.
    let artefacts = |project: &Project| {
        let mut all = artefacts(project);
        all.retain(|(path, _)| !path.ends_with(".lock"));
        all
    };
    let good = artefacts(&project);
    assert!(good.iter().any(|(path, _)| path.ends_with("kernels.cpp")), "sources are among them");
    let target = project.folder().join("target");
    let others = ["state.json", ".lock"].map(|name| project.artefacts("scaled").join(name));
    for path in good.iter().map(|(path, _)| target.join(path)).chain(others) {
        let mut other = fs::read(&path).unwrap();
        match other.len() / 2 {
            0 => other.push(b'x'),
            middle => other[middle] ^= 4,
        }
        for damage in [Some(other), None] {
            match &damage {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            project.build();
            assert!(artefacts(&project) == good, "{}, lost: {}", path.display(), damage.is_none());
        }
    }
}
