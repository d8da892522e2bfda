//! Talk on stderr: status lines as cargo writes them, warnings, errors.

use anstyle::{AnsiColor, Style};

use crate::arguments::{Color, Global};
use crate::failure::Failure;
use crate::settings::Settings;

/// How much is said, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    quiet: bool,
    verbose: bool,
    progress: bool,
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const STATUS: Style = AnsiColor::Green.on_default().bold();
const ASIDE: Style = AnsiColor::Cyan.on_default().bold();

impl Terminal {
    /// As the command line says, else as cargo's configuration does.
    pub(crate) fn new(global: &Global, settings: &Settings) -> Terminal {
        let from_cargo = || match settings.color.as_deref()? {
            "always" => Some(Color::Always),
            "never" => Some(Color::Never),
            _ => None,
        };
        match global.color.or_else(from_cargo) {
            Some(Color::Always) => anstream::ColorChoice::Always.write_global(),
            Some(Color::Never) => anstream::ColorChoice::Never.write_global(),
            // What remains looks at the terminal and at `NO_COLOR`.
            Some(Color::Auto) | None => {}
        }
        let is_given = global.quiet || global.verbose > 0;
        Terminal {
            quiet: global.quiet || (!is_given && settings.quiet == Some(true)),
            verbose: global.verbose > 0 || (!is_given && settings.verbose == Some(true)),
            progress: settings.progress != Some(false),
        }
    }

    /// Whether there may be bars.
    pub(crate) fn has_progress(self) -> bool {
        self.progress && !self.quiet
    }

    pub(crate) fn is_verbose(self) -> bool {
        self.verbose && !self.quiet
    }

    /// A line such as `   Compiling digits`.
    pub(crate) fn status(self, verb: &str, message: &str) {
        if !self.quiet {
            anstream::eprintln!("{STATUS}{verb:>12}{STATUS:#} {message}");
        }
    }

    /// A status line that only `--verbose` shows.
    pub(crate) fn detail(self, verb: &str, message: &str) {
        if self.is_verbose() {
            self.status(verb, message);
        }
    }

    pub(crate) fn warn(self, message: &str) {
        if !self.quiet {
            anstream::eprintln!("{WARNING}warning{WARNING:#}: {message}");
        }
    }

    pub(crate) fn failure(self, failure: &Failure) {
        let Some(message) = failure.message() else { return };
        if message.starts_with("error[") {
            self.diagnostics(message);
        } else {
            anstream::eprintln!("{ERROR}error{ERROR:#}: {message}");
        }
    }

    /// Diagnostics, of which each begins with `error[`; the text is coloured and otherwise left as it is.
    pub(crate) fn diagnostics(self, text: &str) {
        for (index, line) in text.lines().enumerate() {
            if let Some((code, rest)) = line.strip_prefix("error[").and_then(|rest| rest.split_once(']')) {
                let gap = if index > 0 { "\n" } else { "" };
                anstream::eprintln!("{gap}{ERROR}error[{code}]{ERROR:#}{rest}");
            } else if let Some((indent, rest)) =
                line.split_once("--> ").filter(|(indent, _)| indent.trim().is_empty())
            {
                anstream::eprintln!("{ASIDE}{indent}--> {ASIDE:#}{rest}");
            } else if let Some((label, rest)) =
                line.strip_prefix("  = ").and_then(|rest| rest.split_once(':'))
            {
                anstream::eprintln!("{ASIDE}   ={ASIDE:#} {label}:{rest}");
            } else {
                anstream::eprintln!("{line}");
            }
        }
    }
}
