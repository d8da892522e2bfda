//! What the tasks share: the repository's folders, a shell in its root, and headings that tell how long a step took.

use std::path::{Path, PathBuf};

use anyhow::Context;
use xshell::{Shell, cmd};

use crate::clock::Clock;

/// The repository, with a shell that stands in its root.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) shell: Shell,
    /// The cargo that started the task.
    pub(crate) cargo: String,
    /// Where this program lies, even when a build has put another in its place.
    pub(crate) program: PathBuf,
}

impl Workspace {
    pub(crate) fn open() -> anyhow::Result<Workspace> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .context("xtask does not lie two folders below the workspace")?
            .to_owned();
        let shell = Shell::new()?;
        shell.change_dir(&root);
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let program = std::env::current_exe()?;
        Ok(Workspace { root, shell, cargo, program })
    }

    /// The same, with the shell in a folder of the repository.
    pub(crate) fn inside(&self, folder: &str) -> Workspace {
        let shell = self.shell.clone();
        shell.change_dir(self.root.join(folder));
        Workspace { shell, root: self.root.clone(), cargo: self.cargo.clone(), program: self.program.clone() }
    }

    /// Where cargo puts what it builds, for the project that the shell stands in.
    pub(crate) fn target_directory(&self) -> anyhow::Result<PathBuf> {
        let cargo = &self.cargo;
        let text = cmd!(self.shell, "{cargo} metadata --no-deps --format-version 1").quiet().read()?;
        let metadata: serde_json::Value = serde_json::from_str(&text)?;
        let folder =
            metadata["target_directory"].as_str().context("cargo metadata tells no target folder")?;
        Ok(PathBuf::from(folder))
    }
}

/// Announces a step, runs it, and tells how long it took.
pub(crate) fn step<T>(title: &str, run: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    eprintln!("\n==> {title}");
    let clock = Clock::start();
    let result = run();
    let verdict = if result.is_ok() { "done" } else { "failed" };
    eprintln!("    {verdict} after {}", clock.spent());
    result
}
