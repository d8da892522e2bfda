//! A tool with all that it has started, which is ended as a whole: a compiler's driver waits for others.
//!
//! On Linux and macOS the processes are no group of their own, so that a terminal's interrupt ends them with us; on Windows
//! they are a job, which ends with us too.

use std::process::Child;

/// What is needed to end a tool and its descendants.
#[derive(Debug)]
pub struct ProcessTree(imp::Tree);

impl ProcessTree {
    /// Of a tool that has just been started.
    pub fn of(child: &Child) -> ProcessTree {
        ProcessTree(imp::Tree::of(child))
    }

    /// Kills all of them, where the system tells which they are, and in any case the tool.
    pub fn end(self, child: &mut Child) {
        self.0.end(child.id());
        // An error means that it has ended just now.
        let _ = child.kill();
    }
}

#[cfg(unix)]
mod imp {
    use std::process::Child;

    #[derive(Debug)]
    pub(super) struct Tree;

    impl Tree {
        pub(super) fn of(_: &Child) -> Tree {
            Tree
        }

        /// First stops all of them, so that they start no more. The first has not been waited for, and of those that are
        /// stopped none can end: their numbers are not given to others.
        pub(super) fn end(self, root: u32) {
            let mut found = vec![root];
            signal(root, libc::SIGSTOP);
            loop {
                let children = children(&found);
                let new: Vec<u32> = children.into_iter().filter(|child| !found.contains(child)).collect();
                if new.is_empty() {
                    break;
                }
                for process in &new {
                    signal(*process, libc::SIGSTOP);
                }
                found.extend(new);
            }
            for process in found {
                signal(process, libc::SIGKILL);
            }
        }
    }

    fn signal(process: u32, signal: libc::c_int) {
        if let Ok(process) = libc::pid_t::try_from(process) {
            // SAFETY: `kill` takes two numbers; an error means that there is no such process any more.
            unsafe { libc::kill(process, signal) };
        }
    }

    /// As `/proc` tells them.
    #[cfg(not(target_vendor = "apple"))]
    fn children(parents: &[u32]) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let processes = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_child = |process: &u32| {
            let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok();
            // The name, in parentheses, may hold anything.
            let parent =
                text.and_then(|text| text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok());
            parent.is_some_and(|parent: u32| parents.contains(&parent))
        };
        processes.filter(is_child).collect()
    }

    #[cfg(target_vendor = "apple")]
    fn children(parents: &[u32]) -> Vec<u32> {
        /// More than any compiler starts at a time.
        const MOST: usize = 1024;
        let of = |parent: &u32| {
            let mut processes = [0 as libc::pid_t; MOST];
            let parent = libc::pid_t::try_from(*parent).unwrap_or(-1);
            let bytes = libc::c_int::try_from(size_of_val(&processes)).unwrap_or(0);
            // SAFETY: the list has room for as many bytes as are stated.
            let count = unsafe { libc::proc_listchildpids(parent, processes.as_mut_ptr().cast(), bytes) };
            let count = usize::try_from(count).unwrap_or(0).min(MOST);
            let children = processes.into_iter().take(count);
            children
                .filter_map(|child| u32::try_from(child).ok())
                .filter(|child| *child > 0)
                .collect::<Vec<_>>()
        };
        parents.iter().flat_map(of).collect()
    }
}

#[cfg(windows)]
mod imp {
    use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
    use std::process::Child;
    use std::ptr;
    use windows_sys::Win32::System::JobObjects::{
        AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
        JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation, SetInformationJobObject,
        TerminateJobObject,
    };

    /// The job, if there is one: then all that the tool starts belongs to it.
    #[derive(Debug)]
    pub(super) struct Tree(Option<OwnedHandle>);

    impl Tree {
        pub(super) fn of(child: &Child) -> Tree {
            // SAFETY: without attributes and name there is nothing to be valid.
            let job = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
            if job.is_null() {
                return Tree(None);
            }
            // SAFETY: made just now, and closed by nobody else.
            let job = unsafe { OwnedHandle::from_raw_handle(job) };
            let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
            limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
            let bytes = u32::try_from(size_of_val(&limits)).unwrap_or(0);
            // SAFETY: both handles are open, and the limits are as long as stated.
            let is_assigned = unsafe {
                let limits = (&raw const limits).cast();
                let kind = JobObjectExtendedLimitInformation;
                SetInformationJobObject(job.as_raw_handle(), kind, limits, bytes);
                AssignProcessToJobObject(job.as_raw_handle(), child.as_raw_handle()) != 0
            };
            Tree(is_assigned.then_some(job))
        }

        pub(super) fn end(self, _: u32) {
            if let Some(job) = self.0 {
                // SAFETY: the handle is open.
                unsafe { TerminateJobObject(job.as_raw_handle(), 1) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    const FOLDER: &str = "AOTI_TEST_TREE";

    fn again(folder: &Path, generation: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = format!("system::tree::tests::{generation}");
        command.args(["--exact", &name]).env(FOLDER, folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// In a process of its own, which the last test starts.
    #[test]
    fn child() {
        let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
        again(&folder, "grandchild").spawn().unwrap().wait().unwrap();
    }

    /// In a process of its own, which the last test starts.
    #[test]
    fn grandchild() {
        let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
        let file = File::create(folder.join("held")).unwrap();
        file.lock().unwrap();
        File::create(folder.join("ready")).unwrap();
        std::thread::sleep(Duration::from_secs(60));
    }

    /// A lock goes with the process that holds it.
    #[test]
    fn what_a_tool_has_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = again(folder.path(), "child").spawn().unwrap();
        let tree = ProcessTree::of(&child);
        let begun = Instant::now();
        while !folder.path().join("ready").exists() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the tool does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        let file = File::options().write(true).open(folder.path().join("held")).unwrap();
        assert!(file.try_lock().is_err());
        tree.end(&mut child);
        child.wait().unwrap();
        while file.try_lock().is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "what the tool has started goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
