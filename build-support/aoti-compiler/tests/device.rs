//! Device code: what is printed stands in goldens, every compiler takes it, and it computes what the reference evaluator
//! does, in an emulation of blocks on the processor, with wavefronts of 32 and of 64 threads.
//!
//! `UPDATE_GOLDENS=1` rewrites the goldens. A missing tool skips its tests with a printed reason, unless
//! `AOTI_TEST_REQUIRE` names it.

use aoti_compiler::codegen::bundle::SourceBundle;
use aoti_compiler::compile::{Options, compile, tuning_points};
use aoti_compiler::graph::{Graph, InputRole, text};
use aoti_compiler::interpret::Tensor;
use aoti_compiler::schedule::Setting;
use aoti_compiler::symbolic::Expr;
use aoti_compiler::target::{MathLibrary, Tf32};
use aoti_compiler::{cost::MachineInfo, dtype::DType};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "device/compilers.rs"]
mod compilers;
#[path = "device/convolutions.rs"]
mod convolutions;
#[path = "device/drawn.rs"]
mod drawn;
#[path = "device/emulated.rs"]
mod emulated;
#[path = "device/integers.rs"]
mod integers;
#[path = "device/noted.rs"]
mod noted;
#[path = "device/places.rs"]
mod places;
#[path = "device/quantised.rs"]
mod quantised;
#[path = "device/reductions.rs"]
mod reductions;
#[path = "device/repeated.rs"]
mod repeated;
#[path = "device/rows.rs"]
mod rows;
#[path = "device/scatters.rs"]
mod scatters;
#[path = "device/units.rs"]
mod units;
#[path = "device/windows.rs"]
mod windows;

use emulated::{GFX9, GFX11, Machine, NVIDIA, case, emulated, emulated_with, program};
use units::{ON_ROUNDED_UNITS, ON_UNITS};

const NAMES: [&str; 17] = [
    "kernels",
    "control",
    "attention",
    "random",
    "matrices",
    "storage",
    "clusters",
    "roles",
    "rounded_windows",
    "together",
    "narrow",
    "order",
    "scatters",
    "grouped",
    "fourier",
    ROUNDED,
    LIBRARY,
];
/// The graph whose products of `f32` may be TF32 too.
const ROUNDED: &str = "rounded";
/// The graph whose products are left to a library.
const LIBRARY: &str = "library";
/// What is open is decided otherwise than without records, but for tiles.
const OTHERWISE: &str = "otherwise";
fn may_be_rounded(name: &str) -> bool {
    name.starts_with(ROUNDED)
}

fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn source(name: &str) -> String {
    std::fs::read_to_string(manifest(&format!("tests/device/{name}.aoti"))).expect("the graph is in the tree")
}

fn compiled(name: &str, architecture: &str) -> SourceBundle {
    compiled_text(name, source(name), architecture)
}

fn compiled_text(name: &str, text: String, architecture: &str) -> SourceBundle {
    let mut options = Options::for_gpus(name, [architecture])
        .with_tf32(Tf32 { matmul: may_be_rounded(name), ..Tf32::default() });
    let model = Bytes::from(text);
    if name == LIBRARY {
        options.libraries = MathLibrary::ALL.to_vec();
        for kernel in
            tuning_points(model.clone(), &options, MachineInfo::default()).expect("the graph compiles")
        {
            if let Some(way) = kernel.candidates.into_iter().find(|way| is_by_library(&way.setting)) {
                options.records.set(kernel.key, way.setting);
            }
        }
    }
    let tile =
        [&ON_UNITS[..], &ON_ROUNDED_UNITS].iter().find_map(|all| all.iter().position(|one| *one == name));
    if let Some(number) = tile {
        for kernel in
            tuning_points(model.clone(), &options, MachineInfo::default()).expect("the graph compiles")
        {
            let settings: Vec<Setting> = kernel.candidates.into_iter().map(|way| way.setting).collect();
            let with =
                |word: &str| settings.iter().filter(|one| one.to_string().contains(word)).collect::<Vec<_>>();
            let (rounded, whole) = (with(" by tf32 "), with(" by units "));
            let on_units = if rounded.is_empty() { whole } else { rounded };
            if !on_units.is_empty() {
                options.records.set(kernel.key, on_units[number % on_units.len()].clone());
            }
        }
    }
    // The kernels that other answers make are open, too.
    for _ in 0..if name == OTHERWISE { 2 } else { 0 } {
        for kernel in
            tuning_points(model.clone(), &options, MachineInfo::default()).expect("the graph compiles")
        {
            let other =
                kernel.candidates.into_iter().rfind(|way| !way.setting.to_string().contains(" tile "));
            if let (Some(way), None) = (other, options.records.get(&kernel.key)) {
                options.records.set(kernel.key, way.setting);
            }
        }
    }
    compile(model, &options).expect("the graph compiles")
}

fn is_by_library(setting: &Setting) -> bool {
    ["gemm.cublaslt", "gemm.hipblaslt"].iter().any(|own| setting.to_string().contains(own))
}

fn text_of<'b>(bundle: &'b SourceBundle, name: &str) -> &'b str {
    &bundle.files.iter().find(|file| file.name == name).expect("the bundle has the file").text
}

/// The kernels, whatever GPU they are for.
fn kernels(bundle: &SourceBundle) -> &str {
    text_of(bundle, &bundle.devices[0].source)
}

fn is_installed(tool: &str, names: &[&str]) -> Option<PathBuf> {
    let found = names.iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|name| name.trim() == tool);
    assert!(found.is_some() || !is_required, "`{tool}` is required by AOTI_TEST_REQUIRE but does not run");
    if found.is_none() {
        println!("skipped: `{tool}` is not installed");
    }
    found.map(PathBuf::from)
}

fn run(command: &mut Command) {
    let output = command.output().expect("the tool was found before");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} failed:\n{text}");
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("cargo's test folder is writable");
    folder
}

#[test]
fn printed_text_is_what_the_goldens_have() {
    let mut stale = Vec::new();
    for name in NAMES {
        let bundle = compiled(name, "sm_90a");
        for (suffix, file) in [("cu", "cuda.cu"), ("cpp", "run_cuda.cpp")] {
            let text = text_of(&bundle, file).to_owned();
            let path = manifest(&format!("tests/goldens/device/{name}.{suffix}"));
            if std::env::var_os("UPDATE_GOLDENS").is_some() {
                std::fs::write(&path, text).expect("goldens can be written");
            } else if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
                stale.push(path);
            }
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?} differ from what is printed: read the new ones with UPDATE_GOLDENS=1"
    );
}

#[test]
fn cuda_and_hip_have_one_text() {
    // Attention on matrix units is for those of one vendor, and blocks share long rows where they are clusters.
    for name in ["kernels", "control"] {
        assert_eq!(kernels(&compiled(name, "sm_80")), kernels(&compiled(name, "gfx90a")));
    }
}

/// A kernel that was launched early must not read what others still write through a cache that is not coherent, as compilers do
/// with what is constant and apart from everything else.
#[test]
fn only_weights_are_declared_to_be_constant() {
    let mut seen = [0, 0];
    for name in NAMES {
        let bundle = compiled(name, "sm_90a");
        let signature = |function: &str| {
            let line = kernels(&bundle).lines().find(|line| line.contains(&format!(" {function}(Run run")));
            let line = line.expect("the kernel is printed");
            line.split(", ").filter(|part| part.contains('*')).map(str::to_owned).collect::<Vec<_>>()
        };
        for line in text_of(&bundle, "run_cuda.cpp").lines().filter(|line| line.contains("launch(run")) {
            let (launch, function) = line.split_once("); // ").expect("the function is named");
            let (parameters, words) = (signature(function), launch.split(">(run, "));
            let arguments: Vec<&str> =
                words.filter_map(|part| part.rsplit_once('<')?.0.rsplit(' ').next()).collect();
            assert_eq!(arguments.len(), parameters.len(), "{line}");
            for (argument, parameter) in arguments.iter().zip(&parameters) {
                let is_constant = parameter.starts_with("const ") && parameter.contains("__restrict__");
                assert_eq!(is_constant, *argument == "weights", "{parameter} of {line}");
                seen[usize::from(is_constant)] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 3), "{seen:?}");
}

/// Inputs that differ from element to element, with values of both signs, and indices within their range.
fn input(position: usize, dtype: DType, sizes: Vec<usize>) -> Tensor {
    let count: usize = sizes.iter().product();
    let mut data = Vec::new();
    let mut state = 12345u64 + position as u64;
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let value = (state >> 40) as f64 / f64::from(1u32 << 24) - 0.5;
        match dtype {
            DType::Bool => data.push(u8::from(value > -0.499)),
            DType::I32 => data.extend(((value * 2000.0) as i32).to_le_bytes()),
            DType::I64 => data.extend(((value * 40.0) as i64 % 20).to_le_bytes()),
            DType::F16 => data.extend((0x3000u16 | (state >> 50) as u16 & 0x8fff).to_le_bytes()),
            DType::F32 => data.extend((value as f32 * 3.0).to_le_bytes()),
            DType::F64 => data.extend((value * 3.0).to_le_bytes()),
            DType::Bf16 => data.extend(&(value as f32).to_le_bytes()[2..]),
            DType::U16 => data.extend(((value * 2000.0) as i64 as u16).to_le_bytes()),
            DType::U32 => data.extend(((value * 8e9) as i64 as u32).to_le_bytes()),
            DType::U64 => data.extend(state.to_le_bytes()),
            DType::F8(format) => data.push(format.from_f32(value as f32 * 3.0)),
            DType::U8 | DType::I8 | DType::I16 => unreachable!("no graph here has such inputs"),
        }
    }
    Tensor::new(dtype, sizes, data).expect("as many bytes as elements")
}

/// The seed and the offset that `device/run.cpp` runs with.
const GENERATOR: [i64; 2] = [11, 3];

/// The graph's inputs, with 5 for its size symbol.
fn inputs(graph: &Graph) -> Vec<Tensor> {
    let five = |_| Some(5);
    let sizes = |shape: &[Expr]| -> Vec<usize> {
        shape
            .iter()
            .map(|size| usize::try_from(size.evaluate(&five).expect("known")).expect("small"))
            .collect()
    };
    let make = |(position, input_of): (usize, &aoti_compiler::graph::Input)| {
        if input_of.role == InputRole::Generator {
            return Tensor::from_i64(&[2], &GENERATOR);
        }
        let value = &graph.values[input_of.value].ty;
        let tensor = input(position, value.dtype, sizes(&value.shape));
        // A loop runs as often as its number says.
        let counter = value.dtype == DType::I64 && value.shape.is_empty();
        if counter { Tensor::from_i64(&[], &[3]) } else { tensor }
    };
    graph.inputs.iter().enumerate().map(make).collect()
}

#[test]
fn a_machine_without_a_driver_is_told_what_was_looked_for() {
    let Some(gcc) = is_installed("gcc", &["g++"]) else { return };
    let cuda = "16: no CUDA driver on this machine: looked for libcuda.so.1, libcuda.so";
    let hip = "16: no HIP driver on this machine: looked for libamdhip64.so.7, libamdhip64.so.6";
    for (machine, expected) in [(NVIDIA, cuda), (GFX9, hip)] {
        let program = program(&gcc, "without-a-driver", ("control", &source("control")), machine);
        let graph = text::parse(&source("control")).expect("the graph parses");
        std::fs::write(program.folder.join("case"), case(&graph, &inputs(&graph)))
            .expect("the folder is writable");
        let output = program.alone().args(["case", "result"]).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8_lossy(&output.stderr);
        // A machine with a driver of its own gets to its devices, or to the code, which is for none of them.
        assert!(
            [expected, "does not start", "this machine has 0 devices", "runs none of it"]
                .iter()
                .any(|text| message.contains(text)),
            "{message}"
        );
    }
}

#[track_caller]
fn compare(output: usize, got: &Tensor, expected: &Tensor) {
    let tolerance = match expected.dtype() {
        DType::F64 => 1e-12,
        DType::F32 => 2e-5,
        DType::F16 => 1e-3,
        DType::Bf16 => 8e-3,
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F8(_) => 0.0,
    };
    for (at, (got, expected)) in got.to_f64().into_iter().zip(expected.to_f64()).enumerate() {
        let near = (got - expected).abs() <= tolerance * (1.0 + expected.abs());
        let same = got == expected || (got.is_nan() && expected.is_nan());
        assert!(near || same, "output {output}, element {at}: {got}, must be {expected}");
    }
}

#[test]
fn warps_of_32_agree_with_the_evaluator() {
    NAMES.iter().for_each(|name| emulated(name, &source(name), NVIDIA));
}

#[test]
fn memory_is_allocated_when_a_run_has_read_how_much_it_needs() {
    let text = source("late");
    let bundle = compiled_text("late", text.clone(), "sm_90a");
    let host = text_of(&bundle, "run_cuda.cpp");
    // A tensor inside the model, the scratch of the sort, and two outputs.
    let allocated = |output: &str| {
        host.lines().filter(|line| line.contains("allocate(run") && line.contains(output)).count()
    };
    assert_eq!((allocated(", -1))"), allocated(", 0))"), allocated(", 1))")), (2, 1, 1), "{host}");
    [NVIDIA, GFX9].into_iter().for_each(|machine| emulated("late", &text, machine));
}

#[test]
fn other_answers_agree_with_the_evaluator() {
    let text = source("kernels");
    let otherwise = compiled_text(OTHERWISE, text.clone(), "sm_90a");
    let first = compiled_text("kernels", text.clone(), "sm_90a");
    assert_ne!(kernels(&otherwise), kernels(&first));
    // Rows that stay in registers are in shared memory then.
    let in_registers = |bundle: &SourceBundle| kernels(bundle).matches("OwnRow<").count();
    assert!(in_registers(&otherwise) < in_registers(&first), "{}", kernels(&first));
    [NVIDIA, GFX9].into_iter().for_each(|machine| emulated(OTHERWISE, &text, machine));
}

#[test]
fn weights_come_before_the_kernel_begins_where_nothing_writes_them() {
    let bundle = compiled("together", "sm_90a");
    let functions: Vec<&str> = kernels(&bundle).split("AOTI_KERNEL_END").collect();
    let comes_early = |name: &str| {
        let function = functions.iter().find(|text| text.contains(&format!(" {name}(Run run")));
        function.unwrap_or_else(|| panic!("no kernel `{name}`")).contains("contract_few<f32, 4, 8, true>")
    };
    // The two have one body; the matrix of the second is what a kernel before it writes.
    assert!(comes_early("k_fixed") && !comes_early("k_moved"));
}

#[test]
fn products_of_few_rows_read_what_is_stored_narrow() {
    let bundle = compiled("narrow", "sm_90a");
    let text = kernels(&bundle);
    let functions: Vec<&str> = text.split("AOTI_KERNEL_END").collect();
    let reads = |name: &str| {
        let function = functions.iter().find(|text| text.contains(&format!(" {name}(Run run")));
        let function = function.unwrap_or_else(|| panic!("no kernel `{name}` in\n{text}"));
        // The second operand is the right one.
        let operand = function.split("Strided<").nth(2).or_else(|| function.split("Grouped<").nth(1));
        let operand = operand.expect("a product has two operands");
        operand.split('>').next().expect("a type").replace(", u32", "").replace(", i32", "")
    };
    let expected = [
        ("k_one", "bf16, 4, 0, 4"),
        ("k_few", "i8, true"),
        ("k_skinny", "f32, false"),
        ("k_whole", "i8, true"),
        ("k_plain", "bf16, true"),
        ("k_eighth", "f8e4m3fn, false"),
        ("k_units", "f16, 4, 0, 4"),
        ("k_half", "f16, true"),
        ("k_groups", "i8, false"),
    ];
    for (name, operand) in expected {
        assert_eq!(reads(name), operand, "{name}");
    }
}

#[test]
fn libraries_compute_products_where_they_are_and_kernels_elsewhere() {
    let text = source(LIBRARY);
    for (machine, file) in [(NVIDIA, "libcublasLt.so.13"), (GFX9, "libhipblaslt.so.0")] {
        let library = [(file, "library.cpp")];
        let Some(folder) = emulated_with(LIBRARY, &text, machine, "with", &library) else { return };
        let count = || std::fs::read_to_string(folder.join("products")).expect("the library says how many");
        // Two products of each of a few runs, which are launched, captured, and repeated as graphs.
        assert!(count().parse::<usize>().expect("a number") >= 8, "{}", count());
    }
    // One that lacks a function is none.
    let old = [("libcublasLt.so.13", "driver.cpp")];
    let folder = emulated_with(LIBRARY, &text, NVIDIA, "without", &old).expect("the tool is there");
    assert!(!folder.join("products").exists());
}

/// Compiled for AMD, over a driver that has HIP's names and numbers.
#[test]
fn narrow_wavefronts_agree_with_the_evaluator() {
    ["kernels", "control"].iter().for_each(|name| emulated(name, &source(name), GFX11));
}

/// Of graphs that have one text for both vendors every other one: the rest of it has run in warps.
#[test]
fn wavefronts_of_64_agree_with_the_evaluator() {
    let text = |name: &str, machine: Machine| kernels(&compiled(name, machine.architecture)).to_owned();
    let (same, own): (Vec<&str>, Vec<&str>) =
        NAMES.iter().partition(|name| text(name, GFX9) == text(name, NVIDIA));
    assert!(same.len() > 4 && own.len() > 4, "{same:?} {own:?}");
    let turns = same.into_iter().step_by(2);
    own.into_iter().chain(turns).for_each(|name| emulated(name, &source(name), GFX9));
}

#[test]
fn drawn_scatters_agree_with_the_evaluator() {
    const EACH: usize = 12;
    let wanted = std::env::var("AOTI_DRAWN_SCATTERS").ok().and_then(|count| count.parse().ok());
    let mut seen = BTreeSet::new();
    for part in 0..wanted.unwrap_or(4 * EACH).div_ceil(EACH) {
        let text = scatters::graph(part as u64, EACH);
        let bundle = compiled_text("scatters", text.clone(), "sm_90a");
        let candidates = [
            "scatter_atomically",
            "scatter_in_bins",
            "find_last_updates",
            "add_fixed",
            "rank_updates",
            "place_updates",
        ];
        seen.extend(candidates.into_iter().filter(|way| kernels(&bundle).contains(way)));
        emulated("scatters", &text, if part % 2 == 0 { NVIDIA } else { GFX9 });
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
}

#[test]
fn drawn_convolutions_of_few_channels_a_group_agree_with_the_evaluator() {
    const EACH: usize = 12;
    let wanted = std::env::var("AOTI_DRAWN_WINDOWS").ok().and_then(|count| count.parse().ok());
    for part in 0..wanted.unwrap_or(3 * EACH).div_ceil(EACH) {
        let text = windows::graph(part as u64, EACH);
        let machine = [NVIDIA, GFX9, GFX11][part % 3];
        let bundle = compiled_text("windows", text.clone(), machine.architecture);
        let source = kernels(&bundle);
        let calls = |template: &str| source.matches(&format!("{template}<")).count();
        let [pixels, planes] = ["convolve_pixels", "convolve_planes"].map(calls);
        assert!(pixels > 0 && planes > 0 && pixels + planes == EACH, "{pixels} and {planes}: {text}");
        emulated("windows", &text, machine);
    }
}

#[test]
fn elementary_functions_are_near_libm() {
    let Some(gcc) = is_installed("gcc", &["g++"]) else { return };
    let binary = scratch("device-scalar").join("scalar");
    run(Command::new(gcc)
        .args(["-std=c++17", "-O1", "-ffp-contract=off", "-w", "-I"])
        .args([manifest("include"), manifest("tests/device/scalar.cpp")])
        .arg("-o")
        .arg(&binary));
    run(&mut Command::new(&binary));
}
