//! A store in front of others: what is not in the first is looked for in the layers behind it, such as a folder that a
//! CI job left or a team's server.
//!
//! A layer that fails is left alone for the rest of the process and told once; builds never wait for it again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::action::Key;
use crate::cache::manifest::Manifest;
use crate::cache::{ActionStore, Fetched};
use crate::error::Error;
use crate::outputs::{OutputFile, Outputs};

/// A store with layers behind it.
pub struct LayeredStore {
    upper: Arc<dyn ActionStore>,
    layers: Vec<Layer>,
    /// Keys that no layer had, so that a second look under the key's lock asks no server again.
    missed: Mutex<BTreeSet<Key>>,
    warnings: Mutex<Vec<String>>,
}

struct Layer {
    name: String,
    store: Arc<dyn ActionStore>,
    writable: bool,
    failed: AtomicBool,
}

impl LayeredStore {
    /// This store, with no layers yet.
    pub fn new(upper: Arc<dyn ActionStore>) -> Self {
        LayeredStore { upper, layers: Vec::new(), missed: Mutex::default(), warnings: Mutex::default() }
    }

    /// Adds a layer behind all others. Results found in it are copied into the first store; if it is `writable`, what
    /// is made is also kept in it. `name` is for messages.
    #[must_use]
    pub fn with_layer(
        mut self,
        name: impl Into<String>,
        store: Arc<dyn ActionStore>,
        writable: bool,
    ) -> Self {
        self.layers.push(Layer { name: name.into(), store, writable, failed: AtomicBool::new(false) });
        self
    }

    /// Says something at the next opportunity.
    #[must_use]
    pub fn with_warning(self, message: impl Into<String>) -> Self {
        self.warn(message.into());
        self
    }

    fn warn(&self, message: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    fn fail(&self, layer: &Layer, error: &Error) {
        if !layer.failed.swap(true, Ordering::Relaxed) {
            let source =
                std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
            self.warn(format!("going on without the cache `{}`: {error}{source}", layer.name));
        }
    }

    fn usable(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| !layer.failed.load(Ordering::Relaxed))
    }

    fn fetch_from_layers(&self, key: &Key, outputs: &[String]) -> Option<Outputs> {
        if self.missed.lock().unwrap_or_else(PoisonError::into_inner).contains(key) {
            return None;
        }
        for layer in self.usable() {
            match layer.store.fetch(key, outputs) {
                Ok(Fetched::Hit(found)) => return Some(self.taken_over(key, outputs, found)),
                Ok(Fetched::Miss) => {}
                Ok(Fetched::Corrupt(why)) => {
                    self.warn(format!("a result in the cache `{}` is spoiled: {why}", layer.name));
                    if layer.writable {
                        let _ = layer.store.remove(key);
                    }
                }
                Err(error) => self.fail(layer, &error),
            }
        }
        self.missed.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        None
    }

    /// Copies a layer's result into the first store, so that it is there when the layer is gone.
    fn taken_over(&self, key: &Key, outputs: &[String], found: Outputs) -> Outputs {
        let Some(manifest) = found.manifest.clone() else { return found };
        if self.upper.publish(&manifest, &found.files).is_err() {
            return found; // the first store tells its troubles itself when it is written to
        }
        match self.upper.fetch(key, outputs) {
            Ok(Fetched::Hit(own)) => own,
            Ok(Fetched::Miss | Fetched::Corrupt(_)) | Err(_) => found,
        }
    }
}

impl ActionStore for LayeredStore {
    fn fetch(&self, key: &Key, outputs: &[String]) -> Result<Fetched, Error> {
        let own = self.upper.fetch(key, outputs);
        if !matches!(own, Ok(Fetched::Miss) | Err(_)) {
            return own;
        }
        match self.fetch_from_layers(key, outputs) {
            Some(found) => Ok(Fetched::Hit(found)),
            None => own,
        }
    }

    fn publish(&self, manifest: &Manifest, files: &[OutputFile]) -> Result<(), Error> {
        let own = self.upper.publish(manifest, files);
        for layer in self.usable().filter(|layer| layer.writable) {
            if let Err(error) = layer.store.publish(manifest, files) {
                self.fail(layer, &error);
            }
        }
        own
    }

    fn remove(&self, key: &Key) -> Result<(), Error> {
        self.upper.remove(key)
    }

    fn exclusively(&self, key: &Key, waiting: &dyn Fn(), work: &mut dyn FnMut()) -> Result<(), Error> {
        self.upper.exclusively(key, waiting, work)
    }

    fn warnings(&self) -> Vec<String> {
        let mut all = std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        all.extend(self.upper.warnings());
        all
    }
}
