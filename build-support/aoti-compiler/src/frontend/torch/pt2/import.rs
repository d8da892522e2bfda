//! From the exported program as the file has it to [`Program`].
//!
//! Reads the parts in order and collects what is wrong or not understood; the import fails once, with all of it.

use super::archive::Archive;
use super::body::inputs_defined;
use super::constants::Payloads;
use super::expr::{Tree, parse};
use super::mutation::mutation;
use super::schema::{Argument, ExportedProgram, Graph, InputSpec, SymInt, SymIntArgument, VersionOnly};
use super::symbols::{Occurrence, Symbols};
use super::values::{of_json, parse_json};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::frontend::import::MinSize;
use crate::frontend::torch::aten::Program;
use crate::graph::{Origin, SymbolSource};
use bytes::Bytes;
use indexmap::IndexSet;
use std::collections::BTreeSet;

/// A program, and for which sizes it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramImport {
    /// The program.
    pub program: Program,
    /// Whether all sizes have the minimum that the file states.
    pub is_stated: bool,
}

/// Reads a `.pt2` archive for sizes from `min` on. Tensors share `file`; `name` becomes the program's name. `states` are qualified
/// names of what counts as mutated even if it is only read.
pub fn import(
    min: MinSize,
    name: &str,
    file: Bytes,
    states: &BTreeSet<String>,
) -> Result<ProgramImport, Diagnostics> {
    let archive = Archive::open(&file)?;
    // Entries hold on to the file's bytes.
    drop(file);
    let model = archive.model_name()?;
    let exported = read_program(&archive, &model)?;
    let payloads = Payloads::read(&archive, &model)?;
    let graph = &exported.graph_module.graph;
    let specs = &exported.graph_module.signature.input_specs;
    let mutation = mutation(graph, specs, &exported.graph_module.signature.output_specs, states);
    let places = occurrences(graph, specs, &mutation.names);
    let mut importer = Importer {
        symbols: Symbols::new(exported.range_constraints.clone(), min, &places),
        findings: Vec::new(),
        depth: 0,
    };
    let mut program = importer.body(name, graph, inputs_defined(graph, specs));
    importer.inputs(&mut program, specs, &payloads);
    importer.unstated(&mut program, &mutation);
    importer.outputs(&mut program, &exported.graph_module);
    importer.guards(&exported.guards_code, &mut program);
    importer.narrow_ranges(&program);
    let is_stated = importer.symbols.are_stated();
    Ok(ProgramImport { program: importer.finish(program)?, is_stated })
}

fn read_program(archive: &Archive, model: &str) -> Result<ExportedProgram, Diagnostic> {
    let path = format!("models/{model}.json");
    let bytes = archive.get(&path).expect("the model's name was found by this entry");
    let json = parse_json(bytes, &path)?;
    let version: VersionOnly = of_json(VersionOnly::part_of(&json), &path)?;
    if version.schema_version.major != 8 {
        let (major, minor) = (version.schema_version.major, version.schema_version.minor);
        let torch = version.torch_version.unwrap_or_else(|| "an unknown version".to_owned());
        return Err(Diagnostic::new(
            Code::Version,
            format!("the program has schema version {major}.{minor}, written by torch {torch}"),
        )
        .note("schema version 8 is supported")
        .help("export the model again with a current torch"));
    }
    of_json(json, &path)
}

/// Where sizes of user inputs are symbolic. Positions count what is passed when the program runs: the user's
/// tensors and integers, and state.
fn occurrences(graph: &Graph, specs: &[InputSpec], mutated: &IndexSet<String>) -> Vec<Occurrence> {
    let mut places = Vec::new();
    let mut position = 0;
    for spec in specs {
        match spec {
            InputSpec::User(spec) => {
                if let Argument::Tensor(tensor) = &spec.arg {
                    let sizes = graph.tensor_values.get(&tensor.name).map(|meta| meta.sizes.as_slice());
                    for (axis, size) in sizes.unwrap_or_default().iter().enumerate() {
                        let source = SymbolSource::InputDim { input: position, axis };
                        places.extend(occurrence(&tensor.name, size, source));
                    }
                    position += 1;
                } else if let Argument::SymInt(SymIntArgument::Name(name)) = &spec.arg {
                    let source = SymbolSource::InputValue { input: position };
                    let value = graph.sym_int_values.get(name);
                    places.extend(value.and_then(|value| occurrence(name, value, source)));
                    position += 1;
                }
            }
            InputSpec::Parameter(spec) => position += usize::from(mutated.contains(&spec.parameter_name)),
            InputSpec::Buffer(spec) => position += usize::from(mutated.contains(&spec.buffer_name)),
            InputSpec::TensorConstant(spec) => {
                position += usize::from(mutated.contains(&spec.tensor_constant_name));
            }
            InputSpec::CustomObj(_)
            | InputSpec::Token(_)
            | InputSpec::Constant(_)
            | InputSpec::Unknown(_) => {}
        }
    }
    places
}

fn occurrence(input: &str, size: &SymInt, source: SymbolSource) -> Option<Occurrence> {
    let SymInt::Expr(expr) = size else { return None };
    // A malformed expression is reported where the size itself is read.
    let tree: Tree = parse(&expr.expr_str).ok()?;
    Some(Occurrence { input: input.to_owned(), source, tree })
}
/// The state of one import.
pub(super) struct Importer {
    pub(super) symbols: Symbols,
    pub(super) findings: Vec<Diagnostic>,
    /// How many graphs enclose the one that is read.
    pub(super) depth: usize,
}
impl Importer {
    /// Records a finding, once.
    pub(super) fn report(&mut self, code: Code, message: impl Into<String>, at: &Origin) {
        let finding = Diagnostic::new(code, message);
        let finding = if *at == Origin::default() { finding } else { finding.at(at) };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn finish(mut self, mut program: Program) -> Result<Program, Diagnostics> {
        let (infos, underived) = self.symbols.finish();
        for name in underived {
            let message = format!("the size symbol `{name}` is not determined by the size of any input");
            self.findings.push(Diagnostic::new(Code::Graph, message));
        }
        if !self.findings.is_empty() {
            return Err(Diagnostics(self.findings));
        }
        program.symbols = infos;
        Ok(program)
    }
}
