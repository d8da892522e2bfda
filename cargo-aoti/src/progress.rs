//! Shows how far a build is: status lines, and a bar if stderr is a terminal.

use std::sync::OnceLock;
use std::time::Duration;

use aoti_build::{ModelEvent, Progress};
use aoti_toolchain::Event;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::Terminal;

/// While the compiler itself works, nobody knows how many tools there will be. What is wide is cut to the terminal.
const COMPILING: &str = "   Compiling {elapsed} {wide_msg}";
const BUILDING: &str = "    Building [{bar:27}] {pos}/{len} {elapsed} {wide_msg}";
const TICK: Duration = Duration::from_millis(200);

/// The bar that is shown, for when the user interrupts.
static BAR: OnceLock<ProgressBar> = OnceLock::new();

/// Clears the terminal and says that nothing more will come.
pub(crate) fn interrupted() {
    if let Some(bar) = BAR.get() {
        bar.finish_and_clear();
    }
    anstream::eprintln!("interrupted; finished work is kept and the next build will resume");
}

/// A model's name, with that of its package where it is another: a workspace may have several models of one name.
fn of_package(name: &str, package: &str) -> String {
    if package.is_empty() || package == name { name.to_owned() } else { format!("{name} ({package})") }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant").progress_chars("=> ")
}

/// A build's progress on the terminal.
pub(crate) struct Shown {
    terminal: Terminal,
    bar: ProgressBar,
}

impl Shown {
    pub(crate) fn new(terminal: Terminal) -> Shown {
        let bar = ProgressBar::no_length();
        // Hidden by itself where stderr is no terminal.
        bar.set_draw_target(if terminal.has_progress() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        });
        bar.set_style(style(COMPILING));
        bar.enable_steady_tick(TICK);
        BAR.set(bar.clone()).ok();
        Shown { terminal, bar }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// What is being done, beside the bar.
    pub(crate) fn note(&self, message: &str) {
        self.bar.set_message(message.to_owned());
        self.bar.suspend(|| self.terminal.detail("Tuning", message));
    }

    pub(crate) fn warn(&self, message: &str) {
        self.bar.suspend(|| self.terminal.warn(message));
    }

    /// A status line above the bar, of which nothing stays behind.
    pub(crate) fn say(&self, verb: &str, message: &str) {
        self.status(verb, message);
    }

    fn status(&self, verb: &str, message: &str) {
        self.bar.suspend(|| self.terminal.status(verb, message));
    }
}

impl Progress for Shown {
    fn model(&self, event: &ModelEvent<'_>) {
        match event {
            ModelEvent::Compiling { name, package } => {
                self.status("Compiling", &of_package(name, package));
                self.bar.set_message((*name).to_owned());
            }
            ModelEvent::Note { message, .. } => self.bar.suspend(|| self.terminal.warn(message)),
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
        let length = self.bar.length().unwrap_or(0) + actions as u64;
        self.bar.set_length(length);
        if length > 0 {
            self.bar.set_style(style(BUILDING));
        }
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
