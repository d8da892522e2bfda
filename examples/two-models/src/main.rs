//! Reads noisy pictures of digits, first as they are, then after a second network has taken the noise out.
//!
//! Both models run on one pool of threads, into outputs and workspaces that the program keeps, so that later runs of these sizes
//! allocate nothing.

use std::error::Error;

use aoti_runtime::{TensorView, ThreadPool, Workspace};

aoti_runtime::include_model!("denoiser");
aoti_runtime::include_model!("digits");

/// Pictures with their labels: 64 grey levels from 0 to 255 in each row.
const NOISY: &str = include_str!("../noisy.csv");
/// Threads that both models share, and the program's own is one of them.
const THREADS: usize = 2;

/// Both models with what their runs need.
struct Reader {
    threads: ThreadPool,
    workspace: Workspace,
    denoiser: denoiser::Model,
    digits: digits::Model,
    clean: denoiser::Outputs,
    read: digits::Outputs,
}

impl Reader {
    fn new() -> Result<Reader, aoti_runtime::Error> {
        Ok(Reader {
            threads: ThreadPool::new(THREADS),
            workspace: Workspace::new(),
            denoiser: denoiser::Model::load()?,
            digits: digits::Model::load()?,
            clean: denoiser::Outputs::default(),
            read: digits::Outputs::default(),
        })
    }

    /// Takes the noise out of pictures, which then are in `clean`.
    fn denoise(&mut self, pictures: &[f32]) -> Result<(), aoti_runtime::Error> {
        let inputs = denoiser::Inputs { noisy: view(pictures)? };
        self.denoiser.run_with(&inputs, &mut self.clean, &mut self.workspace, &self.threads)
    }

    /// How many pictures are read as they are labelled.
    fn right(&mut self, pictures: &[f32], labels: &[usize]) -> Result<usize, aoti_runtime::Error> {
        let inputs = digits::Inputs { image: view(pictures)? };
        self.digits.run_with(&inputs, &mut self.read, &mut self.workspace, &self.threads)?;
        let rows = self.read.probabilities.as_slice().chunks_exact(10);
        Ok(rows.zip(labels).filter(|(row, label)| likeliest(row) == **label).count())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (labels, pictures) = parse(NOISY)?;
    let mut reader = Reader::new()?;
    let count = labels.len();
    println!("with noise: {} of {count} right", reader.right(&pictures, &labels)?);
    reader.denoise(&pictures)?;
    let clean = reader.clean.clean.as_slice().to_vec();
    println!("without: {} of {count} right", reader.right(&clean, &labels)?);
    Ok(())
}

fn view(pictures: &[f32]) -> Result<TensorView<'_, f32>, aoti_runtime::Error> {
    TensorView::new(pictures, &[pictures.len() / 64, 1, 8, 8])
}

fn parse(text: &str) -> Result<(Vec<usize>, Vec<f32>), Box<dyn Error>> {
    let (mut labels, mut pictures) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let mut fields = line.split(',');
        labels.push(fields.next().unwrap_or_default().parse()?);
        for level in fields {
            pictures.push(level.parse::<f32>()? / 255.0);
        }
    }
    Ok((labels, pictures))
}

fn likeliest(probabilities: &[f32]) -> usize {
    let pairs = probabilities.iter().copied().enumerate();
    pairs.fold((0, f32::MIN), |best, pair| if pair.1 > best.1 { pair } else { best }).0
}
