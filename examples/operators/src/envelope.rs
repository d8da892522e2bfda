//! The operator `sound::envelope`: how loud a sound is at each sample.

use aoti_runtime::{TensorView, TensorViewMut};

aoti_runtime::operator! {
    /// Follows each row of `x`: up with the factor `attack` and down with `release`, both in 0 to 1. Rows are shared among the
    /// threads of the run.
    pub fn sound_envelope(
        x: TensorView<f32>,
        attack: f64,
        release: f64,
        y: TensorViewMut<f32>;
        threads
    ) -> Result<(), String> {
        for (name, factor) in [("attack", attack), ("release", release)] {
            if !(0.0..=1.0).contains(&factor) {
                return Err(format!("`{name}` is {factor}, must be in 0 to 1"));
            }
        }
        let length = x.sizes().last().copied().unwrap_or(1);
        let (x, attack, release) = (x.data(), attack as f32, release as f32);
        threads.for_each_part(y.into_data(), length, |rows, first| {
            let inputs = x[first..].chunks(length.max(1));
            for (row, input) in rows.chunks_mut(length.max(1)).zip(inputs) {
                let mut level = 0.0f32;
                for (y, x) in row.iter_mut().zip(input) {
                    let factor = if x.abs() > level { attack } else { release };
                    level += factor * (x.abs() - level);
                    *y = level;
                }
            }
        });
        Ok(())
    }
}
