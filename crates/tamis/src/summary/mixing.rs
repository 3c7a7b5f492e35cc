//! Hash functions of the summaries.

use crate::key::{GOLDEN, finalise};
use crate::placement::reduce;

/// Words of a lane.
pub(super) const MAX_PROBES: u32 = tamis_theory::summary::MAX_PROBES;

/// Random words from a key's hash, any number of them.
///
/// The levels of a table take the hash itself and [`stretch`] of it; what is
/// read here passes SplitMix64's finaliser twice first, and no bit of it
/// tells which bucket a key has in which level. Every probe has a word of its
/// own. Double hashing, `g + i h`, would do with two words, but its probes
/// form arithmetic progressions that hit the same progression again: at rates
/// of 10^-9, which the filters of the upper levels have to reach, that is
/// what most false positives would come from.
///
/// [`stretch`]: crate::key::stretch
#[derive(Debug, Clone, Copy)]
pub(super) struct Mixed(u64);

impl Mixed {
    #[inline(always)]
    pub(super) fn new(hash: u64) -> Self {
        Self(finalise(hash.wrapping_add(GOLDEN)))
    }

    /// The `index`-th word of a lane; a filter of a stack has one lane.
    #[inline(always)]
    pub(super) fn word(self, lane: u32, index: u32) -> u64 {
        let step = u64::from(lane * MAX_PROBES + index) + 1;
        finalise(self.0.wrapping_add(step.wrapping_mul(GOLDEN)))
    }
}

/// One position in each of `groups` groups of `size` positions.
///
/// Groups make the chance of a hit exactly (1 - (1 - 1/size)^items)^groups,
/// which is the formula the predictions have; with all probes in one array it
/// holds only nearly.
#[derive(Debug, Clone, Copy)]
pub(super) struct Groups {
    pub(super) groups: u32,
    pub(super) size: u64,
    pub(super) lane: u32,
}

impl Groups {
    #[inline(always)]
    pub(super) fn positions(self, key: Mixed) -> impl Iterator<Item = u64> {
        (0..self.groups).map(move |group| {
            let at = reduce(key.word(self.lane, group), self.size);
            u64::from(group) * self.size + at
        })
    }

    /// All positions.
    pub(super) fn len(self) -> u64 {
        u64::from(self.groups) * self.size
    }

    /// The chance that a key finds a set position in every group.
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

    /// The top bits of every pair of words are independent, those that
    /// choose the buckets of the levels among them.
    #[test]
    fn words_are_independent_of_each_other_and_of_the_levels() {
        type Word = (&'static str, fn(u64) -> u64);
        let words: [Word; 6] = [
            ("first level", |hash| hash),
            ("second level", |hash| stretch(hash, 33)),
            ("last level", |hash| stretch(hash, 39)),
            ("lane 0, word 0", |hash| Mixed::new(hash).word(0, 0)),
            ("lane 0, word 1", |hash| Mixed::new(hash).word(0, 1)),
            ("lane 7, word 63", |hash| Mixed::new(hash).word(7, 63)),
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
                // 255 degrees of freedom: 99.9 % lie below 330.5.
                assert!(chi < 330.5, "{one} and {other}: {chi}");
            }
        }
    }
}
