//! What of a model is measured here: the code that this machine runs, and the class of machines that it stands for.

use aoti_build::{Machine, Model, Session};
use aoti_runtime::Device;
use aoti_toolchain::present_devices;

use crate::failure::Failure;
use crate::single;

/// The model for one device and, on a processor, the best level of those that it is built for.
pub(super) fn alone(session: &Session, model: &Model, device: Device) -> Result<Model, Failure> {
    let wanted = single::toolchain_device(device);
    let mut own = model.clone();
    if wanted == aoti_toolchain::Device::Cpu {
        if !model.cpu {
            return Err(Failure::Usage(format!("model `{}` is not built for processors", model.name)));
        }
        own.gpus.clear();
        let levels = session.levels(&own)?;
        let best = levels.iter().rev().find(|level| runs(level)).cloned();
        own.levels = vec![best.ok_or_else(|| {
            let levels = levels.join("`, `");
            Failure::Machine(format!(
                "this processor runs none of the levels of model `{}`: `{levels}`",
                model.name
            ))
        })?];
        return Ok(own);
    }
    own.cpu = false;
    own.gpus.retain(|gpus| gpus.device == wanted);
    if own.gpus.is_empty() {
        return Err(Failure::Usage(format!("model `{}` is not built for `{}`", model.name, wanted.as_str())));
    }
    Ok(own)
}

/// The class of this machine for a model that is for it alone.
pub(super) fn class(session: &Session, model: &Model, device: Device, families: &[&str]) -> String {
    let wanted = single::toolchain_device(device);
    if wanted == aoti_toolchain::Device::Cpu {
        let architecture = session.target().architecture();
        let named = model.levels.first().map(String::as_str).unwrap_or_default();
        // `native` says nothing of which machine that is.
        let known = ["x86-64-v4", "x86-64-v3", "x86-64"].into_iter().filter(|_| architecture == "x86_64");
        let level = if named == "native" {
            known.into_iter().find(|level| runs(level)).unwrap_or("neon")
        } else {
            named
        };
        return Machine::here().class(architecture, level);
    }
    let found = present_devices(session.environment()).found;
    let here = found.into_iter().find(|found| found.device == wanted).map(|found| found.architecture);
    let architecture = here.filter(|here| families.contains(&here.as_str()));
    let architecture = architecture.or_else(|| families.first().map(ToString::to_string)).unwrap_or_default();
    Machine::of_gpu(&architecture)
}

/// Whether this processor runs code of a level.
fn runs(level: &str) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let v3 = has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2");
        let v4 = v3
            && has!("avx512f")
            && has!("avx512bw")
            && has!("avx512cd")
            && has!("avx512dq")
            && has!("avx512vl");
        match level {
            "x86-64-v3" => return v3,
            "x86-64-v4" => return v4,
            _ => {}
        }
    }
    matches!(level, "x86-64" | "neon" | "native")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_runs_its_lowest_level() {
        assert!(runs("native") && !runs("x86-64-v9"));
        assert!(!runs("x86-64-v4") || runs("x86-64-v3"));
    }
}
