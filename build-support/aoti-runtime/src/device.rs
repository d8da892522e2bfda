//! Devices: where models run and tensors are stored.

use crate::ffi::abi::{AOTI_CPU, AOTI_CUDA, AOTI_ROCM, AotiDevice};
use std::{fmt, str::FromStr};

/// A processor or one GPU, as on command lines: `cpu`, `cuda`, `cuda:1`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Device {
    /// The processor, and memory that it sees.
    #[default]
    Cpu,
    /// A GPU of NVIDIA's by its number.
    Cuda(u16),
    /// A GPU of AMD's by its number.
    Rocm(u16),
}

/// What is known of a kind of devices.
struct Kind {
    /// What it is called on command lines.
    name: &'static str,
    /// Its number in the C interface.
    number: u32,
    /// The device with this number; of those that there is one of, whatever the number is.
    device: fn(u16) -> Device,
    /// The numbers of their memory in DLPack. Of processors these are those of memory that GPUs see too.
    dlpack: &'static [i32],
    /// The library by which several of them compute together.
    #[cfg(feature = "nccl")]
    collectives: Option<&'static str>,
}

const CPU: Kind = Kind {
    name: "cpu",
    number: AOTI_CPU,
    device: |_| Device::Cpu,
    dlpack: &[1, 3, 11],
    #[cfg(feature = "nccl")]
    collectives: None,
};
/// The kinds of which there may be several.
const GPUS: [Kind; 2] = [
    Kind {
        name: "cuda",
        number: AOTI_CUDA,
        device: Device::Cuda,
        dlpack: &[2, 13],
        #[cfg(feature = "nccl")]
        collectives: Some("libnccl.so.2"),
    },
    Kind {
        name: "rocm",
        number: AOTI_ROCM,
        device: Device::Rocm,
        dlpack: &[10],
        #[cfg(feature = "nccl")]
        collectives: Some("librccl.so.1"),
    },
];

impl Device {
    /// What is known of its kind, and its number.
    fn kind(self) -> (&'static Kind, u16) {
        match self {
            Device::Cpu => (&CPU, 0),
            Device::Cuda(index) => (&GPUS[0], index),
            Device::Rocm(index) => (&GPUS[1], index),
        }
    }

    /// The inverse of [`Device::raw`].
    pub(crate) fn of_raw(raw: AotiDevice) -> Device {
        let index = u16::try_from(raw.index).unwrap_or(u16::MAX);
        let kind = GPUS.iter().find(|kind| kind.number == raw.kind as u32).unwrap_or(&CPU);
        (kind.device)(index)
    }

    pub(crate) fn raw(self) -> AotiDevice {
        let (kind, index) = self.kind();
        AotiDevice { kind: kind.number as i32, index: index.into() }
    }

    /// The device with a type and a number of DLPack's.
    pub(crate) fn of_dlpack(kind: i32, index: i32) -> Option<Device> {
        if CPU.dlpack.contains(&kind) {
            return Some(Device::Cpu);
        }
        let known = GPUS.iter().find(|known| known.dlpack.contains(&kind))?;
        Some((known.device)(u16::try_from(index).ok()?))
    }

    /// The library by which several devices of its kind compute together.
    #[cfg(feature = "nccl")]
    pub(crate) fn collectives(self) -> Option<&'static str> {
        self.kind().0.collectives
    }

    /// Whether it is the processor.
    pub fn is_cpu(self) -> bool {
        self == Device::Cpu
    }

    /// Its kind, as on command lines: `cpu`, `cuda`, `rocm`.
    pub fn kind_name(self) -> &'static str {
        self.kind().0.name
    }

    /// Its number among those of its kind.
    pub fn index(self) -> u16 {
        self.kind().1
    }

    /// The device of its kind with this number; the processor, of which there is one, whatever the number is.
    #[must_use]
    pub fn with_index(self, index: u16) -> Device {
        (self.kind().0.device)(index)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, index) = self.kind();
        if self.is_cpu() { f.write_str(kind.name) } else { write!(f, "{}:{index}", kind.name) }
    }
}

/// The error returned when a string does not name a [`Device`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseDeviceError(String);

impl fmt::Display for ParseDeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no device `{}`; devices are `{}`", self.0, CPU.name)?;
        GPUS.iter().try_for_each(|kind| write!(f, ", `{}`", kind.name))?;
        write!(f, ", and `{}:1` for the second", GPUS[0].name)
    }
}

impl std::error::Error for ParseDeviceError {}

impl FromStr for Device {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Device, ParseDeviceError> {
        let (kind, index) = text.split_once(':').map_or((text, None), |(kind, index)| (kind, Some(index)));
        let number = index.map_or(Some(0), |index| index.parse().ok());
        if text == CPU.name {
            return Ok(Device::Cpu);
        }
        let known = GPUS.iter().find(|known| known.name == kind).zip(number);
        known.map(|(known, index)| (known.device)(index)).ok_or_else(|| ParseDeviceError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_written_as_they_are_read() {
        for (text, device) in [
            ("cpu", Device::Cpu),
            ("cuda", Device::Cuda(0)),
            ("cuda:3", Device::Cuda(3)),
            ("rocm:1", Device::Rocm(1)),
        ] {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:70000", "cpu:0", "cuda:0:1"] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
    }
}
