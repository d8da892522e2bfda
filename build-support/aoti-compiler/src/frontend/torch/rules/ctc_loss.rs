//! The loss of connectionist temporal classification: Graves et al., "Connectionist temporal classification: labelling
//! unsegmented sequence data with recurrent neural networks" (2006), forward.

use super::registry::rules;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::frontend::torch::aten::Arg;
use crate::graph::steps::repeat;
use crate::graph::{BinaryOp, Coord, Relation, Scalar, ScanOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.ctc_loss.IntList" => reduced_loss,
    pure "aten.ctc_loss.Tensor" => reduced_loss,
    pure "aten._ctc_loss.default" => losses_alone,
    pure "aten._ctc_loss.Tensor" => losses_alone,
}

/// What the recursion is over: `t` steps, `n` sequences, and `2 s + 1` positions, where blanks alternate with labels.
struct Sequences {
    /// `[t, n, classes]`.
    log_probabilities: ValueId,
    /// The class at each position, `[n, 2 s + 1]`.
    classes: ValueId,
    /// `i64` `[n]`.
    steps: ValueId,
    /// `i64` `[n]`.
    labels: ValueId,
}

/// The losses without the table of the recursion, which only gradients need.
fn losses_alone(cx: &mut Context, a: &Args) -> Rule {
    let sequences = sequences(cx, a, a.tensor("log_probs")?)?;
    Ok(Outputs::Many(vec![Some(losses(cx, &sequences)?), None]))
}

fn reduced_loss(cx: &mut Context, a: &Args) -> Rule {
    let own = a.tensor("log_probs")?;
    let is_batched = cx.b.rank(own) == 3;
    let batched = if is_batched { own } else { cx.b.unsqueeze(own, 1)? };
    let sequences = sequences(cx, a, batched)?;
    let mut losses = losses(cx, &sequences)?;
    let dtype = cx.b.dtype(losses);
    if a.bool_or("zero_infinity", false)? {
        losses = cx.apply([losses], dtype, |[loss]| loss.equals(f64::INFINITY).select(0.0, loss))?;
    }
    let result = match a.int_or("reduction", 1)? {
        0 if is_batched => losses,
        0 => cx.b.squeeze(losses, &[0])?,
        1 => {
            let shares =
                cx.apply([losses, sequences.labels], dtype, |[loss, labels]| loss / labels.max(1.0))?;
            cx.mean(shares, &[0], false)?
        }
        _ => cx.sum(losses, &[0], false)?,
    };
    Ok(result.into())
}

/// Lengths as a tensor has them, or a list.
fn lengths(cx: &mut Context, a: &Args, name: &str, number: &Expr) -> Result<ValueId, RuleError> {
    let lengths = if let Some(Arg::Tensor(_)) = a.raw(name) {
        let lengths = a.tensor(name)?;
        let lengths = cx.b.cast(lengths, DType::I64);
        cx.at_least_1d(lengths)?
    } else {
        let one = |expr: &Expr| cx.b.index(expr.clone(), &[Expr::int(1)]);
        let all: Vec<ValueId> = a.syms(name)?.iter().map(one).collect();
        cx.b.cat(&all, 0)?
    };
    cx.required_shape(lengths, std::slice::from_ref(number))
}

fn sequences(cx: &mut Context, a: &Args, log_probabilities: ValueId) -> Result<Sequences, RuleError> {
    let shape = cx.b.shape(log_probabilities);
    let [t, n, _] = shape.as_slice() else {
        return Err(RuleError::Malformed("log-probabilities of steps, sequences and classes".to_owned()));
    };
    let steps = lengths(cx, a, "input_lengths", n)?;
    let labels = lengths(cx, a, "target_lengths", n)?;
    let most = cx.b.index(t.clone(), &[]);
    let within = cx.apply([steps, labels, most], DType::I64, |[steps, labels, most]| {
        steps.ge(0.0).and(steps.le(most)).and(labels.ge(0.0))
    })?;
    cx.assert_all(within, "ctc_loss: lengths must be within the sequences")?;
    let classes = classes(cx, a, n, labels)?;
    Ok(Sequences { log_probabilities, classes, steps, labels })
}

/// The class at each position: the blank at even ones, and behind the labels of a sequence.
fn classes(cx: &mut Context, a: &Args, n: &Expr, labels: ValueId) -> Result<ValueId, RuleError> {
    let targets = a.tensor("targets")?;
    let targets = cx.b.cast(targets, DType::I64);
    let shape = cx.b.shape(targets);
    // Rows of labels, or all labels one behind the other.
    let (first, most) = match shape.as_slice() {
        [rows, most] => {
            cx.b.require_same(rows, n)?;
            (cx.b.index(&Expr::axis(0) * most, std::slice::from_ref(n)), most.clone())
        }
        [all] => {
            let ends = cx.b.scan(ScanOp::Sum, labels, 0)?[0];
            (cx.sub(ends, labels)?, most_labels(a, all)?)
        }
        _ => return Err(RuleError::Malformed("targets have one axis or two".to_owned())),
    };
    let within = cx.b.index(most.clone(), &[]);
    let within = cx.binary(Relation::Le, labels, within)?;
    cx.assert_all(within, "ctc_loss: lengths must be within the targets")?;
    let flat = cx.flattened(targets)?;
    let count = cx.b.shape(flat)[0].clone();
    let flat = cx.b.pad(flat, &[(Expr::int(0), Expr::int(1))], 0i64)?;

    let places = [n.clone(), &(&most * 2) + 1];
    let place = cx.b.index(Expr::axis(1), &places);
    let (first, labels) = (cx.b.unsqueeze(first, 1)?, cx.b.unsqueeze(labels, 1)?);
    let number = cx.with_number(BinaryOp::FloorDiv, place, 2i64)?;
    let position = cx.add(number, first)?;
    let last = cx.b.index(count, &[]);
    let position = cx.binary(BinaryOp::Minimum, position, last)?;
    let label = cx.b.rows(flat, position)?;
    let blank = a.number_or("blank", 0i64)?.to_value(cx, DType::I64);
    let (place, number, labels) = (Formula::from(place), Formula::from(number), Formula::from(labels));
    let is_label = place.differs(&number * 2.0).and(number.lt(labels));
    cx.formula(DType::I64, &is_label.select(label, blank))
}

/// The largest number of labels of one sequence, where all lie one behind the other.
fn most_labels(a: &Args, all: &Expr) -> Result<Expr, RuleError> {
    if let Some(Arg::Tensor(_)) = a.raw("target_lengths") {
        return Ok(all.clone());
    }
    let known: Option<Vec<i64>> = a.syms("target_lengths")?.iter().map(Expr::as_int).collect();
    Ok(known.and_then(|lengths| lengths.into_iter().max()).map_or_else(|| all.clone(), Expr::int))
}

/// What is at the position `by` before each, along the last axis; nothing has happened before the first.
fn shifted(cx: &mut Context, x: ValueId, by: i64) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(x);
    let coords = vec![Expr::axis(0), &Expr::axis(1) - by];
    let fill = Scalar::lowest(cx.b.dtype(x));
    Ok(cx.b.padded_view(x, &shape, coords, fill)?)
}

/// The log-probabilities of the classes at all positions, at one step.
fn emitted(cx: &mut Context, all: ValueId, classes: ValueId, step: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(classes);
    let step = cx.b.expand(step, &shape)?;
    let coords = vec![Coord::Indirect(0), Coord::Expr(Expr::axis(0)), Coord::Indirect(1)];
    Ok(cx.b.gather(all, &[step, classes], coords, &shape)?)
}

/// The logarithm of a sum of exponentials; of nothing but -inf, that.
fn log_sum(terms: &[&Formula]) -> Formula {
    let largest = terms[1..].iter().fold(terms[0].clone(), |most, term| most.max(*term));
    let base = largest.equals(f64::NEG_INFINITY).select(0.0, &largest);
    let parts: Vec<Formula> = terms.iter().map(|term| (*term - &base).exp()).collect();
    let sum = parts[1..].iter().fold(parts[0].clone(), |sum, part| sum + part);
    sum.log() + base
}

/// The negative logarithm of each sequence's probability.
fn losses(cx: &mut Context, own: &Sequences) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(own.log_probabilities);
    let shape = cx.b.shape(own.classes);
    let t = cx.b.shape(own.log_probabilities)[0].clone();
    if t.is(0) {
        return Err(RuleError::unsupported("sequences of no steps"));
    }
    let place = cx.b.index(Expr::axis(1), &shape);
    let zero = cx.b.scalar(0i64, DType::I64);
    let first = emitted(cx, own.log_probabilities, own.classes, zero)?;
    let start =
        cx.apply([place, first], dtype, |[place, first]| place.le(1.0).select(first, f64::NEG_INFINITY))?;
    // A label may follow the one before it without a blank between them where the two differ.
    let before = {
        let coords = vec![Expr::axis(0), &Expr::axis(1) - 2];
        cx.b.padded_view(own.classes, &shape, coords, Scalar::Int(-1))?
    };
    let differs = cx.binary(Relation::Ne, own.classes, before)?;
    let follows =
        cx.apply([place, differs], DType::I64, |[place, differs]| place.ge(2.0).and(differs.differs(0.0)))?;
    let steps = cx.b.unsqueeze(own.steps, 1)?;
    let count = cx.b.index(&t - 1, &[]);
    let captured = [own.log_probabilities, own.classes, follows, steps];
    let table = repeat(cx, "ctc", count, &[start], &captured, &mut |cx, number, carried, captured| {
        let ([table], [all, classes, follows, steps]) = (carried, captured) else {
            unreachable!("as many as were given")
        };
        let step = cx.with_number(BinaryOp::Add, number, 1i64)?;
        let now = emitted(cx, *all, *classes, step)?;
        let (one, two) = (shifted(cx, *table, 1)?, shifted(cx, *table, 2)?);
        let is_open = cx.binary(Relation::Lt, step, *steps)?;
        let (table, one, two) = (Formula::from(*table), Formula::from(one), Formula::from(two));
        let two = Formula::from(*follows).select(two, f64::NEG_INFINITY);
        let next = log_sum(&[&table, &one, &two]) + Formula::from(now);
        Ok(vec![cx.formula(dtype, &Formula::from(is_open).select(next, &table))?])
    })?[0];
    ends(cx, own, table)
}

/// The probability of each sequence is that of its last label and that of the blank behind it.
fn ends(cx: &mut Context, own: &Sequences, table: ValueId) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(table);
    let mut found = Vec::new();
    for before in [0, 1] {
        let place =
            cx.apply([own.labels], DType::I64, |[labels]| (labels * 2.0 - f64::from(before)).max(0.0))?;
        let place = cx.b.unsqueeze(place, 1)?;
        let value = super::gather::gather_along(cx, table, 1, place)?;
        found.push(cx.b.squeeze(value, &[1])?);
    }
    let operands = [found[0], found[1]];
    let (labels, steps) = (Formula::from(own.labels), Formula::from(own.steps));
    let [blank, label] = operands.map(Formula::from);
    let label = labels.gt(0.0).select(label, f64::NEG_INFINITY);
    let all = -log_sum(&[&blank, &label]);
    let of_nothing = labels.equals(0.0).select(Formula::from(0.0), f64::INFINITY);
    let of_nothing = of_nothing.cast(dtype);
    cx.formula(dtype, &steps.equals(0.0).select(of_nothing, all))
}
