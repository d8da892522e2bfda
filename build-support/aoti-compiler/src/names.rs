//! Makes identifiers from any text: the only place that knows the reserved words of each language.
//!
//! Names in models are arbitrary: `input.1`, `0`, `type`, `入力`, the empty text. An identifier made here is ASCII, at
//! most 64 characters before numbering, starts with a letter, has no doubled or leading underscore, is no reserved
//! word, and depends on nothing but the texts asked before.

use std::collections::{BTreeMap, BTreeSet};

const LONGEST: usize = 64;
/// Symbols that a user chooses may be longer.
const LONGEST_SYMBOL: usize = 250;
/// Stands for a text in which nothing can be kept.
const UNNAMED: &str = "unnamed";

/// The language that an identifier must be valid in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// Rust fields, variables and modules: lower snake case.
    Rust,
    /// C and C++, with the functions and macros of the headers that generated code includes.
    C,
}

/// Gives out identifiers of one scope, each once.
#[derive(Clone, Debug)]
pub struct Namer {
    language: Language,
    used: BTreeSet<String>,
    /// The last number tried for each base name, so that many equal names do not cost a search each.
    numbers: BTreeMap<String, u64>,
}

impl Namer {
    /// A scope without names.
    pub fn new(language: Language) -> Namer {
        Namer { language, used: BTreeSet::new(), numbers: BTreeMap::new() }
    }

    /// Keeps a name from being given out.
    pub fn reserve(&mut self, name: &str) {
        self.used.insert(name.to_owned());
    }

    /// An identifier for `text`, unlike all that this scope gave out: the second of one name gets `_2`, and so on.
    pub fn name(&mut self, text: &str) -> String {
        let plain = sanitize(text, self.language);
        let plain = if is_reserved(&plain, self.language) { plain + "_" } else { plain };
        if self.used.insert(plain.clone()) {
            return plain;
        }
        let stem = plain.trim_end_matches('_');
        let number = self.numbers.entry(stem.to_owned()).or_insert(1);
        loop {
            *number += 1;
            let numbered = format!("{stem}_{number}");
            if self.used.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// The identifier of a model: valid in Rust, C and C++, as it names a module and a part of a symbol. The same text
/// always gives the same; an identifier gives itself.
pub fn identifier(text: &str) -> String {
    let name = sanitize(text, Language::Rust);
    let reserved = is_reserved(&name, Language::Rust) || is_reserved(&name, Language::C);
    if reserved || CRATES.contains(&name.as_str()) { name + "_" } else { name }
}

/// What stands for a model in symbols and in names of libraries: its identifier and, for a model of a package, a digest
/// of both. One program may hold models of one name: of several packages, and of several versions of one.
pub fn symbol(name: &str, package: &str) -> String {
    let identifier = identifier(name);
    if package.is_empty() {
        return identifier;
    }
    let mut hasher = blake3::Hasher::new();
    // The length keeps the two apart, wherever one ends and the other begins.
    hasher.update(&(package.len() as u64).to_le_bytes()).update(package.as_bytes()).update(name.as_bytes());
    format!("{identifier}_{}", &hasher.finalize().to_hex()[..DIGITS])
}

/// The function that the library of the model exports for which this stands.
pub fn exported_symbol(symbol: &str) -> String {
    format!("aoti_{symbol}_api")
}

/// Digits of a digest that becomes part of a name: enough that no two models of one program ever share them.
pub const DIGITS: usize = 12;

/// Modules of these names would stand before the crates in a user's paths.
const CRATES: &[&str] = &["alloc", "aoti_runtime", "core", "proc_macro", "std", "test"];

fn sanitize(text: &str, language: Language) -> String {
    let mut out = String::new();
    let mut after_lower = false;
    // Longer names are cut; hostile ones are not read to their end.
    for c in text.chars().take(4 * LONGEST) {
        if c.is_ascii_alphanumeric() {
            if language == Language::Rust {
                if c.is_ascii_uppercase() && after_lower {
                    separate(&mut out);
                }
                out.push(c.to_ascii_lowercase());
            } else {
                out.push(c);
            }
        } else {
            separate(&mut out);
            if c.is_alphanumeric() {
                out.push_str(&format!("u{:x}_", u32::from(c)));
            }
        }
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    if out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, 'v');
    }
    out.truncate(LONGEST);
    let kept = out.trim_end_matches('_').len();
    out.truncate(kept);
    if out.is_empty() { UNNAMED.to_owned() } else { out }
}

/// Ends a word, without leading or doubled underscores: C and C++ keep both for themselves.
fn separate(out: &mut String) {
    if !out.is_empty() && !out.ends_with('_') {
        out.push('_');
    }
}

/// Whether C and C++ can have a function of this name beside the headers that generated code includes.
pub(crate) fn is_c_function(name: &str) -> bool {
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_word && name.len() <= LONGEST_SYMBOL && !is_reserved(name, Language::C)
}

fn is_reserved(name: &str, language: Language) -> bool {
    match language {
        Language::Rust => RUST.contains(&name),
        Language::C => C_WORDS.contains(&name) || C_LIBRARY.contains(&name) || is_c_type(name),
    }
}

/// `int32_t`, `size_t` and their kind: POSIX keeps the whole ending. `aoti` names are the hand-written headers'.
fn is_c_type(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    name.ends_with("_t") || lower == "aoti" || lower.starts_with("aoti_") || name.starts_with("Aoti")
}

/// Strict, reserved and weak keywords of every edition.
#[rustfmt::skip]
const RUST: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "union", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Keywords of C11, C23 and C++20, and words that compilers define as macros in their GNU modes.
#[rustfmt::skip]
const C_WORDS: &[&str] = &[
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
    "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return",
    "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
    "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "typeof_unqual", "union",
    "unsigned", "using", "virtual", "void", "volatile", "while", "xor", "xor_eq", "half", "i386", "linux", "unix",
    "vector", "pixel", "near", "far", "small", "interface",
];

/// Functions and macros that C's headers, or the compiler itself, already give a meaning.
#[rustfmt::skip]
const C_LIBRARY: &[&str] = &[
    "EOF", "I", "INFINITY", "NAN", "NULL", "abort", "abs", "acos", "acosh", "asin", "asinh", "assert", "atan", "atan2",
    "atanh", "bcmp", "bcopy", "bzero", "calloc", "cbrt", "ceil", "copysign", "cos", "cosh", "div", "erf", "erfc",
    "errno", "exit", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "ffs", "floor", "fma", "fmax", "fmin", "fmod",
    "free", "frexp", "gamma", "hypot", "ilogb", "index", "isfinite", "isinf", "isnan", "j0", "j1", "jn", "labs",
    "ldexp", "lgamma", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "main", "malloc", "memchr",
    "memcmp", "memcpy", "memmove", "memset", "modf", "nan", "nearbyint", "nextafter", "offsetof", "pow", "printf",
    "puts", "qsort", "rand", "read", "realloc", "remainder", "remquo", "rindex", "rint", "round", "scalbn", "signal",
    "signbit", "sin", "sinh", "sqrt", "stderr", "stdin", "stdout", "strlen", "tan", "tanh", "tgamma", "time", "trunc",
    "write", "y0", "y1", "yn",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> String {
        Namer::new(Language::Rust).name(text)
    }

    fn c(text: &str) -> String {
        Namer::new(Language::C).name(text)
    }

    #[test]
    fn good_names_stay() {
        assert_eq!((rust("image"), c("image")), ("image".into(), "image".into()));
        assert_eq!((rust("conv2d_3"), c("Conv2d_3")), ("conv2d_3".into(), "Conv2d_3".into()));
    }

    #[test]
    fn rust_names_are_snake_case() {
        assert_eq!(rust("inputIDs"), "input_ids");
        assert_eq!(rust("X"), "x");
        assert_eq!(rust("QKVProj"), "qkvproj");
    }

    #[test]
    fn what_is_no_letter_separates_words() {
        assert_eq!(c("layers.0.weight"), "layers_0_weight");
        assert_eq!(c("__l_self__x__"), "l_self_x");
        assert_eq!(c("a b\n\"c\"*/"), "a_b_c");
        assert_eq!(c("495"), "v495");
    }

    #[test]
    fn texts_without_letters_are_unnamed() {
        assert_eq!((rust(""), c("___")), ("unnamed".into(), "unnamed".into()));
        assert_eq!(c("…/…"), "unnamed");
    }

    #[test]
    fn other_scripts_are_spelled_by_their_numbers() {
        assert_eq!(rust("入力"), "u5165_u529b");
        assert_eq!(c("Größe"), "Gr_uf6_udf_e");
    }

    #[test]
    fn reserved_words_get_an_underscore() {
        assert_eq!((rust("type"), c("type")), ("type_".into(), "type".into()));
        assert_eq!(
            (rust("self"), rust("Self"), rust("crate")),
            ("self_".into(), "self_".into(), "crate_".into())
        );
        assert_eq!(
            (c("template"), c("exp"), c("int32_t")),
            ("template_".into(), "exp_".into(), "int32_t_".into())
        );
    }

    #[test]
    fn names_of_one_scope_differ() {
        let mut namer = Namer::new(Language::Rust);
        let names = ["a.b", "a_b", "a b", "a_b_2", "type", "type_", "Type"].map(|text| namer.name(text));
        assert_eq!(names, ["a_b", "a_b_2", "a_b_3", "a_b_2_2", "type_", "type_2", "type_3"]);
        let mut namer = Namer::new(Language::C);
        namer.reserve("x");
        assert_eq!(namer.name("x"), "x_2");
    }

    #[test]
    fn long_names_are_cut_and_still_differ() {
        let mut namer = Namer::new(Language::C);
        let long = "layer.".repeat(100_000);
        let (a, b) = (namer.name(&long), namer.name(&long));
        assert!(a.len() <= LONGEST && b.len() <= LONGEST + 2 && a != b);
    }

    #[test]
    fn symbols_tell_packages_and_their_versions_apart() {
        assert_eq!(symbol("net", ""), "net");
        let all = [
            ("net", "a 0.1.0"),
            ("net", "a 0.2.0"),
            ("net", "b 0.1.0"),
            ("Net", "a 0.1.0"),
            ("t", "a 0.1.0ne"),
        ];
        let symbols = all.map(|(name, package)| symbol(name, package));
        assert!(symbols.iter().all(|symbol| symbol == &identifier(symbol)), "{symbols:?}");
        assert_eq!(symbols.iter().collect::<BTreeSet<_>>().len(), all.len(), "{symbols:?}");
        assert_eq!(symbols[0].len(), "net_".len() + DIGITS);
    }

    #[test]
    fn identifiers_of_models_are_valid_in_every_language_and_stable() {
        for (text, expected) in [
            ("digits", "digits"),
            ("ResNet-50 v2", "res_net_50_v2"),
            ("match", "match_"),
            ("double", "double_"),
            ("std", "std_"),
            ("../../etc/passwd", "etc_passwd"),
            ("", "unnamed"),
        ] {
            assert_eq!(identifier(text), expected);
            assert_eq!(identifier(expected), expected);
        }
    }
}
