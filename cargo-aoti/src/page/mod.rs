//! Reports as pages: one file each that needs no network and no script, in the colours of a light or a dark screen.
//!
//! Commands give facts, tables and charts; what a page looks like is decided here. Whatever comes from outside is escaped by
//! whoever puts it between tags: [`Page`] and [`Table`] take text, and charts make their own.

pub(crate) mod chart;
pub(crate) mod graph;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;

const STYLE: &str = include_str!("style.css");

/// A page that is being written.
pub(crate) struct Page {
    title: String,
    lead: String,
    facts: String,
    body: String,
    sections: usize,
}

impl Page {
    /// A page with its title and a sentence below it.
    pub(crate) fn new(title: &str, lead: &str) -> Page {
        Page {
            title: title.to_owned(),
            lead: lead.to_owned(),
            facts: String::new(),
            body: String::new(),
            sections: 0,
        }
    }

    /// A number with what it is, at the head of the page.
    pub(crate) fn fact(&mut self, name: &str, value: &str) {
        let (name, value) = (escape(name), escape(value));
        self.facts.push_str(&format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"));
    }

    /// A part with its heading, what there is to say of it, and a table or a chart, which are markup already.
    pub(crate) fn section(&mut self, heading: &str, text: &str, markup: &str) {
        self.sections += 1;
        let (id, heading, text) = (self.sections, escape(heading), escape(text));
        let text = if text.is_empty() { String::new() } else { format!("<p>{text}</p>\n") };
        self.body.push_str(&format!(
            "<section aria-labelledby=\"s{id}\">\n<h2 id=\"s{id}\">{heading}</h2>\n{text}{markup}</section>\n"
        ));
    }

    /// The whole page; `data` is what the command prints for programs, for whoever has but the page.
    pub(crate) fn html(&self, data: &Value) -> String {
        let (title, lead) = (escape(&self.title), escape(&self.lead));
        let (facts, body) = (&self.facts, &self.body);
        // Nothing in it ends the element.
        let data = data.to_string().replace('<', "\\u003c");
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
             <body>\n<main>\n<h1>{title}</h1>\n<p class=\"lead\">{lead}</p>\n<dl class=\"facts\">\n{facts}</dl>\n{body}</main>\n\
             <footer>Written by cargo-aoti {version}.</footer>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n</body>\n</html>\n",
            version = env!("CARGO_PKG_VERSION"),
        )
    }

    /// Writes the page to a file.
    pub(crate) fn write(&self, path: &Path, data: &Value) -> Result<(), Failure> {
        write(path, &self.html(data))
    }
}

/// Writes a file of the user's, with the folder that it is in.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
        fs_err::create_dir_all(folder).map_err(Failure::machine("make", folder))?;
    }
    fs_err::write(path, text).map_err(Failure::machine("write", path))
}

/// Text between tags and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            // Neither is allowed in a page.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A table.
pub(crate) struct Table {
    caption: String,
    columns: Vec<(String, bool)>,
    rows: String,
}

/// A cell.
pub(crate) enum Cell {
    Text(String),
    /// A name or code.
    Code(String),
    /// A number; nothing where it is not known.
    Number(Option<f64>, usize),
    /// A part of a whole as a bar with its percentage; marked where it is bad.
    Part(Option<f64>, bool),
}

impl Table {
    /// A table with what it shows, and its columns: those of numbers are aligned at the right.
    pub(crate) fn new(caption: &str, columns: &[(&str, bool)]) -> Table {
        let columns = columns.iter().map(|(name, is_number)| ((*name).to_owned(), *is_number)).collect();
        Table { caption: caption.to_owned(), columns, rows: String::new() }
    }

    pub(crate) fn row(&mut self, cells: &[Cell]) {
        self.rows.push_str("<tr>");
        for cell in cells {
            let written = match cell {
                Cell::Text(text) => write!(self.rows, "<td>{}</td>", escape(text)),
                Cell::Code(text) => write!(self.rows, "<td><code>{}</code></td>", escape(text)),
                Cell::Number(Some(value), digits) => {
                    write!(self.rows, "<td class=\"n\">{}</td>", number(*value, *digits))
                }
                Cell::Number(None, _) | Cell::Part(None, _) => write!(self.rows, "<td class=\"n\">–</td>"),
                Cell::Part(Some(part), is_bad) => {
                    let (percent, width) = (part * 100.0, (part * 100.0).clamp(0.0, 100.0));
                    let class = if *is_bad { "bar bad" } else { "bar" };
                    write!(
                        self.rows,
                        "<td class=\"n\"><span class=\"{class}\"><i style=\"width:{width:.1}%\"></i></span>{percent:.1} %</td>"
                    )
                }
            };
            written.expect("text takes text");
        }
        self.rows.push_str("</tr>\n");
    }

    /// The markup. Wide tables scroll by themselves, which the keyboard reaches.
    pub(crate) fn html(&self) -> String {
        let caption = escape(&self.caption);
        let head: String = self
            .columns
            .iter()
            .map(|(name, is_number)| {
                let class = if *is_number { " class=\"n\"" } else { "" };
                format!("<th scope=\"col\"{class}>{}</th>", escape(name))
            })
            .collect();
        format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table>\n\
             <caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n</div>\n",
            self.rows
        )
    }
}

/// A number with thousands kept apart.
pub(crate) fn number(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::from(sign);
    for (position, c) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(c);
    }
    grouped + rest
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    /// Fails where a page is not well formed, or asks for anything that is not in it.
    pub(crate) fn check(html: &str) {
        let body = html.strip_prefix("<!DOCTYPE html>").expect("a document");
        let mut open: Vec<&str> = Vec::new();
        let mut rest = body;
        while let Some(start) = rest.find('<') {
            let end =
                start + rest[start..].find('>').unwrap_or_else(|| panic!("an open tag: {}", &rest[start..]));
            let tag = &rest[start + 1..end];
            let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().expect("a name");
            rest = &rest[end + 1..];
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name), "closed in another order");
            } else if !tag.ends_with('/') && name != "meta" {
                open.push(name);
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        }
        assert!(open.is_empty(), "{open:?}");
        for reference in ["http:", "https:", "//", "src=", "href=\"/", "url(", "@import", "javascript:"] {
            let (page, _) = html.split_once("<script").expect("there are data");
            assert!(!page.contains(reference), "{reference}");
        }
        assert_eq!(html.matches("<script").count(), 1, "the data alone");
        assert!(html.contains("prefers-color-scheme"));
    }

    #[test]
    fn what_comes_from_outside_stays_text() {
        let evil = "</script><script>alert('1')</script>\u{0}&\"";
        let mut page = Page::new(evil, evil);
        page.fact(evil, evil);
        let mut table = Table::new(evil, &[(evil, false), ("part", true)]);
        table.row(&[Cell::Code(evil.to_owned()), Cell::Part(Some(0.3), true)]);
        table.row(&[Cell::Text(evil.to_owned()), Cell::Number(None, 1)]);
        page.section(evil, evil, &table.html());
        let html = page.html(&json!({ "name": evil }));
        check(&html);
        assert!(!html.contains("<script>"), "{html}");
        let data = html.split_once("id=\"data\">").and_then(|(_, rest)| rest.split_once("</script>"));
        let data: Value = serde_json::from_str(data.expect("there are data").0).expect("JSON");
        assert_eq!(data["name"], evil);
    }

    #[test]
    fn thousands_are_kept_apart() {
        assert_eq!(number(1_234_567.891, 2), "1\u{202f}234\u{202f}567.89");
        assert_eq!((number(-123.0, 0), number(0.5, 1)), ("-123".to_owned(), "0.5".to_owned()));
    }
}
