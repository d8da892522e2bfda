//! `cargo xtask dist`: the archive of a release, as `cargo binstall` looks for it (`[package.metadata.binstall]` of `cargo-aoti`).
//!
//! `target/dist/cargo-aoti-<target>.tar.gz` holds one folder with the program, its licences, its README, the changelog, the manual
//! page and completions; beside it lies its SHA-256. Two archives of one commit are equal where the program is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use xshell::cmd;

use crate::workspace::{Workspace, step};

/// Files of the repository that go along.
const FILES: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md", "cargo-aoti/README.md"];
const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];

/// Entry point of the task.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let target = match arguments {
        [] => None,
        [flag, target] if flag == "--target" => Some(target.as_str()),
        _ => bail!("usage: cargo xtask dist [--target TRIPLE]"),
    };
    let workspace = Workspace::open()?;
    let cargo = &workspace.cargo;
    let host = host(&workspace)?;
    let wanted = target.map(|target| ["--target", target]).into_iter().flatten();
    step("the subcommand: cargo build --release --locked", || {
        cmd!(workspace.shell, "{cargo} build --release --locked --package cargo-aoti {wanted...}")
            .quiet()
            .run()?;
        Ok(())
    })?;
    let made = workspace.target_directory()?;
    let release = target.map_or_else(|| made.clone(), |target| made.join(target)).join("release");
    let target = target.unwrap_or(&host);
    let program = if target.contains("windows") { "cargo-aoti.exe" } else { "cargo-aoti" };
    let archive = step("the archive", || {
        let folder = made.join("dist").join(format!("cargo-aoti-{target}"));
        let _ = fs::remove_dir_all(&folder);
        fill(&workspace, &release.join(program), &folder, target == host)?;
        pack(&workspace, &folder)
    })?;
    println!("{}", archive.display());
    Ok(())
}

fn host(workspace: &Workspace) -> anyhow::Result<String> {
    let told = cmd!(workspace.shell, "rustc --version --verbose").quiet().read()?;
    let line = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc does not tell its host")?.to_owned())
}

/// What is in the archive. Only the program itself knows its manual and completions, so they come with archives for the host.
fn fill(workspace: &Workspace, program: &Path, folder: &Path, runs_here: bool) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let name = program.file_name().context("a program has a name")?;
    fs::copy(program, folder.join(name)).with_context(|| format!("no program `{}`", program.display()))?;
    for file in FILES {
        let name = Path::new(file).file_name().context("a file has a name")?;
        fs::copy(workspace.root.join(file), folder.join(name))?;
    }
    if runs_here {
        fs::write(folder.join("cargo-aoti.1"), cmd!(workspace.shell, "{program} aoti man").quiet().read()?)?;
        for shell in SHELLS {
            let text = cmd!(workspace.shell, "{program} aoti completions {shell}").quiet().read()?;
            fs::write(folder.join(format!("cargo-aoti.{shell}")), text)?;
        }
    }
    Ok(())
}

/// Packs a folder beside it, without owners and times.
fn pack(workspace: &Workspace, folder: &Path) -> anyhow::Result<PathBuf> {
    let (parent, name) = (folder.parent().context("it lies in a folder")?, folder.file_name());
    let name = name.and_then(|name| name.to_str()).context("targets are text")?;
    let shell = workspace.shell.clone();
    shell.change_dir(parent);
    let archive = format!("{name}.tar.gz");
    let plain = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
    // BSD's, on a Mac, sorts nothing and takes other words.
    let plain = if cfg!(target_os = "linux") { &plain[..] } else { &[] };
    cmd!(shell, "tar {plain...} -czf {archive} {name}").env("GZIP", "-n").quiet().run()?;
    let digest = cmd!(shell, "sha256sum {archive}").quiet().read();
    let digest = digest.or_else(|_| cmd!(shell, "shasum -a 256 {archive}").quiet().read())?;
    fs::write(parent.join(format!("{archive}.sha256")), digest + "\n")?;
    Ok(parent.join(archive))
}
