//! Compares what two versions of the compiler print, byte for byte: `cargo xtask replay [--printed] A [B]`, where `A` and `B` are
//! commits. Without `B`, `A` is compared with the working tree; with `--printed`, headers are left out, which a bundle has as they
//! are in the tree.
//!
//! Each model of the corpus is compiled by both for several sets of targets (`inspect --emit bundle`), so both must know
//! that command. A commit's `cargo aoti` is built in a worktree below `target/replay`, once. Digests of what it printed
//! are kept beside it.

mod compare;
mod corpus;
mod version;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{bail, ensure};

use crate::workspace::{Workspace, step};
use corpus::Model;
use version::{Printed, Version};

/// What a model is compiled for: arguments of `inspect`. Architectures of one vendor would become one common target.
const VARIANTS: [&[&str]; 4] = [
    &["--level", "x86-64,x86-64-v3,x86-64-v4,gfx942"],
    &["--level", "x86-64-v4,sm_80"],
    &["--level", "sm_90a"],
    &["--level", "x86-64-v3,sm_90a", "--named-weights"],
];

/// Differences that are shown; the others are only named.
const SHOWN: usize = 10;

/// One compilation.
#[derive(Clone, Copy)]
struct Job<'a> {
    model: &'a Model,
    variant: &'a [&'a str],
    parts: Parts,
}

/// What of bundles is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    /// Everything.
    All,
    /// All but headers.
    Printed,
}

impl Job<'_> {
    fn name(&self) -> String {
        format!("{} ({})", self.model.name, self.variant.join(" "))
    }

    /// Everything that the printed text depends on besides the compiler.
    fn key(&self) -> String {
        let parts = if self.parts == Parts::Printed { " --printed" } else { "" };
        format!("{} {} {}{parts}", self.model.name, self.model.digest, self.variant.join(" "))
    }
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (parts, arguments) = match arguments {
        [flag, rest @ ..] if flag == "--printed" => (Parts::Printed, rest),
        all => (Parts::All, all),
    };
    let (old, new) = match arguments {
        [old] => (old, None),
        [old, new] => (old, Some(new.as_str())),
        _ => bail!("replay takes a commit, and another or nothing for the working tree"),
    };
    let workspace = Workspace::open()?;
    let folder = workspace.target_directory()?.join("replay");
    let old = step(&format!("build {old}"), || Version::of_commit(&workspace, &folder, old))?;
    let new = match new {
        Some(new) => step(&format!("build {new}"), || Version::of_commit(&workspace, &folder, new))?,
        None => step("build the working tree", || Version::of_tree(&workspace, &folder))?,
    };
    let models = corpus::read(&workspace.root, &folder.join("models"))?;
    let jobs: Vec<Job<'_>> =
        models.iter().flat_map(|model| VARIANTS.map(|variant| Job { model, variant, parts })).collect();
    let differing = step(&format!("compile {} models {} times each", models.len(), VARIANTS.len()), || {
        let differing = compare_all(&jobs, [&old, &new]);
        old.save()?;
        new.save()?;
        differing
    })?;
    for (index, job) in differing.iter().enumerate() {
        eprintln!("\n{} differs", job.name());
        if index < SHOWN {
            let [old, new] = [old.print(job)?, new.print(job)?];
            eprint!("{}", compare::explain(&old.text, &new.text));
        }
    }
    ensure!(differing.is_empty(), "{} of {} bundles differ", differing.len(), jobs.len());
    Ok(())
}

/// The jobs of which the versions print different texts.
fn compare_all<'a>(jobs: &[Job<'a>], versions: [&Version; 2]) -> anyhow::Result<Vec<Job<'a>>> {
    let results = Mutex::new(BTreeMap::new());
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            let digests = versions.map(|version| version.digest(job));
            results.lock().expect("no thread panics while it holds this").insert(index, digests);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let results = results.into_inner().expect("all threads have ended");
    let (mut differing, mut refused) = (Vec::new(), 0);
    for (index, [old, new]) in results {
        let (old, new) = (old?, new?);
        refused += usize::from(old == new && Printed::is_refused(&old));
        if old != new {
            differing.push(jobs[index]);
        }
    }
    eprintln!("    {} bundles, of which both refuse {refused}", jobs.len());
    Ok(differing)
}
