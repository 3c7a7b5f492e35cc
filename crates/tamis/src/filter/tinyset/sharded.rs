//! A TinySet behind locks, each of which guards a range of blocks.

use alloc::vec::Vec;
use core::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::TinySet;
use super::kernels::{self, TinySetCore, TinySetFns};
use crate::block::fingerprint::DecodedBlock;
use crate::error::Result;
use crate::filter::envelope::Envelope;
use crate::filter::shared::{Shareable, SharedState};
use crate::key::KeyHasher;
use crate::memory::{Owned, WholeBuffer};
use crate::placement::address;

/// Locks of a filter with at least as many blocks: enough that 16 threads
/// rarely meet, few enough that `len` and `snapshot` visit them all.
const SHARDS: u64 = 64;

/// Bits of a hash that choose the chain. Neither the block nor a fingerprint
/// depends on them.
const CHAIN_BITS: u64 = 0xffff;

/// The blocks of a range, and the keys inserted since the filter is shared.
struct Shard {
    added: u64,
    blocks: Owned,
}

/// A TinySet with one lock for every range of `per_shard` blocks; a single
/// lock if it has two levels, since a key that spills reaches any block of
/// the second.
pub struct Sharded {
    core: TinySetCore,
    fns: TinySetFns<Owned>,
    /// The kernel of a filter of one block, for the blocks of a shard.
    one: (TinySetCore, TinySetFns<Owned>),
    envelope: Envelope<Vec<Mutex<Shard>>>,
    per_shard: u64,
}

impl Sharded {
    fn new(filter: TinySet) -> Self {
        let blocks = filter.block_count();
        let TinySet { core, fns, envelope, .. } = filter;
        let geometry = core.geometry;
        let per_shard = match geometry.second {
            0 => blocks.div_ceil(SHARDS),
            _ => blocks,
        };
        // Blocks are in memory, so their offsets fit a usize.
        let bytes = per_shard as usize * geometry.shape.bytes();
        let shard = |range: &[u8]| {
            let blocks = Owned::copy_of(range).unwrap_or_else(|_| {
                std::alloc::handle_alloc_error(core::alloc::Layout::for_value(
                    range,
                ))
            });
            Mutex::new(Shard { added: 0, blocks })
        };
        let envelope = envelope
            .map(|data| data.as_ref().chunks(bytes).map(shard).collect());
        let one = super::TinySetGeometry { blocks: 1, ..geometry };
        let items = envelope.counts.design_items / geometry.blocks.max(1);
        let (one, kernel) = TinySetCore::new(one, items);
        let one = (one, kernels::select::<_, WholeBuffer>(kernel));
        Self { core, fns, one, envelope, per_shard }
    }

    /// All blocks and counts, each shard at one moment.
    fn collect(&self) -> Result<TinySet> {
        let geometry = self.core.geometry;
        let Envelope { counts, data, .. } = &self.envelope;
        let mut copy = self.envelope.resized(geometry.payload(), *counts)?;
        let bytes = self.per_shard as usize * geometry.shape.bytes();
        let ranges = copy.data.as_mut().chunks_mut(bytes);
        let mut added = 0u64;
        for (range, shard) in ranges.zip(data) {
            let shard = lock(shard);
            range.copy_from_slice(shard.blocks.as_ref());
            added = added.saturating_add(shard.added);
        }
        copy.add_items(added);
        Ok(TinySet::owned(geometry, copy))
    }

    /// The block of a key in a shard whose first block is `first`, and the
    /// hash of the key in a filter of that block alone: the fraction, with the
    /// bits that choose the chain. `None` in two levels, where one shard has
    /// all blocks.
    fn in_block(&self, hash: u64, first: u64) -> Option<(Range<usize>, u64)> {
        let geometry = &self.core.geometry;
        let (block, fraction) = address(hash, geometry.blocks);
        let hash = fraction & !CHAIN_BITS | hash & CHAIN_BITS;
        (geometry.second == 0).then(|| (geometry.place(block - first), hash))
    }

    /// The shard of a key and its first block.
    fn shard(&self, hash: u64) -> (MutexGuard<'_, Shard>, u64) {
        let (block, _) = address(hash, self.core.geometry.blocks);
        let shard = block / self.per_shard;
        (lock(&self.envelope.data[shard as usize]), shard * self.per_shard)
    }
}

/// A panic in another thread leaves whole blocks: insertions write a block
/// at once.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedState for Sharded {
    fn hasher(&self) -> &KeyHasher {
        &self.envelope.hasher
    }

    fn len(&self) -> u64 {
        let Envelope { counts, data, .. } = &self.envelope;
        data.iter().fold(counts.items, |sum, shard| {
            sum.saturating_add(lock(shard).added)
        })
    }

    fn capacity(&self) -> u64 {
        self.envelope.counts.design_items
    }

    fn insert_hash(&self, hash: u64) -> bool {
        let (mut shard, first) = self.shard(hash);
        shard.added = shard.added.saturating_add(1);
        let bytes = shard.blocks.as_mut();
        match self.in_block(hash, first) {
            None => self.fns.insert(&self.core, bytes, hash),
            Some((place, hash)) => {
                let (core, fns) = &self.one;
                fns.insert(core, &mut bytes[place], hash)
            }
        }
    }

    fn contains_hash(&self, hash: u64) -> bool {
        let (shard, first) = self.shard(hash);
        let bytes = shard.blocks.as_ref();
        let mut found = [false];
        match self.in_block(hash, first) {
            None => {
                let (core, fns) = (&self.core, &self.fns);
                fns.contains_batch(core, bytes, &[hash], &mut found);
            }
            Some((place, hash)) => {
                let (core, fns) = &self.one;
                fns.contains_batch(core, &bytes[place], &[hash], &mut found);
            }
        }
        found[0]
    }

    fn merge_from(&self, other: &Self) -> Result<()> {
        super::match_settings(
            (self.hasher(), &self.core.geometry),
            (other.hasher(), &other.core.geometry),
        )?;
        // A copy: locking shards of both at once could deadlock.
        let other = other.collect()?;
        other.one_level("merge")?;
        let super::TinySetGeometry { shape, repeats, .. } = self.core.geometry;
        let bytes = shape.bytes();
        for (number, shard) in (0..).zip(&self.envelope.data) {
            let first: u64 = number * self.per_shard;
            let mut shard = lock(shard);
            let blocks = shard.blocks.as_mut().chunks_exact_mut(bytes);
            for (block, ours) in (first..).zip(blocks) {
                DecodedBlock::read_or_saturated(&shape, ours)
                    .merge(other.state(block), &shape, !repeats)
                    .write(&shape, ours);
            }
            if number == 0 {
                shard.added = shard.added.saturating_add(other.len());
            }
        }
        Ok(())
    }
}

impl Shareable for TinySet {
    type State = Sharded;

    fn into_shared(self) -> Sharded {
        Sharded::new(self)
    }

    fn from_shared(state: Sharded) -> Self {
        state.collect().unwrap_or_else(|_| {
            std::alloc::handle_alloc_error(core::alloc::Layout::new::<u64>())
        })
    }

    fn snapshot(state: &Sharded) -> Result<Self> {
        state.collect()
    }

    fn save_to(&self, path: &std::path::Path) -> Result<()> {
        self.save(path)
    }
}
