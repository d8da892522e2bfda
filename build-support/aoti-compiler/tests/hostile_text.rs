//! Text of a model never becomes code: programs whose every text is hostile give the same tokens as harmless ones, by
//! the preprocessors of gcc and clang, for processors and GPUs, in C++ and C, and as Rust reads its tokens.

use aoti_compiler::codegen::bindings::{self, Link, WeightsPlacement};
use aoti_compiler::codegen::bundle::SourceBundle;
use aoti_compiler::compile::{Options, compile};
use proc_macro2::{TokenStream, TokenTree};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What would be code if it stood on a line of its own.
const PAYLOAD: &str = "int canary = 0; struct canary; #error canary";

/// What a text does to get there.
fn breaks() -> Vec<String> {
    let line_ends = "\n\r\u{b}\u{c}\u{1c}\u{1d}\u{1e}\u{85}\u{2028}\u{2029}".chars();
    let controls = (0u8..0x20).map(char::from).chain(['\u{7f}', '\u{80}', '\u{9f}']);
    let marks = "\u{200b}\u{200e}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}\u{e0001}".chars();
    let mut all: Vec<String> = line_ends.chain(controls).chain(marks).map(String::from).collect();
    all.extend(
        ["\r\n", "*/", "/*", "//", "\"", "\\\"", "'", "`", "\"#", "\"##", "??/", "??/\n", "\\", "\\\n"]
            .map(str::to_owned),
    );
    all.extend(["\\  \n", "\\u000a", "\\x0a", "%s%n", ")\"", "#]", "*/}", "{}", "{{"].map(str::to_owned));
    all
}

/// The texts of one program: each break before the payload and behind it, at the end of a line too.
fn hostile() -> Vec<String> {
    let mut all = Vec::new();
    for text in breaks() {
        all.push(format!("a{text}{PAYLOAD}{text}"));
        all.push(format!("{PAYLOAD}\\{text}"));
    }
    all.extend(["\\", "\\ ", "\\\t", "??/", "??/  "].map(|end| format!("{PAYLOAD} {end}")));
    all.push("n".repeat(1 << 20) + "\\");
    all
}

fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == ' ' {
                c.to_string()
            } else {
                format!("\\u{{{:x}}}", u32::from(c))
            }
        })
        .collect();
    format!("\"{escaped}\"")
}

/// A program with one text everywhere that a text can stand: names, places in the user's program, guards, the sites of
/// checked positions.
fn graph(text: &str) -> String {
    let t = quoted(text);
    format!(
        "graph \"net\" {{\n  symbol s0 {t} in 1..1024 from input 0 axis 0\n  guard ([s0 % 2] eq [0]) {t}\n  \
         origin o0 = {t} {t} {t}\n  const c0 {t}: f32[3] = [1.0, 2.0, 3.0]\n  input %0 {t}: f32[s0, 3]\n  \
         input %i {t}: i64[5]\n  %1: f32[3] = constant c0\n  %2: f32[s0, 3] = view %1 [i1] @ o0\n  \
         %3: f32[s0, 3] = mul %0, %2 @ o0\n  %index: i64[5, 3] = view %i [i0] @ o0\n  \
         %4: f32[5, 3] = gather %0, %index [wrap $0, i1] @ o0\n  output %3 {t}\n  output %4 {t}\n}}\n"
    )
}

fn options(text: &str) -> Options {
    Options::new(text, ["native"]).with_package("p 0.1.0")
}

fn program(text: &str) -> SourceBundle {
    compile(graph(text), &options(text)).unwrap_or_else(|error| panic!("{error}"))
}

/// The tokens of a file by a compiler's preprocessor, without the words that differ by what names are made of: literals,
/// and identifiers that carry a name.
fn tokens(compiler: &str, arguments: &[&str], folder: &Path, file: &str) -> Vec<String> {
    let mut command = Command::new(compiler);
    command.args(["-E", "-P", "-Wall", "-DAOTI_LEVEL_NS=n"]);
    let output = command.args(arguments).arg(file).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{compiler} {arguments:?} {file}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.is_ascii(), "{file} holds more than its comments should");
    split(&text)
}

fn split(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            tokens.push("\"\"".to_owned());
            end.expect("literals end") + 2
        } else if first.is_ascii_alphanumeric() || first == '_' {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let word = &rest[..length];
            let is_named = ["aoti_", "k_"].iter().any(|prefix| word.starts_with(prefix));
            let is_named = is_named
                || ["_input_", "_output_", "_INPUT_", "_OUTPUT_"].iter().any(|part| word.contains(part));
            tokens.push(if is_named { "name".to_owned() } else { word.to_owned() });
            length
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// Writes the files of programs with these texts, one below the other: one file with all that is C++, and one with the
/// headers. What they include is the same for all programs and left out.
fn write(texts: &[String], folder: &Path) {
    let left_out = |line: &&str| line.starts_with("#include ") || line.starts_with("#pragma once");
    let own = |text: &str| -> String { text.split_inclusive('\n').filter(|line| !left_out(line)).collect() };
    let (mut sources, mut headers) = (String::new(), String::new());
    for text in texts {
        let bundle = program(text);
        let files = bundle.files.iter().filter(|file| file.name.ends_with(".cpp"));
        sources.extend(files.map(|file| own(&file.text)));
        let for_gpus = Options::for_gpus(text, ["sm_90a"]).with_package("p 0.1.0");
        let on_gpus = compile(graph(text), &for_gpus).unwrap();
        let files =
            on_gpus.files.iter().filter(|file| ["cuda.cu", "run_cuda.cpp"].contains(&file.name.as_str()));
        sources.extend(files.map(|file| own(&file.text)));
        headers.push_str(&own(&bundle.header()));
    }
    fs::write(folder.join("all.cpp"), sources).unwrap();
    fs::write(folder.join("net.h"), headers).unwrap();
}

/// The compilers that there are, with the languages that each file is read as. A missing one is skipped, unless
/// `AOTI_TEST_REQUIRE` names it.
fn readings() -> Vec<(&'static str, Vec<&'static str>, &'static str)> {
    let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
    let mut readings = Vec::new();
    for (tool, names) in [("gcc", &["g++"][..]), ("clang", &["clang++", "clang++-19"])] {
        let found = names.iter().find(|name| Command::new(name).arg("--version").output().is_ok());
        assert!(
            found.is_some() || !required.split(',').any(|name| name.trim() == tool),
            "there is no {tool}"
        );
        let Some(compiler) = found else {
            eprintln!("skipped: `{tool}` is not installed");
            continue;
        };
        readings.push((*compiler, vec!["-std=c++17"], "all.cpp"));
        // C++14 still has trigraphs, as C11 has.
        readings.push((*compiler, vec!["-std=c++14", "-trigraphs", "-Wno-trigraphs"], "all.cpp"));
        readings.push((*compiler, vec!["-x", "c", "-std=c11", "-Wno-trigraphs"], "net.h"));
    }
    readings
}

#[test]
fn hostile_texts_leave_the_tokens_of_cpp_and_c_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let readings = readings();
    let read = |(compiler, arguments, file): &(&str, Vec<&str>, &str)| {
        tokens(compiler, arguments, folder.path(), file)
    };
    write(&["x".to_owned()], folder.path());
    let expected: Vec<Vec<String>> = readings.iter().map(read).collect();
    // Several at a time, as starting a compiler takes longest.
    for texts in hostile().chunks(12) {
        write(texts, folder.path());
        for (reading, expected) in readings.iter().zip(&expected) {
            let found = read(reading);
            let shown: Vec<String> = texts.iter().map(|text| text.chars().take(80).collect()).collect();
            assert_eq!(found.len(), expected.len() * texts.len(), "{reading:?} with one of {shown:?}");
            for (found, shown) in found.chunks(expected.len()).zip(shown) {
                assert!(found == expected, "{reading:?} with {shown:?}");
            }
        }
    }
}

/// All tokens but commas, with one word for all literals and one for all names.
fn kinds(stream: TokenStream, kinds: &mut Vec<String>) {
    for token in stream {
        match token {
            TokenTree::Group(group) => {
                kinds.push(format!("{:?}", group.delimiter()));
                self::kinds(group.stream(), kinds);
            }
            // A list that does not fit into one line ends in a comma.
            TokenTree::Punct(punct) if punct.as_char() == ',' => {}
            TokenTree::Punct(punct) => kinds.push(punct.to_string()),
            TokenTree::Ident(_) => kinds.push("name".to_owned()),
            TokenTree::Literal(_) => kinds.push("literal".to_owned()),
        }
    }
}

#[test]
fn hostile_texts_leave_the_tokens_of_rust_as_they_are() {
    let tokens = |text: &str| {
        let weights = [
            WeightsPlacement::Embedded,
            WeightsPlacement::Sidecar { file: text.to_owned(), digest: text.to_owned() },
        ];
        let mut all = Vec::new();
        for (weights, link) in weights.into_iter().zip([Link::Absent, Link::Static]) {
            let options = bindings::Options { weights, link, weights_digest: None, samples: None };
            let module = program(text).bindings(&options);
            assert!(
                !module.contains('\r') && module.chars().all(|c| c == '\n' || !c.is_control()),
                "{text:?}"
            );
            let stream = module.parse::<TokenStream>().unwrap_or_else(|error| panic!("{text:?}: {error}"));
            kinds(stream, &mut all);
        }
        all
    };
    let expected = tokens("x y");
    for text in hostile() {
        let shown: String = text.chars().take(80).collect();
        assert!(tokens(&text) == expected, "{shown:?}");
    }
}

/// Lines of code generation, but for the file whose part it is, that put something into a comment or a literal of C++.
#[test]
fn comments_and_literals_are_made_in_one_place() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/codegen")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // The text form of run plans is not code, and escapes as the other text forms do.
            if ["foreign.rs", "tests.rs", "run/text/print.rs"].iter().any(|own| path.ends_with(own)) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let is_made = |line: &&str| {
                let code = line.split("///").next().unwrap();
                // A comment in a format, up to the end of its line; a quotation mark before a placeholder.
                let is_comment = |(at, _): (usize, &str)| {
                    let rest = code[at..].split("\\n").next().unwrap();
                    code[..at].contains('"') && rest.replace("{{", "").contains('{')
                };
                code.match_indices("// ").any(is_comment) || code.contains("\\\"{")
            };
            found.extend(text.lines().filter(is_made).map(|line| format!("{}: {line}", path.display())));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
