//! The walk of a key through its blocks.

use super::shape::{Refusal, Shape, Tally};
use crate::batch::{Staged, Step};
use crate::block::bloom::{BlockProbe, Probes};
use crate::block::guarded::Division;
use crate::overflow::{List, ListView, Overflow};
use crate::placement::{MAX_CHOICES, Proposals, ticket};
use crate::simd;
use crate::simd::Backend;
use crate::summary::tracking;

/// Everything the walk needs, computed once from the shape.
#[derive(Debug, Clone, Copy)]
pub(super) struct Engine {
    proposals: Proposals,
    divisions: [Division; MAX_CHOICES],
    refusal: Refusal,
    overflow: Overflow,
    probes: u32,
    block_bytes: usize,
}

/// The memory of a filter that can change.
pub(super) struct Site<'a> {
    pub(super) blocks: &'a mut [u8],
    pub(super) list: &'a mut List,
    pub(super) tally: &'a mut Tally,
}

impl Engine {
    pub(super) fn new(shape: &Shape) -> Self {
        Self {
            proposals: shape.proposals(),
            divisions: core::array::from_fn(|choice| {
                shape.division(choice as u32)
            }),
            refusal: shape.refusal,
            overflow: shape.overflow,
            probes: shape.probes,
            block_bytes: shape.block_bits as usize / 8,
        }
    }

    #[inline(always)]
    pub(super) fn division(&self, choice: u32) -> Division {
        self.divisions[choice as usize % MAX_CHOICES]
    }

    #[inline(always)]
    fn place(&self, hash: u64, choice: u32) -> core::ops::Range<usize> {
        let block = self.proposals.block(hash, choice) as usize;
        let start = block * self.block_bytes;
        start..start + self.block_bytes
    }

    #[inline(always)]
    fn probe(&self, hash: u64, choice: u32) -> Probes {
        let bits = self.division(choice).payload_bits();
        Probes { hash, count: self.probes, bits }
    }

    #[inline(always)]
    fn class(&self, hash: u64, choice: u32) -> u32 {
        let bits = self.division(choice).tracking_bits;
        tracking::class(ticket(hash, choice), bits)
    }

    #[inline(always)]
    fn is_last(&self, choice: u32) -> bool {
        choice + 1 == self.proposals.choices()
    }

    /// Whether a block refuses a key now.
    #[inline(always)]
    fn refuses(&self, block: &[u8], hash: u64, choice: u32) -> bool {
        if self.overflow == Overflow::Absorb && self.is_last(choice) {
            return false;
        }
        self.refusal
            .refuses(self.division(choice), block, || ticket(hash, choice))
    }

    /// Whether a block has refused a key of this class, as far as it
    /// remembers.
    #[inline(always)]
    fn has_refused(&self, block: &[u8], hash: u64, choice: u32) -> bool {
        let division = self.division(choice);
        division.tracking_bits == 0
            || division.tracked(block) >> self.class(hash, choice) & 1 == 1
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, blocks: &[u8], hash: u64, choice: u32) {
        simd::prefetch(blocks, self.place(hash, choice).start);
    }

    /// Inserts a key unless it is present; whether it was new. A `distinct`
    /// key is known to be new, and is not looked for.
    ///
    /// First the walk a lookup takes, reading only: it ends at the block
    /// that will take the key. Then tracking bits are set in the blocks
    /// before that one. They are set only for keys that ended further on: a
    /// key that came back to its first block is found there.
    #[inline(always)]
    pub(super) fn insert<B: Backend>(
        &self,
        backend: B,
        site: &mut Site<'_>,
        hash: u64,
        distinct: bool,
    ) -> bool {
        // A lookup of this key would still be on its way.
        let mut maybe_present = !distinct;
        let mut taken_by = None;
        for choice in 0..self.proposals.choices() {
            let block = &site.blocks[self.place(hash, choice)];
            if maybe_present
                && self.probe(hash, choice).covered(backend, block)
            {
                return false;
            }
            if !self.refuses(block, hash, choice) {
                taken_by = Some(choice);
                break;
            }
            maybe_present &= self.has_refused(block, hash, choice);
        }
        let choices = self.proposals.choices();
        let ends_at = match taken_by {
            Some(choice) => {
                let placed =
                    &mut site.tally.placed[choice as usize % MAX_CHOICES];
                *placed = placed.saturating_add(1);
                Some(choice)
            }
            None => {
                // The list is exact: what is in it needs no second entry,
                // even if the caller believes it new.
                let look = maybe_present || distinct;
                if look && site.list.view().contains(hash) {
                    return false;
                }
                site.tally.refused = site.tally.refused.saturating_add(1);
                self.overflow.choice(hash, choices)
            }
        };
        for choice in 0..ends_at.unwrap_or(choices) {
            let class = self.class(hash, choice);
            let place = self.place(hash, choice);
            self.division(choice).track(&mut site.blocks[place], class);
        }
        match ends_at {
            Some(choice) => {
                let place = self.place(hash, choice);
                let block = &mut site.blocks[place];
                self.probe(hash, choice).set(block);
                self.division(choice).count(block);
            }
            None => site.list.insert(hash),
        }
        true
    }
}

/// What a lookup needs and nothing else.
#[derive(Clone, Copy)]
pub(super) struct View<'a, const BYTES: usize> {
    pub(super) engine: &'a Engine,
    pub(super) blocks: &'a [[u8; BYTES]],
    pub(super) list: ListView<'a>,
}

impl<const BYTES: usize> Staged for View<'_, BYTES> {
    #[inline(always)]
    fn prefetch(&self, hash: u64, round: u32) {
        let block = self.engine.proposals.block(hash, round);
        let blocks = self.blocks.as_flattened();
        simd::prefetch(blocks, block as usize * BYTES);
    }

    #[inline(always)]
    fn step<B: Backend>(&self, backend: B, hash: u64, round: u32) -> Step {
        let engine = self.engine;
        let block = engine.proposals.block(hash, round);
        let block = &self.blocks[block as usize];
        if engine.probe(hash, round).covered(backend, block) {
            return Step::Yes;
        }
        let goes_on = engine.has_refused(block, hash, round)
            && engine.refuses(block, hash, round);
        if !goes_on {
            Step::No
        } else if !engine.is_last(round) {
            Step::Next
        } else if engine.overflow == Overflow::List && self.list.contains(hash)
        {
            Step::Yes
        } else {
            Step::No
        }
    }
}
