//! Programs at the level of ATen calls, as `torch.export` gives them: what a `.pt2` front end produces and what
//! [`crate::frontend::torch::functionalize`] turns into a core graph.
//!
//! Calls may mutate and alias their operands here. Knows no file format.

mod statistics;
mod substitute;
pub mod text;
mod verify;

pub use statistics::{STATISTICS, updates_statistics, updates_where};
pub use verify::verify;

use crate::dtype::DType;
use crate::graph::{Condition, Constant, Guard, Origin, SymbolInfo};
use crate::symbolic::Expr;
use indexmap::IndexMap;

/// What the program says of one tensor value.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorMeta {
    /// Element type; of complex numbers, that of their parts.
    pub dtype: DType,
    /// Whether the elements are complex numbers.
    pub is_complex: bool,
    /// Sizes, outermost first.
    pub sizes: Vec<Expr>,
    /// Strides in elements.
    pub strides: Vec<Expr>,
    /// Offset into its storage in elements.
    pub storage_offset: Expr,
}

impl TensorMeta {
    /// The sizes of what holds the elements: the parts of complex numbers are one axis more.
    pub fn stored_sizes(&self) -> Vec<Expr> {
        let parts = self.is_complex.then(|| Expr::int(2));
        self.sizes.iter().cloned().chain(parts).collect()
    }
}

/// An argument of a call. Symbolic integers are resolved to expressions over the program's symbols.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// `None`.
    None,
    /// A tensor value by name.
    Tensor(String),
    /// A list of tensors; absent ones are `None`.
    Tensors(Vec<Option<String>>),
    /// An integer, perhaps symbolic.
    Int(Expr),
    /// Integers, perhaps symbolic.
    Ints(Vec<Expr>),
    /// A floating-point number.
    Float(f64),
    /// Floating-point numbers.
    Floats(Vec<f64>),
    /// A complex number.
    Complex {
        /// Its real part.
        re: f64,
        /// Its imaginary part.
        im: f64,
    },
    /// A truth value.
    Bool(bool),
    /// Truth values.
    Bools(Vec<bool>),
    /// A truth value over the program's symbols.
    Condition(Condition),
    /// A truth value that a call computes, by name.
    SymBool(String),
    /// A floating-point number that a call computes, by name.
    SymFloat(String),
    /// Text.
    Str(String),
    /// An element type; of complex numbers, that of their parts.
    DType(DType),
    /// A device, layout or memory format, kept as text.
    Other(String),
    /// A body of a higher-order operator.
    Graph(Box<Program>),
}

impl Arg {
    /// The names of the tensors that it mentions, in order; numbers that calls compute count as tensors.
    pub fn tensors(&self) -> Vec<&str> {
        if let Arg::Tensor(name) | Arg::SymBool(name) | Arg::SymFloat(name) = self {
            return vec![name];
        }
        let Arg::Tensors(names) = self else { return vec![] };
        names.iter().flatten().map(String::as_str).collect()
    }

    /// The body that it is, if it is one.
    pub fn graph(&self) -> Option<&Program> {
        let Arg::Graph(body) = self else { return None };
        Some(body)
    }
}

/// A result of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// A tensor.
    Tensor(String),
    /// A list of tensors.
    Tensors(Vec<String>),
    /// A symbolic integer, whose value over the program's symbols is known from [`Program::sym_ints`].
    SymInt(String),
    /// A symbolic truth value. Where it is one of sizes, [`Program::conditions`] has it.
    SymBool(String),
    /// A floating-point scalar.
    SymFloat(String),
    /// Absent.
    None,
}

impl Output {
    /// The name, if it is one tensor.
    pub fn tensor(&self) -> Option<&str> {
        let Output::Tensor(name) = self else { return None };
        Some(name)
    }

    /// The names of the tensors that it defines, in order.
    pub fn tensors(&self) -> Vec<&str> {
        if let Output::Tensors(names) = self {
            return names.iter().map(String::as_str).collect();
        }
        self.tensor().into_iter().collect()
    }
}

/// One call.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// The operator overload without `torch.ops.`: `aten.add.Tensor`, `_operator.ge`, `higher_order.cond`.
    pub target: String,
    /// Arguments by their schema names, in order; defaulted ones are absent.
    pub args: Vec<(String, Arg)>,
    /// Results in order.
    pub outputs: Vec<Output>,
    /// Place in the user's program.
    pub origin: Origin,
}

/// What an input of a program is for.
#[derive(Clone, PartialEq, Debug)]
pub enum InputKind {
    /// A tensor given by the caller.
    User,
    /// A number given by the caller as a size symbol (its expression is a symbol), or specialised to a constant.
    UserInt(Expr),
    /// A constant user argument (number, text or `None`) that was specialised when the program was exported; it is
    /// not passed at run time.
    UserConstant,
    /// A parameter, buffer or constant; the key of [`Program::constants`].
    Constant(String),
}

/// An input of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramInput {
    /// The value's name in the program.
    pub name: String,
    /// What it is for.
    pub kind: InputKind,
}

/// What an output of a program is for.
#[derive(Clone, PartialEq, Debug)]
pub enum OutputKind {
    /// A result for the caller.
    User,
    /// The next value of the buffer of this qualified name.
    BufferMutation(String),
    /// The next value of the user input of this value name.
    InputMutation(String),
}

/// An output of a program: usually a tensor; constants and sizes may be returned too.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramOutput {
    /// The returned value.
    pub value: Arg,
    /// What it is for.
    pub kind: OutputKind,
    /// What the user calls it, where the program says: the key of a dictionary, the field of a named tuple.
    pub name: Option<String>,
}

/// A program of ATen calls. Also the body of a higher-order operator; then it has no constants or symbols of its own.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Program {
    /// The model's name.
    pub name: String,
    /// Size symbols; `Symbol::size(k)` is entry `k`.
    pub symbols: Vec<SymbolInfo>,
    /// Conditions between sizes stated by the export.
    pub guards: Vec<Guard>,
    /// Inputs in order: lifted parameters and constants first, then the user's.
    pub inputs: Vec<ProgramInput>,
    /// Outputs in order.
    pub outputs: Vec<ProgramOutput>,
    /// Calls in execution order.
    pub calls: Vec<Call>,
    /// What is said of each tensor value.
    pub tensors: IndexMap<String, TensorMeta>,
    /// The value of each symbolic integer that the program names.
    pub sym_ints: IndexMap<String, Expr>,
    /// The value of each symbolic truth value that is one of sizes.
    pub conditions: IndexMap<String, Condition>,
    /// Parameters, buffers and constants by qualified name: contiguous.
    pub constants: IndexMap<String, Constant>,
}
