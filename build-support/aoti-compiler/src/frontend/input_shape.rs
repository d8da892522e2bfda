//! Shapes of inputs that are given beside a model's file.

use crate::json::{FromJson, Malformed, ToJson, Value};
use std::fmt;

/// The shape of an input: of a tensor its sizes, of a sequence the shapes of its elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InputShape {
    /// A size that is fixed.
    Size(u32),
    /// A size that is open, by its name.
    Name(String),
    /// Sizes, or shapes of elements.
    List(Vec<InputShape>),
    /// There is no such input in a run: it is optional.
    Absent,
}

impl FromJson for InputShape {
    fn from_json(value: Value) -> Result<InputShape, Malformed> {
        match value {
            Value::Number(number) => {
                let size = number.as_u64().and_then(|size| u32::try_from(size).ok());
                let size = size.ok_or_else(|| Malformed::new(format!("`{number}` is no size")));
                size.map(InputShape::Size)
            }
            Value::String(name) => Ok(InputShape::Name(name)),
            Value::Array(_) => Vec::from_json(value).map(InputShape::List),
            Value::Bool(false) => Ok(InputShape::Absent),
            Value::Null | Value::Bool(true) | Value::Object(_) => {
                Err(Malformed::unexpected(&value, "sizes, shapes of the elements of a sequence, or `false`"))
            }
        }
    }
}

impl ToJson for InputShape {
    fn to_json(&self) -> Value {
        match self {
            InputShape::Size(size) => Value::from(*size),
            InputShape::Name(name) => Value::from(name.as_str()),
            InputShape::List(all) => all.iter().map(ToJson::to_json).collect(),
            InputShape::Absent => Value::Bool(false),
        }
    }
}

impl fmt::Display for InputShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_lists_of_sizes_names_and_shapes() {
        let read = |text: &str| InputShape::from_json(serde_json::from_str(text).unwrap());
        let sizes = InputShape::List(vec![InputShape::Name("n".to_owned()), InputShape::Size(4)]);
        assert_eq!(read("[[\"n\", 4], []]"), Ok(InputShape::List(vec![sizes, InputShape::List(Vec::new())])));
        assert_eq!(read("false"), Ok(InputShape::Absent));
        assert_eq!(read("[[\"n\",4],[]]").unwrap().to_string(), "[[\"n\",4],[]]");
        for wrong in ["-1", "[1.5]", "true", "{}", "4294967296"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
