//! `new`: a cargo project that runs a model.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Context;
use crate::failure::Failure;
use crate::project::shown;

/// Makes a cargo project that compiles a model in its build script and runs it
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Folder of the project
    path: PathBuf,
    /// A model to copy into it
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

const BUILD: &str = "\
fn main() -> Result<(), aoti_build::Error> {
    aoti_build::Builder::from_manifest()?.build()
}
";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let path = &arguments.path;
    if path.join("Cargo.toml").exists() {
        return Err(Failure::Usage(format!("`{}` is a cargo project already", path.display())));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().replace(' ', "-");
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !is_name {
        return Err(Failure::Usage(format!("`{name}` is not a name for a package")));
    }
    let version = env!("CARGO_PKG_VERSION");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\naoti-runtime = \"{version}\"\n\n\
         [build-dependencies]\naoti-build = \"{version}\"\n"
    );
    write(&path.join("Cargo.toml"), &manifest)?;
    write(&path.join("build.rs"), BUILD)?;
    fs_err::create_dir_all(path.join("models")).map_err(Failure::machine("make", &path.join("models")))?;
    let mut main = "fn main() {\n    println!(\"put a model into `models/`\");\n}\n".to_owned();
    if let Some(model) = &arguments.model {
        let name = crate::single::name_of(model);
        let extension = model.extension().unwrap_or_default().to_string_lossy();
        let target = path.join("models").join(format!("{name}.{extension}"));
        fs_err::copy(model, &target).map_err(|error| Failure::User(error.to_string()))?;
        let identifier = aoti_build::Model::new(&name, &target).identifier();
        main = format!(
            "aoti_runtime::include_model!(\"{identifier}\");\n\nfn main() -> Result<(), aoti_runtime::Error> {{\n    \
             let _model = {identifier}::Model::load()?;\n    println!(\"{{:#?}}\", {identifier}::Model::info()?);\n    Ok(())\n}}\n"
        );
    }
    write(&path.join("src/main.rs"), &main)?;
    context.terminal.status("Created", &shown(path, context));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs_err::create_dir_all(folder).map_err(Failure::machine("make", folder))?;
    fs_err::write(path, text).map_err(Failure::machine("write", path))
}
