//! One case: reads its files, takes the model through the stages and compares the outputs.

use crate::compare::compare;
use aoti_compiler::diagnostic::{Code, Diagnostics};
use aoti_compiler::dtype::DType;
use aoti_compiler::float8::Float8;
use aoti_compiler::frontend;
use aoti_compiler::graph::{self, Graph, InputRole, OutputRole};
use aoti_compiler::interpret::{Tensor, evaluate};
use bytes::Bytes;
use std::path::Path;

/// Where and why a case failed.
#[derive(Clone)]
pub(crate) struct Failure {
    /// `files`, `import`, `functionalize`, `verify`, `text`, `run`, `compare` or `panic`.
    pub(crate) stage: &'static str,
    /// For people.
    pub(crate) reason: String,
    /// Operators without a rule.
    pub(crate) unsupported: Vec<String>,
}

impl Failure {
    pub(crate) fn new(stage: &'static str, reason: impl ToString) -> Failure {
        Failure { stage, reason: reason.to_string(), unsupported: Vec::new() }
    }

    fn from_diagnostics(stage: &'static str, diagnostics: &Diagnostics) -> Failure {
        let unsupported = diagnostics.0.iter().filter(|finding| finding.code == Code::Operator);
        let name = |message: &str| message.split('`').nth(1).unwrap_or(message).to_owned();
        let unsupported: Vec<String> = unsupported.map(|finding| name(&finding.message)).collect();
        let others = diagnostics.0.iter().filter(|finding| finding.code != Code::Operator);
        let mut reasons: Vec<String> = others.map(ToString::to_string).collect();
        if !unsupported.is_empty() {
            reasons.push(format!("unsupported {}", unsupported.join(" ")));
        }
        Failure { stage, reason: reasons.join("\n"), unsupported }
    }
}

/// Runs the case in folder `path`; with `text` the graph also goes through its text form.
pub(crate) fn run(name: &str, path: &Path, text: bool) -> Result<(), Failure> {
    let files = |error: String| Failure::new("files", error);
    let inputs = read_tensors(&path.join("inputs.safetensors")).map_err(files)?;
    let expected = read_tensors(&path.join("outputs.safetensors")).map_err(files)?;
    let tolerances = tolerances(path);
    let model = std::fs::read(path.join("model.pt2")).map_err(|error| files(error.to_string()))?;
    let program = frontend::torch::program(name, Bytes::from(model))
        .map_err(|diagnostics| Failure::from_diagnostics("import", &diagnostics))?;
    let graph = frontend::torch::functionalize::functionalize(&program)
        .map_err(|diagnostics| Failure::from_diagnostics("functionalize", &diagnostics))?;
    graph::verify(&graph).map_err(|diagnostics| Failure::from_diagnostics("verify", &diagnostics))?;
    if text {
        round_trip(&graph)?;
    }
    let users = graph.inputs.iter().filter(|input| input.role == InputRole::User).count();
    // A case may hold numbers too that the exporter made part of the program; those come last or not at all.
    let inputs = if inputs.len() > users { &inputs[..users] } else { &inputs[..] };
    let results = evaluate(&graph, inputs).map_err(|error| Failure::new("run", error))?;
    let roles = graph.outputs.iter().map(|output| output.role);
    let results: Vec<Tensor> = results
        .into_iter()
        .zip(roles)
        .filter(|(_, role)| *role == OutputRole::User)
        .map(|(t, _)| t)
        .collect();
    if results.len() != expected.len() {
        let reason = format!("{} outputs, expected are {}", results.len(), expected.len());
        return Err(Failure::new("compare", reason));
    }
    for (index, (result, expected)) in results.iter().zip(&expected).enumerate() {
        let [atol, rtol] = tolerances(index);
        compare(result, expected, atol, rtol)
            .map_err(|reason| Failure::new("compare", format!("output {index}: {reason}")))?;
    }
    Ok(())
}

fn round_trip(graph: &Graph) -> Result<(), Failure> {
    let printed = graph::text::print(graph);
    let again = graph::text::parse(&printed)
        .map_err(|diagnostics| Failure::from_diagnostics("text", &diagnostics))?;
    if again == *graph {
        return Ok(());
    }
    let other = graph::text::print(&again);
    let difference = printed.lines().zip(other.lines()).find(|(a, b)| a != b);
    Err(Failure::new("text", format!("the graph does not come back: {difference:?}")))
}

/// The absolute and the relative tolerance of an output.
fn tolerances(path: &Path) -> impl Fn(usize) -> [f64; 2] {
    let text = std::fs::read_to_string(path.join("case.json")).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    // A number for all outputs, or one for each.
    let of = move |output: usize, key: &str| {
        let told = value.get(key)?;
        told.get(output).unwrap_or(told).as_f64()
    };
    move |output| [of(output, "atol").unwrap_or(1e-4), of(output, "rtol").unwrap_or(1e-3)]
}

/// Tensors of a file with keys "0", "1", ... in order.
fn read_tensors(path: &Path) -> Result<Vec<Tensor>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file = safetensors::SafeTensors::deserialize(&bytes).map_err(|error| error.to_string())?;
    (0..file.len())
        .map(|index| {
            let view = file.tensor(&index.to_string()).map_err(|error| error.to_string())?;
            let dtype = dtype(view.dtype()).ok_or_else(|| format!("tensor {index} is {:?}", view.dtype()))?;
            Tensor::new(dtype, view.shape().to_vec(), view.data().to_vec()).map_err(|error| error.to_string())
        })
        .collect()
}

fn dtype(dtype: safetensors::Dtype) -> Option<DType> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other crate's list may grow: what is not ours is not there"
    )]
    Some(match dtype {
        safetensors::Dtype::BOOL => DType::Bool,
        safetensors::Dtype::U8 => DType::U8,
        safetensors::Dtype::I8 => DType::I8,
        safetensors::Dtype::I16 => DType::I16,
        safetensors::Dtype::I32 => DType::I32,
        safetensors::Dtype::I64 => DType::I64,
        safetensors::Dtype::F16 => DType::F16,
        safetensors::Dtype::BF16 => DType::Bf16,
        safetensors::Dtype::F32 => DType::F32,
        safetensors::Dtype::F64 => DType::F64,
        safetensors::Dtype::U16 => DType::U16,
        safetensors::Dtype::U32 => DType::U32,
        safetensors::Dtype::U64 => DType::U64,
        safetensors::Dtype::F8_E4M3 => DType::F8(Float8::E4M3Fn),
        safetensors::Dtype::F8_E5M2 => DType::F8(Float8::E5M2),
        safetensors::Dtype::F8_E4M3FNUZ => DType::F8(Float8::E4M3Fnuz),
        safetensors::Dtype::F8_E5M2FNUZ => DType::F8(Float8::E5M2Fnuz),
        safetensors::Dtype::F8_E8M0 => DType::F8(Float8::E8M0Fnu),
        _ => return None,
    })
}
