//! Prints planned models as source text. The only part of the compiler that knows C++ and Rust text.

mod api;
pub mod bindings;
pub mod bundle;
mod c_family;
mod cpp;
mod docs;
mod foreign;
pub mod functions;
pub mod gpu;
pub mod harness;
pub mod header;
mod headers;
pub mod interface;
pub mod names;
pub mod pack;
pub mod prepare;
pub mod run;
mod weights;

use crate::schedule::Schedule;
use crate::symbolic::RangeTable;
use bundle::{SourceBundle, SourceFile, TranslationUnit, WeightsBlob};
use cranelift_entity::PrimaryMap;
use functions::{Function, FunctionId, Functions};
use headers::Header;
use interface::Interface;
use run::Planned;
use std::collections::BTreeSet;

/// Code of more than this much goes to translation units of its own.
const UNIT_WEIGHT: usize = 160;

/// What code generation needs to know besides the program.
pub struct Request<'a> {
    /// The package that the model belongs to; empty for none.
    pub package: &'a str,
    /// CPU levels, lowest first.
    pub levels: &'a [String],
    /// Whether the weights are linked into the library.
    pub embed_weights: bool,
    /// How weights are made from tensors by name, if the library does that.
    pub preparation: Option<&'a prepare::Preparation<'a>>,
}

/// Prints a schedule.
pub fn generate(schedule: &Schedule, ranges: &RangeTable, request: &Request) -> SourceBundle {
    let program = &schedule.program;
    let identifier = names::identifier(&program.name);
    let symbol = names::symbol(&program.name, request.package);
    let mut planned = run::plan(schedule, ranges);
    let preparation = request.preparation.map(|preparation| {
        let (placed, level) = (planned.layout.placed(), request.levels.first());
        prepare::print(preparation, program, placed, (&identifier, &symbol), level)
    });
    let named = request.preparation.map(|preparation| preparation.constants);
    let mut interface = Interface::of(program, &planned, ranges, named);
    let blob = std::mem::take(&mut planned.layout).finish();
    interface.weights_bytes = blob.bytes;
    let kernels = kernel_files(schedule, &planned, &identifier, "kernels");
    let tag = |level: &String| own_tag(&api::level_tag(level), &kernels, &identifier, &symbol);
    let tags: Vec<String> = request.levels.iter().map(tag).collect();
    let mut api = api::Api {
        program,
        ranges,
        run: &planned.run,
        interface: &interface,
        identifier: &identifier,
        symbol: &symbol,
        levels: request.levels,
        tags: &tags,
        embedded: request.embed_weights,
        preparation: preparation.as_ref(),
        library: String::new(),
    };
    let mut units = units(&kernels, request.levels, &tags);
    let mut files = vec![SourceFile { name: "model.cpp".to_owned(), text: api.print() }];
    files.extend(kernels);
    if let Some(printed) = &preparation {
        files.extend_from_slice(&printed.files);
        units.extend_from_slice(&printed.units);
    }
    files.extend(headers::all());
    let fixed = preparation.as_ref().map(|printed| printed.fixed.clone()).unwrap_or_default();
    // The table tells what the library is: all that is compiled into it, this very file too, as it is without that.
    api.library = digest(&files, &fixed);
    files[0].text = api.print();
    let library = api.library;
    SourceBundle {
        interface,
        identifier,
        symbol,
        library,
        files,
        units,
        kernels: planned.functions.all.len(),
        weights: blob,
        fixed,
    }
}

/// The part of kernels' names that tells levels apart and, in a model of a package, all models: by a digest of their own
/// text and what it includes. It says nothing of the package, so that caches serve all.
fn own_tag(tag: &str, kernels: &[SourceFile], identifier: &str, symbol: &str) -> String {
    if identifier == symbol {
        return tag.to_owned();
    }
    let mut all = kernels.to_vec();
    all.extend(headers::all());
    format!("{tag}_{}", &digest(&all, &WeightsBlob::default())[..names::DIGITS])
}

/// The translation units: the kernels at each level, then the tables.
fn units(files: &[SourceFile], levels: &[String], tags: &[String]) -> Vec<TranslationUnit> {
    let mut units = Vec::new();
    for (level, tag) in levels.iter().zip(tags) {
        for file in files.iter().filter(|file| file.name.ends_with(".cpp")) {
            let stem = file.name.trim_end_matches(".cpp");
            units.push(TranslationUnit {
                source: file.name.clone(),
                object: format!("{stem}.{}.o", api::level_tag(level)),
                level: Some(level.clone()),
                defines: vec![("AOTI_LEVEL_NS".to_owned(), tag.clone())],
            });
        }
    }
    units.push(TranslationUnit {
        source: "model.cpp".to_owned(),
        object: "model.o".to_owned(),
        level: None,
        defines: vec![],
    });
    units
}

/// A digest of names and texts, and of bytes that are embedded beside them.
fn digest(files: &[SourceFile], embedded: &WeightsBlob) -> String {
    let mut hasher = blake3::Hasher::new();
    let texts = files.iter().flat_map(|file| [file.name.as_bytes(), file.text.as_bytes()]);
    for part in texts.chain(embedded.segments.iter().map(|(_, bytes)| bytes.as_ref())) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex().to_string()
}

/// The files of the kernels, called after `stem`: one with everything where that is little, else parts that compile in
/// parallel.
fn kernel_files(
    schedule: &Schedule,
    planned: &Planned<Functions>,
    identifier: &str,
    stem: &str,
) -> Vec<SourceFile> {
    let total: usize = planned.functions.all.values().map(|function| function.text.weight).sum();
    let prologue = "#define AOTI_JOIN_(a, b) a##_##b\n#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)\n\
                    #define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)\n\nusing namespace aoti;\n\n";
    let title = foreign::comment(&format!("Kernels of the model `{identifier}`, written by cargo-aoti."));
    let run = run::run_functions(&planned.run, &planned.functions, &schedule.memory.scratch, identifier);
    if total <= UNIT_WEIGHT {
        let all: Vec<&Function> = planned.functions.all.values().collect();
        let kernels: String = all.iter().map(|function| function.definition("static ")).collect();
        let text = format!("{title}{}{prologue}{kernels}{run}", includes(&all));
        return vec![SourceFile { name: format!("{stem}.cpp"), text }];
    }
    let space = format!("namespace AOTI_JOIN(aoti_{identifier}, AOTI_LEVEL_NS)");
    let include = format!("#include {}\n", foreign::literal(&format!("{stem}.h")));
    let mut files = vec![SourceFile {
        name: format!("{stem}.h"),
        text: format!(
            "{title}#pragma once\n\n#include \"aoti/run.h\"\n\n{prologue}{space} {{\n{}}}\n",
            planned.functions.declarations()
        ),
    }];
    for (number, part) in parts(&planned.functions.all, total).into_iter().enumerate() {
        let kernels: String = part.iter().map(|function| function.definition("")).collect();
        files.push(SourceFile {
            name: format!("{stem}_{number}.cpp"),
            text: format!("{title}{}{include}\n{space} {{\n\n{kernels}}}\n", includes(&part)),
        });
    }
    files.push(SourceFile {
        name: format!("run_{stem}.cpp"),
        text: format!("{title}{}{include}\nusing {space};\n\n{run}", includes(&[])),
    });
    files
}

/// Splits kernels, in order, into parts of about equal weight.
fn parts(functions: &PrimaryMap<FunctionId, Function>, total: usize) -> Vec<Vec<&Function>> {
    let count = total.div_ceil(UNIT_WEIGHT);
    let goal = total.div_ceil(count);
    let mut parts: Vec<Vec<&Function>> = vec![vec![]];
    let mut weight = 0;
    for function in functions.values() {
        if weight >= goal {
            parts.push(vec![]);
            weight = 0;
        }
        weight += function.text.weight;
        parts.last_mut().expect("never empty").push(function);
    }
    parts
}

/// Includes of the headers that some kernels need.
fn includes(functions: &[&Function]) -> String {
    let wanted: BTreeSet<Header> =
        functions.iter().flat_map(|function| function.text.headers.iter().copied()).collect();
    let names = std::iter::once("nest.h").chain(wanted.into_iter().map(Header::file));
    let mut text: String = names.map(|name| format!("#include \"aoti/{name}\"\n")).collect();
    text.push('\n');
    text
}
