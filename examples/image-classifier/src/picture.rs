//! Reads one picture as the model wants it: 8x8 grey levels from 0 (paper) to 1 (ink).
//!
//! Knows PNG only; what a digit is, the model knows.

use std::error::Error;
use std::io::Cursor;

/// Pixels along each side.
pub(crate) const SIDE: usize = 8;

/// The grey levels of a picture, row by row.
pub(crate) fn read(bytes: &[u8]) -> Result<[f32; SIDE * SIDE], Box<dyn Error>> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info()?;
    let (width, height) = (reader.info().width, reader.info().height);
    if (width, height) != (SIDE as u32, SIDE as u32) {
        return Err(format!("{width}x{height} pixels, but the model reads {SIDE}x{SIDE}").into());
    }
    let mut bytes = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let frame = reader.next_frame(&mut bytes)?;
    // Of a picture in colours the first channel is as good as any: ink on paper has none.
    let pixel_bytes = frame.color_type.samples();
    let mut pixels = [0.0; SIDE * SIDE];
    for (pixel, samples) in pixels.iter_mut().zip(bytes.chunks_exact(pixel_bytes)) {
        *pixel = f32::from(samples[0]) / 255.0;
    }
    Ok(pixels)
}
