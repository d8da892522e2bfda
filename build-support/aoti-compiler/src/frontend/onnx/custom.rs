//! Nodes of operators that the user's project declares: operands go to the tensors of the schema in order, attributes to its
//! numbers and texts by name.

use super::call::{Call, malformed, unsupported};
use super::proto::attribute_proto::AttributeType;
use super::proto::tensor_shape_proto::dimension;
use super::proto::{AttributeProto, NodeProto, TypeProto, ValueInfoProto, type_proto};
use super::tensors;
use super::types::element_type;
use super::value::Val;
use super::walk::{Onnx, domain};
use crate::frontend::torch::custom::{self, Argument, Declared, DeclaredCode, Schema, Type};
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::custom_op::{Given, Taken, default_as, none_of, taken};
use crate::graph::{ExternCall, Number, NumberKind, TensorType, ValueId};
use crate::symbolic::{self, Expr};

/// The target by which declarations know the operator of a node.
pub(super) fn target(node: &NodeProto) -> String {
    let overload = if node.overload().is_empty() { "default" } else { node.overload() };
    format!("{}.{}.{overload}", domain(node), node.op_type())
}

/// Whether a project can declare an operator, named with its domain.
pub(super) fn is_declarable(operator: &str) -> bool {
    operator.split_once("::").is_some_and(|(domain, _)| !domain.starts_with("ai.onnx"))
}

impl<'m> Onnx<'m> {
    /// The operator of the user's project that a node is of.
    pub(super) fn declared(&self, node: &NodeProto) -> Option<&'m Declared> {
        if domain(node).is_empty() { None } else { self.operators.find(&target(node)) }
    }
}

impl Onnx<'_> {
    /// Remembers what types values have, for results of functions.
    pub(super) fn state_types<'i>(&mut self, infos: impl Iterator<Item = &'i ValueInfoProto>) {
        if !self.operators.is_empty() {
            let types = infos.filter_map(|info| Some((info.name().to_owned(), info.r#type.clone()?)));
            self.types.extend(types);
        }
    }

    /// What a node of an operator of the project's gives.
    pub(super) fn custom(&mut self, call: &Call, own: &Declared) -> Result<Vec<Val>, RuleError> {
        let given = self.given(call, &own.schema)?;
        let values = match &own.code {
            DeclaredCode::Graph(graph) => self.cx.of_operators_graph(graph, given)?,
            DeclaredCode::Function(symbol) => {
                let results = results(call, &own.schema)?;
                let names = call.node.output.iter();
                let types = names.map(|name| self.stated_type(name)).collect::<Result<Vec<_>, _>>()?;
                let symbol = custom::link_name(symbol, &own.schema);
                let Taken { arguments, operands, .. } = taken(given);
                let called = ExternCall { operator: own.name.clone(), symbol, arguments, results };
                self.cx.b.extern_call(called, &operands, types)
            }
        };
        Ok(values.into_iter().map(Val::from).collect())
    }

    fn given(&mut self, call: &Call, schema: &Schema) -> Result<Vec<Given>, RuleError> {
        let attributes = call.attributes();
        let is_known = |name: &str| schema.arguments.iter().any(|own| own.name == name);
        if let Some(other) = attributes.iter().find(|own| !is_known(own.name())) {
            let name = other.name();
            return Err(malformed(format!("the declared schema does not have the attribute `{name}`")));
        }
        let (mut all, mut operands) = (Vec::new(), call.inputs.iter());
        for argument in &schema.arguments {
            let attribute = attributes.iter().find(|own| own.name() == argument.name);
            let given = match attribute {
                Some(attribute) => Some(self.of_attribute(attribute, argument)?),
                None if argument.ty == Type::Tensor => of_operands(&mut operands, argument)?,
                None => None,
            };
            all.push(match (given, &argument.default) {
                (Some(given), _) => given,
                (None, Some(default)) => default_as(default, argument),
                (None, None) if argument.is_optional => none_of(argument),
                (None, None) => {
                    let what = if argument.ty == Type::Tensor { "operand" } else { "attribute" };
                    let name = &argument.name;
                    return Err(malformed(format!(
                        "the node has no {what} `{name}`, for which the declared schema has no default"
                    )));
                }
            });
        }
        match operands.count() {
            0 => Ok(all),
            more => Err(malformed(format!("the node has {more} operands more than the declared schema"))),
        }
    }

    fn of_attribute(&mut self, attribute: &AttributeProto, argument: &Argument) -> Result<Given, RuleError> {
        let other = || {
            let (name, kind) = (attribute.name(), attribute.r#type().as_str_name());
            malformed(format!("attribute `{name}` is of type {kind}, the declared schema has `{argument}`"))
        };
        if argument.ty == Type::Tensor && !argument.is_list {
            let tensor = attribute.t.as_ref().ok_or_else(other)?;
            let read = tensors::read(tensor, &self.opened.beside).map_err(malformed)?;
            return Ok(Given::Tensor(self.constant(read)?));
        }
        let given = match argument.ty.number() {
            None if argument.ty == Type::Text => text_of(attribute).map(|text| Given::Text(Some(text))),
            None => None,
            Some(kind) if argument.is_list => {
                numbers_of(attribute, kind).map(|numbers| Given::Numbers(kind, Some(numbers)))
            }
            Some(kind) => number_of(attribute, kind).map(|number| match argument.is_optional {
                true => Given::Optional(kind, Some(number)),
                false => Given::Number(number),
            }),
        };
        given.ok_or_else(other)
    }

    /// The type that the model states of a result.
    fn stated_type(&self, name: &str) -> Result<TensorType, RuleError> {
        let missing = |what: &str| {
            unsupported(format!(
                "the model does not state {what} of the result `{name}`, which a function cannot do without; state it in the \
                 graph's `value_info` (with exporters of PyTorch: by `setType`), or declare the operator as a graph"
            ))
        };
        let ty = self.types.get(name).ok_or_else(|| missing("the type"))?;
        let TypeProto { value: Some(type_proto::Value::TensorType(tensor)), .. } = ty else {
            return Err(missing("the type"));
        };
        let of_type = element_type(tensor.elem_type()).map_err(unsupported)?;
        let shape = tensor.shape.as_ref().ok_or_else(|| missing("the shape"))?;
        let size = |dim: &super::proto::tensor_shape_proto::Dimension| match &dim.value {
            Some(dimension::Value::DimValue(size)) if *size >= 0 => Ok(Expr::int(*size)),
            Some(dimension::Value::DimParam(text)) => {
                let known = |name: &str| self.symbols.get(name).cloned();
                let size = known(text).or_else(|| symbolic::parse(text, &known).ok());
                size.ok_or_else(|| {
                    missing(&format!("what the size `{text}` is by sizes of inputs, which is one"))
                })
            }
            Some(dimension::Value::DimValue(_)) | None => Err(missing("all sizes")),
        };
        let shape = shape.dim.iter().map(size).collect::<Result<_, _>>()?;
        Ok(TensorType { dtype: of_type.dtype, shape })
    }
}

/// The next operand, or all that are left for a list.
fn of_operands(
    operands: &mut std::slice::Iter<Val>,
    argument: &Argument,
) -> Result<Option<Given>, RuleError> {
    let name = &argument.name;
    if argument.is_changed {
        return Err(unsupported(format!("nodes change no tensors in place, as the declared `{name}` says")));
    }
    let tensor = |value: &Val| match value {
        Val::Tensor(value) => Ok(*value),
        Val::Absent | Val::Sequence(_) | Val::Rows(_) | Val::Poison => {
            Err(malformed(format!("operand `{name}` is no tensor")))
        }
    };
    if !argument.is_list {
        return Ok(match operands.next() {
            None | Some(Val::Absent) => None,
            Some(value) => Some(Given::Tensor(tensor(value)?)),
        });
    }
    let all: Vec<ValueId> = match operands.as_slice() {
        [Val::Sequence(all), ..] => {
            operands.next();
            all.iter().map(tensor).collect::<Result<_, _>>()?
        }
        _ => operands.by_ref().map(tensor).collect::<Result<_, _>>()?,
    };
    Ok(Some(Given::Tensors(all)))
}

/// An attribute that is a text.
fn text_of(attribute: &AttributeProto) -> Option<String> {
    let bytes = attribute.s.as_deref().unwrap_or_default();
    let text = (attribute.r#type() == AttributeType::String).then(|| std::str::from_utf8(bytes).ok());
    text.flatten().map(str::to_owned)
}

/// An attribute as a number of a kind.
fn number_of(attribute: &AttributeProto, kind: NumberKind) -> Option<Number> {
    let own = attribute.r#type();
    if own == AttributeType::Int {
        Some(integer_as(attribute.i(), kind))
    } else if own == AttributeType::Float && kind == NumberKind::Float {
        Some(Number::Float(f64::from(attribute.f())))
    } else {
        None
    }
}

/// An attribute as numbers of a kind; what an empty list is a list of does not matter.
fn numbers_of(attribute: &AttributeProto, kind: NumberKind) -> Option<Vec<Number>> {
    let own = attribute.r#type();
    if own == AttributeType::Ints {
        Some(attribute.ints.iter().map(|own| integer_as(*own, kind)).collect())
    } else if own == AttributeType::Floats && (kind == NumberKind::Float || attribute.floats.is_empty()) {
        Some(attribute.floats.iter().map(|own| Number::Float(f64::from(*own))).collect())
    } else {
        None
    }
}

/// Integers stand for booleans, and are good where a number with a point is wanted.
fn integer_as(integer: i64, kind: NumberKind) -> Number {
    match kind {
        NumberKind::Int => Number::Int(Expr::int(integer)),
        NumberKind::Float => Number::Float(integer as f64),
        NumberKind::Bool => Number::Bool(integer != 0),
    }
}

/// How many tensors each result is; what is over belongs to a list at the end.
fn results(call: &Call, schema: &Schema) -> Result<Vec<Option<usize>>, RuleError> {
    let (given, declared) = (call.results(), schema.results.len());
    if schema.decides_sizes {
        return Err(unsupported(
            "the function decides sizes, for which an ONNX model states no bounds; state the sizes in the model",
        ));
    }
    if call.node.output.iter().any(String::is_empty) {
        return Err(unsupported("a function's result without a name, whose type nothing states"));
    }
    let plain = declared - usize::from(schema.results.last().is_some_and(|last| last.is_list));
    let are_plain = schema.results[..plain].iter().all(|result| !result.is_list);
    if !are_plain || given < plain || (given > plain && plain == declared) {
        return Err(malformed(format!("the node has {given} results, the declared schema has {declared}")));
    }
    let list = (plain < declared).then(|| Some(given - plain));
    Ok(std::iter::repeat_n(None, plain).chain(list).collect())
}

#[cfg(test)]
mod tests {
    use super::super::proto::AttributeProto;
    use super::super::testing::{Model, float, int};
    use crate::frontend::torch::custom::{Operator, OperatorCode, Operators};
    use crate::graph::Op;
    use crate::interpret::{Tensor, evaluate};

    fn scaled(attributes: &[AttributeProto], inputs: &[&str]) -> Model {
        Model::new(17).input("x", Tensor::from_f32(&[3], &[1.0, 2.0, 3.0])).node(
            "com.example::Scaled",
            inputs,
            &["y"],
            attributes,
        )
    }

    fn declared(schema: &str, code: OperatorCode) -> Operators {
        let name = "com.example::Scaled".to_owned();
        Operators::new(&[Operator { name, schema: schema.to_owned(), code, decides_sizes: false }]).unwrap()
    }

    fn refusal(model: &Model, operators: &Operators) -> String {
        model.import_with(&["y"], operators).unwrap_err().to_string()
    }

    #[test]
    fn graphs_are_operators_of_a_domain() {
        let text = "graph { symbol s0 \"n\" in 0..inf from input 0 axis 0 input %x \"x\": f32[s0] input %k \"k\": f64[] \
                    %c: f32[] = cast %k %w: f32[s0] = view %c [] %y: f32[s0] = mul %x, %w output %y }";
        let operators = declared("(Tensor x, float k=2.0) -> Tensor", OperatorCode::Graph(text.to_owned()));
        for (attributes, wanted) in [(vec![], [2.0, 4.0, 6.0]), (vec![float("k", 0.5)], [0.5, 1.0, 1.5])] {
            let model = scaled(&attributes, &["x"]);
            let graph = model.import_with(&["y"], &operators).unwrap().graph;
            assert_eq!(evaluate(&graph, model.feeds()).unwrap()[0].to_f64(), wanted);
        }
        let said = refusal(&scaled(&[float("other", 1.0)], &["x"]), &operators);
        assert!(said.contains("does not have the attribute `other`"), "{said}");
        let said = refusal(&scaled(&[], &["x", "x"]), &operators);
        assert!(said.contains("1 operands more than the declared schema"), "{said}");
        let said = refusal(&scaled(&[int("k", 1)], &[]), &operators);
        assert!(said.contains("no operand `x`"), "{said}");
    }

    #[test]
    fn functions_need_types_that_the_model_states() {
        let function = OperatorCode::Function("scaled".to_owned());
        let schema = "(Tensor x, Tensor? bias, int[] axes=[], str mode='up') -> Tensor";
        let operators = declared(schema, function);
        let said = refusal(&scaled(&[], &["x"]), &operators);
        assert!(said.contains("does not state the type of the result `y`"), "{said}");
        let stated = scaled(&[], &["x"]).state("y", &[("batch", 0), ("", 4)]);
        let said = refusal(&stated, &operators);
        assert!(said.contains("the size `batch`"), "{said}");
        let stated = scaled(&[], &["x"]).state("y", &[("x_d0 + 1", 0), ("", 4)]);
        let graph = stated.import_with(&["y"], &operators).unwrap().graph;
        let call = graph.nodes.iter().find(|node| matches!(node.op, Op::Extern(_))).unwrap();
        let ty = graph.ty(call.outputs[0]);
        assert_eq!(ty.to_string(), "f32[s0 + 1, 4]");
        let said = refusal(&scaled(&[], &["x"]), &Operators::default());
        assert!(said.contains("[package.metadata.aoti.operators.\"com.example::Scaled\"]"), "{said}");
    }
}
