//! Whether a model's files follow from the model alone: builds it twice, elsewhere and without the cache.

use std::path::Path;

use aoti_build::{Built, Job, Layout, LinkKind, Model, Session, Settings, Silent};
use aoti_toolchain::{Target, temporary_folder};
use serde_json::json;

use super::Arguments;
use crate::case::Case;
use crate::commands::{Context, print, print_json};
use crate::failure::Failure;
use crate::single;

/// Builds every model twice and compares.
pub(super) fn run(arguments: &Arguments, context: &Context, cases: &[Case]) -> Result<(), Failure> {
    let mut failed = 0;
    for case in cases {
        let difference = difference(arguments, context, case)?;
        failed += usize::from(difference.is_some());
        if arguments.output.is_json() {
            let (name, same) = (&case.name, difference.is_none());
            print_json(
                &json!({ "reason": "aoti-reproduced", "name": name, "same": same, "message": difference }),
            );
        } else if let Some(difference) = difference {
            print(&format!("fail {}: {difference}\n", case.name));
        }
    }
    let same = cases.len() - failed;
    let message = format!("{same} built to the same bytes twice, {failed} not");
    if arguments.output.is_json() {
        print_json(
            &json!({ "reason": "aoti-summary", "passed": same, "failed": failed, "message": message }),
        );
    } else {
        print(&(message + "\n"));
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Reported) }
}

/// What differs between two builds of a model, if anything.
fn difference(arguments: &Arguments, context: &Context, case: &Case) -> Result<Option<String>, Failure> {
    let place = context.environment.temporary_directory();
    let made = |_| {
        temporary_folder("case", &context.environment).map_err(Failure::machine("make a folder in", &place))
    };
    let folders = [made(0)?, made(1)?];
    let mut builds = Vec::new();
    for (folder, below) in folders.iter().zip(["a", "another/folder with a longer name"]) {
        // Tools work in folders of other names, too.
        let temporary = folder.path().join("t").join(below);
        fs_err::create_dir_all(&temporary).map_err(Failure::machine("make", &temporary))?;
        let environment = context.environment.clone().with("TMPDIR", &temporary);
        let settings = Settings {
            target: arguments.target.clone().map(Target::new),
            toolchain: arguments.toolchain.clone(),
            cache: false,
            ..Settings::default()
        };
        let session = Session::new(&environment, settings)?;
        let mut model = Model::new(single::name_of(&case.model()), case.model()).link(LinkKind::Static);
        model.levels = arguments.level.clone().into_iter().collect();
        model.operators = single::operators(&environment)?;
        model.shapes = case.shapes()?;
        let layout = Layout::flat(folder.path().join(below));
        let job = Job { model, layout, incremental: false };
        builds.push(session.build(&[job], &Silent).remove(0)?);
    }
    compare(&builds[0], &builds[1])
}

/// The first file that is not the same in both.
fn compare(first: &Built, second: &Built) -> Result<Option<String>, Failure> {
    let read = |path: &Path| fs_err::read(path).map_err(Failure::machine("read", path));
    if first.artefacts.len() != second.artefacts.len() {
        return Ok(Some("the builds made different files".to_owned()));
    }
    for (one, other) in first.artefacts.iter().zip(&second.artefacts) {
        let (a, b) = (read(&one.path)?, read(&other.path)?);
        if a != b {
            let at = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
            let name = one.path.file_name().unwrap_or_default().to_string_lossy();
            let (kind, lengths) = (&one.kind, (a.len(), b.len()));
            return Ok(Some(format!(
                "the {kind} `{name}` differs from byte {at} on ({} and {} bytes)",
                lengths.0, lengths.1
            )));
        }
    }
    Ok(None)
}
