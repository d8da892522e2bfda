//! Prints the typed C header of a model: its function, the positions of its inputs and outputs, and a function for
//! each input and output that makes its descriptor from a pointer of the right type.
//!
//! Valid in C11 and in C++17 without a warning; builds on `aoti/abi.h` and repeats nothing of it.

use super::{
    bundle::{Names, ProgramInterface},
    docs, foreign,
    interface::{ElementType, Interface, ValueInterface},
    names::{self, Language, Namer},
};
use crate::dtype::DType;
use std::fmt::Write;

/// The text of the header.
pub fn print(interface: &Interface, names: &Names<'_>) -> String {
    let part = Part::new(interface, names::identifier(names.identifier));
    print_parts(&docs::code(&interface.name), &[part], names, "")
}

/// The same for a model of several programs: positions and descriptors of each begin with its name.
pub fn print_programs(programs: &[ProgramInterface], names: &Names<'_>) -> String {
    let identifier = names::identifier(names.identifier);
    let part =
        |program: &ProgramInterface| (program.interface.clone(), format!("{identifier}_{}", program.name));
    let parts: Vec<(Interface, String)> = programs.iter().map(part).collect();
    let parts: Vec<Part<'_>> =
        parts.iter().map(|(interface, prefix)| Part::new(interface, prefix.clone())).collect();
    let mut positions = String::from("\n");
    comment(&mut positions, "Positions of the programs in the table's `programs`.");
    positions.push_str("enum {\n");
    for (index, program) in programs.iter().enumerate() {
        let name = format!("{identifier}_program_{}", program.name).to_ascii_uppercase();
        positions.push_str(&format!("  {name} = {index},\n"));
    }
    positions.push_str("};\n");
    print_parts(&docs::code(names.identifier), &parts, names, &positions)
}

/// What the header has of a program.
struct Part<'a> {
    /// What its names begin with.
    prefix: String,
    interface: &'a Interface,
    groups: [Group<'a>; 3],
}

impl<'a> Part<'a> {
    fn new(interface: &'a Interface, prefix: String) -> Part<'a> {
        let groups = [
            Group::new("input", &interface.inputs, Access::Read),
            Group::new("output", &interface.outputs, Access::Write),
            Group::new("state", &interface.states, Access::None),
        ];
        Part { prefix, interface, groups }
    }
}

fn print_parts(model: &str, parts: &[Part<'_>], names: &Names<'_>, programs: &str) -> String {
    let (identifier, symbol) = (names::identifier(names.identifier), names.symbol);
    let mut out = String::new();
    comment(&mut out, &format!("C interface of the compiled model {model}, written by cargo-aoti."));
    for part in parts {
        if parts.len() > 1 {
            comment(&mut out, "");
            comment(&mut out, &format!("The program {}:", docs::code(&part.interface.name)));
        }
        for group in &part.groups {
            let table = docs::table(group.kind, group.values, &group.names);
            if !table.is_empty() {
                comment(&mut out, "");
                table.iter().for_each(|line| comment(&mut out, line));
            }
        }
    }
    out.push_str("#pragma once\n\n#include <aoti/abi.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    comment(&mut out, "The model's function table: lives as long as the library and needs no freeing.");
    out.push_str(&format!("const AotiApi *aoti_{symbol}_api(void);\n"));
    if symbol != identifier {
        out.push('\n');
        comment(&mut out, "The same by a name that does not change with the package's version.");
        out.push_str(&format!(
            "static inline const AotiApi *aoti_{identifier}_api(void) {{\n  return aoti_{symbol}_api();\n}}\n"
        ));
    }
    out.push_str(programs);
    for part in parts {
        part.groups.iter().for_each(|group| group.positions(&part.prefix, &mut out));
        part.groups.iter().for_each(|group| group.descriptors(&part.prefix, &mut out));
    }
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n");
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    /// Not passed one by one.
    None,
}

/// The inputs, the outputs or the states.
struct Group<'a> {
    kind: &'static str,
    values: &'a [ValueInterface],
    names: Vec<String>,
    access: Access,
}

impl<'a> Group<'a> {
    fn new(kind: &'static str, values: &'a [ValueInterface], access: Access) -> Self {
        // Lower snake case, as for Rust, so that names differ in capitals too; the prefix keeps them off C's words.
        let mut namer = Namer::new(Language::Rust);
        namer.reserve("count");
        let names = values.iter().map(|value| namer.name(&value.name)).collect();
        Group { kind, values, names, access }
    }

    fn positions(&self, identifier: &str, out: &mut String) {
        if self.values.is_empty() && self.access == Access::None {
            return;
        }
        let prefix = format!("{identifier}_{}", self.kind).to_ascii_uppercase();
        out.push('\n');
        comment(out, &format!("Positions of the {}s.", self.kind));
        out.push_str("enum {\n");
        for (index, name) in self.names.iter().enumerate() {
            writeln!(out, "  {prefix}_{} = {index},", name.to_ascii_uppercase())
                .expect("a string takes all text");
        }
        writeln!(out, "  {prefix}_COUNT = {}\n}};", self.names.len()).expect("a string takes all text");
    }

    fn descriptors(&self, identifier: &str, out: &mut String) {
        let constant = match self.access {
            Access::Read => "const ",
            Access::Write => "",
            Access::None => return,
        };
        for (value, name) in self.values.iter().zip(&self.names) {
            let (function, element) =
                (format!("{identifier}_{}_{name}", self.kind), element(value.element.part()));
            let (rank, dtype) = (value.dims.len(), dtype(value.element));
            let what = format!(
                "{} {}: {}, row-major{}",
                self.kind,
                docs::named(name, &value.name),
                docs::sizes(value),
                match value.element {
                    ElementType::Number(_) => "",
                    ElementType::Complex(_) => ", each element its real and its imaginary part",
                }
            );
            out.push('\n');
            comment(out, &format!("Describes {what}."));
            out.push_str(&format!(
                "static inline AotiTensor {function}({constant}{element} *data, const int64_t *sizes) {{\n  \
                 AotiTensor tensor = {{(void *)data, sizes, 0, {rank}, {dtype}, {{AOTI_CPU, 0}}}};\n  return tensor;\n}}\n"
            ));
        }
    }
}

fn comment(out: &mut String, line: &str) {
    out.push_str(&foreign::comment(line));
}

/// The C type of an element. Narrow types have none that every compiler knows, so their bits are taken.
fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 | DType::F8(_) => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
        DType::U16 | DType::F16 | DType::Bf16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        DType::F32 => "float",
        DType::F64 => "double",
    }
}

fn dtype(element: ElementType) -> String {
    format!("AOTI_{}", element.name().to_uppercase())
}
