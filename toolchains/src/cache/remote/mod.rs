//! A store on a server, through OpenDAL: Redis, HTTP as bazel-remote speaks it, WebDAV, S3, Google's, Azure's.
//!
//! One object for each key, `v1/ac/<key>` (under such a name bazel-remote takes any content), written in one request:
//!
//! ```text
//! 8 bytes   length of the manifest, little endian
//! manifest  JSON, as in a local store
//! files     one after another, in the manifest's order
//! ```
//! What comes back is believed as little as what lies on a disk: every file is checked against its digest, and the
//! manifest against the key. No request outlasts its time; the first failure is the last request of the process.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opendal::{ErrorKind, Operator};
use tokio::runtime::Runtime;

use crate::action::Key;
use crate::cache::manifest::Manifest;
use crate::cache::{ActionStore, Fetched};
use crate::environment::Environment;
use crate::error::Error;
use crate::outputs::{OutputFile, Outputs};
use crate::temporary::temporary_folder;

/// How long a request may take. Caches that are slower than this are slower than compiling.
const PATIENCE: Duration = Duration::from_secs(10);
/// Larger results, such as weights, stay at home.
const LARGEST: u64 = 64 << 20;

/// Options of services that hold credentials, with the variables that they are taken from.
const CREDENTIALS: [(&str, &str); 3] = [
    ("username", "AOTI_CACHE_REMOTE_USERNAME"),
    ("password", "AOTI_CACHE_REMOTE_PASSWORD"),
    ("token", "AOTI_CACHE_REMOTE_TOKEN"),
];

mod address;

use address::Address;

/// A store on a server.
pub struct RemoteStore {
    operator: Operator,
    runtime: Runtime,
    environment: Environment,
}

impl RemoteStore {
    /// The store at a URL such as `redis://host:6379/prefix` or `s3://bucket/prefix`. Sends nothing yet.
    ///
    /// Credentials come from the environment only: `AOTI_CACHE_REMOTE_USERNAME`, `AOTI_CACHE_REMOTE_PASSWORD`,
    /// `AOTI_CACHE_REMOTE_TOKEN`, and each service's own (`AWS_ACCESS_KEY_ID`, …). A URL with credentials is refused:
    /// URLs end up in logs.
    ///
    /// # Errors
    /// A phrase that says what is wrong with the URL.
    pub fn connect(url: &str, environment: &Environment) -> Result<Self, String> {
        let Address { service, mut options } = Address::parse(url)?;
        for (option, name) in CREDENTIALS {
            if let Some(value) = environment.variable(name) {
                options.push((option.to_owned(), value.to_string_lossy().into_owned()));
            }
        }
        // Both are for the whole process; whoever was first is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        opendal::init_default_registry();
        opendal_http_transport_reqwest::install_default();
        let operator = Operator::via_iter(service, options).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        Ok(RemoteStore { operator, runtime, environment: environment.clone() })
    }

    /// Runs one request to its end, or until its time is up.
    fn request<T>(
        &self,
        action: &'static str,
        path: &str,
        work: impl Future<Output = opendal::Result<T>>,
    ) -> Result<Option<T>, Error> {
        let limited = async { tokio::time::timeout(PATIENCE, work).await };
        let source = match self.runtime.block_on(limited) {
            Ok(Ok(value)) => return Ok(Some(value)),
            Ok(Err(error)) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Ok(Err(error)) => io::Error::other(error.to_string()),
            Err(_) => io::Error::from(io::ErrorKind::TimedOut),
        };
        Err(Error::Cache { action, path: PathBuf::from(path), source })
    }
}

fn object_of(key: &Key) -> String {
    format!("v1/ac/{key}")
}

/// Takes an object apart. `Err` says what is wrong with it.
fn unpacked<'a>(bytes: &'a [u8], key: &Key, outputs: &[String]) -> Result<(Manifest, Vec<&'a [u8]>), String> {
    let cut_off = || "it is cut off".to_owned();
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut_off)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut_off())?;
    let (manifest, mut rest) = rest.split_at_checked(length).ok_or_else(cut_off)?;
    let manifest: Manifest =
        serde_json::from_slice(manifest).map_err(|error| format!("its manifest does not parse: {error}"))?;
    if !manifest.is_of(key, outputs) {
        return Err("its manifest is of something else".to_owned());
    }
    let mut files = Vec::new();
    for output in &manifest.outputs {
        let length = usize::try_from(output.bytes).map_err(|_| cut_off())?;
        let (file, left) = rest.split_at_checked(length).ok_or_else(cut_off)?;
        if blake3::hash(file).to_hex().as_str() != output.digest {
            return Err(format!("`{}` is not what was kept", output.name));
        }
        files.push(file);
        rest = left;
    }
    if rest.is_empty() { Ok((manifest, files)) } else { Err("it is longer than its files".to_owned()) }
}

impl ActionStore for RemoteStore {
    fn fetch(&self, key: &Key, outputs: &[String]) -> Result<Fetched, Error> {
        let object = object_of(key);
        let Some(buffer) = self.request("read", &object, self.operator.read(&object))? else {
            return Ok(Fetched::Miss);
        };
        let bytes = buffer.to_vec();
        let (manifest, contents) = match unpacked(&bytes, key, outputs) {
            Ok(found) => found,
            Err(why) => return Ok(Fetched::Corrupt(why)),
        };
        let fail = |source| Error::Cache { action: "unpack", path: PathBuf::from(&object), source };
        let folder = temporary_folder("remote", &self.environment).map_err(fail)?;
        let mut files = Vec::new();
        for (index, (output, content)) in manifest.outputs.iter().zip(contents).enumerate() {
            let path = folder.path().join(index.to_string());
            std::fs::write(&path, content).map_err(fail)?;
            let (name, digest) = (output.name.clone(), output.digest.clone());
            files.push(OutputFile { name, path, digest, bytes: output.bytes });
        }
        let mut found = Outputs::new(files, true, Some(folder));
        found.manifest = Some(Arc::new(manifest));
        Ok(Fetched::Hit(found))
    }

    fn publish(&self, manifest: &Manifest, files: &[OutputFile]) -> Result<(), Error> {
        if files.iter().map(|file| file.bytes).sum::<u64>() > LARGEST {
            return Ok(());
        }
        let object = object_of(&manifest.key);
        let text = serde_json::to_vec(manifest).expect("a manifest has only strings and numbers");
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text);
        for file in files {
            bytes.extend(file.read()?);
        }
        self.request("write", &object, self.operator.write(&object, bytes)).map(|_| ())
    }

    fn remove(&self, key: &Key) -> Result<(), Error> {
        let object = object_of(key);
        self.request("remove", &object, self.operator.delete(&object)).map(|_| ())
    }

    /// Two machines may make the same thing at once; what they keep is the same.
    fn exclusively(&self, _: &Key, _: &dyn Fn(), work: &mut dyn FnMut()) -> Result<(), Error> {
        work();
        Ok(())
    }
}
