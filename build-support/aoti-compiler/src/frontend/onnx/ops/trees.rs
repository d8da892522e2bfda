//! Ensembles of decision trees.
//!
//! All trees go down together, one level a step, over tables of all nodes; a leaf leads to itself. What each leaf adds to each
//! target is a table too.

mod attributes;

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::scores::{Labels, Post, best, int_table, numbers, table};
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::{Context, RuleError};
use crate::graph::steps::repeat;
use crate::graph::{Coord, FloatTest, IntBinary, ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;
use attributes::{forest, inner_nodes, place};

operators! { "ai.onnx.ml";
    "TreeEnsemble" => ensemble,
    "TreeEnsembleRegressor" => regressor,
    "TreeEnsembleClassifier" => classifier,
}

/// What a node compares a feature with; leaves compare nothing.
#[derive(Clone, Copy)]
struct Test {
    relation: Relation,
    feature: i64,
    threshold: f64,
    /// Whether a missing number is as one that holds.
    missing: bool,
    then: usize,
    otherwise: usize,
}

/// All nodes of all trees.
#[derive(Default)]
struct Forest {
    /// `None` are leaves.
    nodes: Vec<Option<Test>>,
    roots: Vec<usize>,
    /// Leaf, target and weight.
    votes: Vec<(usize, usize, f64)>,
    targets: usize,
    /// Whether thresholds or weights have the precision of `f64`.
    is_double: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Average,
    Min,
    Max,
}

impl Forest {
    /// Levels below the roots.
    fn depth(&self) -> Result<i64, RuleError> {
        let mut level = self.roots.clone();
        for depth in 0..=self.nodes.len() {
            let mut below = Vec::new();
            for node in level {
                let node = self
                    .nodes
                    .get(node)
                    .ok_or_else(|| malformed("a tree leads to a node that is not there"))?;
                below.extend(node.iter().flat_map(|test| [test.then, test.otherwise]));
            }
            if below.is_empty() {
                return Ok(depth as i64);
            }
            // Branches may share what is below them.
            below.sort_unstable();
            below.dedup();
            level = below;
        }
        Err(malformed("a tree leads back to itself"))
    }

    /// The leaf of each tree for each row, `[rows, trees]`.
    fn leaves(&self, cx: &mut Onnx, c: &Call, x: ValueId) -> Result<ValueId, RuleError> {
        let rows = cx.b.shape(x)[0].clone();
        let roots: Vec<i64> = self.roots.iter().map(|root| *root as i64).collect();
        let start = int_table(cx, c, "roots", &roots)?;
        let shape = [rows, Expr::int(roots.len() as i64)];
        let start = cx.b.expand(start, &shape)?;
        let depth = self.depth()?;
        if depth == 0 {
            return Ok(start);
        }
        let captured = self.tables(cx, c, x)?;
        let relations = self.relations();
        let depth = cx.b.scalar(depth, DType::I64);
        let leaves = repeat(&mut cx.cx, "descend", depth, &[start], &captured, &mut |cx, _, at, tables| {
            Ok(vec![descended(cx, at[0], tables, &relations)?])
        })?;
        Ok(leaves[0])
    }

    /// The relations that occur.
    fn relations(&self) -> Vec<Relation> {
        let mut all: Vec<Relation> = Vec::new();
        for test in self.nodes.iter().flatten() {
            if !all.contains(&test.relation) {
                all.push(test.relation);
            }
        }
        all
    }

    /// The features, and of all nodes: feature, threshold, whether missing numbers hold, the next nodes, the relation.
    fn tables(&self, cx: &mut Onnx, c: &Call, x: ValueId) -> Result<Vec<ValueId>, RuleError> {
        let relations = self.relations();
        let ints = |of: &dyn Fn(usize, &Test) -> i64, leaf: &dyn Fn(usize) -> i64| -> Vec<i64> {
            let each = |(number, node): (usize, &Option<Test>)| {
                node.as_ref().map_or_else(|| leaf(number), |test| of(number, test))
            };
            self.nodes.iter().enumerate().map(each).collect()
        };
        let own = |number: usize| number as i64;
        let feature = ints(&|_, test| test.feature, &|_| 0);
        let missing = ints(&|_, test| i64::from(test.missing), &|_| 0);
        let then = ints(&|_, test| test.then as i64, &own);
        let otherwise = ints(&|_, test| test.otherwise as i64, &own);
        let number = |test: &Test| relations.iter().position(|own| *own == test.relation).unwrap_or(0) as i64;
        let relation = ints(&|_, test| number(test), &|_| 0);
        let thresholds: Vec<f64> =
            self.nodes.iter().map(|node| node.as_ref().map_or(0.0, |test| test.threshold)).collect();
        let dtype = cx.b.dtype(x);
        Ok(vec![
            x,
            int_table(cx, c, "features", &feature)?,
            table(cx, c, "thresholds", dtype, &thresholds, &[thresholds.len()])?,
            int_table(cx, c, "missing", &missing)?,
            int_table(cx, c, "then", &then)?,
            int_table(cx, c, "otherwise", &otherwise)?,
            int_table(cx, c, "relations", &relation)?,
        ])
    }

    /// What leaves add up to for each target, `[rows, targets]`.
    fn aggregated(
        &self,
        cx: &mut Onnx,
        c: &Call,
        leaves: ValueId,
        aggregate: Aggregate,
        dtype: DType,
    ) -> Result<ValueId, RuleError> {
        let (op, none) = match aggregate {
            Aggregate::Sum | Aggregate::Average => (ReduceOp::Sum, 0.0),
            Aggregate::Min => (ReduceOp::Min, f64::INFINITY),
            Aggregate::Max => (ReduceOp::Max, f64::NEG_INFINITY),
        };
        let mut all = vec![none; self.nodes.len() * self.targets];
        for (leaf, target, weight) in &self.votes {
            let slot = all.get_mut(leaf * self.targets + target).filter(|_| *target < self.targets);
            let slot = slot.ok_or_else(|| malformed("a leaf is for a target that is not there"))?;
            *slot = match aggregate {
                Aggregate::Sum | Aggregate::Average => *slot + weight,
                Aggregate::Min => slot.min(*weight),
                Aggregate::Max => slot.max(*weight),
            };
        }
        let weights = table(cx, c, "weights", dtype, &all, &[self.nodes.len(), self.targets])?;
        let mut shape = cx.b.shape(leaves);
        shape.push(Expr::int(self.targets as i64));
        let at = cx.b.unsqueeze(leaves, 2)?;
        let coords = vec![Coord::Indirect(0), Coord::Expr(Expr::axis(2))];
        let votes = cx.b.gather(weights, &[at], coords, &shape)?;
        let value = cx.b.reduce(op, votes, &[1], false)?;
        match aggregate {
            Aggregate::Sum => Ok(value),
            Aggregate::Average => {
                let count = self.roots.len().max(1) as f64;
                cx.apply([value], dtype, |[x]| x / count)
            }
            // What no leaf is for is zero.
            Aggregate::Min | Aggregate::Max => cx.apply([value], dtype, |[x]| x.equals(none).select(0.0, &x)),
        }
    }
}

/// One level down.
fn descended(
    cx: &mut Context,
    at: ValueId,
    tables: &[ValueId],
    relations: &[Relation],
) -> Result<ValueId, RuleError> {
    let [x, feature, threshold, missing, then, otherwise, relation] = tables else {
        return Err(malformed("tables of a tree are missing"));
    };
    let shape = cx.b.shape(at);
    let feature = cx.b.rows(*feature, at)?;
    let coords = vec![Coord::Expr(Expr::axis(0)), Coord::Indirect(0)];
    let number = cx.b.gather(*x, &[feature], coords, &shape)?;
    let threshold = cx.b.rows(*threshold, at)?;
    let mut holds: Option<ValueId> = None;
    for (position, own) in relations.iter().enumerate() {
        let is_true = cx.binary(*own, number, threshold)?;
        holds = Some(match holds {
            None => is_true,
            Some(holds) => {
                let code = cx.b.rows(*relation, at)?;
                let is_this = cx.with_number(Relation::Eq, code, position as i64)?;
                cx.b.select(is_this, is_true, holds)?
            }
        });
    }
    let holds = holds.ok_or_else(|| malformed("a tree compares nothing"))?;
    let missing = cx.b.rows(*missing, at)?;
    let missing = cx.b.cast(missing, DType::Bool);
    let is_nan = cx.unary(FloatTest::IsNan, number);
    let missing = cx.binary(IntBinary::And, missing, is_nan)?;
    let holds = cx.binary(IntBinary::Or, holds, missing)?;
    let (then, otherwise) = (cx.b.rows(*then, at)?, cx.b.rows(*otherwise, at)?);
    Ok(cx.b.select(holds, then, otherwise)?)
}

/// Rows of features in a type that thresholds compare in.
fn features(cx: &mut Onnx, c: &Call, is_double: bool) -> Result<ValueId, RuleError> {
    let x = c.tensor(0)?;
    if cx.b.rank(x) != 2 {
        return Err(malformed("features are rows"));
    }
    let is_single = matches!(cx.b.dtype(x), DType::F32 | DType::F16 | DType::Bf16);
    let dtype = if is_single && !is_double { DType::F32 } else { DType::F64 };
    Ok(cx.b.cast(x, dtype))
}

// --- the operators of the first versions ---------------------------------------------------------------------------

/// A number for each target, or one for all, added.
fn with_base(
    cx: &mut Onnx,
    c: &Call,
    x: ValueId,
    base: &[f64],
    targets: usize,
) -> Result<ValueId, RuleError> {
    if base.is_empty() {
        return Ok(x);
    }
    if base.len() != 1 && base.len() != targets {
        return Err(malformed(format!("{} base values for {targets} targets", base.len())));
    }
    let dtype = cx.b.dtype(x);
    let base = table(cx, c, "base", dtype, base, &[base.len()])?;
    cx.add(x, base)
}

fn regressor(cx: &mut Onnx, c: &Call) -> Rule {
    let mut forest = forest(cx, c, "target")?;
    forest.targets = place(c.int("n_targets", 1)?, "the number of targets")?;
    let aggregate = match c.text("aggregate_function", "SUM")? {
        "SUM" => Aggregate::Sum,
        "AVERAGE" => Aggregate::Average,
        "MIN" => Aggregate::Min,
        "MAX" => Aggregate::Max,
        other => return Err(malformed(format!("`aggregate_function` is `{other}`"))),
    };
    let (base, _) = numbers(cx, c, "base_values")?;
    let x = features(cx, c, forest.is_double)?;
    let dtype = cx.b.dtype(x);
    let leaves = forest.leaves(cx, c, x)?;
    let value = forest.aggregated(cx, c, leaves, aggregate, dtype)?;
    let value = with_base(cx, c, value, &base, forest.targets)?;
    let post = Post::of(c)?;
    let value = if forest.targets == 1 { post.of_one(cx, value)? } else { post.apply(cx, value)? };
    one(cx.b.cast(value, DType::F32))
}

fn classifier(cx: &mut Onnx, c: &Call) -> Rule {
    let mut forest = forest(cx, c, "class")?;
    let labels = Labels::of(c, "classlabels_int64s")?;
    let (base, _) = numbers(cx, c, "base_values")?;
    let post = Post::of(c)?;
    let x = features(cx, c, forest.is_double)?;
    let dtype = cx.b.dtype(x);
    let leaves = forest.leaves(cx, c, x)?;
    let first = forest.votes.first().map(|(_, class, _)| *class);
    let is_binary = labels.count() == 2 && forest.votes.iter().all(|(_, class, _)| Some(*class) == first);
    if !is_binary {
        forest.targets = labels.count().max(1);
        let scores = forest.aggregated(cx, c, leaves, Aggregate::Sum, dtype)?;
        let scores = with_base(cx, c, scores, &base, forest.targets)?;
        let number = best(cx, scores)?;
        let scores = if forest.targets == 1 { post.of_one(cx, scores)? } else { post.apply(cx, scores)? };
        return labels.results(cx, c, number, scores);
    }
    // Votes are for the second class alone.
    forest.targets = 1;
    forest.votes.iter_mut().for_each(|vote| vote.1 = 0);
    let score = forest.aggregated(cx, c, leaves, Aggregate::Sum, dtype)?;
    let score = with_base(cx, c, score, base.get(base.len().saturating_sub(1)..).unwrap_or_default(), 1)?;
    let is_part = forest.votes.iter().all(|(_, _, weight)| *weight >= 0.0);
    let is_second = cx.with_number(Relation::Gt, score, if is_part { 0.5 } else { 0.0 })?;
    let number = cx.b.cast(is_second, DType::I64);
    let number = cx.b.squeeze(number, &[1])?;
    let scores = second_class(cx, score, is_part, post)?;
    labels.results(cx, c, number, scores)
}

/// The scores of two classes from that of the second one.
pub(super) fn second_class(
    cx: &mut Onnx,
    score: ValueId,
    is_part: bool,
    post: Post,
) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(score);
    if post == Post::Probit {
        return post.apply(cx, score);
    }
    let other = if is_part {
        cx.apply([score], dtype, |[score]| 1.0 - score)?
    } else {
        cx.apply([score], dtype, |[score]| -score)?
    };
    let both = cx.b.cat(&[other, score], 1)?;
    if post == Post::Logistic && !is_part { post.apply(cx, both) } else { Ok(both) }
}

// --- the operator of the fifth version -----------------------------------------------------------------------------

fn ensemble(cx: &mut Onnx, c: &Call) -> Rule {
    let mut forest = inner_nodes(cx, c)?;
    forest.targets = place(c.int("n_targets", 1)?, "the number of targets")?;
    let aggregate = match c.int("aggregate_function", 1)? {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Min,
        3 => Aggregate::Max,
        other => return Err(malformed(format!("`aggregate_function` is {other}"))),
    };
    let own = cx.b.dtype(c.tensor(0)?);
    let x = features(cx, c, own == DType::F64)?;
    let dtype = cx.b.dtype(x);
    let leaves = forest.leaves(cx, c, x)?;
    let value = forest.aggregated(cx, c, leaves, aggregate, dtype)?;
    let post = Post::of_number(c.int("post_transform", 0)?)?;
    let value = if forest.targets == 1 { post.of_one(cx, value)? } else { post.apply(cx, value)? };
    one(cx.b.cast(value, own))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, floats, int, ints, text, texts};
    use crate::interpret::Tensor;

    #[test]
    fn trees_of_several_levels_add_up() {
        // x0 <= 1 ? (x1 > 5 ? 10 : 20) : 30, and a tree that is a leaf.
        let attributes = [
            ints("nodes_treeids", &[0, 0, 0, 0, 0, 1]),
            ints("nodes_nodeids", &[0, 1, 2, 3, 4, 0]),
            ints("nodes_featureids", &[0, 1, 0, 0, 0, 0]),
            ints("nodes_truenodeids", &[1, 2, 0, 0, 0, 0]),
            ints("nodes_falsenodeids", &[4, 3, 0, 0, 0, 0]),
            texts("nodes_modes", &["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "LEAF"]),
            floats("nodes_values", &[1.0, 5.0, 0.0, 0.0, 0.0, 0.0]),
            ints("nodes_missing_value_tracks_true", &[1, 0, 0, 0, 0, 0]),
            ints("target_ids", &[0, 0, 1, 0]),
            ints("target_nodeids", &[2, 3, 4, 0]),
            ints("target_treeids", &[0, 0, 0, 1]),
            floats("target_weights", &[10.0, 20.0, 30.0, 1.0]),
            floats("base_values", &[0.5, 0.25]),
            int("n_targets", 2),
            text("aggregate_function", "SUM"),
        ];
        let rows = [[1.0, 6.0], [0.0, 5.0], [2.0, 6.0], [f32::NAN, 9.0]].concat();
        let model = Model::new(15).input("x", Tensor::from_f32(&[4, 2], &rows));
        let found = model.of_one("ai.onnx.ml::TreeEnsembleRegressor", &["x"], &attributes);
        assert_eq!(found, [11.5, 0.25, 21.5, 0.25, 1.5, 30.25, 11.5, 0.25]);
    }
}
