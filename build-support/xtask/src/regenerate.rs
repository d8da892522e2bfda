//! `cargo xtask regenerate [--check] [--onnx FOLDER]`: committed files that a tool writes from others.
//!
//! These are the numbers that the compiler counts with as headers define them (`constants.rs`), written by a test of the compiler,
//! which also compares them; the runtime's kernel for GPUs as PTX, by clang 19 where it is installed; the Rust mirror of the C interface,
//! written by bindgen from `abi.h`; and, where the folder of Python's `onnx` package is given, the messages of the ONNX format, written by prost from `onnx-data.proto` there. The tools take long to build, and
//! bindgen needs libclang, so they sit behind a feature that the task turns on by running cargo again.

use anyhow::{Context, bail};
use std::{fs, path::Path};
use xshell::{Shell, cmd};

/// Entry point of the task.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (check, rest) = match arguments {
        [flag, rest @ ..] if flag == "--check" => (true, rest),
        rest => (false, rest),
    };
    let onnx = match rest {
        [] => None,
        [flag, folder] if flag == "--onnx" => Some(Path::new(folder)),
        _ => bail!("usage: cargo xtask regenerate [--check] [--onnx FOLDER]"),
    };
    // The task runs itself again with a feature; the first is enough for this.
    if cfg!(not(feature = "regenerate")) {
        constants(check)?;
        kernel(check)?;
    }
    imp::run(check, onnx)
}

/// Writes the numbers that headers define, or compares them.
fn constants(check: bool) -> anyhow::Result<()> {
    let shell = Shell::new()?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let test = cmd!(
        shell,
        "{cargo} test --quiet --package aoti-compiler --lib -- constants_are_those_of_the_headers"
    );
    let test = if check { test } else { test.env("AOTI_REGENERATE", "1") };
    test.quiet().run().context("the compiler's constants are not those of its headers")
}

/// Compiles the runtime's kernel, or compares its text. Another version of clang writes the same in other words.
fn kernel(check: bool) -> anyhow::Result<()> {
    const CLANG: &str = "clang++-19";
    const SOURCE: &str = "build-support/aoti-runtime/src/ffi/nccl/all_reduce.cu";
    const TEXT: &str = "build-support/aoti-runtime/src/ffi/nccl/all_reduce.ptx";
    let shell = Shell::new()?;
    if cmd!(shell, "{CLANG} --version").quiet().ignore_stdout().ignore_stderr().run().is_err() {
        eprintln!("{TEXT} stays as it is: there is no {CLANG}");
        return Ok(());
    }
    let source = root()?.join(SOURCE);
    // Without CUDA's headers, for every GPU that has the instructions for waiting and telling, and for drivers from 2018 on.
    let language = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "-std=c++17"];
    let target = ["--cuda-gpu-arch=sm_70", "-Xclang", "-target-feature", "-Xclang", "+ptx63"];
    let text = cmd!(shell, "{CLANG} {language...} {target...} -O3 -S {source} -o -").quiet().read()?;
    keep(TEXT, &format!("{text}\n"), check)
}

fn root() -> anyhow::Result<&'static Path> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    above.context("xtask does not lie two folders below the workspace")
}

/// Writes a file, or says that it differs.
fn keep(name: &str, text: &str, check: bool) -> anyhow::Result<()> {
    let path = root()?.join(name);
    let fresh = fs::read_to_string(&path).is_ok_and(|old| old == text);
    match (fresh, check) {
        (true, _) => eprintln!("{name} is fresh"),
        (false, true) => bail!("{name} is stale: run `cargo xtask regenerate`"),
        (false, false) => {
            fs::write(&path, text).with_context(|| format!("could not write {name}"))?;
            eprintln!("{name} written");
        }
    }
    Ok(())
}

#[cfg(not(feature = "regenerate"))]
mod imp {
    use anyhow::Context;
    use std::path::Path;
    use xshell::{Shell, cmd};

    pub(super) fn run(check: bool, onnx: Option<&Path>) -> anyhow::Result<()> {
        let shell = Shell::new()?;
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let flag = check.then_some("--check");
        let onnx = onnx.map(|folder| ["--onnx".as_ref(), folder.as_os_str()]).into_iter().flatten();
        cmd!(
            shell,
            "{cargo} run --quiet --package xtask --features regenerate -- regenerate {flag...} {onnx...}"
        )
        .quiet()
        .run()
        .context("could not run the task with bindgen (is libclang installed, or LIBCLANG_PATH set?)")
    }
}

#[cfg(feature = "regenerate")]
mod imp {
    use super::{keep, root};
    use anyhow::Context;
    use std::{fs, path::Path};

    const HEADER: &str = "build-support/aoti-compiler/include/aoti/abi.h";
    const MIRROR: &str = "build-support/aoti-runtime/src/ffi/abi.rs";
    const PREAMBLE: &str = "\
//! Rust mirror of the C interface, `include/aoti/abi.h`: layouts only, no behaviour.
//!
//! Written by `cargo xtask regenerate`; change the header instead.

";

    const MESSAGES: &str = "build-support/aoti-compiler/src/frontend/onnx/proto.rs";
    const MESSAGES_PREAMBLE: &str = "\
//! The messages of ONNX files, as `onnx-ml.proto` and `onnx-data.proto` of the `onnx` package state them.
//!
//! Written by `cargo xtask regenerate --onnx FOLDER`; change nothing here.

";

    pub(super) fn run(check: bool, onnx: Option<&Path>) -> anyhow::Result<()> {
        keep(MIRROR, &mirror(&root()?.join(HEADER))?, check)?;
        match onnx {
            Some(folder) => keep(MESSAGES, &messages(folder)?, check),
            None => Ok(()),
        }
    }

    /// The messages of ONNX files. Tensors are slices of the file (`bytes`), and nothing prints messages.
    fn messages(folder: &Path) -> anyhow::Result<String> {
        let parent = folder.parent().context("the folder of the `onnx` package has no parent")?;
        let files = protox::compile(["onnx/onnx-data.proto"], [parent])?;
        let out = tempfile::tempdir()?;
        let mut config = prost_build::Config::new();
        config
            .bytes(["."])
            .disable_comments(["."])
            .skip_debug(["."])
            .out_dir(out.path())
            .compile_fds(files)?;
        let text = fs::read_to_string(out.path().join("onnx.rs"))?;
        let text = text.lines().filter(|line| !line.starts_with("// This file is @generated"));
        Ok(text.fold(MESSAGES_PREAMBLE.to_owned(), |all, line| all + line + "\n"))
    }

    /// The mirror's text. Compile-time layout checks come with it, so a target of 64 bits whose C layout differs fails to build.
    /// Where pointers are shorter, `repr(C)` is all there is.
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
        const CHECK: &str = "const _: () = {\n";
        let bindings =
            bindings.to_string().replace(CHECK, &format!("#[cfg(target_pointer_width = \"64\")]\n{CHECK}"));
        Ok(format!("{PREAMBLE}{bindings}"))
    }
}
