//! Stages of the compiler ask the rows of algorithms, and name none.

use super::sources;

/// Where algorithms are.
const FOLDER: &str = "build-support/aoti-compiler/src/kernels/";
/// The crate.
const COMPILER: &str = "build-support/aoti-compiler/src/";
/// What words of algorithms for products and convolutions begin with.
const WORDS: [&str; 2] = ["\"gemm.", "\"conv."];

#[test]
fn only_their_folder_names_algorithms() {
    let mut found = Vec::new();
    for source in sources() {
        let is_test = source.path.contains("tests");
        if !source.path.starts_with(COMPILER) || source.path.starts_with(FOLDER) || is_test {
            continue;
        }
        let own =
            source.text.find("#[cfg(test)]\nmod tests {").map_or(&*source.text, |end| &source.text[..end]);
        let names =
            own.lines().filter(|line| WORDS.iter().any(|word| line.contains(word) && !line.contains(".h\"")));
        found.extend(names.map(|line| format!("{}: {}", source.path, line.trim())));
    }
    assert!(found.is_empty(), "a stage asks the row of an algorithm instead:\n{}", found.join("\n"));
}
