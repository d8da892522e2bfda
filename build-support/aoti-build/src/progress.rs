//! Progress events of a build. Prints nothing itself.

use aoti_toolchain::{Event, Events};

/// News about one model.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ModelEvent<'a> {
    /// Nothing has changed since it was built.
    Fresh {
        /// The model's name.
        name: &'a str,
    },
    /// Something about it that its owner should know.
    Note {
        /// The model's name.
        name: &'a str,
        /// A sentence.
        message: &'a str,
    },
    /// It is being compiled.
    Compiling {
        /// The model's name.
        name: &'a str,
        /// The name of its package; empty for a model of none.
        package: &'a str,
    },
    /// Another process builds into the same folder; this one waits for it.
    Waiting {
        /// The model's name.
        name: &'a str,
    },
    /// It is done.
    Built {
        /// The model's name.
        name: &'a str,
        /// Wall time in milliseconds.
        millis: u64,
    },
}

/// A listener. Called from several threads at once.
pub trait Progress: Sync {
    /// News about a model.
    fn model(&self, event: &ModelEvent<'_>);

    /// So many tools are going to be run.
    fn planned(&self, actions: usize) {
        let _ = actions;
    }

    /// News about a tool.
    fn tool(&self, event: &Event<'_>) {
        let _ = event;
    }
}

/// A listener that hears nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn model(&self, _: &ModelEvent<'_>) {}
}

/// Passes events of tools on.
#[derive(Clone, Copy)]
pub(crate) struct Forward<'a>(pub(crate) &'a dyn Progress);

impl Events for Forward<'_> {
    fn event(&self, event: &Event<'_>) {
        self.0.tool(event);
    }
}
