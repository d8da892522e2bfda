//! `inspect`: a model's signature, and what it is compiled to.

mod choices;

use std::path::PathBuf;

use aoti_compiler::codegen::interface::{DimInterface, Interface, ValueInterface};
use aoti_compiler::compile::{self, Emit, Options};
use aoti_compiler::diagnostic::Diagnostics;
use aoti_compiler::frontend::torch::custom::Operators;
use aoti_compiler::frontend::torch::rules::Registry;
use aoti_compiler::frontend::{self, Support, onnx};
use aoti_compiler::names;
use aoti_compiler::target::GpuTarget;
use bytes::Bytes;
use clap::{Args, ValueEnum};

use serde_json::{Value, json};

use super::{Context, print, print_json};
use crate::arguments::{Numerics, Output, Rounding};
use crate::case;
use crate::failure::Failure;
use crate::memory;
use crate::single;

/// Shows a model's signature, its operators, or the text of any stage of its compilation
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A model file, or a case's folder
    #[arg(required_unless_present = "ops")]
    model: Option<PathBuf>,
    /// Print the text of one stage
    #[arg(long, value_enum, value_name = "STAGE")]
    emit: Option<Stage>,
    /// Explain fusion decisions and their estimated costs
    #[arg(long)]
    explain_fusion: bool,
    /// Show the implementations of each kernel with estimated and measured costs, and why one is selected
    #[arg(long, conflicts_with_all = ["emit", "ops", "explain_fusion"])]
    choices: bool,
    /// List the operators of the model; without a model, all that are supported
    #[arg(long)]
    ops: bool,
    /// Instruction-set levels and GPU architectures to compile for, comma-separated, such as `x86-64-v3` or `sm_90a`
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', default_value = "x86-64-v3")]
    level: Vec<String>,
    /// Compile a library that takes weights by name
    #[arg(long)]
    named_weights: bool,
    #[command(flatten)]
    rounding: Rounding,
    #[command(flatten)]
    output: Output,
}

/// A stage that has a text.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The program as it was exported, in calls of PyTorch's operators
    Aten,
    /// The core graph after all passes
    Graph,
    /// Kernels as loops, one for each value that is stored
    Loops,
    /// Kernels after fusion
    Schedule,
    /// What a run does: kernels, addresses and checks in their order
    Run,
    /// The kernels' C++
    Cpp,
    /// The kernels' CUDA C++
    Cuda,
    /// The kernels' HIP
    Hip,
    /// The C++ that checks arguments and runs the kernels
    Wrapper,
    /// The Rust module
    Bindings,
    /// The C header
    Header,
    /// Every generated file, what is compiled from them, and digests of the weights
    Bundle,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let Some(path) = &arguments.model else {
        all_operators(arguments.output.is_json());
        return Ok(());
    };
    let (path, _) = case::model_file(path)?;
    let model = memory::model(&path)?;
    let name = single::name_of(&path);
    let refuse = |diagnostics: Diagnostics| Failure::User(diagnostics.to_string());
    if arguments.output.is_json() && (arguments.ops || arguments.emit.is_some() || arguments.explain_fusion) {
        let message = "`--format json` is for a model's signature and for the list of operators";
        return Err(Failure::Usage(message.to_owned()));
    }
    if arguments.ops {
        return operators_of(model.file, context);
    }
    let Numerics { tf32, libraries } = arguments.rounding.or(single::numerics_of(&path)?);
    let levels = arguments.level.iter().cloned();
    let (gpus, levels) = levels.partition(|level| GpuTarget::named(level).is_some());
    let options = Options {
        name,
        package: String::new(),
        levels,
        gpus,
        embed_weights: true,
        named_weights: arguments.named_weights,
        tf32,
        libraries,
        names: Default::default(),
        records: Default::default(),
        rates: None,
        operators: single::read_operators(&context.environment)?,
    };
    if arguments.choices {
        return choices::run(model, &path, &options, arguments.output.is_json());
    }
    if arguments.explain_fusion {
        for explanation in compile::explain_fusion(model, &options).map_err(refuse)? {
            print(&format!("{explanation}\n"));
        }
        return Ok(());
    }
    let Some(stage) = arguments.emit else {
        let bundle = compile::compile(model, &options).map_err(refuse)?;
        if arguments.output.is_json() {
            print_json(&signature_json(&bundle.interface));
        } else {
            print(&signature(&bundle.interface));
        }
        return Ok(());
    };
    let emit = match stage {
        Stage::Aten => Emit::Aten,
        Stage::Graph => Emit::Graph,
        Stage::Loops => Emit::Loops,
        Stage::Schedule => Emit::Schedule,
        Stage::Run => Emit::Run,
        Stage::Cpp => Emit::Cpp,
        Stage::Wrapper => Emit::Wrapper,
        Stage::Bindings => Emit::Bindings,
        Stage::Header => Emit::Header,
        Stage::Bundle => Emit::Bundle,
        Stage::Cuda => Emit::Cuda,
        Stage::Hip => Emit::Hip,
    };
    print(&compile::emit(model, &options, emit).map_err(refuse)?);
    Ok(())
}

/// Prints the operators of a model.
fn operators_of(file: Bytes, context: &Context) -> Result<(), Failure> {
    let refuse = |diagnostics: Diagnostics| Failure::User(diagnostics.to_string());
    let declared = Operators::new(&single::read_operators(&context.environment)?).map_err(refuse)?;
    let all = frontend::operators_of(file, &declared).map_err(refuse)?;
    let lines = all.iter().map(|(name, (count, support))| operator_line(name, *count, *support));
    print(&lines.collect::<String>());
    Ok(())
}

/// How an operator is marked that the project brings.
const PROJECTS_OWN: &str = "  (the project's own)";

/// All operators that are supported, those of ONNX with their domains.
fn all_operators(is_json: bool) {
    let registry = Registry::new();
    let named = |(domain, name): (&str, &str)| {
        format!("{}::{name}", if domain.is_empty() { "ai.onnx" } else { domain })
    };
    let of_onnx: Vec<String> = onnx::supported().into_iter().map(named).collect();
    if is_json {
        let names: Vec<&str> = registry.names().collect();
        print_json(&json!({ "reason": "operators", "operators": names, "onnx": of_onnx }));
    } else {
        let own = registry.names().fold(String::new(), |text, name| text + name + "\n");
        print(&of_onnx.iter().fold(own, |text, name| text + name + "\n"));
    }
}

/// What `--ops` says of an operator.
fn operator_line(name: &str, count: usize, support: Support) -> String {
    let mark = match support {
        Support::Rule => String::new(),
        Support::Function => "  (a function of the model)".to_owned(),
        Support::Project => PROJECTS_OWN.to_owned(),
        Support::Refused(reason) => format!("  (not supported: {reason})"),
        Support::None => "  (not supported)".to_owned(),
    };
    format!("{count:6}  {name}{mark}\n")
}

fn signature(interface: &Interface) -> String {
    let identifier = names::identifier(&interface.name);
    let module =
        if identifier == interface.name { String::new() } else { format!(" (module `{identifier}`)") };
    let mut text = format!("model {}{module}\n", interface.name);
    let groups = [("input", &interface.inputs), ("output", &interface.outputs), ("state", &interface.states)];
    for (kind, values) in groups {
        for value in values {
            text.push_str(&format!("{kind:>8} {}\n", describe(value)));
        }
    }
    let expanded = match interface.expanded_bytes {
        0 => String::new(),
        bytes => format!(", from which a model makes {bytes} bytes"),
    };
    text.push_str(&format!(
        "{:>8} {} bytes in {} constants{expanded}; state {} bytes\n",
        "weights",
        interface.weights_bytes,
        interface.constants.len(),
        interface.state_bytes
    ));
    text
}

fn signature_json(interface: &Interface) -> Value {
    let dim = |dim: &DimInterface| json!({ "size": dim.expression, "min": dim.min, "max": dim.max });
    let values = |values: &[ValueInterface]| -> Vec<Value> {
        let value = |value: &ValueInterface| {
            let dims: Vec<Value> = value.dims.iter().map(dim).collect();
            json!({ "name": value.name, "dtype": value.element.name(), "dims": dims })
        };
        values.iter().map(value).collect()
    };
    json!({
        "reason": "signature",
        "name": interface.name,
        "identifier": names::identifier(&interface.name),
        "inputs": values(&interface.inputs),
        "outputs": values(&interface.outputs),
        "states": values(&interface.states),
        "weights_bytes": interface.weights_bytes,
        "expanded_bytes": interface.expanded_bytes,
        "state_bytes": interface.state_bytes,
        "constants": interface.constants.len(),
    })
}

fn describe(value: &ValueInterface) -> String {
    let size = |dim: &DimInterface| match &dim.expression {
        None => dim.min.to_string(),
        Some(text) if dim.max == i64::MAX => format!("{text} >= {}", dim.min),
        Some(text) => format!("{text} in {}..={}", dim.min, dim.max),
    };
    let sizes: Vec<String> = value.dims.iter().map(size).collect();
    format!("{}: {}[{}]", value.name, value.element.name(), sizes.join(", "))
}
