//! The commands and files of a page of the documentation, in the order in which a reader meets them.
//!
//! Comments of HTML, which a page does not show, say what a block is for: `file PATH` and `append PATH` write the next block,
//! `copy FROM TO` copies a file of the repository, `needs TOOL` runs the next block where the tool is installed, and
//! `not run: REASON` leaves it out. Knows nothing of shells or folders.

/// One thing that a reader does.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Commands of a block, one after the other.
    Run {
        /// In order.
        commands: Vec<Command>,
        /// The tool without which they are left out.
        needs: Option<String>,
    },
    /// A file with a text.
    Write {
        /// From the reader's folder.
        path: String,
        /// The whole file.
        text: String,
    },
    /// A text at the end of a file.
    Append {
        /// From the reader's folder.
        path: String,
        /// What is added.
        text: String,
    },
    /// A file of the repository, copied.
    Copy {
        /// From the root of the repository.
        from: String,
        /// From the reader's folder.
        to: String,
    },
}

/// A command and the output that the page shows.
#[derive(Debug, PartialEq)]
pub struct Command {
    /// The number of its line, from 1.
    pub line: usize,
    /// As it is typed.
    pub text: String,
    /// Lines of its output; none if the page shows none.
    pub shown: Vec<String>,
}

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    /// The number of its first line, from 1.
    pub line: usize,
    /// The first word behind the fence.
    pub language: String,
    /// The comments before it.
    pub comments: Vec<String>,
    /// The lines between the fences.
    pub text: String,
}

/// The steps of a page, or its mistakes.
pub fn steps(page: &str) -> Result<Vec<Step>, Vec<String>> {
    let (mut steps, mut mistakes) = (Vec::new(), Vec::new());
    for block in blocks(page) {
        let line = block.line;
        match step(&block) {
            Ok(more) => steps.extend(more),
            Err(mistake) => mistakes.push(format!("line {line}: {mistake}")),
        }
    }
    if mistakes.is_empty() { Ok(steps) } else { Err(mistakes) }
}

/// The fenced blocks of a page. A block of the language "" without text stands for comments that no block follows.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut comments = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")) {
            comments.push(comment.trim().to_owned());
        } else if let Some(language) = line.strip_prefix("```") {
            let language = language.split([' ', ',']).next().unwrap_or_default().to_owned();
            let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
            let text = inside.map(|line| format!("{line}\n")).collect();
            blocks.push(Block { line: index + 2, language, comments: std::mem::take(&mut comments), text });
        } else if !line.is_empty() && !comments.is_empty() {
            let comments = std::mem::take(&mut comments);
            blocks.push(Block { line: index + 1, language: String::new(), comments, text: String::new() });
        }
    }
    blocks
}

fn step(block: &Block) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let (mut needs, mut is_read) = (None, block.language.is_empty());
    for comment in &block.comments {
        let (word, rest) = comment.split_once(' ').unwrap_or((comment, ""));
        let rest = rest.trim().to_owned();
        match word {
            "file" => steps.push(Step::Write { path: rest, text: block.text.clone() }),
            "append" => steps.push(Step::Append { path: rest, text: block.text.clone() }),
            "copy" => {
                let (from, to) = rest.split_once(' ').ok_or("`copy` takes two paths")?;
                steps.push(Step::Copy { from: from.to_owned(), to: to.to_owned() });
                continue;
            }
            "needs" => needs = Some(rest),
            "not" => match comment.strip_prefix("not run:") {
                Some(reason) if !reason.trim().is_empty() => {}
                _ => return Err("`not run:` takes a reason".to_owned()),
            },
            // Remarks to other authors.
            _ => continue,
        }
        is_read |= word != "needs";
    }
    if block.language == "console" && !is_read {
        steps.push(Step::Run { commands: commands(block)?, needs });
    }
    if block.language == "sh" || block.language == "bash" {
        return Err("commands are in blocks of `console`".to_owned());
    }
    Ok(steps)
}

fn commands(block: &Block) -> Result<Vec<Command>, String> {
    let mut commands: Vec<Command> = Vec::new();
    let mut goes_on = false;
    for (index, line) in block.text.lines().enumerate() {
        let number = block.line + index;
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(text), _) => {
                commands.push(Command { line: number, text: text.to_owned(), shown: Vec::new() })
            }
            (None, Some(command)) if goes_on => command.text += &format!("\n{line}"),
            (None, Some(command)) => command.shown.push(line.to_owned()),
            (None, None) => return Err("the first line of a block of commands starts with `$ `".to_owned()),
        }
        goes_on = line.ends_with('\\');
    }
    Ok(commands)
}

/// Whether the output is what the page shows: `…` stands for any text in a line, and for any number of lines on its own.
pub fn is_shown(shown: &[String], printed: &[&str]) -> bool {
    match (shown, printed) {
        ([], rest) => rest.is_empty(),
        ([first, later @ ..], _) if first.trim() == "…" => {
            (0..=printed.len()).any(|skipped| is_shown(later, &printed[skipped..]))
        }
        ([first, later @ ..], [line, rest @ ..]) => {
            fits(first.trim_end(), line.trim_end()) && is_shown(later, rest)
        }
        ([_, ..], []) => false,
    }
}

fn fits(shown: &str, line: &str) -> bool {
    let Some((start, later)) = shown.split_once('…') else { return shown == line };
    let Some(rest) = line.strip_prefix(start) else { return false };
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.into_iter().any(|at| fits(later, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n<!-- copy a/b.pt2 models/b.pt2 -->\n\ntext\n\n<!-- file build.rs -->\n\n```rust\nfn main() {}\n```\n\n\
        ```console\n$ one \\\n  two\nline 1\n$ three\n```\n\n<!-- needs cmake -->\n```console\n$ four\n```\n\n\
        <!-- not run: it takes an hour -->\n```console\n$ five\n```\n";

    #[test]
    fn a_page_is_steps_in_order() {
        let command = |line, text: &str, shown: &[&str]| {
            let shown = shown.iter().map(|line| (*line).to_owned()).collect();
            Command { line, text: text.to_owned(), shown }
        };
        let expected = [
            Step::Copy { from: "a/b.pt2".to_owned(), to: "models/b.pt2".to_owned() },
            Step::Write { path: "build.rs".to_owned(), text: "fn main() {}\n".to_owned() },
            Step::Run {
                commands: vec![command(14, "one \\\n  two", &["line 1"]), command(17, "three", &[])],
                needs: None,
            },
            Step::Run { commands: vec![command(22, "four", &[])], needs: Some("cmake".to_owned()) },
        ];
        assert_eq!(steps(PAGE).unwrap(), expected);
    }

    #[test]
    fn commands_without_a_reason_are_not_left_out() {
        let said = steps("<!-- not run: -->\n```console\n$ a\n```\n\n```sh\nb\n```\n").unwrap_err();
        assert_eq!(
            said,
            ["line 3: `not run:` takes a reason", "line 7: commands are in blocks of `console`"]
        );
    }

    #[test]
    fn outputs_may_be_shown_in_part() {
        let shown = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert!(is_shown(&shown(&["a …", "…", "z"]), &["a b c", "d", "e", "z"]));
        assert!(is_shown(&shown(&["took … us of …"]), &["took 1.5 us of 3"]));
        assert!(!is_shown(&shown(&["a", "z"]), &["a", "b", "z"]));
        assert!(!is_shown(&shown(&["a …"]), &["b c"]));
    }
}
