//! What a model takes to compile grows as the model does.
//!
//! Time is the processor's, of this process: how busy the machine is has no part in it. Where the system does not tell,
//! there is nothing to compare.

use aoti_compiler::compile::compile;
use aoti_tests::archive::Archive;
use aoti_tests::batch::options;
use aoti_tests::child::processor_time;
use aoti_tests::models;
use bytes::Bytes;
use serde_json::{Value, json};
use std::time::Duration;

const SMALL: usize = 2_000;
const TIMES: usize = 10;
/// Ten times the nodes take about ten times as long; what goes over all nodes for each takes a hundred.
const MOST: u32 = 20;
/// Of several measurements the smallest counts: whatever else a processor does makes them larger.
const ROUNDS: usize = 3;

/// The example's network with a chain of so many calls before its first activation.
fn chain(length: usize) -> Bytes {
    let mut archive = Archive::read(&models::digits());
    let is_program = |name: &str| name.ends_with("models/model.json");
    let entry = archive.entries.iter_mut().find(|entry| is_program(&entry.name)).unwrap();
    let mut program: Value = serde_json::from_slice(&entry.data).unwrap();
    let graph = &mut program["graph_module"]["graph"];
    let nodes = graph["nodes"].as_array_mut().unwrap();
    let at = nodes.iter().position(|node| node["target"] == "torch.ops.aten.relu.default").unwrap();
    let source = nodes[at]["inputs"][0]["arg"]["as_tensor"]["name"].as_str().unwrap().to_owned();
    let name = |number: usize| if number == 0 { source.clone() } else { format!("link_{number}") };
    let links = (1..=length).map(|number| {
        let mut node = nodes[at].clone();
        node["target"] = json!("torch.ops.aten.tanh.default");
        node["inputs"][0]["arg"]["as_tensor"]["name"] = json!(name(number - 1));
        node["outputs"][0]["as_tensor"]["name"] = json!(name(number));
        node
    });
    let links: Vec<Value> = links.collect();
    nodes[at]["inputs"][0]["arg"]["as_tensor"]["name"] = json!(name(length));
    nodes.splice(at..at, links);
    let values = graph["tensor_values"].as_object_mut().unwrap();
    let meta = values[&source].clone();
    values.extend((1..=length).map(|number| (name(number), meta.clone())));
    entry.data = serde_json::to_vec(&program).unwrap();
    archive.write().into()
}

fn taken(model: &Bytes) -> Duration {
    let options = options("m".to_owned());
    let begun = processor_time();
    compile(model.clone(), &options).unwrap();
    processor_time() - begun
}

#[test]
fn ten_times_the_nodes_take_about_ten_times_as_long() {
    let [small, large] = [SMALL, SMALL * TIMES].map(chain);
    let least = |model: &Bytes| (0..ROUNDS).map(|_| taken(model)).min().unwrap();
    let small = least(&small);
    let mut large_taken = Duration::MAX;
    for _ in 0..ROUNDS {
        large_taken = large_taken.min(taken(&large));
        if large_taken <= small * MOST {
            break;
        }
    }
    eprintln!("{SMALL} nodes: {small:?}, {TIMES} times as many: {large_taken:?}");
    assert!(
        large_taken <= small * MOST,
        "{SMALL} nodes take {small:?}, {TIMES} times as many {large_taken:?}"
    );
}
