//! Makes the program that runs a built model in a process of its own, for the target of the session. Owns which tools
//! make it; starts neither them nor it.

use std::path::Path;

use aoti_compiler::codegen::bundle::SourceFile;
use aoti_compiler::codegen::harness;
use aoti_toolchain::{
    CompileJob, FileContent, Goal, Input, InputError, Language, LinkJob, Linking, NoEvents, ObjectFormat,
};

use crate::artefacts::Built;
use crate::error::Error;
use crate::session::Session;

const PROGRAM: &str = "harness";

impl Session {
    /// Makes the program that runs a model, built as a static library with embedded weights, at a path. How it is called
    /// stands at the head of its source.
    ///
    /// # Errors
    /// [`Error::Tool`].
    pub fn harness(&self, built: &Built, linking: Linking, path: &Path) -> Result<(), Error> {
        let (toolchain, mode) = (self.toolchain()?, &self.settings.mode);
        let label = |part: &str| format!("{}: {part}", built.name);
        let object = |part: &str, source: SourceFile, headers: Vec<Input>| {
            let job = CompileJob {
                label: label(part),
                language: Language::C,
                source: Input::text(&source.name, &source.text),
                headers,
                level: None,
                goal: Goal::Speed,
                defines: Vec::new(),
                extra: Vec::new(),
                output: format!("{part}.o"),
            };
            Ok::<_, Error>(self.executor.run_one(&toolchain.compile(job, mode)?, &NoEvents)?)
        };
        let interface = harness::interface();
        let headers = vec![Input::text(&interface.name, &interface.text)];
        // The first is the same for every model, and so compiled once.
        let program = object("harness", harness::program(), headers)?;
        let entry = object("entry", harness::entry(&built.symbol), Vec::new())?;
        let failed = |source: InputError| aoti_toolchain::Error::Input { label: label(PROGRAM), source };
        let mut objects =
            vec![program.as_input("harness.o").map_err(failed)?, entry.as_input("entry.o").map_err(failed)?];
        if let Some(library) = built.library() {
            let content = FileContent::with_digest(&library.path, &library.digest).map_err(failed)?;
            objects.push(Input::file("model.a", content));
        }
        // Older C libraries of Linux keep threads apart; elsewhere there are no others, or none at all.
        let has_library = self.target.platform().format == ObjectFormat::Elf;
        let threads = has_library.then(|| "-lpthread".to_owned());
        let job = LinkJob {
            label: label(PROGRAM),
            objects,
            exports: Vec::new(),
            extra: threads.into_iter().collect(),
            output: self.target.platform().executable(PROGRAM),
        };
        let linked = self.executor.run_one(&toolchain.link_executable(job, linking, mode), &NoEvents)?;
        Ok(linked.first().copy_to(path)?)
    }
}

#[cfg(test)]
mod tests;
