//! Protocol buffers without their schema: messages as fields, which are numbers, or bytes that may be a message again.
//!
//! Most changes of such fields give files that their reader still understands, which changes of bytes rarely do.

use crate::mutate::{NUMBERS, bytes};
use crate::rng::Rng;

/// Messages within messages that are looked into.
const DEEPEST: usize = 12;

#[derive(Clone)]
struct Field {
    number: u64,
    content: Content,
}

#[derive(Clone)]
enum Content {
    Number(u64),
    /// Of eight or four bytes.
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
}

/// A file with a few of its fields changed, or of its bytes.
pub fn message(rng: &mut Rng, file: &[u8]) -> Vec<u8> {
    if rng.one_in(8) {
        return bytes(rng, file.to_vec());
    }
    let mut changed = file.to_vec();
    for _ in 0..=rng.below(3) {
        changed = change(rng, &changed, DEEPEST);
    }
    changed
}

/// Changes one field somewhere below; what is no message stays.
fn change(rng: &mut Rng, message: &[u8], depth: usize) -> Vec<u8> {
    let Some(mut fields) = parse(message).filter(|fields| !fields.is_empty()) else {
        return message.to_vec();
    };
    let at = rng.below(fields.len());
    if let Content::Bytes(inner) = &fields[at].content
        && depth > 0
        && !rng.one_in(8)
        && parse(inner).is_some_and(|below| !below.is_empty())
    {
        fields[at].content = Content::Bytes(change(rng, inner, depth - 1));
        return write(&fields);
    }
    match rng.below(8) {
        0 => drop(fields.remove(at)),
        1 => {
            let other = fields[rng.below(fields.len())].clone();
            fields.insert(at, other);
        }
        2 => {
            let other = rng.below(fields.len());
            fields.swap(at, other);
        }
        3 => fields[at].content = fields[rng.below(fields.len())].content.clone(),
        4 => fields[at].number = (rng.below(20) + 1) as u64,
        _ => fields[at].content = other_content(rng, &fields[at].content),
    }
    write(&fields)
}

fn other_content(rng: &mut Rng, content: &Content) -> Content {
    match content {
        Content::Number(_) if rng.one_in(2) => Content::Number(rng.below(24) as u64),
        Content::Number(_) => Content::Number(rng.pick(&NUMBERS) as u64),
        Content::Fixed(own) => {
            let number = rng.pick(&NUMBERS).to_le_bytes();
            Content::Fixed(number[..own.len()].to_vec())
        }
        Content::Bytes(own) => Content::Bytes(match rng.below(4) {
            0 => Vec::new(),
            1 => own[..rng.below(own.len() + 1)].to_vec(),
            2 => [own.as_slice(), own].concat(),
            _ => bytes(rng, own.clone()),
        }),
    }
}

fn parse(mut message: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = number(&mut message)?;
        let content = match key & 7 {
            0 => Content::Number(number(&mut message)?),
            1 => Content::Fixed(take(&mut message, 8)?),
            2 => {
                let length = usize::try_from(number(&mut message)?).ok()?;
                Content::Bytes(take(&mut message, length)?)
            }
            5 => Content::Fixed(take(&mut message, 4)?),
            _ => return None,
        };
        fields.push(Field { number: key >> 3, content });
    }
    fields.iter().all(|field| (1..1 << 12).contains(&field.number)).then_some(fields)
}

fn take(message: &mut &[u8], length: usize) -> Option<Vec<u8>> {
    let (own, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(own.to_vec())
}

fn number(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for position in 0..10 {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn write(fields: &[Field]) -> Vec<u8> {
    let mut message = Vec::new();
    for Field { number, content } in fields {
        let kind = match content {
            Content::Number(_) => 0,
            Content::Fixed(own) if own.len() == 8 => 1,
            Content::Bytes(_) => 2,
            Content::Fixed(_) => 5,
        };
        write_number(&mut message, number << 3 | kind);
        match content {
            Content::Number(value) => write_number(&mut message, *value),
            Content::Fixed(own) => message.extend(own),
            Content::Bytes(own) => {
                write_number(&mut message, own.len() as u64);
                message.extend(own);
            }
        }
    }
    message
}

fn write_number(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_fields_are_written_as_they_were() {
        let inner = write(&[Field { number: 3, content: Content::Number(1 << 40) }]);
        let fields = [
            Field { number: 1, content: Content::Bytes(inner) },
            Field { number: 17, content: Content::Fixed(vec![1, 2, 3, 4]) },
            Field { number: 2, content: Content::Fixed(vec![9; 8]) },
        ];
        let message = write(&fields);
        assert_eq!(write(&parse(&message).unwrap()), message);
        assert!(parse(&message[..message.len() - 1]).is_none());
    }
}
