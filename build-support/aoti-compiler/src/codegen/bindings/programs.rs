//! Prints the module of a model with several programs: a module with inputs and outputs for each, and one `Model` for all.

use super::{Ctx, LINTS, Names, Options, ProgramInterface, docs, names};

/// Names that the model's own functions have, and which no program can have.
pub(crate) const OWN: [&str; 6] = ["info", "load", "load_from", "load_with", "program", "state"];

/// The text of the module. Names of programs are identifiers, and none of the model's own.
pub(super) fn print(programs: &[ProgramInterface], names: Names<'_>, options: &Options) -> String {
    let all: Vec<(&str, Ctx<'_>)> = programs
        .iter()
        .map(|program| (program.name.as_str(), Ctx::new(&program.interface, names, options)))
        .collect();
    let (module, library) = (names::identifier(names.identifier), all[0].1.library());
    let listed: Vec<String> = all.iter().map(|(name, _)| docs::code(name)).collect();
    let modules: String = all.iter().map(|(id, program)| module_of(id, program)).collect();
    format!(
        "\
// Typed interface of a compiled model, written by cargo-aoti; changes are lost at the next build.

/// The compiled model {} with the programs {}.
{LINTS}
pub mod {module} {{
    {library}

{}{modules}\
}}
",
        docs::code(names.identifier),
        listed.join(", "),
        model(&all)
    )
}

/// The model with all its programs.
fn model(programs: &[(&str, Ctx<'_>)]) -> String {
    let fields: String =
        programs.iter().map(|(id, _)| format!("        {id}: ::aoti_runtime::Model,\n")).collect();
    let (first, own) = &programs[0];
    let load = own.load();
    let others: String = programs[1..]
        .iter()
        .map(|(id, _)| format!("            let {id} = {first}.program({id:?})?;\n"))
        .collect();
    let made: Vec<&str> = programs.iter().map(|(id, _)| *id).collect();
    let made = made.join(", ");
    let with_state = programs.iter().find(|(_, program)| program.has_state());
    let state = with_state.map(|(id, program)| program.state(id)).unwrap_or_default();
    let runs: Vec<String> =
        programs.iter().map(|(id, program)| program.run(id, id, &format!("{id}::"))).collect();
    let arms: String =
        programs.iter().map(|(id, _)| format!("                {id:?} => Some(&self.{id}),\n")).collect();
    format!(
        "    \
    /// The model, loaded: its programs, which share weights and states. Threads may share it.
    #[derive(Debug)]
    pub struct Model {{
{fields}    }}

    impl Model {{
{load}        /// Loads the model with weights from elsewhere, laid out as the build wrote them.
        pub fn load_from(weights: ::aoti_runtime::Weights) -> Result<Self, ::aoti_runtime::Error> {{
            Self::load_with(::aoti_runtime::LoadOptions {{ weights, ..Default::default() }})
        }}

        /// Loads the model with full control.
        pub fn load_with(options: ::aoti_runtime::LoadOptions) -> Result<Self, ::aoti_runtime::Error> {{
            let {first} = library_model(options)?;
{others}            Ok(Self {{ {made} }})
        }}

        /// What the first of the programs says about itself; needs no weights.
        pub fn info() -> Result<::aoti_runtime::ModelInfo, ::aoti_runtime::Error> {{
            library_info()
        }}

{state}{}
        /// The program of this name without types, with what it says about itself.
        pub fn program(&self, name: &str) -> Option<&::aoti_runtime::Model> {{
            match name {{
{arms}                _ => None,
            }}
        }}
    }}
",
        runs.join("\n")
    )
}

/// The types of a program, in a module of their own.
fn module_of(id: &str, program: &Ctx<'_>) -> String {
    let doc = program.doc().replace("/// The compiled model ", "/// The program ");
    let text = format!("{doc}pub mod {id} {{\n{}\n{}}}\n", program.inputs(), program.outputs());
    let indented = text.lines().map(|line| match line {
        "" => "\n".to_owned(),
        line => format!("    {line}\n"),
    });
    format!("\n{}", indented.collect::<String>())
}
