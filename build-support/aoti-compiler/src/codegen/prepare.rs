//! The part of a library that makes weights from tensors by name: the tables that `include/aoti/prepare.h` works on, and
//! the constant graph as a second set of kernels.
//!
//! Its kernels are compiled once, for the lowest level: they run once for each set of weights.

use super::api::rows::table;
use super::bundle::{Goal, TranslationUnit, WeightsBlob};
use super::c_family::expr::scalar;
use super::foreign::literal;
use super::functions::Functions;
use crate::dtype::DType;
use crate::graph::{ConstantGraph, Elements};
use crate::loops::Program;
use crate::runplan;
use crate::runplan::weights::{Layout, Packing, Placed};
use crate::schedule::Schedule;
use crate::symbolic::RangeTable;
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

/// The entries of the model's tables that make weights.
pub(super) const ENTRIES: &str = "Prepare<preparation>::bytes, Prepare<preparation>::weights";

/// What the library holds for it.
pub(super) struct Printed {
    /// What other objects define.
    pub(super) declarations: String,
    /// Tables in the file with the model's, behind its info.
    pub(super) table: String,
    /// The kernels' files.
    pub(super) files: Vec<super::SourceFile>,
    /// What to compile.
    pub(super) units: Vec<TranslationUnit>,
    /// Bytes that the library holds.
    pub(super) fixed: WeightsBlob,
}

/// The pieces that weights are made of.
struct Pieces {
    /// Rows of their table.
    rows: Vec<String>,
    /// Whether some are `f64` in another form than the tensor's.
    packs_doubles: bool,
}

/// How objects refer to each other.
struct Names<'a> {
    identifier: &'a str,
    /// What stands for the model in symbols that are its own among all models.
    symbol: &'a str,
    /// What stands in the place of a level.
    tag: &'a str,
}

/// Prints it for a model whose programs, one for each kind of device, have their constants placed so.
pub(super) fn print(
    preparation: &Preparation<'_>,
    programs: &[&Program],
    placed: &[Placed],
    (identifier, symbol): (&str, &str),
    level: Option<&String>,
) -> Printed {
    let mut planned = runplan::plan(preparation.schedule, preparation.ranges);
    let mut layout = std::mem::take(&mut planned.layout);
    let pieces = Pieces {
        rows: pieces(preparation.constants, programs, placed, &mut layout),
        packs_doubles: placed.iter().any(|placed| {
            let dtype = programs[placed.program].constants[placed.constant].dtype;
            dtype == DType::F64 && placed.packing != Packing::Plain
        }),
    };
    let fixed = layout.finish();
    debug_assert!(planned.run.failures.is_empty(), "without inputs nothing is asserted");
    // `Prepare::weights` has no memory for any.
    assert!(planned.run.expansions.is_empty(), "convolutions of constants are of f64");
    let functions = Functions::of(preparation.schedule);
    let files = super::kernel_files(preparation.schedule, (&planned.run, &functions), identifier, STEM);
    let tag = super::own_tag(TAG, &files, identifier, symbol);
    let names = Names { identifier, symbol, tag: &tag };
    let (declarations, table) = tables(preparation, &pieces, &fixed, &names);
    let units = files.iter().filter(|file| file.name.ends_with(".cpp")).map(|file| TranslationUnit {
        source: file.name.clone(),
        object: file.name.replace(".cpp", ".o"),
        level: level.cloned(),
        defines: vec![("AOTI_LEVEL_NS".to_owned(), tag.clone())],
        goal: Goal::Speed,
    });
    Printed { declarations, table, units: units.collect(), files, fixed }
}

/// The rows of the table of pieces. What no weight changes joins the library's own bytes.
fn pieces(
    constants: &ConstantGraph,
    programs: &[&Program],
    placed: &[Placed],
    fixed: &mut Layout,
) -> Vec<String> {
    let row = |placed: &Placed| {
        let constant = &programs[placed.program].constants[placed.constant];
        let (source, position) = match constants.elements[&(placed.program, placed.constant)] {
            Elements::Fixed => ("kFixed", fixed.place(placed.constant, constant, &placed.packing)),
            Elements::Input(input) => ("kGiven", input as u64),
            Elements::Output(output) => ("kComputed", output as u64),
        };
        let (form, numbers) = match placed.packing {
            // What a run may replace has no groups.
            Packing::Plain | Packing::ProductGroups { .. } | Packing::GroupTiles(_) => ("kPlain", vec![]),
            Packing::Product { offset, row_stride, col_stride, k, n, narrow } => (
                if narrow { "kNarrowProduct" } else { "kProduct" },
                vec![offset, row_stride, col_stride, k, n],
            ),
            Packing::ProductWords { offset, row_stride, col_stride, k, n } => {
                ("kProductWords", vec![offset, row_stride, col_stride, k, n])
            }
            Packing::TapWords { groups, channels, in_channels, taps } => {
                ("kTapWords", vec![groups, channels, in_channels, taps])
            }
            Packing::Conv { groups, channels, k } => ("kConv", vec![groups, channels, k]),
            Packing::ConvTransposed { groups, in_channels, rows } => {
                ("kConvTransposed", vec![groups, in_channels, rows])
            }
            Packing::ByTap { channels, in_channels, taps } => ("kByTap", vec![channels, in_channels, taps]),
            Packing::TapPanels { groups, channels, in_channels, taps } => {
                ("kTapPanels", vec![groups, channels, in_channels, taps])
            }
        };
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        format!(
            "{{{}, {}, {source}, {position}, {}, {form}, {{{}}}}}",
            placed.offset,
            placed.bytes,
            constant.dtype.code(),
            numbers.join(", ")
        )
    };
    placed.iter().map(row).collect()
}

/// Declarations, and the definition of `preparation`.
fn tables(
    preparation: &Preparation<'_>,
    pieces: &Pieces,
    fixed: &WeightsBlob,
    names: &Names<'_>,
) -> (String, String) {
    let Names { identifier, symbol, tag } = names;
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
        output_bytes = (output_bytes + runplan::fixed_bytes(program, *buffer)).next_multiple_of(64);
    }
    let sites: Vec<String> = program.sites.iter().map(|site| literal(site.text())).collect();
    let mut declarations = format!(
        "extern \"C\" int32_t aoti_{identifier}_run_{tag}(const Run &);\n\
         extern \"C\" int64_t aoti_{identifier}_scratch_{tag}(const int64_t *, int64_t);\n"
    );
    let fixed = if fixed.bytes > 0 {
        let _ = writeln!(declarations, "extern \"C\" const char aoti_{symbol}_fixed[];");
        format!("aoti_{symbol}_fixed")
    } else {
        "nullptr".to_owned()
    };
    let mut out = String::new();
    let inputs_table = table(&mut out, "int32_t ", "prepared_inputs", &inputs);
    let outputs_table = table(&mut out, "int64_t ", "prepared_outputs", &outputs);
    let pieces_table = table(&mut out, "Piece ", "pieces", &pieces.rows);
    let sites = table(&mut out, "const char *", "prepared_sites", &sites);
    let _ = writeln!(
        out,
        "constexpr Preparation preparation = {{\n    &info, {inputs_table}, {}, {outputs_table}, {}, {pieces_table}, {}, {},\n    \
         {output_bytes}, {}, {fixed}, aoti_{identifier}_run_{tag}, aoti_{identifier}_scratch_{tag}, {sites},\n}};",
        inputs.len(),
        outputs.len(),
        pieces.rows.len(),
        pieces.packs_doubles,
        scalar(&schedule.memory.arena_bytes),
    );
    (declarations, out)
}
