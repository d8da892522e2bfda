//! Archives made by hand, good and bad, through the front end.

use aoti_compiler::diagnostic::{Code, Diagnostics};
use aoti_compiler::frontend;
use aoti_compiler::frontend::torch::aten::{Arg, InputKind, OutputKind, Program};
use aoti_compiler::graph::SymbolSource;
use bytes::Bytes;
use serde_json::{Value, json};
use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// `y = x + w` with `x: [s0, 3]` and a parameter `w` of three numbers.
struct Model {
    entries: Vec<(String, Vec<u8>)>,
}

fn tensor(dtype: i64, sizes: Value, strides: Value) -> Value {
    json!({"dtype": dtype, "sizes": sizes, "strides": strides, "requires_grad": false,
        "device": {"type": "cpu", "index": null}, "storage_offset": {"as_int": 0}, "layout": 7})
}

fn weight_meta() -> Value {
    tensor(7, json!([{"as_int": 3}]), json!([{"as_int": 1}]))
}

fn program() -> Value {
    let rows =
        json!({"as_expr": {"expr_str": "Symbol('s31', positive=True, integer=True)", "hint": {"as_int": 8}}});
    let activation = tensor(7, json!([rows, {"as_int": 3}]), json!([{"as_int": 3}, {"as_int": 1}]));
    json!({
        "schema_version": {"major": 8, "minor": 20}, "torch_version": "2.15.0", "opset_version": {"aten": 10},
        "range_constraints": {"s31": {"min_val": 1, "max_val": 64}}, "guards_code": [], "verifiers": [],
        "graph_module": {
            "graph": {
                "inputs": [{"as_tensor": {"name": "p_w"}}, {"as_tensor": {"name": "x"}}],
                "outputs": [{"as_tensor": {"name": "add"}}],
                "nodes": [{
                    "target": "torch.ops.aten.add.Tensor",
                    "inputs": [
                        {"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
                        {"name": "other", "arg": {"as_tensor": {"name": "p_w"}}, "kind": 1}],
                    "outputs": [{"as_tensor": {"name": "add"}}],
                    "metadata": {"stack_trace": "File \"/a/model.py\", line 3, in forward\n    return x + self.w"},
                    "name": "add"}],
                "tensor_values": {"p_w": weight_meta(), "x": activation, "add": activation},
                "sym_int_values": {}, "sym_bool_values": {}},
            "signature": {
                "input_specs": [
                    {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
                    {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
                "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "add"}}}}]},
            "module_call_graph": []}})
}

fn weights() -> Value {
    json!({"config": {"w": {"path_name": "weight_0", "is_param": true, "use_pickle": false,
        "tensor_meta": weight_meta()}}})
}

impl Model {
    fn new(program: &Value, weights: &Value) -> Model {
        let data = [1f32, 2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let entries = [
            ("archive_format", b"pt2".to_vec()),
            ("archive_version", b"0".to_vec()),
            ("byteorder", b"little".to_vec()),
            ("models/model.json", program.to_string().into_bytes()),
            ("data/weights/weight_0", data),
            ("data/weights/model_weights_config.json", weights.to_string().into_bytes()),
            ("data/constants/model_constants_config.json", br#"{"config": {}}"#.to_vec()),
        ];
        Model { entries: entries.into_iter().map(|(name, data)| (name.to_owned(), data)).collect() }
    }

    fn good() -> Model {
        Model::new(&program(), &weights())
    }

    fn with(mut self, name: &str, data: &[u8]) -> Model {
        self.entries.retain(|(own, _)| own != name);
        self.entries.push((name.to_owned(), data.to_vec()));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        self.zip("net/")
    }

    fn zip(&self, root: &str) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for (name, data) in &self.entries {
            zip.start_file(format!("{root}{name}"), options).unwrap();
            zip.write_all(data).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }
}

fn import(bytes: Vec<u8>) -> Result<Program, Diagnostics> {
    frontend::torch::program("net", Bytes::from(bytes))
}

/// The import fails with one finding of this code whose message holds every word.
#[track_caller]
fn refused(bytes: Vec<u8>, code: Code, words: &[&str]) {
    let error = import(bytes).expect_err("the model must be refused");
    let found = error
        .0
        .iter()
        .any(|finding| finding.code == code && words.iter().all(|word| finding.message.contains(word)));
    assert!(found, "wanted {code} with {words:?}, got:\n{error}");
}

#[track_caller]
fn refused_program(edit: impl FnOnce(&mut Value), code: Code, words: &[&str]) {
    let mut value = program();
    edit(&mut value);
    refused(Model::new(&value, &weights()).bytes(), code, words);
}

#[track_caller]
fn refused_weights(edit: impl FnOnce(&mut Value), words: &[&str]) {
    let mut value = weights();
    edit(&mut value["config"]["w"]);
    refused(Model::new(&program(), &value).bytes(), Code::Weights, words);
}

#[test]
fn a_small_program_is_read() {
    let program = import(Model::good().bytes()).unwrap();
    assert_eq!(program.symbols[0].name, "x_d0");
    assert_eq!(program.symbols[0].range.max, 64);
    assert_eq!(program.inputs[0].kind, InputKind::Constant("w".to_owned()));
    assert_eq!(program.inputs[1].kind, InputKind::User);
    let call = &program.calls[0];
    assert_eq!(call.target, "aten.add.Tensor");
    assert_eq!(call.args[1], ("other".to_owned(), Arg::Tensor("p_w".to_owned())));
    assert_eq!(call.origin.source, "model.py:3 in forward: return x + self.w");
    assert_eq!(program.outputs[0].kind, OutputKind::User);
    assert_eq!(&program.constants["w"].data[4..8], &2f32.to_le_bytes());
}

#[test]
fn sizes_that_export_assumes_are_neither_may_be_0_or_1() {
    let least = |stated: i64, edit: &dyn Fn(&mut Value)| {
        let mut value = program();
        value["range_constraints"]["s31"]["min_val"] = json!(stated);
        edit(&mut value);
        let graph = frontend::read("net", Model::new(&value, &weights()).bytes(), &[]).unwrap();
        graph.symbols[0].range.min
    };
    let as_it_is: &dyn Fn(&mut Value) = &|_| ();
    assert_eq!([0, 1, 2, 3].map(|stated| least(stated, as_it_is)), [0, 1, 0, 3]);
    // What the program asks is asked of every size.
    let own = json!(["L['x'].size()[0] >= 2"]);
    assert_eq!(least(2, &|value| value["guards_code"] = own.clone()), 0);
}

#[test]
fn weights_are_slices_of_the_file() {
    let file = Bytes::from(Model::good().bytes());
    let program = frontend::torch::program("net", file.clone()).unwrap();
    assert!(file.as_ptr_range().contains(&program.constants["w"].data.as_ptr()));
}

#[test]
fn what_calls_overwrite_becomes_state() {
    let mut value = program();
    let node = &mut value["graph_module"]["graph"]["nodes"][0];
    node["target"] = json!("torch.ops.aten.add_.Tensor");
    node["inputs"][0]["arg"]["as_tensor"]["name"] = json!("p_w");
    node["inputs"][1]["arg"]["as_tensor"]["name"] = json!("x");
    let program = import(Model::new(&value, &weights()).bytes()).unwrap();
    assert_eq!(program.outputs[0].kind, OutputKind::BufferMutation("w".to_owned()));
    assert_eq!(program.outputs[0].value, Arg::Tensor("p_w".to_owned()));
    // State comes before the user's input, whose size the symbol is.
    assert_eq!(program.symbols[0].source, SymbolSource::InputDim { input: 1, axis: 0 });
}

#[test]
fn truncated_archives_are_refused() {
    let good = Model::good().bytes();
    for length in (0..good.len()).step_by(7) {
        let error = import(good[..length].to_vec()).unwrap_err();
        assert_eq!(error.0[0].code, Code::Archive, "cut at {length}: {error}");
    }
}

/// Overwrites a field of the central directory's entry of `name`.
fn patch_directory(bytes: &mut [u8], name: &str, field: usize, value: &[u8]) {
    let starts = (0..bytes.len() - 46).filter(|at| bytes[*at..].starts_with(b"PK\x01\x02"));
    let at = starts.into_iter().find(|at| bytes[at + 46..].starts_with(name.as_bytes())).unwrap();
    bytes[at + field..at + field + value.len()].copy_from_slice(value);
}

#[test]
fn entries_outside_the_file_are_refused() {
    let mut bytes = Model::good().bytes();
    for field in [20, 24] {
        patch_directory(&mut bytes, "net/data/weights/weight_0", field, &0x7fff_ffffu32.to_le_bytes());
    }
    refused(bytes, Code::Archive, &["weight_0", "2147483647 bytes"]);
}

#[test]
fn an_entry_of_a_terabyte_is_refused() {
    // Sizes of 64 bits stand in an extra field, to which the 32-bit fields point by being all ones.
    let name = b"net/models/model.json";
    let mut bytes = Vec::new();
    bytes.extend(b"PK\x03\x04\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend([0xff; 8]);
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(20u16.to_le_bytes());
    bytes.extend(name);
    let extra = |bytes: &mut Vec<u8>| {
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((1u64 << 40).to_le_bytes());
        bytes.extend((1u64 << 40).to_le_bytes());
    };
    extra(&mut bytes);
    bytes.extend(b"{}");
    let directory = bytes.len();
    bytes.extend(b"PK\x01\x02\x2d\0\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend([0xff; 8]);
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(20u16.to_le_bytes());
    bytes.extend([0; 14]);
    bytes.extend(name);
    extra(&mut bytes);
    let size = bytes.len() - directory;
    bytes.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    bytes.extend((size as u32).to_le_bytes());
    bytes.extend((directory as u32).to_le_bytes());
    bytes.extend([0; 2]);
    refused(bytes, Code::Archive, &["model.json", "1099511627776 bytes"]);
}

#[test]
fn names_that_leave_the_archive_are_refused() {
    for name in ["../evil", "a/../../evil", "C:\\evil", "x\\y"] {
        refused(Model::good().with(name, b"").bytes(), Code::Archive, &["leaves"]);
    }
    refused(Model::good().zip("/abs/"), Code::Archive, &["leaves"]);
}

#[test]
fn two_entries_of_one_name_are_refused() {
    let mut bytes = Model::good().with("data/weights/weight_1", b"").bytes();
    // The directory is what counts.
    patch_directory(&mut bytes, "net/data/weights/weight_1", 46, b"net/data/weights/weight_0");
    refused(bytes, Code::Archive, &["two entries"]);
}

#[test]
fn compressed_entries_are_refused() {
    let mut bytes = Model::good().bytes();
    patch_directory(&mut bytes, "net/models/model.json", 10, &8u16.to_le_bytes());
    refused(bytes, Code::Archive, &["model.json", "compressed"]);
}

#[test]
fn other_versions_are_refused() {
    refused(Model::good().with("archive_format", b"pt3").bytes(), Code::Version, &["pt3"]);
    refused(Model::good().with("archive_version", b"7").bytes(), Code::Version, &["7"]);
    refused(Model::good().with("byteorder", b"big").bytes(), Code::Version, &["big"]);
    refused_program(|p| p["schema_version"]["major"] = json!(5), Code::Version, &["5.20", "2.15.0"]);
}

#[test]
fn malformed_descriptions_name_the_place() {
    let remove = |p: &mut Value| {
        p["graph_module"]["graph"]["nodes"][0].as_object_mut().unwrap().remove("inputs");
    };
    refused_program(remove, Code::Schema, &["graph.nodes[0]", "`inputs`"]);
    refused(Model::good().with("models/model.json", b"{").bytes(), Code::Schema, &["models/model.json"]);
    refused(Model::good().with("models/model.json", b"\xff").bytes(), Code::Schema, &[]);
    refused_program(
        |p| p["graph_module"]["signature"]["input_specs"][1] = json!({"novel_input": {}}),
        Code::Schema,
        &["novel_input"],
    );
    refused_program(
        |p| p["graph_module"]["graph"]["nodes"][0]["inputs"][1]["arg"] = json!({"as_novelty": 1}),
        Code::Operands,
        &["as_novelty"],
    );
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    refused(Model::good().with("models/model.json", deep.as_bytes()).bytes(), Code::Schema, &[]);
    let mut value = program();
    let body = value["graph_module"]["graph"].clone();
    let mut inner = body.clone();
    for _ in 0..15 {
        let mut outer = body.clone();
        outer["nodes"][0]["inputs"][1]["arg"] = json!({"as_graph": {"name": "g", "graph": inner}});
        inner = outer;
    }
    value["graph_module"]["graph"] = inner;
    refused(Model::new(&value, &weights()).bytes(), Code::Graph, &["nested"]);
}

#[test]
fn graphs_that_are_not_in_order_are_refused() {
    refused_program(
        |p| p["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"]["as_tensor"]["name"] = json!("add"),
        Code::Graph,
        &["`add`", "before"],
    );
    refused_program(
        |p| p["graph_module"]["graph"]["nodes"][0]["outputs"][0]["as_tensor"]["name"] = json!("x"),
        Code::Graph,
        &["`x`", "twice"],
    );
    refused_program(
        |p| {
            p["graph_module"]["signature"]["output_specs"][0]["user_output"]["arg"]["as_tensor"]["name"] =
                json!("q")
        },
        Code::Graph,
        &["`q`"],
    );
}

#[test]
fn outputs_that_no_node_makes_are_refused_wherever_they_are_listed() {
    refused_program(
        |p| p["graph_module"]["graph"]["outputs"][0]["as_tensor"]["name"] = json!("nobody"),
        Code::Graph,
        &["`nobody`"],
    );
}

#[test]
fn headers_that_state_another_size_than_the_directory_are_refused() {
    // Nobody reads this entry.
    let good = Model::good().with("extra/unread", b"twelve bytes").bytes();
    for field in [18, 22] {
        let mut bytes = good.clone();
        let name = b"net/extra/unread";
        let at = (0..bytes.len()).find(|at| bytes[*at..].starts_with(name)).expect("it has a header") - 30;
        bytes[at + field] = 3;
        refused(bytes, Code::Archive, &["extra/unread", "12 bytes", "3 by its header"]);
    }
    import(good).expect("what nobody reads may be there");
}

#[test]
fn what_tensors_of_few_bytes_expand_to_has_a_limit_in_all() {
    let expanded = |rows: &[i64]| {
        let (mut program, mut weights) = (program(), weights());
        for (number, rows) in rows.iter().enumerate() {
            let (name, parameter) = (format!("p_{number}"), format!("w{number}"));
            let sizes = json!([{"as_int": rows}, {"as_int": 4096}]);
            let meta = tensor(7, sizes, json!([{"as_int": 0}, {"as_int": 0}]));
            let module = &mut program["graph_module"];
            module["graph"]["tensor_values"][&name] = meta.clone();
            let inputs = module["graph"]["inputs"].as_array_mut().expect("a list");
            inputs.insert(0, json!({"as_tensor": {"name": name}}));
            let specs = module["signature"]["input_specs"].as_array_mut().expect("a list");
            specs.insert(0, json!({"parameter": {"arg": {"name": name}, "parameter_name": parameter}}));
            weights["config"][&parameter] = json!({"path_name": "weight_0", "is_param": true,
                "use_pickle": false, "tensor_meta": meta});
        }
        Model::new(&program, &weights).bytes()
    };
    // 1 MiB each, of one and the same element; then two that come to 66 MiB.
    import(expanded(&[64; 500])).expect("tensors of the same elements share them");
    refused(expanded(&[2112, 2113]), Code::Weights, &["repeats the 12 bytes", "would be"]);
}

#[test]
fn sizes_out_of_range_are_refused() {
    let size = |size: Value| {
        move |p: &mut Value| p["graph_module"]["graph"]["tensor_values"]["add"]["sizes"][1] = size
    };
    refused_program(size(json!({"as_int": -3})), Code::Size, &["`add`"]);
    refused_program(size(json!({"as_int": i64::MAX})), Code::Size, &["`add`"]);
    let huge = json!({"as_expr": {"expr_str": "Pow(Symbol('s31'), Integer(99999))"}});
    refused_program(size(huge), Code::Schema, &["`add`"]);
    refused_program(size(json!({"as_expr": {"expr_str": "Symbol('s99')"}})), Code::Graph, &["s99"]);
}

#[test]
fn unsupported_element_types_are_all_named() {
    let mut value = program();
    value["graph_module"]["graph"]["tensor_values"]["add"]["dtype"] = json!(14);
    value["graph_module"]["graph"]["tensor_values"]["x"]["dtype"] = json!(99);
    let error = import(Model::new(&value, &weights()).bytes()).unwrap_err();
    let messages: Vec<&str> = error.0.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "the value `x` is a tensor of `element type number 99`",
            "the value `add` is a tensor of `element type number 14`"
        ]
    );
    assert!(error.0[1].origin.as_ref().unwrap().source.starts_with("model.py:3"));
}

#[test]
fn data_that_does_not_fit_is_refused() {
    refused(
        Model::good().with("data/weights/weight_0", &[0; 11]).bytes(),
        Code::Weights,
        &["weight_0", "11 bytes", "`w`"],
    );
    refused_weights(|w| w["tensor_meta"]["sizes"][0]["as_int"] = json!(-1), &["`w`", "negative"]);
    refused_weights(|w| w["tensor_meta"]["sizes"][0]["as_int"] = json!(i64::MAX), &["`w`", "overflows"]);
    refused_weights(|w| w["tensor_meta"]["storage_offset"]["as_int"] = json!(i64::MAX), &["`w`"]);
    refused_weights(|w| w["tensor_meta"]["sizes"][0]["as_int"] = json!(2), &["`w`", "[2]", "[3]"]);
    refused_weights(|w| w["path_name"] = json!("../../models/model.json"), &["`w`"]);
    refused_weights(|w| w["use_pickle"] = json!(true), &["`w`", "pickle"]);
    refused(Model::new(&program(), &json!({"config": {}})).bytes(), Code::Weights, &["`w`"]);
}

/// Random damage never panics, hangs or allocates without bound; most of it is refused.
#[test]
fn damaged_archives_do_not_panic() {
    let good = Model::good().bytes();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..3000 {
        let mut bytes = good.clone();
        for _ in 0..1 + next() % 4 {
            let at = next() as usize % bytes.len();
            bytes[at] = next() as u8;
        }
        let _ = import(bytes);
    }
}

/// Every case of a folder of conformance cases, where the environment names one.
#[test]
fn conformance_cases_are_read() {
    let Some(folder) = std::env::var_os("AOTI_CONFORMANCE") else {
        eprintln!("skipped: AOTI_CONFORMANCE does not name a folder of cases");
        return;
    };
    let mut failures = Vec::new();
    let mut count = 0;
    for set in std::fs::read_dir(folder).unwrap() {
        for case in std::fs::read_dir(set.unwrap().path()).into_iter().flatten() {
            let path = case.unwrap().path().join("model.pt2");
            let Ok(bytes) = std::fs::read(&path) else { continue };
            count += 1;
            if let Err(error) = import(bytes) {
                failures.push(format!("{}: {error}", path.display()));
            }
        }
    }
    assert!(count > 0, "the folder holds no case");
    assert!(failures.is_empty(), "{} of {count} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn guards_may_name_inputs_by_position() {
    let mut value = program();
    value["guards_code"] = json!(["L['flat_args'][0].size()[0] != 5"]);
    let program = import(Model::new(&value, &weights()).bytes()).unwrap();
    assert_eq!(program.guards.len(), 1);
    let beyond = |value: &mut Value| value["guards_code"] = json!(["L['flat_args'][1].size()[0] != 5"]);
    refused_program(beyond, Code::Guard, &["`flat_args_1` is no input"]);
}
