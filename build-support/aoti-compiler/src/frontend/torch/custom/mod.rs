//! Custom operators: a project's declarations, checked before any program is looked at.
//!
//! Knows schemas as `torch.library` writes them. What becomes of a call is decided where programs are decomposed.

mod rust;
mod schema;

pub use schema::{Argument, Default, Returned, Schema, SchemaError, Type};

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::graph::{self, Graph, Op};
use crate::names;
use indexmap::IndexMap;

/// An operator as a project declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operator {
    /// Its name as `torch.library` has it, `mylib::scaled` or `mylib::scaled.overload`, or with a domain of ONNX:
    /// `com.example::Scaled`.
    pub name: String,
    /// Its schema: `(Tensor x, float factor) -> Tensor`, with or without the name in front.
    pub schema: String,
    /// What computes it.
    pub code: OperatorCode,
    /// Whether the function says how large its results are.
    pub decides_sizes: bool,
}

/// What computes an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperatorCode {
    /// A function with C linkage, by its symbol.
    Function(String),
    /// A graph in `.aoti` text, which becomes part of the programs that call it.
    Graph(String),
}

/// An operator that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    /// As [`Operator::name`].
    pub(crate) name: String,
    pub(crate) schema: Schema,
    pub(crate) code: DeclaredCode,
}

/// What computes an operator that was checked.
#[derive(Clone, Debug)]
pub(crate) enum DeclaredCode {
    Function(String),
    Graph(Box<Graph>),
}

/// The operators that a program may call beside PyTorch's.
#[derive(Clone, Default, Debug)]
pub struct Operators {
    by_target: IndexMap<String, Declared>,
}

impl Graph {
    /// Text may call no functions: what a project calls, it declares, and model files are anybody's.
    ///
    /// # Errors
    /// [`Diagnostics`] with every call.
    pub(crate) fn refuse_functions(&self) -> Result<(), Diagnostics> {
        let mut findings = Vec::new();
        self.visit(&mut |_, node| {
            if let Op::Extern(call) = &node.op {
                let message = format!("the graph calls the function `{}`, which text cannot do", call.symbol);
                findings.push(Diagnostic::new(Code::Operator, message));
            }
        });
        if findings.is_empty() { Ok(()) } else { Err(Diagnostics(findings)) }
    }
}

/// Everything that is wrong with one declaration.
///
/// # Errors
/// The [`Diagnostics`] of the operator alone.
pub fn check(operator: &Operator) -> Result<(), Diagnostics> {
    Operators::new(std::slice::from_ref(operator)).map(drop)
}

/// The symbol of an operator that is a function, and its parameters and results, a letter for each; None for a graph. Rust
/// functions are compared with that when they are compiled.
///
/// # Errors
/// As [`Operators::new`].
pub fn signature(operator: &Operator) -> Result<Option<(String, String)>, Diagnostics> {
    let (_, own) = declare(operator)?;
    let DeclaredCode::Function(symbol) = own.code else { return Ok(None) };
    Ok(Some((symbol, own.schema.letters())))
}

/// The Rust function that computes an operator, up to its body; None for a graph. Elements are `f32` where nobody says.
///
/// # Errors
/// As [`Operators::new`].
pub fn declaration(operator: &Operator) -> Result<Option<String>, Diagnostics> {
    Ok(function(operator)?.map(|(symbol, schema)| rust::declaration(&symbol, &schema)))
}

/// What the linker calls the function of an operator. The prefix keeps it apart from all other functions of a program, and with
/// the signature in it, a call finds no function that expects something else.
pub(crate) fn link_name(symbol: &str, schema: &Schema) -> String {
    format!("aoti_operator_{symbol}_{}", schema.letters())
}

/// The symbol and the schema of an operator that is a function.
pub(crate) fn function(operator: &Operator) -> Result<Option<(String, Schema)>, Diagnostics> {
    let (_, own) = declare(operator)?;
    Ok(match own.code {
        DeclaredCode::Function(symbol) => Some((symbol, own.schema)),
        DeclaredCode::Graph(_) => None,
    })
}

impl Operators {
    /// Checks declarations.
    ///
    /// # Errors
    /// [`Diagnostics`] of all of them.
    pub fn new(declared: &[Operator]) -> Result<Operators, Diagnostics> {
        let (mut findings, mut by_target) = (Vec::new(), IndexMap::new());
        let mut functions: IndexMap<&str, (&str, Schema)> = IndexMap::new();
        for operator in declared {
            match declare(operator) {
                Ok((target, own)) => {
                    if let OperatorCode::Function(symbol) = &operator.code {
                        let (first, schema) =
                            functions.entry(symbol).or_insert_with(|| (&operator.name, own.schema.clone()));
                        if schema.letters() != own.schema.letters() {
                            let message = format!(
                                "`{first}` and `{}` name the function `{symbol}`, which cannot have both signatures",
                                operator.name
                            );
                            findings.push(Diagnostic::new(Code::Signature, message));
                        }
                    }
                    by_target.insert(target, own);
                }
                Err(found) => findings.extend(found.0),
            }
        }
        if findings.is_empty() { Ok(Operators { by_target }) } else { Err(Diagnostics(findings)) }
    }

    /// Whether there are none.
    #[cfg(feature = "onnx")]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_target.is_empty()
    }

    /// Whether a call's target names one of them.
    pub fn has(&self, target: &str) -> bool {
        self.find(target).is_some()
    }

    /// The operator that a call's target names, such as `mylib.scaled.default`.
    pub(crate) fn find(&self, target: &str) -> Option<&Declared> {
        self.by_target.get(target)
    }
}

/// The target of calls of an operator, and the operator.
fn declare(operator: &Operator) -> Result<(String, Declared), Diagnostics> {
    let refuse = |message: String| Diagnostic::new(Code::Signature, message);
    let name = &operator.name;
    let Some(target) = target_of(name) else {
        let message = format!("`{name}` is no name of an operator");
        return Err(refuse(message)
            .help("name it as torch.library does: `mylib::scaled`, or with its domain as ONNX does")
            .into());
    };
    const TAKEN: [(&str, &str); 2] = [("aten.", "PyTorch"), ("ai.onnx.", "ONNX")];
    if let Some((_, whose)) = TAKEN.iter().find(|(library, _)| target.starts_with(library)) {
        let message = format!("`{name}` is {whose}'s own, and cannot be declared");
        return Err(refuse(message).help("wrap it in an operator of your own").into());
    }
    let schema = Schema::parse(&operator.schema)
        .and_then(|schema| schema.of_name(name))
        .and_then(|schema| if operator.decides_sizes { schema.with_sizes() } else { Ok(schema) })
        .map_err(|error| refuse(format!("the schema of `{name}`: {error}")))?;
    let code = match &operator.code {
        OperatorCode::Function(symbol) => {
            if !is_symbol(symbol) {
                let message = format!("`{symbol}`, which `{name}` names, is no symbol of a C function");
                let help = "letters, digits and `_`, not a word of C++, and not beginning with `aoti_`";
                return Err(refuse(message).help(help).into());
            }
            DeclaredCode::Function(symbol.clone())
        }
        OperatorCode::Graph(_) if operator.decides_sizes => {
            let message = format!("`{name}` is a graph, whose sizes follow from those of its operands");
            return Err(refuse(message).help("only a function says how large its results are").into());
        }
        OperatorCode::Graph(text) => DeclaredCode::Graph(Box::new(graph_of(name, &schema, text)?)),
    };
    Ok((target, Declared { name: name.clone(), schema, code }))
}

/// `mylib::scaled` as the target of a call. Domains of ONNX are names with points and dashes between.
fn target_of(name: &str) -> Option<String> {
    let (library, operator) = name.split_once("::")?;
    let (operator, overload) = operator.split_once('.').unwrap_or((operator, "default"));
    let is_name = |text: &str, more: &[char]| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || more.contains(&c))
    };
    let is_library = library.split('.').all(|part| is_name(part, &['-']));
    let is_whole = is_library && is_name(operator, &[]) && is_name(overload, &[]);
    is_whole.then(|| format!("{library}.{operator}.{overload}"))
}

/// Whether generated code can declare a function of this name.
fn is_symbol(symbol: &str) -> bool {
    names::is_c_function(symbol)
}

fn graph_of(name: &str, schema: &Schema, text: &str) -> Result<Graph, Diagnostics> {
    let graph = graph::text::parse(text)?;
    graph::verify(&graph)?;
    graph.refuse_functions()?;
    match schema.fault_of_graph(&graph) {
        None => Ok(graph),
        Some(fault) => Err(Diagnostic::new(Code::Signature, format!("the graph of `{name}` {fault}")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::prototypes;

    fn function(name: &str, schema: &str, symbol: &str) -> Operator {
        let code = OperatorCode::Function(symbol.to_owned());
        Operator { name: name.to_owned(), schema: schema.to_owned(), code, decides_sizes: false }
    }

    #[track_caller]
    fn refused(operator: &Operator, words: &str) {
        let text = check(operator).expect_err("it is refused").to_string();
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn names_are_those_of_torch_library() {
        let operators =
            Operators::new(&[function("mylib::scaled.wide", "(Tensor x) -> Tensor", "f")]).expect("declared");
        assert!(operators.find("mylib.scaled.wide").is_some());
        assert!(operators.find("mylib.scaled.default").is_none());
        refused(&function("scaled", "(Tensor x) -> Tensor", "f"), "no name of an operator");
        refused(&function("my lib::f", "(Tensor x) -> Tensor", "f"), "no name of an operator");
        refused(&function("aten::add", "(Tensor x) -> Tensor", "f"), "PyTorch's own");
        let onnx = Operators::new(&[function("com.my-firm::Scaled", "(Tensor x) -> Tensor", "f")]);
        assert!(onnx.expect("declared").find("com.my-firm.Scaled.default").is_some());
        refused(&function("com..firm::f", "(Tensor x) -> Tensor", "f"), "no name of an operator");
        refused(&function("ai.onnx.ml::Scaler", "(Tensor x) -> Tensor", "f"), "ONNX's own");
    }

    #[test]
    fn symbols_are_names_of_c_functions() {
        for symbol in ["", "9f", "f g", "int", "class", "aoti_f", "f\""] {
            refused(&function("a::f", "(Tensor x) -> Tensor", symbol), "no symbol of a C function");
        }
    }

    #[test]
    fn a_function_has_one_signature() {
        let (one, same) = (
            function("a::f", "(Tensor x, int n) -> Tensor", "f"),
            function("a::g", "(Tensor y, SymInt m=3) -> Tensor", "f"),
        );
        assert!(Operators::new(&[one.clone(), same]).is_ok());
        let other = function("a::h", "(Tensor x, float n) -> Tensor", "f");
        let text = Operators::new(&[one.clone(), other]).expect_err("two signatures").to_string();
        assert!(text.contains("cannot have both signatures"), "{text}");
        // A tensor that may be absent is null, which a function of the other signature does not expect.
        let other = function("a::h", "(Tensor? x, int n) -> Tensor", "f");
        assert!(Operators::new(&[one, other]).is_err());
    }

    #[test]
    fn functions_have_names_that_no_other_function_has() {
        for (symbol, schema, name) in [
            ("getpid", "(Tensor x) -> Tensor", "aoti_operator_getpid_TR"),
            ("f", "(Tensor? x, int[] n, str? mode) -> Tensor[]", "aoti_operator_f_tIuM"),
            ("f", "(Tensor(a0!) x, Tensor y) -> ()", "aoti_operator_f_RT"),
        ] {
            let declared = prototypes([&function("a::f", schema, symbol)]).expect("declared").concat();
            assert!(declared.starts_with(&format!("int32_t {symbol}(")), "{declared}");
            assert!(declared.ends_with(&format!(" __asm__(\"{name}\");\n")), "{declared}");
        }
    }

    #[test]
    fn functions_that_say_sizes_have_a_result_for_them() {
        let deciding = |schema: &str| Operator { decides_sizes: true, ..function("a::f", schema, "f") };
        let (_, letters) =
            signature(&deciding("(Tensor x) -> (Tensor, Tensor)")).expect("declared").expect("a function");
        assert_eq!(letters, "TRRRR");
        assert_eq!(
            prototypes([&deciding("(Tensor x) -> Tensor")]).expect("declared"),
            [
                "int32_t f(const AotiTensor *, const AotiTensor *, const AotiTensor *, const AotiContext *, AotiError *) \
                 __asm__(\"aoti_operator_f_TRR\");\n"
            ]
        );
        refused(&deciding("(Tensor x) -> Tensor[]"), "gives a list of tensors");
        refused(&deciding("(Tensor x) -> ()"), "gives no tensor");
        refused(&deciding("(Tensor(a!) x) -> Tensor"), "changes a tensor in place");
        let text = "graph { input %x \"x\": f32[2] output %x }".to_owned();
        refused(
            &Operator { code: OperatorCode::Graph(text), ..deciding("(Tensor x) -> Tensor") },
            "is a graph, whose sizes follow",
        );
        let one = [function("a::f", "(Tensor x) -> Tensor", "f"), deciding("(Tensor x) -> Tensor")];
        let text = Operators::new(&one).expect_err("two signatures").to_string();
        assert!(text.contains("cannot have both signatures"), "{text}");
    }

    #[test]
    fn graphs_have_the_operands_of_their_schema() {
        let graph = |schema: &str| Operator {
            name: "a::f".to_owned(),
            schema: schema.to_owned(),
            decides_sizes: false,
            code: OperatorCode::Graph(
                "graph { input %x \"x\": f32[2] input %k \"k\": f64[] %y: f32[2] = neg %x output %y }"
                    .to_owned(),
            ),
        };
        check(&graph("(Tensor x, float k) -> Tensor")).expect("it fits");
        refused(&graph("(Tensor x) -> Tensor"), "has 2 inputs");
        refused(&graph("(Tensor x, int k) -> Tensor"), "input `k`");
        refused(&graph("(Tensor x, float k) -> (Tensor, Tensor)"), "has 1 output");
        refused(&graph("(Tensor x, str k) -> Tensor"), "input `k`");
        refused(&graph("(Tensor(a!) x, float k) -> Tensor"), "cannot take `Tensor(a!) x`");
    }
}
