//! Numbers and the data of constants as text.

use crate::dtype::DType;
use crate::graph::Scalar;
use crate::halves::{Bf16, F16};
use crate::random::SplitMix64;
use crate::text::{Cursor, SyntaxError};
use std::fmt::Write;

/// Constants of at most this many elements are printed as lists.
const LISTED: usize = 16;

/// A number; floating-point ones always have a point, an exponent or a name. NaN of other bits is `nan:BITS`.
pub(crate) fn print_scalar(number: Scalar) -> String {
    match number {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) if value.is_nan() && value.to_bits() != f64::NAN.to_bits() => {
            format!("nan:{:016x}", value.to_bits())
        }
        Scalar::Float(value) if value.is_nan() => "nan".to_owned(),
        Scalar::Float(value) => format!("{value:?}"),
    }
}

/// The inverse of [`print_scalar`].
pub(crate) fn parse_scalar(word: &str) -> Option<Scalar> {
    match word {
        "true" => return Some(Scalar::Bool(true)),
        "false" => return Some(Scalar::Bool(false)),
        "nan" => return Some(Scalar::Float(f64::NAN)),
        _ => {}
    }
    if let Some(bits) = word.strip_prefix("nan:") {
        let value = f64::from_bits(u64::from_str_radix(bits, 16).ok()?);
        return value.is_nan().then_some(Scalar::Float(value));
    }
    if let Ok(value) = word.parse::<i128>() {
        let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
        return range.contains(&value).then_some(Scalar::Int(value));
    }
    let is_float = word.ends_with("inf") || word.contains(['.', 'e', 'E']);
    if is_float { word.parse().ok().map(Scalar::Float) } else { None }
}

/// The data of a constant: a list where it is short, `splat` where all elements are the same, else `hex`.
pub(super) fn print(dtype: DType, data: &[u8]) -> String {
    let elements: Vec<&[u8]> = data.chunks_exact(dtype.size()).take(LISTED + 1).collect();
    if elements.len() <= LISTED {
        let texts: Option<Vec<String>> =
            elements.iter().map(|element| print_element(dtype, element)).collect();
        if let Some(texts) = texts {
            return format!("[{}]", texts.join(", "));
        }
    } else if data.chunks_exact(dtype.size()).all(|element| element == elements[0])
        && let Some(text) = print_element(dtype, elements[0])
    {
        return format!("splat {text}");
    }
    let mut text = String::with_capacity(2 * data.len() + 6);
    text.push_str("hex \"");
    for byte in data {
        let _ = write!(text, "{byte:02x}");
    }
    text.push('"');
    text
}

/// `None` where the bytes are not what the text would give back: NaN payloads, booleans beyond 1.
fn print_element(dtype: DType, bytes: &[u8]) -> Option<String> {
    let text = match (dtype, bytes) {
        (DType::Bool, [byte]) => (*byte != 0).to_string(),
        (DType::U8, [byte]) => byte.to_string(),
        (DType::I8, [byte]) => (*byte as i8).to_string(),
        (DType::I16, [a, b]) => i16::from_le_bytes([*a, *b]).to_string(),
        (DType::F16, [a, b]) => format!("{:?}", F16::from_le_bytes([*a, *b]).to_f32()),
        (DType::Bf16, [a, b]) => format!("{:?}", Bf16::from_le_bytes([*a, *b]).to_f32()),
        (DType::I32, bytes) => i32::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (DType::F32, bytes) => format!("{:?}", f32::from_le_bytes(bytes.try_into().ok()?)),
        (DType::I64, bytes) => i64::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (DType::F64, bytes) => format!("{:?}", f64::from_le_bytes(bytes.try_into().ok()?)),
        (DType::U16, [a, b]) => u16::from_le_bytes([*a, *b]).to_string(),
        (DType::U32, bytes) => u32::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (DType::U64, bytes) => u64::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (DType::F8(format), [byte]) => format!("{:?}", format.to_f32(*byte)),
        _ => return None,
    };
    let text = if text == "NaN" { "nan".to_owned() } else { text };
    let mut back = Vec::new();
    parse_element(dtype, &text, &mut back)?;
    (back == bytes).then_some(text)
}

/// Appends the bytes of one element.
fn parse_element(dtype: DType, word: &str, data: &mut Vec<u8>) -> Option<()> {
    let is_number =
        word.starts_with(|c: char| c.is_ascii_digit() || c == '-') || matches!(word, "inf" | "nan");
    if dtype != DType::Bool && !is_number {
        return None;
    }
    match dtype {
        DType::Bool => data.push(u8::from(match word {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return None,
        })),
        DType::U8 => data.push(word.parse().ok()?),
        DType::I8 => data.extend(word.parse::<i8>().ok()?.to_le_bytes()),
        DType::I16 => data.extend(word.parse::<i16>().ok()?.to_le_bytes()),
        DType::I32 => data.extend(word.parse::<i32>().ok()?.to_le_bytes()),
        DType::I64 => data.extend(word.parse::<i64>().ok()?.to_le_bytes()),
        DType::F16 => data.extend(F16::from_f32(word.parse().ok()?).to_le_bytes()),
        DType::Bf16 => data.extend(Bf16::from_f32(word.parse().ok()?).to_le_bytes()),
        DType::F32 => data.extend(word.parse::<f32>().ok()?.to_le_bytes()),
        DType::F64 => data.extend(word.parse::<f64>().ok()?.to_le_bytes()),
        DType::U16 => data.extend(word.parse::<u16>().ok()?.to_le_bytes()),
        DType::U32 => data.extend(word.parse::<u32>().ok()?.to_le_bytes()),
        DType::U64 => data.extend(word.parse::<u64>().ok()?.to_le_bytes()),
        DType::F8(format) => data.push(format.from_f32(word.parse().ok()?)),
    }
    Some(())
}

/// Parses the data of a constant of the given type and sizes. `budget` is what may still be generated.
pub(super) fn parse(cursor: &mut Cursor<'_>, dtype: DType, sizes: &[i64]) -> Result<Vec<u8>, SyntaxError> {
    let needed = sizes
        .iter()
        .try_fold(dtype.size(), |bytes, size| bytes.checked_mul(usize::try_from(*size).ok()?))
        .ok_or_else(|| cursor.error("the sizes are negative or too large"))?;
    let mut data = Vec::new();
    if cursor.peek() == Some('[') {
        for item in cursor.bracketed()? {
            parse_element(dtype, item, &mut data)
                .ok_or_else(|| cursor.error(format!("`{}` is not an element of {dtype}", clip(item))))?;
        }
    } else {
        let word = cursor.word()?;
        if word == "hex" {
            data = cursor.string().and_then(|text| {
                unhex(&text).ok_or_else(|| cursor.error("not an even number of hexadecimal digits"))
            })?;
        } else {
            cursor.spend(needed)?;
            match word {
                "splat" => {
                    let number = cursor.word()?;
                    parse_element(dtype, number, &mut data).ok_or_else(|| {
                        cursor.error(format!("`{}` is not an element of {dtype}", clip(number)))
                    })?;
                    data = data.repeat(needed / dtype.size());
                }
                "random" => {
                    let seed = cursor.number()?;
                    data = random(dtype, needed / dtype.size(), seed as u64);
                }
                _ => return Err(cursor.error("expected `[`, `splat`, `hex` or `random`")),
            }
        }
    }
    if data.len() == needed {
        return Ok(data);
    }
    Err(cursor.error(format!("{} bytes of data, the type needs {needed}", data.len())))
}

/// The start of a text that may be long.
pub(crate) fn clip(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| if let [a, b] = pair { Some(digit(*a)? * 16 + digit(*b)?) } else { None }).collect()
}

/// Numbers of a fixed generator: floats uniform in -1 .. 1, integers in 0 .. 9, either truth value.
fn random(dtype: DType, count: usize, seed: u64) -> Vec<u8> {
    let mut generator = SplitMix64::new(seed);
    let mut data = Vec::with_capacity(count * dtype.size());
    for _ in 0..count {
        let bits = generator.draw();
        // The upper 24 bits make a number that f32 holds exactly.
        let unit = (bits >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        match dtype {
            DType::Bool => data.push((bits >> 63) as u8),
            DType::U8 | DType::I8 => data.push((bits % 10) as u8),
            DType::I16 => data.extend(((bits % 10) as i16).to_le_bytes()),
            DType::I32 => data.extend(((bits % 10) as i32).to_le_bytes()),
            DType::I64 => data.extend((bits % 10).to_le_bytes()),
            DType::F16 => data.extend(F16::from_f32(unit).to_le_bytes()),
            DType::Bf16 => data.extend(Bf16::from_f32(unit).to_le_bytes()),
            DType::F32 => data.extend(unit.to_le_bytes()),
            DType::F64 => data.extend(f64::from(unit).to_le_bytes()),
            DType::U16 => data.extend(((bits % 10) as u16).to_le_bytes()),
            DType::U32 => data.extend(((bits % 10) as u32).to_le_bytes()),
            DType::U64 => data.extend((bits % 10).to_le_bytes()),
            DType::F8(format) => data.push(format.from_f32(unit)),
        }
    }
    data
}
