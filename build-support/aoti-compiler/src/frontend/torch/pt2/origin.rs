//! Where in the user's program a call comes from, out of the metadata that the export keeps.
//!
//! Paths are cut to file names: the same model exported on two machines gives the same text.

use super::schema::Node;
use crate::frontend::stack_trace::source;
use crate::graph::Origin;

/// The place of a node, for diagnostics and comments.
pub(super) fn origin(node: &Node) -> Origin {
    let target = target(&node.target);
    let name = node.name.as_deref().unwrap_or_default();
    let node_text = if name.is_empty() { target.to_owned() } else { format!("{target} of {name}") };
    Origin {
        node: node_text,
        source: node.metadata.stack_trace.as_deref().map(source).unwrap_or_default(),
        module: node.metadata.nn_module_stack.as_deref().map(module).unwrap_or_default(),
    }
}

/// The operator's name without the prefix that every registered operator has.
pub(super) fn target(target: &str) -> &str {
    target.strip_prefix("torch.ops.").unwrap_or(target)
}

/// The path of the innermost module: entries are `key,path,class`, joined by `;`.
fn module(stack: &str) -> String {
    stack
        .rsplit(';')
        .find_map(|entry| entry.split(',').nth(1))
        .map(|path| path.trim_start_matches("L['self'].").to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn innermost_module_is_chosen() {
        assert_eq!(module("L__self__,,a.M;L__self___layers_0_mlp,layers.0.mlp,a.Mlp"), "layers.0.mlp");
        assert_eq!(module(""), "");
    }
}
