//! What a page calls: a model behind five functions on numbers, which need no generated glue. `www/digits.js` is the other side.
//!
//! Pixels and probabilities are in memory that both sides see, at addresses that stay as they are.

use std::cell::RefCell;

use aoti_runtime::{Error, TensorView};

aoti_runtime::include_model!("digits");

/// Grey levels of a picture, from 0 (paper) to 1 (ink), row by row.
const SHAPE: [usize; 4] = [1, 1, 8, 8];
const PIXELS: usize = SHAPE[2] * SHAPE[3];

struct Session {
    model: Option<digits::Model>,
    pixels: Box<[f32; PIXELS]>,
    probabilities: Box<[f32; 10]>,
    /// What went wrong last.
    message: String,
}

impl Session {
    /// Runs the model, which the first run loads.
    fn run(&mut self) -> Result<(), Error> {
        if self.model.is_none() {
            self.model = Some(digits::Model::load()?);
        }
        if let Some(model) = &self.model {
            let image = TensorView::new(&self.pixels[..], &SHAPE)?;
            let outputs = model.run(&digits::Inputs { image })?;
            self.probabilities.copy_from_slice(outputs.probabilities.as_slice());
        }
        Ok(())
    }
}

thread_local! {
    static SESSION: RefCell<Session> = RefCell::new(Session {
        model: None,
        pixels: Box::new([0.0; PIXELS]),
        probabilities: Box::new([0.0; 10]),
        message: String::new(),
    });
}

/// Where the page writes the 64 grey levels.
#[unsafe(no_mangle)]
pub extern "C" fn pixels() -> *mut f32 {
    SESSION.with_borrow_mut(|session| session.pixels.as_mut_ptr())
}

/// Where it finds the ten probabilities.
#[unsafe(no_mangle)]
pub extern "C" fn probabilities() -> *const f32 {
    SESSION.with_borrow(|session| session.probabilities.as_ptr())
}

/// Runs the model. Says whether it could; else there is a message.
#[unsafe(no_mangle)]
pub extern "C" fn classify() -> bool {
    SESSION.with_borrow_mut(|session| {
        let done = session.run();
        session.message = done.as_ref().err().map(Error::to_string).unwrap_or_default();
        done.is_ok()
    })
}

/// The message, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn message() -> *const u8 {
    SESSION.with_borrow(|session| session.message.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn message_length() -> usize {
    SESSION.with_borrow(|session| session.message.len())
}
