//! Models of very many nodes, and of very deep ones: reading takes time in proportion to what is there.

use super::proto::attribute_proto::AttributeType;
use super::proto::{AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto};
use super::testing::{Model, int};
use super::{external_files, import};
use crate::diagnostic::Diagnostics;
use crate::frontend::torch::custom::Operators;
use crate::frontend::{Import, MinSize, ModelFile};
use crate::interpret::Tensor;
use prost::Message;
use std::time::{Duration, Instant};

fn read(file: Vec<u8>) -> Result<Import, Diagnostics> {
    let file = ModelFile::from(file);
    external_files(file.file.clone())?;
    import(MinSize::Lowered(0), "large", &file, &Operators::default())
}

/// A network of so many nodes: products with weights, additions, functions of elements, shapes that are computed.
fn network(nodes: usize) -> Vec<u8> {
    let width = 4;
    let mut model = Model::new(17)
        .sized_input("x0", Tensor::from_f32(&[2, width], &[0.5; 8]), &[("batch", 0), ("", 4)])
        .constant("w", &Tensor::from_f32(&[width, width], &[0.25; 16]))
        .constant("b", &Tensor::from_f32(&[width], &[0.125; 4]))
        .constant("minus", &Tensor::from_i64(&[1], &[-1]));
    for layer in 0..nodes / 8 {
        let name = |what: &str| format!("{what}{layer}");
        let [x, next] = [format!("x{layer}"), format!("x{}", layer + 1)];
        let one = |model: Model, operator: &str, inputs: &[&str], output: &str| {
            model.node(operator, inputs, &[output], &[])
        };
        model = one(model, "MatMul", &[&x, "w"], &name("m"));
        model = one(model, "Add", &[&name("m"), "b"], &name("a"));
        model = one(model, "Relu", &[&name("a")], &name("r"));
        model = one(model, "Shape", &[&x], &name("s"));
        model = model.node("Gather", &[&name("s"), "minus"], &[&name("g")], &[int("axis", 0)]);
        model = model.node("Concat", &["minus", &name("g")], &[&name("c")], &[int("axis", 0)]);
        model = one(model, "Reshape", &[&name("r"), &name("c")], &name("v"));
        model = one(model, "Add", &[&name("v"), &x], &next);
    }
    model.file(&[&format!("x{}", nodes / 8)])
}

/// For how long: in a build without optimisation ten times as long as in one with it.
#[test]
fn ten_thousand_nodes_are_read_in_a_second() {
    let count = std::env::var("AOTI_NODES").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000);
    let file = network(count);
    let start = Instant::now();
    let import = read(file).unwrap();
    let took = start.elapsed();
    assert!(import.graph.nodes.len() > count / 4);
    let second = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });
    let allowed = second * u32::try_from(count.div_ceil(10_000)).unwrap();
    assert!(took < allowed, "{count} nodes took {took:?}");
    if count > 10_000 {
        println!("{count} nodes: {took:?}");
    }
}

#[test]
fn more_nodes_than_any_model_has_are_refused_at_once() {
    let chain = |at: usize| node("Relu", &[&format!("x{at}")], &[&format!("x{}", at + 1)]);
    let file = model(GraphProto { node: (0..300_000).map(chain).collect(), ..GraphProto::default() });
    let said = read(file.encode_to_vec()).unwrap_err().to_string();
    assert!(said.contains("the model has 300000 nodes"), "{said}");
}

/// Without a size to compare with, each `Reshape` divides by what the one before gave.
#[test]
fn sizes_that_grow_with_every_node_are_refused() {
    let mut model = Model::new(17)
        .input("x0", Tensor::from_f32(&[2, 4], &[0.5; 8]))
        .constant("minus", &Tensor::from_i64(&[1], &[-1]));
    for layer in 0..2000 {
        let [x, s, g, c] = ["x", "s", "g", "c"].map(|name| format!("{name}{layer}"));
        let next = format!("x{}", layer + 1);
        model = model.node("Shape", &[&x], &[&s], &[int("start", layer % 2), int("end", layer % 2 + 1)]);
        model = model.node("Add", &[&s, "one"], &[&g], &[]);
        model = model.node("Concat", &["minus", &g], &[&c], &[int("axis", 0)]);
        model = model.node("Reshape", &[&x, &c], &[&next], &[]);
    }
    let model = model.constant("one", &Tensor::from_i64(&[1], &[1]));
    let start = Instant::now();
    let said = read(model.file(&["x2000"])).unwrap_err().to_string();
    assert!(said.contains("is a formula of more than"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
    NodeProto {
        op_type: Some(operator.to_owned()),
        input: names(inputs),
        output: names(outputs),
        ..NodeProto::default()
    }
}

fn refused(model: &ModelProto, words: &str) {
    let said = read(model.encode_to_vec()).unwrap_err().to_string();
    assert!(said.contains(words), "{said}");
}

fn model(graph: GraphProto) -> ModelProto {
    let version = OperatorSetIdProto { version: Some(17), ..OperatorSetIdProto::default() };
    let own = OperatorSetIdProto { domain: Some("own".to_owned()), version: Some(1) };
    ModelProto {
        ir_version: Some(9),
        opset_import: vec![version, own],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

#[test]
fn graphs_that_are_cyclic_are_refused() {
    let nodes = vec![node("Relu", &["b"], &["a"]), node("Relu", &["a"], &["b"])];
    refused(&model(GraphProto { node: nodes, ..GraphProto::default() }), "`b` is not defined");
    let nodes = vec![node("Relu", &["a"], &["a"])];
    refused(&model(GraphProto { node: nodes, ..GraphProto::default() }), "`a` is not defined");
}

#[test]
fn functions_that_call_themselves_or_grow_without_bound_are_refused() {
    let call = |name: &str, inputs: &[&str], outputs: &[&str]| NodeProto {
        domain: Some("own".to_owned()),
        ..node(name, inputs, outputs)
    };
    let function = |name: &str, node: Vec<NodeProto>| FunctionProto {
        name: Some(name.to_owned()),
        domain: Some("own".to_owned()),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        node,
        ..FunctionProto::default()
    };
    let constant = NodeProto {
        attribute: vec![AttributeProto {
            name: Some("value_float".to_owned()),
            r#type: Some(AttributeType::Float as i32),
            f: Some(1.0),
            ..AttributeProto::default()
        }],
        ..node("Constant", &[], &["x"])
    };
    let graph = GraphProto { node: vec![constant, call("F0", &["x"], &["y"])], ..GraphProto::default() };
    let functions = vec![function("F0", vec![call("F0", &["x"], &["y"])])];
    refused(&ModelProto { functions, ..model(graph.clone()) }, "call themselves");
    // Each calls the next twice: as many nodes as a number of forty bits.
    let twice = |next: usize| {
        let next = format!("F{next}");
        vec![call(&next, &["x"], &["a"]), call(&next, &["a"], &["y"])]
    };
    let mut functions: Vec<_> = (0..40).map(|at| function(&format!("F{at}"), twice(at + 1))).collect();
    functions.push(function("F40", vec![node("Relu", &["x"], &["y"])]));
    refused(&ModelProto { functions, ..model(graph) }, "nodes when functions");
}

#[test]
fn bodies_within_bodies_end() {
    let mut body = GraphProto { node: vec![node("Relu", &["x"], &["y"])], ..GraphProto::default() };
    for _ in 0..60 {
        let branch = |name: &str| AttributeProto {
            name: Some(name.to_owned()),
            r#type: Some(AttributeType::Graph as i32),
            g: Some(body.clone()),
            ..AttributeProto::default()
        };
        let attribute = vec![branch("then_branch")];
        let own = NodeProto { attribute, ..node("If", &["c"], &["y"]) };
        body = GraphProto { node: vec![own], ..GraphProto::default() };
    }
    let start = Instant::now();
    let _ = read(model(body).encode_to_vec()).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(20));
}
