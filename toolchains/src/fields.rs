//! Structs as tables of TOML and JSON, by lists of their fields.
//!
//! Serde's derives do the same and more. They are not used here because everything that they need is compiled before any
//! build script of a user's is: longer than all that this crate reads is worth.

use serde_core::de::{DeserializeSeed, Deserializer, Error, Visitor};
use std::fmt;

/// The key of a field: its name, unless another is given.
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

/// `read_fields!(Type { a, b_c = "b-c" } or_default { d })`: reads a table that has the fields of the first list, may have
/// those of the second, and has no other.
macro_rules! read_fields {
    ($type:ident { $($field:ident $(= $key:literal)?),* $(,)? } $(or_default { $($other:ident $(= $name:literal)?),* $(,)? })?) => {
        impl<'de> serde_core::Deserialize<'de> for $type {
            fn deserialize<D: serde_core::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                const KEYS: &[&str] = &[
                    $($crate::fields::key!($field $($key)?),)*
                    $($($crate::fields::key!($other $($name)?),)*)?
                ];
                struct Table;
                impl<'de> serde_core::de::Visitor<'de> for Table {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("struct ", stringify!($type)))
                    }
                    fn visit_map<M: serde_core::de::MapAccess<'de>>(self, mut map: M) -> Result<$type, M::Error> {
                        $(let mut $field = None;)*
                        $($(let mut $other = None;)*)?
                        while let Some(key) = map.next_key_seed($crate::fields::Known(KEYS))? {
                            match key {
                                $($crate::fields::key!($field $($key)?) => $field = Some(map.next_value()?),)*
                                $($($crate::fields::key!($other $($name)?) => $other = Some(map.next_value()?),)*)?
                                _ => unreachable!("a key that is known is in a list"),
                            }
                        }
                        Ok($type {
                            $($field: $field.ok_or_else(|| <M::Error as serde_core::de::Error>::missing_field($crate::fields::key!($field $($key)?)))?,)*
                            $($($other: $other.unwrap_or_default(),)*)?
                        })
                    }
                }
                deserializer.deserialize_struct(stringify!($type), KEYS, Table)
            }
        }
    };
}

/// `write_fields!(Type { a, b })`: writes all fields of a struct, in this order.
macro_rules! write_fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl serde_core::Serialize for $type {
            fn serialize<S: serde_core::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $type { $($field),* } = self;
                let mut table = serializer.serialize_struct(stringify!($type), [$(stringify!($field)),*].len())?;
                $(serde_core::ser::SerializeStruct::serialize_field(&mut table, stringify!($field), $field)?;)*
                serde_core::ser::SerializeStruct::end(table)
            }
        }
    };
}

/// `text_type!(Type)`: a struct around a string, as that string.
macro_rules! text_type {
    ($type:ident) => {
        impl<'de> serde_core::Deserialize<'de> for $type {
            fn deserialize<D: serde_core::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                String::deserialize(deserializer).map($type)
            }
        }

        impl serde_core::Serialize for $type {
            fn serialize<S: serde_core::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

pub(crate) use {key, read_fields, text_type, write_fields};

/// One of these keys; any other is an error, which has the key's place.
pub(crate) struct Known(pub(crate) &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Known {
    type Value = &'static str;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Known {
    type Value = &'static str;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("field identifier")
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<&'static str, E> {
        let known = self.0.iter().find(|key| **key == text);
        known.copied().ok_or_else(|| E::unknown_field(text, self.0))
    }
}
