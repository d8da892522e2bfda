//! Calls of functions that the user's project has, with all that they are given beside tensors.

use crate::symbolic::Expr;

/// A call of a function with C linkage. What it computes is not known here: only its types are.
#[derive(Clone, PartialEq, Debug)]
pub struct ExternCall {
    /// The operator, such as `mylib::scaled`.
    pub operator: String,
    /// What the linker calls the function.
    pub symbol: String,
    /// What it is given, in order.
    pub arguments: Vec<ExternArgument>,
    /// Of each result in order: `None` is one tensor, else it is a list of so many. Behind them come the changed operands.
    pub results: Vec<Option<usize>>,
}

/// What a function is given for one argument.
#[derive(Clone, PartialEq, Debug)]
pub enum ExternArgument {
    /// The next operand.
    Tensor,
    /// The next operand, which the function changes in place: it gets a copy, which is a further result.
    Changed,
    /// No tensor where there could be one.
    NoTensor,
    /// So many of the next operands.
    Tensors(usize),
    /// A number.
    Number(Number),
    /// A number where there could be none, or none.
    Optional(NumberKind, Option<Number>),
    /// Numbers of one kind, or no list where there could be one.
    Numbers(NumberKind, Option<Vec<Number>>),
    /// Text, or none.
    Text(Option<String>),
}

/// A number.
#[derive(Clone, PartialEq, Debug)]
pub enum Number {
    /// A whole number over the program's sizes.
    Int(Expr),
    /// A number with a point.
    Float(f64),
    /// A truth value.
    Bool(bool),
}

/// The kind of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumberKind {
    /// 64 bits.
    Int,
    /// Double precision.
    Float,
    /// One byte.
    Bool,
}

impl NumberKind {
    /// All, by name.
    const NAMES: [(NumberKind, &'static str); 3] =
        [(NumberKind::Int, "int"), (NumberKind::Float, "float"), (NumberKind::Bool, "bool")];

    /// As in text forms.
    pub fn name(self) -> &'static str {
        match self {
            NumberKind::Int => "int",
            NumberKind::Float => "float",
            NumberKind::Bool => "bool",
        }
    }

    /// The inverse of [`NumberKind::name`].
    pub fn from_name(name: &str) -> Option<NumberKind> {
        NumberKind::NAMES.into_iter().find(|(_, own)| *own == name).map(|(kind, _)| kind)
    }
}

impl Number {
    /// Its kind.
    pub fn kind(&self) -> NumberKind {
        match self {
            Number::Int(_) => NumberKind::Int,
            Number::Float(_) => NumberKind::Float,
            Number::Bool(_) => NumberKind::Bool,
        }
    }
}

impl ExternArgument {
    /// How many operands belong to it.
    pub fn operands(&self) -> usize {
        match self {
            ExternArgument::Tensor | ExternArgument::Changed => 1,
            ExternArgument::Tensors(count) => *count,
            ExternArgument::NoTensor
            | ExternArgument::Number(_)
            | ExternArgument::Optional(..)
            | ExternArgument::Numbers(..)
            | ExternArgument::Text(_) => 0,
        }
    }

    /// The numbers in it.
    pub fn numbers(&self) -> &[Number] {
        match self {
            ExternArgument::Number(number) | ExternArgument::Optional(_, Some(number)) => {
                std::slice::from_ref(number)
            }
            ExternArgument::Numbers(_, Some(numbers)) => numbers,
            ExternArgument::Optional(_, None)
            | ExternArgument::Numbers(_, None)
            | ExternArgument::Tensor
            | ExternArgument::Changed
            | ExternArgument::NoTensor
            | ExternArgument::Tensors(_)
            | ExternArgument::Text(_) => &[],
        }
    }
}

impl ExternCall {
    /// How many operands it has.
    pub fn n_operands(&self) -> usize {
        // Text may claim any number.
        self.arguments.iter().map(ExternArgument::operands).fold(0, usize::saturating_add)
    }

    /// How many tensors it gives, with those that it changes.
    pub fn n_results(&self) -> usize {
        self.results.iter().map(|count| count.unwrap_or(1)).fold(self.n_changed(), usize::saturating_add)
    }

    /// How many of its operands it changes.
    pub fn n_changed(&self) -> usize {
        self.arguments.iter().filter(|argument| **argument == ExternArgument::Changed).count()
    }

    /// The sizes among its arguments.
    pub fn sizes(&self) -> impl Iterator<Item = &Expr> {
        self.arguments.iter().flat_map(ExternArgument::numbers).filter_map(|number| match number {
            Number::Int(expr) => Some(expr),
            Number::Float(_) | Number::Bool(_) => None,
        })
    }
}
