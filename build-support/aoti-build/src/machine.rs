//! The class of this machine in records of measurements: everything that the best choice for a kernel depends on, and
//! nothing that differs between two machines of the same kind.

use std::path::Path;

/// What is known of this machine's processor.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Machine {
    /// Who made it and which it is, such as `GenuineIntel-6-143`.
    pub model: String,
    /// Processors that programs may run on.
    pub processors: usize,
    /// Caches of the first processor: level, kibibytes. Those of instructions are not among them.
    pub caches: Vec<(u32, u64)>,
    /// Whether it multiplies tiles of matrices, where the system says what it can do.
    pub has_units: Option<bool>,
}

impl Machine {
    /// Looks at this machine.
    pub fn here() -> Machine {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Machine {
            model: model(&text),
            processors,
            caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
            has_units: has_units(&text),
        }
    }

    /// The class of this machine's GPU: its architecture and, where the driver tells, its name.
    pub fn of_gpu(architecture: &str) -> String {
        let folders = std::fs::read_dir("/proc/driver/nvidia/gpus").into_iter().flatten().flatten();
        let texts =
            folders.filter_map(|folder| std::fs::read_to_string(folder.path().join("information")).ok());
        let mut names = texts.filter_map(|text| {
            text.lines().find_map(|line| line.strip_prefix("Model:").map(str::trim).map(str::to_owned))
        });
        let architecture = plain(architecture);
        names.next().map_or_else(|| architecture.clone(), |name| format!("{architecture}.{}", plain(&name)))
    }

    /// The class for runs of code of this level: `x86_64.x86-64-v4.GenuineIntel-6-143.48k.2048k`.
    pub fn class(&self, architecture: &str, level: &str) -> String {
        let mut parts = vec![architecture.to_owned(), level.to_owned(), self.model.clone()];
        // Larger caches are shared, and differ between machines of one kind.
        parts.extend(self.caches.iter().filter(|(level, _)| *level <= 2).map(|(_, size)| format!("{size}k")));
        parts.iter().filter(|part| !part.is_empty()).map(|part| plain(part)).collect::<Vec<_>>().join(".")
    }
}

/// Letters, digits and hyphens; the rest would mean something where classes are written.
pub(crate) fn plain(text: &str) -> String {
    let kept =
        text.trim().chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' });
    kept.collect()
}

/// Of the first processor that `/proc/cpuinfo` tells of.
fn model(text: &str) -> String {
    let field = |name: &str| {
        let line = text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let x86 = ["vendor_id", "cpu family", "model"];
    let arm = ["CPU implementer", "CPU part"];
    let of = |names: &[&str]| names.iter().map(|name| field(name)).collect::<Option<Vec<_>>>();
    of(&x86).or_else(|| of(&arm)).unwrap_or_default().join("-")
}

/// Matrix units are those that `matrix_units.h` knows.
fn has_units(text: &str) -> Option<bool> {
    let line = text.lines().find(|line| ["flags", "Features"].iter().any(|name| line.starts_with(name)))?;
    Some(line.split_whitespace().any(|word| word == "amx_tile"))
}

fn caches(folder: &Path) -> Vec<(u32, u64)> {
    let cache = |index: usize| {
        let read = |name: &str| std::fs::read_to_string(folder.join(format!("index{index}")).join(name)).ok();
        let is_instructions = read("type")?.trim() == "Instruction";
        let (level, size) = (read("level")?.trim().parse().ok()?, read("size")?);
        let size = size.trim().strip_suffix('K')?.parse().ok()?;
        Some((is_instructions, (level, size)))
    };
    let found = (0..8).map_while(cache);
    found.filter(|(is_instructions, _)| !is_instructions).map(|(_, cache)| cache).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon\n\n\
        processor\t: 1\nvendor_id\t: Other\n";

    #[test]
    fn a_class_has_what_choices_depend_on() {
        let machine = Machine {
            model: model(X86),
            processors: 2,
            caches: vec![(1, 48), (2, 2048), (3, 99)],
            has_units: None,
        };
        assert_eq!(machine.class("x86_64", "x86-64-v4"), "x86_64.x86-64-v4.GenuineIntel-6-143.48k.2048k");
        let other = Machine { processors: 64, caches: vec![(1, 48), (2, 2048), (3, 1)], ..machine.clone() };
        assert_eq!(machine.class("x86_64", "x86-64-v4"), other.class("x86_64", "x86-64-v4"));
        assert_eq!(model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"), "0x41-0xd0c");
        assert_eq!(Machine::default().class("x86_64", "a b\"c"), "x86_64.a-b-c");
        assert_eq!(model("nothing"), "");
        let units = |text: &str| has_units(text);
        assert_eq!(units("flags\t\t: fpu avx512f amx_tile amx_bf16\n"), Some(true));
        assert_eq!((units("Features\t: fp asimd\n"), units("nothing")), (Some(false), None));
    }
}
