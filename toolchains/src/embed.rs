//! Writes the assembly that puts a file into an object, so that no compiler ever reads weights as text.

use crate::target::ObjectFormat;

/// What assembly of an object format begins constant data of other objects of the library with, and ends it.
struct Directives {
    section: String,
    /// In front of the label.
    visible: String,
    /// Behind the data.
    size: String,
}

fn directives(format: ObjectFormat, symbol: &str) -> Directives {
    let section = match format {
        ObjectFormat::Elf => format!(".section .rodata.{symbol}, \"a\", %progbits"),
        ObjectFormat::Coff => format!(".section .rdata${symbol}, \"dr\""),
        ObjectFormat::MachO => ".section __TEXT,__const".to_owned(),
        ObjectFormat::Wasm => format!(".section .rodata.{symbol},\"\",@"),
    };
    let name = format!("{}{symbol}", format.symbol_prefix());
    let (visible, size) = match format {
        ObjectFormat::Elf => (
            format!("  .globl {name}\n  .hidden {name}\n  .type {name}, %object\n"),
            format!("  .size {name}, . - {name}\n"),
        ),
        ObjectFormat::Wasm => (
            format!("  .globl {name}\n  .hidden {name}\n  .type {name},@object\n"),
            format!("  .size {name}, . - {name}\n"),
        ),
        ObjectFormat::MachO => (format!("  .globl {name}\n  .private_extern {name}\n"), String::new()),
        // Nothing is exported that the linker is not told to export.
        ObjectFormat::Coff => (format!("  .globl {name}\n"), String::new()),
    };
    Directives { section, visible: format!("{visible}{name}:\n"), size }
}

/// Assembly that defines `symbol` (hidden) at the start of the bytes of `file`, which is an input of the same action,
/// 64-byte aligned and read-only, and `<symbol>_end` behind them. For gcc and clang.
///
/// `symbol` must be a C identifier and `file` a plain name, which callers own.
pub fn embed_assembly(format: ObjectFormat, symbol: &str, file: &str) -> String {
    let file = file.replace('\\', "\\\\").replace('"', "\\\"");
    let Directives { section, visible, size } = directives(format, symbol);
    let end = directives(format, &format!("{symbol}_end"));
    // Sections of WebAssembly hold one object each.
    let end_section = match format {
        ObjectFormat::Wasm => format!("  {}\n", end.section),
        ObjectFormat::Elf | ObjectFormat::Coff | ObjectFormat::MachO => String::new(),
    };
    let stack = match format {
        ObjectFormat::Elf => "  .section .note.GNU-stack, \"\", %progbits\n",
        ObjectFormat::Coff | ObjectFormat::MachO | ObjectFormat::Wasm => "",
    };
    format!(
        "  {section}\n  {}\n{visible}  .incbin \"{file}\"\n{size}{end_section}{}  .byte 0\n{}{stack}",
        ALIGNED, end.visible, end.size
    )
}

/// Assembly that defines `symbol` (hidden) as text that ends with a zero.
pub fn embed_text(format: ObjectFormat, symbol: &str, text: &str) -> String {
    let Directives { section, visible, size } = directives(format, symbol);
    format!("  {section}\n{visible}  .asciz \"{}\"\n{size}", text.escape_default())
}

/// To 64 bytes: all assemblers have this as a power of two.
const ALIGNED: &str = ".p2align 6";
