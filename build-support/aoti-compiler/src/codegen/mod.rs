//! Prints planned models as source text. The only part of the compiler that knows C++ and Rust text.

mod api;
pub mod bindings;
pub mod bundle;
pub mod bundle_text;
mod c_family;
pub(crate) mod cpp;
mod docs;
mod foreign;
pub mod functions;
pub mod gpu;
pub mod harness;
pub mod header;
pub(crate) mod headers;
pub mod interface;
mod library;
mod merging;
pub mod prepare;
mod run;

pub use cpp::external::prototypes;
pub use library::{OneProgram, Request, generate};

use crate::names;
use crate::runplan::RunPlan;
use crate::schedule::{FunctionId, Schedule};
use bundle::{SourceFile, WeightsBlob};
use cranelift_entity::PrimaryMap;
use functions::{Function, Functions};
use headers::Header;
use std::collections::BTreeSet;

/// Code of more than this much goes to several translation units.
const WHOLE_WEIGHT: usize = 160;
/// The most that one of several has: each unit compiles again what it needs of templates, and every level has as many units.
const UNIT_WEIGHT: usize = 240;

/// The part of kernels' names that tells levels apart and, in a model of a package, all models: by a digest of their own
/// text and what it includes. It says nothing of the package, so that caches serve all.
fn own_tag(tag: &str, kernels: &[SourceFile], identifier: &str, symbol: &str) -> String {
    if identifier == symbol {
        return tag.to_owned();
    }
    let mut all = kernels.to_vec();
    all.extend(headers::all(true, false));
    format!("{tag}_{}", &digest(&all, &WeightsBlob::default())[..names::DIGITS])
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
    (run, functions): (&RunPlan, &Functions),
    identifier: &str,
    stem: &str,
) -> Vec<SourceFile> {
    let total: usize = functions.all.values().map(|function| function.text.weight).sum();
    let prologue = "#define AOTI_JOIN_(a, b) a##_##b\n#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)\n\
                    #define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)\n\nusing namespace aoti;\n\n";
    let title = foreign::comment(&format!("Kernels of the model `{identifier}`, written by cargo-aoti."));
    let scratch = &schedule.memory.scratch;
    let run_text = run::run_functions(run, functions, scratch, identifier);
    let exchanges = !run.exchanges().is_empty();
    let ranks = if exchanges { "#include \"aoti/collective.h\"\n" } else { "" };
    if total <= WHOLE_WEIGHT {
        let all: Vec<&Function> = functions.all.values().collect();
        // Inlined, all kernels of a model would share one frame, and their setting up would be mixed.
        let kernels = functions.definitions(&all, "static AOTI_NOINLINE ");
        let text =
            format!("{title}{ranks}{}{prologue}{}{kernels}{run_text}", includes(&all), externals(&all));
        return vec![SourceFile { name: format!("{stem}.cpp"), text }];
    }
    let space = format!("namespace AOTI_JOIN(aoti_{identifier}, AOTI_LEVEL_NS)");
    let include = format!("#include {}\n", foreign::literal(&format!("{stem}.h")));
    let mut files = vec![SourceFile {
        name: format!("{stem}.h"),
        text: format!(
            "{title}#pragma once\n\n#include \"aoti/run.h\"\n\n{prologue}{space} {{\n{}}}\n",
            functions.declarations()
        ),
    }];
    for (number, part) in parts(&functions.all, total).into_iter().enumerate() {
        let kernels = functions.definitions(&part, "");
        files.push(SourceFile {
            name: format!("{stem}_{number}.cpp"),
            text: format!(
                "{title}{}{include}\n{}{space} {{\n\n{kernels}}}\n",
                includes(&part),
                externals(&part)
            ),
        });
    }
    let asks_for_units = scratch.iter().any(|scratch| scratch.units.is_some());
    let units = if asks_for_units { "#include \"aoti/matrix_units.h\"\n" } else { "" };
    files.push(SourceFile {
        name: format!("run_{stem}.cpp"),
        text: format!("{title}{units}{ranks}{include}\nusing {space};\n\n{run_text}"),
    });
    files
}

/// Splits kernels into parts of about equal weight. Kernels that need the same headers stay together as far as that goes: what they
/// have in common of a template is then compiled once, and not once in each part. Those that call one function are in one part.
fn parts(functions: &PrimaryMap<FunctionId, Function>, total: usize) -> Vec<Vec<&Function>> {
    let goal = total.div_ceil(total.div_ceil(UNIT_WEIGHT).max(2));
    let mut ordered: Vec<&Function> = functions.values().collect();
    ordered.sort_by(|a, b| a.text.headers.cmp(&b.text.headers).then(a.merged.cmp(&b.merged)));
    let weigh = |kernels: &[&Function]| kernels.iter().map(|function| function.text.weight).sum::<usize>();
    let mut parts: Vec<Vec<&Function>> = vec![vec![]];
    let mut weight = 0;
    for alike in ordered.chunk_by(|a, b| a.text.headers == b.text.headers) {
        // Of many that are alike several parts are made, as even as they can be.
        let all = weigh(alike);
        let pieces = ((all + goal / 2) / goal).max(1);
        for piece in pieces_of(alike, all.div_ceil(pieces)) {
            let own = weigh(piece);
            if weight > 0 && weight + own / 2 > goal {
                parts.push(vec![]);
                weight = 0;
            }
            weight += own;
            parts.last_mut().expect("never empty").extend(piece);
        }
    }
    parts
}

/// Consecutive kernels of about this weight.
fn pieces_of<'f, 'a>(kernels: &'f [&'a Function], goal: usize) -> Vec<&'f [&'a Function]> {
    let (mut pieces, mut first, mut weight) = (Vec::new(), 0, 0);
    for (position, function) in kernels.iter().enumerate() {
        weight += function.text.weight;
        let goes_on = |next: &&Function| next.merged.is_some() && next.merged == function.merged;
        let ends = !kernels.get(position + 1).is_some_and(goes_on);
        if (weight >= goal && ends) || position + 1 == kernels.len() {
            pieces.push(&kernels[first..=position]);
            (first, weight) = (position + 1, 0);
        }
    }
    pieces
}

/// Declarations of the functions of the user's project that some kernels call, each once.
fn externals(functions: &[&Function]) -> String {
    let called: BTreeSet<&String> =
        functions.iter().filter_map(|function| function.text.external.as_ref()).collect();
    let mut text: String = called.iter().map(|declaration| format!("extern \"C\" {declaration}")).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
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
