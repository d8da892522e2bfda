//! Products that are left to a library for processors: asked where a record says so and the program finds it, and never needed.
//! The library is one of the test's own, which says that it was asked.

#![cfg(unix)]

use aoti_compiler::schedule::Setting;
use aoti_tests::cases::safetensors;
use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROWS: usize = 400;
const DEPTH: usize = 64;

/// A product of weights with something after it.
const MODEL: &str = "\
graph \"net\" {
  origin o0 = \"\" \"\" \"\"
  const c0 \"w\": f32[64, 128] = splat 0.25
  input %0 \"x\": f32[400, 64]
  %1: f32[64, 128] = constant c0
  %2: f32[400, 128] = matmul %0, %1
  %3: f32[400, 128] = neg %2
  output %3 \"y\"
}
";

const LIBRARY: &str = "\
#include <unistd.h>
static int threads = 4;
int openblas_get_num_threads(void) { return threads; }
void openblas_set_num_threads(int number) { threads = number; }
void cblas_dgemm(void) {}
void cblas_sgemm(int order, int turn_a, int turn_b, int m, int n, int k, float alpha, const float *a, int a_pitch,
                 const float *b, int b_pitch, float beta, float *c, int c_pitch) {
  if (write(2, \"asked\\n\", 6) != 6 || order != 101 || turn_a != 111 || turn_b != 111 || beta != 0) return;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a[i * a_pitch + l] * b[l * b_pitch + j];
      c[i * c_pitch + j] = alpha * sum;
    }
}
";

/// A project that names these libraries.
fn project(libraries: &str) -> Project {
    let project = Project::new(&format!(
        "[package.metadata.aoti]\ncpu = [\"native\"]\nlibraries = [{libraries}]\n\
         [package.metadata.aoti.models.net]\npath = \"models/net.aoti\"\nlink = \"dylib\"\n"
    ));
    project.write("models/net.aoti", MODEL);
    let ones = vec![1.0; ROWS * DEPTH];
    project.write("inputs.safetensors", safetensors(&[ROWS, DEPTH], &ones));
    project
}

/// A folder with the library, and one with a file of its name that is none.
fn libraries(project: &Project) -> [PathBuf; 2] {
    project.write("there/blas.c", LIBRARY);
    project.write("absent/libopenblas.so.0", "no library");
    let [there, absent] = ["there", "absent"].map(|name| project.folder().join(name));
    let mut compiler = Command::new("gcc");
    compiler.args([
        "-O1",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libopenblas.so.0",
        "blas.c",
        "-o",
        "libopenblas.so.0",
    ]);
    assert!(compiler.current_dir(&there).status().expect("gcc comes with g++").success());
    [there, absent]
}

/// Runs the model with this variable set, checks the results, and gives how often the library was asked.
#[track_caller]
fn asked(project: &Project, threads: usize, variable: &str, value: &Path) -> usize {
    let (library, symbol) = (project.library("net"), project.symbol("net"));
    let mut command = project.aoti(&["__run-case", "--inputs", "inputs.safetensors", "--outputs", "outputs"]);
    command.arg("--library").arg(library).args(["--symbol", &symbol, "--threads", &threads.to_string()]);
    let ended = Ended::of(command.env(variable, value)).succeeded();
    let outputs = fs::read(project.folder().join("outputs")).unwrap();
    let numbers = &outputs[outputs.len() - ROWS * 128 * 4..];
    assert!(numbers.chunks(4).all(|bytes| bytes == (-0.25 * DEPTH as f32).to_le_bytes()));
    ended.stderr.matches("asked").count()
}

/// Measures the model, and gives the lock and what was said of the candidates.
fn measured(project: &Project, library: &Path) -> (String, String) {
    let mut tune = project.aoti(&["tune", "net", "--budget", "20s", "--format", "json"]);
    let ended = Ended::of(tune.env("LD_LIBRARY_PATH", library)).succeeded();
    (fs::read_to_string(project.folder().join("aoti.lock")).unwrap(), ended.stdout)
}

/// The lock with another choice in all its records.
fn choosing(lock: &str, setting: &Setting) -> String {
    let line = |line: &str| match line.split_once(" = ") {
        Some(("choice", _)) => format!("choice = \"{setting}\"\n"),
        Some(("template", _)) => format!("template = {}\n", setting.version()),
        _ => format!("{line}\n"),
    };
    lock.lines().map(line).collect()
}

#[test]
fn a_library_is_asked_where_a_record_says_so_and_never_needed() {
    let project = project("\"openblas\"");
    let [there, absent] = libraries(&project);
    let (lock, candidates) = measured(&project, &there);
    let setting: Setting = "gemm.library split template lanes outer grain 65536".parse().unwrap();
    assert!(candidates.contains(&setting.to_string()), "it is among what was measured: {candidates}");
    fs::write(project.folder().join("aoti.lock"), choosing(&lock, &setting)).unwrap();
    project.build();
    let tiles = asked(&project, 1, "LD_LIBRARY_PATH", &there);
    assert!(tiles > 1, "rows of several tiles");
    assert_eq!(asked(&project, 3, "LD_LIBRARY_PATH", &there), tiles, "tiles are the same for all threads");
    assert_eq!(asked(&project, 1, "LD_LIBRARY_PATH", &absent), 0);
    // What the system has, if it has one.
    asked(&project, 2, "LD_LIBRARY_PATH", Path::new(""));
    let preloaded = there.join("libopenblas.so.0");
    assert_eq!(asked(&project, 1, "LD_PRELOAD", &preloaded), 0, "its four threads are the program's affair");
}

#[test]
fn a_library_that_is_not_asked_costs_nothing() {
    let [named, plain] = ["\"openblas\"", ""].map(|libraries| {
        let project = project(libraries);
        project.build();
        fs::read(project.library("net")).unwrap()
    });
    assert!(named == plain, "the same bytes whether the manifest names the library or not");
    assert!(!plain.windows(6).any(|word| word == b"dlopen"));
}
