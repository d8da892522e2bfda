//! A model file as a case: with samples that lie beside it, else with random inputs and what the reference evaluator makes of
//! them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aoti_build::{LinkKind, Silent, Tf32};
use aoti_compiler::graph::{InputRole, OutputRole};
use aoti_runtime::{Device, DynTensor};
use aoti_toolchain::{TemporaryFolder, temporary_folder};

use super::{Arguments, child};
use crate::case::{Case, Format};
use crate::chosen::Chosen;
use crate::commands::{Context, run};
use crate::failure::Failure;
use crate::single;
use crate::tensors::file;

/// The case of a model, with the folder that its tensors are in.
pub(super) fn case(
    chosen: &Chosen,
    arguments: &Arguments,
    context: &Context,
) -> Result<(Case, TemporaryFolder), Failure> {
    let path = chosen.path();
    let format = Format::of(path).ok_or_else(|| {
        Failure::Usage(format!("`{}` is neither a model nor a folder of cases", path.display()))
    })?;
    let place = context.environment.temporary_directory();
    let folder = temporary_folder("case", &context.environment)
        .map_err(Failure::machine("make a folder in", &place))?;
    let path = fs_err::canonicalize(path).map_err(Failure::machine("read", path))?;
    let case = Case {
        name: chosen.model.name.clone(),
        folder: folder.path().to_owned(),
        format,
        set: None,
        file: Some(path.clone()),
        weights: chosen.model.weights_type,
    };
    let samples = path.with_extension("safetensors");
    if arguments.reproduce {
        return Ok((case, folder));
    }
    if samples.is_file() {
        stored(&samples, chosen, &case)?;
    } else if arguments.reference {
        let samples = samples.display();
        return Err(Failure::Usage(format!(
            "there is nothing to compare the interpreter with: no file `{samples}`"
        )));
    } else {
        made_up(chosen, &case, arguments, context)?;
    }
    Ok((case, folder))
}

/// Samples of a file: tensors `inputs.0`, `outputs.0` and so on, or with the names of inputs and outputs.
fn stored(samples: &Path, chosen: &Chosen, case: &Case) -> Result<(), Failure> {
    let graph = chosen.graph()?;
    let inputs = graph.inputs.iter().filter(|input| input.role == InputRole::User);
    let outputs = graph.outputs.iter().filter(|output| output.role == OutputRole::User);
    let inputs = inputs.map(|input| input.name.clone()).collect();
    let outputs = outputs.map(|output| output.name.clone()).collect();
    let tensors = file::read_named(samples)?;
    file::write(&case.inputs(), &part(samples, &tensors, "inputs", inputs)?)?;
    file::write(&case.outputs(), &part(samples, &tensors, "outputs", outputs)?)
}

/// The tensors whose keys begin so, in order.
fn part(
    samples: &Path,
    tensors: &[(String, DynTensor)],
    prefix: &str,
    names: Vec<String>,
) -> Result<Vec<DynTensor>, Failure> {
    let own = tensors.iter().filter_map(|(name, tensor)| {
        let rest = name.strip_prefix(prefix)?.strip_prefix('.')?;
        Some((rest.to_owned(), tensor.clone()))
    });
    let own: Vec<(String, DynTensor)> = own.collect();
    let by_number = own.iter().any(|(name, _)| name == "0");
    let wanted = if by_number { (0..names.len()).map(|index| index.to_string()).collect() } else { names };
    file::order(own, &wanted).map_err(|missing| {
        let samples = samples.display();
        Failure::User(format!(
            "`{samples}` has no tensor `{prefix}.{missing}`; samples are `inputs.0`, `outputs.0` and so on, or have the names \
             of the model's inputs and outputs"
        ))
    })
}

/// Random inputs, of the least sizes, with what the reference evaluator makes of them.
fn made_up(chosen: &Chosen, case: &Case, arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let session = single::session(context, true)?;
    let levels = vec!["native".to_owned()];
    let (numerics, model, path) = (Tf32::NONE.into(), &chosen.model, chosen.path());
    let built = single::build(&session, model, LinkKind::Dylib, Device::Cpu, levels, numerics, &Silent)?;
    let (_, info) = built.load()?;
    file::write(&case.inputs(), &run::inputs(&info, None, &[])?)?;
    let program = std::env::current_exe().map_err(|error| Failure::Machine(error.to_string()))?;
    let mut command = Command::new(program);
    command.arg("__run-case").arg("--inputs").arg(case.inputs()).arg("--outputs").arg(case.outputs());
    command.arg("--model").arg(path);
    let run = child::run(command, &case.folder, Duration::from_secs(arguments.timeout));
    run.map(drop).map_err(|message| {
        let path = path.display();
        Failure::User(format!("the reference evaluator does not run `{path}`: {message}"))
    })
}
