//! Dynamic batching: requests that arrive together become one run.
//!
//! Knows no model: what a batch is turned into is a function of the program's. Needs no asynchronous runtime: an answer is a
//! [`Future`] that any executor may poll, and can be waited for without one.

use crate::{Error, ErrorCode};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How requests are collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchOptions {
    /// Most requests in one run; at most what the model's dimension allows. With 1, a batcher is a queue of runs whose results are
    /// futures.
    pub largest: usize,
    /// How long the first request of a batch waits for others.
    pub delay: Duration,
    /// Requests that may wait; one more is refused.
    pub queue: usize,
}

impl Default for BatchOptions {
    fn default() -> Self {
        BatchOptions { largest: 16, delay: Duration::from_millis(2), queue: 256 }
    }
}

/// A thread that runs a function on as many requests at a time as are waiting. The first request of a batch waits for others
/// until the batch is full or the delay has passed. Dropping the batcher answers what waits, then ends the thread.
///
/// ```
/// use aoti_runtime::{BatchOptions, Batcher};
///
/// // With a model, the function fills a tensor, calls `run_with` and takes the outputs apart.
/// let squares = Batcher::new(BatchOptions::default(), |batch: &[f32]| Ok(batch.iter().map(|x| x * x).collect()))?;
/// assert_eq!(squares.submit(3.0)?.wait()?, 9.0);
/// # Ok::<(), aoti_runtime::Error>(())
/// ```
pub struct Batcher<T, R> {
    queue: Option<SyncSender<(T, Answer<R>)>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static, R: Send + 'static> Batcher<T, R> {
    /// Starts the thread. `run` gives a result for each request, in order; its error is that of all of them.
    ///
    /// # Errors
    /// [`ErrorCode::Memory`] where the system starts no thread.
    pub fn new(
        options: BatchOptions,
        mut run: impl FnMut(&[T]) -> Result<Vec<R>, Error> + Send + 'static,
    ) -> Result<Batcher<T, R>, Error> {
        let (queue, requests) = sync_channel(options.queue.max(1));
        let serve = move || {
            while let Some(batch) = collect(&requests, options) {
                let (items, answers): (Vec<T>, Vec<Answer<R>>) = batch.into_iter().unzip();
                match run(&items) {
                    // An answer without a result tells so as it is dropped.
                    Ok(results) => {
                        answers.into_iter().zip(results).for_each(|(answer, result)| answer.give(Ok(result)));
                    }
                    Err(error) => answers.into_iter().for_each(|answer| answer.give(Err(error.clone()))),
                }
            }
        };
        let thread = std::thread::Builder::new().name("aoti-batcher".to_owned()).spawn(serve);
        let failed = |error| Error::new(ErrorCode::Memory, format!("could not start a thread: {error}"));
        Ok(Batcher { queue: Some(queue), thread: Some(thread.map_err(failed)?) })
    }

    /// Queues a request.
    ///
    /// # Errors
    /// [`ErrorCode::Busy`] where too many wait.
    pub fn submit(&self, item: T) -> Result<Pending<R>, Error> {
        let slot = Arc::new(Slot { state: Mutex::new(State::Waiting(None)), given: Condvar::new() });
        let request = (item, Answer(Arc::clone(&slot)));
        let sent = self.queue.as_ref().map(|queue| queue.try_send(request));
        match sent {
            Some(Ok(())) => Ok(Pending(slot)),
            Some(Err(TrySendError::Full(_))) => Err(Error::new(ErrorCode::Busy, "too many requests wait")),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(stopped()),
        }
    }
}

impl<T, R> Drop for Batcher<T, R> {
    fn drop(&mut self) {
        self.queue.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the function was printed where it happened.
            let _ = thread.join();
        }
    }
}

impl<T, R> fmt::Debug for Batcher<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").field("thread", &self.thread).finish_non_exhaustive()
    }
}

/// The first request and those that come before the delay has passed, up to the largest batch; none where there will be none.
fn collect<T>(requests: &Receiver<T>, options: BatchOptions) -> Option<Vec<T>> {
    let mut batch = vec![requests.recv().ok()?];
    let begun = Instant::now();
    while batch.len() < options.largest {
        match requests.recv_timeout(options.delay.saturating_sub(begun.elapsed())) {
            Ok(request) => batch.push(request),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    Some(batch)
}

fn stopped() -> Error {
    Error::new(ErrorCode::Busy, "the batcher has stopped or gave no result")
}

enum State<R> {
    Waiting(Option<Waker>),
    Given(Result<R, Error>),
    Taken,
}

struct Slot<R> {
    state: Mutex<State<R>>,
    given: Condvar,
}

impl<R> Slot<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, result: Result<R, Error>) {
        let mut state = self.lock();
        if let State::Waiting(waker) = &mut *state {
            let waker = waker.take();
            *state = State::Given(result);
            drop(state);
            self.given.notify_all();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// Where the thread puts a result.
struct Answer<R>(Arc<Slot<R>>);

impl<R> Answer<R> {
    fn give(self, result: Result<R, Error>) {
        self.0.give(result);
    }
}

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        self.0.give(Err(stopped()));
    }
}

/// A result that is on its way: a [`Future`], or waited for with [`Pending::wait`]. Whoever drops it does not want it any more.
#[must_use = "the result is lost"]
pub struct Pending<R>(Arc<Slot<R>>);

impl<R> Pending<R> {
    /// Blocks the calling thread until the result is there.
    ///
    /// # Errors
    /// That of the run; [`ErrorCode::Busy`] where there was none.
    pub fn wait(self) -> Result<R, Error> {
        let mut state = self.0.lock();
        loop {
            match std::mem::replace(&mut *state, State::Taken) {
                State::Given(result) => return result,
                State::Taken => return Err(stopped()),
                State::Waiting(waker) => *state = State::Waiting(waker),
            }
            state = self.0.given.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<R> Future for Pending<R> {
    type Output = Result<R, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Given(result) => Poll::Ready(result),
            State::Taken => Poll::Ready(Err(stopped())),
            State::Waiting(_) => {
                *state = State::Waiting(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl<R> fmt::Debug for Pending<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::task::Wake;

    /// A batcher whose thread waits for a word before each run, and tells how many requests each had.
    fn gated(options: BatchOptions) -> (Batcher<u32, u32>, mpsc::Sender<()>, mpsc::Receiver<usize>) {
        let (go, gate) = mpsc::channel();
        let (tell, sizes) = mpsc::channel();
        let run = move |batch: &[u32]| {
            let _ = tell.send(batch.len());
            let _ = gate.recv();
            if batch.contains(&13) {
                return Err(Error::new(ErrorCode::Range, "13 is out of range"));
            }
            Ok(batch.iter().map(|x| x * x).collect())
        };
        (Batcher::new(options, run).unwrap(), go, sizes)
    }

    #[test]
    fn requests_that_wait_together_are_one_run_and_each_has_its_own_result() {
        let options = BatchOptions { largest: 3, delay: Duration::ZERO, queue: 4 };
        let (batcher, go, sizes) = gated(options);
        let first = batcher.submit(2).unwrap();
        assert_eq!(sizes.recv(), Ok(1));
        let rest: Vec<_> = (3..7).map(|x| batcher.submit(x).unwrap()).collect();
        assert_eq!(batcher.submit(8).unwrap_err().code(), ErrorCode::Busy);
        (0..3).for_each(|_| go.send(()).unwrap());
        assert_eq!(first.wait(), Ok(4));
        assert_eq!(rest.into_iter().map(Pending::wait).collect::<Vec<_>>(), [Ok(9), Ok(16), Ok(25), Ok(36)]);
        assert_eq!(sizes.try_iter().collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn an_error_is_that_of_the_whole_batch_and_a_dropped_batcher_answers_first() {
        let (batcher, go, sizes) = gated(BatchOptions { largest: 1, ..BatchOptions::default() });
        let (bad, good) = (batcher.submit(13).unwrap(), batcher.submit(4).unwrap());
        assert_eq!(sizes.recv(), Ok(1));
        drop(go);
        drop(batcher);
        assert_eq!(bad.wait().unwrap_err().code(), ErrorCode::Range);
        assert_eq!(good.wait(), Ok(16));
    }

    #[test]
    fn a_panic_of_the_function_is_an_error_for_those_who_wait() {
        let run = |_: &[u32]| -> Result<Vec<u32>, Error> { panic!("a bug in the program") };
        let batcher = Batcher::new(BatchOptions::default(), run).unwrap();
        assert_eq!(batcher.submit(1).unwrap().wait().unwrap_err().code(), ErrorCode::Busy);
    }

    #[test]
    fn a_future_wakes_who_polled_it_last() {
        struct Told(mpsc::SyncSender<()>);
        impl Wake for Told {
            fn wake(self: Arc<Self>) {
                let _ = self.0.send(());
            }
        }
        let (batcher, go, _sizes) = gated(BatchOptions::default());
        let mut pending = batcher.submit(5).unwrap();
        let (tell, told) = mpsc::sync_channel(1);
        let waker = Waker::from(Arc::new(Told(tell)));
        let mut context = Context::from_waker(&waker);
        assert_eq!(Pin::new(&mut pending).poll(&mut context), Poll::Pending);
        go.send(()).unwrap();
        told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(Pin::new(&mut pending).poll(&mut context), Poll::Ready(Ok(25)));
    }
}
