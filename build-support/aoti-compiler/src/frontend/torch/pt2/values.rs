//! Small facts of the schema: element types, layouts and memory formats by number, and reading JSON with a place
//! in every error.

use super::schema::Device;
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::float8::Float8;
use crate::json::{FromJson, Malformed, Value};

/// The number of the dense layout.
pub(super) const STRIDED: i64 = 7;
/// PyTorch's own limit on the number of axes.
pub(super) const MAX_RANK: usize = 64;

/// The element type of a number of the schema, or the name of one that is not supported. Of complex numbers it is that of
/// their parts, and the second value is true.
pub(super) fn element(number: i64) -> Result<(DType, bool), String> {
    match number {
        9 => Ok((DType::F16, true)),
        10 => Ok((DType::F32, true)),
        11 => Ok((DType::F64, true)),
        other => dtype(other).map(|dtype| (dtype, false)),
    }
}

fn dtype(number: i64) -> Result<DType, String> {
    match number {
        1 => Ok(DType::U8),
        2 => Ok(DType::I8),
        3 => Ok(DType::I16),
        4 => Ok(DType::I32),
        5 => Ok(DType::I64),
        6 => Ok(DType::F16),
        7 => Ok(DType::F32),
        8 => Ok(DType::F64),
        12 => Ok(DType::Bool),
        13 => Ok(DType::Bf16),
        28 => Ok(DType::U16),
        29 => Ok(DType::F8(Float8::E4M3Fn)),
        30 => Ok(DType::F8(Float8::E5M2)),
        31 => Ok(DType::F8(Float8::E4M3Fnuz)),
        32 => Ok(DType::F8(Float8::E5M2Fnuz)),
        33 => Ok(DType::F8(Float8::E8M0Fnu)),
        34 => Ok(DType::U32),
        35 => Ok(DType::U64),
        other => Err(format!("element type number {other}")),
    }
}

/// The name of a memory format.
pub(super) fn memory_format(number: i64) -> Option<&'static str> {
    match number {
        1 => Some("contiguous_format"),
        2 => Some("channels_last"),
        3 => Some("channels_last_3d"),
        4 => Some("preserve_format"),
        _ => None,
    }
}

/// The name of a layout.
pub(super) fn layout(number: i64) -> Option<&'static str> {
    match number {
        1 => Some("sparse_coo"),
        2 => Some("sparse_csr"),
        3 => Some("sparse_csc"),
        4 => Some("sparse_bsr"),
        5 => Some("sparse_bsc"),
        6 => Some("_mkldnn"),
        STRIDED => Some("strided"),
        _ => None,
    }
}

/// A device as PyTorch prints it: `cpu`, `cuda:0`.
pub(super) fn device(device: &Device) -> String {
    match device.index {
        Some(index) => format!("{}:{index}", device.kind),
        None => device.kind.clone(),
    }
}

/// Reads JSON; an error names the file and the place in it.
pub(super) fn read_json<T: FromJson>(bytes: &[u8], path: &str) -> Result<T, Diagnostic> {
    of_json(parse_json(bytes, path)?, path)
}

/// JSON whose meaning is open.
pub(super) fn parse_json(bytes: &[u8], path: &str) -> Result<Value, Diagnostic> {
    let malformed = |error| Diagnostic::new(Code::Schema, format!("`{path}` is malformed: {error}"));
    serde_json::from_slice(bytes).map_err(malformed)
}

/// What the JSON of a file means.
pub(super) fn of_json<T: FromJson>(value: Value, path: &str) -> Result<T, Diagnostic> {
    T::from_json(value).map_err(|Malformed { path: place, message }| {
        let place = if place.is_empty() { "." } else { &place };
        Diagnostic::new(Code::Schema, format!("`{path}` is malformed at `{place}`: {message}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::torch::pt2::schema::{Argument, Float, NamedArgument, RangeConstraint};

    #[test]
    fn unknown_union_keys_are_kept_by_name() {
        let argument: Argument = read_json(br#"{"as_novelty": [1, {"a": 2}]}"#, "f").unwrap();
        assert!(matches!(argument, Argument::Unknown(key) if key == "as_novelty"));
        assert!(read_json::<Argument>(br#"{"as_int": 1, "as_bool": true}"#, "f").is_err());
        assert!(read_json::<Argument>(b"{}", "f").is_err());
    }

    #[test]
    fn infinities_are_text() {
        let argument: Argument = read_json(br#"{"as_float": "-Infinity"}"#, "f").unwrap();
        assert!(matches!(argument, Argument::Float(Float(value)) if value == f64::NEG_INFINITY));
    }

    #[test]
    fn errors_name_the_place() {
        let error = read_json::<Vec<NamedArgument>>(br#"[{"name": "a"}]"#, "m.json").err().unwrap();
        assert!(error.message.contains("`[0]`") && error.message.contains("`arg`"), "{}", error.message);
        let deep = "[".repeat(100_000);
        assert!(read_json::<RangeConstraint>(deep.as_bytes(), "f").is_err());
    }
}
