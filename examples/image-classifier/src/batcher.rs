//! The model behind a batcher: pictures that arrive together become one run.
//!
//! Knows nothing of HTTP.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aoti_runtime::{BatchOptions, Batcher, ErrorCode, TensorView, ThreadPool, Workspace};

use crate::digits;
use crate::metrics::Metrics;
use crate::picture::SIDE;

/// Largest batch; at most what the model accepts.
const LARGEST: usize = 16;
/// Pictures that may wait.
const QUEUE: usize = 256;
/// Classes of the model.
pub(crate) const CLASSES: usize = 10;

pub(crate) type Pixels = [f32; SIDE * SIDE];
pub(crate) type Probabilities = [f32; CLASSES];

/// Why a picture was not classified.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Too many wait, or the service ends.
    Busy,
    /// The model's own message.
    Model(String),
}

impl From<aoti_runtime::Error> for Failure {
    fn from(error: aoti_runtime::Error) -> Failure {
        if error.code() == ErrorCode::Busy { Failure::Busy } else { Failure::Model(error.to_string()) }
    }
}

/// The model on its own thread. Dropping it answers what waits, then ends the thread.
pub(crate) struct Classifier(Batcher<Pixels, Probabilities>);

impl Classifier {
    /// Loads the model and starts the thread.
    pub(crate) fn start(delay: Duration, metrics: Arc<Metrics>) -> Result<Classifier, Box<dyn Error>> {
        let model = digits::Model::load()?;
        let (mut outputs, mut workspace) = (digits::Outputs::default(), Workspace::new());
        let mut run = move |pictures: &[Pixels]| {
            let image = TensorView::new(pictures.as_flattened(), &[pictures.len(), 1, SIDE, SIDE])?;
            let begun = Instant::now();
            model.run_with(&digits::Inputs { image }, &mut outputs, &mut workspace, ThreadPool::global())?;
            metrics.ran(pictures.len(), begun.elapsed());
            Ok(outputs.probabilities.as_slice().as_chunks().0.to_vec())
        };
        // The first run of a size allocates; requests find that done.
        run(&[[0.0; SIDE * SIDE]; LARGEST])?;
        let options = BatchOptions { largest: LARGEST, delay, queue: QUEUE };
        Ok(Classifier(Batcher::new(options, run)?))
    }

    /// Classifies one picture.
    pub(crate) async fn classify(&self, pixels: Pixels) -> Result<Probabilities, Failure> {
        Ok(self.0.submit(pixels)?.await?)
    }
}
