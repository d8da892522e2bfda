//! Upkeep of a local store: how big it is, emptying it, and keeping it below a size.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::beneath;
use crate::cache::local::{LocalStore, cache_error};
use crate::error::Error;
use crate::lock::FileLock;
use crate::system;

/// How big a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStat {
    /// Number of results kept.
    pub entries: u64,
    /// Their size in bytes, manifests included.
    pub bytes: u64,
}

/// What a collection did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GcReport {
    /// Results removed.
    pub removed_entries: u64,
    /// Bytes freed.
    pub freed_bytes: u64,
    /// What is left.
    pub kept: CacheStat,
}

/// Entries used this recently stay: a build that is running may be about to read them.
const GRACE: Duration = Duration::from_secs(10 * 60);
/// Half-written entries this old belong to a process that died.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl LocalStore {
    /// Counts entries and bytes. A store that was never written has none.
    ///
    /// # Errors
    /// [`Error::Cache`] when it cannot be read.
    pub fn stat(&self) -> Result<CacheStat, Error> {
        let entries = self.entries()?;
        Ok(total(&entries))
    }

    /// Removes everything that the project keeps in the folder, and nothing else that may be there.
    ///
    /// # Errors
    /// [`Error::Cache`] when something cannot be removed.
    pub fn clear(&self) -> Result<CacheStat, Error> {
        let removed = self.stat()?;
        if self.is_read_only() {
            return Ok(CacheStat::default());
        }
        for name in ["actions-v1", "latest-v1", "probes-v1", "probes-v2", "tmp-v1", "locks-v1"] {
            let folder = self.root().join(name);
            match std::fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(cache_error("remove", &folder)(error));
                }
                _ => {}
            }
        }
        Ok(removed)
    }

    /// Removes entries, the longest unused first, until no more than `max_bytes` are left. Entries used in the last ten
    /// minutes stay in any case. Also sweeps up after processes that died.
    ///
    /// # Errors
    /// [`Error::Cache`] when the store cannot be read or an entry cannot be removed.
    pub fn gc(&self, max_bytes: u64) -> Result<GcReport, Error> {
        self.gc_with_grace(max_bytes, GRACE)
    }

    /// [`gc`](Self::gc) with another period in which used entries stay.
    ///
    /// # Errors
    /// As [`gc`](Self::gc).
    pub fn gc_with_grace(&self, max_bytes: u64, grace: Duration) -> Result<GcReport, Error> {
        let mut entries = self.entries()?;
        let now = SystemTime::now();
        entries.sort_by_key(|entry| (std::cmp::Reverse(age_of(entry.used, now)), entry.path.clone()));
        let mut report = GcReport { kept: total(&entries), ..GcReport::default() };
        for entry in entries {
            let age = age_of(entry.used, now);
            if report.kept.bytes <= max_bytes || age < grace {
                continue;
            }
            // Renamed first, so that nobody finds half an entry.
            let gone = self.temporary()?;
            match system::rename(&entry.path, &gone.path().join("gone")) {
                Ok(()) => {}
                // Another collection was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(cache_error("remove", &entry.path)(error)),
            }
            report.removed_entries += 1;
            report.freed_bytes += entry.bytes;
            report.kept.entries -= 1;
            report.kept.bytes -= entry.bytes;
        }
        self.sweep(now);
        Ok(report)
    }

    /// Removes abandoned half-written entries and unused lock files. What cannot be removed waits for the next time.
    fn sweep(&self, now: SystemTime) {
        for path in children(&self.aside()).unwrap_or_default() {
            if is_abandoned(&path, now) {
                let _ = std::fs::remove_dir_all(&path);
            }
        }
        for path in children(&self.locks()).unwrap_or_default() {
            let Ok(lock) = beneath::open_file(&path) else { continue };
            let mut lock = FileLock::of(lock);
            // Whoever opens the file between our lock and its removal builds beside the next one: repeated work, no harm.
            if is_abandoned(&path, now) && is_free(&mut lock) {
                let _ = std::fs::remove_file(&path);
            }
        }
    }

    fn entries(&self) -> Result<Vec<Entry>, Error> {
        let mut found = Vec::new();
        let actions = self.actions();
        for bucket in children(&actions).map_err(cache_error("read", &actions))? {
            for path in children(&bucket).map_err(cache_error("read", &bucket))? {
                let mut entry = Entry { path, bytes: 0, used: SystemTime::UNIX_EPOCH };
                for file in children(&entry.path).map_err(cache_error("read", &entry.path))? {
                    let Ok(metadata) = std::fs::symlink_metadata(&file) else { continue };
                    entry.bytes += metadata.len();
                    if file.ends_with("used") {
                        entry.used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    }
                }
                found.push(entry);
            }
        }
        Ok(found)
    }
}

/// Whether a file or folder is so old that nobody is at work on it any more.
pub(crate) fn is_abandoned(path: &Path, now: SystemTime) -> bool {
    let modified = std::fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| age_of(time, now) > ABANDONED)
}

/// How long ago a time was. One that is well ahead of us was written under a clock that has been set back since, and
/// says nothing: such a file counts as old, for otherwise it would stay for ever.
fn age_of(time: SystemTime, now: SystemTime) -> Duration {
    match now.duration_since(time) {
        Ok(age) => age,
        Err(ahead) if ahead.duration() > ABANDONED => Duration::MAX,
        Err(_) => Duration::ZERO,
    }
}

/// The size that a store keeps to, looked after by whoever writes to it.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    max_bytes: u64,
    /// Bytes written by this process since it last looked; the first write always looks.
    since: Arc<AtomicU64>,
}

impl Limit {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Limit { max_bytes, since: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// Counts what was written, and collects each time a twentieth of the limit has come together. Failure waits for the
    /// next time: the cache is only larger meanwhile.
    pub(crate) fn published(&self, store: &LocalStore, bytes: u64) {
        let before = self.since.load(Ordering::Relaxed);
        let written = before.saturating_add(bytes);
        if written < self.max_bytes / 20 {
            self.since.store(written, Ordering::Relaxed);
            return;
        }
        self.since.store(0, Ordering::Relaxed);
        let path = store.locks().join("gc");
        let Ok(lock) = beneath::open_to_write(&path, true) else { return };
        if let Ok(Some(_held)) = FileLock::of(lock).try_take() {
            let _ = store.gc(self.max_bytes);
        }
    }
}

fn is_free(lock: &mut FileLock) -> bool {
    lock.try_take().is_ok_and(|held| held.is_some())
}

fn total(entries: &[Entry]) -> CacheStat {
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    CacheStat { entries: entries.len() as u64, bytes }
}

/// The children of a folder in order; none if there is no folder, or if it is gone by now. What a link leads to is not ours
/// to count or to remove.
fn children(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if std::fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_symlink()) {
        return Ok(Vec::new());
    }
    let listing = match std::fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut paths = listing.map(|child| child.map(|child| child.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
