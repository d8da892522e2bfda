//! Where two texts of a bundle begin to differ: the file, the function and the line.

/// Precedes the name of each part of a bundle's text.
const HEADING: &str = "==== ";

/// A part of a bundle: its name and its lines.
type Part<'a> = (&'a str, Vec<&'a str>);

/// For each part that differs, its name with the function and the lines that differ first.
pub(super) fn explain(old: &str, new: &str) -> String {
    let (old, new) = (parts(old), parts(new));
    let find = |parts: &[Part<'_>], name: &str| parts.iter().position(|(own, _)| *own == name);
    let mut text = String::new();
    for (name, lines) in &old {
        match find(&new, name) {
            None => text.push_str(&format!("  {name}: only in the old one\n")),
            Some(index) if new[index].1 != *lines => text.push_str(&difference(name, lines, &new[index].1)),
            Some(_) => {}
        }
    }
    for (name, _) in new.iter().filter(|(name, _)| find(&old, name).is_none()) {
        text.push_str(&format!("  {name}: only in the new one\n"));
    }
    text
}

/// Before the first heading stand messages, if anything does.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = vec![("messages", Vec::new())];
    for line in text.lines() {
        match (line.strip_prefix(HEADING), parts.last_mut()) {
            (Some(name), _) => parts.push((name, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    parts
}

fn difference(name: &str, old: &[&str], new: &[&str]) -> String {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let before = &old[..old.len().min(same + 1)];
    // A definition begins at the margin, and its body is indented.
    let begins = |line: &&&str| line.ends_with('{') && !line.starts_with([' ', '}', '/']);
    let function = before.iter().rev().find(begins).map_or(String::new(), |line| format!(", in `{line}`"));
    let line = |lines: &[&str]| lines.get(same).map_or("(the end)".to_owned(), |line| (*line).to_owned());
    format!("  {name}, line {}{function}:\n    - {}\n    + {}\n", same + 1, line(old), line(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str =
        "==== kernels.cpp\nvoid first() {\n    one;\n}\nvoid second() {\n    two;\n}\n==== header\nh\n";

    #[test]
    fn the_kernel_that_differs_is_named() {
        let new = OLD.replace("two", "three");
        let explained = explain(OLD, &new);
        assert_eq!(
            explained,
            "  kernels.cpp, line 5, in `void second() {`:\n    -     two;\n    +     three;\n"
        );
        assert_eq!(explain(OLD, OLD), "");
    }

    #[test]
    fn parts_that_one_lacks_are_named() {
        let new = OLD.replace("==== header\nh\n", "==== weights\nw\n");
        assert_eq!(explain(OLD, &new), "  header: only in the old one\n  weights: only in the new one\n");
    }

    #[test]
    fn messages_are_compared_too() {
        let explained = explain("error: this\n", "error: that\n");
        assert_eq!(explained, "  messages, line 1:\n    - error: this\n    + error: that\n");
    }
}
