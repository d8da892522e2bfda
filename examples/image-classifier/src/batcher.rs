//! Runs the model on its own thread, for as many pictures at a time as are waiting.
//!
//! The first picture of a batch waits for others until the batch is full or the delay has passed. The queue is bounded: a service that
//! cannot keep up says so at once. Knows nothing of HTTP.

use std::error::Error;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aoti_runtime::{TensorView, ThreadPool, Workspace};
use tokio::sync::oneshot;

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

/// A picture that waits, and where its answer goes.
struct Waiting {
    pixels: Pixels,
    answer: oneshot::Sender<Result<Probabilities, String>>,
}

/// The thread that runs the model. Dropping it answers what waits, then ends the thread.
pub(crate) struct Batcher {
    queue: Mutex<Option<SyncSender<Waiting>>>,
    thread: Option<JoinHandle<()>>,
}

impl Batcher {
    /// Loads the model and starts the thread.
    pub(crate) fn start(delay: Duration, metrics: Arc<Metrics>) -> Result<Batcher, Box<dyn Error>> {
        let mut worker = Worker {
            model: digits::Model::load()?,
            outputs: digits::Outputs::default(),
            workspace: Workspace::new(),
            metrics,
        };
        // The first run of a size allocates; requests find that done.
        worker.run(&[[0.0; SIDE * SIDE]; LARGEST])?;
        let (sender, receiver) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("model".to_owned());
        let thread = thread.spawn(move || worker.serve(&receiver, delay))?;
        Ok(Batcher { queue: Mutex::new(Some(sender)), thread: Some(thread) })
    }

    /// Classifies one picture.
    pub(crate) async fn classify(&self, pixels: Pixels) -> Result<Probabilities, Failure> {
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match queue.ok_or(Failure::Busy)?.try_send(Waiting { pixels, answer }) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return Err(Failure::Busy),
        }
        answered.await.map_err(|_| Failure::Busy)?.map_err(Failure::Model)
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed where it happened.
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Worker {
    model: digits::Model,
    outputs: digits::Outputs,
    workspace: Workspace,
    metrics: Arc<Metrics>,
}

impl Worker {
    fn serve(&mut self, queue: &Receiver<Waiting>, delay: Duration) {
        while let Ok(first) = queue.recv() {
            let batch = collect(first, queue, delay);
            let pixels: Vec<Pixels> = batch.iter().map(|waiting| waiting.pixels).collect();
            let result = self.run(&pixels).map_err(|error| error.to_string());
            for (index, waiting) in batch.into_iter().enumerate() {
                let answer = match &result {
                    Ok(()) => Ok(self.probabilities(index)),
                    Err(message) => Err(message.clone()),
                };
                // Who asked may be gone.
                let _ = waiting.answer.send(answer);
            }
        }
    }

    fn run(&mut self, pixels: &[Pixels]) -> Result<(), aoti_runtime::Error> {
        let image = TensorView::new(pixels.as_flattened(), &[pixels.len(), 1, SIDE, SIDE])?;
        let begun = Instant::now();
        let inputs = digits::Inputs { image };
        self.model.run_with(&inputs, &mut self.outputs, &mut self.workspace, ThreadPool::global())?;
        self.metrics.ran(pixels.len(), begun.elapsed());
        Ok(())
    }

    fn probabilities(&self, index: usize) -> Probabilities {
        let mut row = [0.0; CLASSES];
        row.copy_from_slice(&self.outputs.probabilities.as_slice()[index * CLASSES..][..CLASSES]);
        row
    }
}

/// The first picture and those that come before the delay has passed, up to the largest batch.
fn collect(first: Waiting, queue: &Receiver<Waiting>, delay: Duration) -> Vec<Waiting> {
    let mut batch = vec![first];
    let end = Instant::now() + delay;
    while batch.len() < LARGEST {
        match queue.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(waiting) => batch.push(waiting),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    batch
}
