//! Cases: folders with a model, its inputs and its expected outputs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aoti_build::WeightsType;
use aoti_compiler::frontend::InputShape;
use aoti_compiler::json::FromJson;
use clap::ValueEnum;
use serde::Deserialize;

use crate::failure::Failure;
use crate::memory;
use crate::tensors::onnx;
use aoti_tune::tensors::compare::{Tolerance, Tolerances};

/// Format of a model file.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// torch.export
    Pt2,
    /// ONNX
    Onnx,
    /// cargo-aoti's own text
    Aoti,
}

impl Format {
    pub(crate) const ALL: [Format; 3] = [Format::Pt2, Format::Onnx, Format::Aoti];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Format::Pt2 => "pt2",
            Format::Onnx => "onnx",
            Format::Aoti => "aoti",
        }
    }

    /// The format of a file with this name.
    pub(crate) fn of(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?;
        Format::ALL.into_iter().find(|format| format.as_str() == extension)
    }

    fn file(self) -> String {
        format!("model.{}", self.as_str())
    }
}

/// One model of one case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Case {
    /// Path of the folder below the one given, for people.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) format: Format,
    /// Where its inputs and outputs are, in ONNX's own layout.
    pub(crate) set: Option<PathBuf>,
    /// Its model, where it is not in the folder.
    pub(crate) file: Option<PathBuf>,
    /// What its project has its weights rounded to.
    pub(crate) weights: WeightsType,
}

/// A number for all outputs, or one for each.
#[derive(Clone, Deserialize, Debug)]
#[serde(untagged)]
enum Numbers {
    Same(f64),
    Each(Vec<f64>),
}

/// `case.json`; what it says beyond this is for whoever made the case.
#[derive(Deserialize, Default, Debug)]
struct CaseFile {
    atol: Option<Numbers>,
    rtol: Option<Numbers>,
    /// The file of the outputs that the program has in float64.
    reference: Option<String>,
    /// How many times as far from that as the expected outputs a result may be.
    times: Option<f64>,
    /// Why the case cannot be run here.
    skip: Option<String>,
    /// Shapes of inputs, as `shapes` of the manifest has them.
    shapes: Option<serde_json::Value>,
}

/// What a case says of itself.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Terms {
    pub(crate) tolerances: Tolerances,
    pub(crate) reference: Option<Reference>,
    pub(crate) skip: Option<String>,
}

/// Outputs in float64, where a case has them: they tell how far from the truth the expected ones are themselves.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Reference {
    pub(crate) path: PathBuf,
    pub(crate) times: f64,
}

impl Case {
    pub(crate) fn model(&self) -> PathBuf {
        self.file.clone().unwrap_or_else(|| self.folder.join(self.format.file()))
    }

    /// A file of tensors, or what the names of such files of one each begin with.
    pub(crate) fn inputs(&self) -> PathBuf {
        self.tensors("inputs.safetensors", "input_")
    }

    /// Whether it has inputs of its own.
    pub(crate) fn has_inputs(&self) -> bool {
        self.set.is_some() || self.inputs().is_file()
    }

    fn tensors(&self, file: &str, prefix: &str) -> PathBuf {
        match &self.set {
            Some(set) => set.join(prefix),
            None => self.folder.join(file),
        }
    }

    fn reference(&self, name: &str, times: Option<f64>) -> Result<Reference, Failure> {
        let times = times.unwrap_or(2.0);
        let is_name = Path::new(name).file_name().is_some_and(|own| own == name);
        if !(is_name && times.is_finite() && times >= 0.0) {
            let message = "`case.json`: `reference` names a file of the case, and `times` is a number from 0";
            return Err(Failure::User(message.to_owned()));
        }
        Ok(Reference { path: self.folder.join(name), times })
    }

    pub(crate) fn outputs(&self) -> PathBuf {
        self.tensors("outputs.safetensors", "output_")
    }

    /// What `case.json` says, if there is one.
    fn read(&self) -> Result<CaseFile, Failure> {
        let path = self.folder.join("case.json");
        if !path.is_file() {
            return Ok(CaseFile::default());
        }
        serde_json::from_slice(&memory::map(&path)?)
            .map_err(|error| Failure::User(format!("`{}`: {error}", path.display())))
    }

    /// Shapes of inputs that the model leaves open: those that the case says, or those of its data.
    pub(crate) fn shapes(&self) -> Result<BTreeMap<String, InputShape>, Failure> {
        match (self.read()?.shapes, &self.set) {
            (Some(shapes), _) => BTreeMap::from_json(shapes)
                .map_err(|error| Failure::User(format!("`case.json`: shapes: {error}"))),
            (None, Some(_)) => onnx::shapes(&self.inputs()),
            (None, None) => Ok(BTreeMap::new()),
        }
    }

    pub(crate) fn terms(&self) -> Result<Terms, Failure> {
        let file = self.read()?;
        let is_stated = file.rtol.is_some();
        let tolerances =
            tolerances(file.atol.unwrap_or(Numbers::Same(1e-4)), file.rtol.unwrap_or(Numbers::Same(1e-3)))?;
        let tolerances = match tolerances {
            Tolerances::Same(same) if self.format == Format::Onnx && !is_stated => Tolerances::Digits(same),
            Tolerances::Same(_) | Tolerances::Each(_) | Tolerances::Digits(_) => tolerances,
        };
        let reference = file.reference.map(|name| self.reference(&name, file.times)).transpose()?;
        Ok(Terms { tolerances, reference, skip: file.skip })
    }
}

/// Absolute and relative ones, each for all outputs or one by one.
fn tolerances(atol: Numbers, rtol: Numbers) -> Result<Tolerances, Failure> {
    let of = |(atol, rtol): (f64, f64)| Tolerance { atol, rtol };
    let count = match (&atol, &rtol) {
        (Numbers::Same(atol), Numbers::Same(rtol)) => return Ok(Tolerances::Same(of((*atol, *rtol)))),
        (Numbers::Each(one), Numbers::Each(other)) if one.len() != other.len() => {
            let message =
                "`case.json`: `atol` and `rtol` list numbers of as many outputs, or are a number each";
            return Err(Failure::User(message.to_owned()));
        }
        (Numbers::Each(all), _) | (_, Numbers::Each(all)) => all.len(),
    };
    let listed = |numbers: Numbers| match numbers {
        Numbers::Same(one) => vec![one; count],
        Numbers::Each(all) => all,
    };
    Ok(Tolerances::Each(listed(atol).into_iter().zip(listed(rtol)).map(of).collect()))
}

/// The cases at and below a path, by name.
pub(crate) fn find(root: &Path, only: Option<Format>) -> Result<Vec<Case>, Failure> {
    if !root.is_dir() {
        return Err(Failure::User(format!("`{}` is not a folder of cases", root.display())));
    }
    let mut found = Vec::new();
    walk(root, root, only, 0, &mut found)?;
    Ok(found)
}

/// A folder that is a case has no cases below it.
fn walk(
    root: &Path,
    folder: &Path,
    only: Option<Format>,
    depth: usize,
    found: &mut Vec<Case>,
) -> Result<(), Failure> {
    // Deeper are only links that go in a circle.
    if depth > 32 {
        return Ok(());
    }
    let formats = Format::ALL.into_iter().filter(|format| folder.join(format.file()).is_file());
    let formats: Vec<Format> = formats.collect();
    if !formats.is_empty() {
        let name = folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().into_owned();
        let name = if name.is_empty() { last_name(folder) } else { name };
        let wanted = formats.into_iter().filter(|format| only.is_none_or(|only| only == *format));
        for format in wanted {
            let of_set = |(name, set)| Case {
                name,
                folder: folder.to_owned(),
                format,
                set,
                file: None,
                weights: WeightsType::Own,
            };
            found.extend(data_sets(folder, &name, format)?.into_iter().map(of_set));
        }
        return Ok(());
    }
    let listing = fs_err::read_dir(folder).map_err(Failure::machine("read", folder))?;
    let mut folders: Vec<PathBuf> =
        listing.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().try_for_each(|child| walk(root, child, only, depth + 1, found))
}

/// The names of the cases that a model makes, with the folder of each one's tensors in ONNX's layout.
fn data_sets(folder: &Path, name: &str, format: Format) -> Result<Vec<(String, Option<PathBuf>)>, Failure> {
    let own = || vec![(name.to_owned(), None)];
    if format != Format::Onnx || folder.join("inputs.safetensors").is_file() {
        return Ok(own());
    }
    let listing = fs_err::read_dir(folder).map_err(Failure::machine("read", folder))?;
    let is_set = |path: &PathBuf| path.is_dir() && last_name(path).starts_with("test_data_set_");
    let mut sets: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).filter(is_set).collect();
    sets.sort();
    Ok(match sets.as_slice() {
        [] => own(),
        [set] => vec![(name.to_owned(), Some(set.clone()))],
        several => {
            let named = |set: &PathBuf| (format!("{name}/{}", last_name(set)), Some(set.clone()));
            several.iter().map(named).collect()
        }
    })
}

fn last_name(folder: &Path) -> String {
    let folder = fs_err::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The model file that a command's argument means, and the case that it belongs to, if any: a file, or a case's folder.
pub(crate) fn model_file(path: &Path) -> Result<(PathBuf, Option<Case>), Failure> {
    if !path.exists() {
        return Err(Failure::User(format!("there is no file `{}`", path.display())));
    }
    if !path.is_dir() {
        return Ok((path.to_owned(), None));
    }
    let case = find(path, None)?.into_iter().find(|case| case.folder == path);
    let case = case.ok_or_else(|| {
        Failure::User(format!("`{}` has no `model.pt2`, `model.onnx` or `model.aoti`", path.display()))
    })?;
    Ok((case.model(), Some(case)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_not_there_is_said_before_anything_is_compiled() {
        let Err(Failure::User(message)) = model_file(Path::new("nowhere.pt2")) else {
            panic!("no such file")
        };
        assert_eq!(message, "there is no file `nowhere.pt2`");
    }

    #[test]
    fn cases_are_found_with_their_formats() {
        let root = tempfile::tempdir().unwrap();
        for file in ["b/model.pt2", "a/x/model.onnx", "a/x/model.pt2", "a/x/deeper/model.pt2", "c/other.txt"]
        {
            let path = root.path().join(file);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "").unwrap();
        }
        let names = |only| -> Vec<String> {
            let cases = find(root.path(), only).unwrap();
            cases.iter().map(|case| format!("{} {}", case.name, case.format.as_str())).collect()
        };
        assert_eq!(names(None), ["a/x pt2", "a/x onnx", "b pt2"]);
        assert_eq!(names(Some(Format::Onnx)), ["a/x onnx"]);
        assert_eq!(find(&root.path().join("b"), None).unwrap()[0].name, "b");
    }

    #[test]
    fn terms_have_defaults_and_bad_ones_are_the_users() {
        let root = tempfile::tempdir().unwrap();
        let case = Case {
            name: String::new(),
            folder: root.path().to_owned(),
            format: Format::Pt2,
            set: None,
            file: None,
            weights: WeightsType::Own,
        };
        let of = |atol: f64, rtol: f64| Tolerance { atol, rtol };
        let tolerances = |text: &str| {
            fs_err::write(root.path().join("case.json"), text).unwrap();
            case.terms().map(|terms| terms.tolerances)
        };
        assert_eq!(case.terms().unwrap().tolerances, Tolerances::Same(of(1e-4, 1e-3)));
        let onnx = Case { format: Format::Onnx, ..case.clone() };
        assert_eq!(onnx.terms().unwrap().tolerances, Tolerances::Digits(of(1e-4, 1e-3)));
        assert_eq!(tolerances("{\"atol\": 1, \"op\": \"x\"}").unwrap(), Tolerances::Same(of(1.0, 1e-3)));
        let each = Tolerances::Each(vec![of(1e-4, 0.5), of(1e-4, 2.0)]);
        assert_eq!(tolerances("{\"rtol\": [0.5, 2]}").unwrap(), each);
        assert!(matches!(tolerances("{\"atol\": [1], \"rtol\": [1, 2]}"), Err(Failure::User(_))));
        fs_err::write(root.path().join("case.json"), "{\"reference\": \"f64.safetensors\"}").unwrap();
        let expected = Reference { path: root.path().join("f64.safetensors"), times: 2.0 };
        assert_eq!(case.terms().unwrap().reference, Some(expected));
        fs_err::write(root.path().join("case.json"), "{\"reference\": \"../f64.safetensors\"}").unwrap();
        assert!(matches!(case.terms(), Err(Failure::User(_))));
        fs_err::write(root.path().join("case.json"), "{").unwrap();
        assert!(matches!(case.terms(), Err(Failure::User(_))));
    }
}
