//! The harness around a small model by hand: what it reads and writes, and that each deliberate mistake in the model is
//! found by what is there to find it.

use std::path::PathBuf;
use std::process::{Command, Output};

use aoti_toolchain::{Environment, Linking, Mode, Sanitizer};

use crate::layout::Layout;
use crate::model::Model;
use crate::pipeline::fake;
use crate::progress::Silent;
use crate::session::{Job, Session, Settings};

/// A made program in its folder.
struct Made {
    folder: tempfile::TempDir,
}

/// Builds a model of this weight and program (see `fake`) with sanitizers, and the program that runs it.
fn make(program: &str, sanitize: &[Sanitizer], linking: Linking) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::capture().with("AOTI_CACHE_DIR", folder.path().join("cache"));
    let mode = Mode { sanitize: sanitize.iter().copied().collect(), ..Mode::default() };
    let mut session = Session::new(&environment, Settings { mode, ..Settings::default() }).unwrap();
    session.compiler = fake::compile;
    let path = folder.path().join("small.fake");
    fs_err::write(&path, [&10f32.to_le_bytes()[..], program.as_bytes()].concat()).unwrap();
    let layout = Layout::flat(folder.path().join("out"));
    let job = Job { model: Model::new("small", path), layout, incremental: false };
    let built = session.build(&[job], &Silent).remove(0).unwrap();
    session.harness(&built, linking, &folder.path().join("program")).unwrap();
    Made { folder }
}

impl Made {
    fn outputs(&self) -> PathBuf {
        self.folder.path().join("outputs")
    }

    /// Runs the program on two rows of this length by so many callers at a time.
    fn run(&self, row: &[f32], callers: u16) -> Output {
        let inputs = self.folder.path().join("inputs");
        fs_err::write(&inputs, flat(&[row, row].concat(), row.len())).unwrap();
        let mut command = Command::new(self.folder.path().join("program"));
        command.args([inputs, self.outputs()]).args(["3", &callers.to_string()]);
        command.env("TSAN_OPTIONS", "halt_on_error=1:exitcode=1").output().unwrap()
    }

    /// What it says of a run that fails.
    fn complaint(&self, callers: u16) -> String {
        let output = self.run(&[1.0, 2.0, 3.0], callers);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(!self.outputs().exists(), "a run that fails leaves no outputs");
        said
    }
}

/// One tensor of f32 as the harness reads and writes it.
fn flat(elements: &[f32], row: usize) -> Vec<u8> {
    let rows = elements.len() / row;
    let head = [&b"AOTIFLAT"[..], &1i64.to_le_bytes(), &8i32.to_le_bytes(), &2i32.to_le_bytes()].concat();
    let sizes = [(rows as i64).to_le_bytes(), (row as i64).to_le_bytes()].concat();
    let data: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
    [head, sizes, data].concat()
}

const MEMORY: &[Sanitizer] = &[Sanitizer::Address, Sanitizer::Undefined];

#[test]
fn outputs_are_written_and_the_time_is_told() {
    for (sanitize, linking) in [
        (&[][..], Linking::Dynamic),
        (&[], Linking::Static),
        (MEMORY, Linking::Dynamic),
        (&[Sanitizer::Thread], Linking::Dynamic),
    ] {
        let made = make("right", sanitize, linking);
        let output = made.run(&[1.0, 2.0, 3.0], 2);
        assert!(output.status.success(), "{output:?}");
        let expected = [11.0, 12.0, 13.0, 11.0, 12.0, 13.0];
        assert_eq!(fs_err::read(made.outputs()).unwrap(), flat(&expected, 3));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["run_us"].is_number() && report["level"] == "by-hand", "{report}");
    }
}

#[test]
fn errors_of_the_model_come_back_with_their_text_and_code() {
    let made = make("refuses", &[], Linking::Dynamic);
    assert_eq!(made.complaint(1), "error: it never wants to (code 14 of `run`)\n");
}

#[test]
fn inputs_that_are_cut_short_are_told() {
    let made = make("right", &[], Linking::Dynamic);
    let inputs = made.folder.path().join("inputs");
    let whole = flat(&[1.0; 3], 3);
    for length in [0, 8, 20, whole.len() - 1] {
        fs_err::write(&inputs, &whole[..length]).unwrap();
        let mut command = Command::new(made.folder.path().join("program"));
        let output = command.arg(&inputs).arg(made.outputs()).args(["1", "1"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("inputs"), "{output:?}");
    }
}

#[test]
fn a_write_behind_an_output_is_found() {
    let said = make("overruns", MEMORY, Linking::Dynamic).complaint(1);
    assert!(said.contains("heap-buffer-overflow") && said.contains("kernels.cpp"), "{said}");
}

#[test]
fn a_read_before_an_input_is_found() {
    let said = make("underruns", MEMORY, Linking::Dynamic).complaint(1);
    assert!(said.contains("AddressSanitizer") && said.contains("kernels.cpp"), "{said}");
}

#[test]
fn a_signed_overflow_is_found() {
    let said = make("overflows", MEMORY, Linking::Dynamic).complaint(1);
    assert!(said.contains("signed integer overflow") && said.contains("kernels.cpp"), "{said}");
}

#[test]
fn a_race_between_two_runs_is_found() {
    let said = make("races", &[Sanitizer::Thread], Linking::Dynamic).complaint(2);
    assert!(said.contains("data race") && said.contains("kernels.cpp"), "{said}");
}

#[test]
fn a_write_to_an_input_is_found_without_sanitizers() {
    let said = make("scribbles", &[], Linking::Dynamic).complaint(1);
    assert_eq!(said, "error: the run wrote to input `x`\n");
}

#[test]
fn an_element_that_nobody_writes_is_no_number() {
    let made = make("forgets", &[], Linking::Dynamic);
    assert!(made.run(&[1.0, 2.0, 3.0], 1).status.success());
    let last = fs_err::read(made.outputs()).unwrap().split_off(60);
    assert!(f32::from_le_bytes(last.try_into().unwrap()).is_nan());
}
