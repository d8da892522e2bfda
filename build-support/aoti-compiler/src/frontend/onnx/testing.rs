//! Small models for the tests of operators.

use super::proto::attribute_proto::AttributeType;
use super::proto::tensor_proto::DataType;
use super::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto,
    TypeProto, ValueInfoProto, tensor_shape_proto, type_proto,
};
use crate::diagnostic::Diagnostics;
use crate::dtype::DType;
use crate::frontend::torch::custom::Operators;
use crate::frontend::{Import, InputShape, MinSize, ModelFile};
use crate::interpret::{Tensor, evaluate};
use bytes::Bytes;
use prost::Message;

/// A model under construction, with what it is run on.
#[derive(Clone)]
pub(super) struct Model {
    graph: GraphProto,
    version: i64,
    /// Who wrote it, if that is said.
    producer: Option<String>,
    feeds: Vec<Tensor>,
}

fn data_type(dtype: DType) -> i32 {
    let ty = match dtype {
        DType::F32 => DataType::Float,
        DType::F64 => DataType::Double,
        DType::I64 => DataType::Int64,
        DType::I32 => DataType::Int32,
        DType::I8 => DataType::Int8,
        DType::U8 => DataType::Uint8,
        DType::Bool => DataType::Bool,
        DType::I16 => DataType::Int16,
        DType::U16 => DataType::Uint16,
        DType::U32 => DataType::Uint32,
        DType::U64 => DataType::Uint64,
        DType::F16 => DataType::Float16,
        DType::Bf16 => DataType::Bfloat16,
        DType::F8(_) => panic!("no test has inputs of eight bits"),
    };
    ty as i32
}

fn tensor_type(dtype: DType, shape: Option<TensorShapeProto>) -> TypeProto {
    let tensor = type_proto::Tensor { elem_type: Some(data_type(dtype)), shape };
    TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() }
}

/// Sizes, each a name or a number.
fn dims(sizes: &[(&str, i64)]) -> Vec<tensor_shape_proto::Dimension> {
    use tensor_shape_proto::dimension::Value;
    let size = |(name, size): &(&str, i64)| tensor_shape_proto::Dimension {
        value: Some(if name.is_empty() {
            Value::DimValue(*size)
        } else {
            Value::DimParam((*name).to_owned())
        }),
        ..tensor_shape_proto::Dimension::default()
    };
    sizes.iter().map(size).collect()
}

impl Model {
    /// A model of the standard's own operators of a version.
    pub(super) fn new(version: i64) -> Model {
        Model { graph: GraphProto::default(), version, producer: None, feeds: Vec::new() }
    }

    /// Says who wrote it.
    pub(super) fn by(mut self, producer: &str) -> Model {
        self.producer = Some(producer.to_owned());
        self
    }

    /// An input, whose sizes are open.
    pub(super) fn input(self, name: &str, value: Tensor) -> Model {
        let dim = vec![tensor_shape_proto::Dimension::default(); value.sizes().len()];
        self.input_of(name, value, dim)
    }

    /// An input of these sizes.
    pub(super) fn fixed_input(self, name: &str, value: Tensor) -> Model {
        let size = |size: &usize| tensor_shape_proto::Dimension {
            value: Some(tensor_shape_proto::dimension::Value::DimValue(i64::try_from(*size).unwrap())),
            ..tensor_shape_proto::Dimension::default()
        };
        let dim = value.sizes().iter().map(size).collect();
        self.input_of(name, value, dim)
    }

    /// An input of sizes that are names or numbers.
    pub(super) fn sized_input(self, name: &str, value: Tensor, sizes: &[(&str, i64)]) -> Model {
        self.input_of(name, value, dims(sizes))
    }

    fn input_of(mut self, name: &str, value: Tensor, dim: Vec<tensor_shape_proto::Dimension>) -> Model {
        let shape = Some(TensorShapeProto { dim });
        self.declare(name, tensor_type(value.dtype(), shape));
        self.feeds.push(value);
        self
    }

    /// An input that is a sequence of floats, of whose shapes nothing is said.
    pub(super) fn sequence_input(mut self, name: &str) -> Model {
        let elem_type = Some(Box::new(tensor_type(DType::F32, None)));
        let sequence = type_proto::Sequence { elem_type };
        let value = Some(type_proto::Value::SequenceType(Box::new(sequence)));
        self.declare(name, TypeProto { value, ..TypeProto::default() });
        self
    }

    /// An input that may be left out.
    pub(super) fn optional_input(mut self, name: &str, value: Tensor) -> Model {
        let dim = vec![tensor_shape_proto::Dimension::default(); value.sizes().len()];
        let elem_type = Some(Box::new(tensor_type(value.dtype(), Some(TensorShapeProto { dim }))));
        let optional = type_proto::Value::OptionalType(Box::new(type_proto::Optional { elem_type }));
        self.declare(name, TypeProto { value: Some(optional), ..TypeProto::default() });
        self.feeds.push(value);
        self
    }

    fn declare(&mut self, name: &str, ty: TypeProto) {
        let info =
            ValueInfoProto { name: Some(name.to_owned()), r#type: Some(ty), ..ValueInfoProto::default() };
        self.graph.input.push(info);
    }

    /// A tensor of the file.
    pub(super) fn constant(mut self, name: &str, value: &Tensor) -> Model {
        let tensor = TensorProto {
            dims: value.sizes().iter().map(|size| i64::try_from(*size).unwrap()).collect(),
            data_type: Some(data_type(value.dtype())),
            name: Some(name.to_owned()),
            raw_data: Some(value.bytes().clone()),
            ..TensorProto::default()
        };
        self.graph.initializer.push(tensor);
        self
    }

    /// A node; its operator may be named with its domain: `ai.onnx.ml::Scaler`.
    pub(super) fn node(
        mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[&str],
        attribute: &[AttributeProto],
    ) -> Model {
        let (domain, name) = operator.split_once("::").unwrap_or(("", operator));
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
        self.graph.node.push(NodeProto {
            input: names(inputs),
            output: names(outputs),
            op_type: Some(name.to_owned()),
            domain: Some(domain.to_owned()),
            attribute: attribute.to_vec(),
            ..NodeProto::default()
        });
        self
    }

    /// As a file.
    pub(super) fn file(&self, outputs: &[&str]) -> Vec<u8> {
        let graph = self.graph_of(outputs);
        let set = |domain: &str, version| OperatorSetIdProto {
            domain: Some(domain.to_owned()),
            version: Some(version),
        };
        let model = ModelProto {
            ir_version: Some(10),
            producer_name: self.producer.clone(),
            opset_import: vec![set("", self.version), set("ai.onnx.ml", 5)],
            graph: Some(graph),
            ..ModelProto::default()
        };
        model.encode_to_vec()
    }

    fn graph_of(&self, outputs: &[&str]) -> GraphProto {
        let output =
            |name: &&str| ValueInfoProto { name: Some((*name).to_owned()), ..ValueInfoProto::default() };
        GraphProto { output: outputs.iter().map(output).collect(), ..self.graph.clone() }
    }

    /// As an attribute: a body of another model's node.
    pub(super) fn body(&self, name: &str, outputs: &[&str]) -> AttributeProto {
        AttributeProto { g: Some(self.graph_of(outputs)), ..attribute(name, AttributeType::Graph) }
    }

    /// States that a value is of floats and has these sizes, each a name or a number.
    pub(super) fn state(mut self, name: &str, sizes: &[(&str, i64)]) -> Model {
        let ty = tensor_type(DType::F32, Some(TensorShapeProto { dim: dims(sizes) }));
        let info =
            ValueInfoProto { name: Some(name.to_owned()), r#type: Some(ty), ..ValueInfoProto::default() };
        self.graph.value_info.push(info);
        self
    }

    /// As a core graph.
    pub(super) fn import(&self, outputs: &[&str]) -> Result<Import, Diagnostics> {
        self.import_with(outputs, &Operators::default())
    }

    /// The same of a project that has operators of its own.
    pub(super) fn import_with(&self, outputs: &[&str], operators: &Operators) -> Result<Import, Diagnostics> {
        super::import(MinSize::Lowered(0), "test", &self.file(outputs).into(), operators)
    }

    /// The same where shapes of inputs are given beside the file.
    pub(super) fn import_of(
        &self,
        outputs: &[&str],
        shapes: &[(&str, InputShape)],
    ) -> Result<Import, Diagnostics> {
        let shapes = shapes.iter().map(|(name, shape)| ((*name).to_owned(), shape.clone())).collect();
        let file = ModelFile { shapes, ..self.file(outputs).into() };
        super::import(MinSize::Lowered(0), "test", &file, &Operators::default())
    }

    /// What it is run on.
    pub(super) fn feeds(&self) -> &[Tensor] {
        &self.feeds
    }

    /// The outputs of a run.
    pub(super) fn run(&self, outputs: &[&str]) -> Vec<Tensor> {
        let graph = self.import(outputs).unwrap().graph;
        evaluate(&graph, &self.feeds).unwrap()
    }

    /// The numbers of the result of one more node.
    pub(super) fn of_one(&self, operator: &str, inputs: &[&str], attributes: &[AttributeProto]) -> Vec<f64> {
        self.clone().node(operator, inputs, &["y"], attributes).numbers()
    }

    /// The numbers of the only output `y` of a run.
    pub(super) fn numbers(&self) -> Vec<f64> {
        self.run(&["y"])[0].to_f64()
    }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(kind as i32), ..AttributeProto::default() }
}

/// An attribute that is an integer.
pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..attribute(name, AttributeType::Int) }
}

/// An attribute that is a list of integers.
pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, AttributeType::Ints) }
}

/// An attribute that is a number.
pub(super) fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..attribute(name, AttributeType::Float) }
}

/// An attribute that is a list of numbers.
pub(super) fn floats(name: &str, values: &[f32]) -> AttributeProto {
    AttributeProto { floats: values.to_vec(), ..attribute(name, AttributeType::Floats) }
}

/// An attribute that is a text.
pub(super) fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        s: Some(Bytes::copy_from_slice(value.as_bytes())),
        ..attribute(name, AttributeType::String)
    }
}

/// An attribute that is a list of texts.
pub(super) fn texts(name: &str, values: &[&str]) -> AttributeProto {
    let strings = values.iter().map(|value| Bytes::copy_from_slice(value.as_bytes())).collect();
    AttributeProto { strings, ..attribute(name, AttributeType::Strings) }
}
