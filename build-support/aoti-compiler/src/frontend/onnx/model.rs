//! A model file as a whole: what is in it, and how it becomes a graph.

use super::order;
use super::proto::tensor_proto::DataLocation;
use super::proto::tensor_shape_proto::dimension;
use super::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, type_proto,
};
use super::tensors::Beside;
use super::walk::{Onnx, Scope, canonical_domain, domain};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::frontend::torch::custom::Operators;
use crate::frontend::torch::rules::Context;
use crate::frontend::{Import, MinSize, ModelFile};
use crate::graph::{Builder, verify};
use crate::passes::bounds;
use bytes::Bytes;
use indexmap::IndexMap;
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};

/// The newest version of the format that is known.
const NEWEST_IR: i64 = 14;
/// The oldest operators of the standard that are known.
const OLDEST_OPSET: i64 = 1;
/// Nodes of a model, those of functions and bodies as often as they are written out: several times as many as the largest models
/// have. More take minutes and gigabytes.
pub(super) const MOST_NODES: usize = 1 << 18;

/// A file that was read, and what it refers to.
pub(super) struct Opened {
    model: ModelProto,
    /// Functions of the model by domain, name and overload.
    functions: IndexMap<(String, String, String), usize>,
    pub(super) beside: Beside,
}

impl Opened {
    /// Whether one of PyTorch's exporters wrote it, whose operators round where the standard does not.
    pub(super) fn is_by_torch(&self) -> bool {
        self.model.producer_name.as_deref() == Some("pytorch")
    }

    /// Whether ONNX Runtime's quantiser wrote it: results are those that it was calibrated by, where the standard says others.
    pub(super) fn is_quantized_by_runtime(&self) -> bool {
        self.model.producer_name.as_deref() == Some("onnx.quantize")
    }

    pub(super) fn open(file: Bytes, beside: Beside) -> Result<Opened, Diagnostic> {
        let mut model = decode(file)?;
        if model.ir_version() > NEWEST_IR {
            let message = format!("the file has version {} of the ONNX format", model.ir_version());
            return Err(
                Diagnostic::new(Code::Version, message).note(format!("up to {NEWEST_IR} are supported"))
            );
        }
        model.graph.iter_mut().for_each(order::sort_graph);
        model.functions.iter_mut().for_each(|function| order::sort(&mut function.node));
        let mut functions = IndexMap::new();
        for (position, function) in model.functions.iter().enumerate() {
            let key = (
                canonical_domain(function.domain()).to_owned(),
                function.name().to_owned(),
                function.overload().to_owned(),
            );
            functions.insert(key, position);
        }
        Ok(Opened { model, functions, beside })
    }

    /// The functions that the model defines.
    pub(super) fn functions(&self) -> impl Iterator<Item = &FunctionProto> {
        self.model.functions.iter()
    }

    pub(super) fn graph(&self) -> Result<&GraphProto, Diagnostic> {
        let graph = self.model.graph.as_ref();
        let graph = graph.ok_or_else(|| Diagnostic::new(Code::Schema, "the file has no graph"))?;
        match graph.node.len() {
            count if count > MOST_NODES => Err(Diagnostic::new(
                Code::Size,
                format!("the model has {count} nodes; at most {MOST_NODES} are compiled"),
            )
            .help("export what repeats as a `Loop` or a `Scan`, or the model in parts")),
            _ => Ok(graph),
        }
    }

    /// The function that a node calls, if it calls one.
    pub(super) fn function(&self, node: &NodeProto) -> Option<&FunctionProto> {
        if self.functions.is_empty() {
            return None;
        }
        let key = (domain(node).to_owned(), node.op_type().to_owned(), node.overload().to_owned());
        self.functions.get(&key).map(|position| &self.model.functions[*position])
    }

    fn versions(&self) -> IndexMap<String, i64> {
        let imports = self.model.opset_import.iter();
        let mut versions: IndexMap<String, i64> =
            imports.map(|import| (canonical_domain(import.domain()).to_owned(), import.version())).collect();
        // Files of the first version import nothing.
        versions.entry(String::new()).or_insert(OLDEST_OPSET);
        // Optimisers forget to import what they use.
        for extra in ["com.microsoft", "ai.onnx.ml"] {
            versions.entry(extra.to_owned()).or_insert(1);
        }
        versions
    }
}

pub(super) fn decode(file: Bytes) -> Result<ModelProto, Diagnostic> {
    ModelProto::decode(file).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.strip_prefix("failed to decode Protobuf message: ").unwrap_or(&reason);
        Diagnostic::new(Code::Archive, format!("the file is not a readable ONNX model: {reason}"))
            .help("check that the file is complete; `onnx.checker.check_model` says more")
    })
}

/// The names of the files beside the model's that its tensors are in.
///
/// # Errors
/// A file that is not readable, and names that leave its folder.
pub(super) fn external_files(file: Bytes) -> Result<BTreeSet<String>, Diagnostics> {
    let model = decode(file)?;
    let mut names = BTreeSet::new();
    if let Some(graph) = &model.graph {
        files_of_graph(graph, &mut names);
    }
    for node in model.functions.iter().flat_map(|function| &function.node) {
        node.attribute.iter().for_each(|attribute| files_of_attribute(attribute, &mut names));
    }
    let leaves = |name: &&String| {
        let mut parts = std::path::Path::new(name.as_str()).components();
        name.is_empty()
            || !parts
                .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir))
    };
    let outside: Vec<Diagnostic> = names
        .iter()
        .filter(leaves)
        .map(|name| {
            Diagnostic::new(Code::Weights, format!("tensors are in `{name}`, outside of the model's folder"))
        })
        .collect();
    if outside.is_empty() { Ok(names) } else { Err(Diagnostics(outside)) }
}

fn files_of_graph(graph: &GraphProto, names: &mut BTreeSet<String>) {
    let sparse = graph.sparse_initializer.iter().flat_map(|own| own.values.iter().chain(&own.indices));
    graph.initializer.iter().chain(sparse).for_each(|tensor| file_of(tensor, names));
    let attributes = graph.node.iter().flat_map(|node| &node.attribute);
    attributes.for_each(|attribute| files_of_attribute(attribute, names));
}

fn files_of_attribute(attribute: &AttributeProto, names: &mut BTreeSet<String>) {
    attribute.t.iter().chain(&attribute.tensors).for_each(|tensor| file_of(tensor, names));
    attribute.g.iter().chain(&attribute.graphs).for_each(|graph| files_of_graph(graph, names));
}

fn file_of(tensor: &TensorProto, names: &mut BTreeSet<String>) {
    if tensor.data_location() == DataLocation::External {
        let locations = tensor.external_data.iter().filter(|entry| entry.key() == "location");
        names.extend(locations.map(|entry| entry.value().to_owned()));
    }
}

/// The sizes of a tensor's type; `None` for those that are not fixed.
pub(super) fn stated_sizes(info: &ValueInfoProto) -> Option<Vec<Option<i64>>> {
    let Some(type_proto::Value::TensorType(tensor)) = &info.r#type.as_ref()?.value else { return None };
    let size = |value: &Option<dimension::Value>| match value {
        Some(dimension::Value::DimValue(size)) if *size >= 0 => Some(*size),
        Some(dimension::Value::DimValue(_) | dimension::Value::DimParam(_)) | None => None,
    };
    Some(tensor.shape.as_ref()?.dim.iter().map(|dim| size(&dim.value)).collect())
}

/// Reads a model for sizes from `min` on. Beside its file are those that [`external_files`] names.
pub(super) fn import(
    min: MinSize,
    name: &str,
    file: &ModelFile,
    operators: &Operators,
) -> Result<Import, Diagnostics> {
    let opened = Opened::open(file.file.clone(), file.beside.clone())?;
    let graph = opened.graph()?;
    let mut onnx = Onnx {
        cx: Context::new(Builder::new(name)),
        opened: &opened,
        operators,
        scopes: vec![Scope::new()],
        versions: opened.versions(),
        narrow: BTreeMap::new(),
        stated: IndexMap::new(),
        types: IndexMap::new(),
        symbols: IndexMap::new(),
        findings: Vec::new(),
        unknown: IndexMap::new(),
        depth: 0,
        seen_nodes: 0,
    };
    let has_open_sizes = onnx.inputs(graph, &file.shapes, min);
    onnx.graph(graph);
    onnx.outputs(graph);
    onnx.finish(has_open_sizes, min)
}

impl Onnx<'_> {
    fn finish(mut self, has_open_sizes: bool, min: MinSize) -> Result<Import, Diagnostics> {
        let unknown = std::mem::take(&mut self.unknown);
        for (name, (count, origin)) in unknown {
            let calls = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
            let finding =
                Diagnostic::new(Code::Operator, format!("operator `{name}` is not supported ({calls})"));
            let finding = finding.at(&origin);
            self.findings.push(match super::ops::why_not(&name) {
                Some(reason) => finding.note(reason),
                None if super::custom::is_declarable(&name) => finding.help(format!(
                    "say what computes it in `[package.metadata.aoti.operators.\"{name}\"]`: `schema`, and `symbol` of a C \
                     function or `graph` of `.aoti` text"
                )),
                None => finding.help("`cargo aoti inspect --ops` lists the supported operators"),
            });
        }
        if !self.findings.is_empty() {
            return Err(Diagnostics(self.findings));
        }
        let defaults = self.cx.take_default_bounds();
        let graph = bounds::follow_or(self.cx.b.finish(), &defaults);
        verify(&graph)?;
        Ok(Import { graph, is_stated: !has_open_sizes || min == MinSize::Stated, asked: Vec::new() })
    }
}
