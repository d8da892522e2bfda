//! Numbers from a seed, equal on every machine and in every version: the data of text models are made of them, and the
//! inputs of tools and tests. (SplitMix64, by Steele, Lea and Flood, 2014.) What models draw is their front end's affair.

/// A generator of numbers.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator in this state; states that lie near each other give unrelated numbers.
    pub fn new(state: u64) -> SplitMix64 {
        SplitMix64(state)
    }

    /// The next number, of 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        let mut generator = SplitMix64::new(1_234_567);
        let drawn = [(); 3].map(|()| generator.draw());
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
