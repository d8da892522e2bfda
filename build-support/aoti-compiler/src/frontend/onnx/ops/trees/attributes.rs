//! The attributes that trees are in.

use super::super::super::call::{Call, malformed};
use super::super::super::walk::Onnx;
use super::super::scores::{numbers, tensor_numbers};
use super::{Forest, Test};
use crate::frontend::torch::rules::RuleError;
use crate::graph::Relation;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn place(number: i64, what: &str) -> Result<usize, RuleError> {
    usize::try_from(number).map_err(|_| malformed(format!("{what} {number} is negative")))
}

/// A list that has an entry for each of some others.
fn full<T>(list: Vec<T>, count: usize, name: &str) -> Result<Vec<T>, RuleError> {
    if list.len() == count {
        Ok(list)
    } else {
        Err(malformed(format!("`{name}` has {} entries, not {count}", list.len())))
    }
}

/// The trees of the attributes `nodes_…`, with the votes of those that begin with `of`.
pub(super) fn forest(cx: &Onnx, c: &Call, of: &str) -> Result<Forest, RuleError> {
    let ints = |name: &str| -> Result<Vec<i64>, RuleError> { Ok(c.opt_ints(name)?.unwrap_or_default()) };
    let (trees, numbers_of) = (ints("nodes_treeids")?, ints("nodes_nodeids")?);
    let count = trees.len();
    let numbers_of = full(numbers_of, count, "nodes_nodeids")?;
    let features = full(ints("nodes_featureids")?, count, "nodes_featureids")?;
    let then = full(ints("nodes_truenodeids")?, count, "nodes_truenodeids")?;
    let otherwise = full(ints("nodes_falsenodeids")?, count, "nodes_falsenodeids")?;
    let modes = full(c.opt_texts("nodes_modes")?.unwrap_or_default(), count, "nodes_modes")?;
    let (values, thresholds_are_double) = numbers(cx, c, "nodes_values")?;
    let values = full(values, count, "nodes_values")?;
    let missing = c.opt_ints("nodes_missing_value_tracks_true")?.filter(|all| !all.is_empty());
    let missing = full(missing.unwrap_or_else(|| vec![0; count]), count, "nodes_missing_value_tracks_true")?;
    let pairs = trees.iter().copied().zip(numbers_of.iter().copied());
    let places: BTreeMap<(i64, i64), usize> = pairs.zip(0..).collect();
    let at = |tree: i64, node: i64| {
        places.get(&(tree, node)).copied().ok_or_else(|| malformed(format!("tree {tree} has no node {node}")))
    };
    let mut forest = Forest { is_double: thresholds_are_double, ..Forest::default() };
    let mut seen = BTreeSet::new();
    for node in 0..count {
        if seen.insert(trees[node]) {
            forest.roots.push(node);
        }
        let relation = match modes[node] {
            "LEAF" => None,
            "BRANCH_LEQ" => Some(Relation::Le),
            "BRANCH_LT" => Some(Relation::Lt),
            "BRANCH_GTE" => Some(Relation::Ge),
            "BRANCH_GT" => Some(Relation::Gt),
            "BRANCH_EQ" => Some(Relation::Eq),
            "BRANCH_NEQ" => Some(Relation::Ne),
            other => return Err(malformed(format!("the mode `{other}` of a node is unknown"))),
        };
        let test = |relation| -> Result<Test, RuleError> {
            Ok(Test {
                relation,
                feature: features[node],
                threshold: values[node],
                missing: missing[node] != 0,
                then: at(trees[node], then[node])?,
                otherwise: at(trees[node], otherwise[node])?,
            })
        };
        forest.nodes.push(relation.map(test).transpose()?);
    }
    let ids = ints(&format!("{of}_ids"))?;
    let vote_trees = full(ints(&format!("{of}_treeids"))?, ids.len(), "the trees of votes")?;
    let vote_nodes = full(ints(&format!("{of}_nodeids"))?, ids.len(), "the nodes of votes")?;
    let (weights, are_double) = numbers(cx, c, &format!("{of}_weights"))?;
    let weights = full(weights, ids.len(), "the weights of votes")?;
    forest.is_double |= are_double;
    for vote in 0..ids.len() {
        let leaf = at(vote_trees[vote], vote_nodes[vote])?;
        forest.votes.push((leaf, place(ids[vote], "target")?, weights[vote]));
    }
    Ok(forest)
}

/// The trees of the fifth version: inner nodes are apart from leaves, which are behind them here.
pub(super) fn inner_nodes(cx: &Onnx, c: &Call) -> Result<Forest, RuleError> {
    let ints = |name: &str| -> Result<Vec<i64>, RuleError> { Ok(c.opt_ints(name)?.unwrap_or_default()) };
    let tensor = |name: &str| -> Result<Vec<f64>, RuleError> {
        Ok(c.opt_tensor_attribute(name)?
            .map(|own| tensor_numbers(cx, own))
            .transpose()?
            .unwrap_or_default()
            .0)
    };
    let features = ints("nodes_featureids")?;
    let count = features.len();
    let modes = full(tensor("nodes_modes")?, count, "nodes_modes")?;
    let splits = full(tensor("nodes_splits")?, count, "nodes_splits")?;
    let [then, otherwise, then_leaf, otherwise_leaf] =
        ["nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs"]
            .map(|name| ints(name).and_then(|list| full(list, count, name)));
    let (then, otherwise, then_leaf, otherwise_leaf) = (then?, otherwise?, then_leaf?, otherwise_leaf?);
    let missing = c.opt_ints("nodes_missing_value_tracks_true")?.filter(|all| !all.is_empty());
    let missing = full(missing.unwrap_or_else(|| vec![0; count]), count, "nodes_missing_value_tracks_true")?;
    let (targets, weights) = (ints("leaf_targetids")?, tensor("leaf_weights")?);
    let weights = full(weights, targets.len(), "leaf_weights")?;
    let members = tensor("membership_values")?;
    let mut sets = members.split(|member| member.is_nan());

    let mut forest = Forest { nodes: vec![None; count + targets.len()], ..Forest::default() };
    for (leaf, (target, weight)) in targets.iter().zip(&weights).enumerate() {
        forest.votes.push((count + leaf, place(*target, "target")?, *weight));
    }
    let next = |node: i64, is_leaf: i64| -> Result<usize, RuleError> {
        Ok(place(node, "node")? + if is_leaf == 0 { 0 } else { count })
    };
    for node in 0..count {
        let relation = match modes[node] as i64 {
            0 => Relation::Le,
            1 => Relation::Lt,
            2 => Relation::Ge,
            3 => Relation::Gt,
            4 | 6 => Relation::Eq,
            5 => Relation::Ne,
            other => return Err(malformed(format!("the mode {other} of a node is unknown"))),
        };
        let test = Test {
            relation,
            feature: features[node],
            threshold: splits[node],
            missing: missing[node] != 0,
            then: next(then[node], then_leaf[node])?,
            otherwise: next(otherwise[node], otherwise_leaf[node])?,
        };
        if modes[node] as i64 == 6 {
            let set = sets.next().ok_or_else(|| malformed("a node has no members"))?;
            forest.member(node, test, set);
        } else {
            forest.nodes[node] = Some(test);
        }
    }
    for root in ints("tree_roots")? {
        forest.roots.push(place(root, "root")?);
    }
    Ok(forest)
}

impl Forest {
    /// One node for each member of a set, of which each leads to the next.
    fn member(&mut self, node: usize, test: Test, set: &[f64]) {
        // None is equal to what is not a number.
        let (first, rest) = set.split_first().map_or((f64::NAN, set), |(first, rest)| (*first, rest));
        let mut last = node;
        self.nodes[node] = Some(Test { threshold: first, ..test });
        for member in rest {
            let place = self.nodes.len();
            self.nodes.push(Some(Test { threshold: *member, ..test }));
            if let Some(before) = &mut self.nodes[last] {
                before.otherwise = place;
            }
            last = place;
        }
    }
}
