//! What a vendored folder has besides the generated sources: Makefile, crate, headers, licences.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use aoti_build::{Vendored, VendoredObject};

use crate::failure::Failure;

/// The first line of the Makefile, by which the command knows folders of its own.
const MARK: &str = "# Written by cargo aoti vendor: the library of a compiled model, made of its sources.";

/// The licences of what cargo-aoti generates.
pub(crate) const LICENSES: [(&str, &str); 2] = [
    ("LICENSE-APACHE", include_str!("../../../LICENSE-APACHE")),
    ("LICENSE-MIT", include_str!("../../../LICENSE-MIT")),
];

/// A folder that is written.
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Takes a folder that nobody else has put anything into.
    pub(super) fn new(root: &Path) -> Result<Folder, Failure> {
        let is_empty = fs_err::read_dir(root).map_or(true, |mut listing| listing.next().is_none());
        let makefile = fs_err::read_to_string(root.join("Makefile")).unwrap_or_default();
        if !is_empty && !makefile.starts_with(MARK) {
            let root = root.display();
            return Err(Failure::Usage(format!("the folder `{root}` has other files in it; name a new one")));
        }
        Ok(Folder { root: root.to_owned() })
    }

    /// The folder for generated sources, without those of an earlier time.
    pub(super) fn sources(&self) -> Result<PathBuf, Failure> {
        let folder = self.root.join("generated");
        if folder.is_dir() {
            fs_err::remove_dir_all(&folder).map_err(Failure::machine("remove", &folder))?;
        }
        Ok(folder)
    }

    /// Writes the rest; `made` has module, header and manifest.
    pub(super) fn fill(&self, vendored: &Vendored, made: &Path, target: &str) -> Result<(), Failure> {
        let name = &vendored.identifier;
        self.copy(&made.join(format!("{name}.rs")), "src/model.rs")?;
        self.copy(&made.join(format!("aoti_{name}.h")), &format!("include/aoti_{name}.h"))?;
        self.copy(&made.join("src/include/aoti/abi.h"), "include/aoti/abi.h")?;
        self.copy(&made.join("manifest.json"), "manifest.json")?;
        let weights = made.join(format!("{name}.weights.bin"));
        if weights.is_file() {
            self.copy(&weights, &format!("{name}.weights.bin"))?;
        }
        self.write("Makefile", &makefile(vendored, target))?;
        self.write("Cargo.toml", &cargo_toml(&vendored.identifier))?;
        self.write("build.rs", &build_script(vendored))?;
        let head = format!("//! The compiled model `{name}`; the build script compiles its library.\n");
        self.write("src/lib.rs", &format!("{head}\ninclude!(\"model.rs\");\n"))?;
        for (name, text) in LICENSES {
            self.write(name, text)?;
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.place(name)?;
        fs_err::write(&path, text).map_err(Failure::machine("write", &path))
    }

    fn copy(&self, from: &Path, name: &str) -> Result<(), Failure> {
        let path = self.place(name)?;
        fs_err::copy(from, &path).map(drop).map_err(Failure::machine("write", &path))
    }

    fn place(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        fs_err::create_dir_all(folder).map_err(Failure::machine("make", folder))?;
        Ok(path)
    }
}

/// A Makefile that calls the compiler as a build does, in the folder of the sources, so that no name of a folder gets into objects.
fn makefile(vendored: &Vendored, target: &str) -> String {
    let compiler = compiler(vendored);
    let Vendored { identifier, library, .. } = vendored;
    let mut text = format!(
        "{MARK}\n\
         #   make                       makes $(OUT)/{library} for {target}\n\
         #   make CXX=… AR=… OUT=…      with other tools, in another folder\n\
         # Link it with -lm; the header is include/aoti_{identifier}.h.\n\n\
         ifeq ($(origin CXX),default)\nCXX = {compiler}\nendif\n\
         OUT ?= out\nout := $(abspath $(OUT))\n\n\
         all: $(out)/{library}\n.PHONY: all clean\n\n"
    );
    let shared = shared_inputs(vendored);
    let listed: Vec<String> = shared.iter().map(|name| format!("generated/{name}")).collect();
    let _ = writeln!(text, "shared := {}\n", listed.join(" \\\n  "));
    let objects: Vec<String> =
        vendored.objects.iter().map(|object| format!("$(out)/{}", object.name)).collect();
    for (object, path) in vendored.objects.iter().zip(&objects) {
        let own = object.inputs.iter().filter(|name| !shared.contains(name));
        let own: Vec<String> = own.map(|name| format!("generated/{name}")).collect();
        let words: Vec<String> = object.arguments.iter().map(|word| quoted(word)).collect();
        let _ = writeln!(
            text,
            "{path}: {} $(shared)\n\t@mkdir -p $(out)\n\tcd generated && $(CXX) {} -o $@\n",
            own.join(" "),
            words.join(" ")
        );
    }
    let _ = writeln!(
        text,
        "$(out)/{library}: {}\n\trm -f $@\n\tcd $(out) && $(AR) rcsD {library} {}\n\nclean:\n\trm -rf $(out)",
        objects.join(" "),
        vendored.objects.iter().map(|object| object.name.as_str()).collect::<Vec<_>>().join(" ")
    );
    text
}

/// What several objects read: headers, which are listed once.
fn shared_inputs(vendored: &Vendored) -> Vec<&String> {
    let reads = |object: &VendoredObject, name: &String| object.inputs.contains(name);
    let readers = |name: &String| vendored.objects.iter().filter(|object| reads(object, name)).count();
    vendored.files.iter().filter(|name| readers(name) > 1 && name.ends_with(".h")).collect()
}

/// A word of a command, for make and the shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+,:@%".contains(c);
    let escaped = word.replace('$', "$$");
    if word.chars().all(is_plain) { escaped } else { format!("'{}'", escaped.replace('\'', "'\\''")) }
}

/// The manifest of a crate that is a model.
pub(crate) fn cargo_toml(identifier: &str) -> String {
    let name = identifier.replace('_', "-");
    format!(
        "[package]\nname = \"{name}-model\"\ndescription = \"A compiled model\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         license = \"MIT OR Apache-2.0\"\npublish = false\n\n[dependencies]\naoti-runtime = \"{}\"\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// The crate's build script: the commands of the Makefile, which cannot have blanks in names of folders.
fn build_script(vendored: &Vendored) -> String {
    let mut objects = String::new();
    for VendoredObject { name, arguments, .. } in &vendored.objects {
        let _ = writeln!(objects, "    ({name:?}, &{arguments:?}),");
    }
    BUILD_SCRIPT
        .replace("{objects}", objects.trim_end())
        .replace("{library}", &vendored.library)
        .replace("{compiler}", compiler(vendored))
}

/// The compiler that the arguments are for.
fn compiler(vendored: &Vendored) -> &'static str {
    if vendored.family == "clang" { "clang++" } else { "g++" }
}

const BUILD_SCRIPT: &str = r#"//! Compiles the model's library with a C++ compiler: the variables `CXX_<target>`, `CXX`, `AR_<target>` and `AR` name the tools.

use std::path::Path;
use std::process::Command;

/// Objects, each with what the compiler is told.
const OBJECTS: &[(&str, &[&str])] = &[
{objects}
];
const LIBRARY: &str = "{library}";

fn main() {
    println!("cargo::rerun-if-changed=generated");
    let (cxx, ar) = (tool("CXX", "{compiler}"), tool("AR", "ar"));
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let out = Path::new(&out);
    for (name, arguments) in OBJECTS {
        run(Command::new(&cxx).args(*arguments).arg("-o").arg(out.join(name)).current_dir("generated"));
    }
    // Whatever an earlier version left would stay in it.
    let _ = std::fs::remove_file(out.join(LIBRARY));
    run(Command::new(&ar).args(["rcsD", LIBRARY]).args(OBJECTS.iter().map(|(name, _)| name)).current_dir(out));
    println!("cargo::rustc-link-search=native={}", out.display());
}

fn tool(variable: &str, default: &str) -> String {
    let target = std::env::var("TARGET").expect("cargo sets it").replace('-', "_");
    let names = [format!("{variable}_{target}"), variable.to_owned()];
    names.iter().for_each(|name| println!("cargo::rerun-if-env-changed={name}"));
    names.iter().find_map(|name| std::env::var(name).ok()).unwrap_or_else(|| default.to_owned())
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(status.success(), "{command:?} failed");
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_make_and_the_shell() {
        assert_eq!(quoted("-DNAME=a.b"), "-DNAME=a.b");
        assert_eq!(quoted("-DNAME=\"a b\""), "'-DNAME=\"a b\"'");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $$HOME'");
    }
}
