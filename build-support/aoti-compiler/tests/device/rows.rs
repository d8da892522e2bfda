//! What is done along whole rows, of drawn shapes.

#[path = "fourier.rs"]
mod fourier;
#[path = "order.rs"]
mod order;
#[path = "recurrent.rs"]
mod recurrent;

use super::{GFX9, NVIDIA, drawn, emulated};
