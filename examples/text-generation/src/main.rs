//! Goes on with a text: `text-generation [PROMPT] [TEMPERATURE] [SEED]`, where a temperature of 0 (the default) takes the most likely token.
//!
//! The prompt is read by one program of the model, each further token by another; both work on one state, the keys and values of what
//! has been read.

mod sampling;

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use aoti_runtime::{State, TensorView};
use sampling::{GREEDY, Sampler, Sampling};
use tokenizers::Tokenizer;

aoti_runtime::include_model!("decoder");

const TOKENIZER: &[u8] = include_bytes!("../tokenizer.json");
/// What ends a text.
const END: &str = "<|end|>";
/// As many tokens as there is room for in the state.
const LENGTH: usize = 128;
/// Tokens that are written at most.
const MOST: usize = 80;

/// A text under way.
struct Generation<'m> {
    model: &'m decoder::Model,
    state: State,
    /// Tokens that the state holds.
    position: i64,
    logits: Vec<f32>,
}

impl<'m> Generation<'m> {
    fn begin(model: &'m decoder::Model, prompt: &[i64]) -> Result<Self, aoti_runtime::Error> {
        let mut state = model.state()?;
        let positions: Vec<i64> = (0..prompt.len() as i64).collect();
        let outputs = model.prefill(
            &decoder::prefill::Inputs {
                tokens: TensorView::new(prompt, &[1, prompt.len()])?,
                positions: TensorView::new(&positions, &[prompt.len()])?,
            },
            &mut state,
        )?;
        let logits = outputs.logits.as_slice().to_vec();
        Ok(Generation { model, state, position: prompt.len() as i64, logits })
    }

    /// Reads one token more.
    fn step(&mut self, token: usize) -> Result<(), aoti_runtime::Error> {
        let outputs = self.model.decode(
            &decoder::decode::Inputs {
                tokens: TensorView::new(&[token as i64], &[1, 1])?,
                positions: TensorView::new(&[self.position], &[1])?,
            },
            &mut self.state,
        )?;
        self.logits.copy_from_slice(outputs.logits.as_slice());
        self.position += 1;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let prompt = arguments.next().unwrap_or_else(|| "In the morning".to_owned());
    let temperature = arguments.next().map_or(Ok(0.0), |text| text.parse())?;
    let seed = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let sampling = Sampling { temperature, top_k: 40, top_p: 0.95 };
    let mut sampler = Sampler::new(if temperature > 0.0 { sampling } else { GREEDY }, seed);

    let tokenizer = Tokenizer::from_bytes(TOKENIZER).map_err(|error| error.to_string())?;
    let end = tokenizer.token_to_id(END).ok_or("the tokenizer has no token that ends a text")? as usize;
    let encoded = tokenizer.encode(prompt.as_str(), false).map_err(|error| error.to_string())?;
    let ids: Vec<i64> = encoded.get_ids().iter().map(|id| i64::from(*id)).collect();
    if ids.is_empty() || ids.len() > LENGTH {
        return Err(format!("the prompt has {} tokens, it must have 1 to {LENGTH}", ids.len()).into());
    }

    let model = decoder::Model::load()?;
    let begun = Instant::now();
    let mut generation = Generation::begin(&model, &ids)?;
    let prefilled = begun.elapsed();
    // A character may be of several tokens: the decoder gives text when it is whole.
    let mut pieces = tokenizer.decode_stream(true);
    let mut out = std::io::stdout().lock();
    write!(out, "{prompt}")?;
    let (begun, mut count) = (Instant::now(), 0);
    while count < MOST {
        let token = sampler.next(&generation.logits);
        if token == end || generation.position as usize == LENGTH {
            break;
        }
        if let Some(piece) = pieces.step(token as u32).map_err(|error| error.to_string())? {
            write!(out, "{piece}")?;
            out.flush()?;
        }
        generation.step(token)?;
        count += 1;
    }
    writeln!(out)?;
    let each = begun.elapsed().as_secs_f64() / f64::from(count.max(1) as u32);
    eprintln!("{} tokens read in {prefilled:.1?}, {count} written, {:.0} a second", ids.len(), 1.0 / each);
    Ok(())
}
