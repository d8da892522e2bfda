//! Plans and runs the making of device code for many GPU architectures: one action for each, so that they are made in
//! parallel and kept apart in the cache, then one container with all.
//!
//! Checks that every part is for the architecture that it was asked for; knows nothing of what kernels do.

use std::sync::Arc;

use crate::action::{Action, Input, Tool};
use crate::device_code::{Form, bundle, inspect};
use crate::error::Error;
use crate::events::Events;
use crate::executor::Executor;
use crate::find::Launch;
use crate::gpu::{GpuArchitecture, gpu_architectures};
use crate::jobs::Mode;
use crate::probe::Helper;
use crate::resolve::Toolchain;

/// One source of kernels, for several architectures.
#[derive(Debug, Clone)]
pub struct DeviceJob {
    /// For people.
    pub label: String,
    /// The source.
    pub source: Input,
    /// The headers that it may include, by the names it includes them by.
    pub headers: Vec<Input>,
    /// The architectures, such as `sm_90a` or `gfx1100`.
    pub architectures: Vec<String>,
    /// For NVIDIA: PTX for the newest architecture too, so that later GPUs run it.
    pub portable: bool,
    /// Macros, `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// Arguments after all others.
    pub extra: Vec<String>,
    /// Name of the results, without suffix.
    pub output: String,
}

/// What is to be made of a [`DeviceJob`].
#[derive(Debug, Clone)]
pub struct DevicePlan {
    /// For people.
    pub label: String,
    /// One for each architecture, and the portable one.
    pub parts: Vec<DevicePart>,
    output: String,
    /// What packs NVIDIA code, if it is there.
    packer: Option<Tool>,
}

/// One architecture's code.
#[derive(Debug, Clone)]
pub struct DevicePart {
    /// What for.
    pub architecture: GpuArchitecture,
    /// What it becomes.
    pub form: Form,
    /// The compile.
    pub action: Action,
    /// Makes machine code of the compile's PTX.
    assembler: Option<Tool>,
}

/// Device code that was made.
#[derive(Debug, Clone)]
pub struct DeviceImage {
    /// All parts in one: a CUDA fat binary or a HIP bundle. `None` for NVIDIA code where `fatbinary` is not there; the
    /// parts then stand alone.
    pub container: Option<Arc<[u8]>>,
    /// The parts, in the plan's order.
    pub parts: Vec<PartReport>,
}

/// What of a container says what it is for, its end included.
const CODE_FOR: usize = 240;
/// Images start at multiples of so many bytes.
const IMAGE: usize = 64;

impl DeviceImage {
    /// What it runs on, as people read it: `sm_80, sm_90a, PTX for sm_90`.
    pub fn code_for(&self) -> String {
        let name = |part: &PartReport| match part.form {
            Form::Ptx => format!("PTX for {}", part.architecture),
            Form::Cubin | Form::CodeObject => part.architecture.to_string(),
        };
        self.parts.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// The code as a library embeds it: 240 bytes of text that say what it is for, the number of images, a zero, for each image
    /// where it begins and its length, then the images, each with a zero byte behind it. One where there is a container;
    /// else each part, machine code first, for a driver takes what fits its device.
    pub fn packed(&self) -> Vec<u8> {
        let mut images: Vec<&[u8]> = self.container.iter().map(|bytes| &**bytes).collect();
        if images.is_empty() {
            let mut parts: Vec<&PartReport> = self.parts.iter().collect();
            parts.sort_by_key(|part| part.form == Form::Ptx);
            images = parts.into_iter().map(|part| &*part.content).collect();
        }
        let mut text = self.code_for();
        while text.len() >= CODE_FOR {
            text.pop();
        }
        let mut out = text.into_bytes();
        out.resize(CODE_FOR, 0);
        out.extend((images.len() as u64).to_le_bytes());
        out.extend(0u64.to_le_bytes());
        let mut offset = (out.len() + 16 * images.len()).next_multiple_of(IMAGE);
        for image in &images {
            out.extend((offset as u64).to_le_bytes());
            out.extend((image.len() as u64).to_le_bytes());
            offset = (offset + image.len() + 1).next_multiple_of(IMAGE);
        }
        for image in images {
            out.resize(out.len().next_multiple_of(IMAGE), 0);
            out.extend(image);
            out.push(0);
        }
        out
    }
}

/// One part of an image, with what it cost.
#[derive(Debug, Clone)]
pub struct PartReport {
    /// What for.
    pub architecture: GpuArchitecture,
    /// What it is.
    pub form: Form,
    /// The kernels in it, sorted.
    pub kernels: Vec<String>,
    /// Wall time of its tools in milliseconds; of fetching it, when it was cached.
    pub millis: u64,
    /// Whether it was there already.
    pub cached: bool,
    /// Its bytes.
    pub content: Arc<[u8]>,
}

/// An argument with its placeholders filled.
pub(crate) fn filled(word: &str, architecture: &GpuArchitecture) -> String {
    word.replace("{architecture}", &architecture.to_string())
        .replace("{virtual}", &architecture.virtual_name())
}

impl Toolchain {
    /// The GPU architectures in our tables that its compiler makes code for, in the tables' order.
    pub fn architectures(&self) -> Vec<String> {
        let gpu = self.definition.gpu();
        let all = gpu.map(gpu_architectures).unwrap_or_default();
        all.iter().filter(|one| self.compiler.supports(one)).map(ToString::to_string).collect()
    }

    /// Whether a helper of its definition (`ptxas`, `fatbinary`) was found.
    pub fn has_helper(&self, name: &str) -> bool {
        self.compiler.helpers.contains_key(name)
    }

    /// Works from now on as if no helper had been found: NVIDIA code by clang is then PTX only.
    pub fn forget_helpers(&mut self) {
        self.compiler.helpers.clear();
    }

    /// Plans device code.
    ///
    /// # Errors
    /// [`Error::UnknownLevel`] for an architecture that is none or that the compiler does not know.
    pub fn device_code(&self, job: &DeviceJob, mode: &Mode) -> Result<DevicePlan, Error> {
        let unknown = |name: &str| Error::UnknownLevel {
            toolchain: self.definition.name.clone(),
            level: name.to_owned(),
            target: self.target.to_string(),
            known: self.architectures().join(", "),
        };
        let served = self.definition.gpu().and_then(|gpu| Some((gpu, gpu.gpu()?)));
        let (Some((gpu, class)), Some(device)) = (served, &self.definition.device) else {
            return Err(unknown(job.architectures.first().map_or("", String::as_str)));
        };
        let mut wanted = Vec::new();
        for name in &job.architectures {
            let parsed = GpuArchitecture::parse(gpu, name).filter(|one| self.compiler.supports(one));
            let architecture = parsed.ok_or_else(|| unknown(name))?;
            if !wanted.contains(&architecture) {
                wanted.push(architecture);
            }
        }
        let mut parts = Vec::new();
        for architecture in &wanted {
            let assembler = self.assembler(architecture);
            parts.push(match (&device.binary, &device.text, assembler) {
                (Some(binary), _, _) => self.part(job, mode, architecture, class.machine_code, binary),
                (None, Some(text), None) => self.part(job, mode, architecture, Form::Ptx, text),
                (None, Some(text), assembler @ Some(_)) => {
                    let part = self.part(job, mode, architecture, Form::Ptx, text);
                    DevicePart { form: class.machine_code, assembler, ..part }
                }
                (None, None, _) => return Err(unknown(&architecture.to_string())),
            });
        }
        if let (true, Some(text), Some(newest)) = (job.portable, &device.text, (class.portable)(&wanted)) {
            let is_there = |part: &DevicePart| part.form == Form::Ptx && part.architecture == newest;
            if !parts.iter().any(is_there) && self.compiler.supports(&newest) {
                parts.push(self.part(job, mode, &newest, Form::Ptx, text));
            }
        }
        let packer = class.packer.and_then(|name| self.compiler.helpers.get(name)).map(tool_of);
        Ok(DevicePlan { label: job.label.clone(), parts, output: job.output.clone(), packer })
    }

    fn assembler(&self, architecture: &GpuArchitecture) -> Option<Tool> {
        let helper = self.compiler.helpers.get("ptxas")?;
        helper.architectures.iter().any(|name| architecture.is_assembled_as(name)).then(|| tool_of(helper))
    }

    fn part(
        &self,
        job: &DeviceJob,
        mode: &Mode,
        architecture: &GpuArchitecture,
        form: Form,
        selects: &[String],
    ) -> DevicePart {
        let device = self.definition.device.as_ref();
        let mut arguments = device.map(|device| device.compile.clone()).unwrap_or_default();
        let level = device.map(|device| if mode.debug { &device.debug } else { &device.optimize });
        arguments.extend(level.into_iter().flatten().cloned());
        arguments.extend(selects.iter().map(|word| filled(word, architecture)));
        arguments.extend(job.defines.iter().map(|define| format!("-D{define}")));
        arguments.extend(job.extra.iter().cloned());
        arguments.extend(device.into_iter().flat_map(|device| device.last.iter().cloned()));
        let suffix = match form {
            Form::Cubin => "cubin",
            Form::Ptx => "ptx",
            Form::CodeObject => "co",
        };
        let output = format!("{}.{}.{suffix}", job.output, architecture.file_part());
        arguments.extend([job.source.name.clone(), "-o".to_owned(), output.clone()]);
        let launch = self.compiler.launch.clone();
        let mut inputs = vec![job.source.clone()];
        inputs.extend(job.headers.iter().cloned());
        let action = Action {
            label: format!(
                "{} for {architecture}{}",
                job.label,
                if form == Form::Ptx { " (ptx)" } else { "" }
            ),
            tool: Tool { launch, identity: self.compiler.identity.clone() },
            target: self.target.clone(),
            inputs,
            arguments,
            outputs: vec![output],
            host_only: false,
            distributable: true,
        };
        DevicePart { architecture: architecture.clone(), form, action, assembler: None }
    }
}

fn tool_of(helper: &Helper) -> Tool {
    Tool { launch: Launch::of(&helper.program), identity: helper.identity.clone() }
}

impl Executor {
    /// Makes all parts of a plan, in parallel, and packs them.
    ///
    /// # Errors
    /// The first part's that fails; [`Error::WrongDeviceCode`] when a tool made something else than it was asked for.
    pub fn device_code(&self, plan: &DevicePlan, events: &dyn Events) -> Result<DeviceImage, Error> {
        let actions = plan.parts.iter().map(|part| part.action.clone()).collect::<Vec<_>>();
        let made = self.run(&actions, events).into_iter().collect::<Result<Vec<_>, _>>()?;
        let assembled = plan.parts.iter().zip(&made).filter_map(|(part, made)| {
            let tool = part.assembler.clone()?;
            Some(made.as_input("part.ptx").map(|input| assembly(part, tool, input)))
        });
        let input_error = |source| Error::Input { label: plan.label.clone(), source };
        let assembled = assembled.collect::<Result<Vec<_>, _>>().map_err(input_error)?;
        let mut second = self.run(&assembled, events).into_iter();
        let mut parts = Vec::new();
        for (part, first) in plan.parts.iter().zip(&made) {
            let mut report = PartReport {
                architecture: part.architecture.clone(),
                form: part.form,
                kernels: Vec::new(),
                millis: first.millis,
                cached: first.cached,
                content: Arc::from([]),
            };
            let mut file = first.clone();
            if part.assembler.is_some() {
                file = second.next().expect("there is one assembly for each part with an assembler")?;
                report.millis += file.millis;
                report.cached &= file.cached;
            }
            report.content = file.first().read()?.into();
            report.kernels = checked(part, &report.content)?;
            parts.push(report);
        }
        let container = self.pack(plan, &parts, events)?;
        Ok(DeviceImage { container, parts })
    }

    fn pack(
        &self,
        plan: &DevicePlan,
        parts: &[PartReport],
        events: &dyn Events,
    ) -> Result<Option<Arc<[u8]>>, Error> {
        let objects = parts.iter().filter(|part| part.form == Form::CodeObject);
        let objects = objects.map(|part| (&part.architecture, &*part.content)).collect::<Vec<_>>();
        if !objects.is_empty() {
            return Ok(Some(bundle(&objects).into()));
        }
        let Some(tool) = &plan.packer else { return Ok(None) };
        let output = format!("{}.fatbin", plan.output);
        let mut arguments = vec!["-64".to_owned(), format!("--create={output}")];
        let mut inputs = Vec::new();
        for (part, planned) in parts.iter().zip(&plan.parts) {
            let kind = if part.form == Form::Ptx { "ptx" } else { "elf" };
            let sm = part.architecture.to_string().replacen("sm_", "", 1);
            let name = format!("{}.{sm}.{kind}", plan.output);
            arguments.push(format!("--image3=kind={kind},sm={sm},file={name}"));
            inputs.push(Input { name, content: crate::action::Content::Bytes(Arc::clone(&part.content)) });
            debug_assert_eq!(part.architecture, planned.architecture);
        }
        let Some(first) = plan.parts.first() else { return Ok(None) };
        let action = Action {
            label: format!("{}: fat binary", plan.label),
            tool: tool.clone(),
            target: first.action.target.clone(),
            inputs,
            arguments,
            outputs: vec![output],
            host_only: false,
            distributable: false,
        };
        Ok(Some(self.run_one(&action, events)?.first().read()?.into()))
    }
}

fn assembly(part: &DevicePart, tool: Tool, input: Input) -> Action {
    let output = "part.cubin".to_owned();
    let architecture = format!("-arch={}", part.architecture);
    let arguments = ["-O3", &architecture, &input.name, "-o", &output].map(str::to_owned).to_vec();
    Action {
        label: format!("{} (ptxas)", part.action.label.trim_end_matches(" (ptx)")),
        tool,
        target: part.action.target.clone(),
        inputs: vec![input],
        arguments,
        outputs: vec![output],
        host_only: false,
        distributable: false,
    }
}

/// Opens what was made: the kernels in it, if it is what was asked for.
fn checked(part: &DevicePart, content: &[u8]) -> Result<Vec<String>, Error> {
    let wrong = |found: String| Error::WrongDeviceCode {
        label: part.action.label.clone(),
        wanted: format!("{} for {}", part.form, part.architecture),
        found,
    };
    let found = inspect(content).map_err(|error| wrong(format!("something that {error}")))?;
    match found.as_slice() {
        [one] if one.form == part.form && one.architecture == part.architecture.to_string() => {
            Ok(one.kernels.clone())
        }
        [one] => Err(wrong(format!("{} for {}", one.form, one.architecture))),
        many => Err(wrong(format!("{} pieces of code", many.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_class::Device;

    fn part(name: &str, form: Form, content: &[u8]) -> PartReport {
        let architecture = GpuArchitecture::parse(Device::Cuda, name).unwrap();
        let content = content.into();
        PartReport { architecture, form, kernels: Vec::new(), millis: 0, cached: false, content }
    }

    fn images(packed: &[u8]) -> Vec<&[u8]> {
        let number = |at: usize| u64::from_le_bytes(packed[at..at + 8].try_into().unwrap()) as usize;
        let entries = (0..number(CODE_FOR)).map(|k| (number(256 + 16 * k), number(264 + 16 * k)));
        entries.map(|(offset, bytes)| &packed[offset..=offset + bytes]).collect()
    }

    #[test]
    fn parts_without_a_container_are_embedded_one_by_one_with_machine_code_first() {
        let parts = vec![part("sm_90", Form::Ptx, b"text"), part("sm_90a", Form::Cubin, &[7; 100])];
        let packed = DeviceImage { container: None, parts: parts.clone() }.packed();
        assert!(packed.starts_with(b"PTX for sm_90, sm_90a\0"));
        let found = images(&packed);
        assert_eq!(found, [&[&[7; 100][..], b"\0"].concat()[..], b"text\0"]);
        let container: Arc<[u8]> = b"both".as_slice().into();
        let packed = DeviceImage { container: Some(container), parts }.packed();
        assert_eq!(images(&packed), [b"both\0"]);
    }

    #[test]
    fn a_long_list_of_architectures_is_cut() {
        let parts = vec![part("sm_90a", Form::Cubin, b"x"); 80];
        let packed = DeviceImage { container: None, parts }.packed();
        assert_eq!((packed[CODE_FOR - 1], images(&packed).len()), (0, 80));
    }
}
