//! Says which of three cultivars each wine of a table is: `onnx-import [TABLE.csv]`, by default `wine.csv` beside this program.
//!
//! The network was trained by scikit-learn and exported to ONNX; scaling of the measurements is part of it. The first column of the
//! table is the right class.

use std::error::Error;
use std::path::{Path, PathBuf};

use aoti_runtime::TensorView;

aoti_runtime::include_model!("wine");

/// Measurements of a wine.
const MEASUREMENTS: usize = 13;

fn main() -> Result<(), Box<dyn Error>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("wine.csv");
    let path = std::env::args_os().nth(1).map_or_else(beside, PathBuf::from);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (classes, rows) = parse(&text)?;

    let model = wine::Model::load()?;
    let measurements = TensorView::new(&rows, &[classes.len(), MEASUREMENTS])?;
    let outputs = model.run(&wine::Inputs { measurements })?;
    let mut right = 0;
    for (class, probabilities) in classes.iter().zip(outputs.probabilities.as_slice().chunks_exact(3)) {
        let (found, probability) = largest(probabilities);
        println!("class {found}  {:5.1} %", probability * 100.0);
        right += usize::from(found == *class);
    }
    println!("{right} of {} right", classes.len());
    Ok(())
}

/// The classes and the measurements of a table with a header.
fn parse(text: &str) -> Result<(Vec<usize>, Vec<f32>), Box<dyn Error>> {
    let (mut classes, mut rows) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate().skip(1) {
        let mut fields = line.split(',');
        classes.push(fields.next().unwrap_or_default().parse()?);
        let before = rows.len();
        for field in fields {
            rows.push(field.trim().parse()?);
        }
        let count = rows.len() - before;
        if count != MEASUREMENTS {
            return Err(format!("line {} has {count} measurements, not {MEASUREMENTS}", index + 1).into());
        }
    }
    Ok((classes, rows))
}

/// The index and the value of the largest element.
fn largest(values: &[f32]) -> (usize, f32) {
    let pairs = values.iter().copied().enumerate();
    pairs.fold((0, f32::MIN), |best, pair| if pair.1 > best.1 { pair } else { best })
}
