//! The store that the environment asks for: a local folder with a size, read-only layers, a server.
//!
//! | variable | meaning |
//! |---|---|
//! | `AOTI_CACHE_DIR` | the local folder; by default `aoti` in the user's cache folder |
//! | `AOTI_CACHE_SIZE` | its size: `500M`, `20G`, `0` for no limit; by default `10G` |
//! | `AOTI_CACHE_LAYERS` | folders of the same layout that are only read, separated as in `PATH` |
//! | `AOTI_CACHE_REMOTE` | a server, `redis://host:6379/prefix`, `s3://bucket/prefix`, … (needs the feature `remote`, `CACHE.md` has all) |
//! | `AOTI_CACHE_REMOTE_WRITE` | `1` also keeps there what is made here; by default the server is only read |
//!
//! Nothing here fails a build: what cannot be used is told and left out.

use std::sync::Arc;

use crate::cache::{ActionStore, LayeredStore, LocalStore};
use crate::environment::Environment;

/// The size of the local folder when nothing else is said.
const DEFAULT_SIZE: u64 = 10 << 30;

/// The store that the environment asks for; `None` when it names no folder for caches.
pub fn open_store(environment: &Environment) -> Option<Arc<dyn ActionStore>> {
    let mut warnings = Vec::new();
    let text = |name: &str| environment.variable(name).map(|value| value.to_string_lossy().into_owned());
    let limit = cache_size(environment).unwrap_or_else(|message| {
        warnings.push(message);
        Some(DEFAULT_SIZE)
    });
    let local = LocalStore::new(environment.cache_directory()?);
    let local = match limit {
        Some(bytes) => local.with_limit(bytes),
        None => local,
    };
    let mut store = LayeredStore::new(Arc::new(local));
    if let Some(layers) = environment.variable("AOTI_CACHE_LAYERS") {
        for folder in std::env::split_paths(layers).filter(|folder| !folder.as_os_str().is_empty()) {
            let folder = environment.directory().join(folder);
            let name = folder.display().to_string();
            store = store.with_layer(name, Arc::new(LocalStore::read_only(folder)), false);
        }
    }
    if let Some(url) = text("AOTI_CACHE_REMOTE") {
        let writable = text("AOTI_CACHE_REMOTE_WRITE").is_some_and(|value| value == "1");
        match remote(&url, environment) {
            Ok(server) => store = store.with_layer(without_secrets(&url), server, writable),
            Err(message) => warnings.push(format!("going on without the remote cache: {message}")),
        }
    }
    let store = warnings.into_iter().fold(store, LayeredStore::with_warning);
    Some(Arc::new(store))
}

/// The size that the local folder keeps to, by `AOTI_CACHE_SIZE`; `None` for no limit.
///
/// # Errors
/// A phrase that says what the variable is instead.
pub fn cache_size(environment: &Environment) -> Result<Option<u64>, String> {
    let Some(text) = environment.variable("AOTI_CACHE_SIZE") else { return Ok(Some(DEFAULT_SIZE)) };
    let text = text.to_string_lossy();
    let bytes = parse_size(&text)
        .ok_or_else(|| format!("`AOTI_CACHE_SIZE` is `{text}`, not a size such as `20G`"))?;
    Ok((bytes > 0).then_some(bytes))
}

#[cfg(feature = "remote")]
fn remote(url: &str, environment: &Environment) -> Result<Arc<dyn ActionStore>, String> {
    let server = crate::cache::RemoteStore::connect(url, environment)?;
    Ok(Arc::new(server))
}

#[cfg(not(feature = "remote"))]
fn remote(_: &str, _: &Environment) -> Result<Arc<dyn ActionStore>, String> {
    Err("`AOTI_CACHE_REMOTE` is set, and this build has no support for servers (feature `remote`)".to_owned())
}

/// A URL as it may be shown: without what stands before an `@`.
fn without_secrets(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => url.to_owned(),
    }
}

/// Reads a number of bytes: digits with `K`, `M`, `G` or `T` behind them, in powers of 1024.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches(['B', 'b']).trim_end_matches('i');
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text.get(digits.len()..)?.to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_powers_of_1024() {
        for (text, bytes) in [("0", 0), ("512", 512), ("20G", 20 << 30), ("1 KiB", 1024), ("3mb", 3 << 20)] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for bad in ["", "G", "-1", "1X", "99999999999T", "1.5G"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(without_secrets("redis://user:word@host:1/p"), "redis://host:1/p");
        assert_eq!(without_secrets("s3://bucket/p"), "s3://bucket/p");
    }
}
