//! The program that runs one model in a process of its own, on another processor or under sanitizers: a C file that is
//! the same for all models, and one that names the model. Knows nothing of the tools that compile them.

use super::bundle::SourceFile;

/// The program but for the model's name. It includes `aoti/abi.h`.
pub fn program() -> SourceFile {
    let text = include_str!("../../harness/harness.c").to_owned();
    SourceFile { name: "harness.c".to_owned(), text }
}

/// The C interface, by the name that the program includes it by.
pub fn interface() -> SourceFile {
    let text = include_str!("../../include/aoti/abi.h").to_owned();
    SourceFile { name: "aoti/abi.h".to_owned(), text }
}

/// What gives the program the model that exports `symbol`.
pub fn entry(symbol: &str) -> SourceFile {
    let text = format!(
        "// Names the model that the harness runs.\n\
         struct AotiApi;\n\
         const struct AotiApi *{symbol}(void);\n\
         const struct AotiApi *aoti_harness_api(void);\n\
         const struct AotiApi *aoti_harness_api(void) {{ return {symbol}(); }}\n"
    );
    SourceFile { name: "entry.c".to_owned(), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_gives_what_the_program_asks_for() {
        let entry = entry("aoti_digits_api");
        assert!(
            entry.text.contains("aoti_harness_api(void) { return aoti_digits_api(); }"),
            "{}",
            entry.text
        );
        assert!(program().text.contains("const AotiApi *aoti_harness_api(void);"));
        assert!(program().text.contains(&format!("#include <{}>", interface().name)));
    }
}
