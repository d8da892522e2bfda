//! Builds that run at the same moment help each other and never harm.

use aoti_tests::models;
use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use std::process::{Child, Stdio};

const BUILDERS: usize = 8;

fn start(project: &Project) -> Child {
    let mut command = project.aoti(&["build", "-v"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn many_builders_of_one_project_compile_each_kernel_once() {
    let project = Project::new("").with_model("digits.pt2", &models::digits());
    project.write("models/scaled.aoti", models::SCALED);
    let builders: Vec<Child> = (0..BUILDERS).map(|_| start(&project)).collect();
    let ends = builders.into_iter().map(|child| Ended::from(child.wait_with_output().unwrap()).succeeded());
    let ends: Vec<Ended> = ends.collect();
    let mut tools: Vec<&str> = ends.iter().flat_map(Ended::tools).collect();
    tools.sort_unstable();
    let distinct = {
        let mut distinct = tools.clone();
        distinct.dedup();
        distinct
    };
    assert_eq!(tools, distinct);
    assert!(tools.contains(&"digits: library") && tools.contains(&"scaled: library"), "{tools:?}");
    assert!(project.build().stderr.contains("nothing to do"));
}

#[test]
fn a_builder_that_was_killed_leaves_nothing_in_the_way() {
    let project = Project::new("").with_model("digits.pt2", &models::digits());
    for milliseconds in [20, 100, 300] {
        let mut child = start(&project);
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    project.build();
    let undisturbed = Project::new("").with_model("digits.pt2", &models::digits());
    undisturbed.build();
    let library = |project: &Project| std::fs::read(project.library("digits")).unwrap();
    assert!(library(&project) == library(&undisturbed));
}
