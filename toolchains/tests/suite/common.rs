//! What the tests share: real toolchains with a reason when absent, a recorder of events, small sources.

use std::path::Path;
use std::sync::{Arc, Mutex};

use aoti_toolchain::{
    Action, ArchiveJob, AssembleJob, CompileJob, Environment, Event, Events, Executor, Goal, Input, Language,
    LinkJob, LocalStore, Mode, Outputs, Requirements, Target, Toolchain, Toolchains, embed_assembly,
};

/// The real toolchains among these names. A missing one is told, and fails if `AOTI_TEST_REQUIRE` lists it.
pub(crate) fn toolchains(names: &[&str], target: &Target) -> Vec<Toolchain> {
    let environment = Environment::capture();
    let known = Toolchains::new(&environment, None);
    let mut found = Vec::new();
    for name in names {
        let requirements =
            Requirements { toolchain: Some((*name).to_owned()), ..Requirements::cpu(target.clone()) };
        match known.resolve(&requirements) {
            Ok(toolchain) => found.push(toolchain),
            Err(error) if is_required(name) => {
                panic!("`{name}` is required: {error}")
            }
            Err(error) => println!("skipped `{name}`: {error}"),
        }
    }
    found
}

/// Whether `AOTI_TEST_REQUIRE` lists a tool.
pub(crate) fn is_required(tool: &str) -> bool {
    let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
    required.split(',').any(|required| required.trim() == tool)
}

/// gcc and clang for the host.
pub(crate) fn host_toolchains() -> Vec<Toolchain> {
    toolchains(&["gcc", "clang"], &Target::host())
}

/// Remembers events as short lines.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<String>>);

impl Log {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, prefix: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(prefix)).count()
    }
}

impl Events for Log {
    #[expect(clippy::wildcard_enum_match_arm, reason = "of another crate, which may add events")]
    fn event(&self, event: &Event<'_>) {
        let line = match event {
            Event::Started { label } => format!("started {label}"),
            Event::Finished { label, cached: true, .. } => format!("cached {label}"),
            Event::Finished { label, cached: false, .. } => format!("made {label}"),
            Event::Failed { label } => format!("failed {label}"),
            Event::Waiting { label } => format!("waiting {label}"),
            Event::Warning { message, .. } => format!("warning {message}"),
            other => panic!("unknown event {other:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

/// An executor whose temporary folders are in `temporary`.
pub(crate) fn executor(temporary: &Path, store: Option<LocalStore>) -> Executor {
    let environment = Environment::capture().with("TMPDIR", temporary);
    let store = store.map(|store| Arc::new(store) as Arc<dyn aoti_toolchain::ActionStore>);
    Executor::new(&environment, store, Some(2)).unwrap()
}

pub(crate) const HEADER: &str = "#pragma once\n#include <stdint.h>\n#include <stddef.h>\n#include <math.h>\n";

pub(crate) const KERNEL: &str = r#"
#include "aoti/base.h"
extern "C" const unsigned char weights[];
namespace { typedef float f32x8 __attribute__((vector_size(32))); }
extern "C" __attribute__((visibility("default"))) float aoti_sum(const float* x, int64_t n) {
  f32x8 sum = {};
  for (int64_t i = 0; i + 8 <= n; i += 8) {
    f32x8 v; __builtin_memcpy(&v, x + i, 32); sum += v * v;
  }
  float total = weights[0];
  for (int i = 0; i < 8; ++i) total += sum[i];
  return expf(total);
}
extern "C" int not_exported() { return __FILE__[0]; }
"#;

pub(crate) fn compile(toolchain: &Toolchain, level: Option<&str>, mode: &Mode) -> Action {
    let job = CompileJob {
        label: format!("kernel at {}", level.unwrap_or("baseline")),
        language: Language::Cpp,
        source: Input::text("kernel.cpp", KERNEL),
        headers: vec![Input::text("aoti/base.h", HEADER)],
        level: level.map(str::to_owned),
        goal: Goal::Speed,
        defines: vec!["AOTI_TEST=1".to_owned()],
        extra: Vec::new(),
        output: "kernel.o".to_owned(),
    };
    toolchain.compile(job, mode).unwrap()
}

pub(crate) fn weights(toolchain: &Toolchain, blob: Input) -> Action {
    let source =
        Input::text("weights.S", &embed_assembly(toolchain.target.platform().format, "weights", &blob.name));
    let (label, output) = ("weights".to_owned(), "weights.o".to_owned());
    toolchain.assemble(AssembleJob { label, source, files: vec![blob], output })
}

/// Kernel and weights, archived and linked: every file a library consists of, by name.
pub(crate) fn library(toolchain: &Toolchain, executor: &Executor, mode: &Mode) -> Vec<(String, Vec<u8>)> {
    let blob = Input::bytes("weights.bin", vec![1u8; 100]);
    let actions = [compile(toolchain, None, mode), weights(toolchain, blob)];
    let outputs = executor.run(&actions, &Log::default());
    let outputs: Vec<Outputs> = outputs.into_iter().map(|result| result.unwrap()).collect();
    let objects =
        || vec![outputs[0].as_input("kernel.o").unwrap(), outputs[1].as_input("weights.o").unwrap()];
    let archive = ArchiveJob { label: "archive".into(), objects: objects(), output: "libx.a".into() };
    let link = LinkJob {
        label: "link".to_owned(),
        objects: objects(),
        exports: vec!["aoti_sum".to_owned()],
        extra: Vec::new(),
        output: "libx.so".to_owned(),
    };
    let mut made = outputs.clone();
    made.push(executor.run_one(&toolchain.archive(archive).unwrap(), &Log::default()).unwrap());
    made.push(executor.run_one(&toolchain.link_shared(link, mode), &Log::default()).unwrap());
    made.iter().map(|made| (made.first().name.clone(), made.first().read().unwrap())).collect()
}
