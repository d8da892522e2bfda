//! Plans the actions that a toolchain is for: compile, assemble, archive, link. Pure: makes values, runs nothing.

use std::collections::BTreeSet;
use std::fmt;

use crate::action::{Action, Input, Tool};
use crate::definition::Level;
use crate::error::Error;
use crate::resolve::Toolchain;
use crate::target::ObjectFormat;

/// How code is compiled and linked. All objects of one library are made in one mode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mode {
    /// With debug information and little optimisation.
    pub debug: bool,
    /// What is checked while the code runs.
    pub sanitize: BTreeSet<Sanitizer>,
}

/// A kind of mistake that compilers can make code look for while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sanitizer {
    /// Memory that is not there, or not there any more.
    Address,
    /// Operations without a defined result.
    Undefined,
    /// Data races.
    Thread,
}

impl Sanitizer {
    /// The name that `-fsanitize` takes.
    pub fn as_str(self) -> &'static str {
        match self {
            Sanitizer::Address => "address",
            Sanitizer::Undefined => "undefined",
            Sanitizer::Thread => "thread",
        }
    }
}

impl fmt::Display for Sanitizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a translation unit is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// C++17.
    #[default]
    Cpp,
    /// C11.
    C,
}

/// Where the libraries of an executable come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linking {
    /// The machine that it runs on.
    Dynamic,
    /// The executable itself.
    Static,
}

/// What a compiler should make of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Fast code.
    Speed,
    /// Small code.
    Size,
}

/// One translation unit.
#[derive(Debug, Clone)]
pub struct CompileJob {
    /// For people.
    pub label: String,
    /// What it is written in.
    pub language: Language,
    /// Its file.
    pub source: Input,
    /// The headers that it may include, by the names it includes them by.
    pub headers: Vec<Input>,
    /// Instruction-set level; the target's baseline if absent.
    pub level: Option<String>,
    /// What its code should be, unless it is for debugging.
    pub goal: Goal,
    /// Macros, `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// Arguments after all others.
    pub extra: Vec<String>,
    /// Name of the object.
    pub output: String,
}

/// One assembly file, preprocessed.
#[derive(Debug, Clone)]
pub struct AssembleJob {
    /// For people.
    pub label: String,
    /// The `.S` file.
    pub source: Input,
    /// The files that it includes with `.incbin`.
    pub files: Vec<Input>,
    /// Name of the object.
    pub output: String,
}

/// One static library. Members stand in the order given.
#[derive(Debug, Clone)]
pub struct ArchiveJob {
    /// For people.
    pub label: String,
    /// The members.
    pub objects: Vec<Input>,
    /// Name of the archive.
    pub output: String,
}

/// One shared library or executable.
#[derive(Debug, Clone)]
pub struct LinkJob {
    /// For people.
    pub label: String,
    /// Objects and archives in link order.
    pub objects: Vec<Input>,
    /// For a shared library, the only symbols that it exports.
    pub exports: Vec<String>,
    /// Further arguments, such as `-ldl`.
    pub extra: Vec<String>,
    /// Name of the file; for a shared library also the name by which programs ask for it.
    pub output: String,
}

/// Stands in arguments for the file that says what a library exports.
const EXPORTS: &str = "{exports}";

impl Toolchain {
    /// Plans a compile.
    ///
    /// # Errors
    /// [`Error::UnknownLevel`].
    pub fn compile(&self, job: CompileJob, mode: &Mode) -> Result<Action, Error> {
        let given = &self.definition.arguments;
        let level = job.level.as_deref().map(|name| self.level(name)).transpose()?;
        let mut arguments = match job.language {
            Language::Cpp => given.compile.clone(),
            Language::C => given.compile_c.clone(),
        };
        arguments.extend(match job.goal {
            _ if mode.debug => given.debug.clone(),
            Goal::Speed => given.optimize.clone(),
            Goal::Size => given.optimize_size.clone().unwrap_or_else(|| given.optimize.clone()),
        });
        if !mode.sanitize.is_empty() {
            arguments.extend(sanitized(&given.sanitize, mode));
        }
        arguments.extend(level.iter().flat_map(|level| level.arguments.iter().cloned()));
        arguments.extend(job.defines.iter().map(|define| format!("-D{define}")));
        arguments.extend(job.extra);
        arguments.extend(given.last.iter().cloned());
        arguments.extend(["-c".to_owned(), job.source.name.clone(), "-o".to_owned(), job.output.clone()]);
        let mut action = self.action(job.label, self.compiler_tool(), arguments, job.output);
        action.host_only = level.is_some_and(|level| level.host_only);
        // What another machine would make of `native` is for that machine.
        action.distributable = !action.host_only;
        action.inputs.push(job.source);
        action.inputs.extend(job.headers);
        Ok(action)
    }

    /// Plans an assembly.
    pub fn assemble(&self, job: AssembleJob) -> Action {
        let mut arguments = self.definition.arguments.assemble.clone();
        arguments.extend(["-c".to_owned(), job.source.name.clone(), "-o".to_owned(), job.output.clone()]);
        let mut action = self.action(job.label, self.compiler_tool(), arguments, job.output);
        action.inputs.push(job.source);
        action.inputs.extend(job.files);
        action
    }

    /// Plans a static library without times or owners in it.
    ///
    /// # Errors
    /// [`Error::NoArchiver`].
    pub fn archive(&self, job: ArchiveJob) -> Result<Action, Error> {
        let no_archiver = || Error::NoArchiver { toolchain: self.definition.name.clone() };
        let tool = self.archiver.clone().ok_or_else(no_archiver)?;
        let mut arguments = vec!["rcsD".to_owned(), job.output.clone()];
        arguments.extend(job.objects.iter().map(|object| object.name.clone()));
        let mut action = self.action(job.label, tool, arguments, job.output);
        action.inputs = job.objects;
        Ok(action)
    }

    /// Plans a shared library that exports only what it should.
    pub fn link_shared(&self, job: LinkJob, mode: &Mode) -> Action {
        let (file, text) = exports(self.target.platform().format, &job.exports);
        let name = file_name(&job.output);
        let mut arguments = self.definition.arguments.link_shared.clone();
        let takes_file = arguments.iter().any(|argument| argument.contains(EXPORTS));
        for argument in &mut arguments {
            *argument = argument.replace("{name}", name).replace(EXPORTS, file);
        }
        let mut action = self.link(job, mode, arguments);
        if takes_file {
            action.inputs.push(Input::text(file, &text));
        }
        action
    }

    /// Plans an executable; `exports` of the job is not used.
    pub fn link_executable(&self, job: LinkJob, linking: Linking, mode: &Mode) -> Action {
        let mut arguments = self.definition.arguments.link_executable.clone();
        if linking == Linking::Static {
            arguments.extend(self.definition.arguments.link_static.iter().cloned());
        }
        self.link(job, mode, arguments)
    }

    fn link(&self, job: LinkJob, mode: &Mode, mut arguments: Vec<String>) -> Action {
        let given = &self.definition.arguments;
        arguments.extend(given.link.iter().cloned());
        if !mode.debug && mode.sanitize.is_empty() {
            arguments.extend(given.strip.iter().cloned());
        }
        arguments.extend(["-o".to_owned(), job.output.clone()]);
        arguments.extend(job.objects.iter().map(|object| object.name.clone()));
        arguments.extend(job.extra);
        // Libraries come after what needs them.
        if mode.sanitize.is_empty() {
            arguments.extend(given.link_strict.iter().cloned());
        } else {
            arguments.extend(sanitized(&given.link_sanitize, mode));
        }
        arguments.extend(given.link_last.iter().cloned());
        let mut action = self.action(job.label, self.compiler_tool(), arguments, job.output);
        action.inputs = job.objects;
        action
    }

    fn level(&self, name: &str) -> Result<&Level, Error> {
        self.definition.level_for(name, &self.target, self.is_native).ok_or_else(|| Error::UnknownLevel {
            toolchain: self.definition.name.clone(),
            level: name.to_owned(),
            target: self.target.to_string(),
            known: self.definition.level_names(&self.target, self.is_native).join(", "),
        })
    }

    fn compiler_tool(&self) -> Tool {
        Tool { launch: self.compiler.launch.clone(), identity: self.compiler.identity.clone() }
    }

    fn action(&self, label: String, tool: Tool, arguments: Vec<String>, output: String) -> Action {
        let target = self.target.clone();
        let (inputs, outputs) = (Vec::new(), vec![output]);
        Action { label, tool, target, inputs, arguments, outputs, host_only: false, distributable: false }
    }
}

fn sanitized(arguments: &[String], mode: &Mode) -> Vec<String> {
    let names = mode.sanitize.iter().map(|sanitizer| sanitizer.as_str()).collect::<Vec<_>>().join(",");
    arguments.iter().map(|argument| argument.replace("{sanitizers}", &names)).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name and the text of the file that tells a linker which symbols a library exports, and that it exports no others.
fn exports(format: ObjectFormat, exports: &[String]) -> (&'static str, String) {
    let lines = |prefix: &str| exports.iter().map(|name| format!("{prefix}{name}\n")).collect::<String>();
    match format {
        ObjectFormat::Elf => {
            let globals = exports.iter().map(|name| format!(" {name};")).collect::<String>();
            let globals = if exports.is_empty() { String::new() } else { format!("  global:{globals}\n") };
            ("exports.map", format!("{{\n{globals}  local: *;\n}};\n"))
        }
        ObjectFormat::Coff => ("exports.def", format!("EXPORTS\n{}", lines("  "))),
        ObjectFormat::MachO | ObjectFormat::Wasm => ("exports.txt", lines(format.symbol_prefix())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_linker_is_told_what_to_export() {
        let one = ["api".to_owned()];
        let text = |format| exports(format, &one).1;
        assert_eq!(text(ObjectFormat::Elf), "{\n  global: api;\n  local: *;\n};\n");
        assert_eq!(exports(ObjectFormat::Elf, &[]).1, "{\n  local: *;\n};\n");
        assert_eq!(text(ObjectFormat::Coff), "EXPORTS\n  api\n");
        assert_eq!(text(ObjectFormat::MachO), "_api\n");
        assert_eq!(text(ObjectFormat::Wasm), "api\n");
    }
}
