//! Linear learners and support vector machines.

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::coupling::coupled;
use super::scores::{Labels, Post, best, table};
use super::trees::second_class;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{BinaryOp, FloatUnary, Relation, ValueId};
use crate::symbolic::Expr;

operators! { "ai.onnx.ml";
    "LinearRegressor" => linear_regressor,
    "LinearClassifier" => linear_classifier,
    "SVMRegressor" => svm_regressor,
    "SVMClassifier" => svm_classifier,
}

/// Rows of features.
fn features(cx: &mut Onnx, c: &Call) -> Result<ValueId, RuleError> {
    let x = c.tensor(0)?;
    let x = if cx.b.rank(x) == 1 { cx.b.unsqueeze(x, 0)? } else { x };
    if cx.b.rank(x) != 2 {
        return Err(malformed("features are rows"));
    }
    let dtype = if cx.b.dtype(x) == DType::F64 { DType::F64 } else { DType::F32 };
    Ok(cx.b.cast(x, dtype))
}

fn listed(c: &Call, name: &str) -> Result<Vec<f64>, RuleError> {
    Ok(c.opt_floats(name)?.unwrap_or_default())
}

/// Numbers as rows of equal length.
fn matrix(
    cx: &mut Onnx,
    c: &Call,
    x: ValueId,
    part: &str,
    numbers: &[f64],
    rows: usize,
) -> Result<ValueId, RuleError> {
    if rows == 0 || !numbers.len().is_multiple_of(rows) {
        return Err(malformed(format!("{} numbers of `{part}` for {rows} rows", numbers.len())));
    }
    let dtype = cx.b.dtype(x);
    table(cx, c, part, dtype, numbers, &[rows, numbers.len() / rows])
}

/// Products of rows with rows.
fn products(cx: &mut Onnx, x: ValueId, rows: ValueId) -> Result<ValueId, RuleError> {
    let columns = cx.b.transpose(rows, 0, 1)?;
    cx.matmul(x, columns)
}

fn linear(cx: &mut Onnx, c: &Call, x: ValueId, targets: usize) -> Result<ValueId, RuleError> {
    let coefficients = matrix(cx, c, x, "coefficients", &listed(c, "coefficients")?, targets)?;
    let value = products(cx, x, coefficients)?;
    let intercepts = listed(c, "intercepts")?;
    if intercepts.is_empty() {
        return Ok(value);
    }
    let dtype = cx.b.dtype(x);
    let intercepts = table(cx, c, "intercepts", dtype, &intercepts, &[intercepts.len()])?;
    cx.add(value, intercepts)
}

fn linear_regressor(cx: &mut Onnx, c: &Call) -> Rule {
    let targets = usize::try_from(c.int("targets", 1)?).unwrap_or(0);
    let x = features(cx, c)?;
    let value = linear(cx, c, x, targets)?;
    let post = Post::of(c)?;
    let value = if targets == 1 { post.of_one(cx, value)? } else { post.apply(cx, value)? };
    one(cx.b.cast(value, DType::F32))
}

fn linear_classifier(cx: &mut Onnx, c: &Call) -> Rule {
    let labels = Labels::of(c, "classlabels_ints")?;
    let x = features(cx, c)?;
    let count = listed(c, "coefficients")?.len();
    let classes = cx.b.shape(x)[1].as_int().and_then(|features| usize::try_from(features).ok());
    let targets = match classes.filter(|features| *features > 0) {
        Some(features) => count / features,
        // The number of features is open: two classes have one row of coefficients or two, as intercepts do.
        None => listed(c, "intercepts")?.len().max(1),
    };
    let scores = linear(cx, c, x, targets)?;
    let post = Post::of(c)?;
    if targets > 1 {
        let number = best(cx, scores)?;
        let scores = post.apply(cx, scores)?;
        return labels.results(cx, c, number, scores);
    }
    let is_second = cx.with_number(Relation::Gt, scores, 0.0)?;
    let number = cx.b.cast(is_second, DType::I64);
    let number = cx.b.squeeze(number, &[1])?;
    let scores = match (labels.count(), post) {
        (2, Post::Logistic) => second_class(cx, scores, false, post)?,
        // What is not transformed counts as a part of one, as ONNX Runtime has it.
        (2, Post::None | Post::Softmax | Post::SoftmaxZero | Post::Probit) => {
            let scores = post.of_one(cx, scores)?;
            second_class(cx, scores, true, Post::None)?
        }
        (_, _) => post.of_one(cx, scores)?,
    };
    labels.results(cx, c, number, scores)
}

// --- support vectors -----------------------------------------------------------------------------------------------

/// The kernel of each row with each vector.
fn kernel(cx: &mut Onnx, c: &Call, x: ValueId, vectors: ValueId) -> Result<ValueId, RuleError> {
    let parameters = listed(c, "kernel_params")?;
    let [gamma, start, degree] = match parameters.as_slice() {
        [gamma, start, degree, ..] => [*gamma, *start, *degree],
        _ => [0.0; 3],
    };
    let dtype = cx.b.dtype(x);
    let kind = c.text("kernel_type", "LINEAR")?;
    if kind == "RBF" {
        let (rows, columns) = (cx.b.unsqueeze(x, 1)?, cx.b.unsqueeze(vectors, 0)?);
        let square = cx.apply([rows, columns], dtype, |[a, b]| (a - b).square())?;
        let distance = cx.sum(square, &[2], false)?;
        return cx.apply([distance], dtype, |[x]| (x * -gamma).exp());
    }
    let product = products(cx, x, vectors)?;
    match kind {
        "LINEAR" => Ok(product),
        "POLY" => cx.apply([product], dtype, |[x]| (x * gamma + start).pow(degree.trunc())),
        "SIGMOID" => cx.apply([product], dtype, |[x]| (x * gamma + start).tanh()),
        other => Err(malformed(format!("the kernel `{other}` is unknown"))),
    }
}

fn svm_regressor(cx: &mut Onnx, c: &Call) -> Rule {
    let supports = usize::try_from(c.int("n_supports", 0)?).unwrap_or(0);
    let x = features(cx, c)?;
    let coefficients = matrix(cx, c, x, "coefficients", &listed(c, "coefficients")?, 1)?;
    let values = if supports == 0 {
        x
    } else {
        let vectors = matrix(cx, c, x, "vectors", &listed(c, "support_vectors")?, supports)?;
        kernel(cx, c, x, vectors)?
    };
    let sum = products(cx, values, coefficients)?;
    let rho = listed(c, "rho")?.first().copied().unwrap_or(0.0);
    let sum = cx.with_number(BinaryOp::Add, sum, rho)?;
    let dtype = cx.b.dtype(sum);
    let value = if c.flag("one_class", false)? {
        cx.apply([sum], dtype, |[x]| x.gt(0.0).select(1.0, -1.0))?
    } else {
        Post::of(c)?.of_one(cx, sum)?
    };
    one(cx.b.cast(value, DType::F32))
}

/// What two classes have against each other: scores `[rows, pairs]` and votes `[rows, classes]`.
fn pairs(cx: &mut Onnx, c: &Call, x: ValueId, counts: &[i64]) -> Result<(ValueId, ValueId), RuleError> {
    let counts: Vec<usize> = counts.iter().map(|count| usize::try_from(*count).unwrap_or(0)).collect();
    let (total, classes): (usize, usize) = (counts.iter().sum(), counts.len());
    let vectors = matrix(cx, c, x, "vectors", &listed(c, "support_vectors")?, total)?;
    let kernels = kernel(cx, c, x, vectors)?;
    let (own, rho) = (listed(c, "coefficients")?, listed(c, "rho")?);
    let number = classes * (classes.saturating_sub(1)) / 2;
    if own.len() < total * classes.saturating_sub(1) || rho.len() < number {
        return Err(malformed("there are fewer coefficients than pairs of classes need"));
    }
    let starts: Vec<usize> = counts
        .iter()
        .scan(0, |sum, count| {
            *sum += count;
            Some(*sum - count)
        })
        .collect();
    // Each pair is a sum over all vectors of which only those of the two classes count.
    let mut rows = Vec::new();
    let mut for_first = Vec::new();
    for first in 0..classes {
        for second in first + 1..classes {
            let mut row = vec![0.0; total];
            let (a, b) = (starts[first], starts[second]);
            row[a..a + counts[first]].copy_from_slice(&own[(second - 1) * total + a..][..counts[first]]);
            row[b..b + counts[second]].copy_from_slice(&own[first * total + b..][..counts[second]]);
            rows.extend(row);
            for_first.push((first, second));
        }
    }
    let rows = matrix(cx, c, x, "pairs", &rows, number)?;
    let scores = products(cx, kernels, rows)?;
    let dtype = cx.b.dtype(x);
    let rho = table(cx, c, "rho", dtype, &rho[..number], &[number])?;
    let scores = cx.add(scores, rho)?;
    let won = cx.with_number(Relation::Gt, scores, 0.0)?;
    let mut columns = Vec::new();
    for class in 0..classes {
        let mut sum = None;
        for (pair, (first, second)) in for_first.iter().enumerate() {
            if class != *first && class != *second {
                continue;
            }
            let mut vote = cx.b.pick(won, 1, &Expr::int(pair as i64))?;
            if class == *second {
                vote = cx.b.unary(crate::graph::UnaryOp::Not, vote);
            }
            let vote = cx.b.cast(vote, DType::I64);
            sum = Some(match sum {
                Some(sum) => cx.add(sum, vote)?,
                None => vote,
            });
        }
        let sum = sum.ok_or_else(|| malformed("a single class has no rivals"))?;
        columns.push(cx.b.unsqueeze(sum, 1)?);
    }
    Ok((scores, cx.b.cat(&columns, 1)?))
}

fn svm_classifier(cx: &mut Onnx, c: &Call) -> Rule {
    let labels = Labels::of(c, "classlabels_ints")?;
    let post = Post::of(c)?;
    let x = features(cx, c)?;
    let counts = c.opt_ints("vectors_per_class")?.unwrap_or_default();
    if counts.iter().sum::<i64>() == 0 {
        return liblinear(cx, c, x, &labels, post);
    }
    let (scores, votes) = pairs(cx, c, x, &counts)?;
    let (prob_a, prob_b) = (listed(c, "prob_a")?, listed(c, "prob_b")?);
    let has_parts = !prob_a.is_empty();
    let number = best(cx, votes)?;
    let classes = counts.len();
    let scores = if has_parts {
        let parts = pair_parts(cx, scores, &prob_a, &prob_b, classes)?;
        coupled(cx, &parts)?
    } else {
        scores
    };
    let scores = if classes == 2 && !has_parts {
        second_class(cx, scores, false, post)?
    } else {
        post.apply(cx, scores)?
    };
    labels.results(cx, c, number, scores)
}

/// One row of coefficients for each class, without vectors.
fn liblinear(cx: &mut Onnx, c: &Call, x: ValueId, labels: &Labels, post: Post) -> Rule {
    let classes = labels.count().max(1);
    let coefficients = matrix(cx, c, x, "coefficients", &listed(c, "coefficients")?, classes)?;
    let scores = products(cx, x, coefficients)?;
    let rho = listed(c, "rho")?.first().copied().unwrap_or(0.0);
    let scores = cx.with_number(BinaryOp::Add, scores, rho)?;
    let number = best(cx, scores)?;
    let scores = post.apply(cx, scores)?;
    labels.results(cx, c, number, scores)
}

/// How likely the first of each two classes is, `parts[first][second]`, columns of rows.
fn pair_parts(
    cx: &mut Onnx,
    scores: ValueId,
    prob_a: &[f64],
    prob_b: &[f64],
    classes: usize,
) -> Result<Vec<Vec<ValueId>>, RuleError> {
    let dtype = cx.b.dtype(scores);
    // Those of a class with itself mean nothing.
    let mut parts = vec![vec![scores; classes]; classes];
    let mut pair = 0;
    for first in 0..classes {
        for second in first + 1..classes {
            let (Some(a), Some(b)) = (prob_a.get(pair), prob_b.get(pair)) else {
                return Err(malformed("there are fewer probabilities than pairs of classes"));
            };
            let score = cx.b.pick(scores, 1, &Expr::int(pair as i64))?;
            let part = cx.apply([score], dtype, |[score]| {
                let part = 1.0 - (score * *a + *b).unary(FloatUnary::Sigmoid);
                part.max(1e-7).min(1.0 - 1e-7)
            })?;
            let other = cx.apply([part], dtype, |[part]| 1.0 - part)?;
            parts[first][second] = part;
            parts[second][first] = other;
            pair += 1;
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, floats, int, ints, text};
    use crate::interpret::Tensor;

    #[test]
    fn rows_are_weighted_and_classified() {
        let model = Model::new(15).fixed_input("x", Tensor::from_f32(&[2, 2], &[1.0, 2.0, -1.0, 0.5]));
        let weights = [floats("coefficients", &[1.0, 2.0, 0.0, -1.0]), floats("intercepts", &[0.5, 0.0])];
        let regressor = [weights.as_slice(), &[int("targets", 2)]].concat();
        let found = model.of_one("ai.onnx.ml::LinearRegressor", &["x"], &regressor);
        assert_eq!(found, [5.5, -2.0, 0.5, -0.5]);
        let classifier = [weights.as_slice(), &[ints("classlabels_ints", &[7, 9])]].concat();
        let model = model.node("ai.onnx.ml::LinearClassifier", &["x"], &["y", "z"], &classifier);
        assert_eq!(model.numbers(), [7.0, 7.0]);
        assert_eq!(model.run(&["z"])[0].to_f64(), [5.5, -2.0, 0.5, -0.5]);
    }

    #[test]
    fn support_vectors_weigh_by_their_kernels() {
        let attributes = [
            floats("coefficients", &[1.0, -2.0]),
            floats("support_vectors", &[1.0, 0.0, 0.0, 1.0]),
            floats("kernel_params", &[1.0, 1.0, 2.0]),
            floats("rho", &[0.5]),
            int("n_supports", 2),
            text("kernel_type", "POLY"),
        ];
        let model = Model::new(15).input("x", Tensor::from_f32(&[1, 2], &[2.0, 3.0]));
        // (2 + 1)^2 - 2 (3 + 1)^2 + 0.5
        assert_eq!(model.of_one("ai.onnx.ml::SVMRegressor", &["x"], &attributes), [-22.5]);
    }
}
