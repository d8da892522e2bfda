//! Text with pieces put in, taken out and replaced, for tests that no text makes a parser panic.

use proptest::prelude::*;
use proptest::sample::Index;

/// What is done at a place of a text: how, and with which piece.
pub(crate) type Edit = (Index, u8, String);

/// One to three edits with pieces that match `piece`, a regular expression.
pub(crate) fn edits(piece: &'static str) -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec((any::<Index>(), 0..4_u8, piece), 1..4)
}

/// The text, of ASCII letters, after the edits.
pub(crate) fn altered(text: &str, edits: Vec<Edit>) -> String {
    let mut text = text.to_owned();
    for (at, kind, piece) in edits {
        // Two edits before may have left nothing.
        if text.is_empty() {
            break;
        }
        let at = at.index(text.len());
        match kind {
            0 => drop(text.remove(at)),
            1 => text.insert_str(at, &piece),
            2 => text.replace_range(at..=at, &piece),
            _ => text.truncate(at.max(1)),
        }
    }
    text
}
