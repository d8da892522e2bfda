//! What to do about failures of tools that many people meet. Looks at words only; what it does not recognise it leaves
//! alone.

/// A failure by the words that tools tell it with: all of the words of one line of the table, in any case.
struct Known {
    words: &'static [&'static str],
    advice: &'static str,
}

const NO_HOST: &str = "nvcc calls a C++ compiler of the host: install g++, or name one in `NVCC_CCBIN`";
const DEVICE_LIBRARIES: &str = "the device libraries of ROCm are missing: install rocm-device-libs, or let `clang-hip` compile, which needs none";
const OUT_OF_MEMORY: &str =
    "the tool was killed, as the system does when memory runs out: build with fewer jobs (`-j1`)";
const DISK_FULL: &str =
    "a disk is full: free space, `cargo aoti cache gc`, or point `TMPDIR` and `AOTI_CACHE_DIR` elsewhere";

/// In order: the first that fits is told.
const KNOWN: &[Known] = &[
    Known { words: &["no space left on device"], advice: DISK_FULL },
    Known { words: &["disk quota exceeded"], advice: DISK_FULL },
    Known { words: &["signal: 9"], advice: OUT_OF_MEMORY },
    Known { words: &["killed signal terminated program"], advice: OUT_OF_MEMORY },
    Known { words: &["virtual memory exhausted"], advice: OUT_OF_MEMORY },
    Known { words: &["out of memory allocating"], advice: OUT_OF_MEMORY },
    Known { words: &["std::bad_alloc"], advice: OUT_OF_MEMORY },
    Known {
        words: &["unsupported gnu version"],
        advice: "nvcc does not take this g++: install an older one (`cargo aoti doctor` lists what was tried) and name it in `NVCC_CCBIN`",
    },
    Known {
        words: &["unsupported clang version"],
        advice: "nvcc does not take this clang: name a g++ or an older clang in `NVCC_CCBIN`",
    },
    Known { words: &["failed to preprocess host compiler properties"], advice: NO_HOST },
    Known { words: &["cannot find compiler", "in path"], advice: NO_HOST },
    Known { words: &["nvcc fatal", "gcc"], advice: NO_HOST },
    Known {
        words: &["cicc", "not found"],
        advice: "CUDA is installed in part: install nvidia-nvvm (pip) or cuda-nvvm",
    },
    Known {
        words: &["crt/host_config.h"],
        advice: "CUDA is installed in part: install nvidia-cuda-crt (pip) or cuda-crt",
    },
    Known {
        words: &["cuda_runtime.h", "no such file"],
        advice: "CUDA is installed in part: install nvidia-cuda-runtime (pip) or cuda-cudart-dev",
    },
    Known { words: &["cannot find rocm device library"], advice: DEVICE_LIBRARIES },
    Known {
        words: &["cannot find hip runtime"],
        advice: "install libamdhip64-dev, or let `clang-hip` compile, which needs no headers",
    },
    Known { words: &["oclc_", "no such file"], advice: DEVICE_LIBRARIES },
    Known {
        words: &["cannot find -lstdc++"],
        advice: "the C++ library of this compiler is missing: install g++ (or libstdc++-<version>-dev for clang)",
    },
    Known {
        words: &["unable to find library -lstdc++"],
        advice: "the C++ library of this compiler is missing: install g++ (or libstdc++-<version>-dev for clang)",
    },
    Known {
        words: &["cannot find -lm"],
        advice: "the C library's development files are missing: install libc6-dev or glibc-devel",
    },
    Known {
        words: &["cannot find crt1.o"],
        advice: "the C library's development files are missing: install libc6-dev or glibc-devel",
    },
    Known {
        words: &["cannot find scrt1.o"],
        advice: "the C library's development files are missing: install libc6-dev or glibc-devel",
    },
    Known {
        words: &["unable to execute command", "lld"],
        advice: "clang links GPU code with lld: install lld of the same version",
    },
    Known {
        words: &["invalid linker name"],
        advice: "the linker named by `-fuse-ld` is missing: install lld",
    },
    Known { words: &["cannot execute", "cc1plus"], advice: "gcc is there without its C++ part: install g++" },
    Known {
        words: &["error trying to exec", "cc1plus"],
        advice: "gcc is there without its C++ part: install g++",
    },
    Known {
        words: &["permission denied"],
        advice: "the tool may not be run, or its folder is mounted `noexec`",
    },
];

/// Advice for a failed tool, if its status or its words are known.
pub(crate) fn for_failure(status: &str, stderr: &str) -> Option<&'static str> {
    let status = status.to_ascii_lowercase();
    // A tool may say several things; those of its first lines are the cause of the others.
    let lines = stderr.lines().map(str::to_ascii_lowercase).collect::<Vec<_>>();
    let fits = |known: &&Known| {
        let in_text = |text: &str| known.words.iter().all(|word| text.contains(word));
        in_text(&status) || lines.iter().any(|line| in_text(line))
    };
    KNOWN.iter().find(fits).map(|known| known.advice)
}

/// Advice for a failure of the system.
pub(crate) fn for_io(error: &std::io::Error) -> Option<&'static str> {
    use std::io::ErrorKind;
    if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
        return Some(DISK_FULL);
    }
    (error.kind() == ErrorKind::OutOfMemory).then_some(OUT_OF_MEMORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_failures_are_recognised_in_the_tools_own_words() {
        for (status, stderr, part) in [
            ("exit status: 1", "nvcc fatal   : Failed to preprocess host compiler properties.", "NVCC_CCBIN"),
            (
                "exit status: 1",
                "#error -- unsupported GNU version! gcc versions later than 15 are not supported!",
                "older",
            ),
            (
                "exit status: 1",
                "clang: error: cannot find ROCm device library; provide its path",
                "rocm-device-libs",
            ),
            ("exit status: 1", "/usr/bin/ld: cannot find -lstdc++: No such file or directory", "install g++"),
            ("exit status: 1", "g++: fatal error: Killed signal terminated program cc1plus", "-j1"),
            ("signal: 9 (SIGKILL)", "", "-j1"),
            ("exit status: 1", "fatal error: error writing to x.s: No space left on device", "disk is full"),
            (
                "exit status: 1",
                "gcc: fatal error: cannot execute 'cc1plus': execvp: No such file",
                "install g++",
            ),
        ] {
            let advice = for_failure(status, stderr).unwrap_or_else(|| panic!("{stderr}"));
            assert!(advice.contains(part), "{stderr}: {advice}");
        }
        assert_eq!(for_failure("exit status: 1", "a.cpp:1: error: 'x' was not declared in this scope"), None);
    }
}
