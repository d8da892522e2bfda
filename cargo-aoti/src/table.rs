//! Lines that fit the terminal: what is too long is cut with an ellipsis, as the progress bar is.

use console::{Alignment, Term};

/// Columns of the terminal that stdout is; none where it is a file or a pipe, which take lines of any length.
pub(crate) fn terminal_width() -> Option<usize> {
    let terminal = Term::stdout();
    let (_, columns) = if terminal.is_term() { terminal.size_checked() } else { None }?;
    Some(usize::from(columns).max(20))
}

/// Text whose lines have no more columns than these.
pub(crate) fn fit(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let end = if text.ends_with('\n') { "\n" } else { "" };
    text.lines().map(|line| cut(line, width)).collect::<Vec<_>>().join("\n") + end
}

/// The beginning of a line, with an ellipsis where it is longer.
pub(crate) fn cut(line: &str, width: usize) -> String {
    console::truncate_str(line, width, "…").into_owned()
}

/// A cell of so many columns: cut, or filled at its right.
pub(crate) fn cell(text: &str, width: usize) -> String {
    console::pad_str(&cut(text, width), width, Alignment::Left, None).into_owned()
}

/// A paragraph as lines of so many columns at most, broken between words.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    let (mut wrapped, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let own = console::measure_text_width(word);
        if column > 0 && column + 1 + own > width {
            wrapped.push('\n');
            column = 0;
        }
        if column > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += own;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_by_what_they_show() {
        assert_eq!(fit("abcdef\nab\n", Some(4)), "abc…\nab\n");
        assert_eq!(fit("abcdef\n", None), "abcdef\n");
        // Columns count, not bytes.
        assert_eq!(cut("übergroß", 6), "überg…");
        assert_eq!((cell("ab", 4), cell("abcde", 4)), ("ab  ".to_owned(), "abc…".to_owned()));
    }

    #[test]
    fn paragraphs_break_between_words() {
        assert_eq!(wrap("one two\nthree  four", 9), "one two\nthree\nfour");
        assert_eq!(wrap("unbreakable", 4), "unbreakable");
    }
}
