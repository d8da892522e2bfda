//! Models for AMD's GPUs from a project to the numbers, on a machine without one: a compiler in the place of hipcc makes code of
//! kernels that run on the processor, and a driver with HIP's functions runs them (`aoti-compiler/tests/device`).

#![cfg(unix)]

use aoti_runtime::{
    DType, Device, DynTensor, Error, Inline, Library, LoadOptions, Model, State, Weights, Workspace,
};
use aoti_tests::cases;
use aoti_tests::project::Project;
use aoti_tests::subcommand::{Ended, workspace};
use aoti_tests::tools::are_there;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Answers as hipcc does, and compiles with g++ what it is given, for wavefronts of the architecture. In the header of what it
/// makes stand AMD's machine and the architecture.
const HIPCC: &str = r#"#!/bin/sh
case "$*" in
  *--version*) echo 'HIP version: 6.1.40091'; exit 0;;
  *--print-supported-cpus*) echo 'gfx90a gfx1100'; exit 0;;
  *'-###'*) exit 0;;
esac
for word; do
  case "$word" in
    --offload-arch=gfx9*) lanes=64; number='\077';;
    --offload-arch=gfx11*) lanes=32; number='\101';;
    *.hip) input=$word;;
  esac
  [ "$last" = -o ] && output=$word
  last=$word
done
if grep -q aoti_probe "$input"; then : > "$output"; exit 0; fi
g++ -x c++ -std=c++17 -O1 -ffp-contract=off -w -shared -fPIC -DAOTI_EMULATED=$lanes -I. -IHEADERS -IHEADERS/aoti/gpu \
  "$input" -o "$output" || exit 1
printf '\340\000' | dd of="$output" bs=1 seek=18 conv=notrunc 2> /dev/null
printf "$number" | dd of="$output" bs=1 seek=48 conv=notrunc 2> /dev/null
"#;

/// A folder with the compiler and the driver.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Option<Machine> {
        if !are_there("gcc", &["g++"]) {
            return None;
        }
        let machine = Machine { folder: tempfile::tempdir().expect("there is room for a folder") };
        let compiler = workspace().join("build-support/aoti-compiler");
        let text = HIPCC.replace("HEADERS", &compiler.join("include").display().to_string());
        std::fs::write(machine.path("hipcc"), text).expect("the folder is writable");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(machine.path("hipcc"), executable).expect("the file is there");
        let mut command = Command::new("g++");
        command.args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-DEMULATED_HIP"]);
        command.arg(compiler.join("tests/device/driver.cpp")).arg("-o").arg(machine.path("libamdhip64.so.6"));
        assert!(command.status().expect("g++ runs").success());
        Some(machine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn aoti(&self, project: &Project, arguments: &[&str]) -> Command {
        let mut command = project.aoti(arguments);
        command.env("HIPCC", self.path("hipcc")).env("LD_LIBRARY_PATH", self.folder.path());
        command
    }
}

const DEVICES: &str = "[package.metadata.aoti]\ndevices = [\"cpu\", \"rocm\"]\ncpu = [\"native\"]\nrocm = [\"gfx90a\", \"gfx1100\"]\n";

#[test]
fn what_is_compiled_for_amd_computes_what_it_should_on_both_widths_of_wavefronts() {
    let Some(machine) = Machine::new() else { return };
    let project = Project::new(DEVICES);
    cases::digits(&project);
    for (device, level) in [("rocm", "gfx90a"), ("rocm:1", "gfx1100")] {
        let arguments = ["verify", "cases", "--device", device, "--level", level];
        let ended = Ended::of(&mut machine.aoti(&project, &arguments)).succeeded();
        assert!(ended.stdout.contains("1 passed, 0 failed, 0 skipped"), "{}{}", ended.stdout, ended.stderr);
    }
    // The other device has no use for the code.
    let ended = Ended::of(
        &mut machine.aoti(&project, &["verify", "cases", "--device", "rocm:1", "--level", "gfx90a"]),
    );
    assert_ne!(ended.code, Some(0));
    let text = ended.stdout + &ended.stderr;
    assert!(
        text.contains("the library has code for gfx90a; rocm:1, emulated")
            && text.contains("runs none of it"),
        "{text}"
    );
}

const COUNTING: &str = "\
graph \"counting\" {
  const c0 \"weight\": f32[64] = random 1
  const c1 \"cache\": f32[64] = splat 0
  input %x \"x\": f32[64]
  input %cache \"cache\": f32[64] state c1
  %w: f32[64] = constant c0
  %y: f32[64] = add %x, %w
  %u: f32[64] = add %cache, %y
  output %y \"y\"
  output %u \"cache\" state 1
}
";

/// The library of the test below, for the process that runs it over the driver.
const LIBRARY: &str = "AOTI_TEST_ROCM_LIBRARY";

/// Weights are given back when the last model that reads them is gone; others that take their place, often at the very address,
/// are others, whatever states live on.
#[test]
fn weights_that_replace_others_are_read_however_long_states_live() {
    if let Some(library) = std::env::var_os(LIBRARY) {
        return replace_weights(Path::new(&library));
    }
    let Some(machine) = Machine::new() else { return };
    let project = Project::new(&format!(
        "{DEVICES}[package.metadata.aoti.models.counting]\npath = \"models/counting.aoti\"\nlink = \"dylib\"\n"
    ));
    project.write("models/counting.aoti", COUNTING);
    Ended::of(&mut machine.aoti(&project, &["build"])).succeeded();
    let architectures: Vec<String> = project.manifest("counting")["devices"]
        .as_array()
        .expect("it lists devices")
        .iter()
        .filter(|one| one["device"] == "rocm")
        .map(|one| one["architecture"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(architectures, ["gfx90a", "gfx1100"]);
    let name = "weights_that_replace_others_are_read_however_long_states_live";
    let mut child = Command::new(std::env::current_exe().expect("a test knows where it lies"));
    child.args([name, "--exact", "--nocapture"]).env(LIBRARY, project.library("counting"));
    let output =
        child.env("LD_LIBRARY_PATH", machine.folder.path()).output().expect("it can be started again");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

fn weights_of(model: &Model, value: f32) -> Result<Weights, Error> {
    let count = model.info().weights_bytes as usize / 4;
    let bytes: Vec<u8> = std::iter::repeat_n(value.to_le_bytes(), count).flatten().collect();
    Weights::bytes(&bytes)
}

/// What the model adds to zeros.
fn added(model: &Model, state: &mut State) -> f32 {
    let x = DynTensor::zeros(DType::F32, &[64]).expect("small");
    let mut y = DynTensor::empty(DType::F32);
    model.run(&[x.view()], &mut [&mut y], Some(state), &mut Workspace::new(), &Inline).expect("it runs");
    y.as_slice::<f32>().expect("f32")[17]
}

fn replace_weights(library: &Path) {
    // SAFETY: the library was just built from a model of the project.
    let library = unsafe { Library::open(library, &symbol(library)) }.expect("the library is there");
    let load = |index| {
        library.load(LoadOptions { device: Device::Rocm(index), ..LoadOptions::default() }).expect("it loads")
    };
    let models = [load(0), load(1)];
    let mut states: Vec<Vec<State>> =
        models.iter().map(|model| vec![model.state().expect("it fits")]).collect();
    for round in 1..20u16 {
        for (device, model) in models.iter().enumerate() {
            let value = f32::from(round * 2) + device as f32;
            model.update_weights(weights_of(model, value).expect("small")).expect("they fit");
            for state in &mut states[device] {
                assert_eq!(added(model, state), value, "round {round} on device {device}");
            }
            // States come and go, and the first of each device stays.
            if round % 3 == 0 {
                states[device].push(model.state().expect("it fits"));
            } else {
                states[device].truncate(2);
            }
        }
    }
    // A state is one of the device that it was made on.
    let error = models[0].run(
        &[DynTensor::zeros(DType::F32, &[64]).expect("small").view()],
        &mut [&mut DynTensor::empty(DType::F32)],
        Some(&mut states[1][0]),
        &mut Workspace::new(),
        &Inline,
    );
    let message = error.expect_err("the state lies elsewhere").message().to_owned();
    assert_eq!(message, "the state lies on rocm:1, the model runs on rocm:0");
    let [first, second] = models;
    drop(first);
    drop(states);
    drop(second);
}

/// The function that the library exports, by its file's name.
fn symbol(library: &Path) -> String {
    let manifest = library.with_file_name("manifest.json");
    let text = std::fs::read(manifest).expect("there is a manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&text).expect("a manifest is JSON");
    manifest["symbol"].as_str().expect("it names the symbol").to_owned()
}
