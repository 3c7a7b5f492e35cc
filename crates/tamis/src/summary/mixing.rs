//! Hash functions of the summaries.

use crate::error::{Error, Result};
use crate::key::{GOLDEN, finalise};
use crate::placement::reduce;

/// Words per lane.
pub(super) const MAX_PROBES: u32 = tamis_theory::summary::MAX_PROBES;

/// A source of random words derived from a key's hash.
///
/// The levels of a table use the hash itself and [`stretch`] of it. Words from
/// here pass SplitMix64's finaliser twice, so that they are independent of the
/// bucket a key has in any level. Every probe has a word of its own. Double
/// hashing, `g + i h`, needs only two words, but its probes form arithmetic
/// progressions that collide as a whole: at rates of 10^-9, which the filters
/// of the upper levels have to reach, such collisions would cause most false
/// positives.
///
/// [`stretch`]: crate::key::stretch
#[derive(Debug, Clone, Copy)]
pub(super) struct MixedHash(u64);

impl MixedHash {
    #[inline(always)]
    pub(super) fn new(hash: u64) -> Self {
        Self(finalise(hash.wrapping_add(GOLDEN)))
    }

    /// Word `index` of a lane. Each filter of a stack has its own lane.
    #[inline(always)]
    pub(super) fn word(self, lane: u32, index: u32) -> u64 {
        let step = u64::from(lane * MAX_PROBES + index) + 1;
        finalise(self.0.wrapping_add(step.wrapping_mul(GOLDEN)))
    }
}

/// Positions divided into `groups` groups of `size`, one probe in each group.
///
/// Groups make the probability of a hit exactly
/// (1 - (1 - 1/size)^items)^groups, the formula of the predictions. With all
/// probes in one array that formula is an approximation.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeGroups {
    pub(super) groups: u32,
    pub(super) size: u64,
    pub(super) lane: u32,
}

impl ProbeGroups {
    /// `positions / probes` positions for each of `probes` probes.
    pub(super) fn new(lane: u32, positions: u64, probes: u32) -> Result<Self> {
        let invalid = |what, why| Err(Error::InvalidArgument { what, why });
        if !(1..=MAX_PROBES).contains(&probes) {
            return invalid("probes", "expected 1 to 64");
        }
        let size = positions / u64::from(probes);
        if size == 0 {
            return invalid(
                "size of a filter",
                "expected at least one cell for each probe",
            );
        }
        Ok(Self { groups: probes, size, lane })
    }

    #[inline(always)]
    pub(super) fn positions(
        self,
        key: MixedHash,
    ) -> impl Iterator<Item = u64> {
        (0..self.groups).map(move |group| {
            let at = reduce(key.word(self.lane, group), self.size);
            u64::from(group) * self.size + at
        })
    }

    /// The number of positions in all groups.
    pub(super) fn len(self) -> u64 {
        u64::from(self.groups) * self.size
    }

    /// The probability that a random key probes a set position in every
    /// group.
    pub(super) fn hit_rate(self, is_set: impl Fn(u64) -> bool) -> f64 {
        let shares = (0..u64::from(self.groups)).map(|group| {
            let here = (group * self.size)..((group + 1) * self.size);
            let set = here.filter(|&position| is_set(position)).count();
            set as f64 / self.size as f64
        });
        shares.product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::stretch;

    /// Chi-square test of the top bits of every pair of words, the words
    /// that choose the buckets of the levels included.
    #[test]
    fn words_are_independent_of_each_other_and_of_the_levels() {
        type Word = (&'static str, fn(u64) -> u64);
        let words: [Word; 6] = [
            ("first level", |hash| hash),
            ("second level", |hash| stretch(hash, 33)),
            ("last level", |hash| stretch(hash, 39)),
            ("lane 0, word 0", |hash| MixedHash::new(hash).word(0, 0)),
            ("lane 0, word 1", |hash| MixedHash::new(hash).word(0, 1)),
            ("lane 7, word 63", |hash| MixedHash::new(hash).word(7, 63)),
        ];
        for (i, (one, a)) in words.iter().enumerate() {
            for (other, b) in &words[i + 1..] {
                let mut seen = [[0u32; 16]; 16];
                for key in 0..1u64 << 16 {
                    let hash = crate::KeyHasher::default().hash(&key);
                    let [a, b] = [a(hash), b(hash)].map(|w| w >> 60);
                    seen[a as usize][b as usize] += 1;
                }
                let chi: f64 = seen
                    .as_flattened()
                    .iter()
                    .map(|&n| (f64::from(n) - 256.0).powi(2) / 256.0)
                    .sum();
                // The 99.9 % quantile at 255 degrees of freedom.
                assert!(chi < 330.5, "{one} and {other}: {chi}");
            }
        }
    }
}
