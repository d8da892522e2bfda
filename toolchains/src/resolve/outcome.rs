//! What a resolution comes to: every candidate with its verdict, as data that errors and reports print. Judges nothing.

use std::fmt;
use std::path::PathBuf;

use super::{Requirements, Toolchain};
use crate::error::Error;
use crate::find::FoundBy;

/// One candidate with what became of it.
#[derive(Debug, Clone)]
pub struct Consideration {
    /// The definition that it was considered for.
    pub toolchain: String,
    /// How it was found; `None` when the definition found nothing, or was not asked.
    pub found_by: Option<FoundBy>,
    /// The program, if there is one.
    pub program: Option<PathBuf>,
    /// Its version, if it answered.
    pub version: Option<String>,
    /// Taken or refused.
    pub verdict: Verdict,
}

/// What became of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It serves the request, and goes before all others that do.
    Taken,
    /// It serves the request too.
    Usable,
    /// It does not, for this reason.
    Refused(String),
    /// It was not tried, for this reason.
    NotTried(String),
}

/// The outcome of a resolution, with everything that led to it.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// What was asked for, with this machine's architectures in the place of `native`.
    pub requirements: Requirements,
    /// Toolchains that serve the request, best first, at most one for each definition.
    pub serving: Vec<Toolchain>,
    /// All candidates, in the order in which they are preferred.
    pub considered: Vec<Consideration>,
    /// What to do where nothing serves, one way a line.
    pub help: Vec<String>,
}

impl Resolution {
    /// The best toolchain.
    ///
    /// # Errors
    /// [`Error::NotFound`] with every candidate and the reason against it.
    pub fn into_toolchain(self) -> Result<Toolchain, Error> {
        let Resolution { requirements, serving, considered, help } = self;
        let none = || Box::new(ResolveError { requirements, considered, help }).into();
        serving.into_iter().next().ok_or_else(none)
    }
}

/// How the reason begins against a toolchain that is for other devices or targets.
pub(super) const NOT_SERVED: &str = "does not serve";

/// No toolchain serves a request.
#[derive(Debug, Clone)]
pub struct ResolveError {
    /// What was asked for.
    pub requirements: Requirements,
    /// What was considered and why it was refused.
    pub considered: Vec<Consideration>,
    /// What to install, one way a line.
    pub help: Vec<String>,
}

impl std::error::Error for ResolveError {}

impl fmt::Display for ResolveError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requirements { device, target, .. } = &self.requirements;
        write!(formatter, "no toolchain compiles {} code for `{target}`", device.as_str())?;
        // Those that have nothing to do with the request share a line.
        let is_alike = |a: &Consideration, b: &Consideration| {
            let Verdict::Refused(reason) = &a.verdict else { return false };
            reason.starts_with(NOT_SERVED) && a.verdict == b.verdict
        };
        for alike in self.considered.chunk_by(is_alike) {
            let [others @ .., last] = alike else { continue };
            let others: String = others.iter().map(|one| format!("{}, ", one.toolchain)).collect();
            write!(formatter, "\n  {others}{last}")?;
        }
        for help in &self.help {
            write!(formatter, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Consideration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.toolchain)?;
        if let Some(found_by) = &self.found_by {
            write!(formatter, "{found_by} ")?;
        }
        match &self.verdict {
            Verdict::Taken => write!(formatter, "is taken")?,
            Verdict::Usable => write!(formatter, "is usable")?,
            Verdict::Refused(reason) => write!(formatter, "{reason}")?,
            Verdict::NotTried(reason) => write!(formatter, "is not tried: {reason}")?,
        }
        if let Some(version) = &self.version {
            write!(formatter, ": {version}")?;
        }
        Ok(())
    }
}
