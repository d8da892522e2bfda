//! The README and the guide, followed as a reader follows them: the commands of each page run in its order in a folder of its
//! own, with the files that the page writes. `tests/src/markdown.rs` says how a page marks what is not run.
//!
//! One test a page. Nothing is downloaded, and projects are built where the other tests build theirs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use std::process::Command;

use aoti_tests::markdown::{self, Step};
use aoti_tests::subcommand::{Ended, bash, program, projects, workspace};
use aoti_tests::tools;
use libtest_mimic::{Arguments, Failed, Trial};

/// Most lines of the README.
const README_LINES: usize = 200;

/// The start of the page of error codes.
const ERRORS: &str = "\
# Error codes

`cargo aoti explain CODE` prints these texts. A number never changes its meaning. The page is written from the sources by
`UPDATE_GOLDENS=1 cargo test -p aoti-tests --test guide`.
";

fn main() {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = pages().into_iter().map(|page| trial(&page, follow)).collect();
    trials.push(Trial::test("readme_is_short", || said(short_readme())));
    trials.push(Trial::test("every_page_is_in_the_summary", || said(summary())));
    trials.push(Trial::test("every_key_of_the_manifest_is_listed", || said(keys())));
    trials.push(Trial::test("every_error_code_has_its_section", || said(codes())));
    trials.push(Trial::test("aoti_export_does_what_the_guide_says", || said(export_helper())));
    trials.extend(pages().into_iter().map(|page| trial_named("links", &page, links)));
    trials.extend(examples().into_iter().map(|page| trial_named("links", &page, links)));
    libtest_mimic::run(&arguments, trials).exit();
}

fn said(mistakes: Vec<String>) -> Result<(), Failed> {
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes.join("\n").into()) }
}

fn trial(page: &Path, check: fn(&Path) -> Vec<String>) -> Trial {
    trial_named("commands", page, check)
}

fn trial_named(kind: &str, page: &Path, check: fn(&Path) -> Vec<String>) -> Trial {
    let name = page.strip_prefix(workspace()).unwrap_or(page).display();
    let name = format!("{kind} of {name}");
    let page = page.to_owned();
    Trial::test(name, move || said(check(&page)))
}

fn chapters() -> PathBuf {
    workspace().join("docs/guide/src")
}

/// The README, the pages of the guide, and the pages beside it that are written by hand.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![workspace().join("README.md")];
    for name in ["BUILD_SYSTEMS.md", "CASES.md", "PACKAGES.md"] {
        pages.push(workspace().join("docs").join(name));
    }
    let listed = fs::read_dir(chapters()).expect("the guide has pages");
    let mut chapters: Vec<PathBuf> = listed.map(|entry| entry.expect("it can be listed").path()).collect();
    chapters.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    chapters.sort();
    pages.extend(chapters);
    pages
}

/// What the examples say of themselves. Their commands are those that `cargo xtask test` runs them by.
fn examples() -> Vec<PathBuf> {
    let listed = fs::read_dir(workspace().join("examples")).expect("there are examples");
    let pages = listed.map(|entry| entry.expect("it can be listed").path().join("README.md"));
    pages.filter(|page| page.exists()).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn short_readme() -> Vec<String> {
    let lines = read(&workspace().join("README.md")).lines().count();
    let mistake = || format!("README.md has {lines} lines, and may have {README_LINES}");
    (lines > README_LINES).then(mistake).into_iter().collect()
}

fn summary() -> Vec<String> {
    let summary = read(&chapters().join("SUMMARY.md"));
    let names = pages().into_iter().filter(|page| page.starts_with(chapters()));
    let names = names.filter_map(|page| Some(page.file_name()?.to_string_lossy().into_owned()));
    let absent = names.filter(|name| name != "SUMMARY.md" && !summary.contains(&format!("({name})")));
    absent.map(|name| format!("SUMMARY.md does not name {name}")).collect()
}

/// What `cargo aoti explain` tells of every code: the code, its title, its explanation.
fn explained() -> Vec<[String; 3]> {
    let mut explain = Command::new(program());
    let printed = Ended::of(explain.args(["aoti", "explain", "--format", "json"])).succeeded().stdout;
    let code = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("lines are JSON");
        ["code", "title", "explanation"].map(|key| value[key].as_str().unwrap_or_default().to_owned())
    };
    printed.lines().map(code).collect()
}

/// Words between backticks.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Keys that the parser knows, as AOTI0101 lists them for each table, and that are not in the tables of the page, or the other way.
fn keys() -> Vec<String> {
    let page = read(&chapters().join("manifest.md"));
    let explained = explained();
    let [_, _, text] = explained.iter().find(|code| code[0] == "AOTI0101").expect("there is such a code");
    let (_, listed) = text.split_once("The keys are").expect("it lists the keys");
    let parts =
        ["## The table", "## A model", "## A program", "## A custom operator", "## A toolchain"].into_iter();
    let mut mistakes = Vec::new();
    for (heading, known) in parts.zip(listed.split("; for ")) {
        let (_, section) = page.split_once(&format!("{heading}\n")).unwrap_or_default();
        let rows = section.split("\n## ").next().unwrap_or_default().lines();
        let keys = rows.filter_map(|row| row.strip_prefix("| `")?.split_once('`')).map(|(key, _)| key);
        let (listed, known) = (keys.collect::<BTreeSet<_>>(), quoted(known));
        if listed != known {
            mistakes.push(format!("{heading}: the page lists {listed:?}, the parser knows {known:?}"));
        }
    }
    mistakes
}

/// The page of error codes is written from the table in the sources; `UPDATE_GOLDENS=1` writes it anew.
fn codes() -> Vec<String> {
    let path = chapters().join("errors.md");
    let section = |[code, title, text]: &[String; 3]| {
        let paragraphs = text.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        format!("\n## {code}: {title}\n\n{}\n", paragraphs.collect::<Vec<_>>().join("\n\n"))
    };
    let text = ERRORS.to_owned() + &explained().iter().map(section).collect::<String>();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, &text).expect("pages can be written");
    }
    let is_stale = fs::read_to_string(&path).ok().as_ref() != Some(&text);
    let mistake = || {
        "errors.md is stale; `UPDATE_GOLDENS=1 cargo test -p aoti-tests --test guide` writes it".to_owned()
    };
    is_stale.then(mistake).into_iter().collect()
}

/// Files that a page refers to and that are not there.
fn links(page: &Path) -> Vec<String> {
    let text = read(page);
    let folder = page.parent().expect("a page lies in a folder");
    let is_absent = |target: &&str| {
        let path = target.split('#').next().unwrap_or_default();
        !target.contains("://") && !path.is_empty() && !folder.join(path).exists()
    };
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(is_absent).map(|target| format!("there is no {target}")).collect()
}

/// Whether a tool that a block needs is there.
fn has(tool: &str) -> bool {
    match tool {
        "gcc-aarch64" => tools::arm_compiler(),
        "qemu-aarch64 with gcc" => tools::arm_compiler() && tools::arm_emulator(),
        "torch" => python().is_some(),
        "wasm" => tools::zig() && tools::rust_target("rust-systems", "wasm32-unknown-unknown"),
        other => tools::are_there(other, &[other]),
    }
}

/// A Python with PyTorch: that of `AOTI_TEST_PYTHON`, else the one on `PATH`.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("AOTI_TEST_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    let imports = Command::new(&python).args(["-c", "import torch, safetensors"]).output();
    imports.is_ok_and(|output| output.status.success()).then_some(python)
}

/// The file that users copy beside a training script: its tests, where there is PyTorch; else that it is Python.
fn export_helper() -> Vec<String> {
    let helper = workspace().join("build-support/aoti_export.py");
    let tests = workspace().join("tests/programs/aoti_export_test.py");
    let Some(python) = python() else {
        const PARSE: &str = "import ast, sys; [ast.parse(open(path).read()) for path in sys.argv[1:]]";
        if !tools::are_there("python3", &["python3"]) {
            return Vec::new();
        }
        let ended = Ended::of(Command::new("python3").args(["-c", PARSE]).arg(helper).arg(tests));
        return (ended.code != Some(0)).then_some(ended.stderr).into_iter().collect();
    };
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let ended = Ended::of(Command::new(python).arg(tests).arg(folder.path()).current_dir(folder.path()));
    if ended.code != Some(0) {
        return vec![ended.stderr];
    }
    let mut shell = bash(folder.path(), &folder.path().join(".cache"));
    let ended = Ended::of(shell.args(["-c", "cargo aoti verify classifier.pt2 counter.pt2 lookup.pt2"]));
    (ended.stdout != "3 passed, 0 failed, 0 skipped\n")
        .then(|| ended.stdout + &ended.stderr)
        .into_iter()
        .collect()
}

/// Does what the page says, and gives what went otherwise.
fn follow(page: &Path) -> Vec<String> {
    let steps = match markdown::steps(&read(page)) {
        Ok(steps) => steps,
        Err(mistakes) => return mistakes,
    };
    let root = tempfile::tempdir().expect("there is room for a folder");
    std::os::unix::fs::symlink(workspace(), root.path().join("cargo-aoti")).expect("links can be made");
    let mut reader = Reader { folder: root.path().to_owned(), root: root.path().to_owned() };
    // Later steps need the earlier ones.
    steps.iter().find_map(|step| reader.does(step).err()).into_iter().collect()
}

/// Who follows a page: the folder in which they are.
struct Reader {
    folder: PathBuf,
    root: PathBuf,
}

impl Reader {
    fn does(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Run { needs: Some(tool), .. } if !has(tool) => Ok(()),
            Step::Run { commands, .. } => commands.iter().try_for_each(|command| self.runs(command)),
            Step::Write { path, text } => {
                let path = self.path(path)?;
                fs::write(path, text).map_err(|error| error.to_string())
            }
            Step::Append { path, text } => {
                let path = self.path(path)?;
                let before = fs::read_to_string(&path).unwrap_or_default();
                fs::write(path, before + "\n" + text).map_err(|error| error.to_string())
            }
            Step::Copy { from, to } => {
                let to = self.path(to)?;
                let copied = fs::copy(workspace().join(from), to);
                copied.map(|_| ()).map_err(|error| format!("{from}: {error}"))
            }
        }
    }

    /// A path in the present folder, whose parents are there.
    fn path(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.folder)).map_err(|error| error.to_string())?;
        Ok(path)
    }

    fn runs(&mut self, command: &markdown::Command) -> Result<(), String> {
        // Artefacts lie in the folder of all tests; a page finds them where a reader does.
        let link = self.folder.join("target");
        if self.folder.join("Cargo.toml").exists() && !link.exists() {
            fs::create_dir_all(projects()).map_err(|error| error.to_string())?;
            std::os::unix::fs::symlink(projects(), link).map_err(|error| error.to_string())?;
        }
        let left = self.root.join(".left");
        let script = format!("{}\ncode=$?; pwd >{:?}; exit $code", command.text, left);
        // The pages compile the same model, which is why they share a cache.
        let mut shell = bash(&self.folder, &projects().with_file_name("cache of the guide"));
        let ended = Ended::of(shell.args(["-c", &script]));
        let failed = |why: &str| {
            let Ended { stdout, stderr, .. } = &ended;
            format!("line {}: {why}: $ {}\n{stdout}{stderr}", command.line, command.text)
        };
        if ended.code != Some(0) {
            return Err(failed(&format!("ended with {:?}", ended.code)));
        }
        let printed: Vec<&str> = ended.stdout.lines().collect();
        if !command.shown.is_empty() && !markdown::is_shown(&command.shown, &printed) {
            return Err(failed("prints something else than the page shows"));
        }
        self.folder = PathBuf::from(read(&left).trim_end());
        Ok(())
    }
}
