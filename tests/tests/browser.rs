//! The example `browser` in a browser: what its page says of the pictures that come with it, and of a digit drawn with the mouse.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use aoti_tests::chromium::{self, Page};
use aoti_tests::subcommand::{Ended, cargo, program, projects, workspace};
use aoti_tests::tools;

const TARGET: &str = "wasm32-unknown-unknown";

/// The page's folder as it is served: with the model.
fn page(folder: &Path) {
    let example = workspace().join("examples/browser");
    let mut build = cargo(&example, &folder.join("cache"));
    // Not as a release, so that what it is made of is shared with other examples.
    build.args(["build", "--quiet", "--locked", "--target", TARGET]).env("CARGO_AOTI", program());
    Ended::of(&mut build).succeeded();
    copy(&example.join("www"), &folder.join("www"));
    let made = projects().join(TARGET).join("debug/digits.wasm");
    fs::copy(made, folder.join("www/digits.wasm")).unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &to) } else { fs::copy(&path, &to).map(|_| ()).unwrap() }
    }
}

#[test]
fn a_page_reads_digits() {
    if !tools::zig() || !tools::rust_target("rust-systems", TARGET) || !tools::chromium() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    page(folder.path());
    let address = chromium::serve(&folder.path().join("www"));
    let mut page = Page::open(&chromium::program().unwrap(), &address);

    let said = page.wait_for(
        "(() => {
            const text = (id) => document.getElementById(id)?.textContent ?? '';
            const read = [...document.querySelectorAll('figure[data-digit]')];
            const figures = [text('bytes'), text('first'), text('median')];
            if (text('error')) return text('error');
            return read.length === 12 && figures.every((one) => one && one !== '…') &&
                { figures, read: Object.fromEntries(read.map((one) => [one.dataset.picture, one.dataset.digit])) };
        })()",
    );
    let read: BTreeMap<String, String> =
        serde_json::from_value(said["read"].clone()).unwrap_or_else(|error| panic!("{error}: {said}"));
    // As the program reads them.
    let expected = fs::read_to_string(workspace().join("examples/digits/expected.txt")).unwrap();
    let expected = expected.lines().filter_map(|line| line.split_once(".png"));
    let expected = expected.map(|(picture, rest)| (picture.to_owned(), rest.trim()[..1].to_owned()));
    assert_eq!(read, expected.collect::<BTreeMap<_, _>>());
    let figures: Vec<&str> =
        said["figures"].as_array().unwrap().iter().filter_map(|one| one.as_str()).collect();
    // Where the model is compiled by the time of the first run, that takes less than the clocks of pages tell.
    let is_first = figures[1].ends_with("ms") || figures[1] == "less than the clock tells";
    assert!(figures[0].ends_with("KiB") && is_first && figures[2].ends_with("µs"), "{figures:?}");

    let corner = page.wait_for(
        "(() => { const { x, y } = document.getElementById('paper').getBoundingClientRect(); return [x, y]; })()",
    );
    let (x, y) = (corner[0].as_f64().unwrap(), corner[1].as_f64().unwrap());
    // A round one.
    let turn = |step: i32| f64::from(step) * std::f64::consts::TAU / 24.0;
    let round: Vec<(f64, f64)> = (0..=24)
        .map(|step| (x + 128.0 + 60.0 * turn(step).sin(), y + 128.0 - 95.0 * turn(step).cos()))
        .collect();
    page.draw(&round);
    assert_eq!(page.wait_for("document.getElementById('answer').textContent || null"), "0");
}
