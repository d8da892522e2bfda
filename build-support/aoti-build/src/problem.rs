//! What is wrong with a metadata table, said to the person who wrote it.

use std::fmt;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use aoti_toolchain::Device;

use crate::locate::Location;

/// The kind of a problem; its number never changes meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Code {
    /// A key that is not known.
    UnknownKey = 101,
    /// A value that cannot be.
    Value = 102,
    /// Two models of one name.
    Duplicate = 103,
    /// A model's file is not there, or there are no models.
    Missing = 104,
    /// A device or level that this version does not build for.
    Device = 105,
    /// `Cargo.toml` cannot be read.
    Unreadable = 106,
    /// `aoti.lock` cannot be read or does not fit.
    Lock = 107,
}

impl Code {
    /// Every code.
    pub const ALL: &'static [Code] = &[
        Code::UnknownKey,
        Code::Value,
        Code::Duplicate,
        Code::Missing,
        Code::Device,
        Code::Unreadable,
        Code::Lock,
    ];

    /// One line: what the code is for.
    pub fn title(self) -> &'static str {
        match self {
            Code::UnknownKey => "an unknown key in the metadata table",
            Code::Value => "invalid value in the metadata table",
            Code::Duplicate => "two models have one name",
            Code::Missing => "a model file is missing",
            Code::Device => "a device or instruction-set level is not known",
            Code::Unreadable => "the package manifest cannot be read",
            Code::Lock => "the measured choices in `aoti.lock` cannot be used",
        }
    }

    /// The long text of `cargo aoti explain`.
    pub fn explanation(self) -> String {
        let devices = Device::ALL.map(|device| format!("`{}`", device.as_str()));
        self.text().replace("{devices}", &devices.join(", "))
    }

    /// The same with `{devices}` for the names of all devices.
    fn text(self) -> &'static str {
        match self {
            Code::UnknownKey => {
                "Cargo accepts anything under `[package.metadata]`, so a misspelt key would silently do nothing.\nThe keys are `devices`, {devices}, `allow-tf32`, `libraries`, `models`, `operators` and `toolchain`; for a model `path`, `programs`, `weights`,\n`named-weights`, `weights-type`, `link`, `cpu`, `allow-tf32`, `outputs`, `dims`, `shapes`,\n`sizes` and `test`; for a program `path`, `outputs` and `dims`; for an operator `schema`, `symbol`, `source`, `decides-sizes`\nand `graph`; for a toolchain `base`, `program`, `archiver`, `sysroot`, `flags`, `link-flags` and `targets`."
            }
            Code::Value => {
                "A value has the wrong type for its key, or is not one of the possible words: `weights` is `embed`, `sidecar` or\n`external`; `weights-type` is `own`, `int8`, `int4` or `bf16`; `link` is `static` or `dylib`; `named-weights`, `test` and `decides-sizes` are booleans;\n`allow-tf32` is a boolean or a table of those, `matmul` and `conv`; `libraries` lists `cublaslt`, `hipblaslt`, `openblas` and `onednn`; `dims` is a table of\nstrings; `sizes` is a list of tables of integers; `devices`, {devices}, `outputs`, `flags`, `link-flags` and `targets` are lists of strings; the\nother values are strings."
            }
            Code::Duplicate => {
                "A model's name becomes a Rust module and a symbol. Names that become the same identifier, such as `my-net`\nand `my_net`, or `models/net.pt2` and `models/net.aoti`, would collide. Give them names in\n`[package.metadata.aoti.models.<name>]`."
            }
            Code::Missing => {
                "The file that a model's `path` names does not exist. Paths are relative to the manifest with the table.\nWithout a table of models, every `models/*.pt2`, `*.onnx` and `*.aoti` of the package is a model."
            }
            Code::Device => {
                "`devices` lists some of {devices}; `cpu` lists instruction-set levels, which\n`cargo aoti doctor` shows. The message names the one that is unknown or not supported yet."
            }
            Code::Unreadable => "`Cargo.toml` does not exist, cannot be read, or is not valid TOML.",
            Code::Lock => {
                "`aoti.lock` contains the measurements of `cargo aoti tune`. It has merge conflict markers, has a newer version, or is\nnot valid TOML; the message says where. With `--locked`, it can also be that kernels of a tuned model have no matching\nrecord, because the model, the compiler or the templates have changed since; run `cargo aoti tune` again."
            }
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AOTI{:04}", *self as u16)
    }
}

/// One problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Its kind.
    pub code: Code,
    /// Lower case, no full stop.
    pub message: String,
    /// The file, and the key in it where there is one.
    pub place: String,
    /// The part of the file, where it is known.
    pub location: Option<Location>,
    /// What to do.
    pub help: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            return self.show(location, f);
        }
        write!(f, "error[{}]: {}\n  --> {}", self.code, self.message, self.place)?;
        if let Some(help) = &self.help {
            write!(f, "\n  = help: {help}")?;
        }
        Ok(())
    }
}

impl Problem {
    /// With the lines that it is about.
    fn show(&self, location: &Location, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, file) = (self.code.to_string(), location.file.display().to_string());
        let mark = AnnotationKind::Primary.span(location.range.clone());
        let snippet = Snippet::source(location.text.as_ref()).path(&file).annotation(mark);
        let group = Level::ERROR.primary_title(&self.message).id(&id).element(snippet);
        let group = match &self.help {
            Some(help) => group.element(Level::HELP.message(help)),
            None => group,
        };
        f.write_str(&Renderer::plain().render(&[group]))
    }

    /// On one line, with its place.
    pub fn line(&self) -> String {
        let place = match &self.location {
            Some(Location { file, line, column, .. }) => format!("{}:{line}:{column}", file.display()),
            None => self.place.clone(),
        };
        let help = self.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        format!("{place}: {}{help} [{}]", self.message, self.code)
    }
}

/// One or more problems.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The known word nearest to a given one, if one is near enough to have been meant: at most a third of its letters
/// inserted, left out, replaced or swapped (optimal string alignment).
pub fn suggest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given: Vec<char> = given.chars().take(64).collect();
    let near = |word: &'a str| {
        let letters: Vec<char> = word.chars().collect();
        let distance = distance(&given, &letters);
        (distance * 3 <= letters.len().max(given.len()).max(3)).then_some((distance, word))
    };
    known.into_iter().filter_map(near).min().map(|(_, word)| word)
}

fn distance(a: &[char], b: &[char]) -> usize {
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in table.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in table[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(table[i - 2][j - 2] + 1);
            }
            table[i][j] = best;
        }
    }
    table[a.len()][b.len()]
}
