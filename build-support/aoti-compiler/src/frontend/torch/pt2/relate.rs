//! Comparisons as the export writes them, whose constants may be beyond what sizes count in: bounds of 64 bits, and the
//! largest numbers of floating-point types.
//!
//! A comparison becomes one of an expression and a constant, and what a constant beyond 64 bits leaves of it is whether the
//! expression can be computed.

use super::expr::{Scope, Tree};
use super::numeric::swapped;
use crate::graph::{Condition, Relation};
use crate::symbolic::Expr;

/// The condition, where one side is a number that expressions cannot hold; `None` where none is.
pub(super) fn with_large_constant(
    left: &Tree,
    relation: Relation,
    right: &Tree,
    scope: &mut dyn Scope,
) -> Result<Option<Condition>, String> {
    match (left, right) {
        (Tree::Real(left), Tree::Real(right)) => Ok(Some(constant(relation.holds(*left, *right)))),
        (tree, Tree::Real(number)) => Ok(Some(with_real(&tree.integer(scope)?, relation, *number))),
        (Tree::Real(number), tree) => Ok(Some(with_real(&tree.integer(scope)?, swapped(relation), *number))),
        (
            Tree::Int(_) | Tree::Symbol(_) | Tree::Size(..) | Tree::Value(_) | Tree::Call(..),
            Tree::Int(_) | Tree::Symbol(_) | Tree::Size(..) | Tree::Value(_) | Tree::Call(..),
        ) => {
            let ((low, left), (high, right)) = (split(left), split(right));
            if is_plain(low) && is_plain(high) {
                return Ok(None);
            }
            let negated = right.into_iter().map(|term| product(-1, term));
            let gap =
                Tree::Call("Add".to_owned(), left.into_iter().chain(negated).chain([Tree::Int(0)]).collect());
            Ok(Some(with_integer(&gap.integer(scope)?, relation, high - low)))
        }
    }
}

/// Whether arithmetic of expressions keeps a number. Constructors saturate, so that the ends of 64 bits do not come through.
fn is_plain(number: i128) -> bool {
    number.unsigned_abs() < u128::from(i64::MAX.unsigned_abs())
}

fn product(factor: i64, tree: Tree) -> Tree {
    Tree::Call("Mul".to_owned(), vec![Tree::Int(factor), tree])
}

/// The numbers of a sum, and its other terms.
fn split(tree: &Tree) -> (i128, Vec<Tree>) {
    match tree {
        Tree::Int(number) => (i128::from(*number), vec![]),
        Tree::Call(name, args) if name == "Add" => {
            args.iter().map(split).fold((0, vec![]), |(sum, mut terms), (number, more)| {
                terms.extend(more);
                (sum + number, terms)
            })
        }
        Tree::Symbol(_) | Tree::Size(..) | Tree::Value(_) | Tree::Real(_) | Tree::Call(..) => {
            (0, vec![tree.clone()])
        }
    }
}

/// An integer is at most a real number if it is at most the largest integer that is.
fn with_real(value: &Expr, relation: Relation, number: f64) -> Condition {
    // What is beyond 128 bits becomes their end; NaN, which nothing relates to, is not what programs have.
    let (floor, ceiling) = (number.floor() as i128, number.ceil() as i128);
    match relation {
        Relation::Le | Relation::Gt => with_integer(value, relation, floor),
        Relation::Lt | Relation::Ge => with_integer(value, relation, ceiling),
        Relation::Eq | Relation::Ne if number.fract() != 0.0 => constant(relation == Relation::Ne),
        Relation::Eq | Relation::Ne => with_integer(value, relation, floor),
    }
}

fn with_integer(value: &Expr, relation: Relation, number: i128) -> Condition {
    if is_plain(number) {
        let number = i64::try_from(number).expect("plain numbers are within 64 bits");
        return Condition::compare(value.clone(), relation, number);
    }
    let holds = match relation {
        Relation::Le | Relation::Lt => number > 0,
        Relation::Ge | Relation::Gt => number < 0,
        Relation::Eq => false,
        Relation::Ne => true,
    };
    // The ends themselves count as beyond: a program that means them means what 64 bits hold.
    if holds { Condition::Fits(value.clone()) } else { Condition::FALSE }
}

fn constant(holds: bool) -> Condition {
    if holds { Condition::TRUE } else { Condition::FALSE }
}
