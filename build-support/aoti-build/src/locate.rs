//! Where in a manifest's text a key, a value or an item of a list stands.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A part of a manifest's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The manifest.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The part, in bytes of the text.
    pub range: Range<usize>,
    /// The whole text.
    pub text: Arc<str>,
}

/// What a problem is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Spot<'a> {
    /// Keys from the metadata table down.
    pub(super) keys: Vec<&'a str>,
    pub(super) part: Part<'a>,
}

/// Which part of the entry that the keys lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part<'a> {
    Key,
    Value,
    /// This text in a list.
    Item(&'a str),
}

impl<'a> Spot<'a> {
    /// The metadata table itself.
    pub(super) fn table() -> Spot<'a> {
        Spot { keys: Vec::new(), part: Part::Key }
    }

    /// An entry of the table that this is.
    pub(super) fn entry(&self, key: &'a str) -> Spot<'a> {
        let keys = self.keys.iter().copied().chain([key]).collect();
        Spot { keys, part: Part::Value }
    }

    pub(super) fn key(&self) -> Spot<'a> {
        Spot { part: Part::Key, ..self.clone() }
    }

    pub(super) fn item(&self, text: &'a str) -> Spot<'a> {
        Spot { part: Part::Item(text), ..self.clone() }
    }
}

impl Location {
    /// A range of bytes of a manifest's text.
    pub(crate) fn new(file: &Path, text: &Arc<str>, range: Range<usize>) -> Option<Location> {
        let before = text.get(..range.start)?;
        text.get(range.clone())?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Some(Location { file: file.to_owned(), line, column, range, text: Arc::clone(text) })
    }

    /// The spot in the table of this name, or the nearest thing around it that is there.
    pub(super) fn of(file: &Path, text: &Arc<str>, table: &str, spot: &Spot<'_>) -> Option<Location> {
        let root = DeTable::parse(text).ok()?;
        let (mut table_at, mut found) = (root.get_ref(), None);
        let mut keys = table.split('.').chain(spot.keys.iter().copied()).peekable();
        while let Some(key) = keys.next() {
            let Some((name, value)) = table_at.iter().find(|(name, _)| name.get_ref() == key) else {
                return Location::new(file, text, found?);
            };
            found = Some(name.span());
            if let DeValue::Table(inner) = value.get_ref() {
                table_at = inner;
            } else if keys.peek().is_none() {
                found = Some(within(name.span(), value, spot.part));
            } else {
                return Location::new(file, text, found?);
            }
        }
        Location::new(file, text, found?)
    }
}

fn within(key: Range<usize>, value: &Spanned<DeValue<'_>>, part: Part<'_>) -> Range<usize> {
    match (part, value.get_ref()) {
        (Part::Key, _) => key,
        (Part::Item(text), DeValue::Array(items)) => {
            let is_it = |item: &&Spanned<DeValue<'_>>| item.get_ref().as_str() == Some(text);
            items.iter().find(is_it).map_or_else(|| value.span(), Spanned::span)
        }
        (Part::Value | Part::Item(_), _) => value.span(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[package]\nname = \"p\"\n[package.metadata.aoti]\ncpu = [\n  \"x86-64\", \"ö\", \"new\",\n]\n\
        [package.metadata.aoti.models.\"a.b\"]\npath = 3\nmeta = { x = 1 }\n";

    fn at(keys: &[&str], part: Part<'_>) -> (usize, usize, String) {
        let spot = Spot { keys: keys.to_vec(), part };
        let found = Location::of(Path::new("f"), &TEXT.into(), "package.metadata.aoti", &spot).unwrap();
        (found.line, found.column, TEXT[found.range].to_owned())
    }

    #[test]
    fn keys_values_and_items_are_found() {
        assert_eq!(at(&["cpu"], Part::Key), (4, 1, "cpu".to_owned()));
        assert_eq!(at(&["cpu"], Part::Item("new")), (5, 18, "\"new\"".to_owned()));
        assert_eq!(at(&["models", "a.b", "path"], Part::Value), (8, 8, "3".to_owned()));
        assert_eq!(at(&["models", "a.b", "meta", "x"], Part::Value), (9, 14, "1".to_owned()));
    }

    #[test]
    fn what_is_not_there_is_where_it_should_be() {
        assert_eq!(at(&["models", "a.b", "weights"], Part::Value), (7, 31, "\"a.b\"".to_owned()));
        assert_eq!(at(&["cpu", "deeper"], Part::Key), (4, 1, "cpu".to_owned()));
        assert_eq!(at(&[], Part::Key), (3, 19, "aoti".to_owned()));
    }
}
