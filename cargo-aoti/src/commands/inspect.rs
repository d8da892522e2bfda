//! `inspect`: a model's signature, and what it is compiled to.

mod choices;
mod ops;
mod page;

use std::path::PathBuf;
use std::sync::LazyLock;

use aoti_compiler::codegen::interface::{DimInterface, Interface, ValueInterface};
use aoti_compiler::compile::{self, Emit};
use aoti_compiler::names;
use aoti_compiler::schedule::Explanation;
use aoti_compiler::target::GpuTarget;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use serde_json::{Value, json};

use super::{Context, print, print_json};
use crate::arguments::{Output, Rounding};
use crate::chosen::Chosen;
use crate::dims;
use crate::failure::Failure;
use crate::project::shown;
use crate::table;

/// Shows a model's signature, its operators, or the text of any stage of its compilation
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A model of the project by name, a model file, or a case's folder
    #[arg(required_unless_present = "ops")]
    model: Option<PathBuf>,
    /// One of the model's programs, where it has several; it is compiled alone
    #[arg(long, value_name = "NAME", requires = "model")]
    program: Option<String>,
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
    /// Write a page about what the model is compiled to: kernels, values, memory over time, guards
    #[arg(long, value_name = "FILE", conflicts_with_all = ["emit", "ops", "explain_fusion", "choices"])]
    html: Option<PathBuf>,
    /// Size of an open dimension, for the bytes and operations of --html; by default the smallest
    #[arg(long, value_name = "NAME=SIZE", value_parser = dims::parse, requires = "html")]
    dim: Vec<(String, i64)>,
    /// Compile a library that takes weights by name
    #[arg(long)]
    named_weights: bool,
    #[command(flatten)]
    rounding: Rounding,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A stage that has a text, as clap reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stage(Emit);

static STAGES: LazyLock<Vec<Stage>> = LazyLock::new(|| Emit::all().map(Stage).collect());

impl ValueEnum for Stage {
    fn value_variants<'a>() -> &'a [Stage] {
        &STAGES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.description()))
    }
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let Some(path) = &arguments.model else {
        ops::all(arguments.output.is_json());
        return Ok(());
    };
    let chosen = Chosen::find(path, context)?.program(arguments.program.as_deref())?;
    dims::check(&chosen, &arguments.dim)?;
    let model = chosen.file()?;
    let output = arguments.output;
    if arguments.ops {
        return ops::of_model(&chosen, model.file, output);
    }
    let numerics = arguments.rounding.or(chosen.numerics());
    let levels = arguments.level.iter().cloned();
    let (gpus, levels) = levels.partition(|level| GpuTarget::named(level).is_some());
    let options = chosen.options(levels, gpus, numerics)?.with_named_weights(arguments.named_weights);
    if arguments.choices {
        return choices::run(model, chosen.path(), &options, output);
    }
    if arguments.explain_fusion {
        fusion(&compile::explain_fusion(model, &options)?, output);
        return Ok(());
    }
    let Some(Stage(stage)) = arguments.emit else {
        let bundle = compile::compile(model.clone(), &options)?;
        if let Some(path) = &arguments.html {
            let overview = compile::overview(model, &options, &arguments.dim)?;
            let mut json = signature_json(&bundle.interface);
            json["compiled"] = page::json(&overview);
            page::page(&bundle.interface, &overview).write(path, &json)?;
            context.terminal.status("Wrote", &shown(path, context));
        }
        if output.is_json() {
            print_json(&signature_json(&bundle.interface));
        } else {
            print(&table::fit(&signature(&bundle.interface), output.width()));
        }
        return Ok(());
    };
    let text = compile::emit(model, &options, stage)?;
    if output.is_json() {
        print_json(&json!({ "reason": "aoti-text", "stage": stage.name(), "text": text }));
    } else {
        print(&text);
    }
    Ok(())
}

/// Prints which kernels became one and which did not: those that did first, then by what it would have saved.
fn fusion(explanations: &[Explanation], output: Output) {
    let (mut fused, mut apart): (Vec<_>, Vec<_>) =
        explanations.iter().partition(|explanation| explanation.refusal.is_none());
    if output.is_json() {
        for explanation in explanations {
            let Explanation { producer, consumer, refusal, costs } = explanation;
            print_json(&json!({
                "reason": "aoti-fusion", "producer": producer, "consumer": consumer, "fused": refusal.is_none(),
                "refusal": refusal.as_ref().map(ToString::to_string),
                "cost_apart": costs.map(|costs| costs.apart), "cost_fused": costs.map(|costs| costs.fused),
            }));
        }
        return;
    }
    let gain = |explanation: &Explanation| explanation.costs.map_or(0.0, |costs| costs.apart - costs.fused);
    fused.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    apart.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    let mut text = format!("{} pairs of kernels became one, {} did not\n", fused.len(), apart.len());
    fused.iter().chain(&apart).for_each(|explanation| text.push_str(&format!("{explanation}\n")));
    print(&table::fit(&text, output.width()));
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
        "reason": "aoti-signature",
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
