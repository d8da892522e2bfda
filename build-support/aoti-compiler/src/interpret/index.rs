//! Index expressions made ready for evaluation at many positions of one iteration space.
//!
//! Each expression is taken apart once per node; it is not simplified, so that an error of the simplifier shows.

use super::EvalError;
use crate::symbolic::{Expr, Node, Symbol, SymbolKind};

/// Values of the size symbols; `None` while unknown.
#[derive(Clone, Default, Debug)]
pub(super) struct Symbols(pub(super) Vec<Option<i64>>);

impl Symbols {
    pub(super) fn get(&self, symbol: Symbol) -> Option<i64> {
        match symbol.kind {
            SymbolKind::Size => self.0.get(symbol.index as usize).copied().flatten(),
            SymbolKind::Axis => None,
        }
    }

    pub(super) fn value(&self, expr: &Expr) -> Result<i64, EvalError> {
        expr.evaluate(&|symbol| self.get(symbol)).ok_or_else(|| EvalError::Size { expr: expr.to_string() })
    }

    pub(super) fn sizes(&self, shape: &[Expr]) -> Result<Vec<usize>, EvalError> {
        shape
            .iter()
            .map(|size| {
                let value = self.value(size)?;
                usize::try_from(value).map_err(|_| EvalError::Size { expr: size.to_string() })
            })
            .collect()
    }
}

/// An expression over axes, ready to be evaluated.
pub(super) enum IndexFn {
    /// `constant + sum of coefficients[k] * axis k`.
    Affine { constant: i64, coefficients: Vec<i64> },
    /// Postfix steps over a stack.
    Steps { steps: Vec<Step>, text: String },
}

#[derive(Clone, Copy)]
pub(super) enum Step {
    Push(i64),
    Axis(usize),
    Add,
    Mul,
    FloorDiv,
    Mod,
    Min,
    Max,
}

impl IndexFn {
    /// Prepares `expr` over `rank` axes.
    pub(super) fn new(expr: &Expr, rank: usize, symbols: &Symbols) -> Result<IndexFn, EvalError> {
        if let Some((constant, coefficients)) = affine(expr, rank, symbols) {
            return Ok(IndexFn::Affine { constant, coefficients });
        }
        let mut steps = Vec::new();
        compile(expr, rank, symbols, &mut steps)?;
        Ok(IndexFn::Steps { steps, text: expr.to_string() })
    }

    /// The value at a position.
    pub(super) fn at(&self, position: &[usize], stack: &mut Vec<i64>) -> Result<i64, EvalError> {
        match self {
            IndexFn::Affine { constant, coefficients } => {
                let add = |sum: i64, (c, p): (&i64, &usize)| sum.checked_add(c.checked_mul(*p as i64)?);
                let sum = coefficients.iter().zip(position).try_fold(*constant, add);
                sum.ok_or_else(|| EvalError::Size { expr: "a position".to_owned() })
            }
            IndexFn::Steps { steps, text } => {
                run(steps, position, stack).ok_or_else(|| EvalError::Size { expr: text.clone() })
            }
        }
    }
}

fn run(steps: &[Step], position: &[usize], stack: &mut Vec<i64>) -> Option<i64> {
    stack.clear();
    for step in steps {
        match step {
            Step::Push(value) => stack.push(*value),
            Step::Axis(axis) => stack.push(position[*axis] as i64),
            Step::Add | Step::Mul | Step::FloorDiv | Step::Mod | Step::Min | Step::Max => {
                let (b, a) = (stack.pop()?, stack.pop()?);
                stack.push(apply(*step, a, b)?);
            }
        }
    }
    stack.pop()
}

fn apply(step: Step, a: i64, b: i64) -> Option<i64> {
    match step {
        Step::Push(_) | Step::Axis(_) => None,
        Step::Add => a.checked_add(b),
        Step::Mul => a.checked_mul(b),
        Step::FloorDiv => {
            let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
            Some(if rest != 0 && (rest < 0) != (b < 0) { quotient - 1 } else { quotient })
        }
        Step::Mod => {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }
        Step::Min => Some(a.min(b)),
        Step::Max => Some(a.max(b)),
    }
}

fn compile(expr: &Expr, rank: usize, symbols: &Symbols, steps: &mut Vec<Step>) -> Result<(), EvalError> {
    let mut both = |a: &Expr, b: &Expr, step: Step| {
        compile(a, rank, symbols, steps)?;
        compile(b, rank, symbols, steps)?;
        steps.push(step);
        Ok(())
    };
    match expr.node() {
        Node::FloorDiv(a, b) => return both(a, b, Step::FloorDiv),
        Node::Mod(a, b) => return both(a, b, Step::Mod),
        Node::Min(a, b) => return both(a, b, Step::Min),
        Node::Max(a, b) => return both(a, b, Step::Max),
        Node::Int(value) => steps.push(Step::Push(*value)),
        Node::Sym(symbol) => steps.push(match axis_of(*symbol, rank) {
            Some(axis) => Step::Axis(axis),
            None => Step::Push(symbols.value(expr)?),
        }),
        Node::Sum { constant, terms } => {
            steps.push(Step::Push(*constant));
            for (term, coefficient) in terms {
                compile(term, rank, symbols, steps)?;
                steps.extend([Step::Push(*coefficient), Step::Mul, Step::Add]);
            }
        }
        Node::Product(factors) => {
            steps.push(Step::Push(1));
            for factor in factors {
                compile(factor, rank, symbols, steps)?;
                steps.push(Step::Mul);
            }
        }
    }
    Ok(())
}

fn axis_of(symbol: Symbol, rank: usize) -> Option<usize> {
    let axis = symbol.index as usize;
    (symbol.kind == SymbolKind::Axis && axis < rank).then_some(axis)
}

/// Constant and one coefficient per axis, where the expression is affine in the axes.
fn affine(expr: &Expr, rank: usize, symbols: &Symbols) -> Option<(i64, Vec<i64>)> {
    let known = |value: i64| Some((value, vec![0; rank]));
    match expr.node() {
        Node::Int(value) => known(*value),
        Node::Sym(symbol) => match axis_of(*symbol, rank) {
            Some(axis) => {
                let mut coefficients = vec![0; rank];
                coefficients[axis] = 1;
                Some((0, coefficients))
            }
            None => known(symbols.get(*symbol)?),
        },
        Node::Sum { constant, terms } => {
            let mut sum = (*constant, vec![0i64; rank]);
            for (term, scale) in terms {
                let part = affine(term, rank, symbols)?;
                sum.0 = sum.0.checked_add(part.0.checked_mul(*scale)?)?;
                for (total, coefficient) in sum.1.iter_mut().zip(part.1) {
                    *total = total.checked_add(coefficient.checked_mul(*scale)?)?;
                }
            }
            Some(sum)
        }
        Node::Product(factors) => factors.iter().try_fold((1, vec![0; rank]), |product, factor| {
            let factor = affine(factor, rank, symbols)?;
            let is_known = |part: &(i64, Vec<i64>)| part.1.iter().all(|coefficient| *coefficient == 0);
            match (is_known(&product), is_known(&factor)) {
                (true, _) => scaled(&factor, product.0),
                (false, true) => scaled(&product, factor.0),
                (false, false) => None,
            }
        }),
        Node::FloorDiv(..) | Node::Mod(..) | Node::Min(..) | Node::Max(..) => {
            known(expr.evaluate(&|symbol| symbols.get(symbol))?)
        }
    }
}

fn scaled(part: &(i64, Vec<i64>), scale: i64) -> Option<(i64, Vec<i64>)> {
    let coefficients: Option<Vec<i64>> = part.1.iter().map(|c| c.checked_mul(scale)).collect();
    Some((part.0.checked_mul(scale)?, coefficients?))
}

/// Steps to the next position of a row-major walk; false at the end.
pub(super) fn advance(position: &mut [usize], sizes: &[usize]) -> bool {
    for (p, size) in position.iter_mut().zip(sizes).rev() {
        *p += 1;
        if *p < *size {
            return true;
        }
        *p = 0;
    }
    false
}

/// Row-major strides in elements.
pub(super) fn strides(sizes: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; sizes.len()];
    for axis in (1..sizes.len()).rev() {
        strides[axis - 1] = strides[axis] * sizes[axis];
    }
    strides
}
