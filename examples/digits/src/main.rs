//! Says which digit each picture shows: `digits [PICTURE.png]...`, by default the pictures beside this program.
//!
//! The network is a part of this program. A picture whose name starts with a digit is checked against it.

mod picture;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use aoti_runtime::TensorView;
use picture::SIDE;

aoti_runtime::include_model!("digits");

/// Most pictures that one run of the model takes.
const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let paths = pictures()?;
    let model = digits::Model::load()?;
    let mut labelled = 0;
    let mut right = 0;
    for paths in paths.chunks(BATCH) {
        let mut pixels = Vec::new();
        for path in paths {
            pixels.extend(picture::read(path).map_err(|error| format!("{}: {error}", path.display()))?);
        }
        let image = TensorView::new(&pixels, &[paths.len(), 1, SIDE, SIDE])?;
        let outputs = model.run(&digits::Inputs { image })?;
        for (path, probabilities) in paths.iter().zip(outputs.softmax.as_slice().chunks_exact(10)) {
            let (class, probability) = likeliest(probabilities);
            println!("{:<12} {class}  {:5.1} %", name(path), probability * 100.0);
            if let Some(label) = label(path) {
                labelled += 1;
                right += usize::from(label == class);
            }
        }
    }
    println!("{right} of {labelled} right");
    Ok(())
}

/// The pictures named as arguments, else those that come with the example.
fn pictures() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let named: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("pictures");
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "png") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn likeliest(probabilities: &[f32]) -> (usize, f32) {
    let pairs = probabilities.iter().copied().enumerate();
    pairs.fold((0, f32::MIN), |best, pair| if pair.1 > best.1 { pair } else { best })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The digit that a picture's name starts with.
fn label(path: &Path) -> Option<usize> {
    name(path).chars().next()?.to_digit(10).map(|digit| digit as usize)
}
