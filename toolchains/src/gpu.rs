//! GPU architectures by the names that users write: what exists, what a name means, what a compiler can do of it.
//!
//! Pure tables and parsing. Which compiler is there is the business of [`probe`](crate::probe), which devices are in
//! this machine that of [`present`](crate::present).

use std::fmt;

use crate::device_class::Device;
use crate::device_code::Form;
use crate::environment::Environment;
use crate::present;

/// What is known of a class of GPUs beside its [`Device`].
pub(crate) struct GpuClass {
    /// Reads the name of an architecture.
    parse: fn(&str) -> Option<GpuArchitecture>,
    /// The architectures in the tables, in order.
    all: fn() -> Vec<GpuArchitecture>,
    /// The architecture of each GPU of this machine, or what was looked for.
    pub(crate) present: fn(&Environment) -> Result<Vec<String>, Vec<String>>,
    /// What its machine code is.
    pub(crate) machine_code: Form,
    /// What LLVM calls its machine.
    pub(crate) triple: &'static str,
    /// The helper that packs code for several architectures, if the build does not do so itself.
    pub(crate) packer: Option<&'static str>,
    /// Portable code for these architectures is made for this one.
    pub(crate) portable: fn(&[GpuArchitecture]) -> Option<GpuArchitecture>,
}

const NVIDIA: GpuClass = GpuClass {
    parse: parse_cuda,
    all: || {
        let scoped = |row: &'static CudaRow| {
            row.scopes.iter().map(|&scope| GpuArchitecture::Cuda { number: row.number, scope })
        };
        CUDA.iter().flat_map(scoped).collect()
    },
    present: |environment| present::nvidia(environment).map_err(|reason| vec![reason]),
    machine_code: Form::Cubin,
    triple: "nvptx64-nvidia-cuda",
    packer: Some("fatbinary"),
    portable: newest,
};

const AMD: GpuClass = GpuClass {
    parse: parse_rocm,
    all: || {
        let plain = |row: &RocmRow| GpuArchitecture::Rocm {
            processor: row.processor.to_owned(),
            features: Vec::new(),
        };
        ROCM.iter().map(plain).collect()
    },
    present: present::amd,
    machine_code: Form::CodeObject,
    triple: "amdgcn-amd-amdhsa",
    packer: None,
    portable: |_| None,
};

impl Device {
    /// What is known of it, if it is a GPU.
    pub(crate) fn gpu(self) -> Option<&'static GpuClass> {
        match self {
            Device::Cpu => None,
            Device::Cuda => Some(&NVIDIA),
            Device::Rocm => Some(&AMD),
        }
    }
}

/// One architecture, as a user asks for it: `sm_90a`, `gfx90a:xnack-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GpuArchitecture {
    /// A CUDA compute capability.
    Cuda {
        /// Ten times the capability: 90 for 9.0.
        number: u32,
        /// Whether code may use what only this architecture, or its family, has.
        scope: Scope,
    },
    /// An AMD processor.
    Rocm {
        /// Its name, `gfx90a`.
        processor: String,
        /// Settings that it is compiled for, in order: `sramecc+`, `xnack-`.
        features: Vec<String>,
    },
}

/// How far CUDA code for an architecture reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Later architectures too (as PTX; as machine code, later ones with the same major number).
    Portable,
    /// The architectures of the same family: suffix `f`.
    Family,
    /// This one alone: suffix `a`.
    Specific,
}

impl Scope {
    /// The suffix in names.
    pub fn suffix(self) -> &'static str {
        match self {
            Scope::Portable => "",
            Scope::Family => "f",
            Scope::Specific => "a",
        }
    }
}

struct CudaRow {
    number: u32,
    /// Suffixes that exist for it.
    scopes: &'static [Scope],
    devices: &'static str,
}

const PLAIN: &[Scope] = &[Scope::Portable];
const WITH_A: &[Scope] = &[Scope::Portable, Scope::Specific];
const WITH_AF: &[Scope] = &[Scope::Portable, Scope::Specific, Scope::Family];

/// NVIDIA's compute capabilities from Turing on, with products (CUDA C++ programming guide, "Compute Capabilities").
const CUDA: &[CudaRow] = &[
    CudaRow { number: 75, scopes: PLAIN, devices: "T4, RTX 20" },
    CudaRow { number: 80, scopes: PLAIN, devices: "A100, A30" },
    CudaRow { number: 86, scopes: PLAIN, devices: "A10, A40, RTX 30" },
    CudaRow { number: 87, scopes: PLAIN, devices: "Jetson Orin" },
    CudaRow { number: 88, scopes: PLAIN, devices: "" },
    CudaRow { number: 89, scopes: PLAIN, devices: "L4, L40, RTX 40" },
    CudaRow { number: 90, scopes: WITH_A, devices: "H100, H200, GH200" },
    CudaRow { number: 100, scopes: WITH_AF, devices: "B200, GB200" },
    CudaRow { number: 103, scopes: WITH_AF, devices: "B300, GB300" },
    CudaRow { number: 107, scopes: WITH_AF, devices: "" },
    CudaRow { number: 110, scopes: WITH_AF, devices: "Jetson Thor" },
    CudaRow { number: 120, scopes: WITH_AF, devices: "RTX 50, RTX PRO Blackwell" },
    CudaRow { number: 121, scopes: WITH_AF, devices: "GB10 (DGX Spark)" },
];

struct RocmRow {
    processor: &'static str,
    /// `EF_AMDGPU_MACH` of its code objects.
    machine: u32,
    devices: &'static str,
}

const fn row(processor: &'static str, machine: u32, devices: &'static str) -> RocmRow {
    RocmRow { processor, machine, devices }
}

/// AMD's processors from GCN 5 on (LLVM, "User Guide for AMDGPU Backend", tables of processors and of ELF header flags).
const ROCM: &[RocmRow] = &[
    row("gfx900", 0x2c, "Vega 10"),
    row("gfx902", 0x2d, "Raven Ridge"),
    row("gfx904", 0x2e, "Vega 12"),
    row("gfx906", 0x2f, "MI50, MI60"),
    row("gfx908", 0x30, "MI100"),
    row("gfx909", 0x31, "Raven 2"),
    row("gfx90a", 0x3f, "MI210, MI250"),
    row("gfx90c", 0x32, "Renoir, Cezanne"),
    row("gfx942", 0x4c, "MI300A, MI300X, MI325X"),
    row("gfx950", 0x4f, "MI350X, MI355X"),
    row("gfx1010", 0x33, "RX 5700"),
    row("gfx1011", 0x34, "Radeon Pro V520"),
    row("gfx1012", 0x35, "RX 5500"),
    row("gfx1013", 0x42, "BC-250"),
    row("gfx1030", 0x36, "RX 6800, RX 6900, W6800"),
    row("gfx1031", 0x37, "RX 6700"),
    row("gfx1032", 0x38, "RX 6600"),
    row("gfx1033", 0x39, "Van Gogh"),
    row("gfx1034", 0x3e, "RX 6500"),
    row("gfx1035", 0x3d, "Radeon 680M"),
    row("gfx1036", 0x45, "Raphael"),
    row("gfx1100", 0x41, "RX 7900, W7900"),
    row("gfx1101", 0x46, "RX 7700, RX 7800, W7700"),
    row("gfx1102", 0x47, "RX 7600"),
    row("gfx1103", 0x44, "Radeon 780M"),
    row("gfx1150", 0x43, "Radeon 890M"),
    row("gfx1151", 0x4a, "Radeon 8060S (Strix Halo)"),
    row("gfx1152", 0x55, "Krackan Point"),
    row("gfx1153", 0x58, "Radeon 820M"),
    row("gfx1200", 0x48, "RX 9060"),
    row("gfx1201", 0x4e, "RX 9070, R9700"),
    row("gfx1250", 0x49, "MI400 series"),
];

impl GpuArchitecture {
    /// Reads a name; `None` for names of another form, and for suffixes that its architecture does not have.
    /// A number or processor that is in no table is accepted: the compiler may know newer ones.
    pub fn parse(device: Device, name: &str) -> Option<Self> {
        (device.gpu()?.parse)(name)
    }

    /// The device that it is of.
    pub fn device(&self) -> Device {
        match self {
            GpuArchitecture::Cuda { .. } => Device::Cuda,
            GpuArchitecture::Rocm { .. } => Device::Rocm,
        }
    }

    /// Its name as compilers list those that they make code for. Settings of AMD's are the same for all that know the processor.
    pub(crate) fn listed(&self) -> String {
        match self {
            GpuArchitecture::Cuda { .. } => self.to_string(),
            GpuArchitecture::Rocm { .. } => self.base(),
        }
    }

    /// Whether an assembler means it by a name: with or without what stands before the number.
    pub(crate) fn is_assembled_as(&self, name: &str) -> bool {
        let base = self.base();
        name == base || base.strip_prefix("sm_") == Some(name)
    }

    /// Its name without suffix or settings, as compilers list it.
    pub fn base(&self) -> String {
        match self {
            GpuArchitecture::Cuda { number, .. } => format!("sm_{number}"),
            GpuArchitecture::Rocm { processor, .. } => processor.clone(),
        }
    }

    /// The virtual architecture that PTX is made for (`compute_90a`); for AMD the name itself.
    pub fn virtual_name(&self) -> String {
        self.to_string().replacen("sm_", "compute_", 1)
    }

    /// The name as part of a file name.
    pub(crate) fn file_part(&self) -> String {
        self.to_string().replace(':', "-")
    }

    /// Products that have it; empty when the tables do not know.
    pub fn devices(&self) -> &'static str {
        match self {
            GpuArchitecture::Cuda { number, .. } => {
                CUDA.iter().find(|row| row.number == *number).map_or("", |row| row.devices)
            }
            GpuArchitecture::Rocm { processor, .. } => {
                ROCM.iter().find(|row| row.processor == processor).map_or("", |row| row.devices)
            }
        }
    }
}

impl fmt::Display for GpuArchitecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuArchitecture::Cuda { number, scope } => write!(formatter, "sm_{number}{}", scope.suffix()),
            GpuArchitecture::Rocm { processor, features } => {
                formatter.write_str(processor)?;
                features.iter().try_for_each(|feature| write!(formatter, ":{feature}"))
            }
        }
    }
}

fn parse_cuda(name: &str) -> Option<GpuArchitecture> {
    let text = name.strip_prefix("sm_")?;
    let (digits, scope) = match text.strip_suffix('a') {
        Some(digits) => (digits, Scope::Specific),
        None => match text.strip_suffix('f') {
            Some(digits) => (digits, Scope::Family),
            None => (text, Scope::Portable),
        },
    };
    let good = (2..=4).contains(&digits.len())
        && digits.bytes().all(|digit| digit.is_ascii_digit())
        && !digits.starts_with('0');
    let number = digits.parse().ok().filter(|_| good)?;
    let row = CUDA.iter().find(|row| row.number == number);
    let exists = row.is_none_or(|row| row.scopes.contains(&scope));
    exists.then_some(GpuArchitecture::Cuda { number, scope })
}

fn parse_rocm(name: &str) -> Option<GpuArchitecture> {
    let mut parts = name.split(':');
    let processor = parts.next()?;
    let digits = processor.strip_prefix("gfx")?;
    let good = (3..=5).contains(&digits.len())
        && digits.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
    let mut features = parts.map(str::to_owned).collect::<Vec<_>>();
    features.sort();
    let known = |feature: &String| matches!(feature.as_str(), "sramecc+" | "sramecc-" | "xnack+" | "xnack-");
    let distinct = features.windows(2).all(|pair| pair[0][..4] != pair[1][..4]);
    let ok = good && features.iter().all(known) && distinct;
    ok.then(|| GpuArchitecture::Rocm { processor: processor.to_owned(), features })
}

/// Every architecture in the tables, in order.
pub fn gpu_architectures(device: Device) -> Vec<GpuArchitecture> {
    device.gpu().map(|class| (class.all)()).unwrap_or_default()
}

/// What PTX is made for: the newest architecture without suffix, for PTX with one runs on no later GPU.
fn newest(wanted: &[GpuArchitecture]) -> Option<GpuArchitecture> {
    let numbers = wanted.iter().filter_map(|one| match one {
        GpuArchitecture::Cuda { number, .. } => Some(*number),
        GpuArchitecture::Rocm { .. } => None,
    });
    numbers.max().map(|number| GpuArchitecture::Cuda { number, scope: Scope::Portable })
}

/// The processor that an `EF_AMDGPU_MACH` value stands for.
pub(crate) fn rocm_processor(machine: u32) -> Option<&'static str> {
    ROCM.iter().find(|row| row.machine == machine).map(|row| row.processor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_tables_survives_parsing() {
        for device in Device::GPUS {
            let all = gpu_architectures(device);
            assert!(all.len() > 15);
            for architecture in all {
                assert_eq!(GpuArchitecture::parse(device, &architecture.to_string()), Some(architecture));
            }
        }
        assert_eq!(rocm_processor(0x4c), Some("gfx942"));
    }

    #[test]
    fn suffixes_exist_only_where_the_hardware_has_them() {
        let cuda = |name| GpuArchitecture::parse(Device::Cuda, name);
        assert_eq!(cuda("sm_90a").unwrap().virtual_name(), "compute_90a");
        assert_eq!(cuda("sm_121f").unwrap().base(), "sm_121");
        for bad in
            ["sm_80a", "sm_90f", "sm_9", "sm_", "sm_090", "sm_9x", "compute_80", "80", "sm_90aa", "sm_99999"]
        {
            assert_eq!(cuda(bad), None, "{bad}");
        }
        assert!(cuda("sm_150").is_some(), "newer than the tables");
        let rocm = |name| GpuArchitecture::parse(Device::Rocm, name);
        assert_eq!(rocm("gfx90a:xnack-:sramecc+").unwrap().to_string(), "gfx90a:sramecc+:xnack-");
        for bad in ["gfx", "gfx90a:", "gfx90a:fast", "gfx90a:xnack+:xnack-", "gfx90g", "vega"] {
            assert_eq!(rocm(bad), None, "{bad}");
        }
    }
}
