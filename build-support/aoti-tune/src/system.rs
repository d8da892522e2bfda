//! What systems do differently, each difference with its implementations beside each other. The rest of the program knows no
//! system.

use std::process::ExitStatus;

/// How a process ended that did not end by itself: the signal or the exception.
pub fn crash(status: ExitStatus) -> Option<String> {
    imp::crash(status)
}

/// Ends this process when the one that started it has: a candidate that hangs would go on for ever. On Windows it is a job of
/// that process, which the system ends with it.
pub fn end_with_parent() {
    imp::end_with_parent();
}

/// Whether a shell can limit the memory of what it starts.
pub const HAS_ULIMIT: bool = cfg!(unix);

#[cfg(unix)]
mod imp {
    use std::os::unix::process::{ExitStatusExt, parent_id};
    use std::process::ExitStatus;
    use std::time::Duration;

    pub(super) fn crash(status: ExitStatus) -> Option<String> {
        let signal = status.signal()?;
        let name = match signal {
            4 => " (illegal instruction)",
            6 => " (abort)",
            8 => " (arithmetic)",
            9 => " (killed)",
            11 => " (segmentation fault)",
            _ => "",
        };
        Some(format!("crashed with signal {signal}{name}"))
    }

    pub(super) fn end_with_parent() {
        std::thread::spawn(|| {
            let parent = parent_id();
            while parent_id() == parent {
                std::thread::sleep(Duration::from_millis(500));
            }
            std::process::exit(1);
        });
    }
}

#[cfg(windows)]
mod imp {
    use std::process::ExitStatus;

    pub(super) fn crash(status: ExitStatus) -> Option<String> {
        let code = status.code()?.cast_unsigned();
        let name = match code {
            0xC000_0005 => " (access violation)",
            0xC000_001D => " (illegal instruction)",
            0xC000_0094 | 0xC000_0095 => " (arithmetic)",
            0xC000_00FD => " (stack overflow)",
            0xC000_0135 | 0xC000_0139 => " (a library that it needs is missing)",
            0xC000_0409 => " (abort)",
            _ if code >= 0xC000_0000 => "",
            _ => return None,
        };
        Some(format!("crashed with exception {code:#010X}{name}"))
    }

    pub(super) fn end_with_parent() {}
}
