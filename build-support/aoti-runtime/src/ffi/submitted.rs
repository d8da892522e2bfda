//! Runs that are in progress while the program continues.

use super::{
    abi::AotiContext,
    call,
    described::Described,
    model::count,
    prepared::{DeviceTensor, Prepared, Stream},
    state::State,
};
use crate::{Error, trace};
use std::{fmt, sync::Arc};

/// A run that was submitted and not waited for yet. It owns what the run reads and writes, so that none of it is freed or
/// overwritten while the device still uses it. Dropping it waits for the run.
pub struct Submitted<'m> {
    /// What C reads until the run is done: descriptors of the tensors below.
    _inputs: Described,
    _outputs: Described,
    _context: Box<AotiContext>,
    /// Taken when the run was waited for.
    owned: Option<Owned<'m>>,
}

struct Owned<'m> {
    run: Prepared<'m>,
    inputs: Vec<Arc<DeviceTensor<'m>>>,
    outputs: Vec<DeviceTensor<'m>>,
    state: Option<State>,
}

// SAFETY: the descriptors point to tensors that this value owns and that are `Send`; the context has a stream, which every
// thread may use.
unsafe impl Send for Submitted<'_> {}

/// A run that is done, with what it was submitted with: ready for the next time.
#[derive(Debug)]
pub struct Finished<'m> {
    /// The prepared run.
    pub run: Prepared<'m>,
    /// What it read.
    pub inputs: Vec<Arc<DeviceTensor<'m>>>,
    /// What it wrote.
    pub outputs: Vec<DeviceTensor<'m>>,
    /// The state that it went on from, as it left it.
    pub state: Option<State>,
}

impl<'m> Prepared<'m> {
    /// Starts the run on tensors where the model runs, and returns while it is under way. Several runs may read the same
    /// inputs.
    ///
    /// # Errors
    /// Tensors of other sizes than the run was prepared for, a state of another library or device, and what the driver reports.
    /// The tensors are given back to the device then.
    pub fn submit(
        self,
        inputs: Vec<Arc<DeviceTensor<'m>>>,
        outputs: Vec<DeviceTensor<'m>>,
        state: Option<State>,
        stream: Stream<'_>,
    ) -> Result<Submitted<'m>, Error> {
        let _span = trace::run(self.model);
        let read = DeviceTensor::described(inputs.iter().map(|tensor| &**tensor));
        let written = DeviceTensor::described(outputs.iter());
        let mut owned = Owned { run: self, inputs, outputs, state };
        let generator = owned.run.generator.take();
        let context = Box::new(stream.context(generator, owned.run.communicator()));
        let state = State::for_run(owned.state.as_mut(), owned.run.model)?;
        // SAFETY: descriptors, context, tensors and state are kept by the result until the run was waited for; if it is
        // forgotten, they are never given back.
        let submit = |error| unsafe {
            let (from, to) = (read.as_slice(), written.as_slice());
            let (n_inputs, n_outputs) = (count(from.len()), count(to.len()));
            let (from, to) = (from.as_ptr(), to.as_ptr());
            (owned.run.submit)(owned.run.raw.as_ptr(), from, n_inputs, to, n_outputs, state, &*context, error)
        };
        owned.run.in_turn(|| call(submit))?;
        Ok(Submitted { _inputs: read, _outputs: written, _context: context, owned: Some(owned) })
    }
}

impl<'m> Submitted<'m> {
    /// Waits until the run is done.
    ///
    /// # Errors
    /// What went wrong in the run: an index outside its dimension, an assertion of the program, what the driver reports.
    /// The tensors are given back to the device then.
    pub fn wait(mut self) -> Result<Finished<'m>, Error> {
        let mut owned = self.owned.take().expect("only `wait` and `drop` take it, and both end the value");
        owned.run.wait()?;
        let Owned { run, inputs, outputs, state } = owned;
        Ok(Finished { run, inputs, outputs, state })
    }
}

impl Drop for Submitted<'_> {
    fn drop(&mut self) {
        if let Some(mut owned) = self.owned.take() {
            // Whoever wants to know what went wrong waits.
            let _ = owned.run.wait();
        }
    }
}

impl fmt::Debug for Submitted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitted")
            .field("run", &self.owned.as_ref().map(|owned| &owned.run))
            .finish_non_exhaustive()
    }
}
