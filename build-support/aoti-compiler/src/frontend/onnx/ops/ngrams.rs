//! How often runs of tokens occur in rows of numbers. Which ones is in the model.

use super::super::call::{Call, malformed, unsupported};
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::dtype::{DType, bytes_of};
use crate::frontend::torch::rules::RuleError;
use crate::graph::{BinaryOp, Combine, Constant, Coord, IntBinary, ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "TfIdfVectorizer" => tf_idf,
}

/// The runs of one length: so many, and their tokens at each place.
struct Runs {
    /// Columns of the result.
    columns: Vec<i64>,
    /// For each place of a run, the tokens that the runs have there.
    tokens: Vec<Vec<i64>>,
}

/// The runs that are counted, by length.
fn runs(c: &Call) -> Result<Vec<Runs>, RuleError> {
    let list = |name: &str| c.opt_ints(name)?.ok_or_else(|| malformed(format!("`{name}` is missing")));
    if c.has("pool_strings") {
        return Err(unsupported(
            "runs of texts; look the texts up in a dictionary of numbers before a model runs",
        ));
    }
    let (pool, starts, columns) = (list("pool_int64s")?, list("ngram_counts")?, list("ngram_indexes")?);
    let (shortest, longest) = (c.int("min_gram_length", 1)?, c.int("max_gram_length", 1)?);
    let broken = || malformed("`ngram_counts` and `ngram_indexes` do not fit `pool_int64s`");
    let mut starts: Vec<usize> =
        starts.iter().map(|start| usize::try_from(*start).map_err(|_| broken())).collect::<Result<_, _>>()?;
    starts.push(pool.len());
    let (mut all, mut first) = (Vec::new(), 0);
    for (length, bounds) in (1usize..).zip(starts.windows(2)) {
        let own = pool.get(bounds[0]..bounds[1]).ok_or_else(broken)?;
        let count = own.len() / length;
        let columns = columns.get(first..first + count).ok_or_else(broken)?.to_vec();
        first += count;
        if count == 0 || !(shortest..=longest).contains(&(length as i64)) {
            continue;
        }
        let at = |place: usize| own.chunks_exact(length).map(|run| run[place]).collect();
        all.push(Runs { columns, tokens: (0..length).map(at).collect() });
    }
    Ok(all)
}

fn tf_idf(cx: &mut Onnx, c: &Call) -> Rule {
    let mut x = cx.b.cast(c.tensor(0)?, DType::I64);
    if cx.b.rank(x) == 0 {
        x = cx.b.unsqueeze(x, 0)?;
    }
    let indexes = c.opt_ints("ngram_indexes")?.unwrap_or_default();
    let width = indexes.iter().max().map_or(0, |last| last.saturating_add(1));
    let rows = cx.b.shape(x)[..cx.b.rank(x) - 1].to_vec();
    let shape = [rows.as_slice(), &[Expr::int(width)]].concat();
    let mut counts = cx.b.full(0i64, DType::I64, &shape);
    let skips = c.int("max_skip_count", 0)?;
    for runs in runs(c)? {
        let found = counted(cx, x, &runs, skips)?;
        let own = cx.b.shape(found);
        let column = cx.b.int_vector(&runs.columns);
        let column = cx.b.view(column, &own, vec![Expr::axis(rows.len())])?;
        let coords = (0..rows.len()).map(|axis| Coord::Expr(Expr::axis(axis)));
        let coords = coords.chain([Coord::Indirect(0)]).collect();
        counts = cx.b.scatter(counts, found, &[column], coords, Combine::Add)?;
    }
    one(weighted(cx, c, counts, width)?)
}

/// `[.., runs]`: how often each occurs, its tokens next to each other or with up to so many others between each two.
fn counted(cx: &mut Onnx, x: ValueId, runs: &Runs, skips: i64) -> Result<ValueId, RuleError> {
    let last = cx.b.rank(x) - 1;
    let length = cx.b.shape(x)[last].clone();
    // What no run has.
    let beyond = runs.tokens.iter().flatten().min().map_or(0, |least| least.wrapping_sub(1));
    let steps = if runs.tokens.len() == 1 { 1 } else { skips + 1 };
    let mut total: Option<ValueId> = None;
    for step in 1..=steps {
        let reach = (runs.tokens.len() as i64 - 1) * step;
        let mut amounts = vec![(Expr::int(0), Expr::int(0)); last + 1];
        amounts[last].1 = Expr::int(reach);
        let padded = cx.b.pad(x, &amounts, beyond)?;
        let mut hits: Option<ValueId> = None;
        for (place, tokens) in (0i64..).zip(&runs.tokens) {
            let own = cx.b.slice(padded, last, &Expr::int(place * step), &length, 1)?;
            let own = cx.b.unsqueeze(own, last + 1)?;
            let tokens = cx.b.int_vector(tokens);
            let same = cx.binary(Relation::Eq, own, tokens)?;
            hits = Some(match hits {
                Some(hits) => cx.b.binary(IntBinary::And, hits, same)?,
                None => same,
            });
        }
        let Some(hits) = hits else { continue };
        let hits = cx.b.cast(hits, DType::I64);
        let found = cx.b.reduce(ReduceOp::Sum, hits, &[last], false)?;
        total = Some(match total {
            Some(total) => cx.b.binary(BinaryOp::Add, total, found)?,
            None => found,
        });
    }
    total.ok_or_else(|| malformed("`max_skip_count` is negative"))
}

/// Counts, whether there are any, or either times the weight of a column.
fn weighted(cx: &mut Onnx, c: &Call, counts: ValueId, width: i64) -> Result<ValueId, RuleError> {
    let mode = c.text("mode", "")?;
    let counts = match mode {
        "TF" | "TFIDF" => counts,
        "IDF" => cx.with_number(Relation::Gt, counts, 0i64)?,
        other => return Err(malformed(format!("mode `{other}` is unknown"))),
    };
    let counts = cx.b.cast(counts, DType::F32);
    let weights = c.opt_floats("weights")?.unwrap_or_default();
    if mode == "TF" || weights.is_empty() {
        return Ok(counts);
    }
    if weights.len() as i64 != width {
        return Err(malformed(format!("{} weights for {width} columns", weights.len())));
    }
    let weights: Vec<f32> = weights.iter().map(|weight| *weight as f32).collect();
    let weights = bytes_of(&weights, &f32::to_le_bytes);
    let weights = cx.b.constant(Constant::new("", DType::F32, vec![width], weights))?;
    cx.binary(BinaryOp::Mul, counts, weights)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, floats, int, ints, text};
    use crate::interpret::Tensor;

    #[test]
    fn runs_of_tokens_are_counted_with_others_between_them() {
        let counts =
            |skips: i64, shortest: i64, more: &[super::super::super::proto::AttributeProto]| {
                let attributes = [
                    ints("ngram_counts", &[0, 2]),
                    ints("ngram_indexes", &[0, 1, 3, 2]),
                    ints("pool_int64s", &[2, 3, 5, 4, 5, 6]),
                    int("min_gram_length", shortest),
                    int("max_gram_length", 2),
                    int("max_skip_count", skips),
                ];
                Model::new(9)
                    .input("x", Tensor::from_i64(&[2, 6], &[1, 1, 3, 3, 3, 7, 5, 4, 5, 6, 8, 6]))
                    .of_one("TfIdfVectorizer", &["x"], &[attributes.as_slice(), more].concat())
            };
        let mode = |name: &str| text("mode", name);
        assert_eq!(counts(0, 1, &[mode("TF")]), [0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
        assert_eq!(counts(2, 2, &[mode("TF")]), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 1.0]);
        let weights = floats("weights", &[1.0, 2.0, 0.5, 4.0]);
        assert_eq!(counts(2, 1, &[mode("IDF"), weights.clone()]), [0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.5, 4.0]);
        assert_eq!(counts(2, 1, &[mode("TFIDF"), weights]), [0.0, 6.0, 0.0, 0.0, 0.0, 0.0, 1.5, 4.0]);
    }
}
