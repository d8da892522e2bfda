//! Several programs in one library: they share weights and states.

use aoti_runtime::{AnyView, DType, DynTensor, ErrorCode, Inline, LoadOptions, Model, State, Workspace};
use aoti_tests::native;
use aoti_tests::project::Project;

/// Writes rows of a cache from a position on, times a weight.
const WRITE: &str = r#"graph "write" {
  origin o0 = "" "" ""
  const c0 "cache": f32[4, 2] = splat 0
  const c1 "scale": f32[4, 2] = [2.0, 3.0, 2.0, 3.0, 2.0, 3.0, 2.0, 3.0]
  input %0 "x": f32[4, 2]
  input %1 "cache": f32[4, 2] state c0
  %3: f32[4, 2] = constant c1
  %4: f32[4, 2] = mul %0, %3
  %5: f32[4, 2] = add %1, %4
  output %5 "cache" state 1
}
"#;

/// Reads the cache, counts, and multiplies by the same weight. Its states are declared in another order.
const READ: &str = r#"graph "read" {
  origin o0 = "" "" ""
  const c0 "cache": f32[4, 2] = splat 0
  const c1 "scale": f32[4, 2] = [2.0, 3.0, 2.0, 3.0, 2.0, 3.0, 2.0, 3.0]
  const c2 "count": f32[] = splat 5
  input %0 "count": f32[] state c2
  input %1 "y": f32[4, 2]
  input %2 "cache": f32[4, 2] state c0
  %4: f32[4, 2] = constant c1
  %5: f32[4, 2] = mul %1, %4
  %6: f32[4, 2] = add %2, %5
  %7: f32[] = add %0, %0
  output %6 "sum"
  output %7 "count" state 0
  output %2 "cache" state 2
}
"#;

/// Has nothing to do with states.
const PLAIN: &str = r#"graph "plain" {
  origin o0 = "" "" ""
  input %0 "x": f32[2]
  %1: f32[2] = add %0, %0
  output %1 "twice"
}
"#;

const TABLE: &str = "[package.metadata.aoti]\ncpu = [\"native\"]\n[package.metadata.aoti.models.cached]\nlink = \"dylib\"\n\
                     programs = { read = \"models/read.aoti\", write = { path = \"models/write.aoti\" }, plain = \"models/plain.aoti\" }\n";

fn project(table: &str, read: &str) -> Project {
    let project = Project::new(table);
    for (name, text) in [("write", WRITE), ("read", read), ("plain", PLAIN)] {
        project.write(&format!("models/{name}.aoti"), text);
    }
    project
}

fn run(model: &Model, input: &[f32], sizes: &[usize], state: Option<&mut State>) -> Vec<f32> {
    let mut x = DynTensor::zeros(DType::F32, sizes).unwrap();
    x.as_mut_slice().unwrap().copy_from_slice(input);
    let mut outputs: Vec<DynTensor> =
        model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    model.run(&[x.view()], &mut targets, state, &mut Workspace::new(), &Inline).unwrap();
    outputs.first().map(|output| output.as_slice().unwrap().to_vec()).unwrap_or_default()
}

#[test]
fn programs_share_weights_and_states() {
    let project = project(TABLE, READ);
    project.build();
    let library = native::open(&project, "cached");
    let load = |name: &str| library.program(name).unwrap().load(LoadOptions::default()).unwrap();
    let (write, read) = (load("write"), load("read").program("read").unwrap());
    // What both start as is there once, and so is the weight; each form is aligned to 64 bytes.
    assert_eq!(read.info().weights_bytes, 3 * 64);
    assert_eq!((read.info().state_bytes, write.info().state_bytes), (128, 128));
    assert_eq!(load("plain").info().state_bytes, 0);
    let names: Vec<String> = write.info().states.iter().map(|state| state.name.clone()).collect();
    assert_eq!(names, ["count", "cache"]);
    let mut state = write.state().unwrap();
    let ones = [1.0; 8];
    run(&write, &ones, &[4, 2], Some(&mut state));
    let expected: Vec<f32> = [4.0, 6.0].repeat(4);
    assert_eq!(run(&read, &ones, &[4, 2], Some(&mut state)), expected);
    assert_eq!(state.read("count").unwrap().as_slice::<f32>(), Some(&[10.0][..]));
    assert_eq!(run(&load("plain"), &[1.0, 2.0], &[2], None), [2.0, 4.0]);
    let error = library.program("other").unwrap_err();
    assert_eq!(error.message(), "the library has no program `other`, but `plain`, `read`, `write`");
}

#[test]
fn states_are_rolled_back_saved_and_restored() {
    let project = project(TABLE, READ);
    project.build();
    let library = native::open(&project, "cached");
    let load = |name: &str| library.program(name).unwrap().load(LoadOptions::default()).unwrap();
    let (write, read) = (load("write"), load("read"));
    let mut state = read.state().unwrap();
    let values: Vec<f32> = (1..=8u8).map(f32::from).collect();
    run(&write, &values, &[4, 2], Some(&mut state));
    let (before, saved) = (state.clone(), state.save().unwrap());
    // Steps beyond the first two, and then the second of two sequences.
    state.reset_slice(&write, "cache", 0, 2..4).unwrap();
    assert_eq!(floats(&state), [2.0, 6.0, 6.0, 12.0, 0.0, 0.0, 0.0, 0.0]);
    state.reset_slice(&read, "cache", 1, 1..2).unwrap();
    assert_eq!(floats(&state), [2.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let row = state.read_slice("cache", 1, 0..1).unwrap();
    assert_eq!((row.sizes(), row.as_slice::<f32>()), (&[4, 1][..], Some(&[2.0, 6.0, 0.0, 0.0][..])));
    state.write_slice("cache", 1, 1..2, &row.view()).unwrap();
    assert_eq!(floats(&state), [2.0, 2.0, 6.0, 6.0, 0.0, 0.0, 0.0, 0.0]);
    state.assign(&before).unwrap();
    assert_eq!(state.save().unwrap(), saved);
    state.reset(&write).unwrap();
    assert_eq!(floats(&state), [0.0; 8]);
    state.restore(&saved).unwrap();
    assert_eq!(floats(&state), floats(&before));
    let code = |result: Result<(), aoti_runtime::Error>| result.unwrap_err().code();
    assert_eq!(code(state.reset_slice(&write, "cache", 0, 2..5)), ErrorCode::Range);
    assert_eq!(code(state.reset_slice(&write, "cache", 2, 0..1)), ErrorCode::Rank);
    assert_eq!(code(state.write("cache", &row.view())), ErrorCode::Size);
    let integers = DynTensor::zeros(DType::I64, &[4, 2]).unwrap();
    let view: AnyView<'_> = integers.view();
    assert_eq!(code(state.write("cache", &view)), ErrorCode::DType);
    assert_eq!(code(state.restore(&saved[..saved.len() - 1])), ErrorCode::Size);
    assert_eq!(code(state.restore(b"something else")), ErrorCode::Size);
}

fn floats(state: &State) -> Vec<f32> {
    state.read("cache").unwrap().as_slice().unwrap().to_vec()
}

/// A program for which the cache never changes.
fn read_as_constant() -> String {
    let read = READ.replace("  input %2 \"cache\": f32[4, 2] state c0\n", "  %2: f32[4, 2] = constant c0\n");
    read.replace("  output %2 \"cache\" state 2\n", "")
}

#[test]
fn programs_that_do_not_fit_together_are_refused() {
    for (read, message) in [
        (
            READ.replace("f32[4, 2]", "f32[5, 2]")
                .replace("= [2.0, 3.0, 2.0, 3.0, 2.0, 3.0, 2.0, 3.0]", "= splat 2"),
            "f32 of sizes [5, 2] in `read` and f32 of sizes [4, 2] in `write`",
        ),
        (READ.replacen("splat 0", "splat 1", 1), "of other first values in `write` than in `read`"),
        (read_as_constant(), "is a constant here and is mutated by the program `write`"),
    ] {
        let ended = project(TABLE, &read).aoti(&["build"]).output().unwrap();
        let text = String::from_utf8(ended.stderr).unwrap();
        assert!(!ended.status.success() && text.contains(message), "{text}");
    }
    for (table, message) in [
        (TABLE.replace("plain =", "load ="), "no program can be called `load`"),
        (TABLE.replace("link =", "named-weights = true\nlink ="), "cannot be given by name"),
        (TABLE.replace("link =", "path = \"models/read.aoti\"\nlink ="), "has a `path` and `programs`"),
        (TABLE.replace("link =", "outputs = [\"y\"]\nlink ="), "belongs to each of them"),
        (TABLE.replace("plain.aoti", "absent.aoti"), "there is no file"),
    ] {
        let ended = project(&table, READ).aoti(&["build"]).output().unwrap();
        let text = String::from_utf8(ended.stderr).unwrap();
        assert!(!ended.status.success() && text.contains(message), "{text}");
    }
}
