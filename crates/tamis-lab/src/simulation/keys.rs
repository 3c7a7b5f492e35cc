//! Distinct keys from a seed.

/// Odd constant of SplitMix64: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bits of a key's number, below the bit that separates members from
/// strangers, below the seed.
const NUMBER_BITS: u32 = 40;

/// Present and absent keys of one run: equal in every run with the same
/// seed, and never equal to one another.
///
/// ```
/// use tamis_lab::simulation::Keys;
///
/// let keys = Keys::new(7);
/// assert_eq!(keys.member(3), Keys::new(7).member(3));
/// assert_ne!(keys.member(3), keys.stranger(3));
/// assert_ne!(keys.member(3), Keys::new(8).member(3));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    seed: u64,
}

impl Keys {
    /// Keys of the run `seed`, of which the lowest 23 bits count.
    ///
    /// ```
    /// use tamis_lab::simulation::Keys;
    /// assert_eq!(Keys::new(1), Keys::new(1));
    /// ```
    pub fn new(seed: u64) -> Self {
        Self { seed: seed << (NUMBER_BITS + 1) }
    }

    /// The present key `number`, below 2^40.
    ///
    /// ```
    /// use tamis_lab::simulation::Keys;
    /// let keys = Keys::new(1);
    /// assert_eq!(keys.members(5).last(), Some(keys.member(4)));
    /// ```
    pub fn member(self, number: u64) -> u64 {
        finish(self.seed | number)
    }

    /// The absent key `number`, below 2^40.
    ///
    /// ```
    /// use tamis_lab::simulation::Keys;
    /// let keys = Keys::new(1);
    /// assert_eq!(keys.strangers(5).last(), Some(keys.stranger(4)));
    /// ```
    pub fn stranger(self, number: u64) -> u64 {
        finish(self.seed | 1 << NUMBER_BITS | number)
    }

    /// The first `count` present keys.
    ///
    /// ```
    /// use tamis_lab::simulation::Keys;
    /// assert_eq!(Keys::new(1).members(5).count(), 5);
    /// ```
    pub fn members(self, count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |number| self.member(number))
    }

    /// The first `count` absent keys.
    ///
    /// ```
    /// use tamis_lab::simulation::Keys;
    /// assert_eq!(Keys::new(1).strangers(5).count(), 5);
    /// ```
    pub fn strangers(self, count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |number| self.stranger(number))
    }
}

/// The hash `number` of a key: SplitMix64 at this place of the sequence that
/// starts from the key.
pub(crate) fn mix(key: u64, number: u64) -> u64 {
    finish(key.wrapping_add(STEP.wrapping_mul(number + 1)))
}

/// A hash as a number below `range`.
pub(crate) fn reduce(hash: u64, range: u64) -> u64 {
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}

/// The output function of SplitMix64, a bijection.
fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_all_runs_are_distinct() {
        let mut all = Vec::new();
        for seed in 0..8 {
            all.extend(Keys::new(seed).members(1000));
            all.extend(Keys::new(seed).strangers(1000));
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 16_000);
    }

    #[test]
    fn splitmix_is_the_published_one() {
        // First outputs from the seed 1234567.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([mix(1_234_567, 0), mix(1_234_567, 1)], expected);
    }

    #[test]
    fn ranges_are_covered_evenly() {
        let mut counts = [0u32; 10];
        for key in Keys::new(1).members(100_000) {
            counts[reduce(mix(key, 3), 10) as usize] += 1;
        }
        for count in counts {
            // Ten deviations of 95 would be a defect of the hash.
            assert!(count.abs_diff(10_000) < 400, "{counts:?}");
        }
    }
}
