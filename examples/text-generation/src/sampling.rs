//! Chooses the next token by the logits that a model gives.

/// How tokens are chosen.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// Divides the logits: less than 1 for what is likely, more for variety. With 0, the most likely token is taken.
    pub temperature: f32,
    /// So many of the most likely tokens are considered; 0 for all.
    pub top_k: usize,
    /// The most likely tokens are considered that have this much of the probability together.
    pub top_p: f32,
}

/// The most likely token each time.
pub const GREEDY: Sampling = Sampling { temperature: 0.0, top_k: 0, top_p: 1.0 };

/// Chooses tokens; two of one seed choose alike.
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    seed: u64,
    /// Tokens with their logits or probabilities, kept for the next time.
    candidates: Vec<(usize, f32)>,
}

impl Sampler {
    pub fn new(sampling: Sampling, seed: u64) -> Sampler {
        Sampler { sampling, seed, candidates: Vec::new() }
    }

    /// The next token. Of several that are equally likely, the first; 0 where there are no logits.
    pub fn next(&mut self, logits: &[f32]) -> usize {
        let Sampling { temperature, top_k, top_p } = self.sampling;
        let candidates = &mut self.candidates;
        candidates.clear();
        candidates.extend(logits.iter().copied().enumerate());
        if temperature <= 0.0 {
            let better =
                |best: (usize, f32), other: &(usize, f32)| if other.1 > best.1 { *other } else { best };
            return candidates.iter().fold((0, f32::NEG_INFINITY), better).0;
        }
        candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
        if top_k > 0 {
            candidates.truncate(top_k);
        }
        let largest = candidates.first().map_or(0.0, |candidate| candidate.1);
        candidates
            .iter_mut()
            .for_each(|candidate| candidate.1 = ((candidate.1 - largest) / temperature).exp());
        let all: f32 = candidates.iter().map(|candidate| candidate.1).sum();
        let (mut kept, mut sum) = (0, 0.0);
        while kept < candidates.len() && (kept == 0 || sum < top_p * all) {
            sum += candidates[kept].1;
            kept += 1;
        }
        candidates.truncate(kept);
        let mut rest = self.uniform() * sum;
        for (token, probability) in &self.candidates {
            rest -= probability;
            if rest < 0.0 {
                return *token;
            }
        }
        self.candidates.last().map_or(0, |candidate| candidate.0)
    }

    /// The next number of the generator "SplitMix64", as one from 0 to 1.
    fn uniform(&mut self) -> f32 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.seed;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sampling: Sampling, logits: &[f32]) -> Vec<usize> {
        let mut sampler = Sampler::new(sampling, 3);
        (0..1000).map(|_| sampler.next(logits)).collect()
    }

    #[test]
    fn greedy_takes_the_first_of_the_largest() {
        assert_eq!(drawn(GREEDY, &[1.0, 3.0, 3.0, -1.0])[..3], [1, 1, 1]);
    }

    #[test]
    fn tokens_are_drawn_as_often_as_they_are_likely() {
        let sampling = Sampling { temperature: 1.0, ..GREEDY };
        let logits = [0.5f32.ln(), 0.3f32.ln(), 0.2f32.ln()];
        let found = drawn(sampling, &logits);
        let count = |token| found.iter().filter(|drawn| **drawn == token).count();
        for (token, expected) in [(0, 500), (1, 300), (2, 200)] {
            assert!(count(token).abs_diff(expected) < 60, "{token}: {}", count(token));
        }
        assert_eq!(found, drawn(sampling, &logits));
    }

    #[test]
    fn few_are_considered_where_that_is_asked() {
        let logits = [0.5f32.ln(), 0.3f32.ln(), 0.2f32.ln()];
        let most = |sampling| drawn(sampling, &logits).into_iter().max();
        assert_eq!(most(Sampling { temperature: 1.0, top_k: 2, top_p: 1.0 }), Some(1));
        assert_eq!(most(Sampling { temperature: 1.0, top_k: 0, top_p: 0.4 }), Some(0));
        assert_eq!(most(Sampling { temperature: 1.0, top_k: 0, top_p: 0.7 }), Some(1));
        assert_eq!(most(Sampling { temperature: 1.0, top_k: 0, top_p: 1.0 }), Some(2));
    }
}
