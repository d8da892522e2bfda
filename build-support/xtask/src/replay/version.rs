//! One version of the compiler: its program, and digests of what it printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use xshell::cmd;

use super::{Job, Parts};
use crate::workspace::Workspace;

/// Precedes the digests of messages.
const REFUSED: &str = "refused ";

/// A built `cargo aoti`.
pub(super) struct Version {
    program: PathBuf,
    /// Where digests are kept; nowhere for the working tree, which changes.
    kept: Option<PathBuf>,
    digests: Mutex<BTreeMap<String, String>>,
}

/// What a compilation printed.
pub(super) struct Printed {
    /// A bundle, or messages.
    pub(super) text: String,
    is_bundle: bool,
}

impl Printed {
    fn digest(&self) -> String {
        let kind = if self.is_bundle { "" } else { REFUSED };
        format!("{kind}{}", blake3::hash(self.text.as_bytes()).to_hex())
    }

    /// Whether a digest is of messages.
    pub(super) fn is_refused(digest: &str) -> bool {
        digest.starts_with(REFUSED)
    }
}

impl Version {
    /// The version of a commit, which is built if it has not been.
    pub(super) fn of_commit(workspace: &Workspace, folder: &Path, commit: &str) -> Result<Version> {
        let shell = &workspace.shell;
        let commit = format!("{commit}^{{commit}}");
        let hash = cmd!(shell, "git rev-parse --verify {commit}").quiet().read()?;
        let own = folder.join(&hash);
        let program = own.join(format!("cargo-aoti{}", std::env::consts::EXE_SUFFIX));
        if !program.is_file() {
            let source = folder.join("source");
            if source.join(".git").exists() {
                cmd!(shell, "git -C {source} checkout --quiet --force --detach {hash}").quiet().run()?;
            } else {
                cmd!(shell, "git worktree add --force --detach {source} {hash}").quiet().run()?;
            }
            let built = build(workspace, &source, &folder.join("build"))?;
            fs::create_dir_all(&own)?;
            fs::copy(built, &program)?;
        }
        let kept = own.join("digests");
        let text = fs::read_to_string(&kept).unwrap_or_default();
        let digest =
            |line: &str| line.split_once('\t').map(|(key, digest)| (key.to_owned(), digest.to_owned()));
        let digests = Mutex::new(text.lines().filter_map(digest).collect());
        Ok(Version { program, kept: Some(kept), digests })
    }

    /// What the working tree holds now.
    pub(super) fn of_tree(workspace: &Workspace, folder: &Path) -> Result<Version> {
        let built = build(workspace, &workspace.root, &workspace.target_directory()?)?;
        // Later builds must not change it while it runs.
        let program = folder.join(format!("cargo-aoti{}", std::env::consts::EXE_SUFFIX));
        fs::create_dir_all(folder)?;
        fs::copy(built, &program)?;
        Ok(Version { program, kept: None, digests: Mutex::default() })
    }

    /// The digest of what a job prints.
    pub(super) fn digest(&self, job: &Job<'_>) -> Result<String> {
        let key = job.key();
        if let Some(digest) = self.lock().get(&key) {
            return Ok(digest.clone());
        }
        let digest = self.print(job)?.digest();
        self.lock().insert(key, digest.clone());
        Ok(digest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.digests.lock().expect("no thread panics while it holds this")
    }

    /// What a job prints.
    pub(super) fn print(&self, job: &Job<'_>) -> Result<Printed> {
        let mut command = Command::new(&self.program);
        command.args(["aoti", "inspect", "--emit", "bundle", "--color", "never"]).args(job.variant);
        let output = command.arg(&job.model.path).output().with_context(|| job.name())?;
        let is_bundle = output.status.success();
        let text = if is_bundle { output.stdout } else { output.stderr };
        let mut text = String::from_utf8(text).with_context(|| job.name())?;
        if job.parts == Parts::Printed {
            text = without_headers(&text);
        }
        let is_answer = matches!(output.status.code(), Some(0 | 1));
        ensure!(is_answer, "{} ends with {}:\n{text}", job.name(), output.status);
        Ok(Printed { text, is_bundle })
    }

    /// Keeps the digests for the next comparison with this commit.
    pub(super) fn save(&self) -> Result<()> {
        let Some(path) = &self.kept else { return Ok(()) };
        let line = |(key, digest): (&String, &String)| format!("{key}\t{digest}\n");
        Ok(fs::write(path, self.lock().iter().map(line).collect::<String>())?)
    }
}

/// A bundle without the files that are headers, and without digests of the whole, which are of headers too.
fn without_headers(bundle: &str) -> String {
    let mut is_header = false;
    let mut kept = String::new();
    for line in bundle.split_inclusive('\n') {
        if let Some(name) = line.strip_prefix("==== ") {
            is_header = name.starts_with("include/");
        }
        if !is_header {
            let words = line.split_inclusive('"').filter(|word| !is_digest(word.trim_end_matches('"')));
            kept.extend(words);
        }
    }
    kept
}

/// Whether a word is a digest of 256 bits.
fn is_digest(word: &str) -> bool {
    word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The program that a folder's sources make. Worktrees do not share a folder of artefacts: cargo takes a crate of one for that
/// of another.
fn build(workspace: &Workspace, source: &Path, target: &Path) -> Result<PathBuf> {
    let (shell, cargo) = (&workspace.shell, &workspace.cargo);
    let manifest = source.join("Cargo.toml");
    cmd!(
        shell,
        "{cargo} build --quiet --package cargo-aoti --manifest-path {manifest} --target-dir {target}"
    )
    .quiet()
    .run()?;
    Ok(target.join("debug").join(format!("cargo-aoti{}", std::env::consts::EXE_SUFFIX)))
}
