//! Which measured records a build of a model follows. Knows neither how they were measured nor how the file is
//! written.

use aoti_compiler::compile::{self, OpenKernel};
use aoti_compiler::cost::MachineInfo;
use aoti_compiler::tuning::Config;
use aoti_toolchain::Toolchain;

use crate::error::Error;
use crate::lock::{ApplicableRecords, FILE as LOCK_FILE, Lock, Machines, Reading};
use crate::model::{Choices, Model};
use crate::problem::{Code, Problem, Problems};
use crate::session::Session;

impl Session {
    /// The machines that a model is compiled for, as records know them.
    ///
    /// # Errors
    /// As a build.
    pub fn machines(&self, model: &Model) -> Result<Vec<Machines>, Error> {
        let named = |toolchain: &Toolchain| format!("{}: {}", toolchain.name(), toolchain.compiler.version);
        let asks = !self.settings.bindings_only;
        let mut all = Vec::new();
        if model.cpu {
            let compiler = if asks { Some(named(&*self.toolchain_of(model)?)) } else { None };
            all.push(Machines { family: self.target.architecture().to_owned(), compiler });
        }
        for gpus in model.gpus.iter().filter(|_| asks) {
            let toolchain = self.device_toolchain(model, gpus)?;
            let compiler = Some(named(&toolchain));
            let machines = |family: &String| Machines { family: family.clone(), compiler: compiler.clone() };
            all.extend(toolchain.levels.iter().map(machines));
        }
        Ok(all)
    }

    /// The records that a build of a model goes by, and what is to be said about others.
    ///
    /// # Errors
    /// What is wrong with its lock.
    pub fn usable(&self, model: &Model) -> Result<ApplicableRecords, Error> {
        let path = match &model.choices {
            Choices::Predicted => return Ok(ApplicableRecords::default()),
            Choices::Given { records, rates } => {
                let (records, rates) = (records.clone(), rates.clone());
                return Ok(ApplicableRecords { records, rates, notes: Vec::new() });
            }
            Choices::Lock(path) => path,
        };
        let Reading { lock, notes } = Lock::read(path)?;
        if lock.records.is_empty() && lock.rates.is_empty() {
            return Ok(ApplicableRecords { notes, ..ApplicableRecords::default() });
        }
        let mut usable = lock.usable(&self.machines(model)?);
        usable.notes.splice(0..0, notes);
        Ok(usable)
    }

    /// The kernels of a model with the ways to run each, taken as a build would, and what they cost on machines of which so
    /// much is known.
    ///
    /// # Errors
    /// As a build, as far as it runs no tool.
    pub fn tuning_points(&self, model: &Model, facts: MachineInfo) -> Result<Vec<OpenKernel>, Error> {
        if !model.programs.is_empty() {
            let alone = model.programs.iter().filter_map(|program| model.program(&program.name));
            let all = alone.map(|program| self.tuning_points(&program, facts));
            return Ok(all.collect::<Result<Vec<_>, Error>>()?.concat());
        }
        let (name, path) = (model.name.clone(), model.path.clone());
        let unreadable = |source| Error::Unreadable { name: name.clone(), path: path.clone(), source };
        let model_file = crate::files::model_file(&path).map_err(unreadable)?;
        let options = model.options(self.levels(model)?, self.architectures(model)?, self.usable(model)?)?;
        compile::tuning_points(model_file, &options, facts).map_err(|diagnostics| Error::Model {
            name,
            path,
            diagnostics,
        })
    }

    /// Refuses a model that was tuned if a kernel with more than one way has no record that fits.
    pub(crate) fn check_locked(&self, model: &Model) -> Result<(), Error> {
        let Choices::Lock(path) = &model.choices else { return Ok(()) };
        let lock = Lock::read(path)?.lock;
        let machines = self.machines(model)?;
        let is_tuned = |kind: &Machines| lock.has_model(&model.name, &kind.family);
        if !machines.iter().any(is_tuned) {
            return Ok(());
        }
        let records = lock.usable(&machines).records;
        let lacks = |kernel: &OpenKernel| {
            let fits = |config: &Config| {
                kernel.candidates.iter().any(|way| Config::from(way.setting.clone()) == *config)
            };
            // Where only threads see a difference, nothing is measured on one.
            let is_open = kernel.candidates.iter().skip(1).any(|way| way.is_worth_trying(1));
            let is_for =
                machines.iter().filter(|kind| is_tuned(kind)).any(|kind| kernel.is_for(&kind.family));
            is_open && is_for && !records.get(&kernel.key).is_some_and(fits)
        };
        let kernels = self.tuning_points(model, MachineInfo::default())?;
        let lacking = kernels.iter().filter(|kernel| lacks(kernel));
        let mut names: Vec<String> = lacking.map(|kernel| format!("`{}`", kernel.name)).collect();
        names.dedup();
        if names.is_empty() {
            return Ok(());
        }
        let count = names.len();
        names.truncate(5);
        let message = format!(
            "`{LOCK_FILE}` is out of date, and `--locked` was given: {count} {} of model `{}` {} no up-to-date record, such as {}",
            if count == 1 { "kernel" } else { "kernels" },
            model.name,
            if count == 1 { "has" } else { "have" },
            names.join(", ")
        );
        Err(Error::Manifest(Problems(vec![Problem {
            code: Code::Lock,
            message,
            place: path.display().to_string(),
            location: None,
            help: Some("`cargo aoti tune` measures them".to_owned()),
        }])))
    }
}
