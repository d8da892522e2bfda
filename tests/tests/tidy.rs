//! The house's rules on text that no compiler checks: what files start with, and what they must not hold.
//!
//! Reads the sources only; builds nothing.

#[path = "tidy/algorithms.rs"]
mod algorithms;
#[path = "tidy/backends.rs"]
mod backends;
#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/words.rs"]
mod words;

use std::fs;
use std::path::Path;

/// Folders with sources of our own.
const FOLDERS: &[&str] = &["build-support", "cargo-aoti", "examples", "tests", "toolchains"];

/// A source file: its path from the repository's root, with `/` between names, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn has_extension(&self, extensions: &[&str]) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
    }

    /// Generated text, kept to be compared with.
    fn is_golden(&self) -> bool {
        self.path.contains("/goldens/")
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate lies below the root")
}

fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        collect(&root().join(folder), &mut sources);
    }
    for entry in fs::read_dir(root()).expect("the root can be read") {
        let path = entry.expect("the root can be read").path();
        if path.extension().is_some_and(|extension| extension == "md" || extension == "toml") {
            push(&path, &mut sources);
        }
    }
    assert!(sources.len() > 100, "the sources are not where they are looked for");
    sources
}

fn collect(folder: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository can be read") {
        let path = entry.expect("a folder of the repository can be read").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy();
        // Where cargo puts what it makes; the compiler has a folder of that name among its sources.
        let is_made = name == "target" && folder.file_name().is_none_or(|parent| parent != "src");
        if is_made || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            collect(&path, sources);
        } else {
            push(&path, sources);
        }
    }
}

/// Keeps a file if it is text.
fn push(path: &Path, sources: &mut Vec<Source>) {
    let Ok(text) = fs::read_to_string(path) else { return };
    let relative = path.strip_prefix(root()).expect("everything lies below the root");
    sources.push(Source { path: relative.to_string_lossy().replace('\\', "/"), text });
}

/// Fails with every finding at once.
fn check(rule: &str, finds: impl Fn(&Source) -> Vec<String>) {
    let findings: Vec<String> = sources()
        .iter()
        .flat_map(|source| {
            finds(source).into_iter().map(|what| format!("{}: {what}", source.path)).collect::<Vec<_>>()
        })
        .collect();
    assert!(findings.is_empty(), "{rule}:\n{}", findings.join("\n"));
}

/// The lines that hold one of these, with their numbers.
fn lines_with(source: &Source, needles: &[String]) -> Vec<String> {
    let lines = source.text.lines().enumerate();
    let guilty = lines.filter(|(_, line)| needles.iter().any(|needle| line.contains(needle.as_str())));
    guilty.map(|(index, line)| format!("line {}: {}", index + 1, line.trim())).collect()
}

#[test]
fn every_rust_file_says_what_it_is_for() {
    check("these Rust files do not start with `//!`", |source| {
        let is_ours = source.has_extension(&["rs"]) && !source.is_golden();
        let is_guilty = is_ours && !source.text.starts_with("//!");
        is_guilty.then(|| "first line".to_owned()).into_iter().collect()
    });
}

#[test]
fn every_native_file_says_what_it_is_for() {
    check("these files do not start with a comment", |source| {
        let is_ours = source.has_extension(&["h", "c", "cpp", "inc"]);
        let is_guilty = is_ours && !source.text.starts_with("//") && !source.text.starts_with("/*");
        is_guilty.then(|| "first line".to_owned()).into_iter().collect()
    });
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here, so that this file does not hold what it looks for.
    let words = [("TO", "DO"), ("FIX", "ME"), ("todo", "!("), ("unimplemented", "!("), ("#[ign", "ore")];
    let needles = words.map(|(start, end)| format!("{start}{end}"));
    check("these lines put something off", |source| {
        if source.has_extension(&["rs", "h", "c", "cpp", "inc", "toml"]) {
            lines_with(source, &needles)
        } else {
            Vec::new()
        }
    });
}

#[test]
fn no_folder_of_anybodys_machine_is_named() {
    let needles = ["root", "work", "mnt", "Users", "tmp", "scratch"].map(|name| format!("/{name}/"));
    check("these lines name folders of one machine", |source| lines_with(source, &needles));
}

#[test]
fn lints_are_expected_with_a_reason_never_allowed() {
    let needles = ["#[allow(", "#![allow("].map(str::to_owned);
    check("say `#[expect(lint, reason = ...)]` here", |source| {
        // What generators print stands in other projects, or is checked in as they print it.
        let is_ours = source.has_extension(&["rs"]) && !source.is_golden();
        let is_exempt = ["codegen/bindings.rs", "ffi/abi.rs", "tests/tidy.rs"]
            .iter()
            .any(|end| source.path.ends_with(end));
        if is_ours && !is_exempt { lines_with(source, &needles) } else { Vec::new() }
    });
}

#[test]
fn every_crate_has_the_lints_of_the_workspace() {
    let lint = "wildcard_enum_match_arm";
    check(
        "every crate says `[lints] workspace = true`, and the workspace warns of wildcard arms",
        |source| {
            let finding = |is_fine: bool| if is_fine { Vec::new() } else { vec!["the lints".to_owned()] };
            if source.path == "Cargo.toml" {
                return finding(source.text.contains(&format!("{lint} = \"warn\"")));
            }
            // Examples are projects of their own, as a user would have them.
            let is_crate = source.path.ends_with("/Cargo.toml") && !source.path.starts_with("examples/");
            finding(!is_crate || source.text.contains("[lints]\nworkspace = true"))
        },
    );
}

#[test]
fn lines_end_without_blanks_and_files_with_a_newline() {
    check("stray white space", |source| {
        if !source.has_extension(&["rs", "h", "c", "cpp", "md", "toml", "py"]) {
            return Vec::new();
        }
        let lines = source.text.lines().enumerate().filter(|(_, line)| line.ends_with([' ', '\t']));
        let mut findings: Vec<String> = lines.map(|(index, _)| format!("line {}", index + 1)).collect();
        if !source.text.is_empty() && !source.text.ends_with('\n') {
            findings.push("no newline at the end".to_owned());
        }
        findings
    });
}

/// The packages of a lock file that come from a registry: of each the name, what tells its incompatible versions apart, and
/// the version.
fn locked(lock: &str) -> Vec<(&str, &str, &str)> {
    let packages = lock.split("[[package]]").filter(|package| package.contains("\nsource = \"registry+"));
    let package = |package| {
        let value = |key| quoted(package, key).expect("every package has a name and a version");
        let version = value("version = \"");
        let numbers = if version.starts_with("0.") { 2 } else { 1 };
        let end = version.match_indices('.').nth(numbers - 1).map_or(version.len(), |(at, _)| at);
        (value("name = \""), &version[..end], version)
    };
    packages.map(package).collect()
}

/// What stands between these words at the start of a line and the quotation mark after them.
fn quoted<'text>(text: &'text str, start: &str) -> Option<&'text str> {
    text.lines().find_map(|line| line.strip_prefix(start)?.strip_suffix('"'))
}

#[test]
fn examples_lock_the_versions_that_the_workspace_does() {
    let workspace = fs::read_to_string(root().join("Cargo.lock")).expect("the workspace has a lock file");
    let workspace = locked(&workspace);
    // Else the build library is compiled for each of them, which takes minutes.
    check("`cargo update --precise` these", |source| {
        if !(source.path.starts_with("examples/") && source.path.ends_with("/Cargo.lock")) {
            return Vec::new();
        }
        let differs = |(name, series, version): &(&str, &str, &str)| {
            let other = workspace.iter().find(|other| (other.0, other.1) == (*name, *series))?;
            (other.2 != *version).then(|| format!("{name} {version} to {}", other.2))
        };
        locked(&source.text).iter().filter_map(differs).collect()
    });
}
