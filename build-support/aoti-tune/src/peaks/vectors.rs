//! Loops that keep a processor's widest vectors busy.

use std::hint::black_box;

/// Chains at the same time: as many as hide how long an instruction takes, and fit into registers.
const CHAINS: usize = 12;
const FACTOR: f32 = 0.999;
const ADDED: f32 = 0.001;

/// The two loops for vectors of one width.
macro_rules! loops {
    ($module:ident, $features:literal, $lanes:literal, $vector:ident, $all:ident, $fused:ident, $add:ident, $load:ident) => {
        #[cfg(target_arch = "x86_64")]
        mod $module {
            use std::arch::x86_64::{$add, $all, $fused, $load, $vector};
            use std::hint::black_box;

            use super::{ADDED, CHAINS, FACTOR};

            #[target_feature(enable = $features)]
            pub(crate) fn multiply_adds(rounds: usize) -> f64 {
                let (factor, added) = ($all(FACTOR), $all(ADDED));
                // Chains that are known to be equal would be one.
                let mut chains: [$vector; CHAINS] = black_box([$all(1.0); CHAINS]);
                for _ in 0..rounds {
                    for chain in &mut chains {
                        *chain = $fused(*chain, factor, added);
                    }
                }
                black_box(chains);
                (rounds * CHAINS * $lanes * 2) as f64
            }

            #[target_feature(enable = $features)]
            pub(crate) fn read(data: &[f32]) {
                let mut chains: [$vector; CHAINS] = [$all(0.0); CHAINS];
                for block in data.chunks_exact(CHAINS * $lanes) {
                    for (chain, part) in chains.iter_mut().zip(block.chunks_exact($lanes)) {
                        // SAFETY: a part has as many numbers as a vector.
                        *chain = $add(*chain, unsafe { $load(part.as_ptr()) });
                    }
                }
                black_box(chains);
            }
        }
    };
}

loops!(wide, "avx512f", 16, __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_loadu_ps);
loops!(narrow, "avx2,fma", 8, __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_loadu_ps);

/// What every processor has.
mod plain {
    use super::{ADDED, CHAINS, FACTOR, black_box};

    const LANES: usize = 4;

    /// One instruction where each processor has it, which others would call a function for.
    fn fused(x: f32) -> f32 {
        if cfg!(target_arch = "aarch64") { x.mul_add(FACTOR, ADDED) } else { x * FACTOR + ADDED }
    }

    pub(crate) fn multiply_adds(rounds: usize) -> f64 {
        let mut chains = black_box([[1.0f32; LANES]; CHAINS]);
        for _ in 0..rounds {
            chains.iter_mut().for_each(|chain| *chain = chain.map(fused));
        }
        black_box(chains);
        (rounds * CHAINS * LANES * 2) as f64
    }

    pub(crate) fn read(data: &[f32]) {
        let mut chains = [[0.0f32; LANES]; CHAINS];
        for block in data.chunks_exact(CHAINS * LANES) {
            for (chain, part) in chains.iter_mut().zip(block.chunks_exact(LANES)) {
                chain.iter_mut().zip(part).for_each(|(sum, number)| *sum += number);
            }
        }
        black_box(chains);
    }
}

/// Multiplies and adds in chains that do not wait for each other, so many rounds of them; gives the operations. A multiplication
/// and an addition are two, as in the work of kernels.
pub(crate) fn multiply_adds(rounds: usize) -> f64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_wide() {
            // SAFETY: the processor has these instructions.
            return unsafe { wide::multiply_adds(rounds) };
        }
        if is_narrow() {
            // SAFETY: the processor has these instructions.
            return unsafe { narrow::multiply_adds(rounds) };
        }
    }
    plain::multiply_adds(rounds)
}

/// Reads all numbers but a few at the end.
pub(crate) fn read(data: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_wide() {
            // SAFETY: the processor has these instructions.
            return unsafe { wide::read(data) };
        }
        if is_narrow() {
            // SAFETY: the processor has these instructions.
            return unsafe { narrow::read(data) };
        }
    }
    plain::read(data);
}

#[cfg(target_arch = "x86_64")]
fn is_wide() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(target_arch = "x86_64")]
fn is_narrow() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}
