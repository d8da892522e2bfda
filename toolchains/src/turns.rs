//! Runs work in parallel within the limits of a jobserver, cargo's own if there is one, so that a build with many
//! packages and models never runs more at once than the user asked for.
//!
//! Knows nothing of what the work is.

use std::sync::{Mutex, PoisonError, mpsc};

use jobserver::{Acquired, Client};

/// Tokens, and how many of them are used at most.
pub(crate) struct Turns {
    client: Client,
    most: usize,
}

enum News {
    Token(std::io::Result<Acquired>),
    /// Work is done, and its token is free for other work.
    Done(Option<Acquired>),
}

impl Turns {
    /// Turns at an inherited jobserver, of which no more than `jobs` are used at once; without one, at one of our own with
    /// `jobs` tokens, or `parallelism` of them.
    pub(crate) fn new(
        inherited: Option<&Client>,
        jobs: Option<usize>,
        parallelism: usize,
    ) -> std::io::Result<Self> {
        let client = match inherited {
            Some(client) => client.clone(),
            // This process holds one token without asking; the others are in the pipe.
            None => Client::new(jobs.unwrap_or(parallelism).clamp(1, 4096) - 1)?,
        };
        Ok(Turns { client, most: jobs.unwrap_or(usize::MAX).max(1) })
    }

    /// Calls `work` for each number below `count` and returns what it gave, in order. One call runs under the token that
    /// every process holds, each other one at the same time under a token of its own.
    pub(crate) fn each<T: Send>(&self, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        if count < 2 || self.most < 2 {
            return (0..count).map(work).collect();
        }
        let (sender, receiver) = mpsc::channel();
        let token_sender = sender.clone();
        let helper = self.client.clone().into_helper_thread(move |token| {
            // The receiver is gone when all work is done; the token then returns by being dropped.
            let _ = token_sender.send(News::Token(token));
        });
        if let Ok(helper) = &helper {
            (1..count.min(self.most)).for_each(|_| helper.request_token());
        }
        let results: Vec<_> = (0..count).map(|_| Mutex::new(None)).collect();
        std::thread::scope(|scope| {
            let start = |index: usize, token: Option<Acquired>| {
                let (sender, slot, work) = (sender.clone(), &results[index], &work);
                scope.spawn(move || {
                    // Unreported, a panic would leave the loop below waiting for ever.
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(index)));
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                    let _ = sender.send(News::Done(token));
                });
            };
            start(0, None);
            let (mut next, mut left) = (1, count);
            while left > 0 {
                let Ok(news) = receiver.recv() else { break };
                let token = match news {
                    News::Token(Ok(token)) => Some(token),
                    // Without further tokens the implicit one does all the work.
                    News::Token(Err(_)) => continue,
                    News::Done(token) => {
                        left -= 1;
                        token
                    }
                };
                // A token that finds no work left goes back at once.
                if next < count {
                    start(next, token);
                    next += 1;
                }
            }
        });
        drop(helper);
        let unlocked =
            results.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
        let done = unlocked.map(|result| result.expect("all work reports before the loop ends"));
        done.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    }
}
