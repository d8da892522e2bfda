//! Products that are left to a library for processors: asked where a record says so and the program finds it, and never needed.
//! The libraries are ones of the test's own, which say that they were asked.

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
/// The weights of the models, which no 16-bit type has: those that one has are multiplied from it.
const WEIGHT: f32 = 0.25 + 1.0 / 16_384.0;

/// A product of weights with something after it.
const MODEL: &str = "\
graph \"net\" {
  origin o0 = \"\" \"\" \"\"
  const c0 \"w\": f32[64, 128] = splat 0.25006103515625
  input %0 \"x\": f32[400, 64]
  %1: f32[64, 128] = constant c0
  %2: f32[400, 128] = matmul %0, %1
  %3: f32[400, 128] = neg %2
  output %3 \"y\"
}
";

/// A library of the test's own.
struct Stand {
    /// What manifests call it.
    name: &'static str,
    /// The file that it is opened as.
    file: &'static str,
    source: &'static str,
    /// How often it is asked where the program itself opened it before, with four threads.
    of_the_program: fn(usize) -> usize,
}

/// OpenBLAS's number of threads is the program's affair where that has opened it; oneDNN's is of the thread that asks.
const STANDS: [Stand; 2] = [
    Stand { name: "openblas", file: "libopenblas.so.0", source: OPENBLAS, of_the_program: |_| 0 },
    Stand { name: "onednn", file: "libdnnl.so.2", source: ONEDNN, of_the_program: |tiles| tiles },
];

const OPENBLAS: &str = "\
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

const ONEDNN: &str = "\
#include <stdint.h>
#include <unistd.h>
static _Thread_local int threads = 4;
static const struct { int numbers[3]; const char *hash; unsigned threading, gpus; } version = {{2, 6, 0}, \"\", 2, 0};
const void *dnnl_version(void) { return &version; }
int omp_get_max_threads(void) { return threads; }
void omp_set_num_threads(int number) { threads = number; }
int dnnl_sgemm(char turn_a, char turn_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t a_pitch,
               const float *b, int64_t b_pitch, float beta, float *c, int64_t c_pitch) {
  if (write(2, \"asked\\n\", 6) != 6 || threads != 1 || turn_a != 'N' || turn_b != 'N' || beta != 0) return 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a[i * a_pitch + l] * b[l * b_pitch + j];
      c[i * c_pitch + j] = alpha * sum;
    }
  return 0;
}
";

/// A product with rows behind it, which only one of our own can go on with, and one with something else.
const ROWS_BEHIND: &str = "\
graph \"net\" {
  origin o0 = \"\" \"\" \"\"
  const c0 \"w\": f32[64, 128] = splat 0.25006103515625
  input %0 \"x\": f32[400, 64]
  %1: f32[64, 128] = constant c0
  %2: f32[400, 128] = matmul %0, %1
  %3: f32[400] = max %2 axes [1]
  %4: f32[400, 128] = view %3 [i0]
  %5: f32[400, 128] = sub %2, %4
  %6: f32[128, 64] = view %1 [i1, i0]
  %7: f32[400, 64] = matmul %5, %6
  %8: f32[400, 64] = neg %7
  output %8 \"y\"
}
";

/// A project of the model that names these libraries.
fn project(libraries: &str) -> Project {
    project_of(MODEL, libraries)
}

fn project_of(model: &str, libraries: &str) -> Project {
    let project = Project::new(&format!(
        "[package.metadata.aoti]\ncpu = [\"native\"]\nlibraries = [{libraries}]\n\
         [package.metadata.aoti.models.net]\npath = \"models/net.aoti\"\nlink = \"dylib\"\n"
    ));
    project.write("models/net.aoti", model);
    let ones = vec![1.0; ROWS * DEPTH];
    project.write("inputs.safetensors", safetensors(&[ROWS, DEPTH], &ones));
    project
}

/// A folder with the library, and one with a file of its name that is none.
fn folders(project: &Project, library: &Stand) -> [PathBuf; 2] {
    project.write("there/blas.c", library.source);
    project.write(&format!("absent/{}", library.file), "no library");
    let [there, absent] = ["there", "absent"].map(|name| project.folder().join(name));
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-shared", "-fPIC", "blas.c", "-o", library.file]);
    compiler.arg(format!("-Wl,-soname,{}", library.file));
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
    assert!(numbers.chunks(4).all(|bytes| bytes == (-WEIGHT * DEPTH as f32).to_le_bytes()));
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
    for library in &STANDS {
        let project = project(&format!("\"{}\"", library.name));
        let [there, absent] = folders(&project, library);
        let (lock, candidates) = measured(&project, &there);
        let setting = format!("gemm.{} split template lanes outer grain 65536", library.name);
        assert!(candidates.contains(&setting), "it is among what was measured: {candidates}");
        fs::write(project.folder().join("aoti.lock"), choosing(&lock, &setting.parse().unwrap())).unwrap();
        let mut inspect = project.aoti(&["inspect", "models/net.aoti", "--level", "native", "--choices"]);
        let listed = Ended::of(&mut inspect).succeeded().stdout;
        let line = listed.lines().find(|line| line.contains(library.name));
        assert!(line.is_some_and(|line| line.trim_start().starts_with('*')), "the record is taken: {listed}");
        project.build();
        let tiles = asked(&project, 1, "LD_LIBRARY_PATH", &there);
        assert!(tiles > 1, "rows of several tiles");
        assert_eq!(
            asked(&project, 3, "LD_LIBRARY_PATH", &there),
            tiles,
            "tiles are the same for all threads"
        );
        assert_eq!(asked(&project, 1, "LD_LIBRARY_PATH", &absent), 0);
        // What the system has, if it has one.
        asked(&project, 2, "LD_LIBRARY_PATH", Path::new(""));
        let preloaded = asked(&project, 1, "LD_PRELOAD", &there.join(library.file));
        assert_eq!(preloaded, (library.of_the_program)(tiles), "{}", library.name);
    }
}

#[test]
fn libraries_that_are_not_asked_cost_nothing() {
    for model in [MODEL, ROWS_BEHIND] {
        let [named, plain] = ["\"openblas\", \"onednn\"", ""].map(|libraries| {
            let project = project_of(model, libraries);
            project.build();
            fs::read(project.library("net")).unwrap()
        });
        assert!(named == plain, "the same bytes whether the manifest names the libraries or not");
        assert!(!plain.windows(6).any(|word| word == b"dlopen"));
    }
}
