//! A call of a tool as a value: inputs by content, arguments by relative names, outputs by name.
//!
//! Owns what an action *is* and the key that stands for it. Runs nothing (see [`executor`](crate::executor)) and
//! stores nothing (see [`cache`](crate::cache)).

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde_core::ser::{Serialize, SerializeStruct, Serializer};

use crate::beneath::is_plain_name;
use crate::environment::Environment;
use crate::error::InputError;
use crate::fields::{read_fields, text_type};
use crate::find::Launch;
use crate::probe::Identity;
use crate::target::Target;

/// Version of everything that keys and manifests mean; part of every key.
pub(crate) const SCHEMA: &str = "1";

/// A tool as actions need it.
#[derive(Debug, Clone)]
pub struct Tool {
    /// How it is started; only its arguments are part of keys.
    pub launch: Launch,
    /// What stands for it in keys.
    pub identity: Identity,
}

/// Where the bytes of an input are.
#[derive(Debug, Clone)]
pub enum Content {
    /// In memory.
    Bytes(Arc<[u8]>),
    /// In a file, which is linked to, not copied: it may be hundreds of megabytes.
    File(FileContent),
}

/// A file with the digest of its content.
#[derive(Debug, Clone)]
pub struct FileContent {
    path: PathBuf,
    digest: String,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileContent {
    /// Takes the digest of a file by reading it.
    ///
    /// # Errors
    /// [`InputError::Unreadable`].
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let unreadable = |source| InputError::Unreadable { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file).map_err(unreadable)?;
        Self::with_digest(path, hasher.finalize().to_hex().as_str())
    }

    /// Takes a file whose content is known to have this BLAKE3 digest (64 hexadecimal digits).
    ///
    /// # Errors
    /// [`InputError::Unreadable`] when it is not there.
    pub fn with_digest(path: &Path, digest: &str) -> Result<Self, InputError> {
        let unreadable = |source| InputError::Unreadable { path: path.to_owned(), source };
        let path = std::fs::canonicalize(path).map_err(unreadable)?;
        let metadata = std::fs::metadata(&path).map_err(unreadable)?;
        let modified = metadata.modified().ok();
        Ok(FileContent { path, digest: digest.to_owned(), bytes: metadata.len(), modified })
    }

    /// The file, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The digest of its content.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Refuses a file that was written since its digest was taken.
    pub(crate) fn check_unchanged(&self) -> Result<(), InputError> {
        let changed = || InputError::Changed { path: self.path.clone() };
        let metadata = std::fs::metadata(&self.path).map_err(|_| changed())?;
        let same = metadata.len() == self.bytes && metadata.modified().ok() == self.modified;
        if same { Ok(()) } else { Err(changed()) }
    }
}

/// One input of an action.
#[derive(Debug, Clone)]
pub struct Input {
    /// Relative name, with `/`, that the tool sees.
    pub name: String,
    /// Its bytes.
    pub content: Content,
}

impl Input {
    /// An input in memory.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Input { name: name.into(), content: Content::Bytes(bytes.into()) }
    }

    /// An input of text in memory.
    pub fn text(name: impl Into<String>, text: &str) -> Self {
        Self::bytes(name, text.as_bytes())
    }

    /// An input in a file.
    pub fn file(name: impl Into<String>, file: FileContent) -> Self {
        Input { name: name.into(), content: Content::File(file) }
    }

    fn digest(&self) -> String {
        match &self.content {
            Content::Bytes(bytes) => blake3::hash(bytes).to_hex().to_string(),
            Content::File(file) => file.digest.clone(),
        }
    }
}

/// A call of a tool. It runs in a fresh folder that holds exactly the inputs, so that names in arguments are relative
/// and the outputs do not depend on where the build happens.
#[derive(Debug, Clone)]
pub struct Action {
    /// What is made, for people: `digits: kernel softmax_0 at x86-64-v4`. Also finds the previous build in `cache why`.
    pub label: String,
    /// The tool.
    pub tool: Tool,
    /// The target of what is made.
    pub target: Target,
    /// What it reads.
    pub inputs: Vec<Input>,
    /// Arguments; `{directory}` stands for the folder that it runs in.
    pub arguments: Vec<String>,
    /// Relative names of what it writes.
    pub outputs: Vec<String>,
    /// The result depends on the processor that compiles.
    pub host_only: bool,
    /// It may be started through `AOTI_COMPILER_LAUNCHER`: it compiles, and makes one file of others.
    pub distributable: bool,
}

/// Work of the caller's own whose result is kept like an action's: it follows from the ingredients alone.
#[derive(Debug, Clone)]
pub struct Work {
    /// As of an [`Action`].
    pub label: String,
    /// The target of what is made.
    pub target: Target,
    /// What the result depends on, each by a name and as text.
    pub ingredients: Vec<(&'static str, String)>,
    /// Relative names of what it writes.
    pub outputs: Vec<String>,
}

/// What the executor and stores need to know of something that is made.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) label: &'a str,
    pub(crate) target: &'a Target,
    pub(crate) outputs: &'a [String],
}

/// The content key of an action: 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

text_type!(Key);

impl Key {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// One ingredient of a key, kept in manifests so that a miss can name what changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyField {
    /// What it is: `arguments`, `tool`, `input kernel.cpp`, …
    pub name: String,
    /// Digest of its value.
    pub digest: String,
    /// The value itself where it is short text.
    pub text: Option<String>,
}

read_fields!(KeyField { name, digest } or_default { text });

impl Serialize for KeyField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let KeyField { name, digest, text } = self;
        let mut table = serializer.serialize_struct("KeyField", 2 + usize::from(text.is_some()))?;
        table.serialize_field("name", name)?;
        table.serialize_field("digest", digest)?;
        if let Some(text) = text {
            table.serialize_field("text", text)?;
        }
        table.end()
    }
}

impl Work {
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { label: &self.label, target: &self.target, outputs: &self.outputs }
    }

    /// The ingredients of the key. That there is no tool among them keeps it apart from all actions.
    pub(crate) fn key_fields(&self) -> Vec<KeyField> {
        let fixed = [
            text_field("schema", SCHEMA),
            text_field("version", env!("CARGO_PKG_VERSION")),
            text_field("target", self.target.as_str()),
            text_field("outputs", &self.outputs.join("\0")),
        ];
        let own = self.ingredients.iter().map(|(name, text)| text_field(name, text));
        fixed.into_iter().chain(own).collect()
    }
}

impl Action {
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { label: &self.label, target: &self.target, outputs: &self.outputs }
    }

    /// The ingredients of the key: schema, this crate's version, tool, target, arguments, influential variables, host
    /// processor where it matters, names of outputs, and every input.
    pub fn key_fields(&self, environment: &Environment) -> Vec<KeyField> {
        let mut fields = vec![
            text_field("schema", SCHEMA),
            text_field("version", env!("CARGO_PKG_VERSION")),
            text_field("tool", self.tool.identity.as_str()),
            text_field("tool arguments", &self.tool.launch.arguments.join("\0")),
            text_field("target", self.target.as_str()),
            text_field("arguments", &self.arguments.join("\0")),
            text_field("variables", &environment.influences()),
            text_field("outputs", &self.outputs.join("\0")),
        ];
        if self.host_only {
            fields.push(text_field("host processor", environment.host_processor()));
        }
        fields.extend(self.inputs.iter().map(|input| KeyField {
            name: format!("input {}", input.name),
            digest: input.digest(),
            text: None,
        }));
        fields
    }

    /// The key over these fields.
    pub fn key(&self, environment: &Environment) -> Key {
        key_of(&self.key_fields(environment))
    }

    /// Refuses names that would leave the folder, be taken for options, or collide.
    pub(crate) fn check_names(&self) -> Result<(), InputError> {
        let mut seen = BTreeSet::new();
        for name in self.inputs.iter().map(|input| &input.name).chain(&self.outputs) {
            if !is_plain_name(name) {
                return Err(InputError::Name { name: name.clone() });
            }
            if !seen.insert(name) {
                return Err(InputError::Duplicate { name: name.clone() });
            }
        }
        Ok(())
    }
}

/// The key over fields, each part with its length so that none can pass for another.
pub(crate) fn key_of(fields: &[KeyField]) -> Key {
    let mut hasher = blake3::Hasher::new();
    for field in fields {
        for part in [&field.name, &field.digest] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
    }
    Key(hasher.finalize().to_hex().to_string())
}

fn text_field(name: &str, text: &str) -> KeyField {
    let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    KeyField { name: name.to_owned(), digest, text: Some(text.replace('\0', " ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action() -> Action {
        let launch = Launch::of("/bin/tool");
        Action {
            label: "a thing".to_owned(),
            tool: Tool { launch, identity: Identity("id".to_owned()) },
            target: Target::new("x86_64-unknown-linux-gnu"),
            inputs: vec![Input::text("a.cpp", "int a;")],
            arguments: vec!["-c".to_owned(), "a.cpp".to_owned()],
            outputs: vec!["a.o".to_owned()],
            host_only: false,
            distributable: false,
        }
    }

    #[test]
    fn every_ingredient_changes_the_key_and_nothing_else_does() {
        let environment = Environment::from_variables([("HOME", "/x")], "/");
        let key = action().key(&environment);
        let differs = |change: fn(&mut Action)| {
            let mut changed = action();
            change(&mut changed);
            changed.key(&environment) != key
        };
        assert!(differs(|a| a.inputs[0] = Input::text("a.cpp", "int b;")));
        assert!(differs(|a| a.inputs[0].name = "b.cpp".to_owned()));
        assert!(differs(|a| a.arguments = vec!["-c a.cpp".to_owned()]));
        assert!(differs(|a| a.target = Target::new("aarch64-unknown-linux-gnu")));
        assert!(differs(|a| a.tool.identity = Identity("other".to_owned())));
        assert!(differs(|a| a.outputs.push("b.o".to_owned())));
        assert!(!differs(|a| a.label.push('!')));
        assert!(!differs(|a| a.tool.launch.places.push("/usr/bin/g++".to_owned())));
        assert!(!differs(|a| a.tool.launch.program = "/elsewhere/tool".into()));
        assert_ne!(action().key(&environment.clone().with("CPATH", "/y")), key);
        assert_eq!(action().key(&environment.with("HOME", "/y")), key);
    }
}
