//! Files and folders below a root that others can write to, such as a cache that a team shares.
//!
//! No name leads out of the root, no symbolic link below it is followed, and only regular files are opened: opening a pipe
//! would wait for its writer. The root itself is the user's choice and may be a link.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Most bytes of a component of a name, as file systems have it.
const MAX_COMPONENT: usize = 255;
/// Most bytes of a whole name.
const MAX_NAME: usize = 1024;
/// What Windows takes for devices, whatever the extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Whether a relative name, with `/` between its components, stays inside its folder on every system and is neither an
/// option nor a response file.
pub fn is_plain_name(name: &str) -> bool {
    let bad_char = |c: char| c.is_control() || c == '\\' || c == ':';
    let is_short = name.len() <= MAX_NAME;
    is_short && !name.starts_with(['-', '@']) && !name.contains(bad_char) && name.split('/').all(is_component)
}

/// Whether a name is plain and has no folder in it.
pub fn is_plain_file_name(name: &str) -> bool {
    is_plain_name(name) && !name.contains('/')
}

/// Windows drops dots and spaces at the end, so `..` and what becomes it are refused with them.
fn is_component(part: &str) -> bool {
    !part.is_empty() && part.len() <= MAX_COMPONENT && !part.ends_with(['.', ' ']) && !is_device(part)
}

fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_ascii_lowercase();
    let numbered = |name: &str| {
        stem.strip_prefix(name).is_some_and(|rest| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit())
    };
    DEVICES.contains(&stem.as_str()) || numbered("com") || numbered("lpt")
}

/// Opens a regular file to read it.
///
/// # Errors
/// What the system says; [`io::ErrorKind::InvalidInput`] for links, folders, pipes and devices.
pub fn open_file(path: &Path) -> io::Result<File> {
    check_file(path)?;
    File::open(path)
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// As [`open_file`], and [`io::ErrorKind::FileTooLarge`].
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // One more, so that a longer file is noticed even if it grows while it is read.
    open_file(path)?.take(most.saturating_add(1)).read_to_end(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

/// Opens a regular file to be locked or touched, and makes it if it is absent and `create` is set.
pub(crate) fn open_to_write(path: &Path, create: bool) -> io::Result<File> {
    match check_file(path) {
        Err(error) if create && error.kind() == io::ErrorKind::NotFound => {}
        checked => checked?,
    }
    OpenOptions::new().create(create).truncate(false).write(true).open(path)
}

fn check_file(path: &Path) -> io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_file() { Ok(()) } else { Err(refused("is not a regular file")) }
}

/// The length of a regular file.
pub(crate) fn length(path: &Path) -> io::Result<u64> {
    check_file(path)?;
    Ok(std::fs::symlink_metadata(path)?.len())
}

/// Makes the folders of a plain relative name below a root, and the root itself, and gives their path.
///
/// # Errors
/// What the system says; [`io::ErrorKind::InvalidInput`] if the name is not plain, or if something else than a folder, such as
/// a link to one, has the name of one.
pub fn make_folder(root: &Path, name: &str) -> io::Result<PathBuf> {
    std::fs::create_dir_all(root)?;
    if !is_plain_name(name) {
        return Err(refused("is not a plain relative name"));
    }
    let mut path = root.to_owned();
    for component in name.split('/') {
        path.push(component);
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !std::fs::symlink_metadata(&path)?.is_dir() {
                    return Err(refused("is a link or a file where a folder should be"));
                }
            }
            made => made?,
        }
    }
    Ok(path)
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_their_folder_on_any_system_are_not_plain() {
        let long = "a".repeat(256);
        let deep = "a/".repeat(600) + "a";
        for name in ["a.cpp", "include/aoti/vec.h", "kernels.v3.o", "com", "comet.h", ".hidden", "a b", "ä"]
        {
            assert!(is_plain_name(name), "{name}");
        }
        for name in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            ".",
            "./a",
            "a//b",
            "a/",
            "a\\b",
            "C:a",
            "a\0b",
            "a\n",
            "-o",
            "@file",
            "a.",
            "a ",
            "a/.. ",
            "nul",
            "NUL.h",
            "include/con.h",
            "com1",
            "lpt9.txt",
            &long,
            &deep,
        ] {
            assert!(!is_plain_name(name), "{name:?}");
        }
        assert!(is_plain_file_name("a.h") && !is_plain_file_name("a/b.h"));
    }

    #[cfg(unix)]
    #[test]
    fn links_pipes_and_folders_are_not_opened() {
        let here = tempfile::tempdir().unwrap();
        let [file, link, dangling, pipe, folder] =
            ["file", "link", "dangling", "pipe", "folder"].map(|name| here.path().join(name));
        fs_err::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink(here.path().join("outside"), &dangling).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        fs_err::create_dir(&folder).unwrap();
        assert_eq!(read_file(&file, 4).unwrap(), b"text");
        assert_eq!(read_file(&file, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        for path in [&link, &dangling, &pipe, &folder] {
            assert_eq!(open_file(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path:?}");
            assert_eq!(
                open_to_write(path, true).unwrap_err().kind(),
                io::ErrorKind::InvalidInput,
                "{path:?}"
            );
        }
        assert!(!here.path().join("outside").exists());
        open_to_write(&here.path().join("lock"), true).unwrap();
        assert!(open_to_write(&here.path().join("other"), false).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn folders_are_not_made_through_links() {
        let (here, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = here.path().join("root");
        assert_eq!(make_folder(&root, "a/b").unwrap(), root.join("a/b"));
        make_folder(&root, "a/b").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("a/link")).unwrap();
        for name in ["a/link", "a/link/c", "../c", "/c", ""] {
            assert_eq!(make_folder(&root, name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert_eq!(fs_err::read_dir(outside.path()).unwrap().count(), 0);
        // The root is the user's choice.
        std::os::unix::fs::symlink(outside.path(), here.path().join("elsewhere")).unwrap();
        make_folder(&here.path().join("elsewhere"), "a").unwrap();
        assert!(outside.path().join("a").is_dir());
    }
}
