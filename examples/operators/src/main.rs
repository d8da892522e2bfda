//! Evens out the loudness of a sound that grows louder, and says how loud its quarters are before and after.
//!
//! The network calls two operators that PyTorch does not have: one is a function of this program, the other a graph in
//! `operators/`. `Cargo.toml` names both.

mod envelope;

use std::error::Error;

use aoti_runtime::TensorView;

aoti_runtime::include_model!("compressor");

const CHANNELS: usize = 2;
const SAMPLES: usize = 4000;

fn main() -> Result<(), Box<dyn Error>> {
    let sound = sound();
    let model = compressor::Model::load()?;
    let inputs = compressor::Inputs { sound: TensorView::new(&sound, &[CHANNELS, SAMPLES])? };
    let outputs = model.run(&inputs)?;
    for (channel, (before, after)) in
        sound.chunks(SAMPLES).zip(outputs.clipped.as_slice().chunks(SAMPLES)).enumerate()
    {
        println!("channel {channel}: {} -> {}", loudness(before), loudness(after));
    }
    Ok(())
}

/// Tones of which each quarter is twice as loud as the one before.
fn sound() -> Vec<f32> {
    let sample = |channel: usize, time: usize| {
        let (pitch, level) = (0.05 * (channel + 1) as f64, f64::from(1 << (4 * time / SAMPLES)) / 8.0);
        (level * (pitch * time as f64).sin()) as f32
    };
    (0..CHANNELS).flat_map(|channel| (0..SAMPLES).map(move |time| sample(channel, time))).collect()
}

/// The root of the mean square of each quarter.
fn loudness(channel: &[f32]) -> String {
    let of = |quarter: &[f32]| {
        let sum: f64 = quarter.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        format!("{:.3}", (sum / quarter.len() as f64).sqrt())
    };
    channel.chunks(SAMPLES / 4).map(of).collect::<Vec<_>>().join(" ")
}
