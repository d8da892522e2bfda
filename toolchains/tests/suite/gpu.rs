//! The real GPU compilers on a small set of kernels: every output is opened and its architecture checked, whatever the
//! compiler was asked for. Needs no GPU.

use aoti_toolchain::{
    Device, DeviceImage, DeviceJob, Environment, Error, Form, GpuArchitecture, Input, LocalStore, Mode,
    Requirements, Target, Toolchain, Toolchains, inspect,
};

use crate::common::{Log, executor, is_required};

const KERNELS: [&str; 3] = ["block_sum", "leaky_relu", "vector_add"];

/// A real toolchain; absence is told, and fails if `AOTI_TEST_REQUIRE` lists the tool.
fn toolchain(name: &str, tool: &str, device: Device, architectures: &[&str]) -> Option<Toolchain> {
    let wish = Requirements {
        toolchain: Some(name.to_owned()),
        ..Requirements::gpu(device, Target::host(), architectures)
    };
    match Toolchains::new(&Environment::capture(), None).resolve(&wish) {
        Ok(toolchain) => Some(toolchain),
        Err(error) if is_required(tool) => panic!("`{tool}` is required: {error}"),
        Err(error) => {
            println!("skipped `{name}`: {error}");
            None
        }
    }
}

fn job(device: Device, architectures: &[&str]) -> DeviceJob {
    let source = match device {
        Device::Cuda => Input::text("kernels.cu", include_str!("../kernels/kernels.cu")),
        Device::Rocm | Device::Cpu => Input::text("kernels.hip", include_str!("../kernels/kernels.hip")),
    };
    DeviceJob {
        label: "kernels".to_owned(),
        source,
        headers: vec![
            Input::text("kernels.h", include_str!("../kernels/kernels.h")),
            Input::text("gpu.h", include_str!("../kernels/gpu.h")),
        ],
        architectures: architectures.iter().map(|&name| name.to_owned()).collect(),
        portable: true,
        defines: vec!["SLOPE=0.125f".to_owned()],
        extra: Vec::new(),
        output: "kernels".to_owned(),
    }
}

fn build(toolchain: &Toolchain, job: &DeviceJob) -> DeviceImage {
    let folder = tempfile::tempdir().unwrap();
    let plan = toolchain.device_code(job, &Mode::default()).unwrap();
    let image = executor(folder.path(), None).device_code(&plan, &Log::default());
    image.unwrap_or_else(|error| panic!("{}: {error}", toolchain.name()))
}

/// What a container holds, as text.
fn members(bytes: &[u8]) -> Vec<String> {
    let found = inspect(bytes).unwrap();
    found.iter().map(|code| format!("{} {}", code.form, code.architecture)).collect()
}

fn parts(image: &DeviceImage) -> Vec<String> {
    image.parts.iter().map(|part| format!("{} {}", part.form, part.architecture)).collect()
}

fn check_parts(image: &DeviceImage) {
    for part in &image.parts {
        let found = inspect(&part.content).unwrap();
        assert_eq!(found[0].architecture, part.architecture.to_string());
        assert_eq!(part.kernels, KERNELS, "{}", part.architecture);
        println!("{} {}: {} bytes, {} ms", part.form, part.architecture, part.content.len(), part.millis);
    }
}

#[test]
fn nvcc_makes_a_fat_binary_of_cubins_and_ptx() {
    let Some(nvcc) = toolchain("nvcc", "nvcc", Device::Cuda, &["sm_80", "sm_90a"]) else { return };
    let newer = nvcc.architectures().into_iter().rfind(|name| name.ends_with('a')).unwrap();
    let image = build(&nvcc, &job(Device::Cuda, &["sm_80", "sm_90a", &newer]));
    let plain = newer.trim_end_matches('a');
    let expected = [
        "cubin sm_80".to_owned(),
        "cubin sm_90a".to_owned(),
        format!("cubin {newer}"),
        format!("ptx {plain}"),
    ];
    assert_eq!(parts(&image), expected);
    check_parts(&image);
    let container = image.container.expect("nvcc comes with fatbinary");
    let found = members(&container);
    for wanted in &expected {
        assert!(found.contains(wanted), "{wanted} is not in {found:?}");
    }
    assert_eq!(found.len(), 4);
}

#[test]
fn nvcc_makes_the_same_bytes_in_every_folder() {
    let Some(nvcc) = toolchain("nvcc", "nvcc", Device::Cuda, &["sm_80"]) else { return };
    let [first, second] = [(), ()].map(|()| build(&nvcc, &job(Device::Cuda, &["sm_80"])));
    assert_eq!(first.container, second.container);
    assert_eq!(first.parts[0].content, second.parts[0].content);
}

#[test]
fn clang_alone_makes_ptx() {
    let Some(clang) = toolchain("clang-cuda", "clang", Device::Cuda, &["sm_90a"]) else { return };
    let mut alone = clang.clone();
    alone.forget_helpers();
    let image = build(&alone, &job(Device::Cuda, &["sm_80", "sm_90a"]));
    assert_eq!(parts(&image), ["ptx sm_80", "ptx sm_90a", "ptx sm_90"]);
    assert!(image.container.is_none());
    check_parts(&image);
    if clang.has_helper("ptxas") {
        let image = build(&clang, &job(Device::Cuda, &["sm_80", "sm_90a"]));
        assert_eq!(parts(&image), ["cubin sm_80", "cubin sm_90a", "ptx sm_90"]);
        check_parts(&image);
    } else {
        assert!(!is_required("nvcc"), "`ptxas`, which comes with nvcc, is required");
        println!("skipped machine code by clang: ptxas is absent");
    }
}

#[test]
fn hipcc_and_clang_alone_make_bundles_of_code_objects() {
    for (name, tool, architectures) in [
        ("hipcc", "hipcc", ["gfx90a", "gfx1030"]),
        ("clang-hip", "clang", ["gfx942", "gfx1100"]),
        ("clang-hip", "clang", ["gfx90a:xnack-", "gfx1030"]),
    ] {
        let Some(compiler) = toolchain(name, tool, Device::Rocm, &architectures) else { continue };
        let image = build(&compiler, &job(Device::Rocm, &architectures));
        let expected = architectures.map(|name| format!("code object {name}"));
        assert_eq!(parts(&image), expected, "{name}");
        check_parts(&image);
        assert_eq!(members(&image.container.unwrap()), expected, "{name}");
        assert!(image.parts.iter().all(|part| part.form == Form::CodeObject));
    }
}

#[test]
fn architectures_are_cached_apart() {
    let Some(clang) = toolchain("clang-hip", "clang", Device::Rocm, &["gfx90a"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::new(folder.path().join("cache"));
    let run = |architectures: &[&str]| {
        let plan = clang.device_code(&job(Device::Rocm, architectures), &Mode::default()).unwrap();
        let image = executor(folder.path(), Some(store.clone())).device_code(&plan, &Log::default()).unwrap();
        image.parts.iter().map(|part| part.cached).collect::<Vec<_>>()
    };
    assert_eq!(run(&["gfx90a"]), [false]);
    assert_eq!(run(&["gfx90a", "gfx1030", "gfx90a"]), [true, false]);
}

#[test]
fn what_a_compiler_does_not_know_is_refused_before_it_runs() {
    let Some(clang) = toolchain("clang-hip", "clang", Device::Rocm, &["gfx90a"]) else { return };
    for bad in ["sm_80", "gfx9999", "x86-64-v3"] {
        let error = clang.device_code(&job(Device::Rocm, &[bad]), &Mode::default()).unwrap_err();
        assert!(matches!(&error, Error::UnknownLevel { level, .. } if level == bad), "{error}");
        let wish = Requirements::gpu(Device::Rocm, Target::host(), &[bad]);
        let error = Toolchains::new(&Environment::capture(), None).resolve(&wish).unwrap_err();
        assert!(error.to_string().contains(bad), "{error}");
    }
    assert!(clang.architectures().iter().all(|name| GpuArchitecture::parse(Device::Rocm, name).is_some()));
}
