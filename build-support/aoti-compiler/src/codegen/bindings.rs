//! Prints the typed Rust module of a model.
//!
//! The module holds declarations only, of types from `aoti-runtime` and of the one function that the library exports:
//! it compiles without the library, in every edition since 2018, and without a warning. How runs work is the
//! runtime's affair.

mod programs;

pub(crate) use programs::OWN;

use super::{
    bundle::{Names, ProgramInterface},
    docs,
    interface::{ElementType, Interface, ValueInterface},
    names::{self, Language, Namer},
};
use crate::dtype::DType;

/// Where the weights of a model lie when the program starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WeightsPlacement {
    /// Inside the library.
    Embedded,
    /// In a content-addressed file beside the executable, or in the folder `aoti` of the build's output.
    Sidecar {
        /// Name of the file.
        file: String,
        /// BLAKE3 digest of its content, hexadecimal.
        digest: String,
    },
    /// Given by the program at run time.
    External,
}

/// How the library gets into the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// As the static library `aoti_<symbol>`. Said in the module and not by the build script, whose word cargo
    /// passes on to only one of a package's library and programs: each that has the module links the library.
    Static,
    /// As the shared library `aoti_<symbol>`.
    Dylib,
    /// By means that the module does not know.
    Elsewhere,
    /// Not at all: there are only bindings, and loading the model is an error that says so.
    Absent,
}

/// A tensor of a samples file: which input or output it is, its sizes, and where its elements begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Place among the inputs or outputs.
    pub index: usize,
    /// Sizes.
    pub sizes: Vec<u64>,
    /// Bytes of the file before its elements.
    pub offset: u64,
}

/// What the module's own test compares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Samples {
    /// The file: with `/`, from the folder of the package, or absolute.
    pub file: String,
    /// Samples of all inputs and of some outputs, or why there are none.
    pub tensors: Result<(Vec<Sample>, Vec<Sample>), String>,
    /// Whether the test needs more than a processor, so that it only runs when it is asked for.
    pub needs_gpu: bool,
}

/// What the module must know besides the interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Where the weights lie.
    pub weights: WeightsPlacement,
    /// How the library is linked.
    pub link: Link,
    /// Digest of the weights where they are inside the library; unknown where no library is made.
    pub weights_digest: Option<String>,
    /// Samples beside the model, which make a test.
    pub samples: Option<Samples>,
}

/// No lint is about generated text.
const LINTS: &str = "#[allow(clippy::all, clippy::nursery, clippy::pedantic, clippy::restriction, dead_code, unreachable_pub)]";

/// The text of the module. It defines `pub mod <identifier>`; the library must export `aoti_<symbol>_api`.
pub fn print(interface: &Interface, names: &Names<'_>, options: &Options) -> String {
    Ctx::new(interface, *names, options).module()
}

/// The same for a model of several programs: their inputs and outputs are in modules of their own, and one `Model` runs them all.
pub fn print_programs(programs: &[ProgramInterface], names: &Names<'_>, options: &Options) -> String {
    programs::print(programs, *names, options)
}

struct Ctx<'a> {
    interface: &'a Interface,
    names: Names<'a>,
    options: &'a Options,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl<'a> Ctx<'a> {
    fn new(interface: &'a Interface, names: Names<'a>, options: &'a Options) -> Self {
        let (inputs, outputs) = (field_names(&interface.inputs), field_names(&interface.outputs));
        Ctx { interface, names, options, inputs, outputs }
    }

    fn module(&self) -> String {
        let (module, doc) = (names::identifier(self.names.identifier), self.doc());
        let (library, model) = (self.library(), self.model());
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let samples = self.samples();
        format!(
            "\
// Typed interface of a compiled model, written by cargo-aoti; changes are lost at the next build.

{doc}\
{LINTS}
pub mod {module} {{
    {library}

{model}
{inputs}
{outputs}\
{samples}\
}}
"
        )
    }

    /// The test on samples. A program that only learns at run time where the weights are loads them itself.
    fn samples(&self) -> String {
        let (Some(samples), true) = (&self.options.samples, self.loads()) else { return String::new() };
        let file = if samples.file.starts_with('/') || samples.file.contains(':') {
            format!("{:?}", samples.file)
        } else {
            format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?})", format!("/{}", samples.file))
        };
        let check = match &samples.tensors {
            Ok((inputs, outputs)) => format!(
                "let model = super::Model::load().expect(\"the model loads\");
            let checked = ::aoti_runtime::__samples::check(
                model.untyped(),
                {file},
                &[{}],
                &[{}],
            );
            if let Err(message) = checked {{
                panic!(\"samples: {{}}\", message);
            }}",
                sample_lines(inputs),
                sample_lines(outputs)
            ),
            Err(message) => format!("panic!(\"samples: {{}}\", {message:?});"),
        };
        let ignore = if samples.needs_gpu {
            "\n        #[cfg_attr(test, ignore = \"the model is built for GPUs alone\")]"
        } else {
            ""
        };
        format!(
            "
    #[cfg(test)]
    mod samples {{
        /// The model gives the outputs that are stored beside it.
        #[test]{ignore}
        fn outputs_match() {{
            {check}
        }}
    }}
"
        )
    }

    fn doc(&self) -> String {
        let interface = self.interface;
        let mut lines = vec![format!("The compiled model {}.", docs::code(&interface.name))];
        let state_names: Vec<String> = interface.states.iter().map(|state| state.name.clone()).collect();
        for table in [
            docs::table("input", &interface.inputs, &self.inputs),
            docs::table("output", &interface.outputs, &self.outputs),
            docs::table("state", &interface.states, &state_names),
        ] {
            if !table.is_empty() {
                lines.push(String::new());
                lines.extend(table);
            }
        }
        let line = |line: &String| if line.is_empty() { "///\n".to_owned() } else { format!("/// {line}\n") };
        lines.iter().map(line).collect()
    }

    /// How the module reaches the library. What is unsafe about that stands in a macro of the runtime's, so that users
    /// may forbid unsafe code in crates that include the module.
    fn library(&self) -> String {
        let name = format!("aoti_{}", self.names.symbol);
        let weights = self.options.weights_digest.iter().filter(|_| self.interface.weights_bytes > 0);
        let parts: Vec<&str> = [self.names.library].into_iter().chain(weights.map(String::as_str)).collect();
        let digests = parts.join("+");
        let link = match self.options.link {
            // Rust's own start files for musl leave out the compiler's library, which knows the processor.
            Link::Static => format!(
                ",
        #[link(name = {name:?}, kind = \"static\")],
        #[cfg_attr(target_env = \"musl\", link(name = \"gcc\"))]"
            ),
            Link::Dylib => format!(",\n        #[link(name = {name:?}, kind = \"dylib\")]"),
            Link::Elsewhere => String::new(),
            Link::Absent => {
                return format!("::aoti_runtime::__absent_library! {{ {:?} }}", self.interface.name);
            }
        };
        format!("::aoti_runtime::__library! {{\n        {}, {digests:?}{link}\n    }}", self.names.symbol)
    }

    fn model(&self) -> String {
        let (load, state, run) = (self.load(), self.state("inner"), self.run("run", "inner", ""));
        format!(
            "    \
    /// The model, loaded. Threads may share it.
    #[derive(Debug)]
    pub struct Model {{
        inner: ::aoti_runtime::Model,
    }}

    impl Model {{
{load}        /// Loads the model with weights from elsewhere, laid out as the build wrote them.
        pub fn load_from(weights: ::aoti_runtime::Weights) -> Result<Self, ::aoti_runtime::Error> {{
            Self::load_with(::aoti_runtime::LoadOptions {{ weights, ..Default::default() }})
        }}

        /// Loads the model with full control.
        pub fn load_with(options: ::aoti_runtime::LoadOptions) -> Result<Self, ::aoti_runtime::Error> {{
            Ok(Self {{ inner: library_model(options)? }})
        }}

        /// What the model says about itself; needs no weights.
        pub fn info() -> Result<::aoti_runtime::ModelInfo, ::aoti_runtime::Error> {{
            library_info()
        }}

{state}{run}
        /// The same model without types, with what it says about itself.
        pub fn untyped(&self) -> &::aoti_runtime::Model {{
            &self.inner
        }}
    }}
"
        )
    }

    /// Whether the module has a function `load`, and a library that it could load.
    fn loads(&self) -> bool {
        let has_weights = self.interface.weights_bytes > 0;
        let is_given = has_weights && self.options.weights == WeightsPlacement::External;
        !is_given && self.options.link != Link::Absent
    }

    fn load(&self) -> String {
        const EMBEDDED: &str = "embedded()";
        let (doc, weights) = match &self.options.weights {
            _ if self.interface.weights_bytes == 0 => {
                (", which has no weights".to_owned(), EMBEDDED.to_owned())
            }
            WeightsPlacement::Embedded => {
                (" with the weights inside the program".to_owned(), EMBEDDED.to_owned())
            }
            WeightsPlacement::Sidecar { file, digest } => (
                format!(
                    " with the weights in {}, looked for beside\n        /// the executable, then where the build put it",
                    docs::code(file)
                ),
                format!(
                    "sidecar(
                {file:?},
                {digest:?},
                &[concat!(env!(\"OUT_DIR\"), \"/aoti\")],
            )?"
                ),
            ),
            WeightsPlacement::External => return String::new(),
        };
        format!(
            "        \
        /// Loads the model{doc}.
        pub fn load() -> Result<Self, ::aoti_runtime::Error> {{
            Self::load_from(::aoti_runtime::Weights::{weights})
        }}

"
        )
    }

    fn has_state(&self) -> bool {
        self.interface.state_bytes > 0
    }

    /// The function that makes a state, of the model in this field.
    fn state(&self, field: &str) -> String {
        if !self.has_state() {
            return String::new();
        }
        format!(
            "        \
        /// A new state with the values that the program starts from. Runs that belong together share one.
        pub fn state(&self) -> Result<::aoti_runtime::State, ::aoti_runtime::Error> {{
            self.{field}.state()
        }}

"
        )
    }

    /// The two functions that run a program, called after it, where it is a field of the model and has its types at this path.
    fn run(&self, method: &str, field: &str, path: &str) -> String {
        let inputs_type = format!("{path}{}", self.inputs_type());
        let what =
            if path.is_empty() { "model".to_owned() } else { format!("program {}", docs::code(method)) };
        let inputs_name = if self.inputs.is_empty() { "_inputs" } else { "inputs" };
        let outputs_name = if self.outputs.is_empty() { "_outputs" } else { "outputs" };
        let outputs_made = if self.outputs.is_empty() {
            format!("let outputs = {path}Outputs {{}};")
        } else {
            format!("let mut outputs = {path}Outputs::default();")
        };
        let views = lines(&self.inputs, |name| format!("inputs.{name}.erase()"));
        let targets = lines(&self.outputs, |name| format!("outputs.{name}.as_dyn_mut()"));
        let (state_parameter, state) = if self.has_state() {
            ("\n            state: &mut ::aoti_runtime::State,", "Some(state)")
        } else {
            ("", "None")
        };
        format!(
            "        \
        /// Runs the {what} on the program's shared thread pool.
        pub fn {method}(
            &self,
            {inputs_name}: &{inputs_type},{state_parameter}
        ) -> Result<{path}Outputs, ::aoti_runtime::Error> {{
            {outputs_made}
            self.{field}.run_shared(&[{views}], &mut [{targets}], {state})?;
            Ok(outputs)
        }}

        /// Runs the {what} into outputs, with a workspace and on threads that the caller keeps. Allocates nothing
        /// when outputs and workspace have served such sizes before.
        pub fn {method}_with(
            &self,
            {inputs_name}: &{inputs_type},
            {outputs_name}: &mut {path}Outputs,{state_parameter}
            workspace: &mut ::aoti_runtime::Workspace,
            executor: &dyn ::aoti_runtime::Executor,
        ) -> Result<(), ::aoti_runtime::Error> {{
            self.{field}.run(&[{views}], &mut [{targets}], {state}, workspace, executor)
        }}
"
        )
    }

    fn inputs_type(&self) -> &'static str {
        // Without fields there is nothing that a lifetime could belong to.
        if self.inputs.is_empty() { "Inputs" } else { "Inputs<'_>" }
    }

    fn inputs(&self) -> String {
        let fields = fields(&self.interface.inputs, &self.inputs, |element| {
            format!("::aoti_runtime::TensorView<'a, {element}>")
        });
        let copy = copy(&self.inputs);
        let lifetime = if self.inputs.is_empty() { "" } else { "<'a>" };
        format!(
            "    \
    /// What a run reads.
    #[derive(Clone, Debug{copy})]
    pub struct Inputs{lifetime} {{{fields}}}
"
        )
    }

    fn outputs(&self) -> String {
        let fields = fields(&self.interface.outputs, &self.outputs, |element| {
            format!("::aoti_runtime::Tensor<{element}>")
        });
        let copy = copy(&self.outputs);
        format!(
            "    \
    /// Outputs of a run, resized as needed.
    #[derive(Clone, Debug, Default{copy})]
    pub struct Outputs {{{fields}}}
"
        )
    }
}

/// The fields of a structure, up to its closing brace; `ty` says what holds elements of a type.
fn fields(values: &[ValueInterface], names: &[String], ty: fn(String) -> String) -> String {
    if values.is_empty() {
        return String::new();
    }
    let field = |(value, name): (&ValueInterface, &String)| {
        let bounds = docs::bounds(value);
        let with = if bounds.is_empty() { String::new() } else { format!("; {bounds}") };
        let (named, sizes) = (docs::named(name, &value.name), docs::sizes(value));
        let (code, ty) = (docs::code(&value.element.name()), ty(element(value.element)));
        format!("        /// {named}: {code} of sizes {sizes}{with}.\n        pub {name}: {ty},\n")
    };
    let fields: String = values.iter().zip(names).map(field).collect();
    format!("\n{fields}    ")
}

/// The elements of a slice, each on a line of its own if there are several.
fn lines(names: &[String], element: fn(&String) -> String) -> String {
    if let [name] = names {
        return element(name);
    }
    let each: String = names.iter().map(|name| format!("\n                {},", element(name))).collect();
    if each.is_empty() { each } else { format!("{each}\n            ") }
}

fn sample_lines(samples: &[Sample]) -> String {
    let line = |sample: &Sample| {
        let Sample { index, sizes, offset } = sample;
        format!(
            "\n                    ::aoti_runtime::__samples::Sample {{ index: {index}, sizes: &{sizes:?}, offset: {offset} }},"
        )
    };
    let lines: String = samples.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("{lines}\n                ") }
}

/// The names of the fields that stand for these values in `Inputs` or `Outputs`.
pub fn field_names(values: &[ValueInterface]) -> Vec<String> {
    let mut namer = Namer::new(Language::Rust);
    values.iter().map(|value| namer.name(&value.name)).collect()
}

/// What to derive besides: users may be told of types that could be `Copy` and are not.
fn copy(fields: &[String]) -> &'static str {
    if fields.is_empty() { ", Copy" } else { "" }
}

fn element(element: ElementType) -> String {
    match element {
        ElementType::Number(dtype) => number(dtype),
        ElementType::Complex(part) => format!("::aoti_runtime::Complex<{}>", number(part)),
    }
}

fn number(dtype: DType) -> String {
    let name = dtype.name();
    match dtype {
        DType::F16 | DType::Bf16 | DType::F8(_) => format!("::aoti_runtime::{name}"),
        // Plain names: nothing of the user's is in scope inside the module.
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F32
        | DType::F64 => name.to_owned(),
    }
}
