//! What actions made, kept by key.
//!
//! [`ActionStore`] is what the executor needs of a cache; [`LocalStore`] is one in a local folder, [`LayeredStore`] puts
//! one in front of others, and behind the feature `remote` there is one on a server. A store never decides what a key
//! means and never runs a tool. `CACHE.md` beside the crate has the table of keys, the layout and the promises.

mod layered;
mod local;
mod maintain;
mod manifest;
mod open;
#[cfg(feature = "remote")]
mod remote;

use crate::action::Key;
use crate::error::Error;
use crate::outputs::{OutputFile, Outputs};

pub use layered::LayeredStore;
pub use local::LocalStore;
pub(crate) use maintain::is_abandoned;
pub use maintain::{CacheStat, GcReport};
pub use manifest::{Difference, Manifest, ManifestOutput, Miss};
pub use open::{cache_size, open_store, parse_size};
#[cfg(feature = "remote")]
pub use remote::RemoteStore;

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

    /// Keeps copies of files under the manifest's key, all or none of them.
    ///
    /// # Errors
    /// [`Error::Cache`] when the store cannot be written.
    fn publish(&self, manifest: &Manifest, files: &[OutputFile]) -> Result<(), Error>;

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

    /// What went wrong behind the store's back without stopping it, once; the executor tells it.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
