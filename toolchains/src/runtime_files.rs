//! Asks a compiler where a file of its own runtime is, such as a sanitizer's library.

use std::path::PathBuf;

use crate::environment::Environment;
use crate::process;
use crate::resolve::Toolchain;

impl Toolchain {
    /// The compiler's runtime file of this name; `None` if it has none.
    pub fn runtime_file(&self, name: &str, environment: &Environment) -> Option<PathBuf> {
        let arguments = [format!("-print-file-name={name}")];
        let output =
            process::run(&self.compiler.launch, &arguments, environment.directory(), environment).ok()?;
        let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        // A compiler that knows no such file answers with the name alone.
        (output.status.success() && path.is_absolute() && path.is_file()).then_some(path)
    }
}
