//! Features of classical learners: scaling, codes, missing numbers.

use super::super::call::{Call, malformed, unsupported};
use super::super::walk::Onnx;
use super::scores::{int_table, table, tensor_numbers};
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{BinaryOp, Coord, FloatTest, ReduceOp, Relation, Scalar, UnaryOp, ValueId};
use crate::symbolic::Expr;

operators! { "ai.onnx.ml";
    "Scaler" => scaler,
    "Normalizer" => normalizer,
    "Binarizer" => binarizer,
    "Imputer" => imputer,
    "FeatureVectorizer" => feature_vectorizer,
    "OneHotEncoder" => one_hot_encoder,
    "LabelEncoder" => label_encoder,
    "ArrayFeatureExtractor" => array_feature_extractor,
}

/// Numbers for each feature, or one for all, along the last axis.
fn per_feature(
    cx: &mut Onnx,
    c: &Call,
    x: ValueId,
    part: &str,
    numbers: &[f64],
    dtype: DType,
) -> Result<ValueId, RuleError> {
    if let [one] = numbers {
        return Ok(cx.b.scalar(*one, dtype));
    }
    let value = table(cx, c, part, dtype, numbers, &[numbers.len()])?;
    let features = cx.b.shape(x).last().cloned().unwrap_or_else(|| Expr::int(1));
    cx.required_shape(value, &[features])
}

fn scaler(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let offset = c.opt_floats("offset")?.unwrap_or_else(|| vec![0.0]);
    let scale = c.opt_floats("scale")?.unwrap_or_else(|| vec![1.0]);
    let offset = per_feature(cx, c, x, "offset", &offset, DType::F32)?;
    let scale = per_feature(cx, c, x, "scale", &scale, DType::F32)?;
    one(cx.apply([x, offset, scale], DType::F32, |[x, offset, scale]| (x - offset) * scale)?)
}

/// Rows over their norm, unless that is zero.
fn normalizer(cx: &mut Onnx, c: &Call) -> Rule {
    let x = cx.b.cast(c.tensor(0)?, DType::F32);
    let last = cx.b.rank(x).checked_sub(1).ok_or_else(|| malformed("features without an axis"))?;
    let norm = match c.text("norm", "MAX")? {
        "MAX" => cx.b.reduce(ReduceOp::Max, x, &[last], true)?,
        "L1" => {
            let size = cx.b.unary(UnaryOp::Abs, x);
            cx.sum(size, &[last], true)?
        }
        "L2" => {
            let square = cx.mul(x, x)?;
            let sum = cx.sum(square, &[last], true)?;
            cx.apply([sum], DType::F32, |[sum]| sum.sqrt())?
        }
        other => return Err(malformed(format!("the norm `{other}` is unknown"))),
    };
    one(cx.apply([x, norm], DType::F32, |[x, norm]| norm.equals(0.0).select(&x, &x / &norm))?)
}

fn binarizer(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let (dtype, threshold) = (cx.b.dtype(x), c.float("threshold", 0.0)?);
    let wide = if dtype.is_float() { dtype } else { DType::F64 };
    let is_above = cx.apply([x], wide, |[x]| x.gt(threshold))?;
    one(cx.b.cast(is_above, dtype))
}

fn imputer(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let dtype = cx.b.dtype(x);
    let (values, is_missing) = if dtype.is_float() {
        let replaced = c.float("replaced_value_float", 0.0)?;
        let is_missing = if replaced.is_nan() {
            cx.b.unary(FloatTest::IsNan, x)
        } else {
            cx.with_number(Relation::Eq, x, replaced)?
        };
        let values = c.opt_floats("imputed_value_floats")?.unwrap_or_default();
        (per_feature(cx, c, x, "imputed", &values, dtype)?, is_missing)
    } else {
        let replaced = Scalar::Int(c.int("replaced_value_int64", 0)?.into()).cast(dtype);
        let is_missing = cx.with_number(Relation::Eq, x, replaced)?;
        let values = c.opt_ints("imputed_value_int64s")?.unwrap_or_default();
        let values = match values.as_slice() {
            [one] => cx.b.scalar(*one, DType::I64),
            many => int_table(cx, c, "imputed", many)?,
        };
        (cx.b.cast(values, dtype), is_missing)
    };
    one(cx.b.select(is_missing, values, x)?)
}

/// Rows of features side by side, each with as many as is stated.
fn feature_vectorizer(cx: &mut Onnx, c: &Call) -> Rule {
    let values = c.tensors()?;
    let counts = c.opt_ints("inputdimensions")?.unwrap_or_default();
    if counts.len() != values.len() {
        return Err(malformed("`inputdimensions` has not one number for each operand"));
    }
    let mut parts = Vec::new();
    for (value, count) in values.into_iter().zip(counts) {
        let mut value = cx.b.cast(value, DType::F32);
        if cx.b.rank(value) == 1 {
            value = cx.b.unsqueeze(value, 0)?;
        }
        let [rows, own] = cx.b.shape(value).try_into().map_err(|_| malformed("features are rows"))?;
        let shape = [rows, Expr::int(count)];
        if !cx.b.same_size(&own, &shape[1]) {
            value = cx.b.padded_view(value, &shape, vec![Expr::axis(0), Expr::axis(1)], 0.0.into())?;
        }
        parts.push(value);
    }
    one(cx.b.cat(&parts, 1)?)
}

fn one_hot_encoder(cx: &mut Onnx, c: &Call) -> Rule {
    if c.has("cats_strings") {
        return Err(unsupported("categories that are texts"));
    }
    let x = cx.b.cast(c.tensor(0)?, DType::I64);
    let categories = c.opt_ints("cats_int64s")?.unwrap_or_default();
    let rank = cx.b.rank(x);
    let x = cx.b.unsqueeze(x, rank)?;
    let categories = int_table(cx, c, "categories", &categories)?;
    let hits = cx.b.binary(Relation::Eq, x, categories)?;
    if !c.flag("zeros", true)? {
        let any = cx.b.reduce(ReduceOp::Any, hits, &[rank], false)?;
        cx.assert_all(any, "a category that the model does not know")?;
    }
    one(cx.b.cast(hits, DType::F32))
}

/// Keys or values of a node: numbers, and their type.
fn listed(cx: &Onnx, c: &Call, kind: &str) -> Result<(Vec<f64>, Vec<i64>, DType), RuleError> {
    let name = |suffix: &str| format!("{kind}_{suffix}");
    if let Some(tensor) = c.opt_tensor_attribute(&name("tensor"))? {
        let read = super::super::tensors::read(tensor, &cx.opened.beside).map_err(malformed)?;
        let dtype = read.constant.dtype;
        let (numbers, _) = tensor_numbers(cx, tensor)?;
        let ints = numbers.iter().map(|number| *number as i64).collect();
        return Ok((numbers, ints, dtype));
    }
    if let Some(floats) = c.opt_floats(&name("floats"))? {
        return Ok((floats, Vec::new(), DType::F32));
    }
    if let Some(ints) = c.opt_ints(&name("int64s"))? {
        return Ok((ints.iter().map(|number| *number as f64).collect(), ints, DType::I64));
    }
    Err(unsupported("codes of texts, or texts of codes"))
}

/// The keys in order without repetitions, each with where its value is; the last of those that are the same counts.
fn order(keys: &[f64], ints: &[i64], dtype: DType) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).filter(|key| !keys[*key].is_nan()).collect();
    let compare = |a: &usize, b: &usize| {
        if dtype.is_float() { keys[*a].total_cmp(&(keys[*b] + 0.0)) } else { ints[*a].cmp(&ints[*b]) }
    };
    order.sort_by(|a, b| compare(a, b).then(b.cmp(a)));
    order.dedup_by(|next, kept| compare(next, kept).is_eq());
    order
}

fn column(
    cx: &mut Onnx,
    c: &Call,
    part: &str,
    all: &(Vec<f64>, Vec<i64>, DType),
    at: &[usize],
) -> Result<ValueId, RuleError> {
    let (numbers, ints, dtype) = all;
    if dtype.is_float() {
        let numbers: Vec<f64> = at.iter().map(|key| numbers[*key]).collect();
        return table(cx, c, part, *dtype, &numbers, &[numbers.len()]);
    }
    let ints: Vec<i64> = at.iter().map(|key| ints[*key]).collect();
    let value = int_table(cx, c, part, &ints)?;
    Ok(cx.b.cast(value, *dtype))
}

fn label_encoder(cx: &mut Onnx, c: &Call) -> Rule {
    if c.has("classes_strings") {
        return Err(unsupported("codes of texts, or texts of codes"));
    }
    let (keys, values) = (listed(cx, c, "keys")?, listed(cx, c, "values")?);
    if keys.0.len() != values.0.len() {
        return Err(malformed("there are not as many values as keys"));
    }
    let x = cx.b.cast(c.tensor(0)?, keys.2);
    let otherwise = default(cx, c, values.2)?;
    let places = order(&keys.0, &keys.1, keys.2);
    let shape = cx.b.shape(x);
    let mut result = cx.b.expand(otherwise, &shape)?;
    if !places.is_empty() {
        let sorted = column(cx, c, "keys", &keys, &places)?;
        let own = column(cx, c, "values", &values, &places)?;
        let flat = cx.flattened(x)?;
        let at = cx.b.search_sorted(sorted, flat, false)?;
        let at = cx.with_number(BinaryOp::Minimum, at, places.len() as i64 - 1)?;
        let (key, value) = (cx.b.rows(sorted, at)?, cx.b.rows(own, at)?);
        let is_this = cx.b.binary(Relation::Eq, key, flat)?;
        let value = cx.b.select(is_this, value, otherwise)?;
        result = cx.b.reshape(value, &shape)?;
    }
    if let Some(place) = keys.0.iter().rposition(|key| key.is_nan()) {
        let value = column(cx, c, "missing", &values, &[place])?;
        let value = cx.b.reshape(value, &[])?;
        let is_nan = cx.b.unary(FloatTest::IsNan, x);
        result = cx.b.select(is_nan, value, result)?;
    }
    one(result)
}

/// The value of what is no key.
fn default(cx: &mut Onnx, c: &Call, dtype: DType) -> Result<ValueId, RuleError> {
    if let Some(tensor) = c.opt_tensor_attribute("default_tensor")? {
        let read = super::super::tensors::read(tensor, &cx.opened.beside).map_err(malformed)?;
        let value = cx.constant(read)?;
        let value = cx.b.cast(value, dtype);
        return Ok(cx.b.reshape(value, &[])?);
    }
    Ok(if dtype.is_float() {
        cx.b.scalar(c.float("default_float", -0.0)?, dtype)
    } else {
        cx.b.scalar(c.int("default_int64", -1)?, dtype)
    })
}

/// Elements of the last axis. Of a single axis the result is a row.
fn array_feature_extractor(cx: &mut Onnx, c: &Call) -> Rule {
    let (mut x, at) = (c.tensor(0)?, c.tensor(1)?);
    if cx.b.rank(x) == 1 {
        x = cx.b.unsqueeze(x, 0)?;
    }
    let at = cx.b.cast(at, DType::I64);
    let at = cx.flattened(at)?;
    let mut shape = cx.b.shape(x);
    let last = shape.len().checked_sub(1).ok_or_else(|| malformed("features without an axis"))?;
    shape[last] = cx.b.shape(at)[0].clone();
    let coord = |axis| if axis == last { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(axis)) };
    one(cx.b.gather(x, &[at], (0..=last).map(coord).collect(), &shape)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, float, floats, int, ints};
    use crate::interpret::Tensor;

    #[test]
    fn numbers_are_coded_by_their_keys() {
        let keys = floats("keys_floats", &[3.0, 1.0, f32::NAN, 1.0]);
        let attributes = [keys, ints("values_int64s", &[30, 10, 99, 11]), int("default_int64", -7)];
        let model = Model::new(15).input("x", Tensor::from_f32(&[4], &[1.0, 2.0, 3.0, f32::NAN]));
        assert_eq!(model.of_one("ai.onnx.ml::LabelEncoder", &["x"], &attributes), [11.0, -7.0, 30.0, 99.0]);
    }

    #[test]
    fn features_are_scaled_filled_and_put_side_by_side() {
        let model = Model::new(15).input("x", Tensor::from_f32(&[2, 2], &[1.0, f32::NAN, 3.0, 4.0]));
        let filled = [floats("imputed_value_floats", &[0.0, 5.0]), float("replaced_value_float", f32::NAN)];
        let model = model.node("ai.onnx.ml::Imputer", &["x"], &["filled"], &filled);
        let scaled = [floats("offset", &[1.0]), floats("scale", &[2.0, 10.0])];
        let model = model.node("ai.onnx.ml::Scaler", &["filled"], &["scaled"], &scaled);
        let counts = [ints("inputdimensions", &[2, 1])];
        let found = model.of_one("ai.onnx.ml::FeatureVectorizer", &["scaled", "filled"], &counts);
        assert_eq!(found, [0.0, 40.0, 1.0, 4.0, 30.0, 3.0]);
    }
}
