//! Operators of a project's own: functions in C++ and in Rust, graphs in text, and everything that can be wrong with them.
//!
//! The model is that of `examples/operators`, whose program calls one of each.

use aoti_compiler::compile::{self, Options};
use aoti_compiler::frontend::torch::custom::{Operator, OperatorCode};
use aoti_runtime::{
    DType, DynTensor, Error, ErrorCode, Executor, Inline, LoadOptions, Model, ThreadPool, Workspace,
};
use aoti_tests::native::{assert_close, defined_symbols, numbers, open, run};
use aoti_tests::project::Project;
use aoti_tests::subcommand::{Ended, cargo, workspace};
use std::fs;
use std::path::Path;

/// What `sound::envelope` is, with a header beside it, rows shared among threads, and an error for what it dislikes.
const ENVELOPE: &str = r#"
#include "level.h"

extern "C" int32_t sound_envelope(const AotiTensor *x, double attack, double release, const AotiTensor *y,
                                  const AotiContext *context, AotiError *error) {
  if (x->rank != 2 || x->dtype != AOTI_F32) return aoti_fail(error, "not a sound");
  if (x->sizes[0] > 0 && x->sizes[1] > 0 && ((const float *)x->data)[0] == 77.0f) return aoti_fail(error, "too loud");
  Work work{(const float *)x->data, (float *)y->data, x->sizes[1], float(attack), float(release)};
  aoti_parallel_for(context, x->sizes[0], follow, &work);
  return 0;
}
"#;

const LEVEL: &str = r#"
#pragma once
struct Work {
  const float *x;
  float *y;
  int64_t length;
  float attack, release;
};
static void follow(void *arg, int64_t begin, int64_t end, int32_t) {
  const Work &work = *(const Work *)arg;
  for (int64_t row = begin; row < end; ++row) {
    float level = 0;
    for (int64_t k = row * work.length; k < (row + 1) * work.length; ++k) {
      const float x = work.x[k] < 0 ? -work.x[k] : work.x[k];
      level += (x > level ? work.attack : work.release) * (x - level);
      work.y[k] = level;
    }
  }
}
"#;

const FUNCTION: &str = "[package.metadata.aoti.operators.\"sound::envelope\"]\n\
    schema = \"(Tensor x, float attack, float release) -> Tensor\"\nsymbol = \"sound_envelope\"\n";
const SOURCE: &str = "source = \"operators/envelope.cpp\"\n";
const GRAPH: &str = "[package.metadata.aoti.operators.\"sound::soft_clip\"]\n\
    schema = \"soft_clip(Tensor x, float drive=1.0) -> Tensor\"\ngraph = \"operators/soft_clip.aoti\"\n";
const DYLIB: &str =
    "[package.metadata.aoti.models.compressor]\npath = \"models/compressor.pt2\"\nlink = \"dylib\"\n";

fn example(name: &str) -> String {
    fs::read_to_string(workspace().join("examples/operators").join(name)).expect("the example is in the tree")
}

/// A project with the example's model and this text in its manifest.
fn project(table: &str) -> Project {
    let model = workspace().join("examples/operators/models/compressor.pt2");
    let project = Project::new(table).with_model("compressor.pt2", &model);
    project.write("operators/envelope.cpp", ENVELOPE);
    project.write("operators/level.h", LEVEL);
    project.write("operators/soft_clip.aoti", example("operators/soft_clip.aoti"));
    project
}

fn load(project: &Project) -> Model {
    let library = open(project, "compressor");
    library.load(LoadOptions::default()).expect("it loads")
}

/// What the example's Python program computes.
fn expected(sound: &[f32], length: usize) -> Vec<f32> {
    let mut all = Vec::new();
    for row in sound.chunks(length) {
        let mut level = 0.0f32;
        for x in row {
            level += if x.abs() > level { 0.02 } else { 0.002 } * (x.abs() - level);
            let gain = (0.25 / level.max(0.05)).min(2.0).powf(0.75);
            let y = x * gain * 1.5;
            all.push(y / (1.0 + y.abs()));
        }
    }
    all
}

fn ran(model: &Model, input: &DynTensor, executor: &dyn Executor) -> Result<Vec<f32>, Error> {
    Ok(run(model, input, executor)?.as_slice::<f32>().expect("it gives f32").to_vec())
}

#[test]
fn functions_in_cpp_and_graphs_compute_operators() {
    let project = project(&[FUNCTION, SOURCE, GRAPH, DYLIB].concat());
    let first = project.build();
    assert!(first.tools().iter().any(|tool| tool.contains("envelope.cpp")), "{:?}", first.tools());
    let model = load(&project);
    let pool = ThreadPool::new(3);
    let executors: [&dyn Executor; 2] = [&Inline, &pool];
    for executor in executors {
        for (channels, samples) in [(1, 1), (3, 257), (8, 1000)] {
            let sound = numbers(&[channels, samples], samples as u64);
            let wanted = expected(sound.as_slice().expect("f32"), samples);
            assert_close(&ran(&model, &sound, executor).expect("it runs"), &wanted);
        }
    }
    // What a function says is the run's error, and the model runs again after it.
    let mut loud = numbers(&[2, 8], 1);
    loud.as_mut_slice::<f32>().expect("f32")[0] = 77.0;
    let error = ran(&model, &loud, &pool).expect_err("it is too loud");
    assert_eq!(error.code(), ErrorCode::Operator);
    let said = error.message();
    assert!(
        said.starts_with("too loud: operator `sound::envelope` at ") && said.contains("export.py:"),
        "{said}"
    );
    ran(&model, &numbers(&[2, 8], 1), &pool).expect("it runs again");
    // A library that is open is not opened again.
    drop(model);

    // What is up to date stays; what a source, a header or a graph says anew is built anew.
    assert_eq!(project.build().tools(), Vec::<&str>::new());
    project.write("operators/level.h", LEVEL.replace("level += ", "level = 1 + 0 * "));
    assert_eq!(project.build().tools().len(), 2, "the source and the library");
    let quiet = ran(&load(&project), &numbers(&[1, 4], 1), &Inline).expect("it runs");
    assert_ne!(quiet, expected(numbers(&[1, 4], 1).as_slice().expect("f32"), 4));
    project.write(
        "operators/soft_clip.aoti",
        example("operators/soft_clip.aoti").replace("= full 1.0", "= full 2.0"),
    );
    assert!(!project.build().tools().is_empty());
}

/// What `sound::peaks` of `tests/models/peaks.py` is. Where nothing is above the level it says so wrongly, to see who looks.
const PEAKS: &str = r#"
extern "C" int32_t sound_peaks(const AotiTensor *x, double level, const AotiTensor *at, const AotiTensor *at_sizes,
                               const AotiTensor *pairs, const AotiTensor *pairs_sizes, const AotiContext *,
                               AotiError *error) {
  if (at->rank != 1 || at->sizes[0] != 64 || at->dtype != AOTI_I64) return aoti_fail(error, "not the largest");
  if (pairs->rank != 2 || pairs->sizes[0] != 64 || pairs->sizes[1] != 2) return aoti_fail(error, "not the largest");
  if (pairs_sizes->rank != 1 || pairs_sizes->sizes[0] != 2) return aoti_fail(error, "not two sizes");
  const float *values = (const float *)x->data;
  int64_t count = 0;
  for (int64_t k = 0; k < x->sizes[0]; ++k)
    if (values[k] > level) {
      ((int64_t *)at->data)[count] = k;
      ((float *)pairs->data)[2 * count] = values[k];
      ((float *)pairs->data)[2 * count + 1] = float(k);
      ++count;
    }
  if (values[0] == 0.25f) count = 65;
  ((int64_t *)at_sizes->data)[0] = count;
  ((int64_t *)pairs_sizes->data)[0] = values[0] == 0.125f ? count + 1 : count;
  ((int64_t *)pairs_sizes->data)[1] = 2;
  return 0;
}
"#;

#[test]
fn functions_decide_how_large_results_are() {
    let table = "[package.metadata.aoti.operators.\"sound::peaks\"]\n\
        schema = \"(Tensor x, float level) -> (Tensor, Tensor)\"\nsymbol = \"sound_peaks\"\n\
        source = \"operators/peaks.cpp\"\ndecides-sizes = true\n\
        [package.metadata.aoti.models.peaks]\npath = \"models/peaks.pt2\"\nlink = \"dylib\"\n";
    let path = workspace().join("tests/models/peaks.pt2");
    let build = |table: &str| {
        let project = Project::new(table).with_model("peaks.pt2", &path);
        project.write("operators/peaks.cpp", PEAKS);
        project
    };
    let project = build(table);
    project.build();
    let library = open(&project, "peaks");
    let model = library.load(LoadOptions::default()).expect("it loads");
    let called = |input: &[f32]| {
        let mut x = DynTensor::zeros(DType::F32, &[64]).expect("it is small");
        x.as_mut_slice::<f32>().expect("f32")[..input.len()].copy_from_slice(input);
        let mut all = [DType::I64, DType::F32, DType::F32, DType::F32].map(DynTensor::empty);
        let mut outputs: Vec<&mut DynTensor> = all.iter_mut().collect();
        model.run(&[x.view()], &mut outputs, None, &mut Workspace::new(), &Inline)?;
        Ok::<_, Error>(all)
    };
    let all = called(&[0.0, -2.0, 0.4, 3.0]).expect("it runs");
    assert_eq!(all[0].as_slice::<i64>().expect("i64"), [2, 4]);
    assert_eq!(
        (all[1].sizes(), all[1].as_slice::<f32>().expect("f32")),
        (&[2, 2][..], &[4.0, 2.0, 6.0, 6.0][..])
    );
    assert_eq!(all[2].as_slice::<f32>().expect("f32"), [-2.0, 3.0]);
    assert_eq!(all[3].as_slice::<f32>().expect("f32"), [5.0, 4.0]);
    let none = called(&[]).expect("nothing is above the level");
    assert_eq!((none[0].sizes(), none[1].sizes()), (&[0][..], &[0, 2][..]));
    assert_eq!(called(&[1.0; 64]).expect("all are").len(), 4);
    // What a function says is checked before anything is read by it.
    for (first, words) in [
        (0.25, "the size of axis 0 of result 0 is outside of 0 to 64: operator `sound::peaks` at peaks.py:"),
        (0.125, "the size of axis 0 of result 1 is not the program's: operator `sound::peaks` at peaks.py:"),
    ] {
        let error = called(&[first, 7.0]).expect_err("no size is so");
        assert!(error.message().contains(words), "{}", error.message());
    }
    let undeclared = build(&table.replace("decides-sizes = true\n", ""));
    let ended = Ended::of(&mut undeclared.aoti(&["build"]));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    for words in ["the size `u0` of its result", "decides-sizes = true", "peaks.py:"] {
        assert!(ended.stderr.contains(words), "no `{words}` in {}", ended.stderr);
    }
}

#[test]
fn tools_take_operators_from_the_project_in_whose_folder_they_run() {
    let project = project(&[FUNCTION, SOURCE, GRAPH].concat());
    let ended =
        Ended::of(&mut project.aoti(&["run", "models/compressor.pt2", "--dim", "sound_d1=6"])).succeeded();
    assert!(ended.stdout.starts_with("clipped: f32 [1, 6]"), "{}", ended.stdout);
    let ops = Ended::of(&mut project.aoti(&["inspect", "models/compressor.pt2", "--ops"])).succeeded();
    assert!(ops.stdout.contains("sound.envelope.default  (the project's own)"), "{}", ops.stdout);
    // A manifest beside a model says nothing to who runs elsewhere.
    let elsewhere = tempfile::tempdir().expect("there is room");
    let model = project.folder().join("models/compressor.pt2");
    let mut command = project.aoti(&["inspect"]);
    let ended = Ended::of(command.arg(model).current_dir(elsewhere.path()));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    for words in
        ["operator `sound.envelope.default` is not supported", "operators.\"sound::soft_clip\"", "export.py:"]
    {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

/// The nodes of `tests/models/envelope_onnx.py` are of the domain `org.example.sound`.
#[test]
fn nodes_of_a_domain_of_onnx_are_operators_too() {
    let of_domain =
        |table: &str, name: &str, own: &str| table.replace(name, &format!("org.example.sound::{own}"));
    let function = of_domain(FUNCTION, "sound::envelope", "Envelope");
    let graph = of_domain(GRAPH, "sound::soft_clip", "SoftClip").replace("soft_clip(", "SoftClip(");
    let project = project(&[function.as_str(), SOURCE, &graph].concat());
    fs::copy(workspace().join("tests/models/envelope.onnx"), project.folder().join("models/envelope.onnx"))
        .expect("the model is in the tree");
    let sizes = ["--dim", "channels=2", "--dim", "samples=6"];
    let run = [["run", "models/envelope.onnx"].as_slice(), &sizes].concat();
    let ended = Ended::of(&mut project.aoti(&run)).succeeded();
    assert!(ended.stdout.starts_with("clipped: f32 [2, 6]"), "{}", ended.stdout);
    let ops = Ended::of(&mut project.aoti(&["inspect", "models/envelope.onnx", "--ops"])).succeeded();
    for line in ["1  Mul\n", "1  org.example.sound::Envelope  (the project's own)"] {
        assert!(ops.stdout.contains(line), "{}", ops.stdout);
    }
    // Elsewhere nobody has declared them.
    let elsewhere = tempfile::tempdir().expect("there is room");
    let model = project.folder().join("models/envelope.onnx");
    let ended = Ended::of(project.aoti(&["inspect"]).arg(model).current_dir(elsewhere.path()));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let words = "operators.\"org.example.sound::SoftClip\"";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
}

#[test]
fn a_library_that_nobody_links_needs_its_functions() {
    let dylib = project(&[FUNCTION, GRAPH, DYLIB].concat());
    let ended = Ended::of(&mut dylib.aoti(&["build"]));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    for words in [
        "no definition found for `sound_envelope`, the function of operator `sound::envelope`",
        "export.py:",
        "source = ",
    ] {
        assert!(ended.stderr.contains(words), "no `{words}` in {}", ended.stderr);
    }
    let linked = project(&[FUNCTION, GRAPH].concat());
    linked.build();
    let function = "aoti_operator_sound_envelope_TffR".to_owned();
    assert!(!defined_symbols(&linked.library("compressor")).contains(&function));
    let complete = project(&[FUNCTION, SOURCE, GRAPH].concat());
    complete.build();
    let defined = defined_symbols(&complete.library("compressor"));
    assert!(defined.contains(&function) && !defined.contains(&"sound_envelope".to_owned()), "{defined:?}");
}

#[test]
fn functions_of_another_type_do_not_compile() {
    let project = project(&[FUNCTION, SOURCE, GRAPH].concat());
    project.write("operators/envelope.cpp", ENVELOPE.replace("double release", "float release"));
    let ended = Ended::of(&mut project.aoti(&["build"]));
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("sound_envelope"), "{}", ended.stderr);
    // Nor do libraries need more than C's.
    project.write(
        "operators/envelope.cpp",
        ENVELOPE.replace("return 0;", "extern int elsewhere(); return elsewhere();"),
    );
    let ended = Ended::of(&mut project.aoti(&["build"]));
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("undefined symbols outside libc"), "{}", ended.stderr);
}

#[test]
fn functions_cannot_be_called_on_gpus() {
    let declared = |name: &str, schema: &str, code| Operator {
        name: name.to_owned(),
        schema: schema.to_owned(),
        code,
        decides_sizes: false,
    };
    let schema = "(Tensor x, float attack, float release) -> Tensor";
    let function = declared("sound::envelope", schema, OperatorCode::Function("sound_envelope".to_owned()));
    let graph = OperatorCode::Graph(example("operators/soft_clip.aoti"));
    let operators =
        vec![function, declared("sound::soft_clip", "(Tensor x, float drive=1.0) -> Tensor", graph)];
    let options = Options::for_gpus("compressor", ["sm_90a"]).with_operators(operators);
    let model =
        fs::read(workspace().join("examples/operators/models/compressor.pt2")).expect("it is in the tree");
    let said = compile::compile(model, &options).expect_err("it is refused").to_string();
    assert!(
        said.contains("`sound::envelope` is a function of the project, which cannot be called on a GPU")
            && said.contains("export.py:"),
        "{said}"
    );
}

/// A copy of the example with paths that hold in another folder.
fn copied(to: &Path) {
    for name in ["Cargo.lock", "build.rs", "operators/soft_clip.aoti", "src/main.rs", "src/envelope.rs"] {
        let path = to.join(name);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("folders can be made");
        fs::write(path, example(name)).expect("files can be written");
    }
    fs::create_dir_all(to.join("models")).expect("folders can be made");
    let model = workspace().join("examples/operators/models/compressor.pt2");
    fs::copy(model, to.join("models/compressor.pt2")).expect("the model can be copied");
    let manifest = example("Cargo.toml").replace("../../", &format!("{}/", workspace().display()));
    fs::write(to.join("Cargo.toml"), manifest).expect("files can be written");
}

#[test]
fn functions_in_rust_compute_operators_and_are_compared_with_their_schemas() {
    let folder = tempfile::tempdir().expect("there is room");
    copied(folder.path());
    let cache = folder.path().join("cache");
    let run = || Ended::of(cargo(folder.path(), &cache).args(["run", "--quiet"]));
    let change = |name: &str, from: &str, to: &str| {
        let path = folder.path().join(name);
        let text = fs::read_to_string(&path).expect("it can be read");
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).expect("it can be written");
    };
    assert_eq!(run().succeeded().stdout, example("expected.txt"));

    // An error and a panic in the function, with the line of the Python program.
    change(
        "src/envelope.rs",
        "let length =",
        "if x.data()[0] == 0.0 { panic!(\"silent\") }\n        let length =",
    );
    let said = run().stderr;
    assert!(said.contains("the function panicked: silent: operator `sound::envelope` at "), "{said}");
    assert!(said.contains("export.py:"), "{said}");
    change("src/envelope.rs", "panic!(\"silent\")", "return Err(\"silent\".to_owned())");
    let said = run().stderr;
    assert!(said.contains("Error: silent: operator `sound::envelope` at "), "{said}");

    // Parameters that the schema does not have.
    change("src/envelope.rs", "release: f64,", "release: i64,");
    let said = run().stderr;
    assert!(
        said.contains("the parameters are not those of the operator's `schema` in the manifest")
            && said.contains("fn sound_envelope(x: TensorView<f32>"),
        "{said}"
    );
}
