//! A store in a local folder.
//!
//! ```text
//! <root>/CACHEDIR.TAG
//! <root>/actions-v1/<2 digits>/<key>/{manifest.json,0,1,…,used}   one entry; the time of `used` is its last use
//! <root>/locks-v1/<key>                                           locked while somebody makes the entry
//! <root>/latest-v1/<digest of label and target>.json              manifest of the last entry made for a label
//! <root>/tmp-v1/                                                  entries being written
//! ```
//! An entry is written aside and renamed in one step. Presence proves nothing: every fetch checks digests.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::action::{Action, Key};
use crate::beneath;
use crate::cache::maintain::Limit;
use crate::cache::manifest::{Manifest, Miss, differences};
use crate::cache::{ActionStore, Fetched};
use crate::environment::Environment;
use crate::error::Error;
use crate::lock::FileLock;
use crate::outputs::{OutputFile, Outputs, digest_of};
use crate::system;
use crate::temporary::TemporaryFolder;

/// The folders of a store.
const ACTIONS: &str = "actions-v1";
const LOCKS: &str = "locks-v1";
const LATEST: &str = "latest-v1";
const ASIDE: &str = "tmp-v1";

/// How long a lock is tried for before the wait is announced.
const SHORT_WAIT: Duration = Duration::from_millis(150);

/// Longer manifests are not of ours.
const LONGEST_MANIFEST: u64 = 64 << 20;

const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
    # This folder holds results of cargo-aoti that can be made again.\n\
    # See https://bford.info/cachedir/\n";

/// A store in a local folder, safe for any number of processes at once.
#[derive(Debug, Clone)]
pub struct LocalStore {
    root: PathBuf,
    read_only: bool,
    limit: Option<Limit>,
}

impl LocalStore {
    /// The store in this folder, which need not exist and is made at the first write.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        LocalStore { root: root.into(), read_only: false, limit: None }
    }

    /// The store in this folder, of which nothing is ever written: no entry, no lock, no time of use.
    pub fn read_only(root: impl Into<PathBuf>) -> Self {
        LocalStore { read_only: true, ..LocalStore::new(root) }
    }

    /// The same store, which keeps itself below a size by [`gc`](LocalStore::gc) now and then as it is written to.
    #[must_use]
    pub fn with_limit(self, max_bytes: u64) -> Self {
        LocalStore { limit: Some(Limit::new(max_bytes)), ..self }
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Why this action is, or would be, run.
    ///
    /// # Errors
    /// [`Error::Cache`] when the store cannot be read.
    pub fn why(&self, action: &Action, environment: &Environment) -> Result<Miss, Error> {
        let fields = action.key_fields(environment);
        let key = crate::action::key_of(&fields);
        if let Fetched::Hit(_) = self.fetch(&key, &action.outputs)? {
            return Ok(Miss::Hit);
        }
        let latest = self.latest(&action.label, action.target.as_str());
        let Ok(text) = beneath::read_file(&latest, LONGEST_MANIFEST) else { return Ok(Miss::NeverBuilt) };
        let Ok(before) = serde_json::from_slice::<Manifest>(&text) else { return Ok(Miss::NeverBuilt) };
        if before.key == key {
            return Ok(Miss::Evicted);
        }
        Ok(Miss::Changed(differences(&before.fields, &fields)))
    }

    pub(crate) fn actions(&self) -> PathBuf {
        self.root.join(ACTIONS)
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.root.join(LOCKS)
    }

    pub(crate) fn aside(&self) -> PathBuf {
        self.root.join(ASIDE)
    }

    fn entry(&self, key: &Key) -> PathBuf {
        self.actions().join(bucket_of(key)).join(key.as_str())
    }

    fn latest(&self, label: &str, target: &str) -> PathBuf {
        let name = blake3::hash(format!("{target}\0{label}").as_bytes()).to_hex();
        self.root.join(LATEST).join(format!("{name}.json"))
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Makes the root with its tag, which keeps backups away.
    fn prepare(&self) -> Result<(), Error> {
        let tag = self.root.join("CACHEDIR.TAG");
        if std::fs::symlink_metadata(&tag).is_err() {
            std::fs::create_dir_all(&self.root).map_err(cache_error("make", &self.root))?;
            std::fs::write(&tag, TAG).map_err(cache_error("write", &tag))?;
        }
        Ok(())
    }

    /// Makes a folder of the store. Who shares the store cannot have us write elsewhere through a link.
    fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        beneath::make_folder(&self.root, name).map_err(cache_error("make", &self.root.join(name)))
    }

    fn write_entry(&self, folder: &Path, manifest: &Manifest, files: &[OutputFile]) -> io::Result<()> {
        for (index, file) in files.iter().enumerate() {
            let to = folder.join(index.to_string());
            // A link costs nothing; across file systems it must be a copy.
            if std::fs::hard_link(&file.path, &to).is_err() {
                std::fs::copy(&file.path, &to)?;
            }
        }
        std::fs::write(folder.join("used"), b"")?;
        std::fs::write(folder.join("manifest.json"), serde_json::to_vec_pretty(manifest)?)
    }

    pub(crate) fn temporary(&self) -> Result<TemporaryFolder, Error> {
        let aside = self.folder(ASIDE)?;
        TemporaryFolder::new_in(&aside, "").map_err(cache_error("write in", &aside))
    }
}

impl ActionStore for LocalStore {
    fn fetch(&self, key: &Key, outputs: &[String]) -> Result<Fetched, Error> {
        let entry = self.entry(key);
        let manifest = entry.join("manifest.json");
        let text = match beneath::read_file(&manifest, LONGEST_MANIFEST) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !entry.exists() => {
                return Ok(Fetched::Miss);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Fetched::Corrupt("it has no manifest".to_owned()));
            }
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge) =>
            {
                return Ok(Fetched::Corrupt(format!("its manifest cannot be read: {error}")));
            }
            Err(source) => return Err(Error::Cache { action: "read", path: manifest, source }),
        };
        let manifest: Manifest = match serde_json::from_slice(&text) {
            Ok(manifest) => manifest,
            Err(error) => return Ok(Fetched::Corrupt(format!("its manifest does not parse: {error}"))),
        };
        if !manifest.is_of(key, outputs) {
            return Ok(Fetched::Corrupt("its manifest is of something else".to_owned()));
        }
        let mut files = Vec::new();
        for (index, output) in manifest.outputs.iter().cloned().enumerate() {
            let path = entry.join(index.to_string());
            // The length first: a longer file is not read to its end.
            let is_same = beneath::length(&path).is_ok_and(|length| length == output.bytes)
                && digest_of(&path).is_ok_and(|found| found == (output.digest.clone(), output.bytes));
            if !is_same {
                return Ok(Fetched::Corrupt(format!("`{}` is not what was kept", output.name)));
            }
            files.push(OutputFile { name: output.name, path, digest: output.digest, bytes: output.bytes });
        }
        if !self.read_only {
            touch(&entry.join("used"));
        }
        let mut outputs = Outputs::new(files, true, None);
        outputs.manifest = Some(Arc::new(manifest));
        Ok(Fetched::Hit(outputs))
    }

    fn publish(&self, manifest: &Manifest, files: &[OutputFile]) -> Result<(), Error> {
        if self.read_only {
            return Ok(());
        }
        self.prepare()?;
        let aside = self.temporary()?;
        let written = aside.path().join("entry");
        std::fs::create_dir(&written).map_err(cache_error("make", &written))?;
        self.write_entry(&written, manifest, files).map_err(cache_error("write", &written))?;

        let entry = self.entry(&manifest.key);
        self.folder(&format!("{ACTIONS}/{}", bucket_of(&manifest.key)))?;
        match system::rename(&written, &entry) {
            Ok(()) => {}
            // Somebody without our lock was faster; one result is as good as the other.
            Err(_) if entry.join("manifest.json").exists() => {}
            Err(source) => return Err(Error::Cache { action: "make", path: entry, source }),
        }

        let latest = self.latest(&manifest.label, &manifest.target);
        self.folder(LATEST)?;
        let copy = aside.path().join("latest");
        let text = serde_json::to_vec_pretty(manifest).expect("a manifest has only strings and numbers");
        std::fs::write(&copy, text).map_err(cache_error("write", &copy))?;
        system::rename(&copy, &latest).map_err(cache_error("write", &latest))?;
        if let Some(limit) = &self.limit {
            limit.published(self, files.iter().map(|file| file.bytes).sum());
        }
        Ok(())
    }

    fn remove(&self, key: &Key) -> Result<(), Error> {
        let entry = self.entry(key);
        if self.read_only || !entry.exists() {
            return Ok(());
        }
        let aside = self.temporary()?;
        system::rename(&entry, &aside.path().join("gone")).map_err(cache_error("remove", &entry))
    }

    fn exclusively(&self, key: &Key, waiting: &dyn Fn(), work: &mut dyn FnMut()) -> Result<(), Error> {
        if self.read_only {
            work();
            return Ok(());
        }
        self.prepare()?;
        let path = self.folder(LOCKS)?.join(key.as_str());
        let lock = beneath::open_to_write(&path, true).map_err(cache_error("lock", &path))?;
        let mut lock = FileLock::of(lock);
        let begun = Instant::now();
        while begun.elapsed() < SHORT_WAIT {
            match lock.try_take() {
                Ok(Some(_held)) => {
                    work();
                    return Ok(());
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(source) => return Err(Error::Cache { action: "lock", path, source }),
            }
        }
        waiting();
        loop {
            match lock.take() {
                Ok(_held) => {
                    work();
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Cache { action: "lock", path, source }),
            }
        }
    }
}

/// The folder among the entries that a key's is in.
fn bucket_of(key: &Key) -> &str {
    key.as_str().get(..2).unwrap_or("00")
}

pub(crate) fn cache_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Cache { action, path, source }
}

/// Notes a use. A store that cannot be written still serves.
fn touch(path: &Path) {
    if let Ok(file) = beneath::open_to_write(path, false) {
        let _ = file.set_modified(SystemTime::now());
    }
}
