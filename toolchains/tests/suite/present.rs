//! The GPUs of a machine, told by programs that are scripts, and what `native` becomes.

#![cfg(unix)]

use aoti_toolchain::{Device, Error, Requirements, Target, present_devices};

use crate::shim::{Machine, X86};
use crate::shim_gpu::nvcc;

fn native(device: Device) -> Requirements {
    Requirements::gpu(device, Target::new("x86_64-unknown-linux-gnu"), &["sm_80", "native"])
}

fn found(machine: &Machine) -> Vec<String> {
    let devices = present_devices(&machine.environment()).found;
    devices
        .iter()
        .map(|one| format!("{} {} x {}", one.device.as_str(), one.count, one.architecture))
        .collect()
}

/// On a machine with AMD's driver the programs are not asked.
fn has_amd_driver() -> bool {
    std::path::Path::new("/sys/class/kfd/kfd/topology/nodes").exists()
}

#[test]
fn native_is_what_the_driver_tells_of() {
    let machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 12, X86);
    nvcc(&machine, "bin/nvcc", "none");
    machine.script("bin/nvidia-smi", "echo 9.0; echo 8.0; echo 9.0");
    let of_cuda: Vec<_> = found(&machine).into_iter().filter(|one| one.starts_with("cuda")).collect();
    assert_eq!(of_cuda, ["cuda 1 x sm_80", "cuda 2 x sm_90a"]);
    let toolchain = machine.toolchains().resolve(&native(Device::Cuda)).unwrap();
    assert_eq!(toolchain.levels, ["sm_80", "sm_90a"], "each once, in the order asked for");
    assert!(machine.calls().contains(&"--query-gpu=compute_cap --format=csv,noheader".to_owned()));
    // One that the compiler is too old for is refused by name.
    machine.script("bin/nvidia-smi", "echo 12.0");
    let error = machine.toolchains().resolve(&native(Device::Cuda)).unwrap_err().to_string();
    assert!(error.contains("makes no code for `sm_120a`; it knows sm_80, sm_90, sm_90a"), "{error}");
}

#[test]
fn without_a_device_native_says_what_was_looked_for() {
    let machine = Machine::new();
    for (script, part) in [
        (None, "`nvidia-smi`, which comes with NVIDIA's driver, is not on PATH"),
        (
            Some("echo 'NVIDIA-SMI has failed' >&2; exit 9"),
            "failed with exit status: 9: NVIDIA-SMI has failed",
        ),
        (Some("echo 'No devices were found'"), "`nvidia-smi` tells of no GPU"),
    ] {
        if let Some(script) = script {
            machine.script("bin/nvidia-smi", script);
        }
        let error = machine.toolchains().resolve(&native(Device::Cuda)).unwrap_err();
        assert!(matches!(error, Error::NoDevice { device: Device::Cuda, .. }), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.to_string().contains("help: name the architectures, such as `sm_90a`"), "{error}");
    }
    if has_amd_driver() {
        return;
    }
    let error = machine.toolchains().resolve(&native(Device::Rocm)).unwrap_err().to_string();
    for part in
        ["/sys/class/kfd/kfd/topology/nodes", "`rocm_agent_enumerator` is not on", "`amdgpu-arch` is not on"]
    {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn where_there_is_no_kernel_driver_programs_tell_of_amd_gpus() {
    if has_amd_driver() {
        return;
    }
    let machine = Machine::new();
    machine.script("bin/amdgpu-arch", "echo gfx1100");
    assert_eq!(found(&machine), ["rocm 1 x gfx1100"]);
    machine.script("bin/rocm_agent_enumerator", "echo Traceback >&2; exit 1");
    assert_eq!(found(&machine), ["rocm 1 x gfx1100"], "the next one is asked");
    machine.script("bin/rocm_agent_enumerator", "echo gfx000; echo gfx90a; echo gfx90a");
    assert_eq!(found(&machine), ["rocm 2 x gfx90a"]);
    let absent = present_devices(&machine.environment()).absent;
    assert_eq!(absent.iter().map(|(device, _)| *device).collect::<Vec<_>>(), [Device::Cuda]);
}

#[test]
fn resolution_needs_no_device_for_named_architectures() {
    let machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 12, X86);
    nvcc(&machine, "bin/nvcc", "none");
    machine.script("bin/nvidia-smi", "exit 1");
    let wish = Requirements::gpu(Device::Cuda, Target::new("x86_64-unknown-linux-gnu"), &["sm_90a"]);
    assert_eq!(machine.toolchains().resolve(&wish).unwrap().levels, ["sm_90a"]);
    assert!(!machine.calls().iter().any(|call| call.contains("compute_cap")), "the driver was asked");
}
