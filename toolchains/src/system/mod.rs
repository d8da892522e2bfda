//! What systems do differently, each difference with its implementations beside each other. The rest of the crate knows no
//! system.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::path::Path;

pub(crate) mod tree;

/// Makes a folder that no other user can read. On Windows, folders in that of a user's temporary files are so.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    imp::create_private_folder(path)
}

/// Lets an input of an action be found under another name, as cheaply as the system can. Inputs are only read.
pub(crate) fn link(from: &Path, to: &Path) -> io::Result<()> {
    imp::link(from, to)
}

/// What else than length and time tells that a file is another than before: its number, and when it was last replaced or renamed.
pub(crate) fn identity(metadata: &Metadata) -> (u64, i64) {
    imp::identity(metadata)
}

/// Gives a file or folder another name in one step, instead of the file that has it.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    imp::rename(from, to)
}

/// Opens what stands for a folder when it is locked, and leaves nothing in it.
pub(crate) fn open_folder_to_lock(folder: &Path) -> io::Result<std::fs::File> {
    imp::open_folder_to_lock(folder)
}

/// The name that a variable is known by: on Windows it does not matter whether letters are capitals.
pub(crate) fn variable_key(name: &OsStr) -> OsString {
    imp::variable_key(name)
}

/// A few lines that stand for this machine's processor.
pub(crate) fn processor() -> String {
    imp::processor()
}

#[cfg(unix)]
mod imp {
    use std::ffi::{OsStr, OsString};
    use std::fs::{DirBuilder, File, Metadata};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    use std::path::Path;

    pub(super) fn create_private_folder(path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    pub(super) fn link(from: &Path, to: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(from, to)
    }

    pub(super) fn identity(metadata: &Metadata) -> (u64, i64) {
        (metadata.ino(), metadata.ctime().wrapping_mul(1_000_000_000).wrapping_add(metadata.ctime_nsec()))
    }

    pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    pub(super) fn open_folder_to_lock(folder: &Path) -> io::Result<File> {
        File::open(folder)
    }

    pub(super) fn variable_key(name: &OsStr) -> OsString {
        name.to_owned()
    }

    #[cfg(not(target_vendor = "apple"))]
    pub(super) fn processor() -> String {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        ["vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU part"]
            .iter()
            .filter_map(|field| {
                let of_field = |line: &&str| line.split(':').next().is_some_and(|name| name.trim() == *field);
                text.lines().find(of_field)
            })
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[cfg(target_vendor = "apple")]
    pub(super) fn processor() -> String {
        let mut text = [0u8; 256];
        let mut bytes = text.len();
        let name = c"machdep.cpu.brand_string".as_ptr();
        // SAFETY: the name ends with a zero, and the text has room for as many bytes as are stated.
        let status = unsafe {
            libc::sysctlbyname(name, text.as_mut_ptr().cast(), &raw mut bytes, std::ptr::null_mut(), 0)
        };
        let text = text.get(..bytes).filter(|_| status == 0).unwrap_or_default();
        String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()
    }
}

#[cfg(windows)]
mod imp {
    use std::ffi::{OsStr, OsString};
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;
    use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
    use std::path::Path;
    use std::time::Duration;

    pub(super) fn create_private_folder(path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    /// Symbolic links are a privilege here; hard links reach no other volume.
    pub(super) fn link(from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop))
    }

    pub(super) fn identity(metadata: &Metadata) -> (u64, i64) {
        (0, i64::try_from(metadata.creation_time()).unwrap_or(i64::MAX))
    }

    /// Scanners open what has just been written, for moments in which it has to keep its name.
    pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
        patiently(|| std::fs::rename(from, to))
    }

    /// Does what the system refuses while another program has a file open, until it does not; for a second at most.
    fn patiently<T>(work: impl Fn() -> io::Result<T>) -> io::Result<T> {
        for _ in 0..100 {
            match work() {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                done => return done,
            }
        }
        work()
    }

    pub(super) fn variable_key(name: &OsStr) -> OsString {
        name.to_ascii_uppercase()
    }

    pub(super) fn processor() -> String {
        let names = ["PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER"];
        let values = names.map(|name| std::env::var(name).unwrap_or_default());
        values.join("\n")
    }

    /// Folders cannot be locked here: a file in it, which goes away with the last that has it open.
    pub(super) fn open_folder_to_lock(folder: &Path) -> io::Result<File> {
        const GENERIC_READ_WRITE_DELETE: u32 = 0xC001_0000;
        const SHARE_ALL: u32 = 7;
        const DELETE_ON_CLOSE: u32 = 0x0400_0000;
        let open = || {
            OpenOptions::new()
                .access_mode(GENERIC_READ_WRITE_DELETE)
                .share_mode(SHARE_ALL)
                .custom_flags(DELETE_ON_CLOSE)
                .create(true)
                .truncate(false)
                .write(true)
                .open(folder.join(".aoti-lock~"))
        };
        // While the last one that has it open is about to go, it cannot be opened anew.
        patiently(open)
    }
}
