//! Writes the assembly that puts a file into an object, so that no compiler ever reads weights as text.

/// Assembly that defines `symbol` (hidden) at the start of the bytes of `file`, which is an input of the same action,
/// 64-byte aligned and read-only, and `<symbol>_end` behind them. For ELF targets, gcc and clang.
///
/// `symbol` must be a C identifier and `file` a plain name, which callers own.
pub fn embed_assembly(symbol: &str, file: &str) -> String {
    let file = file.replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        "\
  .section .rodata.{symbol}, \"a\", %progbits
  .balign 64
  .globl {symbol}
  .hidden {symbol}
  .type {symbol}, %object
{symbol}:
  .incbin \"{file}\"
  .size {symbol}, . - {symbol}
  .globl {symbol}_end
  .hidden {symbol}_end
{symbol}_end:
  .byte 0
  .section .note.GNU-stack, \"\", %progbits
"
    )
}
