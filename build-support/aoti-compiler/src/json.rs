//! JSON as data, in both directions: what model files say, and what builds keep from one to the next.
//!
//! Structs are objects, by lists of their fields. Serde's derives do the same and more. They are not used here because
//! everything that they need is compiled before any build script of a user's is.

use indexmap::IndexMap;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

#[doc(no_inline)]
pub use serde_json::{Map, Value};

/// A type that is read from JSON.
pub trait FromJson: Sized {
    /// The value that this JSON means.
    ///
    /// # Errors
    /// What is wrong, and where.
    fn from_json(value: Value) -> Result<Self, Malformed>;

    /// What it means that a field is not there.
    fn absent() -> Option<Self> {
        None
    }
}

/// A type that is written as JSON.
pub trait ToJson {
    /// The JSON that means this value.
    fn to_json(&self) -> Value;
}

/// JSON that does not mean what is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Keys and positions from the outside to the fault, as in `nodes[3].name`; empty for the whole.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl Malformed {
    /// The whole value is at fault.
    pub fn new(message: impl Into<String>) -> Malformed {
        Malformed { path: String::new(), message: message.into() }
    }

    /// Something else than this is there.
    pub fn unexpected(value: &Value, expected: &str) -> Malformed {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => format!("boolean `{value}`"),
            Value::Number(number) if number.is_f64() => format!("floating point `{number}`"),
            Value::Number(number) => format!("integer `{number}`"),
            Value::String(text) => format!("string {text:?}"),
            Value::Array(_) => "sequence".to_owned(),
            Value::Object(_) => "map".to_owned(),
        };
        Malformed::new(format!("invalid type: {found}, expected {expected}"))
    }

    /// The same, seen from an object that has the value under this key.
    #[must_use]
    pub fn under(mut self, key: &str) -> Malformed {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{key}{dot}{}", self.path);
        self
    }

    fn at(mut self, index: usize) -> Malformed {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("[{index}]{dot}{}", self.path);
        self
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{} at `{path}`", self.message),
        }
    }
}

impl std::error::Error for Malformed {}

/// The fields of an object, taken one by one.
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Those of a value.
    ///
    /// # Errors
    /// It is no object.
    pub fn of(value: Value) -> Result<Fields, Malformed> {
        let Value::Object(fields) = value else { return Err(Malformed::unexpected(&value, "an object")) };
        Ok(Fields(fields))
    }

    /// A field that has to be there.
    ///
    /// # Errors
    /// It is not there, or means nothing.
    pub fn required<T: FromJson>(&mut self, key: &str) -> Result<T, Malformed> {
        match self.optional(key)? {
            Some(value) => Ok(value),
            None => T::absent().ok_or_else(|| Malformed::new(format!("missing field `{key}`"))),
        }
    }

    /// A field that may be there.
    ///
    /// # Errors
    /// It means nothing.
    pub fn optional<T: FromJson>(&mut self, key: &str) -> Result<Option<T>, Malformed> {
        let value = self.0.get_mut(key).map(Value::take);
        value.map(T::from_json).transpose().map_err(|error| error.under(key))
    }
}

/// The only entry of an object.
///
/// # Errors
/// It is no object, or one of more or fewer entries.
pub fn only_entry(value: Value, name: &str) -> Result<(String, Value), Malformed> {
    let fields = Fields::of(value)?.0;
    let count = fields.len();
    match (count, fields.into_iter().next()) {
        (1, Some(entry)) => Ok(entry),
        _ => Err(Malformed::new(format!("invalid length {count}, expected an object of one key ({name})"))),
    }
}

/// The key of a field: its name, unless another is given.
#[doc(hidden)]
#[macro_export]
macro_rules! json_key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

/// `from_json!(Type { a, b_c = "b-c" } or_default { d })`: an object that has the fields of the first list and may have those
/// of the second. What else it has is passed over.
#[macro_export]
macro_rules! from_json {
    ($type:ident { $($field:ident $(= $key:literal)?),* $(,)? } $(or_default { $($other:ident $(= $name:literal)?),* $(,)? })?) => {
        impl $crate::json::FromJson for $type {
            fn from_json(value: $crate::json::Value) -> Result<$type, $crate::json::Malformed> {
                let mut fields = $crate::json::Fields::of(value)?;
                Ok($type {
                    $($field: fields.required($crate::json_key!($field $($key)?))?,)*
                    $($($other: fields.optional($crate::json_key!($other $($name)?))?.unwrap_or_default(),)*)?
                })
            }
        }
    };
}

/// `to_json!(Type { a, b })`: an object of all fields of a struct, in this order.
#[macro_export]
macro_rules! to_json {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::json::ToJson for $type {
            fn to_json(&self) -> $crate::json::Value {
                let $type { $($field),* } = self;
                let fields = [$((stringify!($field), $crate::json::ToJson::to_json($field))),*];
                $crate::json::Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }
        }
    };
}

/// Both [`from_json!`] and [`to_json!`], of a struct that is read as it was written.
#[macro_export]
macro_rules! json_fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        $crate::from_json!($type { $($field),* });
        $crate::to_json!($type { $($field),* });
    };
}

/// `json_words!(Type { A = "a", B = "b" })`: an enum without data as text.
#[macro_export]
macro_rules! json_words {
    ($type:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $crate::json::FromJson for $type {
            fn from_json(value: $crate::json::Value) -> Result<$type, $crate::json::Malformed> {
                match value.as_str() {
                    $(Some($word) => Ok($type::$variant),)*
                    _ => Err($crate::json::Malformed::unexpected(&value, concat!("one of", $(" `", $word, "`"),*))),
                }
            }
        }

        impl $crate::json::ToJson for $type {
            fn to_json(&self) -> $crate::json::Value {
                $crate::json::Value::from(match self { $($type::$variant => $word,)* })
            }
        }
    };
}

macro_rules! integers {
    ($($type:ident by $read:ident),*) => {$(
        impl FromJson for $type {
            fn from_json(value: Value) -> Result<$type, Malformed> {
                let number = value.$read().and_then(|number| $type::try_from(number).ok());
                number.ok_or_else(|| Malformed::unexpected(&value, stringify!($type)))
            }
        }

        impl ToJson for $type {
            fn to_json(&self) -> Value {
                Value::from(*self)
            }
        }
    )*};
}

integers! { i64 by as_i64, u32 by as_u64, u64 by as_u64, usize by as_u64 }

impl FromJson for f64 {
    fn from_json(value: Value) -> Result<f64, Malformed> {
        value.as_f64().ok_or_else(|| Malformed::unexpected(&value, "f64"))
    }
}

impl FromJson for bool {
    fn from_json(value: Value) -> Result<bool, Malformed> {
        value.as_bool().ok_or_else(|| Malformed::unexpected(&value, "a boolean"))
    }
}

impl ToJson for bool {
    fn to_json(&self) -> Value {
        Value::Bool(*self)
    }
}

impl FromJson for String {
    fn from_json(value: Value) -> Result<String, Malformed> {
        let Value::String(text) = value else { return Err(Malformed::unexpected(&value, "a string")) };
        Ok(text)
    }
}

impl ToJson for String {
    fn to_json(&self) -> Value {
        Value::String(self.clone())
    }
}

impl ToJson for &str {
    fn to_json(&self) -> Value {
        Value::from(*self)
    }
}

impl FromJson for PathBuf {
    fn from_json(value: Value) -> Result<PathBuf, Malformed> {
        String::from_json(value).map(PathBuf::from)
    }
}

/// A path that is not text is not read back as it was.
impl ToJson for PathBuf {
    fn to_json(&self) -> Value {
        Value::String(self.to_string_lossy().into_owned())
    }
}

impl<T: FromJson> FromJson for Box<T> {
    fn from_json(value: Value) -> Result<Box<T>, Malformed> {
        T::from_json(value).map(Box::new)
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn from_json(value: Value) -> Result<Option<T>, Malformed> {
        if value.is_null() { Ok(None) } else { T::from_json(value).map(Some) }
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}

impl<T: ToJson> ToJson for Option<T> {
    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_json)
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(value: Value) -> Result<Vec<T>, Malformed> {
        let items = array(value)?;
        let mut all = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            all.push(T::from_json(item).map_err(|error| error.at(index))?);
        }
        Ok(all)
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn to_json(&self) -> Value {
        Value::Array(self.iter().map(T::to_json).collect())
    }
}

impl<A: FromJson, B: FromJson> FromJson for (A, B) {
    fn from_json(value: Value) -> Result<(A, B), Malformed> {
        let [first, second] = <[Value; 2]>::try_from(array(value)?)
            .map_err(|items| Malformed::new(format!("invalid length {}, expected 2", items.len())))?;
        let first = A::from_json(first).map_err(|error| error.at(0))?;
        Ok((first, B::from_json(second).map_err(|error| error.at(1))?))
    }
}

impl<A: ToJson, B: ToJson> ToJson for (A, B) {
    fn to_json(&self) -> Value {
        Value::Array(vec![self.0.to_json(), self.1.to_json()])
    }
}

impl FromJson for Range<usize> {
    fn from_json(value: Value) -> Result<Range<usize>, Malformed> {
        let (start, end) = <(usize, usize)>::from_json(value)?;
        Ok(start..end)
    }
}

impl ToJson for Range<usize> {
    fn to_json(&self) -> Value {
        (self.start, self.end).to_json()
    }
}

impl<T: FromJson> FromJson for IndexMap<String, T> {
    fn from_json(value: Value) -> Result<IndexMap<String, T>, Malformed> {
        let mut all = IndexMap::new();
        for (key, value) in Fields::of(value)?.0 {
            let value = T::from_json(value).map_err(|error| error.under(&key))?;
            all.insert(key, value);
        }
        Ok(all)
    }
}

impl<T: FromJson> FromJson for BTreeMap<String, T> {
    fn from_json(value: Value) -> Result<BTreeMap<String, T>, Malformed> {
        IndexMap::from_json(value).map(|entries| entries.into_iter().collect())
    }
}

fn array(value: Value) -> Result<Vec<Value>, Malformed> {
    let Value::Array(items) = value else { return Err(Malformed::unexpected(&value, "a sequence")) };
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(PartialEq, Debug)]
    struct Sample {
        name: String,
        sizes: Vec<(u32, i64)>,
        tied: Option<usize>,
    }

    from_json!(Sample { name, tied } or_default { sizes = "all-sizes" });
    to_json!(Sample { name, sizes, tied });

    #[test]
    fn fields_are_found_by_name_and_others_passed_over() {
        let read = |value| Sample::from_json(value);
        let whole = Sample { name: "a".to_owned(), sizes: vec![(1, -2)], tied: None };
        assert_eq!(read(json!({ "all-sizes": [[1, -2]], "name": "a", "new": {} })).as_ref(), Ok(&whole));
        assert_eq!(whole.to_json(), json!({ "name": "a", "sizes": [[1, -2]], "tied": null }));
        assert_eq!(read(json!({ "name": "a", "tied": 3 })).unwrap().tied, Some(3));
    }

    #[test]
    fn errors_say_what_and_where() {
        let error = |value: Value| <Vec<Sample>>::from_json(value).unwrap_err();
        let missing = error(json!([{ "name": "a" }, {}]));
        assert_eq!((missing.path.as_str(), missing.message.as_str()), ("[1]", "missing field `name`"));
        let deep = error(json!([{ "name": "a", "all-sizes": [[1, 2], [1, "x"]] }]));
        assert_eq!(deep.path, "[0].all-sizes[1][1]");
        assert_eq!(deep.message, "invalid type: string \"x\", expected i64");
        assert_eq!(error(json!([{ "name": "a", "tied": -1 }])).path, "[0].tied");
        assert!(error(json!([{ "name": "a", "all-sizes": [[1]] }])).message.contains("length 1"));
    }
}
