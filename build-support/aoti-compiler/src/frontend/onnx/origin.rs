//! Where in the user's program a node comes from: its name, and what exporters of PyTorch note beside it.

use super::proto::NodeProto;
use super::walk::domain;
use crate::frontend::stack_trace;
use crate::graph::Origin;

/// Where PyTorch's exporter keeps the lines of the user's program.
const STACK: &str = "pkg.torch.onnx.stack_trace";
/// Where it keeps the modules around a node, as a Python list that ends with the node itself.
const SCOPES: &str = "pkg.torch.onnx.name_scopes";

/// An operator's name with its domain, where that is not the standard's.
pub(super) fn qualified(node: &NodeProto) -> String {
    match domain(node) {
        "" => node.op_type().to_owned(),
        domain => format!("{domain}::{}", node.op_type()),
    }
}

/// The place of a node, for diagnostics and names of kernels.
pub(super) fn origin(node: &NodeProto) -> Origin {
    let noted = |key: &str| {
        let mut notes = node.metadata_props.iter();
        notes.find(|note| note.key() == key).map(|note| note.value())
    };
    // A node without a name is known by its first result.
    let name = [node.name(), node.output.first().map_or("", String::as_str)];
    let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
    let last = name.rsplit('/').next().unwrap_or(name);
    let module = match noted(SCOPES).and_then(innermost) {
        Some(module) => module,
        // The older exporter writes paths of modules into names: `/layer1/layer1.0/conv1/Conv`.
        None => {
            name.trim_start_matches('/').rsplit_once('/').map_or("", |(module, _)| module).replace('/', ".")
        }
    };
    Origin {
        node: format!("{} of {last}", qualified(node)),
        source: noted(STACK).map(stack_trace::source).unwrap_or_default(),
        module,
    }
}

/// The innermost module of `['', 'layers.0', 'layers.0.fc', 'linear_1']`.
fn innermost(scopes: &str) -> Option<String> {
    let list = scopes.trim().strip_prefix('[')?.strip_suffix(']')?;
    let names: Vec<&str> = list.split(',').map(|name| name.trim().trim_matches(['\'', '"'])).collect();
    let (_, modules) = names.split_last()?;
    Some((*modules.last()?).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::onnx::proto::StringStringEntryProto;

    fn node(name: &str, notes: &[(&str, &str)]) -> Origin {
        let entry = |(key, value): &(&str, &str)| StringStringEntryProto {
            key: Some((*key).to_owned()),
            value: Some((*value).to_owned()),
        };
        origin(&NodeProto {
            op_type: Some("MatMul".to_owned()),
            name: Some(name.to_owned()),
            metadata_props: notes.iter().map(entry).collect(),
            ..NodeProto::default()
        })
    }

    #[test]
    fn what_the_exporter_notes_is_the_place() {
        let trace = "File \"/home/me/net.py\", line 7, in forward\n    return self.fc(x)";
        let found = node("node_linear_1", &[(STACK, trace), (SCOPES, "['', 'b.0', 'b.0.fc', 'linear_1']")]);
        assert_eq!(found.node, "MatMul of node_linear_1");
        assert_eq!(found.source, "net.py:7 in forward: return self.fc(x)");
        assert_eq!(found.module, "b.0.fc");
    }

    #[test]
    fn names_may_be_paths_of_modules() {
        let found = node("/layer1/fc/MatMul_2", &[]);
        assert_eq!((found.node.as_str(), found.module.as_str()), ("MatMul of MatMul_2", "layer1.fc"));
        assert_eq!(node("x", &[(SCOPES, "what")]).module, "");
    }
}
