//! What kernels check at run time, for messages: a fault that one notes names an entry of [`Program::sites`].

use super::Program;

/// What a fault that a kernel notes is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Site {
    /// An index that an operator, described by this text, looks something up with.
    Index(String),
    /// A condition of the program, with the message of its failure.
    Assertion(String),
}

impl Site {
    /// The text of messages.
    pub fn text(&self) -> &str {
        match self {
            Site::Index(text) | Site::Assertion(text) => text,
        }
    }
}

impl Program {
    /// The entry for something that kernels check.
    pub(crate) fn site(&mut self, site: Site) -> usize {
        let known = self.sites.iter().position(|other| *other == site);
        known.unwrap_or_else(|| {
            self.sites.push(site);
            self.sites.len() - 1
        })
    }
}
