//! GPU compilers that are scripts: where they are found, which host compiler nvcc gets, and why one is refused.

#![cfg(unix)]

use aoti_toolchain::{Device, DeviceJob, Environment, Error, Input, Mode, Requirements, Target, Toolchains};

use crate::shim::{Machine, X86};

/// A script that answers like nvcc 12.4 and takes g++ only up to a version.
pub(crate) fn nvcc(machine: &Machine, path: &str, refused: &str) {
    let body = format!(
        "case \"$*\" in\n\
         *--version*) echo 'nvcc: NVIDIA (R) Cuda compiler driver'; \
           echo 'Cuda compilation tools, release 12.4, V12.4.131';;\n\
         *--list-gpu-arch*) echo compute_80; echo compute_90;;\n\
         *{refused}*-E*) echo '/x/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later \
           than 13 are not supported! The nvcc flag x' >&2; exit 1;;\n\
         *--dryrun*) echo \"#$ _HERE_=$(dirname $0)\" >&2;;\n\
         *) for last; do :; done; echo object > \"$last\";;\n\
         esac"
    );
    machine.script(path, &body);
}

fn request(architectures: &[&str]) -> Requirements {
    Requirements::gpu(Device::Cuda, Target::new("x86_64-unknown-linux-gnu"), architectures)
}

#[test]
fn nvcc_gets_a_host_compiler_that_it_takes_and_keys_do_not_know_where_it_lies() {
    let machine = Machine::new();
    nvcc(&machine, "bin/nvcc", "/g++-14");
    machine.compiler("bin/g++-14", "gcc", 14, X86);
    let good = machine.compiler("bin/g++-13", "gcc", 13, X86);
    let found = machine.toolchains().resolve(&request(&["sm_80", "sm_90a"])).unwrap();
    assert_eq!(found.compiler.host.as_deref(), Some(good.as_path()));
    let job = DeviceJob {
        label: "k".to_owned(),
        source: Input::text("k.cu", ""),
        headers: Vec::new(),
        architectures: vec!["sm_80".to_owned(), "sm_90a".to_owned()],
        portable: true,
        defines: vec!["X=1".to_owned()],
        extra: Vec::new(),
        output: "k".to_owned(),
    };
    let plan = found.device_code(&job, &Mode::default()).unwrap();
    let calls = plan.parts.iter().map(|part| part.action.arguments.join(" ")).collect::<Vec<_>>();
    assert!(calls[0].ends_with("-cubin -arch=sm_80 -DX=1 k.cu -o k.sm_80.cubin"), "{calls:?}");
    assert!(calls[1].contains("-arch=sm_90a"));
    assert!(calls[2].contains("-ptx -arch=compute_90 "), "{calls:?}");
    let before = plan.parts[0].action.key(&machine.environment());
    let mut moved = plan.parts[0].action.clone();
    moved.tool.launch.places = vec!["-ccbin".to_owned(), "/elsewhere/g++-13".to_owned()];
    assert_eq!(moved.key(&machine.environment()), before);
}

#[test]
fn without_a_usable_host_compiler_nvcc_is_refused_in_its_own_words() {
    let machine = Machine::new();
    nvcc(&machine, "bin/nvcc", "/g++-14");
    let refusal = |machine: &Machine| match machine.toolchains().resolve(&request(&["sm_80"])) {
        Err(error @ Error::NotFound(_)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(
        refusal(&machine).contains("accepts no host compiler (none is on PATH)"),
        "{}",
        refusal(&machine)
    );
    machine.compiler("bin/g++-14", "gcc", 14, X86);
    let told = refusal(&machine);
    assert!(
        told.contains("`g++-14`: unsupported GNU version! gcc versions later than 13 are not supported!"),
        "{told}"
    );
    assert!(told.contains("set `NVCC_CCBIN`"), "{told}");
    // One that the user names is the only one that is tried.
    let mut machine = machine;
    machine.compiler("bin/g++-13", "gcc", 13, X86);
    assert!(machine.toolchains().resolve(&request(&["sm_80"])).is_ok());
    machine.set("NVCC_CCBIN", "g++-14");
    assert!(refusal(&machine).contains("unsupported GNU version"));
}

#[test]
fn variables_go_before_installations_and_those_before_python_packages() {
    let mut machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 12, X86);
    let package = "venv/lib/python3.12/site-packages/nvidia/cu13/bin";
    for folder in [package, "cuda/bin"] {
        std::fs::create_dir_all(machine.path(folder)).unwrap();
    }
    nvcc(&machine, &format!("{package}/nvcc"), "none");
    machine.set("VIRTUAL_ENV", machine.path("venv"));
    let program = |machine: &Machine| {
        machine.toolchains().resolve(&request(&["sm_80"])).unwrap().compiler.launch.program
    };
    assert_eq!(program(&machine), machine.path(package).join("nvcc"));
    nvcc(&machine, "bin/nvcc", "none");
    assert_eq!(program(&machine), machine.path("bin/nvcc"));
    nvcc(&machine, "cuda/bin/nvcc", "none");
    machine.set("CUDA_PATH", machine.path("cuda"));
    assert_eq!(program(&machine), machine.path("cuda/bin/nvcc"));
    nvcc(&machine, "other/my-nvcc", "none");
    machine.set("NVCC", machine.path("other/my-nvcc"));
    assert_eq!(program(&machine), machine.path("other/my-nvcc"));
    // What the user names and cannot be used is not passed over in silence.
    machine.set("NVCC", "no-such-nvcc");
    let error = machine.toolchains().resolve(&request(&["sm_80"])).unwrap_err().to_string();
    let resolution = machine.toolchains().resolution(&request(&["sm_80"])).unwrap();
    assert!(resolution.serving.is_empty() && resolution.considered.len() > 1);
    assert!(error.contains("variable `NVCC` names `no-such-nvcc`, which is not a program"), "{error}");
}

#[test]
fn architectures_that_a_compiler_lacks_are_a_reason() {
    let machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 12, X86);
    nvcc(&machine, "bin/nvcc", "none");
    for (name, reason) in [
        ("sm_100", "makes no code for `sm_100`; it knows sm_80, sm_90, sm_90a"),
        ("gfx90a", "`gfx90a` is no cuda architecture"),
        ("sm_80a", "`sm_80a` is no cuda architecture"),
    ] {
        let error = machine.toolchains().resolve(&request(&[name])).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let report = machine.toolchains().report();
    let entry = report.entries.iter().find(|entry| entry.name == "nvcc").unwrap();
    assert_eq!(entry.serves[0].2, ["sm_80", "sm_90", "sm_90a"]);
    assert!(entry.details.iter().any(|detail| detail.starts_with("host compiler ")), "{:?}", entry.details);
    assert!(entry.details.contains(&"no fatbinary: parts are not packed into one file".to_owned()));
}

#[test]
fn an_installation_in_part_names_the_missing_package() {
    let machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 12, X86);
    machine.script(
        "bin/nvcc",
        "case \"$*\" in\n*--version*) echo 'Cuda compilation tools, release 13.0, V13.0.1';;\n\
         *--list-gpu-arch*) echo compute_90;;\n*-E*) true;;\n\
         *) echo 'sh: 1: cicc: not found' >&2; exit 127;;\nesac",
    );
    let error = machine.toolchains().resolve(&request(&["sm_90"])).unwrap_err().to_string();
    assert!(error.contains("is incomplete") && error.contains("install nvidia-nvvm"), "{error}");
}

#[test]
fn an_empty_machine_tells_how_to_get_gpu_compilers() {
    let environment = Environment::from_variables([("PATH", "/nowhere")], "/");
    let wish = Requirements::gpu(Device::Rocm, Target::host(), &["gfx1100"]);
    let error = Toolchains::new(&environment, None).resolve(&wish).unwrap_err().to_string();
    assert!(error.contains("no toolchain compiles rocm code"), "{error}");
    assert!(error.contains("hipcc: not found") && error.contains("clang-hip: not found"), "{error}");
}
