//! The part of a library that makes weights from tensors by name: the tables that `include/aoti/prepare.h` works on, and
//! the constant graph as a second set of kernels.
//!
//! Its kernels are compiled once, for the lowest level: they run once for each set of weights.

use super::bundle::{TranslationUnit, WeightsBlob};
use super::c_family::expr::scalar;
use super::run;
use super::weights::{Layout, Packing, Placed};
use crate::loops::Program;
use crate::schedule::Schedule;
use crate::symbolic::RangeTable;
use crate::transform::{ConstantGraph, Elements};
use std::fmt::Write;

/// Stands where the level stands in the names of a model's kernels.
const TAG: &str = "prepare";
/// What the files with the kernels of the constant graph are called.
const STEM: &str = "constants";

/// The constant graph of a model, ready to be printed.
pub struct Preparation<'a> {
    /// Which weights there are, and where each constant comes from.
    pub constants: &'a ConstantGraph,
    /// The graph, scheduled.
    pub schedule: &'a Schedule,
    /// Ranges of its symbols, of which there are none.
    pub ranges: &'a RangeTable,
}

/// What the library holds for it.
pub(super) struct Printed {
    /// Definitions in the file with the model's table.
    pub(super) table: String,
    /// The kernels' files.
    pub(super) files: Vec<super::SourceFile>,
    /// What to compile.
    pub(super) units: Vec<TranslationUnit>,
    /// Bytes that the library holds.
    pub(super) fixed: WeightsBlob,
}

/// Prints it for a model whose constants were placed so.
pub(super) fn print(
    preparation: &Preparation<'_>,
    model: &Program,
    placed: &[Placed],
    identifier: &str,
    level: Option<&String>,
) -> Printed {
    let mut planned = run::plan(preparation.schedule, preparation.ranges);
    let mut layout = std::mem::take(&mut planned.layout);
    let pieces = pieces(preparation.constants, model, placed, &mut layout);
    let fixed = layout.finish();
    let table = table(preparation, &pieces, &fixed, identifier);
    let files = super::kernel_files(preparation.schedule, &planned, identifier, STEM);
    let units = files.iter().filter(|file| file.name.ends_with(".cpp")).map(|file| TranslationUnit {
        source: file.name.clone(),
        object: file.name.replace(".cpp", ".o"),
        level: level.cloned(),
        defines: vec![("AOTI_LEVEL_NS".to_owned(), TAG.to_owned())],
    });
    Printed { table, units: units.collect(), files, fixed }
}

/// The rows of the table of pieces. What no weight changes joins the library's own bytes.
fn pieces(constants: &ConstantGraph, model: &Program, placed: &[Placed], fixed: &mut Layout) -> Vec<String> {
    let row = |placed: &Placed| {
        let constant = &model.constants[placed.constant];
        let (source, position) = match constants.elements[&placed.constant] {
            Elements::Fixed => ("kFixed", fixed.place(placed.constant, constant, &placed.packing)),
            Elements::Input(input) => ("kGiven", input as u64),
            Elements::Output(output) => ("kComputed", output as u64),
        };
        let (form, numbers) = match placed.packing {
            Packing::Plain => ("kPlain", vec![]),
            Packing::Product { offset, row_stride, col_stride, k, n } => {
                ("kProduct", vec![offset, row_stride, col_stride, k, n])
            }
            Packing::Conv { groups, channels, k } => ("kConv", vec![groups, channels, k]),
            Packing::ConvTransposed { groups, in_channels, rows } => {
                ("kConvTransposed", vec![groups, in_channels, rows])
            }
        };
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        format!(
            "{{{}, {}, {source}, {position}, {}, {form}, {{{}}}}}",
            placed.offset,
            placed.bytes,
            constant.dtype as u8,
            numbers.join(", ")
        )
    };
    placed.iter().map(row).collect()
}

/// Definitions of `prepare_bytes` and `prepare_weights`.
fn table(preparation: &Preparation<'_>, pieces: &[String], fixed: &WeightsBlob, identifier: &str) -> String {
    let Preparation { constants, schedule, .. } = preparation;
    let program = &schedule.program;
    let mut inputs = vec![String::new(); constants.graph.inputs.len()];
    for (position, weight) in constants.weights.iter().enumerate() {
        if let Some(input) = weight.input {
            inputs[input] = position.to_string();
        }
    }
    let (mut outputs, mut output_bytes) = (Vec::new(), 0u64);
    for buffer in &program.outputs {
        outputs.push(output_bytes.to_string());
        output_bytes = (output_bytes + run::fixed_bytes(program, *buffer)).next_multiple_of(64);
    }
    let sites: Vec<String> = program.sites.iter().map(|site| super::api::quoted(site)).collect();
    let mut out = format!(
        "extern \"C\" int32_t aoti_{identifier}_run_{TAG}(const Run &, int64_t *);\n\
         extern \"C\" int64_t aoti_{identifier}_scratch_{TAG}(const int64_t *, int64_t);\n"
    );
    if fixed.bytes > 0 {
        let _ = writeln!(out, "extern \"C\" const char aoti_{identifier}_fixed[];");
    }
    let mut list = |ty: &str, name: &'static str, items: &[String]| {
        if items.is_empty() {
            return "nullptr";
        }
        let _ = writeln!(out, "static const {ty} {name}[] = {{\n    {}}};", items.join(",\n    "));
        name
    };
    let inputs_table = list("int32_t", "prepared_inputs", &inputs);
    let outputs_table = list("int64_t", "prepared_outputs", &outputs);
    let pieces_table = list("Piece", "pieces", pieces);
    let sites_table = list("char *const", "prepared_sites", &sites);
    let constants_table = if constants.weights.is_empty() { "nullptr" } else { "constants" };
    let fixed_bytes = if fixed.bytes > 0 { format!("aoti_{identifier}_fixed") } else { "nullptr".to_owned() };
    let _ = write!(
        out,
        "static const Preparation preparation = {{{constants_table}, {}, {inputs_table}, {}, {outputs_table}, {}, {pieces_table}, {},\n\
         \x20                                       info.weights_bytes, {output_bytes}, align({}), {fixed_bytes},\n\
         \x20                                       aoti_{identifier}_run_{TAG}, aoti_{identifier}_scratch_{TAG}, {sites_table}}};\n\n\
         static int64_t prepare_bytes(int32_t threads) {{ return prepare_bytes(preparation, threads); }}\n\n\
         static int32_t prepare_weights(const AotiNamedTensor *tensors, int32_t n_tensors, void *weights, int64_t weights_bytes,\n\
         \x20                              void *workspace, int64_t workspace_bytes, const AotiPrepareOptions *options,\n\
         \x20                              AotiError *error) {{\n\
         \x20 return prepare_weights(preparation, tensors, n_tensors, weights, weights_bytes, workspace, workspace_bytes, options,\n\
         \x20                        error);\n\
         }}\n\n",
        constants.weights.len(),
        inputs.len(),
        outputs.len(),
        pieces.len(),
        scalar(&schedule.memory.arena_bytes),
    );
    out
}
