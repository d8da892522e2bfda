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

impl Device {
    /// The inverse of [`Device::raw`].
    pub(crate) fn of_raw(raw: AotiDevice) -> Device {
        let index = u16::try_from(raw.index).unwrap_or(u16::MAX);
        match raw.kind as u32 {
            AOTI_CUDA => Device::Cuda(index),
            AOTI_ROCM => Device::Rocm(index),
            _ => Device::Cpu,
        }
    }

    pub(crate) fn raw(self) -> AotiDevice {
        let (kind, index) = match self {
            Device::Cpu => (AOTI_CPU, 0),
            Device::Cuda(index) => (AOTI_CUDA, index),
            Device::Rocm(index) => (AOTI_ROCM, index),
        };
        AotiDevice { kind: kind as i32, index: index.into() }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(index) => write!(f, "cuda:{index}"),
            Device::Rocm(index) => write!(f, "rocm:{index}"),
        }
    }
}

/// The error returned when a string does not name a [`Device`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseDeviceError(String);

impl fmt::Display for ParseDeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no device `{}`; devices are `cpu`, `cuda`, `rocm`, and `cuda:1` for the second",
            self.0
        )
    }
}

impl std::error::Error for ParseDeviceError {}

impl FromStr for Device {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Device, ParseDeviceError> {
        let (kind, index) = text.split_once(':').map_or((text, None), |(kind, index)| (kind, Some(index)));
        let number = index.map_or(Some(0), |index| index.parse().ok());
        match (kind, number) {
            ("cpu", Some(0)) if index.is_none() => Ok(Device::Cpu),
            ("cuda", Some(index)) => Ok(Device::Cuda(index)),
            ("rocm", Some(index)) => Ok(Device::Rocm(index)),
            _ => Err(ParseDeviceError(text.to_owned())),
        }
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
