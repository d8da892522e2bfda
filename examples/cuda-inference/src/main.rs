//! Embeds lines of text on a GPU and says which two are most alike: `cuda-inference [cuda | cuda:N | cpu]`.
//!
//! Shows what a program does that keeps a GPU busy: tensors that stay there, two prepared runs of which one is under way
//! while the other is waited for, and an error value, not a crash, on a machine without a GPU.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use aoti_runtime::{
    DType, Device, DeviceTensor, DynTensor, ErrorCode, LoadOptions, Model, Prepared, Stream, Tensor,
};

aoti_runtime::include_model!("encoder");

/// Bytes of a line that the network reads.
const LENGTH: usize = 64;
/// Numbers that it makes of them.
const WIDTH: usize = 64;
/// Runs that are timed.
const RUNS: usize = 1000;

const LINES: [&str; 4] = [
    "The kernel is launched on a stream of the caller's.",
    "The kernels are launched on the stream of the caller.",
    "Weights are uploaded once for all models of a process.",
    "A machine without a driver is an error that says what was looked for.",
];

fn main() -> Result<(), Box<dyn Error>> {
    let device: Device = std::env::args().nth(1).as_deref().unwrap_or("cuda").parse()?;
    let encoder = match encoder::Model::load_with(LoadOptions { device, ..LoadOptions::default() }) {
        Err(error) if error.code() == ErrorCode::Device => {
            eprintln!("{error}\nhelp: `cuda-inference cpu` runs on the processor");
            std::process::exit(1);
        }
        loaded => loaded?,
    };
    let model = encoder.untyped();
    let text = Arc::new(model.upload(&tokens(&LINES)?)?);
    let embeddings = embed(model, &text)?.download()?;
    let (a, b, likeness) = most_alike(embeddings.as_slice().ok_or("the embeddings are no f32")?);
    println!("on {device}: lines {a} and {b} are most alike ({likeness:.3})");
    println!("{:.1} us a run of {} lines", time(model, &text)?, LINES.len());
    Ok(())
}

/// The first bytes of each line, zeros behind its end.
fn tokens(lines: &[&str]) -> Result<DynTensor, aoti_runtime::Error> {
    let padded = |line: &&str| {
        line.bytes().map(i64::from).chain(std::iter::repeat(0)).take(LENGTH).collect::<Vec<_>>()
    };
    let tokens: Vec<i64> = lines.iter().flat_map(padded).collect();
    Ok(Tensor::from_slice(&tokens, &[lines.len(), LENGTH])?.into_dyn())
}

/// One run: submitted, then waited for.
fn embed<'m>(
    model: &'m Model,
    text: &Arc<DeviceTensor<'m>>,
) -> Result<DeviceTensor<'m>, aoti_runtime::Error> {
    let run = model.prepare(&[text.view()], 1)?;
    let mut done =
        run.submit(vec![Arc::clone(text)], vec![output(model, text)?], None, Stream::default())?.wait()?;
    Ok(done.outputs.remove(0))
}

fn output<'m>(model: &'m Model, text: &DeviceTensor<'_>) -> Result<DeviceTensor<'m>, aoti_runtime::Error> {
    model.device_tensor(DType::F32, &[text.sizes()[0], WIDTH])
}

/// Microseconds of a run where two take turns: while one is waited for, the other is under way. Where a run comes again with
/// the same addresses, its kernels are replayed as a graph.
fn time<'m>(model: &'m Model, text: &Arc<DeviceTensor<'m>>) -> Result<f64, aoti_runtime::Error> {
    let submit =
        |run: Prepared<'m>, outputs| run.submit(vec![Arc::clone(text)], outputs, None, Stream::default());
    let start = || submit(model.prepare(&[text.view()], 1)?, vec![output(model, text)?]);
    let (mut earlier, mut later) = (start()?, start()?);
    let begun = Instant::now();
    for _ in 0..RUNS {
        let done = earlier.wait()?;
        earlier = later;
        later = submit(done.run, done.outputs)?;
    }
    earlier.wait()?;
    later.wait()?;
    Ok(begun.elapsed().as_secs_f64() * 1e6 / (RUNS + 2) as f64)
}

/// The two rows whose product is largest, counted from 1, and the product: rows have length 1.
fn most_alike(rows: &[f32]) -> (usize, usize, f32) {
    let rows: Vec<&[f32]> = rows.chunks_exact(WIDTH).collect();
    let likeness = |a: usize, b: usize| rows[a].iter().zip(rows[b]).map(|(x, y)| x * y).sum::<f32>();
    let pairs = (0..rows.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let scored = pairs.map(|(a, b)| (a + 1, b + 1, likeness(a, b)));
    scored.fold((0, 0, f32::MIN), |best, pair| if pair.2 > best.2 { pair } else { best })
}
