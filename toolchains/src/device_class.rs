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
    /// A level or architecture that many have.
    example: &'static str,
    /// The architectures that code is compiled for where none are named; levels of processors depend on the target.
    common: &'static [&'static str],
}

const CPU: DeviceRow = DeviceRow { name: "cpu", example: "x86-64-v3", common: &[] };
const CUDA: DeviceRow = DeviceRow { name: "cuda", example: "sm_90a", common: &["sm_80", "sm_90a"] };
const ROCM: DeviceRow = DeviceRow { name: "rocm", example: "gfx90a", common: &["gfx90a", "gfx1100"] };
const DEVICE_NAMES: &[&str] = &[CPU.name, CUDA.name, ROCM.name];

impl Device {
    /// The name used in manifests.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    fn row(self) -> &'static DeviceRow {
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
        Device::from_name(&name).ok_or_else(|| D::Error::unknown_variant(&name, DEVICE_NAMES))
    }
}
