//! Events of a running build, for progress bars and logs. Prints nothing itself.

/// One piece of news from the executor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An action has begun.
    Started {
        /// The action.
        label: &'a str,
    },
    /// An action has succeeded.
    Finished {
        /// The action.
        label: &'a str,
        /// Whether its result was already there.
        cached: bool,
        /// Wall time in milliseconds, waiting included.
        millis: u64,
    },
    /// An action has failed; its error is in the results.
    Failed {
        /// The action.
        label: &'a str,
    },
    /// Another process is making the same thing; this one waits for it.
    Waiting {
        /// The action.
        label: &'a str,
    },
    /// The build goes on, but somebody should know.
    Warning {
        /// The action.
        label: &'a str,
        /// A sentence fragment.
        message: &'a str,
    },
}

/// A listener. Called from several threads at once.
pub trait Events: Sync {
    /// Takes one piece of news.
    fn event(&self, event: &Event<'_>);
}

/// A listener that hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl Events for NoEvents {
    fn event(&self, _: &Event<'_>) {}
}

impl<F: Fn(&Event<'_>) + Sync> Events for F {
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}
