//! The blocks proposed to a key, in order, under every scheme.

use super::{Scheme, reduce};
use crate::key::Stream;

/// The largest number of blocks proposed per key (d).
pub(crate) const MAX_CHOICES: usize = 8;

/// The stream of choice j > 0 is `CHOICE_STREAM + j`.
const CHOICE_STREAM: usize = 32;

/// The blocks `first..first + blocks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockRange {
    pub(crate) first: u64,
    pub(crate) blocks: u64,
}

impl BlockRange {
    /// The block of a hash.
    #[inline(always)]
    pub(crate) fn block(&self, hash: u64) -> u64 {
        self.first + reduce(hash, self.blocks)
    }
}

/// One block from each of `choices` ranges, every choice with its own hash.
///
/// The schemes differ only in the ranges: SINGLE has one, those of SEQUENTIAL
/// are all equal, those of MHT are disjoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Proposals {
    /// First block of each range.
    firsts: [u64; MAX_CHOICES],
    /// Blocks in each range.
    sizes: [u64; MAX_CHOICES],
    choices: u32,
}

impl Proposals {
    /// One choice from each level, `sizes` being the blocks of the levels; in
    /// SINGLE and SEQUENTIAL all levels are the one array.
    ///
    /// Sizes that overflow give ranges that no memory has.
    pub(crate) fn new(scheme: Scheme, sizes: &[u64]) -> Self {
        let mut all = Self {
            firsts: [0; MAX_CHOICES],
            sizes: [0; MAX_CHOICES],
            choices: sizes.len().min(MAX_CHOICES) as u32,
        };
        let mut first = 0u64;
        for (choice, &size) in sizes.iter().take(MAX_CHOICES).enumerate() {
            all.sizes[choice] = size;
            if scheme == Scheme::Multilevel {
                all.firsts[choice] = first;
                first = first.saturating_add(size);
            }
        }
        all
    }

    #[inline(always)]
    pub(crate) fn choices(&self) -> u32 {
        self.choices
    }

    /// The range of every choice.
    #[cfg(feature = "table")]
    pub(crate) fn ranges(&self) -> impl Iterator<Item = BlockRange> + '_ {
        (0..self.choices).map(|choice| self.range(choice))
    }

    /// Blocks in the range of every choice.
    pub(crate) fn sizes(&self) -> &[u64] {
        &self.sizes[..self.choices as usize]
    }

    /// The block of a choice.
    ///
    /// Choice 0 uses the hash itself, so that a key in its first block costs
    /// no more than in a plain blocked filter.
    #[inline(always)]
    pub(crate) fn block(&self, hash: u64, choice: u32) -> u64 {
        let hash = match choice {
            0 => hash,
            _ => other_stream(choice).word(hash),
        };
        self.range(choice).block(hash)
    }

    /// The range of a choice.
    #[inline(always)]
    pub(crate) fn range(&self, choice: u32) -> BlockRange {
        let choice = choice as usize % MAX_CHOICES;
        BlockRange { first: self.firsts[choice], blocks: self.sizes[choice] }
    }
}

/// The stream of the hashes for a choice after the first.
#[inline(always)]
pub(crate) fn other_stream(choice: u32) -> Stream {
    Stream::new(CHOICE_STREAM + choice as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_disjoint_and_fully_used() {
        let proposals = Proposals::new(Scheme::Multilevel, &[50, 9, 2]);
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
        let proposals = Proposals::new(Scheme::Sequential, &[16; 3]);
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
        // The 99.9 % quantile at 255 degrees of freedom.
        assert!(chi < 330.5, "{chi}");
    }
}
