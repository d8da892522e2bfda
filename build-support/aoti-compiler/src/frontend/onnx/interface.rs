//! What a run of a model is given and what it gives: tensors, and sequences and optionals of them, whose lengths are known when the
//! model is compiled. In the core graph the elements of a sequence are inputs or outputs of their own.

use super::proto::tensor_shape_proto::dimension;
use super::proto::{GraphProto, TensorProto, ValueInfoProto, type_proto};
use super::types::{ElementType, element_type};
use super::value::Val;
use super::walk::Onnx;
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::frontend::{InputShape, MinSize};
use crate::graph::{InputRole, LARGEST_SIZE, OutputRole, SymbolInfo, SymbolSource, TensorType, ValueId};
use crate::symbolic::{self, Expr, Interval};
use bytes::Bytes;
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};

/// What an input or an output is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A tensor.
    Tensor,
    /// A sequence of tensors.
    Sequence,
    /// A tensor, a sequence, or nothing.
    Optional,
}

/// An input or an output as a file declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Whether the file says how many axes it has, and that it is there.
    pub has_shape: bool,
}

/// What the inputs and the outputs of a model are, in order.
///
/// # Errors
/// A file that is not readable.
pub fn interface(file: Bytes) -> Result<(Vec<Declaration>, Vec<Declaration>), Diagnostics> {
    let model = super::model::decode(file)?;
    let graph = model.graph.unwrap_or_default();
    let declared = |info: &ValueInfoProto| {
        let (kind, has_shape) = match type_of(info) {
            Some(type_proto::Value::SequenceType(_)) => (Kind::Sequence, false),
            Some(type_proto::Value::OptionalType(_)) => (Kind::Optional, false),
            Some(type_proto::Value::TensorType(tensor)) => (Kind::Tensor, tensor.shape.is_some()),
            _ => (Kind::Tensor, false),
        };
        Declaration { name: info.name().to_owned(), kind, has_shape }
    };
    let inputs = inputs_of(&graph).into_iter().map(declared).collect();
    Ok((inputs, graph.output.iter().map(declared).collect()))
}

fn type_of(info: &ValueInfoProto) -> Option<&type_proto::Value> {
    info.r#type.as_ref()?.value.as_ref()
}

/// The inputs that have no data in the file.
fn inputs_of(graph: &GraphProto) -> Vec<&ValueInfoProto> {
    let weights: BTreeSet<&str> = graph.initializer.iter().map(TensorProto::name).collect();
    graph.input.iter().filter(|info| !weights.contains(info.name())).collect()
}

/// An input as a run is given it.
enum Given {
    Absent,
    Tensor(TensorInput),
    Sequence(Vec<Given>),
    Refused,
}

struct TensorInput {
    name: String,
    /// As files number element types.
    element: i32,
    sizes: Vec<Size>,
}

enum Size {
    Fixed(i64),
    Open {
        name: String,
        /// Such as `past + sequence`, of sizes that others have.
        is_formula: bool,
    },
}

impl Given {
    fn tensors(&self) -> Vec<&TensorInput> {
        match self {
            Given::Tensor(tensor) => vec![tensor],
            Given::Sequence(all) => all.iter().flat_map(Given::tensors).collect(),
            Given::Absent | Given::Refused => Vec::new(),
        }
    }
}

impl Onnx<'_> {
    /// Declares what a run is given. Inputs that have data in the file are weights. Gives whether any size is open.
    pub(super) fn inputs(
        &mut self,
        graph: &GraphProto,
        shapes: &BTreeMap<String, InputShape>,
        min: MinSize,
    ) -> bool {
        let infos = inputs_of(graph);
        for name in shapes.keys().filter(|name| infos.iter().all(|info| info.name() != name.as_str())) {
            let known: Vec<&str> = infos.iter().map(|info| info.name()).collect();
            let finding = Diagnostic::new(Code::Names, format!("there is no input `{name}` to have a shape"));
            self.findings.push(finding.help(format!("its inputs are `{}`", known.join("`, `"))));
        }
        let mut all = Vec::new();
        for info in &infos {
            let own = given(info.name(), type_of(info), shapes.get(info.name()));
            all.push(own.unwrap_or_else(|finding| {
                self.findings.push(finding);
                Given::Refused
            }));
        }
        let tensors: Vec<&TensorInput> = all.iter().flat_map(Given::tensors).collect();
        let symbols = self.symbols(&tensors, min);
        for (info, given) in infos.iter().zip(&all) {
            let value = self.declare(given, &symbols);
            if let Err(error) = self.define(info.name(), value) {
                self.findings.push(Diagnostic::new(Code::Graph, error.to_string()));
            }
        }
        self.symbols = symbols;
        !self.symbols.is_empty()
    }

    /// Names of sizes are symbols; so are sizes of which nothing is said.
    fn symbols(&mut self, inputs: &[&TensorInput], min: MinSize) -> IndexMap<String, Expr> {
        let min = match min {
            MinSize::Lowered(size) => size,
            MinSize::Stated => 2,
        };
        let mut symbols = IndexMap::new();
        let mut formulas = Vec::new();
        for (input, tensor) in inputs.iter().enumerate() {
            for (axis, size) in tensor.sizes.iter().enumerate() {
                let Size::Open { name, is_formula } = size else { continue };
                if *is_formula {
                    formulas.push((name, input, axis));
                } else if !symbols.contains_key(name) {
                    let symbol = self.size_symbol(name, min, input, axis);
                    symbols.insert(name.clone(), symbol);
                }
            }
        }
        for (text, input, axis) in formulas {
            if symbols.contains_key(text) {
                continue;
            }
            let size = symbolic::parse(text, &|name: &str| symbols.get(name).cloned());
            let size = size.unwrap_or_else(|_| self.size_symbol(text, min, input, axis));
            symbols.insert(text.clone(), size);
        }
        symbols
    }

    fn size_symbol(&mut self, name: &str, min: i64, input: usize, axis: usize) -> Expr {
        Expr::sym(self.cx.b.symbol(SymbolInfo {
            name: name.to_owned(),
            range: Interval::new(min, LARGEST_SIZE),
            source: SymbolSource::InputDim { input, axis },
            most: None,
        }))
    }

    fn declare(&mut self, given: &Given, symbols: &IndexMap<String, Expr>) -> Val {
        match given {
            Given::Absent => Val::Absent,
            Given::Refused => Val::Poison,
            Given::Sequence(all) => {
                Val::Sequence(all.iter().map(|element| self.declare(element, symbols)).collect())
            }
            Given::Tensor(tensor) => match self.input(tensor, symbols) {
                Ok(value) => value.into(),
                Err(finding) => {
                    self.findings.push(finding);
                    Val::Poison
                }
            },
        }
    }

    fn input(
        &mut self,
        tensor: &TensorInput,
        symbols: &IndexMap<String, Expr>,
    ) -> Result<ValueId, Diagnostic> {
        let name = &tensor.name;
        let ElementType { dtype, narrow } = element_type(tensor.element)
            .map_err(|message| Diagnostic::new(Code::DType, format!("input `{name}`: {message}")))?;
        let size = |size: &Size| match size {
            Size::Fixed(size) => Expr::int(*size),
            Size::Open { name, .. } => symbols[name].clone(),
        };
        let shape: Vec<Expr> = tensor.sizes.iter().map(size).collect();
        let too_large = |total: &i64| *total > LARGEST_SIZE;
        let fixed = shape.iter().filter_map(Expr::as_int).try_fold(1i64, i64::checked_mul);
        if fixed.is_none_or(|total| too_large(&total)) {
            return Err(Diagnostic::new(Code::Size, format!("input `{name}` is too large")));
        }
        let value = self.cx.b.input(name, TensorType { dtype, shape }, InputRole::User);
        if let Some(narrow) = narrow {
            self.narrow.insert(value, narrow);
        }
        Ok(value)
    }

    pub(super) fn outputs(&mut self, graph: &GraphProto) {
        for info in &graph.output {
            match self.operand(info.name()) {
                Ok(value) => self.output(info.name(), &value),
                Err(error) => self.findings.push(Diagnostic::new(Code::Graph, format!("output {error}"))),
            }
        }
    }

    /// An output; a sequence is one output for each of its elements.
    fn output(&mut self, name: &str, value: &Val) {
        match value {
            Val::Tensor(value) => self.cx.b.output(name, *value, OutputRole::User),
            Val::Sequence(all) => {
                for (position, element) in all.iter().enumerate() {
                    self.output(&element_name(name, position), element);
                }
            }
            Val::Rows(_) => {
                let message = format!(
                    "output `{name}` is a sequence whose length is not known when the model is compiled"
                );
                let finding = Diagnostic::new(Code::Graph, message);
                self.findings.push(finding.help("join its elements by `ConcatFromSequence`"));
            }
            Val::Absent | Val::Poison => {}
        }
    }
}

/// What an element of a sequence is called.
fn element_name(sequence: &str, position: usize) -> String {
    format!("{sequence}.{position}")
}

/// An input of a type, of the shape that is given beside the file, if one is.
fn given(
    name: &str,
    ty: Option<&type_proto::Value>,
    shape: Option<&InputShape>,
) -> Result<Given, Diagnostic> {
    let refused = |message: &str| Diagnostic::new(Code::Schema, format!("input `{name}` {message}"));
    match (ty, shape) {
        (Some(type_proto::Value::OptionalType(_)), Some(InputShape::Absent)) => Ok(Given::Absent),
        // Without more said, callers give it.
        (Some(type_proto::Value::OptionalType(optional)), _) => {
            given(name, optional.elem_type.as_ref().and_then(|own| own.value.as_ref()), shape)
        }
        (Some(type_proto::Value::SequenceType(sequence)), Some(InputShape::List(elements))) => {
            let element = sequence.elem_type.as_ref().and_then(|own| own.value.as_ref());
            let own = elements.iter().enumerate();
            let own =
                own.map(|(position, shape)| given(&element_name(name, position), element, Some(shape)));
            Ok(Given::Sequence(own.collect::<Result<_, _>>()?))
        }
        (Some(type_proto::Value::SequenceType(_)), None) => {
            Err(refused("is a sequence, and a file does not say how long it is").help(format!(
                "list the shapes of its elements in the manifest: `shapes = {{ {name} = [[\"n\", 4], [\"n\", 4]] }}`"
            )))
        }
        (Some(type_proto::Value::SequenceType(_)), Some(_)) => {
            Err(refused("is a sequence").help("its shape is a list of the shapes of its elements"))
        }
        (Some(type_proto::Value::TensorType(tensor)), shape) => {
            let sizes = sizes(name, tensor, shape)?;
            Ok(Given::Tensor(TensorInput { name: name.to_owned(), element: tensor.elem_type(), sizes }))
        }
        (
            Some(
                type_proto::Value::MapType(_)
                | type_proto::Value::SparseTensorType(_)
                | type_proto::Value::OpaqueType(_),
            ),
            _,
        ) => Err(refused("is a map, a sparse or an opaque tensor, which are not supported")),
        (None, _) => Err(refused("has no type")),
    }
}

/// The sizes of a tensor: those that are given, or the file's.
fn sizes(
    name: &str,
    tensor: &type_proto::Tensor,
    shape: Option<&InputShape>,
) -> Result<Vec<Size>, Diagnostic> {
    let refused = |message: String| Diagnostic::new(Code::Schema, format!("input `{name}` {message}"));
    let own = tensor.shape.as_ref().map(|shape| shape.dim.as_slice());
    let Some(shape) = shape else {
        let own = own.ok_or_else(|| {
            refused("has no shape, not even a number of axes".to_owned()).help(format!(
                "state its shape, in the file or in the manifest: `shapes = {{ {name} = [\"batch\", 4] }}`"
            ))
        })?;
        let stated = |(axis, dim): (usize, &super::proto::tensor_shape_proto::Dimension)| match &dim.value {
            Some(dimension::Value::DimValue(size)) if *size >= 0 => Size::Fixed(*size),
            Some(dimension::Value::DimParam(name)) if !name.is_empty() => open(name.clone()),
            Some(dimension::Value::DimValue(_) | dimension::Value::DimParam(_)) | None => {
                Size::Open { name: format!("{name}_d{axis}"), is_formula: false }
            }
        };
        return Ok(own.iter().enumerate().map(stated).collect());
    };
    let of_given = |shape: &InputShape| match shape {
        InputShape::Size(size) => Some(Size::Fixed(i64::from(*size))),
        InputShape::Name(name) => Some(open(name.clone())),
        InputShape::List(_) | InputShape::Absent => None,
    };
    let given: Option<Vec<Size>> = match shape {
        InputShape::List(all) => all.iter().map(of_given).collect(),
        InputShape::Size(_) | InputShape::Name(_) | InputShape::Absent => None,
    };
    let given = given.ok_or_else(|| refused(format!("is a tensor, and `{shape}` is no list of sizes")))?;
    let agree = |(given, own): (&Size, &super::proto::tensor_shape_proto::Dimension)| match own.value {
        Some(dimension::Value::DimValue(own)) if own >= 0 => {
            matches!(given, Size::Fixed(size) if *size == own)
        }
        Some(dimension::Value::DimValue(_) | dimension::Value::DimParam(_)) | None => true,
    };
    let is_other = |own: &[super::proto::tensor_shape_proto::Dimension]| {
        own.len() != given.len() || !given.iter().zip(own).all(agree)
    };
    if own.is_some_and(is_other) {
        return Err(refused(format!("has another shape in the file than `{shape}`")));
    }
    Ok(given)
}

fn open(name: String) -> Size {
    let is_formula = name.contains(['+', '-', '*', '/', '(', ' ']);
    Size::Open { name, is_formula }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Model, int};
    use super::*;
    use crate::interpret::{Tensor, evaluate};

    fn shape(text: &str) -> InputShape {
        use crate::json::FromJson;
        InputShape::from_json(serde_json::from_str(text).unwrap()).unwrap()
    }

    fn joined() -> Model {
        Model::new(17).sequence_input("all").node("ConcatFromSequence", &["all"], &["y"], &[int("axis", 0)])
    }

    #[test]
    fn sequences_are_inputs_of_as_many_tensors_as_the_project_says() {
        let model = joined().node("SequenceErase", &["all"], &["rest"], &[]);
        let import = model.import_of(&["y", "rest"], &[("all", shape("[[\"n\"], [2], [\"n\"]]"))]).unwrap();
        let names: Vec<&str> = import.graph.inputs.iter().map(|input| input.name.as_str()).collect();
        assert_eq!(names, ["all.0", "all.1", "all.2"]);
        let row = |values: &[f32]| Tensor::from_f32(&[values.len()], values);
        let given = [row(&[1.0]), row(&[2.0, 3.0]), row(&[4.0])];
        let found = evaluate(&import.graph, &given).unwrap();
        assert_eq!(found[0].to_f64(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(found[1..], given[..2]);
    }

    #[test]
    fn what_is_said_of_inputs_has_to_fit_them() {
        let said =
            |shapes: &[(&str, InputShape)]| joined().import_of(&["y"], shapes).unwrap_err().to_string();
        assert!(said(&[]).contains("does not say how long"));
        assert!(said(&[("all", shape("4"))]).contains("list of the shapes"));
        assert!(said(&[("all", shape("[4]"))]).contains("no list of sizes"));
        assert!(said(&[("all", shape("[[4]]")), ("al", shape("[4]"))]).contains("no input `al`"));
        let fixed = Model::new(17).fixed_input("x", Tensor::from_f32(&[2], &[1.0, 2.0])).node(
            "Neg",
            &["x"],
            &["y"],
            &[],
        );
        let said = |text: &str| fixed.import_of(&["y"], &[("x", shape(text))]).map(drop);
        assert!(said("[2]").is_ok());
        assert!(said("[3]").unwrap_err().to_string().contains("another shape"));
    }

    #[test]
    fn optionals_are_there_unless_the_project_says_otherwise() {
        let x = Tensor::from_f32(&[2], &[1.0, 2.0]);
        let model =
            Model::new(18).optional_input("x", x.clone()).node("OptionalHasElement", &["x"], &["y"], &[]);
        let found = |shapes: &[(&str, InputShape)], given: &[Tensor]| {
            evaluate(&model.import_of(&["y"], shapes).unwrap().graph, given).unwrap()[0].to_f64()
        };
        assert_eq!(found(&[], &[x]), [1.0]);
        assert_eq!(found(&[("x", shape("false"))], &[]), [0.0]);
    }
}
