//! Where the random numbers of runs come from.

/// Seed and offset of the random numbers of the next run. Ignored by programs that draw none.
///
/// Equal seeds and offsets give equal numbers, on every device and for any number of threads; a run with another offset
/// draws numbers that are independent of them. A run takes its pair from [`Workspace::set_generator`], from
/// [`Model::set_generator`] where the model keeps the workspace, or from [`Prepared::set_generator`], and leaves the next
/// offset there, so that runs that follow each other draw anew.
///
/// [`Workspace::set_generator`]: crate::Workspace::set_generator
/// [`Model::set_generator`]: crate::Model::set_generator
/// [`Prepared::set_generator`]: crate::Prepared::set_generator
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Generator {
    /// Names a sequence of runs.
    pub seed: u64,
    /// The number of the next run in it.
    pub offset: u64,
}

impl Generator {
    /// The first run of a sequence.
    pub const fn new(seed: u64) -> Generator {
        Generator { seed, offset: 0 }
    }

    /// The generator of the run that begins now.
    pub(crate) fn take(&mut self) -> Generator {
        let now = *self;
        self.offset = self.offset.wrapping_add(1);
        now
    }
}
