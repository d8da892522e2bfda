//! Says which of the sentences in `sentences.txt` is most like each given one: `text-embeddings [SENTENCE]...`.
//!
//! The tokenizer is a file of Hugging Face's `tokenizers`, and the encoder a model with two dynamic sizes: sentences, and the tokens of
//! the longest. Both are parts of this program.

use std::error::Error;

use aoti_runtime::TensorView;
use tokenizers::Tokenizer;

aoti_runtime::include_model!("encoder");

const TOKENIZER: &[u8] = include_bytes!("../tokenizer.json");
const SENTENCES: &str = include_str!("../sentences.txt");
/// What is asked if no sentence is given.
const QUESTIONS: [&str; 4] = [
    "how is the weather tomorrow",
    "make it bright in here",
    "I have to get up early",
    "let me hear something",
];

/// Turns sentences into rows of length 1, whose product says how alike two sentences are.
struct Embedder {
    tokenizer: Tokenizer,
    model: encoder::Model,
}

/// The rows of some sentences.
struct Embeddings(encoder::Outputs);

impl Embedder {
    fn new() -> Result<Embedder, Box<dyn Error>> {
        let tokenizer = Tokenizer::from_bytes(TOKENIZER).map_err(|error| error.to_string())?;
        Ok(Embedder { tokenizer, model: encoder::Model::load()? })
    }

    fn embed(&self, sentences: &[&str]) -> Result<Embeddings, Box<dyn Error>> {
        // Padded to the longest of them, and cut where the encoder ends, as the tokenizer's file says.
        let encoded =
            self.tokenizer.encode_batch(sentences.to_vec(), true).map_err(|error| error.to_string())?;
        let length = encoded.first().map_or(1, |encoding| encoding.len());
        let ids: Vec<i64> =
            encoded.iter().flat_map(|encoding| encoding.get_ids()).map(|id| i64::from(*id)).collect();
        let tokens = TensorView::new(&ids, &[sentences.len(), length])?;
        Ok(Embeddings(self.model.run(&encoder::Inputs { tokens })?))
    }
}

impl Embeddings {
    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        let width = self.0.embedding.sizes()[1];
        self.0.embedding.as_slice().chunks_exact(width)
    }

    /// The row that is most like another, and how alike they are: at most 1.
    fn nearest(&self, row: &[f32]) -> (usize, f32) {
        let likeness = |other: &[f32]| row.iter().zip(other).map(|(x, y)| x * y).sum::<f32>();
        let all = self.rows().map(likeness).enumerate();
        all.fold((0, f32::MIN), |best, pair| if pair.1 > best.1 { pair } else { best })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let mut questions: Vec<&str> = given.iter().map(String::as_str).collect();
    if questions.is_empty() {
        questions.extend(QUESTIONS);
    }
    let embedder = Embedder::new()?;
    let sentences: Vec<&str> = SENTENCES.lines().collect();
    let known = embedder.embed(&sentences)?;
    let asked = embedder.embed(&questions)?;
    for (question, row) in questions.iter().zip(asked.rows()) {
        let (index, likeness) = known.nearest(row);
        println!("{question}\n  {} ({likeness:.2})", sentences[index]);
    }
    Ok(())
}
