//! The text form of settings, one line: `gemm.packed split rows 64 lanes outer grain 65536 block rows 8`, `fused`, `parts 16`,
//! `channels-last`.

use super::parse::{algorithm, block, blocks, lanes, math_path, meeting, pair, rows, split};
use super::print::{block_text, blocks_text, lanes_text, meeting_text, rows_text, split_text};
use crate::diagnostic::Diagnostics;
use crate::kernels::mapping::Block;
use crate::loops::Channels;
use crate::passes::PARTS;
use crate::schedule::fusion_choice::FusionChoice;
use crate::schedule::row_cache::RowCaching;
use crate::schedule::setting::{Layout, Setting};
use crate::text::{Cursor, SyntaxError};
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (algorithm, layout) = match self {
            Setting::Kernel { algorithm, layout } => (algorithm, layout),
            Setting::Pair(joint) => return f.write_str(joint_text(*joint)),
            Setting::Parts(parts) => return write!(f, "{PARTS} {parts}"),
            Setting::RowCaching(held) => return f.write_str(held_text(*held)),
            Setting::Channels(place) => return f.write_str(place.name()),
        };
        f.write_str(algorithm.word)?;
        match layout {
            Layout::Cpu { split, lanes, enough, block } => {
                let (split, lanes) = (split_text(*split), lanes_text(*lanes));
                write!(f, " split {split} lanes {lanes} grain {enough}{}", block_text(*block))
            }
            Layout::Tile { by, rows, columns, threads, blocks } => {
                let (by, blocks) = (by.row().word, blocks_text(*blocks));
                write!(f, " tile [{rows}, {columns}] by {by} threads {threads}{blocks}")
            }
            Layout::Teams { size, blocks, rows } => {
                write!(f, " team {size}{} rows {}", blocks_text(*blocks), rows_text(*rows))
            }
            Layout::Scatter(by) => write!(f, " by {}", meeting_text(*by)),
            Layout::Fixed => Ok(()),
        }
    }
}

impl FromStr for Setting {
    type Err = Diagnostics;

    /// Parses the text form. Whether a kernel can be run so is another matter.
    fn from_str(text: &str) -> Result<Setting, Diagnostics> {
        Cursor::whole(text, setting)
    }
}

impl Setting {
    /// What it is a setting of: a template, or a kind of question.
    pub fn kind(&self) -> &'static str {
        match self {
            Setting::Kernel { algorithm, .. } => algorithm.word,
            Setting::Pair(_) => "pair",
            Setting::RowCaching(_) => "rows held",
            Setting::Parts(_) => "parts",
            Setting::Channels(_) => "channels",
        }
    }
}

fn joint_text(joint: FusionChoice) -> &'static str {
    match joint {
        FusionChoice::Fuse => "fused",
        FusionChoice::Separate => "apart",
    }
}

fn held_text(held: RowCaching) -> &'static str {
    match held {
        RowCaching::Cached => "rows-kept",
        RowCaching::Reloaded => "rows-read-again",
    }
}

fn setting(cursor: &mut Cursor<'_>) -> Result<Setting, SyntaxError> {
    if let Some(joint) = [FusionChoice::Fuse, FusionChoice::Separate]
        .into_iter()
        .find(|joint| cursor.eat_word(joint_text(*joint)))
    {
        return Ok(Setting::Pair(joint));
    }
    let places = [Channels::First, Channels::Last];
    if let Some(place) = places.into_iter().find(|place| cursor.eat_word(place.name())) {
        return Ok(Setting::Channels(place));
    }
    if let Some(held) =
        [RowCaching::Cached, RowCaching::Reloaded].into_iter().find(|held| cursor.eat_word(held_text(*held)))
    {
        return Ok(Setting::RowCaching(held));
    }
    if cursor.eat_word(PARTS) {
        return Ok(Setting::Parts(cursor.number()?));
    }
    let algorithm = algorithm(cursor)?;
    let layout = if cursor.eat_word("split") {
        let split = split(cursor)?;
        let lanes = lanes(cursor)?;
        cursor.expect_word("grain")?;
        let enough = cursor.number()?;
        let block = if cursor.eat_word("block") { block(cursor)? } else { Block::Typical };
        Layout::Cpu { split, lanes, enough, block }
    } else if cursor.eat_word("tile") {
        let [Some(rows), Some(columns)] = pair(cursor)?.map(|size| size.as_int()) else {
            return Err(cursor.error("expected two numbers"));
        };
        let by = math_path(cursor)?;
        cursor.expect_word("threads")?;
        let threads = cursor.number()?;
        Layout::Tile { by, rows, columns, threads, blocks: blocks(cursor)? }
    } else if cursor.eat_word("team") {
        let (size, blocks) = (cursor.number()?, blocks(cursor)?);
        Layout::Teams { size, blocks, rows: rows(cursor)? }
    } else if cursor.eat_word("by") {
        Layout::Scatter(meeting(cursor)?)
    } else {
        Layout::Fixed
    };
    Ok(Setting::Kernel { algorithm, layout })
}
