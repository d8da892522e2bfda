//! Classes of devices that code is compiled for.

use serde_core::de::Error as _;
use serde_core::{Deserialize, Deserializer};

/// A class of devices that code is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// The processor that the program runs on.
    Cpu,
    /// NVIDIA GPUs.
    Cuda,
    /// AMD GPUs.
    Rocm,
}

/// What is known of a class of devices.
struct DeviceRow {
    /// The name used in manifests.
    name: &'static str,
    /// What people call its devices.
    label: &'static str,
    /// A level or architecture that many have.
    example: &'static str,
    /// The architectures that code is compiled for where none are named; levels of processors depend on the target.
    common: &'static [&'static str],
    /// The toolchains that come with the crate: the name of each definition's file, and its text.
    toolchains: &'static [(&'static str, &'static str)],
}

const CPU: DeviceRow = DeviceRow {
    name: "cpu",
    label: "processors",
    example: "x86-64-v3",
    common: &[],
    toolchains: &[
        ("gcc.toml", include_str!("../gcc.toml")),
        ("clang.toml", include_str!("../clang.toml")),
        ("gcc-aarch64.toml", include_str!("../gcc-aarch64.toml")),
        ("clang-aarch64.toml", include_str!("../clang-aarch64.toml")),
        ("gcc-riscv64.toml", include_str!("../gcc-riscv64.toml")),
        ("gcc-windows.toml", include_str!("../gcc-windows.toml")),
        ("clang-android.toml", include_str!("../clang-android.toml")),
        ("xcode.toml", include_str!("../xcode.toml")),
        ("clang-msvc.toml", include_str!("../clang-msvc.toml")),
        ("zig.toml", include_str!("../zig.toml")),
    ],
};
const CUDA: DeviceRow = DeviceRow {
    name: "cuda",
    label: "NVIDIA GPUs",
    example: "sm_90a",
    common: &["sm_80", "sm_90a"],
    toolchains: &[
        ("nvcc.toml", include_str!("../nvcc.toml")),
        ("clang-cuda.toml", include_str!("../clang-cuda.toml")),
    ],
};
const ROCM: DeviceRow = DeviceRow {
    name: "rocm",
    label: "AMD GPUs",
    example: "gfx90a",
    common: &["gfx90a", "gfx1100"],
    toolchains: &[
        ("hipcc.toml", include_str!("../hipcc.toml")),
        ("clang-hip.toml", include_str!("../clang-hip.toml")),
    ],
};

impl Device {
    /// The name used in manifests.
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    const fn row(self) -> &'static DeviceRow {
        match self {
            Device::Cpu => &CPU,
            Device::Cuda => &CUDA,
            Device::Rocm => &ROCM,
        }
    }

    /// All classes.
    pub const ALL: [Device; 3] = [Device::Cpu, Device::Cuda, Device::Rocm];
    /// The classes of GPUs.
    pub const GPUS: [Device; 2] = [Device::Cuda, Device::Rocm];

    /// What people call its devices: `NVIDIA GPUs`.
    pub fn label(self) -> &'static str {
        self.row().label
    }

    /// The definitions of toolchains that come with the crate, by the names of their files.
    pub(crate) fn toolchains(self) -> &'static [(&'static str, &'static str)] {
        self.row().toolchains
    }

    /// The architectures that code is compiled for where none are named.
    pub fn common_architectures(self) -> &'static [&'static str] {
        self.row().common
    }

    /// The device with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Device::ALL.into_iter().find(|device| device.as_str() == name)
    }

    /// A level or architecture that many have.
    pub(crate) fn example(self) -> &'static str {
        self.row().example
    }
}

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Device, D::Error> {
        let name = String::deserialize(deserializer)?;
        const NAMES: [&str; Device::ALL.len()] = {
            let mut names = [""; Device::ALL.len()];
            let mut at = 0;
            while at < names.len() {
                names[at] = Device::ALL[at].as_str();
                at += 1;
            }
            names
        };
        Device::from_name(&name).ok_or_else(|| D::Error::unknown_variant(&name, &NAMES))
    }
}
