//! Runs actions: takes their results from the store, or else runs them in a fresh folder, as parallel as the jobserver
//! allows.
//!
//! Owns the order of fetch, lock, run and publish, and what happens when the store fails (the build goes on without
//! it). Knows no compiler: an action says all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::action::{Action, Content, Key, KeyField, Subject, Work};
use crate::advice;
use crate::cache::{ActionStore, Fetched, Manifest};
use crate::environment::Environment;
use crate::error::{Error, InputError};
use crate::events::{Event, Events};
use crate::find::{Launch, launch_of};
use crate::outputs::{OutputFile, Outputs, digest_of};
use crate::process;
use crate::system;
use crate::temporary::{TemporaryFolder, temporary_folder};
use crate::turns::Turns;

/// Names the program that compiles are started through.
const LAUNCHER: &str = "AOTI_COMPILER_LAUNCHER";

/// Runs actions in parallel, with a store.
pub struct Executor {
    environment: Environment,
    store: Option<Arc<dyn ActionStore>>,
    turns: Turns,
    /// Started instead of compilers, with them as its first argument.
    launcher: Option<Launch>,
    /// A store that failed once is reported once, not for each action.
    store_failed: AtomicBool,
}

impl Executor {
    /// An executor with this store (or none) that runs at most `jobs` tools at once: by default as many as cargo's
    /// jobserver allows, or as many as there are processors when there is no jobserver.
    ///
    /// Compiles are started through what `AOTI_COMPILER_LAUNCHER` names, such as `sccache`, `distcc` or `icecc`. It is
    /// no part of keys: a launcher that changes what compilers make is broken.
    ///
    /// # Errors
    /// [`Error::Workspace`] when no jobserver can be made; [`Error::Launcher`] when the launcher is no program;
    /// [`Error::TimeLimit`] when the limit for the time of a tool is none.
    pub fn new(
        environment: &Environment,
        store: Option<Arc<dyn ActionStore>>,
        jobs: Option<usize>,
    ) -> Result<Self, Error> {
        process::limit(environment).map_err(|value| Error::TimeLimit { value })?;
        let turns = Turns::new(environment.jobserver(), jobs, environment.parallelism());
        let turns = turns.map_err(|source| Error::Workspace {
            label: "jobserver".to_owned(),
            path: environment.temporary_directory(),
            source,
        })?;
        let launcher = match environment.variable(LAUNCHER) {
            Some(value) => Some(
                launch_of(value, environment)
                    .ok_or_else(|| Error::Launcher { value: value.to_string_lossy().into_owned() })?,
            ),
            None => None,
        };
        let store_failed = AtomicBool::new(false);
        Ok(Executor { environment: environment.clone(), store, turns, launcher, store_failed })
    }

    /// Runs all actions and returns their results in the order given. One failure does not stop the others, so that a
    /// user sees all of them.
    pub fn run(&self, actions: &[Action], events: &dyn Events) -> Vec<Result<Outputs, Error>> {
        self.in_turns(actions.len(), |index| self.run_one(&actions[index], events))
    }

    /// Does other work than actions under the same tokens: calls `work` for each number below `count`, several at a time
    /// as far as there are tokens, and returns what it gave, in order.
    pub fn in_turns<T: Send>(&self, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        self.turns.each(count, work)
    }

    /// Whether results are kept at all.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// Does work of the caller's own unless its result is kept: `make` writes the outputs into the folder that it is given.
    ///
    /// # Errors
    /// Those of `make`, and [`Error::Workspace`] and [`Error::OutputMissing`]; never [`Error::Cache`].
    pub fn keep<E: From<Error>>(
        &self,
        work: &Work,
        events: &dyn Events,
        make: impl Fn(&Path) -> Result<(), E>,
    ) -> Result<Outputs, E> {
        let subject = work.subject();
        let made = self.through_store(subject, &work.key_fields(), events, &|_| self.made(subject, &make));
        self.tell_warnings(&subject, events);
        made
    }

    /// What is kept of work, if anything is; nothing is done for it.
    pub fn kept(&self, work: &Work, events: &dyn Events) -> Option<Outputs> {
        let subject = work.subject();
        let store = self.store.as_ref()?;
        let found = match store.fetch(&crate::action::key_of(&work.key_fields()), subject.outputs) {
            Ok(Fetched::Hit(outputs)) => Some(outputs),
            Ok(Fetched::Miss | Fetched::Corrupt(_)) => None,
            Err(error) => {
                self.warn(&subject, &error, events);
                None
            }
        };
        self.tell_warnings(&subject, events);
        found
    }

    /// Does work whose result is kept in the place of what an earlier time gave, in every store that is written to.
    ///
    /// # Errors
    /// As [`Executor::keep`].
    pub fn replace<E: From<Error>>(
        &self,
        work: &Work,
        events: &dyn Events,
        make: impl Fn(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let (subject, fields) = (work.subject(), work.key_fields());
        let (Some(store), key) = (&self.store, crate::action::key_of(&fields)) else { return Ok(()) };
        let outputs = self.made(subject, &make)?;
        let manifest = Manifest::new(&key, &subject, &fields, &outputs.files);
        let mut published = Ok(());
        let label = subject.label;
        let locked = store.exclusively(&key, &|| events.event(&Event::Waiting { label }), &mut || {
            published = store.remove(&key).and_then(|()| store.publish(&manifest, &outputs.files));
        });
        if let Err(error) = locked.and(published) {
            self.warn(&subject, &error, events);
        }
        self.tell_warnings(&subject, events);
        Ok(())
    }

    /// What `make` writes into a fresh folder.
    fn made<E: From<Error>>(
        &self,
        subject: Subject<'_>,
        make: &impl Fn(&Path) -> Result<(), E>,
    ) -> Result<Outputs, E> {
        let folder = self.folder(&subject)?;
        make(folder.path())?;
        let mut files = Vec::new();
        for name in subject.outputs {
            let path = folder.path().join(name);
            let unreadable = |source| Error::Output { action: "read", path: path.clone(), source };
            let (digest, bytes) = digest_of(&path).map_err(unreadable)?;
            files.push(OutputFile { name: name.clone(), path, digest, bytes });
        }
        Ok(Outputs::new(files, false, Some(folder)))
    }

    fn tell_warnings(&self, subject: &Subject<'_>, events: &dyn Events) {
        for message in self.store.iter().flat_map(|store| store.warnings()) {
            events.event(&Event::Warning { label: subject.label, message: &message });
        }
    }

    /// Runs one action on this thread, under the token that every process holds.
    ///
    /// # Errors
    /// [`Error::ToolFailed`] and its siblings; never [`Error::Cache`].
    pub fn run_one(&self, action: &Action, events: &dyn Events) -> Result<Outputs, Error> {
        let label = action.label.as_str();
        events.event(&Event::Started { label });
        let begun = Instant::now();
        let mut result = self.checked(action, events);
        self.tell_warnings(&action.subject(), events);
        match &mut result {
            Ok(outputs) => {
                let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                outputs.millis = millis;
                events.event(&Event::Finished { label, cached: outputs.cached, millis });
            }
            Err(_) => events.event(&Event::Failed { label }),
        }
        result
    }

    fn checked(&self, action: &Action, events: &dyn Events) -> Result<Outputs, Error> {
        let bad_input = |source| Error::Input { label: action.label.clone(), source };
        action.check_names().map_err(bad_input)?;
        if action.outputs.is_empty() {
            return Err(bad_input(InputError::Name { name: String::new() }));
        }
        let fields = action.key_fields(&self.environment);
        self.through_store(action.subject(), &fields, events, &|key| self.execute(action, key))
    }

    /// What the store has under the key of these fields, else what `make` makes.
    fn through_store<E>(
        &self,
        subject: Subject<'_>,
        fields: &[KeyField],
        events: &dyn Events,
        make: &dyn Fn(&Key) -> Result<Outputs, E>,
    ) -> Result<Outputs, E> {
        let key = crate::action::key_of(fields);
        let Some(store) = &self.store else { return make(&key) };

        match store.fetch(&key, subject.outputs) {
            Ok(Fetched::Hit(outputs)) => return Ok(outputs),
            Ok(Fetched::Miss | Fetched::Corrupt(_)) => {}
            Err(error) => {
                self.warn(&subject, &error, events);
                return make(&key);
            }
        }
        let mut result = None;
        let label = subject.label;
        let locked = store.exclusively(&key, &|| events.event(&Event::Waiting { label }), &mut || {
            result = Some(self.fetch_or_make(store.as_ref(), &subject, (&key, fields), events, make));
        });
        match (locked, result) {
            (_, Some(result)) => result,
            (Err(error), None) => {
                self.warn(&subject, &error, events);
                make(&key)
            }
            (Ok(()), None) => make(&key),
        }
    }

    /// What is done under the key's lock. Somebody may have made it while we waited.
    fn fetch_or_make<E>(
        &self,
        store: &dyn ActionStore,
        subject: &Subject<'_>,
        (key, fields): (&Key, &[KeyField]),
        events: &dyn Events,
        make: &dyn Fn(&Key) -> Result<Outputs, E>,
    ) -> Result<Outputs, E> {
        match store.fetch(key, subject.outputs) {
            Ok(Fetched::Hit(outputs)) => return Ok(outputs),
            Ok(Fetched::Miss) => {}
            Ok(Fetched::Corrupt(why)) => {
                let message = format!("a cached result was spoiled and is made again: {why}");
                events.event(&Event::Warning { label: subject.label, message: &message });
                if let Err(error) = store.remove(key) {
                    self.warn(subject, &error, events);
                }
            }
            Err(error) => self.warn(subject, &error, events),
        }
        let outputs = make(key)?;
        let manifest = Manifest::new(key, subject, fields, &outputs.files);
        if let Err(error) = store.publish(&manifest, &outputs.files) {
            self.warn(subject, &error, events);
        }
        Ok(outputs)
    }

    fn warn(&self, subject: &Subject<'_>, error: &Error, events: &dyn Events) {
        if !self.store_failed.swap(true, Ordering::Relaxed) {
            let source =
                std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
            let message = format!("building without the cache: {error}{source}");
            events.event(&Event::Warning { label: subject.label, message: &message });
        }
    }

    fn launch_for(&self, action: &Action) -> Launch {
        let own = &action.tool.launch;
        let Some(launcher) = self.launcher.as_ref().filter(|_| action.distributable) else {
            return own.clone();
        };
        let mut arguments = launcher.arguments.clone();
        arguments.push(own.program.to_string_lossy().into_owned());
        arguments.extend(own.arguments.iter().cloned());
        Launch { program: launcher.program.clone(), arguments, places: own.places.clone() }
    }

    /// A fresh folder to make something in.
    fn folder(&self, subject: &Subject<'_>) -> Result<TemporaryFolder, Error> {
        temporary_folder("action", &self.environment).map_err(|source| Error::Workspace {
            label: subject.label.to_owned(),
            path: self.environment.temporary_directory(),
            source,
        })
    }

    /// Runs the tool in a fresh folder and takes the digests of what it wrote.
    fn execute(&self, action: &Action, key: &Key) -> Result<Outputs, Error> {
        let temporary = self.environment.temporary_directory();
        let folder = self.folder(&action.subject())?;
        lay_out(action, folder.path())?;

        let here = folder.path().to_string_lossy();
        let arguments =
            action.arguments.iter().map(|word| word.replace("{directory}", &here)).collect::<Vec<_>>();
        let launch = &self.launch_for(action);
        let ended = process::run(launch, &arguments, folder.path(), &self.environment)
            .map_err(|source| Error::Spawn { program: launch.program.clone(), source })?;
        if !ended.is_success() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (stdout, stderr) = (text(&ended.output.stdout), text(&ended.output.stderr));
            let status = ended.status();
            let directory = keep_failed(folder, &temporary, key);
            return Err(Error::ToolFailed {
                label: action.label.clone(),
                command: process::copyable(launch, &arguments, &directory),
                directory,
                advice: ended
                    .advice()
                    .or_else(|| advice::for_failure(&status, &[stdout.as_str(), &stderr].join("\n"))),
                status,
                stdout,
                stderr,
            });
        }
        check_files_unchanged(action)?;

        let mut files = Vec::new();
        for name in &action.outputs {
            let path = folder.path().join(name);
            let Ok((digest, bytes)) = digest_of(&path) else {
                let directory = keep_failed(folder, &temporary, key);
                return Err(Error::OutputMissing {
                    label: action.label.clone(),
                    output: name.clone(),
                    command: process::copyable(launch, &arguments, &directory),
                    directory,
                });
            };
            files.push(OutputFile { name: name.clone(), path, digest, bytes });
        }
        Ok(Outputs::new(files, false, Some(folder)))
    }
}

/// Puts the inputs into the folder, and the folders that outputs go to.
fn lay_out(action: &Action, folder: &Path) -> Result<(), Error> {
    for input in &action.inputs {
        let path = folder.join(&input.name);
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            match &input.content {
                Content::Bytes(bytes) => std::fs::write(&path, bytes),
                Content::File(file) => system::link(file.path(), &path),
            }
        };
        write().map_err(|source| Error::Workspace {
            label: action.label.clone(),
            path: path.clone(),
            source,
        })?;
    }
    for output in &action.outputs {
        let path = folder.join(output);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|source| Error::Workspace {
            label: action.label.clone(),
            path: parent.to_owned(),
            source,
        })?;
    }
    Ok(())
}

/// A result is only worth its key if the files that the tool read are those whose digests the key has.
fn check_files_unchanged(action: &Action) -> Result<(), Error> {
    for input in &action.inputs {
        if let Content::File(file) = &input.content {
            file.check_unchanged().map_err(|source| Error::Input { label: action.label.clone(), source })?;
        }
    }
    Ok(())
}

/// Keeps the folder of a failure under a name made of the key, so that repeating a failure does not fill the disk.
fn keep_failed(folder: TemporaryFolder, temporary: &Path, key: &Key) -> PathBuf {
    let path = folder.keep();
    let name = temporary.join(format!("aoti-failed-{}", key.as_str().get(..16).unwrap_or("action")));
    // Either step may fail where another user owns the name; the folder then keeps its own.
    let _ = std::fs::remove_dir_all(&name);
    if std::fs::rename(&path, &name).is_ok() { name } else { path }
}
