//! What actions made, kept by key.
//!
//! [`ActionStore`] is what the executor needs of a cache; [`LocalStore`] is one in a local folder. A store never
//! decides what a key means and never runs a tool.

mod local;
mod maintain;
mod manifest;

use crate::action::{Action, Key, KeyField};
use crate::error::Error;
use crate::outputs::{OutputFile, Outputs};

pub use local::LocalStore;
pub use maintain::{CacheStat, GcReport};
pub use manifest::{Difference, Manifest, ManifestOutput, Miss};

/// What a look into a store found.
#[derive(Debug)]
pub enum Fetched {
    /// The outputs, each of which has been checked against its digest.
    Hit(Outputs),
    /// Nothing under this key.
    Miss,
    /// Something that does not hold what its manifest says; to be removed under the key's lock.
    Corrupt(String),
}

/// A place that keeps what actions made.
///
/// Errors never fail a build: the executor warns once and works without the store.
pub trait ActionStore: Send + Sync {
    /// Looks a key up and checks what is there.
    ///
    /// # Errors
    /// [`Error::Cache`] when the store cannot be read.
    fn fetch(&self, key: &Key, outputs: &[String]) -> Result<Fetched, Error>;

    /// Keeps copies of files under a key, all or none of them.
    ///
    /// # Errors
    /// [`Error::Cache`] when the store cannot be written.
    fn publish(
        &self,
        key: &Key,
        action: &Action,
        fields: &[KeyField],
        files: &[OutputFile],
    ) -> Result<(), Error>;

    /// Removes what is under a key.
    ///
    /// # Errors
    /// [`Error::Cache`].
    fn remove(&self, key: &Key) -> Result<(), Error>;

    /// Calls `work` while no other process or thread works on the same key; `waiting` is called first if that takes a
    /// while. If this returns an error, `work` was not called. A process that dies gives its turn back.
    ///
    /// # Errors
    /// [`Error::Cache`] when there can be no lock.
    fn exclusively(&self, key: &Key, waiting: &dyn Fn(), work: &mut dyn FnMut()) -> Result<(), Error>;
}
