//! The generated module under load, in a program of its own: many threads, a pool, a counted allocator.
//!
//! The program checks itself; the test builds and starts it.

use aoti_tests::models;
use aoti_tests::project::Project;
use aoti_tests::subcommand::{cargo, workspace};

const BUILD: &str = "\
fn main() -> Result<(), aoti_build::Error> {
    aoti_build::Builder::from_manifest()?.build()
}
";

#[test]
fn threads_agree_and_runs_allocate_nothing() {
    let root = workspace();
    let dependencies = format!(
        "[dependencies]\naoti-runtime = {{ path = {:?} }}\n[build-dependencies]\naoti-build = {{ path = {:?} }}\n",
        root.join("build-support/aoti-runtime"),
        root.join("build-support/aoti-build"),
    );
    let project = Project::new(&dependencies).with_model("digits.pt2", &models::digits());
    project.write("Cargo.lock", std::fs::read(root.join("Cargo.lock")).unwrap());
    project.write("build.rs", BUILD);
    project.write("src/main.rs", include_str!("../programs/serving.rs"));
    let mut command = cargo(project.folder(), &project.folder().join("cache"));
    command.args(["run", "--quiet"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "64 threads agree\na pool agrees\n0 allocations\n");
}
