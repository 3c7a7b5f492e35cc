//! The load of a block, counted without decoding it.

use super::layout::{Form, Shape};

/// The load of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockLoad {
    Saturated,
    Holding {
        /// Entries.
        slots: u32,
        /// Entries whose extra bit counts.
        extended: u32,
        /// Slots the block is cut for.
        capacity: u32,
        /// Chains that have moved to the second level.
        spilled: u32,
    },
}

impl BlockLoad {
    /// Agrees with [`DecodedBlock`](super::DecodedBlock), also on damaged
    /// blocks.
    pub(crate) fn of(shape: &Shape, block: &[u8]) -> Self {
        let bits = BlockBits(block);
        let chains = shape.block.chains;
        let used = bits.ones(0, chains);
        let flag = shape.form != Form::Plain && bits.get(chains);
        let capped = matches!(shape.form, Form::Capped(_));
        if used == 0 {
            let from = chains + u32::from(capped && flag);
            return match bits.ones(from, shape.block.block_bits) {
                0 => Self::Holding {
                    slots: 0,
                    extended: 0,
                    capacity: 0,
                    spilled: if capped && flag { chains } else { 0 },
                },
                _ => Self::Saturated,
            };
        }
        let (first, end) =
            (shape.first(), shape.first() + shape.block.array_bits());
        let Some(last) = bits.select(first, end, used - 1) else {
            return Self::Saturated;
        };
        let slots = last + 1 - first;
        let (mut capacity, mut spilled) = (slots, 0);
        match (shape.form, flag) {
            (Form::Elastic, true) => {
                let Some(free) = bits.select(last + 1, end, 0) else {
                    return Self::Saturated;
                };
                capacity = free + 1 - first;
            }
            (Form::Capped(cap), true) => {
                capacity = cap;
                let highest = (0..chains).rev().find(|&bit| bits.get(bit));
                spilled = chains - 1 - highest.unwrap_or(0);
            }
            _ => {}
        }
        if matches!(shape.form, Form::Capped(cap) if slots > cap) {
            return Self::Saturated;
        }
        let cut = shape.cut(capacity);
        let wide = cut.wide.min(slots);
        let worn = shape.form == Form::Elastic && bits.get(chains + 1);
        let extended = match worn && wide > 0 {
            false => wide,
            true => {
                let (place, _) = cut.row(shape, cut.base);
                bits.ones(place, place + wide)
            }
        };
        Self::Holding { slots, extended, capacity, spilled }
    }

    /// The false-positive rate of the block.
    pub(crate) fn rate(&self, shape: &Shape) -> f64 {
        let &Self::Holding { slots, extended, capacity, .. } = self else {
            return 1.0;
        };
        let (base, chains) = (shape.cut(capacity).base, shape.block.chains);
        tamis_theory::tinyset::rate(chains, base, extended, slots - extended)
    }
}

/// A block as a sequence of bits.
pub(super) struct BlockBits<'a>(pub(super) &'a [u8]);

impl BlockBits<'_> {
    pub(super) fn get(&self, bit: u32) -> bool {
        self.0[bit as usize / 8] >> (bit % 8) & 1 == 1
    }

    /// The bits of a range, 56 per word, each with its position.
    fn words(
        &self,
        from: u32,
        to: u32,
    ) -> impl Iterator<Item = (u32, u64)> + '_ {
        (from..to).step_by(56).map(move |at| {
            let mut word = [0; 8];
            let bytes = &self.0[at as usize / 8..];
            let len = bytes.len().min(8);
            word[..len].copy_from_slice(&bytes[..len]);
            let kept = (1 << (to - at).min(56)) - 1;
            (at, u64::from_le_bytes(word) >> (at % 8) & kept)
        })
    }

    /// Ones of a range.
    pub(super) fn ones(&self, from: u32, to: u32) -> u32 {
        self.words(from, to).map(|(_, word)| word.count_ones()).sum()
    }

    /// Position of the one of rank `rank` of a range.
    pub(super) fn select(
        &self,
        from: u32,
        to: u32,
        mut rank: u32,
    ) -> Option<u32> {
        for (at, mut word) in self.words(from, to) {
            let ones = word.count_ones();
            if rank < ones {
                for _ in 0..rank {
                    word &= word - 1;
                }
                return Some(at + word.trailing_zeros());
            }
            rank -= ones;
        }
        None
    }
}
