//! The course of a build: models that are up to date are skipped; the others are locked, compiled, handed to tools and
//! put in place.
//!
//! All models go through each step together, so that the tools of all run side by side.

use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

use aoti_compiler::codegen::bundle::SourceBundle;
use aoti_toolchain::{Action, DeviceImage, FileContent, FileLock, FileLockGuard, Outputs};

use crate::artefacts::{Artefact, Built};
use crate::error::Error;
use crate::files::{self, FileStamp, file_error};
use crate::model::Weights;
use crate::plan;
use crate::progress::{Forward, ModelEvent, Progress};
use crate::session::{Job, Session};
use crate::state::{self, Fingerprint, ModelStamp, State};

mod compiled;
mod device;
mod place;
mod vendor;

pub use vendor::{Vendored, VendoredObject};

/// A model on its way through the steps.
struct Passing<'a> {
    job: &'a Job,
    recipe: Fingerprint,
    begun: Instant,
    model: ModelStamp,
    bundle: SourceBundle,
    /// Everything put in place so far.
    artefacts: Vec<Artefact>,
    /// Further files put in place: sources, the manifest.
    placed: Vec<PathBuf>,
    tools_run: usize,
    /// What the library holds as bytes.
    embedded: Vec<(plan::Blob, FileContent)>,
    objects: Vec<Outputs>,
    /// Code for GPUs, in the order of the bundle's.
    images: Vec<DeviceImage>,
    /// The objects that they became.
    codes: Vec<Outputs>,
    library: Option<Outputs>,
}

/// What a step gives: for each model its place among the jobs, and how it fared.
type Step<T> = Vec<(usize, Result<T, Error>)>;

impl Session {
    /// Whether native code of an earlier build is up to date, as far as can be known without running a tool. For sessions
    /// that make bindings only.
    pub(crate) fn has_native_code(&self, job: &Job) -> bool {
        let recipe = self.recipe(&job.model);
        recipe.is_ok_and(|recipe| {
            state::fresh(&job.model, &job.layout, |made| made.is_native_for(&recipe)).is_some()
        })
    }

    /// Builds models, side by side. Gives a result for each, in the order given.
    pub fn build(&self, jobs: &[Job], progress: &dyn Progress) -> Vec<Result<Built, Error>> {
        let mut results: Vec<Option<Result<Built, Error>>> = jobs.iter().map(|_| None).collect();
        let recipes: Vec<Result<Fingerprint, Error>> =
            jobs.iter().map(|job| self.recipe(&job.model)).collect();
        self.tell_notes(jobs, progress);
        let mut stale = Vec::new();
        for (index, (job, recipe)) in jobs.iter().zip(recipes).enumerate() {
            match recipe {
                Err(error) => results[index] = Some(Err(error)),
                Ok(recipe) => match is_fresh(job, &recipe, progress) {
                    Some(built) => results[index] = Some(Ok(built)),
                    None => stale.push((index, recipe)),
                },
            }
        }
        if !stale.is_empty() {
            self.build_stale(jobs, stale, progress, &mut results);
        }
        results.into_iter().map(|result| result.expect("every model gets a result")).collect()
    }

    /// What is to be said about locks; once, where models share one. What is wrong with them, recipes say.
    fn tell_notes(&self, jobs: &[Job], progress: &dyn Progress) {
        let mut told = Vec::new();
        for job in jobs {
            for message in self.usable(&job.model).map(|usable| usable.notes).unwrap_or_default() {
                if !told.contains(&message) {
                    progress.model(&ModelEvent::Note { name: &job.model.name, message: &message });
                    told.push(message);
                }
            }
        }
    }

    fn build_stale(
        &self,
        jobs: &[Job],
        mut stale: Vec<(usize, Fingerprint)>,
        progress: &dyn Progress,
        results: &mut [Option<Result<Built, Error>>],
    ) {
        // What builds left that were killed; once a day has passed, so that none is disturbed.
        aoti_toolchain::sweep_temporaries(&self.environment);
        // One order for all processes, or two could wait for each other.
        stale.sort_by(|(a, _), (b, _)| jobs[*a].layout.folder.cmp(&jobs[*b].layout.folder));
        let mut locks = Vec::new();
        stale.retain(|(index, _)| match open_lock(&jobs[*index]) {
            Ok(lock) => {
                locks.push(lock);
                true
            }
            Err(error) => {
                results[*index] = Some(Err(error));
                false
            }
        });
        let with_names =
            locks.iter_mut().zip(&stale).map(|(lock, (index, _))| (lock, &jobs[*index].model.name));
        // Until all is done.
        let held: Vec<Option<FileLockGuard<'_>>> =
            with_names.map(|(lock, name)| take(lock.as_mut()?, name, progress)).collect();
        let mut passing = Vec::new();
        for (index, recipe) in stale {
            // Whoever held the lock may have done the work.
            match is_fresh(&jobs[index], &recipe, progress) {
                Some(built) => results[index] = Some(Ok(built)),
                None => passing.push((index, recipe)),
            }
        }
        let passing = self.compile_all(jobs, &passing, progress);
        for (index, built) in self.run_tools(passing, progress) {
            if built.is_err() {
                retract(&jobs[index]);
            }
            results[index] = Some(built);
        }
        drop(held);
    }

    /// Runs the compiler over models, under the same tokens as the tools.
    fn compile_all<'a>(
        &self,
        jobs: &'a [Job],
        stale: &[(usize, Fingerprint)],
        progress: &dyn Progress,
    ) -> Step<Passing<'a>> {
        self.executor.in_turns(stale.len(), |turn| {
            let (index, recipe) = &stale[turn];
            (*index, self.compile_one(&jobs[*index], recipe.clone(), progress))
        })
    }

    fn compile_one<'a>(
        &self,
        job: &'a Job,
        recipe: Fingerprint,
        progress: &dyn Progress,
    ) -> Result<Passing<'a>, Error> {
        let (name, path) = (&job.model.name, &job.model.path);
        let package = job.model.package.split(' ').next().unwrap_or_default();
        progress.model(&ModelEvent::Compiling { name, package });
        let begun = Instant::now();
        let unreadable = |(path, source)| Error::Unreadable { name: name.clone(), path, source };
        let stamp = FileStamp::of(path).map_err(|source| unreadable((path.clone(), source)));
        let (looked, stamp) = (state::now_ns(), stamp?);
        let file = job.model.read().map_err(unreadable)?;
        let model = ModelStamp::new(stamp, looked, &job.model, &file);
        let options =
            job.model.options(recipe.levels.clone(), recipe.architectures.clone(), recipe.usable())?;
        let bundle = self.compiled(job, (&file, &model.digest), &options, progress)?;
        if !self.settings.bindings_only {
            plan::check_functions(&job.model, &bundle)?;
        }
        Ok(Passing {
            job,
            recipe,
            begun,
            model,
            bundle,
            artefacts: Vec::new(),
            placed: Vec::new(),
            tools_run: 0,
            embedded: Vec::new(),
            objects: Vec::new(),
            images: Vec::new(),
            codes: Vec::new(),
            library: None,
        })
    }

    /// From source bundles to artefacts.
    fn run_tools<'a>(&self, compiled: Step<Passing<'a>>, progress: &dyn Progress) -> Step<Built> {
        let placed = compiled.into_iter().map(|(index, passing)| {
            let planned = passing.and_then(|mut passing| {
                place::sources(&mut passing, self)?;
                let actions = self.object_actions(&passing)?;
                Ok((passing, actions))
            });
            (index, planned)
        });
        let with_objects = self.with_images(placed.collect(), progress);
        let embedded = with_objects.into_iter().map(|(index, passing)| {
            let planned = passing.and_then(|passing| {
                let actions = self.code_actions(&passing)?;
                Ok((passing, actions))
            });
            (index, planned)
        });
        let with_codes = self.run_step(embedded.collect(), progress, |passing, made| passing.codes = made);
        let planned = with_codes.into_iter().map(|(index, passing)| {
            let planned = passing.and_then(|passing| {
                let actions = self.library_actions(&passing)?;
                Ok((passing, actions))
            });
            (index, planned)
        });
        let linked = self.run_step(planned.collect(), progress, |passing, made| {
            passing.library = made.into_iter().next();
        });
        let finish = |passing| self.finish(passing, progress);
        linked.into_iter().map(|(index, passing)| (index, passing.and_then(finish))).collect()
    }

    /// Runs the actions of all models side by side and hands each model what its own made.
    fn run_step<'a>(
        &self,
        planned: Step<(Passing<'a>, Vec<Action>)>,
        progress: &dyn Progress,
        mut take: impl FnMut(&mut Passing<'a>, Vec<Outputs>),
    ) -> Step<Passing<'a>> {
        let actions: Vec<Action> =
            planned.iter().filter_map(|(_, plan)| plan.as_ref().ok()).flat_map(|(_, a)| a.clone()).collect();
        progress.planned(actions.len());
        let mut results = self.executor.run(&actions, &Forward(progress)).into_iter();
        let mut passed = Vec::new();
        for (index, plan) in planned {
            let result = plan.and_then(|(mut passing, actions)| {
                let (mut made, mut errors) = (Vec::new(), Vec::new());
                for result in results.by_ref().take(actions.len()) {
                    match result {
                        Ok(outputs) => made.push(outputs),
                        Err(error) => errors.push(error.into()),
                    }
                }
                Error::all(errors)?;
                passing.tools_run += made.iter().filter(|outputs| !outputs.cached).count();
                take(&mut passing, made);
                Ok(passing)
            });
            passed.push((index, result));
        }
        passed
    }

    fn object_actions(&self, passing: &Passing<'_>) -> Result<Vec<Action>, Error> {
        if self.settings.bindings_only {
            return Ok(Vec::new());
        }
        let (model, mode) = (&passing.job.model, &self.settings.mode);
        let sources = plan::operator_sources(model, &passing.bundle)?;
        let held = (sources.as_slice(), passing.embedded.as_slice());
        plan::objects(&*self.toolchain_of(model)?, model, &passing.bundle, held, mode)
    }

    fn library_actions(&self, passing: &Passing<'_>) -> Result<Vec<Action>, Error> {
        if self.settings.bindings_only {
            return Ok(Vec::new());
        }
        let (model, mode) = (&passing.job.model, &self.settings.mode);
        let embedded: Vec<plan::Blob> = passing.embedded.iter().map(|(blob, _)| *blob).collect();
        let toolchain = self.toolchain_of(model)?;
        let made = plan::Objects { embedded: &embedded, objects: &passing.objects, codes: &passing.codes };
        let action = plan::library(&toolchain, model, &passing.bundle, &made, mode)?;
        Ok(vec![action])
    }

    fn finish(&self, mut passing: Passing<'_>, progress: &dyn Progress) -> Result<Built, Error> {
        if let Some(library) = passing.library.take() {
            place::audit(&passing, &library, &self.settings.mode)?;
            place::library(&mut passing, &library)?;
        }
        place::manifest(&mut passing, self)?;
        place::remove_stale(&passing);
        let millis = u64::try_from(passing.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Passing { job, recipe, model, bundle, artefacts, placed, tools_run, .. } = passing;
        if job.incremental {
            State::new(recipe, model, artefacts.clone(), &placed, millis)?.write(&job.layout)?;
        }
        progress.model(&ModelEvent::Built { name: &job.model.name, millis });
        let (name, symbol) = (job.model.name.clone(), bundle.exported_symbol());
        let identifier = job.model.identifier();
        Ok(Built { name, identifier, symbol, artefacts, fresh: false, compile_ms: millis, tools_run })
    }
}

fn is_fresh(job: &Job, recipe: &Fingerprint, progress: &dyn Progress) -> Option<Built> {
    let built =
        job.incremental.then(|| state::fresh(&job.model, &job.layout, |made| made == recipe)).flatten()?;
    progress.model(&ModelEvent::Fresh { name: &job.model.name });
    Some(built)
}

fn open_lock(job: &Job) -> Result<Option<FileLock>, Error> {
    if !job.incremental {
        return Ok(None);
    }
    let folder = &job.layout.folder;
    std::fs::create_dir_all(folder).map_err(file_error("make", folder))?;
    let path = job.layout.lock();
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    file.map(|file| Some(FileLock::of(file))).map_err(file_error("open", &path))
}

/// Takes the lock, saying so if that means waiting. Where files cannot be locked, the build goes on without: what it writes is
/// whole at any moment.
fn take<'l>(lock: &'l mut FileLock, name: &str, progress: &dyn Progress) -> Option<FileLockGuard<'l>> {
    // What is taken in an attempt is given back at once: its borrow would last as long as that of the second.
    if !lock.try_take().is_ok_and(|held| held.is_some()) {
        progress.model(&ModelEvent::Waiting { name });
    }
    lock.take().ok()
}

/// Takes back the folder of a model that was refused, if all that is in it is the lock. Whoever waits for that lock goes on
/// without one; the tools' own locks still see to it that nothing is compiled twice.
fn retract(job: &Job) {
    let (folder, lock) = (&job.layout.folder, job.layout.lock());
    let Ok(mut listing) = std::fs::read_dir(folder) else { return };
    if job.incremental && listing.all(|entry| entry.is_ok_and(|entry| entry.path() == lock)) {
        let _ = files::remove(&lock);
        let _ = std::fs::remove_dir(folder);
    }
}

/// Whether the weights go into the library. A model without weights needs no file for them.
fn is_embedded(passing: &Passing<'_>) -> bool {
    passing.job.model.weights == Weights::Embed || passing.bundle.weights.bytes == 0
}

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;
