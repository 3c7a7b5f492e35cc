//! Blocks that store a key only if no entry matches it already.
//!
//! The entries of such a block overlap less than independent ones, and there
//! are fewer of them than keys. Yet every key that arrived is matched by an
//! entry, at the present widths: a key that is not stored matched an entry
//! then, and entries only become shorter. The matched part of a chain is
//! therefore that of *all* keys that arrived at it, as independent
//! fingerprints of the present widths; the number of *stored* keys gives the
//! widths.

use alloc::vec::Vec;

use super::block::Block;

/// Groups of chains, by their order in the block. The chains at the front
/// have the entries with one more bit, and store more keys.
const GROUPS: usize = 16;

/// The rates of a block to which 0, 1, ... `most` different keys were added.
pub(super) fn rates(block: &Block, most: usize) -> Vec<f64> {
    let mut filling = Filling { block, stored: [0.0; GROUPS] };
    (0..=most).map(|keys| filling.add_key(keys as f64)).collect()
}

/// A block as it fills, in the mean.
struct Filling<'a> {
    block: &'a Block,
    /// Keys stored, by group of chains.
    stored: [f64; GROUPS],
}

impl Filling<'_> {
    /// The rate after `keys` keys; then adds one.
    fn add_key(&mut self, keys: f64) -> f64 {
        let stored: f64 = self.stored.iter().sum();
        let entries = libm::floor(stored);
        let next = stored - entries;
        let mut free = [0.0; GROUPS];
        for (entries, share) in [(entries, 1.0 - next), (entries + 1.0, next)]
        {
            // At most the bits of a block.
            let entries = entries as u32;
            if entries > self.block.array_bits() {
                continue;
            }
            let (base, wide) = self.block.widths(entries);
            let [longer, shorter] = self
                .block
                .matches(base)
                .map(|chance| libm::exp(keys * libm::log1p(-chance.min(1.0))));
            let groups = self.longer_groups(f64::from(wide), entries, stored);
            for (at, free) in free.iter_mut().enumerate() {
                let part = (groups - at as f64).clamp(0.0, 1.0);
                let chance = part * longer + (1.0 - part) * shorter;
                *free += share * chance / GROUPS as f64;
            }
        }
        for (stored, free) in self.stored.iter_mut().zip(free) {
            *stored += free;
        }
        1.0 - free.iter().sum::<f64>()
    }

    /// Groups whose entries have one more bit, if `wide` of `entries` have.
    fn longer_groups(&self, wide: f64, entries: u32, all: f64) -> f64 {
        if entries == 0 {
            return 0.0;
        }
        let mut left = all * wide / f64::from(entries);
        let mut groups = 0.0;
        for &stored in &self.stored {
            if stored > left {
                return groups + left / stored;
            }
            left -= stored;
            groups += 1.0;
        }
        groups
    }
}
