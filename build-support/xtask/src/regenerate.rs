//! `cargo xtask regenerate [--check]`: committed files that a tool writes from other files of the repository.
//!
//! Today that is one file: the Rust mirror of the C interface, written by bindgen from `abi.h`. Bindgen needs
//! libclang and takes long to build, so it sits behind a feature that the task turns on by running cargo again.

use anyhow::bail;

/// Entry point of the task.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => bail!("usage: cargo xtask regenerate [--check]"),
    };
    imp::run(check)
}

#[cfg(not(feature = "regenerate"))]
mod imp {
    use anyhow::Context;
    use xshell::{Shell, cmd};

    pub(super) fn run(check: bool) -> anyhow::Result<()> {
        let shell = Shell::new()?;
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let flag = check.then_some("--check");
        cmd!(shell, "{cargo} run --quiet --package xtask --features regenerate -- regenerate {flag...}")
            .quiet()
            .run()
            .context("could not run the task with bindgen (is libclang installed, or LIBCLANG_PATH set?)")
    }
}

#[cfg(feature = "regenerate")]
mod imp {
    use anyhow::{Context, bail};
    use std::{fs, path::Path};

    const HEADER: &str = "build-support/aoti-compiler/include/aoti/abi.h";
    const MIRROR: &str = "build-support/aoti-runtime/src/ffi/abi.rs";
    const PREAMBLE: &str = "\
//! Rust mirror of the C interface, `include/aoti/abi.h`: layouts only, no behaviour.
//!
//! Written by `cargo xtask regenerate`; change the header instead.

";

    pub(super) fn run(check: bool) -> anyhow::Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .context("xtask does not lie two folders below the workspace")?;
        let text = mirror(&root.join(HEADER))?;
        let path = root.join(MIRROR);
        let fresh = fs::read_to_string(&path).is_ok_and(|old| old == text);
        match (fresh, check) {
            (true, _) => eprintln!("{MIRROR} is fresh"),
            (false, true) => bail!("{MIRROR} is stale: run `cargo xtask regenerate`"),
            (false, false) => {
                fs::write(&path, text).with_context(|| format!("could not write {MIRROR}"))?;
                eprintln!("{MIRROR} written");
            }
        }
        Ok(())
    }

    /// The mirror's text. Compile-time layout checks come with it, so a target whose C layout differs fails to build.
    fn mirror(header: &Path) -> anyhow::Result<String> {
        let header = header.to_str().context("the path of the header is not UTF-8")?;
        let bindings = bindgen::Builder::default()
            // Through an including text: `#pragma once` has no business in a main file.
            .header_contents("mirror.h", &format!("#include \"{header}\"\n"))
            .clang_args(["-x", "c", "-std=c11", "--target=x86_64-unknown-linux-gnu"])
            .allowlist_item("Aoti.*|AOTI_.*")
            .default_enum_style(bindgen::EnumVariation::Consts)
            .prepend_enum_name(false)
            .derive_default(false)
            .derive_debug(true)
            .generate_comments(true)
            .use_core()
            .disable_header_comment()
            .formatter(bindgen::Formatter::Prettyplease)
            .generate()?;
        Ok(format!("{PREAMBLE}{bindings}"))
    }
}
