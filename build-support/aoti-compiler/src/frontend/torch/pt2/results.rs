//! The users' names for the results of their programs: keys of dictionaries and fields of named tuples.
//!
//! The exported graph numbers its outputs; the tree that they are leaves of keeps the names. A tree that is not understood
//! gives none, which is no reason to refuse a program.

use super::schema::{GraphModule, NamedTuple};
use crate::from_json;
use crate::json::FromJson;
use indexmap::IndexMap;
use serde_json::Value;

/// One node of a tree. A leaf has no type.
struct Tree {
    kind: Option<String>,
    context: Option<String>,
    children_spec: Vec<Tree>,
}

from_json!(Tree { kind = "type", context } or_default { children_spec });

/// The names of so many outputs, in order.
pub(super) fn output_names(module: &GraphModule, count: usize) -> Vec<Option<String>> {
    let call = module.module_call_graph.first().and_then(|call| call.signature.as_ref());
    let tree = call
        .and_then(|signature| <(u64, Tree)>::from_json(serde_json::from_str(&signature.out_spec).ok()?).ok());
    let mut names = Vec::new();
    if let Some((_, tree)) = tree {
        leaves(&tree, &mut Vec::new(), &module.treespec_namedtuple_fields, &mut names);
    }
    if names.len() == count { names } else { vec![None; count] }
}

/// Collects the names of a tree's leaves. Positions in lists say something below a name only.
fn leaves(
    tree: &Tree,
    path: &mut Vec<String>,
    tuples: &IndexMap<String, NamedTuple>,
    names: &mut Vec<Option<String>>,
) {
    if tree.kind.is_none() {
        return names.push((!path.is_empty()).then(|| path.join(".")));
    }
    let keys = keys(tree, tuples);
    for (index, child) in tree.children_spec.iter().enumerate() {
        let depth = path.len();
        match keys.get(index) {
            Some(key) => path.push(key.clone()),
            None if depth > 0 => path.push(index.to_string()),
            None => {}
        }
        leaves(child, path, tuples, names);
        path.truncate(depth);
    }
}

/// What a node calls its children, if it names all of them.
fn keys(tree: &Tree, tuples: &IndexMap<String, NamedTuple>) -> Vec<String> {
    let context = tree.context.as_deref().unwrap_or_default();
    let keys = match tuples.get(context) {
        Some(tuple) => tuple.field_names.clone(),
        None => match serde_json::from_str(context) {
            Ok(Value::Array(keys)) => keys.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Ok(_) | Err(_) => Vec::new(),
        },
    };
    if keys.len() == tree.children_spec.len() { keys } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: &str = r#"{"type": null, "context": null, "children_spec": []}"#;

    fn names(tree: &str) -> Vec<Option<String>> {
        let (tree, mut names) = (Tree::from_json(serde_json::from_str(tree).unwrap()).unwrap(), Vec::new());
        let point = NamedTuple { field_names: vec!["mean".to_owned(), "scale".to_owned()] };
        leaves(&tree, &mut Vec::new(), &IndexMap::from([("demo.Point".to_owned(), point)]), &mut names);
        names
    }

    #[test]
    fn keys_and_fields_name_what_is_below_them() {
        let dict = format!(
            r#"{{"type": "builtins.dict", "context": "[\"logits\", \"states\"]", "children_spec": [{LEAF},
               {{"type": "builtins.tuple", "context": "null", "children_spec": [{LEAF}, {LEAF}]}}]}}"#
        );
        let expected = ["logits", "states.0", "states.1"];
        assert_eq!(names(&dict), expected.map(|name| Some(name.to_owned())));
        let point = format!(
            r#"{{"type": "collections.namedtuple", "context": "demo.Point", "children_spec": [{LEAF}, {LEAF}]}}"#
        );
        assert_eq!(names(&point), [Some("mean".to_owned()), Some("scale".to_owned())]);
    }

    #[test]
    fn plain_tuples_and_what_is_not_understood_name_nothing() {
        let tuple =
            format!(r#"{{"type": "builtins.tuple", "context": "null", "children_spec": [{LEAF}, {LEAF}]}}"#);
        assert_eq!(names(&tuple), [None, None]);
        let odd = format!(r#"{{"type": "x", "context": "[1]", "children_spec": [{LEAF}]}}"#);
        assert_eq!(names(&odd), [None]);
    }
}
