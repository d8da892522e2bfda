//! Opens device code and says what it is for: PTX, cubins, AMD code objects, and the containers of both vendors.
//!
//! Believes the bytes, not the file's name or what a compiler was asked for. Input may be damaged: errors, never panics.
//! Formats: LLVM's `ELF.h` and "Clang Offload Bundler"; the fat binary's layout as `fatbinary` writes it.

use std::fmt;

use object::read::elf::{ElfFile64, FileHeader};
use object::{Object, ObjectSection, ObjectSymbol};

use crate::device_class::Device;
use crate::gpu::{GpuArchitecture, rocm_processor};

/// What kind of device code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// NVIDIA machine code.
    Cubin,
    /// NVIDIA portable assembly, which the driver compiles.
    Ptx,
    /// AMD machine code.
    CodeObject,
}

impl Form {
    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Form::Cubin => "cubin",
            Form::Ptx => "ptx",
            Form::CodeObject => "code object",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One piece of device code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCode {
    /// What kind.
    pub form: Form,
    /// What it is for: `sm_90a`, `gfx90a:xnack-`. In compressed parts of fat binaries without suffix.
    pub architecture: String,
    /// Its size in bytes, as stored.
    pub bytes: u64,
    /// Names of the kernels in it, sorted; empty for compressed code.
    pub kernels: Vec<String>,
}

/// Why bytes are not device code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCodeError(String);

impl fmt::Display for DeviceCodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceCodeError(inner) = self;
        write!(f, "cannot be read as device code: {inner}")
    }
}

impl std::error::Error for DeviceCodeError {}

const FAT_BINARY: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
const BUNDLE: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
const EM_CUDA: u16 = 190;
const EM_AMDGPU: u16 = 224;
/// Members of a bundle start at pages, so that a loader can map them.
const PAGE: usize = 4096;

/// Every piece of device code in a file, in its order.
///
/// # Errors
/// [`DeviceCodeError`] for anything that is not whole.
pub fn inspect(bytes: &[u8]) -> Result<Vec<DeviceCode>, DeviceCodeError> {
    if bytes.starts_with(&FAT_BINARY) {
        fat_binary(bytes)
    } else if bytes.starts_with(BUNDLE) {
        offload_bundle(bytes)
    } else if bytes.starts_with(b"\x7fELF") {
        Ok(vec![machine_code(bytes)?])
    } else {
        Ok(vec![ptx(bytes)?])
    }
}

/// Packs AMD code objects as HIP loads them, each for its architecture, pages apart.
pub fn bundle(objects: &[(&GpuArchitecture, &[u8])]) -> Vec<u8> {
    let mut names = vec!["host-x86_64-unknown-linux--".to_owned()];
    names.extend(objects.iter().map(|(architecture, _)| format!("hipv4-amdgcn-amd-amdhsa--{architecture}")));
    let contents = std::iter::once(&[][..]).chain(objects.iter().map(|(_, bytes)| *bytes));
    let header = BUNDLE.len() + 8 + names.iter().map(|name| 24 + name.len()).sum::<usize>();
    let mut out = BUNDLE.to_vec();
    out.extend((names.len() as u64).to_le_bytes());
    let mut offset = header.next_multiple_of(PAGE);
    for (name, bytes) in names.iter().zip(contents.clone()) {
        for number in [offset, bytes.len(), name.len()] {
            out.extend((number as u64).to_le_bytes());
        }
        out.extend(name.as_bytes());
        offset = (offset + bytes.len()).next_multiple_of(PAGE);
    }
    for bytes in contents.filter(|bytes| !bytes.is_empty()) {
        out.resize(out.len().next_multiple_of(PAGE), 0);
        out.extend(bytes);
    }
    out
}

fn wrong(why: impl Into<String>) -> DeviceCodeError {
    DeviceCodeError(why.into())
}

/// The bytes of a part, if the whole part is there.
fn part(bytes: &[u8], offset: u64, length: u64) -> Result<&[u8], DeviceCodeError> {
    let end = offset.checked_add(length).ok_or_else(|| wrong("a length overflows"))?;
    let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
    range.and_then(|(from, to)| bytes.get(from..to)).ok_or_else(|| wrong("it is cut off"))
}

fn number(bytes: &[u8], offset: u64, length: u64) -> Result<u64, DeviceCodeError> {
    let mut wide = [0; 8];
    let found = part(bytes, offset, length)?;
    wide[..found.len()].copy_from_slice(found);
    Ok(u64::from_le_bytes(wide))
}

fn fat_binary(bytes: &[u8]) -> Result<Vec<DeviceCode>, DeviceCodeError> {
    let header = number(bytes, 6, 2)?;
    let body = part(bytes, header, number(bytes, 8, 8)?)?;
    let mut found = Vec::new();
    let mut at = 0;
    while at < body.len() as u64 {
        let (kind, header, length) =
            (number(body, at, 2)?, number(body, at + 4, 4)?, number(body, at + 8, 8)?);
        let (compressed, architecture) = (number(body, at + 16, 4)?, number(body, at + 28, 4)?);
        let start = at.checked_add(header).ok_or_else(|| wrong("a length overflows"))?;
        let content = part(body, start, length)?;
        let form = match kind {
            1 => Form::Ptx,
            2 => Form::Cubin,
            other => return Err(wrong(format!("a part is of the unknown kind {other}"))),
        };
        let opened = if compressed == 0 { inspect_part(form, content).ok() } else { None };
        found.push(opened.unwrap_or(DeviceCode {
            form,
            architecture: format!("sm_{architecture}"),
            bytes: length,
            kernels: Vec::new(),
        }));
        // A header is never empty, so this ends.
        at = start.max(at + 1) + length;
    }
    if found.is_empty() { Err(wrong("it is an empty fat binary")) } else { Ok(found) }
}

fn inspect_part(form: Form, bytes: &[u8]) -> Result<DeviceCode, DeviceCodeError> {
    match form {
        Form::Ptx => ptx(bytes),
        Form::Cubin | Form::CodeObject => machine_code(bytes),
    }
}

fn offload_bundle(bytes: &[u8]) -> Result<Vec<DeviceCode>, DeviceCodeError> {
    let count = number(bytes, 24, 8)?;
    let mut at = 32;
    let mut found = Vec::new();
    for _ in 0..count {
        let (offset, length, name) =
            (number(bytes, at, 8)?, number(bytes, at + 8, 8)?, number(bytes, at + 16, 8)?);
        let text = String::from_utf8_lossy(part(bytes, at + 24, name)?).into_owned();
        at = at.checked_add(24 + name).ok_or_else(|| wrong("a length overflows"))?;
        let content = part(bytes, offset, length)?;
        if text.starts_with("host-") {
            continue;
        }
        let code = machine_code(content)?;
        let said = text.rsplit_once("--").map_or("", |(_, name)| name);
        if said != code.architecture {
            return Err(wrong(format!("a member called `{said}` is for `{}`", code.architecture)));
        }
        found.push(code);
    }
    if found.is_empty() { Err(wrong("it is an empty bundle")) } else { Ok(found) }
}

fn machine_code(bytes: &[u8]) -> Result<DeviceCode, DeviceCodeError> {
    let file: ElfFile64<'_> = ElfFile64::parse(bytes).map_err(|error| wrong(error.to_string()))?;
    let header = file.elf_header();
    let (flags, machine) = (header.e_flags(file.endian()), header.e_machine(file.endian()));
    let abi_version = header.e_ident().abi_version;
    let mut kernels = file.symbols().chain(file.dynamic_symbols()).filter_map(|symbol| {
        let name = symbol.name().ok().filter(|_| symbol.is_definition())?;
        match machine {
            EM_AMDGPU => name.strip_suffix(".kd").map(str::to_owned),
            _ => (symbol.kind() == object::SymbolKind::Text && symbol.is_global()).then(|| name.to_owned()),
        }
    });
    let kernels = kernels.by_ref().collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    let length = bytes.len() as u64;
    match machine {
        EM_CUDA => {
            let architecture = cuda_architecture(&file, flags, abi_version);
            Ok(DeviceCode { form: Form::Cubin, architecture, bytes: length, kernels })
        }
        EM_AMDGPU => {
            let architecture = rocm_architecture(flags)?;
            Ok(DeviceCode { form: Form::CodeObject, architecture, bytes: length, kernels })
        }
        other => Err(wrong(format!("it is for the machine {other}, not for a GPU"))),
    }
}

/// The number stands in the flags (where, changed with the eighth version); the suffix in the assembler's note.
fn cuda_architecture(file: &ElfFile64<'_>, flags: u32, abi_version: u8) -> String {
    let number = if abi_version >= 8 { (flags >> 8) & 0xff } else { flags & 0xff };
    let plain = format!("sm_{number}");
    let note = file.section_by_name(".note.nv.tkinfo").and_then(|section| section.data().ok());
    let note = String::from_utf8_lossy(note.unwrap_or_default()).into_owned();
    let named = note.split_once("-arch ").map(|(_, rest)| rest.trim_start());
    let named =
        named.map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or(""));
    match named {
        Some(name) if name.strip_prefix(&plain).is_some_and(|suffix| ["", "a", "f"].contains(&suffix)) => {
            name.to_owned()
        }
        _ if abi_version < 8 && flags & 0x800 != 0 => format!("{plain}a"),
        _ => plain,
    }
}

fn rocm_architecture(flags: u32) -> Result<String, DeviceCodeError> {
    let machine = flags & 0xff;
    let processor =
        rocm_processor(machine).ok_or_else(|| wrong(format!("processor {machine:#x} is unknown")))?;
    let setting = |shift: u32| match (flags >> shift) & 3 {
        2 => "-",
        3 => "+",
        _ => "",
    };
    let mut name = processor.to_owned();
    for (feature, sign) in [("sramecc", setting(10)), ("xnack", setting(8))] {
        if !sign.is_empty() {
            name.push_str(&format!(":{feature}{sign}"));
        }
    }
    Ok(name)
}

fn ptx(bytes: &[u8]) -> Result<DeviceCode, DeviceCodeError> {
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is in no known format"))?;
    let text = text.trim_end_matches('\0');
    let target = text.lines().find_map(|line| line.trim().strip_prefix(".target "));
    let target = target.ok_or_else(|| wrong("it has no line `.target`"))?;
    let architecture = target.split([',', ' ']).next().unwrap_or_default().to_owned();
    if GpuArchitecture::parse(Device::Cuda, &architecture).is_none() {
        return Err(wrong(format!("its target is `{architecture}`")));
    }
    let name = |line: &str| {
        let (_, rest) = line.split_once(".entry ")?;
        Some(rest.split(['(', ' ']).next()?.to_owned())
    };
    let mut kernels = text.lines().filter_map(name).collect::<Vec<_>>();
    kernels.sort();
    kernels.dedup();
    Ok(DeviceCode { form: Form::Ptx, architecture, bytes: bytes.len() as u64, kernels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_tells_its_target_and_kernels() {
        let text = "//\n.version 8.0\n.target sm_90a, debug\n.address_size 64\n.visible .entry add(\n.visible .entry sum(\n";
        let found = inspect(text.as_bytes()).unwrap();
        assert_eq!((found[0].form, found[0].architecture.as_str()), (Form::Ptx, "sm_90a"));
        assert_eq!(found[0].kernels, ["add", "sum"]);
    }

    #[test]
    fn damaged_files_are_errors() {
        let architecture = GpuArchitecture::parse(Device::Rocm, "gfx90a").unwrap();
        let packed = bundle(&[(&architecture, b"\x7fELF no object")]);
        assert!(inspect(&packed).is_err());
        let mut fat = [&FAT_BINARY[..], &[1, 0, 16, 0], &64u64.to_le_bytes()].concat();
        assert!(inspect(&fat).is_err());
        fat.extend([2u8; 64]);
        assert!(inspect(&fat).is_err());
        for bytes in [&b""[..], b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b".target x86\n", &[0xff; 90]] {
            assert!(inspect(bytes).is_err(), "{bytes:?}");
        }
        for cut in 0..packed.len().min(200) {
            assert!(inspect(&packed[..cut]).is_err());
        }
    }
}
