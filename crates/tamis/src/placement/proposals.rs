//! The blocks proposed to a key, in order: single, sequential, multilevel.

use super::reduce;
use crate::key::Stream;

/// Most blocks proposed per key (d).
pub(crate) const MAX_CHOICES: usize = 8;

/// Where the streams for the second and later choices begin.
const CHOICE_STREAM: usize = 32;

/// A range of blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) first: u64,
    pub(crate) blocks: u64,
}

impl Level {
    /// The block that a hash chooses.
    #[inline(always)]
    pub(crate) fn block(&self, hash: u64) -> u64 {
        self.first + reduce(hash, self.blocks)
    }
}

/// One block from each of `choices` ranges, every choice with a hash of its
/// own.
///
/// SEQUENTIAL and MHT differ only in the ranges: all the same, or all
/// disjoint. SINGLE has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Proposals {
    levels: [Level; MAX_CHOICES],
    choices: u32,
}

impl Proposals {
    /// Every choice from the whole array: SINGLE for one, SEQUENTIAL for
    /// more.
    pub(crate) fn sequential(blocks: u64, choices: u32) -> Self {
        let mut levels = [Level::default(); MAX_CHOICES];
        for level in levels.iter_mut().take(choices as usize) {
            *level = Level { first: 0, blocks };
        }
        Self { levels, choices }
    }

    /// Choice j from level j, the levels one behind the other: MHT.
    pub(crate) fn multilevel(sizes: &[u64]) -> Self {
        let mut levels = [Level::default(); MAX_CHOICES];
        let mut first = 0;
        for (level, &blocks) in levels.iter_mut().zip(sizes) {
            *level = Level { first, blocks };
            first += blocks;
        }
        Self { levels, choices: sizes.len().min(MAX_CHOICES) as u32 }
    }

    #[inline(always)]
    pub(crate) fn choices(&self) -> u32 {
        self.choices
    }

    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels[..self.choices as usize]
    }

    /// The block of the `choice`-th proposal.
    ///
    /// The first is chosen by the hash itself, so that a key refused
    /// nowhere costs no more than in a plain blocked filter.
    #[inline(always)]
    pub(crate) fn block(&self, hash: u64, choice: u32) -> u64 {
        let hash = match choice {
            0 => hash,
            _ => other_stream(choice).word(hash),
        };
        self.level(choice).block(hash)
    }

    /// The range of the `choice`-th proposal.
    #[inline(always)]
    pub(crate) fn level(&self, choice: u32) -> Level {
        self.levels[choice as usize % MAX_CHOICES]
    }
}

/// The stream of the hashes that choose the `choice`-th block, after the
/// first.
#[inline(always)]
pub(crate) fn other_stream(choice: u32) -> Stream {
    Stream::new(CHOICE_STREAM + choice as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_disjoint_and_covered() {
        let proposals = Proposals::multilevel(&[50, 9, 2]);
        let mut seen = [[0u32; 61]; 3];
        for i in 0..20_000u64 {
            let hash = crate::KeyHasher::default().hash(&i);
            for choice in 0..3 {
                let block = proposals.block(hash, choice);
                seen[choice as usize][block as usize] += 1;
            }
        }
        let ranges = [0..50, 50..59, 59..61];
        for (seen, range) in seen.iter().zip(ranges) {
            for (block, &times) in seen.iter().enumerate() {
                assert_eq!(times > 0, range.contains(&block), "{block}");
            }
        }
    }

    #[test]
    fn choices_are_independent() {
        let proposals = Proposals::sequential(16, 3);
        let mut seen = [[0u32; 16]; 16];
        for i in 0..1u64 << 16 {
            let hash = crate::KeyHasher::default().hash(&i);
            let [a, b] = [1, 2].map(|j| proposals.block(hash, j) as usize);
            seen[a][b] += 1;
        }
        let chi: f64 = seen
            .as_flattened()
            .iter()
            .map(|&n| (f64::from(n) - 256.0).powi(2) / 256.0)
            .sum();
        // 255 degrees of freedom: 99.9 % lie below 330.5.
        assert!(chi < 330.5, "{chi}");
    }
}
