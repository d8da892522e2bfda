//! Programs that run a graph on an emulated machine: through the library's C interface, over a driver that knows contexts,
//! streams and memory of two devices (`machine.h`).

use super::{compare, compiled_text, inputs, is_installed, kernels, manifest, may_be_rounded, run, scratch};
use aoti_compiler::dtype::DType;
use aoti_compiler::graph::{Graph, InputRole, text};
use aoti_compiler::interpret::{Tensor, evaluate};
use aoti_compiler::target::GpuTarget;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// What a program is compiled for, and emulated as.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    pub(super) architecture: &'static str,
}

pub(super) const NVIDIA: Machine = Machine { architecture: "sm_90a" };
pub(super) const GFX9: Machine = Machine { architecture: "gfx90a" };
pub(super) const GFX11: Machine = Machine { architecture: "gfx1100" };
pub(super) const GFX12: Machine = Machine { architecture: "gfx1201" };
/// All of them.
pub(super) const MACHINES: [Machine; 4] = [NVIDIA, GFX9, GFX11, GFX12];

impl Machine {
    fn is_hip(self) -> bool {
        self.architecture.starts_with("gfx")
    }

    /// The file that host code opens.
    fn driver_file(self) -> &'static str {
        if self.is_hip() { "libamdhip64.so.6" } else { "libcuda.so.1" }
    }

    pub(super) fn host_code(self) -> &'static str {
        if self.is_hip() { "run_rocm.cpp" } else { "run_cuda.cpp" }
    }

    /// What the driver and main programs are compiled with.
    fn definitions(self) -> &'static [&'static str] {
        if self.is_hip() { &["-DEMULATED_HIP"] } else { &[] }
    }

    /// The folder of a driver, which is compiled once for the process.
    fn driver(self, gcc: &Path, arguments: &[&str]) -> PathBuf {
        static DRIVERS: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
        let name = format!("device-driver{}{}", self.definitions().concat(), arguments.concat());
        let mut drivers = DRIVERS.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let folder = scratch(&name);
            run(Command::new(gcc)
                .args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC"])
                .args(self.definitions())
                .args(arguments)
                .arg(manifest("tests/device/driver.cpp"))
                .arg("-o")
                .arg(folder.join(self.driver_file())));
            folder
        };
        drivers.entry(name.clone()).or_insert_with(make).clone()
    }
}

/// A program in a folder of its own, and the folder of the driver that it runs over.
pub(super) struct Program {
    pub(super) folder: PathBuf,
    driver: PathBuf,
}

impl Program {
    /// Runs it where there is no driver.
    pub(super) fn alone(&self) -> Command {
        let mut command = Command::new(self.folder.join("run"));
        command.current_dir(&self.folder);
        command
    }

    pub(super) fn command(&self) -> Command {
        let mut command = self.alone();
        let folders =
            std::env::join_paths([&self.folder, &self.driver]).expect("cargo's folders can be listed");
        command.env("LD_LIBRARY_PATH", folders);
        command
    }

    /// Runs it, which must succeed, and gives what it prints.
    pub(super) fn output(&self) -> String {
        let output = self.command().output().expect("the program was compiled");
        let [text, errors] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{text}{errors}");
        text
    }
}

/// The code as libraries embed it, of one image that the tests' driver takes.
fn embedded(symbol: &str) -> String {
    format!(
        "  .section .rodata\n  .balign 64\n  .globl {symbol}\n{symbol}:\n  .ascii \"the emulation\"\n  .zero 227\n\
         \x20 .quad 1, 0, 320, {symbol}_end - {symbol}_image\n  .balign 64\n{symbol}_image:\n\
         \x20 .incbin \"image.so\"\n{symbol}_end:\n  .byte 0\n  .section .note.GNU-stack, \"\", %progbits\n"
    )
}

/// The program that runs a graph on a GPU through the library's C interface, with a driver beside it that emulates one.
pub(super) fn program(gcc: &Path, place: &str, graph: (&str, &str), machine: Machine) -> Program {
    program_of(gcc, place, graph, machine, ("run.cpp", &[]))
}

/// The same with another main program, and with arguments for the compiler of the driver.
pub(super) fn program_of(
    gcc: &Path,
    place: &str,
    (name, text): (&str, &str),
    machine: Machine,
    (main, driver): (&str, &[&str]),
) -> Program {
    let bundle = compiled_text(name, text.to_owned(), machine.architecture);
    let folder = scratch(&format!("device-{place}-{name}-{}", machine.architecture));
    let write =
        |file: &str, text: &[u8]| std::fs::write(folder.join(file), text).expect("the folder is writable");
    bundle
        .files
        .iter()
        .filter(|file| !file.name.contains('/'))
        .for_each(|file| write(&file.name, file.text.as_bytes()));
    write("device.cpp", kernels(&bundle).as_bytes());
    write("code.S", embedded(&bundle.devices[0].symbol).as_bytes());
    let symbol = format!("aoti_{}_weights", bundle.identifier);
    let mut assembly = format!("  .section .rodata\n  .balign 64\n  .globl {symbol}\n{symbol}:\n");
    let mut end = 0;
    for (offset, data) in &bundle.weights.segments {
        let _ = writeln!(assembly, "  .zero {}", offset - end);
        data.iter().for_each(|byte| assembly.push_str(&format!("  .byte {byte}\n")));
        end = offset + data.len() as u64;
    }
    let _ = writeln!(
        assembly,
        "  .zero {}\n  .section .note.GNU-stack, \"\", %progbits",
        bundle.weights.bytes - end
    );
    write("weights.S", assembly.as_bytes());
    let compile = |output: &str, sources: &[PathBuf], arguments: &[&str]| {
        run(Command::new(gcc)
            .current_dir(&folder)
            .args(["-std=c++17", "-O1", "-ffp-contract=off", "-w", "-I"])
            .arg(manifest("include"))
            .args(sources)
            .args(arguments)
            .arg("-o")
            .arg(folder.join(output)));
    };
    let target = GpuTarget::named(machine.architecture).expect("it is in the table");
    let warp = format!("-DAOTI_EMULATED={}", target.warp);
    let units = format!("-DAOTI_EMULATED_UNITS={}", target.matrix_units.map_or("0", |units| units.name));
    compile("image.so", &[folder.join("device.cpp")], &["-shared", "-fPIC", &warp, &units]);
    let api = format!("-DMODEL_API={}", bundle.exported_symbol());
    let own = ["model.cpp", machine.host_code(), "code.S", "weights.S"].map(|file| folder.join(file));
    compile(
        "run",
        &[&[manifest("tests/device").join(main)], &own[..]].concat(),
        // Nothing in it computes.
        &[&["-O0", &api, "-ldl", "-lpthread"], machine.definitions()].concat(),
    );
    Program { folder, driver: machine.driver(gcc, driver) }
}

/// A program that only asks the driver.
pub(super) fn program_without_a_model(gcc: &Path, main: &str, machine: Machine) -> Program {
    let folder = scratch(&format!("device-{main}-{}", machine.architecture));
    run(Command::new(gcc)
        .args(["-std=c++17", "-O1", "-w"])
        .args(machine.definitions())
        .arg(manifest(&format!("tests/device/{main}.cpp")))
        .args(["-ldl", "-o"])
        .arg(folder.join("run")));
    Program { folder, driver: machine.driver(gcc, &[]) }
}

pub(super) fn emulated(name: &str, source: &str, machine: Machine) {
    emulated_with(name, source, machine, "emulated", &[]);
}

/// The same with libraries of C++ beside the driver, as file names and sources; gives the folder of the program.
pub(super) fn emulated_with(
    name: &str,
    source: &str,
    machine: Machine,
    place: &str,
    libraries: &[(&str, &str)],
) -> Option<PathBuf> {
    let gcc = is_installed("gcc", &["g++"])?;
    let program = program(&gcc, place, (name, source), machine);
    let folder = &program.folder;
    for (file, from) in libraries {
        run(Command::new(&gcc)
            .args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC"])
            .args(machine.definitions())
            .arg(manifest(&format!("tests/device/{from}")))
            .arg("-o")
            .arg(folder.join(file)));
    }
    let graph = text::parse(source).expect("the graph parses");
    let mut inputs = inputs(&graph);
    if may_be_rounded(name) {
        // What TF32 holds is not rounded.
        inputs = inputs.into_iter().map(to_tf32).collect();
    }
    let expected = evaluate(&graph, &inputs).expect("the graph is evaluated");
    std::fs::write(folder.join("case"), case(&graph, &inputs)).expect("the folder is writable");
    run(program.command().args(["case", "result"]));
    let result = std::fs::read(folder.join("result")).expect("the program wrote its result");
    let mut at = 0;
    for (position, expected) in expected.iter().enumerate() {
        let bytes = &result[at..at + expected.bytes().len()];
        at += bytes.len();
        let got =
            Tensor::new(expected.dtype(), expected.sizes().to_vec(), bytes.to_vec()).expect("same size");
        compare(position, &got, expected);
    }
    Some(program.folder)
}

/// The numbers of `f32` cut to the eleven bits of TF32.
fn to_tf32(tensor: Tensor) -> Tensor {
    if tensor.dtype() != DType::F32 {
        return tensor;
    }
    let cut = |word: &[u8]| (u32::from_le_bytes(word.try_into().expect("four")) & 0xffff_e000).to_le_bytes();
    let bytes: Vec<u8> = tensor.bytes().chunks(4).flat_map(cut).collect();
    Tensor::new(DType::F32, tensor.sizes().to_vec(), bytes).expect("as many bytes as before")
}

/// Sizes, then bytes, of each input that the caller gives.
pub(super) fn case(graph: &Graph, inputs: &[Tensor]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let given = graph.inputs.iter().zip(inputs).filter(|(input, _)| input.role == InputRole::User);
    for (_, tensor) in given {
        tensor.sizes().iter().for_each(|size| bytes.extend((*size as i64).to_le_bytes()));
        bytes.extend_from_slice(tensor.bytes());
    }
    bytes
}
