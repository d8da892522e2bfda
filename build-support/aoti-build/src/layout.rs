//! Where the artefacts of a model are placed.

use std::path::{Path, PathBuf};

/// The folders of one model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Sources, header, manifest and the record of what is up to date.
    pub folder: PathBuf,
    /// Library and Rust module.
    pub public: PathBuf,
    /// Weights file.
    pub weights: PathBuf,
}

impl Layout {
    /// Everything in one folder: `<target dir>/aoti/<profile>/<triple>/<package>/<model>`.
    pub fn of_target(
        target_directory: &Path,
        profile: &str,
        triple: &str,
        package: &str,
        identifier: &str,
    ) -> Layout {
        Layout::flat(target_directory.join("aoti").join(profile).join(triple).join(package).join(identifier))
    }

    /// Everything in this folder.
    pub fn flat(folder: impl Into<PathBuf>) -> Layout {
        let folder = folder.into();
        Layout { public: folder.clone(), weights: folder.clone(), folder }
    }

    /// With the weights file in another folder, which builds may share: the name of a sidecar says what is in it.
    #[must_use]
    pub fn with_weights(self, folder: impl Into<PathBuf>) -> Layout {
        Layout { weights: folder.into(), ..self }
    }

    /// The layout that generated modules expect of a build script's output folder.
    pub fn of_build_script(out_dir: &Path, identifier: &str) -> Layout {
        let public = out_dir.join("aoti");
        Layout { folder: public.join(identifier), weights: public.clone(), public }
    }

    pub(crate) fn sources(&self) -> PathBuf {
        self.folder.join("src")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.folder.join(".lock")
    }

    pub(crate) fn manifest(&self) -> PathBuf {
        self.folder.join("manifest.json")
    }

    pub(crate) fn bindings(&self, identifier: &str) -> PathBuf {
        self.public.join(format!("{identifier}.rs"))
    }

    pub(crate) fn header(&self, identifier: &str) -> PathBuf {
        self.folder.join(format!("aoti_{identifier}.h"))
    }
}
