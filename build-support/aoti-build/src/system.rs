//! What systems do differently, each difference with its implementations beside each other. The rest of the crate knows no
//! system.

/// The process that started this one, where the system tells.
pub(crate) fn parent() -> Option<u32> {
    imp::parent()
}

/// The command line of a process, of which each word ends with a zero byte, where the system tells.
#[cfg(feature = "compiler")]
pub(crate) fn command_line(process: u32) -> Option<Vec<u8>> {
    // Other systems have no such file.
    std::fs::read(format!("/proc/{process}/cmdline")).ok()
}

/// Lets everybody read a file, whatever the user's mask is: others may run what was built. On Windows, files are as the folder
/// says.
#[cfg(feature = "compiler")]
pub(crate) fn make_readable(file: &std::fs::File) -> std::io::Result<()> {
    imp::make_readable(file)
}

#[cfg(unix)]
mod imp {
    pub(super) fn parent() -> Option<u32> {
        Some(std::os::unix::process::parent_id())
    }

    #[cfg(feature = "compiler")]
    pub(super) fn make_readable(file: &std::fs::File) -> std::io::Result<()> {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
    }
}

#[cfg(not(unix))]
mod imp {
    pub(super) fn parent() -> Option<u32> {
        None
    }

    #[cfg(feature = "compiler")]
    pub(super) fn make_readable(_: &std::fs::File) -> std::io::Result<()> {
        Ok(())
    }
}
