//! A library has no code of operators that its program does not call: what serves few programs is in headers of its own, and an
//! object that does not include one cannot grow with it.

use aoti_compiler::codegen::bundle::SourceBundle;
use aoti_compiler::compile::compile;
use aoti_compiler::frontend::torch::custom::{Operator, OperatorCode};
use aoti_tests::batch::options;
use aoti_tests::subcommand::workspace;
use aoti_tests::{families, models};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::path::Path;

/// Headers that only programs with certain operators need, by the words that their names begin with.
const OF_FEW: [&str; 5] = ["extern", "fourier", "linalg", "random", "special"];

/// An envelope as a graph.
const LOUDNESS: &str = r#"graph "loudness" {
  symbol s0 "rows" in 0..inf from input 0 axis 0
  symbol s1 "columns" in 0..inf from input 0 axis 1
  input %x "x": f32[s0, s1]
  input %attack "attack": f64[]
  input %release "release": f64[]
  %level: f32[s0, s1] = abs %x
  output %level "level"
}
"#;

/// The headers that the objects of a library include, of whichever processor or option.
fn included(bundle: &SourceBundle) -> BTreeSet<String> {
    let text = |name: &str| {
        let file = bundle.files.iter().find(|file| file.name == name);
        file.unwrap_or_else(|| panic!("`{name}` is in the bundle")).text.as_str()
    };
    let mut open: Vec<String> = bundle.units.iter().map(|unit| unit.source.clone()).collect();
    let mut all = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !all.insert(name.clone()) {
            continue;
        }
        for line in text(&name).lines() {
            let Some(header) =
                line.trim().strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'))
            else {
                continue;
            };
            let header = header.strip_prefix("aoti/").unwrap_or(header);
            let name = format!("include/aoti/{header}");
            // Those of GPUs are not in a library for processors.
            if bundle.files.iter().any(|file| file.name == name) {
                open.push(name);
            }
        }
    }
    all
}

/// Which of the headers of few a program's library includes.
fn of_few(model: Bytes, operators: Vec<Operator>) -> BTreeSet<&'static str> {
    let options = options("m".to_owned()).with_operators(operators);
    let bundle = compile(model, &options).unwrap_or_else(|findings| panic!("{findings}"));
    let all = included(&bundle);
    assert!(all.contains("include/aoti/run.h"), "headers are followed: {all:?}");
    let is_in = |word: &&str| {
        let start = format!("include/aoti/{word}");
        all.iter().any(|name| name.starts_with(&start))
    };
    OF_FEW.into_iter().filter(is_in).collect()
}

fn of_family(family: &str) -> BTreeSet<&'static str> {
    let cases = families::read(family);
    let case = cases.into_iter().find(|case| case.refused.is_none() && case.name.starts_with("f32"));
    of_few(case.expect("the family has programs in f32").model, vec![])
}

fn read(path: impl AsRef<Path>) -> Vec<u8> {
    std::fs::read(path).expect("the example is in the tree")
}

/// The operators of `examples/operators`, the first one computed as this says.
fn operators(envelope: OperatorCode) -> Vec<Operator> {
    let clip = read(workspace().join("examples/operators/operators/soft_clip.aoti"));
    let clip = OperatorCode::Graph(String::from_utf8(clip).expect("it is text"));
    let operator = |name: &str, schema: &str, code: OperatorCode| Operator {
        name: name.to_owned(),
        schema: schema.to_owned(),
        code,
        decides_sizes: false,
    };
    vec![
        operator("sound::envelope", "(Tensor x, float attack, float release) -> Tensor", envelope),
        operator("sound::soft_clip", "(Tensor x, float drive=1.0) -> Tensor", clip),
    ]
}

#[test]
fn programs_without_rare_operators_include_nothing_of_them() {
    assert_eq!(of_few(read(models::digits()).into(), vec![]), BTreeSet::new());
    // Complex numbers are pairs, so they need nothing.
    let families =
        ["products", "convolution", "normalisations", "pooling", "views", "quantised", "complex", "segments"];
    for family in families {
        assert_eq!(of_family(family), BTreeSet::new(), "{family}");
    }
}

#[test]
fn programs_with_rare_operators_include_what_they_need() {
    // Some of its distributions are accepted by logarithms of the gamma function.
    assert_eq!(of_family("random"), BTreeSet::from(["random", "special"]));
    assert_eq!(of_family("spectra"), BTreeSet::from(["fourier"]));
    assert_eq!(of_family("matrices"), BTreeSet::from(["linalg"]));
}

#[test]
fn only_functions_of_a_project_need_what_calls_them() {
    let model = || Bytes::from(read(workspace().join("examples/operators/models/compressor.pt2")));
    let function = OperatorCode::Function("sound_envelope".to_owned());
    assert_eq!(of_few(model(), operators(function)), BTreeSet::from(["extern"]));
    let graph = OperatorCode::Graph(LOUDNESS.to_owned());
    assert_eq!(of_few(model(), operators(graph)), BTreeSet::new());
}
