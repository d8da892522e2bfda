//! Sums of products over named axes.
//!
//! Operands are combined two at a time from the left: axes that nobody needs any more are summed, axes of both are a
//! batch or contracted, the rest are rows and columns of one matrix product.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::graph::ValueId;
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.einsum.default" => einsum_rule,
    pure "aten.tensordot.default" => tensordot,
    pure "aten._trilinear.default" => trilinear,
}

/// A name of an axis: a letter, or the k-th axis under an ellipsis counted from the right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// A tensor with a distinct label for each axis.
struct Labelled {
    value: ValueId,
    labels: Vec<Label>,
}

fn einsum_rule(cx: &mut Context, a: &Args) -> Rule {
    let equation = a.str_or("equation", "")?;
    let tensors = a.tensors("tensors")?;
    Ok(einsum(cx, equation, &tensors)?.into())
}

/// `torch.einsum` in its text form.
pub(crate) fn einsum(cx: &mut Context, equation: &str, tensors: &[ValueId]) -> Result<ValueId, RuleError> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != tensors.len() {
        return Err(malformed(format!("{} terms for {} tensors", terms.len(), tensors.len())));
    }
    let mut operands = Vec::new();
    for (term, value) in terms.iter().zip(tensors) {
        let labels = parse_term(term, Some(cx.b.rank(*value)))?;
        operands.push(diagonals(cx, *value, labels)?);
    }
    let output = match right {
        Some(text) => output_labels(text, &operands)?,
        None => implicit_output(&terms, &operands),
    };
    contract_all(cx, operands, &output)
}

fn malformed(reason: String) -> RuleError {
    RuleError::Malformed(format!("einsum: {reason}"))
}

/// The labels of one term; an ellipsis takes what `rank` leaves for it.
fn parse_term(term: &str, rank: Option<usize>) -> Result<Vec<Label>, RuleError> {
    let (before, after, ellipsis) = match term.split_once("...") {
        Some((before, after)) => (before, after, true),
        None => (term, "", false),
    };
    let named = before.chars().count() + after.chars().count();
    let hidden = match rank {
        Some(rank) if ellipsis && rank >= named => rank - named,
        Some(rank) if !ellipsis && rank == named => 0,
        Some(rank) => return Err(malformed(format!("`{term}` does not fit a tensor of {rank} axes"))),
        None => 0,
    };
    let mut labels = Vec::new();
    letters(before, &mut labels)?;
    labels.extend((0..hidden).rev().map(Label::Ellipsis));
    letters(after, &mut labels)?;
    Ok(labels)
}

fn letters(text: &str, labels: &mut Vec<Label>) -> Result<(), RuleError> {
    for c in text.chars() {
        if !c.is_ascii_alphabetic() {
            return Err(malformed(format!("`{c}` is not a letter")));
        }
        labels.push(Label::Letter(c));
    }
    Ok(())
}

/// Number of axes under the widest ellipsis.
fn hidden_axes(operands: &[Labelled]) -> usize {
    let all = operands.iter().flat_map(|operand| &operand.labels);
    all.filter_map(|label| if let Label::Ellipsis(k) = label { Some(k + 1) } else { None }).max().unwrap_or(0)
}

fn output_labels(text: &str, operands: &[Labelled]) -> Result<Vec<Label>, RuleError> {
    let named = text.replace("...", "").chars().count();
    let hidden = if text.contains("...") { hidden_axes(operands) } else { 0 };
    let labels = parse_term(text, Some(named + hidden))?;
    for (k, label) in labels.iter().enumerate() {
        let known = operands.iter().any(|operand| operand.labels.contains(label));
        if labels[..k].contains(label) || !known {
            return Err(malformed(format!("output `{text}` repeats an axis or names an unknown one")));
        }
    }
    Ok(labels)
}

/// Without an arrow: the ellipsis, then letters that occur once, in alphabetical order.
fn implicit_output(terms: &[&str], operands: &[Labelled]) -> Vec<Label> {
    let mut labels: Vec<Label> = (0..hidden_axes(operands)).rev().map(Label::Ellipsis).collect();
    let all: String = terms.concat();
    let mut once: Vec<char> = all
        .chars()
        .filter(|c| c.is_ascii_alphabetic() && all.chars().filter(|other| other == c).count() == 1)
        .collect();
    once.sort_unstable();
    labels.extend(once.into_iter().map(Label::Letter));
    labels
}

/// Takes the diagonal of axes that share a label.
fn diagonals(cx: &mut Context, value: ValueId, labels: Vec<Label>) -> Result<Labelled, RuleError> {
    let mut distinct: Vec<Label> = Vec::new();
    for label in &labels {
        if !distinct.contains(label) {
            distinct.push(*label);
        }
    }
    if distinct.len() == labels.len() {
        return Ok(Labelled { value, labels });
    }
    let own = cx.b.shape(value);
    let position = |label: &Label| distinct.iter().position(|other| other == label).expect("collected above");
    let mut shape = vec![Expr::int(1); distinct.len()];
    for (label, size) in labels.iter().zip(&own) {
        if shape[position(label)].is(1) {
            shape[position(label)] = size.clone();
        }
    }
    let coords = labels
        .iter()
        .zip(&own)
        .map(|(label, size)| if size.is(1) { Expr::int(0) } else { Expr::axis(position(label)) })
        .collect();
    Ok(Labelled { value: cx.b.view(value, &shape, coords)?, labels: distinct })
}

fn contract_all(cx: &mut Context, operands: Vec<Labelled>, output: &[Label]) -> Result<ValueId, RuleError> {
    let mut rest = std::collections::VecDeque::from(operands);
    let Some(mut current) = rest.pop_front() else {
        return Err(malformed("no tensors".to_owned()));
    };
    while let Some(next) = rest.pop_front() {
        let needed = |label: &Label| {
            output.contains(label) || rest.iter().any(|operand| operand.labels.contains(label))
        };
        current = contract(cx, current, next, &needed)?;
    }
    let current = sum_unneeded(cx, current, &|label| output.contains(label))?;
    let mut order = Vec::new();
    for label in output {
        let position = current.labels.iter().position(|other| other == label);
        order.push(position.ok_or_else(|| malformed("an axis of the output is in no tensor".to_owned()))?);
    }
    Ok(cx.b.permute(current.value, &order)?)
}

fn sum_unneeded(
    cx: &mut Context,
    operand: Labelled,
    needed: &dyn Fn(&Label) -> bool,
) -> Result<Labelled, RuleError> {
    let axes: Vec<usize> = (0..operand.labels.len()).filter(|axis| !needed(&operand.labels[*axis])).collect();
    if axes.is_empty() {
        return Ok(operand);
    }
    let value = cx.sum(operand.value, &axes, false)?;
    let labels = operand.labels.into_iter().filter(|label| needed(label)).collect();
    Ok(Labelled { value, labels })
}

/// The product of two operands, summed over the axes that are not needed afterwards.
fn contract(
    cx: &mut Context,
    a: Labelled,
    b: Labelled,
    needed: &dyn Fn(&Label) -> bool,
) -> Result<Labelled, RuleError> {
    let (a_labels, b_labels) = (a.labels.clone(), b.labels.clone());
    let mut a = sum_unneeded(cx, a, &|label| needed(label) || b_labels.contains(label))?;
    let mut b = sum_unneeded(cx, b, &|label| needed(label) || a_labels.contains(label))?;
    let shared: Vec<Label> = a.labels.iter().copied().filter(|label| b.labels.contains(label)).collect();
    equalize(cx, &mut a, &mut b, &shared)?;
    let (batch, inner): (Vec<Label>, Vec<Label>) = shared.iter().partition(|label| needed(label));
    let rows: Vec<Label> = a.labels.iter().copied().filter(|label| !shared.contains(label)).collect();
    let columns: Vec<Label> = b.labels.iter().copied().filter(|label| !shared.contains(label)).collect();
    let labels = [batch.as_slice(), &rows, &columns].concat();
    let (a_shape, b_shape) = (sizes(cx, &a, &rows), sizes(cx, &b, &columns));
    let batch_shape = sizes(cx, &a, &batch);
    if inner.is_empty() {
        let left = ordered(cx, &a, &[&batch, &rows])?;
        let left = cx.trailing_ones(left, labels.len())?;
        let right = ordered(cx, &b, &[&batch, &columns])?;
        let gap = vec![Expr::int(1); rows.len()];
        let right = cx.b.reshape(right, &[batch_shape.as_slice(), &gap, &b_shape].concat())?;
        return Ok(Labelled { value: cx.mul(left, right)?, labels });
    }
    let inner_size = Expr::product(&sizes(cx, &a, &inner));
    let left = ordered(cx, &a, &[&batch, &rows, &inner])?;
    let left_shape = [batch_shape.as_slice(), &[Expr::product(&a_shape), inner_size.clone()]].concat();
    let left = cx.b.reshape(left, &left_shape)?;
    let right = ordered(cx, &b, &[&batch, &inner, &columns])?;
    let right_shape = [batch_shape.as_slice(), &[inner_size, Expr::product(&b_shape)]].concat();
    let right = cx.b.reshape(right, &right_shape)?;
    let product = cx.b.matmul(left, right)?;
    let value = cx.b.reshape(product, &[batch_shape, a_shape, b_shape].concat())?;
    Ok(Labelled { value, labels })
}

/// Broadcasts shared axes of size 1 to the other operand's size.
fn equalize(cx: &mut Context, a: &mut Labelled, b: &mut Labelled, shared: &[Label]) -> Result<(), RuleError> {
    for label in shared {
        let (a_size, b_size) = (sizes(cx, a, &[*label]).remove(0), sizes(cx, b, &[*label]).remove(0));
        if a_size.is(1) && !b_size.is(1) {
            widen(cx, a, *label, b_size)?;
        } else if b_size.is(1) && !a_size.is(1) {
            widen(cx, b, *label, a_size)?;
        }
    }
    Ok(())
}

fn widen(cx: &mut Context, x: &mut Labelled, label: Label, size: Expr) -> Result<(), RuleError> {
    let mut shape = cx.b.shape(x.value);
    let axis = x.labels.iter().position(|other| *other == label).expect("a label of this operand");
    shape[axis] = size;
    x.value = cx.b.expand(x.value, &shape)?;
    Ok(())
}

fn sizes(cx: &Context, x: &Labelled, labels: &[Label]) -> Vec<Expr> {
    let shape = cx.b.shape(x.value);
    labels
        .iter()
        .map(|label| {
            let axis = x.labels.iter().position(|other| other == label).expect("a label of this operand");
            shape[axis].clone()
        })
        .collect()
}

fn ordered(cx: &mut Context, x: &Labelled, groups: &[&[Label]]) -> Result<ValueId, RuleError> {
    let order: Vec<usize> = groups
        .concat()
        .iter()
        .map(|label| x.labels.iter().position(|other| other == label).expect("a label of this operand"))
        .collect();
    Ok(cx.b.permute(x.value, &order)?)
}

fn tensordot(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("self")?, a.tensor("other")?);
    let x_axes = contracted_axes(&a.ints("dims_self")?, cx.b.rank(x))?;
    let y_axes = contracted_axes(&a.ints("dims_other")?, cx.b.rank(y))?;
    if x_axes.len() != y_axes.len() {
        return Err(RuleError::Malformed("both tensors contract equally many axes".to_owned()));
    }
    // Axes of the right tensor are named like the left's they meet; all others are distinct.
    let x_labels: Vec<Label> = (0..cx.b.rank(x)).map(Label::Ellipsis).collect();
    let mut y_labels: Vec<Label> = (0..cx.b.rank(y)).map(|axis| Label::Ellipsis(1000 + axis)).collect();
    for (from, to) in x_axes.iter().zip(&y_axes) {
        y_labels[*to] = Label::Ellipsis(*from);
    }
    let mut output: Vec<Label> = x_labels.iter().filter(|label| !y_labels.contains(label)).copied().collect();
    output.extend(y_labels.iter().filter(|label| !x_labels.contains(label)));
    let operands = vec![Labelled { value: x, labels: x_labels }, Labelled { value: y, labels: y_labels }];
    Ok(contract_all(cx, operands, &output)?.into())
}

fn contracted_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, RuleError> {
    axes.iter().map(|axis| Context::axis(*axis, rank)).collect()
}

/// The product of three tensors, each with axes of size 1 inserted, summed over some of the common axes.
fn trilinear(cx: &mut Context, a: &Args) -> Rule {
    let mut operands = Vec::new();
    let mut rank = 0;
    for (name, inserted) in [("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3")] {
        let (value, inserted) = (a.tensor(name)?, a.ints(inserted)?);
        rank = cx.b.rank(value) + inserted.len();
        let inserted = contracted_axes(&inserted, rank)?;
        let labels = (0..rank).filter(|axis| !inserted.contains(axis)).map(Label::Ellipsis).collect();
        operands.push(Labelled { value, labels });
    }
    let summed = contracted_axes(&a.ints("sumdim")?, rank)?;
    let output: Vec<Label> = (0..rank).filter(|axis| !summed.contains(axis)).map(Label::Ellipsis).collect();
    let fits = operands.iter().all(|operand| operand.labels.len() == cx.b.rank(operand.value));
    if !fits {
        return Err(RuleError::Malformed("axes are inserted twice".to_owned()));
    }
    Ok(contract_all(cx, operands, &output)?.into())
}

#[cfg(test)]
mod tests {
    use super::{Label, parse_term};

    #[test]
    fn an_ellipsis_takes_what_is_left() {
        let labels = parse_term("a...b", Some(4)).unwrap();
        let expected = [Label::Letter('a'), Label::Ellipsis(1), Label::Ellipsis(0), Label::Letter('b')];
        assert_eq!(labels, expected);
        assert!(parse_term("ab", Some(3)).is_err());
        assert!(parse_term("a1", Some(2)).is_err());
    }
}
