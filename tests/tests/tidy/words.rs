//! Words of our own that have given way to the field's stay out of the compiler's code.

use super::{Source, check};

/// Where they are out.
const COMPILER: &str = "build-support/aoti-compiler/src/";

/// A word that is out, and what is said instead. Comments may have it, as it may be plain English.
const OUT: &[(&str, &str)] = &[
    ("Answer", "Alternative"),
    ("Choice", "Selection"),
    ("Decided", "TuningStage"),
    ("Held", "RowCaching"),
    ("Item", "WorkKind"),
    ("Joint", "FusionChoice"),
    ("KernelKey", "TuningKey"),
    ("Laid", "Mapped"),
    ("Life", "LiveRange"),
    ("Multiplier", "MathPath"),
    ("OpenWay", "TuningCandidate"),
    ("Outside", "OutOfBounds"),
    ("Prices", "CostModel"),
    ("ProductSplits", "SplitKPolicy"),
    ("Question", "TuningPoint"),
    ("Questions", "Decisions"),
    ("RowOp", "AxisOp"),
    ("RowOperation", "AxisKernel"),
    ("Shares", "WorkSplit"),
    ("Splits", "SplitPolicy"),
    ("copiers", "producer_threads"),
    ("decompose", "functionalize"),
    ("decompose_with", "functionalize_with"),
    ("has_copy_engine", "has_tma"),
    ("open_kernels", "tuning_points"),
    ("stay_within", "enforce_bounds"),
];

#[test]
fn words_that_are_out_stay_out() {
    check("the field has another word", |source| {
        if source.path.starts_with(COMPILER) && source.path.ends_with(".rs") { found(source) } else { vec![] }
    });
}

/// The words that are out in a source, with their lines.
fn found(source: &Source) -> Vec<String> {
    let lines = (1..).zip(source.text.lines());
    let of_line = |(number, line): (usize, &str)| {
        let code = line.split("//").next().unwrap_or_default().to_owned();
        OUT.iter()
            .filter(move |(word, _)| has(&code, word))
            .map(move |(word, instead)| format!("line {number}: `{word}` is `{instead}`"))
    };
    lines.flat_map(of_line).collect()
}

/// Whether code has an identifier. `Iterator::Item` is the language's.
fn has(code: &str, word: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(word).any(|(at, _)| {
        let (before, behind) = (&code[..at], &code[at + word.len()..]);
        let is_whole = !before.ends_with(is_word) && !behind.starts_with(is_word);
        let is_of_iterators = word == "Item"
            && (behind.trim_start().starts_with('=') || before.ends_with("::") || before.ends_with("type "));
        is_whole && !is_of_iterators && before.matches('"').count() % 2 == 0
    })
}

#[test]
fn a_word_is_found_where_it_is_an_identifier() {
    let source = |text: &str| Source { path: format!("{COMPILER}a.rs"), text: text.to_owned() };
    let found = |text: &str| found(&source(text)).len();
    assert_eq!(found("let x: Choice = y; // a Choice\n/// Outside of it.\nuse cost::{Cost, Item};"), 2);
    assert_eq!(found("impl Iterator<Item = u8>\ntype Item = u8;\nSelf::Item\nChoices \"Choice\""), 0);
}
