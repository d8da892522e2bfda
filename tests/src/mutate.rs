//! Model files that nobody honest would write: well-formed ones with values, records, bytes or words changed at random.
//!
//! Knows how archives, descriptions and graph text are built, so that most changes get past the reader; knows nothing of
//! what becomes of them.

use crate::archive::{Archive, Entry};
use crate::rng::Rng;
use serde_json::Value;

/// Numbers at which something ends.
pub const NUMBERS: [i64; 20] = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    5,
    7,
    8,
    64,
    1 << 31,
    -(1 << 31),
    (1 << 32) + 1,
    1 << 40,
    1 << 48,
    1 << 61,
    1 << 62,
    -(1 << 62),
    i64::MAX,
    i64::MIN,
];

/// Texts that mean something where names are written down, or that no name has.
const TEXTS: [&str; 10] = [
    "",
    "x",
    "\r\n*/ x \\",
    "../../x",
    "/etc/passwd",
    "\u{0}",
    "ä\u{202e}",
    "Sym(s0)",
    "u0",
    "aten.add.Tensor",
];

/// Words that a graph's text may have in place of others.
const WORDS: [&str; 14] = [
    "0 ",
    "-1 ",
    "9223372036854775807 ",
    "-9223372036854775808 ",
    "s0 ",
    "%0 ",
    "%1, ",
    "i0 ",
    "i1] ",
    "4611686018427387904] ",
    "i64[",
    "f32[",
    "bool[",
    "{\n",
];

/// An archive with a few changes: of its descriptions, mostly, else of its entries or of its bytes.
pub fn archive(rng: &mut Rng, original: &Archive) -> Vec<u8> {
    let mut changed = original.clone();
    match rng.below(10) {
        0 => {
            entries(rng, &mut changed);
            changed.write()
        }
        1 => bytes(rng, changed.write()),
        2 => {
            if rng.one_in(2) {
                entries(rng, &mut changed);
            }
            description(rng, &mut changed, "json");
            bytes(rng, changed.write())
        }
        3 => {
            description(rng, &mut changed, "json");
            changed.write()
        }
        _ => {
            description(rng, &mut changed, "models/model.json");
            changed.write()
        }
    }
}

/// Changes values of one entry whose name ends so.
fn description(rng: &mut Rng, archive: &mut Archive, end: &str) {
    let wanted: Vec<usize> =
        (0..archive.entries.len()).filter(|at| archive.entries[*at].name.ends_with(end)).collect();
    if wanted.is_empty() {
        return;
    }
    let entry = &mut archive.entries[rng.pick(&wanted)];
    let Ok(mut value) = serde_json::from_slice::<Value>(&entry.data) else { return };
    let mut texts = Vec::new();
    collect_texts(&value, &mut texts);
    for _ in 0..=rng.below(3) {
        change(rng, &mut value, &texts);
    }
    entry.data = serde_json::to_vec(&value).expect("JSON can be written");
}

/// All texts of a description: the names that one may be exchanged for.
fn collect_texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect_texts(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Changes one value somewhere below, or the list or object that it is in.
fn change(rng: &mut Rng, value: &mut Value, texts: &[String]) {
    let deeper = !rng.one_in(14);
    match value {
        Value::Array(items) if !items.is_empty() && deeper => {
            let at = rng.below(items.len());
            change(rng, &mut items[at], texts);
        }
        Value::Object(fields) if !fields.is_empty() && deeper => {
            let at = rng.below(fields.len());
            if let Some(field) = fields.values_mut().nth(at) {
                change(rng, field, texts);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let (at, other) = (rng.below(items.len()), rng.below(items.len()));
            match rng.below(4) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                2 => items[at] = items[other].clone(),
                _ => items.swap(at, other),
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let (name, other) = (&names[rng.below(names.len())], &names[rng.below(names.len())]);
            match rng.below(3) {
                0 => drop(fields.shift_remove(name)),
                1 => drop(fields.insert(name.clone(), fields[other].clone())),
                _ => {
                    let moved = fields.shift_remove(name).unwrap_or_default();
                    fields.insert(text(rng, texts), moved);
                }
            }
        }
        Value::Number(number) if rng.one_in(2) => {
            let near = number.as_i64().unwrap_or(0).wrapping_add(rng.between(-2, 2));
            *value = Value::from(near);
        }
        Value::Number(_) => *value = Value::from(rng.pick(&NUMBERS)),
        Value::String(_) if !rng.one_in(6) => *value = Value::from(text(rng, texts)),
        Value::Bool(flag) => *flag = !*flag,
        Value::Null | Value::Array(_) | Value::Object(_) | Value::String(_) => *value = any(rng, texts),
    }
}

fn text(rng: &mut Rng, texts: &[String]) -> String {
    if texts.is_empty() || rng.one_in(8) {
        return if rng.one_in(20) { "n".repeat(1 << 20) } else { rng.pick(&TEXTS).to_owned() };
    }
    texts[rng.below(texts.len())].clone()
}

fn any(rng: &mut Rng, texts: &[String]) -> Value {
    match rng.below(8) {
        0 => Value::Null,
        1 => Value::from(rng.pick(&NUMBERS)),
        2 => Value::from(text(rng, texts)),
        3 => Value::Array(vec![]),
        4 => Value::from(1e300),
        5 => Value::Bool(rng.one_in(2)),
        6 => (0..200).fold(Value::Null, |inner, _| Value::Array(vec![inner])),
        _ => serde_json::json!({ "as_int": rng.pick(&NUMBERS) }),
    }
}

/// Changes which entries there are, or what one holds or claims to hold.
fn entries(rng: &mut Rng, archive: &mut Archive) {
    let (at, other) = (rng.below(archive.entries.len()), rng.below(archive.entries.len()));
    let name = archive.entries[other].name.clone();
    match rng.below(8) {
        0 => drop(archive.entries.remove(at)),
        1 => archive.entries.push(archive.entries[at].clone()),
        2 => archive.entries[at].name = name,
        3 => archive.entries[at].name = format!("{}{}", rng.pick(&TEXTS), archive.entries[at].name),
        4 => archive.entries[at].claimed = Some(rng.pick(&NUMBERS) as u64),
        5 => {
            let length = rng.below(archive.entries[at].data.len() + 1);
            archive.entries[at].data.truncate(length);
        }
        6 => archive.entries[at].data = archive.entries[other].data.clone(),
        _ => archive.entries.push(Entry { name: text(rng, &[]), data: vec![0; 100], claimed: None }),
    }
}

/// Changes bytes of a file; half of the changes are near its end, where an archive has its directory.
/// A file with a few of its bytes changed, mostly near the end.
pub fn bytes(rng: &mut Rng, mut file: Vec<u8>) -> Vec<u8> {
    for _ in 0..=rng.below(4) {
        if file.is_empty() {
            return file;
        }
        let reach = if rng.one_in(2) { file.len() } else { file.len().min(600) };
        let at = file.len() - 1 - rng.below(reach);
        match rng.below(6) {
            0 => file[at] = 0xff,
            1 => file[at] ^= 1 << rng.below(8),
            2 => file.truncate(at),
            3 => {
                let end = (at + 8).min(file.len());
                let number = rng.pick(&NUMBERS).to_le_bytes();
                file[at..end].copy_from_slice(&number[..end - at]);
            }
            4 => {
                let end = (at + rng.below(64)).min(file.len());
                file.drain(at..end);
            }
            _ => file[at] = b'0',
        }
    }
    file
}

/// A graph's text with a few words exchanged, dropped, doubled or made into others.
pub fn words(rng: &mut Rng, original: &str) -> String {
    let mut words: Vec<&str> = original.split_inclusive([' ', '[', ']', ',', '\n', '*', '+']).collect();
    for _ in 0..=rng.below(3) {
        if words.is_empty() {
            break;
        }
        let (at, other) = (rng.below(words.len()), rng.below(words.len()));
        match rng.below(6) {
            0 => words[at] = rng.pick(&WORDS),
            1 | 2 => words[at] = words[other],
            3 => drop(words.remove(at)),
            4 => words.insert(at, words[other]),
            _ => words.swap(at, other),
        }
    }
    words.concat()
}
