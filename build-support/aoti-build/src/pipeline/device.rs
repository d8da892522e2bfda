//! The step that makes code for GPUs, beside the one that makes objects for the host: device compilers take longest.

use aoti_compiler::codegen::bundle::DeviceUnit;
use aoti_toolchain::{Action, DeviceImage, DevicePlan};

use super::{Passing, Step};
use crate::error::Error;
use crate::plan;
use crate::progress::{Forward, Progress};
use crate::session::Session;

/// Code that is being made, one thread for each vendor.
type Making<'scope> = Vec<std::thread::ScopedJoinHandle<'scope, Result<DeviceImage, aoti_toolchain::Error>>>;

/// Waits for all of a model's code.
fn joined(making: Making<'_>) -> Result<Vec<DeviceImage>, Error> {
    let join = |thread: std::thread::ScopedJoinHandle<'_, Result<DeviceImage, aoti_toolchain::Error>>| {
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
    };
    making.into_iter().map(join).collect()
}

/// Hands a model the code that was made for it.
fn take(passing: &mut Passing<'_>, images: Vec<DeviceImage>) {
    let parts = images.iter().flat_map(|image| &image.parts);
    passing.tools_run += parts.filter(|part| !part.cached).count();
    passing.images = images;
}

impl Session {
    /// Runs the actions that make objects and, beside them, makes code for GPUs.
    pub(super) fn with_images<'a>(
        &self,
        planned: Step<(Passing<'a>, Vec<Action>)>,
        progress: &dyn Progress,
    ) -> Step<Passing<'a>> {
        let plans: Step<Vec<DevicePlan>> = planned
            .iter()
            .filter_map(|(index, plan)| Some((*index, self.device_plans(&plan.as_ref().ok()?.0))))
            .collect();
        let all = plans.iter().filter_map(|(_, plans)| plans.as_ref().ok()).flatten();
        progress.planned(all.map(|plan| plan.parts.len()).sum());
        let events = Forward(progress);
        std::thread::scope(|scope| {
            let make = |plan: DevicePlan| scope.spawn(move || self.executor.device_code(&plan, &events));
            let mut making: Vec<(usize, Result<Making<'_>, Error>)> = plans
                .into_iter()
                .map(|(index, plans)| (index, plans.map(|plans| plans.into_iter().map(make).collect())))
                .collect();
            let mut step = self.run_step(planned, progress, |passing, made| passing.objects = made);
            for (index, result) in &mut step {
                let Some(at) = making.iter().position(|(own, _)| own == index) else { continue };
                let images = making.swap_remove(at).1.and_then(joined);
                if let Ok(passing) = result {
                    match images {
                        Ok(images) => take(passing, images),
                        Err(error) => *result = Err(error),
                    }
                }
            }
            step
        })
    }

    /// What makes a model's code for GPUs.
    fn device_plans(&self, passing: &Passing<'_>) -> Result<Vec<DevicePlan>, Error> {
        if self.settings.bindings_only {
            return Ok(Vec::new());
        }
        passing.bundle.devices.iter().map(|unit| self.device_plan(passing, unit)).collect()
    }

    fn device_plan(&self, passing: &Passing<'_>, unit: &DeviceUnit) -> Result<DevicePlan, Error> {
        let model = &passing.job.model;
        let gpus = model.gpus.iter().find(|gpus| gpus.device == plan::device_of(unit.vendor));
        let gpus = gpus.expect("code is made for the GPUs that the model asks for");
        let toolchain = self.device_toolchain(model, gpus)?;
        plan::device_code(&toolchain, model, &passing.bundle, unit, &self.settings.mode)
    }

    /// What makes objects of the code that was made.
    pub(super) fn code_actions(&self, passing: &Passing<'_>) -> Result<Vec<Action>, Error> {
        if passing.images.is_empty() {
            return Ok(Vec::new());
        }
        let model = &passing.job.model;
        let toolchain = self.toolchain_of(model)?;
        let pairs = passing.bundle.devices.iter().zip(&passing.images);
        Ok(pairs.map(|(unit, image)| plan::embedded_code(&toolchain, model, unit, image)).collect())
    }
}
