//! An alternative as plain data.

use std::fmt;

/// What is done if a record says so: a word and its parameters, as one line of text. The stage that offers it knows what it
/// means; here it is only compared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Config(String);

impl Config {
    /// A word without parameters, or with those that are part of the text.
    pub fn new(text: impl Into<String>) -> Config {
        Config(text.into())
    }

    /// This with one more parameter.
    #[must_use]
    pub fn with(self, parameter: impl fmt::Display) -> Config {
        Config(format!("{} {parameter}", self.0))
    }

    /// The whole line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
