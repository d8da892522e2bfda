//! Hears which vowels are said: three streams of artificial speech, each in pieces of 10 ms and with a state of its own.
//!
//! The model takes the next samples and keeps what it still needs of those before, and the state of its recurrent layer. Log-mel features are
//! part of it, so the program knows nothing of windows, Fourier transforms or scales.

use std::f64::consts::TAU;

use aoti_runtime::{Error, TensorView};

aoti_runtime::include_model!("vowels");

/// Samples of a second, and of what one run takes.
const RATE: f64 = 16000.0;
const PIECE: usize = 160;
/// Runs of a stream: 400 ms.
const PIECES: usize = 40;
/// Vowels in the order of the model's classes, with their two lowest formants in hertz.
const VOWELS: [(&str, [f64; 2]); 3] = [("i", [270.0, 2290.0]), ("a", [730.0, 1090.0]), ("u", [300.0, 870.0])];

/// One stream that a model hears.
struct Listener<'m> {
    model: &'m vowels::Model,
    state: aoti_runtime::State,
    probabilities: Vec<f32>,
}

impl<'m> Listener<'m> {
    fn new(model: &'m vowels::Model) -> Result<Listener<'m>, Error> {
        Ok(Listener { model, state: model.state()?, probabilities: Vec::new() })
    }

    fn hear(&mut self, piece: &[f32]) -> Result<(), Error> {
        let inputs = vowels::Inputs { samples: TensorView::new(piece, &[PIECE])? };
        let outputs = self.model.run(&inputs, &mut self.state)?;
        self.probabilities.clear();
        self.probabilities.extend_from_slice(outputs.vowel.as_slice());
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let model = vowels::Model::load()?;
    let sounds = VOWELS.map(|(_, formants)| speak(formants));
    let mut listeners = Vec::new();
    for _ in VOWELS {
        listeners.push(Listener::new(&model)?);
    }
    // The streams take turns: what one has heard does not disturb the others.
    for piece in 0..PIECES {
        for (listener, sound) in listeners.iter_mut().zip(&sounds) {
            listener.hear(&sound[piece * PIECE..][..PIECE])?;
        }
    }
    for (listener, (said, _)) in listeners.iter().zip(VOWELS) {
        let pairs = listener.probabilities.iter().copied().enumerate();
        let best = pairs.fold((0, f32::MIN), |best, pair| if pair.1 > best.1 { pair } else { best });
        println!("said {said}, heard {} ({:.0} %)", VOWELS[best.0].0, best.1 * 100.0);
    }
    Ok(())
}

/// A voice of 130 Hz whose harmonics are louder near the formants.
fn speak(formants: [f64; 2]) -> Vec<f32> {
    let level = |hertz: f64| formants.map(|formant| 1.0 / (1.0 + ((hertz - formant) / 90.0).powi(2)));
    let harmonics: Vec<(f64, f64)> = (1..30)
        .map(|harmonic| f64::from(harmonic) * 130.0)
        .map(|hertz| (hertz, 0.1 * level(hertz).iter().sum::<f64>()))
        .collect();
    let sample = |index: usize| {
        let time = index as f64 / RATE;
        harmonics.iter().map(|(hertz, level)| level * (TAU * hertz * time).sin()).sum::<f64>() as f32
    };
    (0..PIECES * PIECE).map(sample).collect()
}
