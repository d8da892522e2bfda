//! Shows how far a build is: status lines, and a bar if stderr is a terminal.

use aoti_build::{ModelEvent, Progress};
use aoti_toolchain::Event;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::Terminal;

/// A build's progress on the terminal.
pub(crate) struct Shown {
    terminal: Terminal,
    bar: ProgressBar,
}

impl Shown {
    pub(crate) fn new(terminal: Terminal) -> Shown {
        let bar = ProgressBar::no_length();
        // Hidden by itself where stderr is no terminal.
        bar.set_draw_target(if terminal.is_quiet() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        });
        let style = ProgressStyle::with_template("    Building [{bar:27}] {pos}/{len}: {msg}");
        bar.set_style(style.expect("the template is a constant").progress_chars("=> "));
        Shown { terminal, bar }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn status(&self, verb: &str, message: &str) {
        self.bar.suspend(|| self.terminal.status(verb, message));
    }
}

impl Progress for Shown {
    fn model(&self, event: &ModelEvent<'_>) {
        match event {
            ModelEvent::Compiling { name } => self.status("Compiling", name),
            ModelEvent::Waiting { name } => {
                self.status("Blocking", &format!("waiting for another process that builds {name}"));
            }
            ModelEvent::Fresh { name } => self.terminal.detail("Fresh", name),
            ModelEvent::Built { name, millis } => {
                self.bar.suspend(|| self.terminal.detail("Built", &format!("{name} in {millis} ms")));
            }
            _ => {}
        }
    }

    fn planned(&self, actions: usize) {
        self.bar.set_length(self.bar.length().unwrap_or(0) + actions as u64);
    }

    fn tool(&self, event: &Event<'_>) {
        match event {
            Event::Started { label } => self.bar.set_message((*label).to_owned()),
            Event::Finished { label, cached, millis } => {
                self.bar.inc(1);
                let verb = if *cached { "Cached" } else { "Ran" };
                self.bar.suspend(|| self.terminal.detail(verb, &format!("{label} in {millis} ms")));
            }
            Event::Failed { .. } => self.bar.inc(1),
            Event::Waiting { label } => {
                let message = format!("waiting for another process that makes {label}");
                self.bar.suspend(|| self.terminal.detail("Blocking", &message));
            }
            Event::Warning { label, message } => {
                self.bar.suspend(|| self.terminal.warn(&format!("{label}: {message}")));
            }
            _ => {}
        }
    }
}
