//! The text forms of all stages give their programs back: for real models, where `AOTI_CONFORMANCE` names a folder of
//! cases.

use aoti_compiler::{aten, frontend};
use bytes::Bytes;
use std::path::PathBuf;

/// Every model of the cases, with its path.
fn models() -> Vec<(PathBuf, Bytes)> {
    let Some(folder) = std::env::var_os("AOTI_CONFORMANCE") else {
        eprintln!("skipped: AOTI_CONFORMANCE does not name a folder of cases");
        return vec![];
    };
    let sets = std::fs::read_dir(folder).expect("the folder can be read");
    let cases = sets.flat_map(|set| std::fs::read_dir(set.expect("an entry").path()).into_iter().flatten());
    let mut paths: Vec<PathBuf> =
        cases.map(|case| case.expect("an entry").path().join("model.pt2")).collect();
    paths.sort();
    paths.into_iter().filter_map(|path| Some((path.clone(), std::fs::read(path).ok()?.into()))).collect()
}

#[test]
fn programs_of_aten_calls_come_back() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, model) in models() {
        let Ok(program) = frontend::import("model", model) else { continue };
        count += 1;
        let text = aten::text::print(&program);
        match aten::text::parse(&text) {
            // NaN is not equal to itself; its text is.
            Ok(back) if back == program || aten::text::print(&back) == text => {}
            Ok(_) => wrong.push(format!("{}: comes back changed", path.display())),
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}
