//! Text from a model in generated code: the only place that turns it into comments and string literals.
//!
//! Names, Python lines and assertions are whatever a file holds, and the file may be hostile. What comes out of here ends
//! where it seems to end, for every compiler and in every mode: no line end of any kind, nothing invisible, nothing that
//! joins a comment to the line below it. Rust's literals are made by `quote`, which sees to the same.

/// Characters of a text that are shown in a comment: more is noise, and megabytes are hostile.
const SHOWN: usize = 400;

/// A text on one line, with everything that is not a letter, a number or a sign of ASCII spelled out: line ends, control
/// characters, marks that change the direction of text. Long texts are cut.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == SHOWN {
            out.push_str("...");
            break;
        }
        push(&mut out, c);
    }
    out
}

fn push(out: &mut String, c: char) {
    match c {
        ' '..='~' => out.push(c),
        c if c.is_alphanumeric() => out.push(c),
        c => out.extend(c.escape_unicode()),
    }
}

/// A comment of C, C++ or Rust, with its line end.
pub(super) fn comment(text: &str) -> String {
    let mut line = String::from("// ");
    text.chars().for_each(|c| push(&mut line, c));
    line.truncate(line.trim_end().len());
    // A backslash, which the trigraph `??/` is too, would join the next line to this one, blanks behind it or not.
    if line.ends_with('\\') || line.ends_with("??/") {
        line.push('.');
    }
    line.push('\n');
    line
}

/// A string literal of C and C++ with these bytes.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b'\n' => out.push_str("\\n"),
            0x20..=0x7e if byte != b'?' => out.push(char::from(byte)),
            // Three octal digits end by themselves, and question marks form no trigraph.
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that some compiler, editor or standard takes for the end of a line.
    const LINE_ENDS: &str = "\n\r\u{b}\u{c}\u{1c}\u{1d}\u{1e}\u{85}\u{2028}\u{2029}";

    #[test]
    fn comments_are_one_line_of_visible_text() {
        for code in (0..=0x2fff).chain(0xd7f0..=0xffff).chain(0xe0000..=0xe01ff) {
            let Some(c) = char::from_u32(code) else { continue };
            let comment = comment(&format!("a{c}b"));
            let line = comment.strip_suffix('\n').unwrap();
            assert!(line.starts_with("// a") && line.ends_with('b'), "{comment:?}");
            assert!(!line.contains(|c: char| LINE_ENDS.contains(c) || c.is_control()), "{comment:?}");
            assert!(line.chars().all(|c| c.is_ascii() || c.is_alphanumeric()), "{comment:?}");
        }
    }

    #[test]
    fn comments_do_not_reach_the_next_line() {
        for text in ["a\\", "a\\  ", "a\\\t", "a\\\\", "??/", "a ??/ \t", "\\\n", "\\\r", "\\"] {
            let comment = comment(text);
            let line = comment.strip_suffix('\n').unwrap().trim_end();
            assert!(!line.ends_with('\\') && !line.ends_with("??/"), "{comment:?}");
            assert_eq!(comment.lines().count(), 1, "{comment:?}");
        }
        assert_eq!((comment(""), comment("a  ")), ("//\n".to_owned(), "// a\n".to_owned()));
    }

    #[test]
    fn literals_hold_their_text_in_plain_ascii() {
        assert_eq!(literal("a\"b\\c??/"), r#""a\"b\\c\077\077/""#);
        assert_eq!(literal("\0\r\n\u{85}"), r#""\000\015\n\302\205""#);
        assert_eq!(literal("\u{1}1"), r#""\0011""#);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shown(&"x".repeat(1 << 20)).len(), SHOWN + "...".len());
    }
}
