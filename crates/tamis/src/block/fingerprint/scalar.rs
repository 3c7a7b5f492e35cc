//! The portable operations: the definition of the others.
//!
//! Not inlined: they are loops, and inlined into every kernel they would be a
//! third of the library's code.

use super::ops::{
    Heads, LINE, NewEntry, NewHead, Ops, Planes, Tail, TailTables,
};
use crate::arch::Scalar;

impl Ops for Scalar {
    const PLANES: u32 = 8;

    /// Ranks come as one or two neighbours, so this walks to them.
    #[inline(never)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        let (mut ranks, mut word) = (bits, mask);
        let mut found = 0;
        // Whole bytes first: half of the ones lie in front of the wanted one.
        let mut passed = 0;
        while ranks != 0 && word != 0 {
            let skip = (word >> passed) as u8;
            let ones = skip.count_ones();
            if ranks.trailing_zeros() < ones {
                break;
            }
            ranks >>= ones;
            word &= !(0xff << passed);
            passed += 8;
        }
        while ranks != 0 && word != 0 {
            let lowest = word & word.wrapping_neg();
            if ranks & 1 == 1 {
                found |= lowest;
            }
            word ^= lowest;
            ranks >>= 1;
        }
        found
    }

    /// Chains are short: compares one slot after the other.
    #[inline(never)]
    fn match_heads<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: Heads,
        among: u64,
    ) -> u64 {
        equal(&block[..], heads, among)
    }

    #[inline(never)]
    fn match_heads_low_half<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: Heads,
        among: u64,
    ) -> u64 {
        equal(&block[..BYTES / 2], heads, among)
    }

    #[inline(never)]
    fn match_heads_reversed<const FROM_SLOT_16: bool>(
        self,
        block: &[u8; LINE],
        value: u8,
        among: u64,
    ) -> u64 {
        let mut left = among;
        let mut equal = 0;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let here = bit.checked_sub(1).is_none_or(|slot| {
                let from = if FROM_SLOT_16 { 16 } else { 0 };
                reversed_head(block, from + slot) == value
            });
            equal |= u64::from(here) << bit;
        }
        equal
    }

    #[inline(never)]
    fn expand_around(self, word: u64, gaps: u64) -> u64 {
        let (mut word, mut gaps) = (word, gaps);
        while gaps != 0 {
            let below = (gaps & gaps.wrapping_neg()) - 1;
            word = word & below | (word & !below) << 1;
            gaps &= gaps - 1;
        }
        word
    }

    #[inline(never)]
    fn insert_head<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        head: NewHead,
        rest: [u64; 8],
    ) {
        let (first, at) = (head.begin as usize / 2, head.at as usize / 2);
        let Some(&old) = block.get(at) else {
            // No heads.
            let rest = rest.iter().flat_map(|word| word.to_le_bytes());
            for (byte, rest) in block.iter_mut().zip(rest) {
                *byte = rest;
            }
            return;
        };
        for byte in first..at {
            let (here, next) = (block[byte], block[byte + 1]);
            block[byte] = match head.nibbles {
                2 => next,
                _ => here >> 4 | next << 4,
            };
        }
        block[at] = match (head.nibbles, head.at % 2) {
            (2, _) => head.value,
            (_, 0) => old & 0xf0 | head.value & 0x0f,
            _ => old >> 4 | head.value & 0xf0,
        };
        for (byte, rest) in block
            .iter_mut()
            .zip(rest.iter().flat_map(|word| word.to_le_bytes()))
            .take(first)
        {
            *byte = rest;
        }
        if head.begin % 2 != 0 {
            // The first head begins in the middle of a byte: the low nibble
            // belongs to `rest`.
            let rest = rest[first / 8].to_le_bytes()[first % 8];
            block[first] = block[first] & 0xf0 | rest & 0x0f;
        }
    }

    #[inline(never)]
    fn insert_entry<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        entry: NewEntry,
    ) {
        let NewEntry { index, start, new, capacity, lanes, head } = entry;
        let mut rest = [0; 8];
        let mut before = 0;
        for (lane, bytes) in block.chunks_exact(4).enumerate() {
            let here = bytes
                .iter()
                .rev()
                .fold(0, |lane, &byte| lane << 8 | u64::from(byte));
            let skew = i32::from(lanes.skew[lane]);
            let late = (start as i32) < skew;
            let passed = u32::from(lanes.passed[lane]) + u32::from(late);
            let gap = start.wrapping_sub(skew as u32);
            let gap = gap.wrapping_add(if late { capacity } else { 0 });
            // Both lanes in one word, shifted to the bits of this lane.
            let mut bits = (here << 32 | before) << passed >> 32;
            let mut new = new << passed;
            for gap in [gap, gap + capacity] {
                if gap < 32 {
                    let behind = bits >> gap << gap;
                    bits += behind + (u64::from(new >> 31) << gap);
                }
                new <<= 1;
            }
            rest[lane / 2] |= (bits & 0xffff_ffff) << (lane % 2 * 32);
            before = here;
        }
        if BYTES == 64 {
            rest[0] = index;
        } else {
            rest[0] = rest[0] >> 32 << 32 | index;
        }
        self.insert_head(block, head, rest);
    }

    #[inline(never)]
    fn differing_planes<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        planes: Planes,
        tail: u64,
    ) -> u32 {
        let mut differing = 0;
        for plane in 0..planes.count {
            let place = planes.first + plane * planes.stride;
            let byte = block.get(place as usize / 8).copied().unwrap_or(0);
            let wanted = (tail >> (63 - plane)) as u8;
            let differs = (byte >> (place % 8) ^ wanted) & 1;
            differing |= u32::from(differs) << plane;
        }
        differing
    }

    #[inline(never)]
    fn match_tails<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        tables: &TailTables,
        Tail { entries, bits: tail, worn }: Tail,
    ) -> u64 {
        let at = entries as usize % TailTables::ENTRIES;
        let planes = tables.bytes[at].chunks_exact(8).zip(tables.shifts[at]);
        let mut differing = 0;
        for (lane, (bytes, shift)) in planes.enumerate() {
            // And a part of the byte behind them.
            let bits = bytes.iter().chain([&(bytes[7] + 1)]).rev().fold(
                0u128,
                |bits, &byte| {
                    bits << 8 | u128::from(block[usize::from(byte) % BYTES])
                },
            );
            let bits = (bits >> shift) as u64;
            let mask = tables.masks[at][lane];
            let wanted = u64::from(tail >> lane & 1).wrapping_neg();
            let counts =
                if worn && mask != u64::MAX { bits } else { u64::MAX };
            differing |= (bits ^ wanted) & mask & counts;
        }
        !differing
    }
}

/// Heads right-aligned in `bytes`.
#[inline(always)]
fn equal(bytes: &[u8], heads: Heads, among: u64) -> u64 {
    let mut left = among;
    let mut equal = 0;
    while left != 0 {
        let slot = left.trailing_zeros();
        left &= left - 1;
        // A damaged block can have chains that end behind the last entry.
        if slot >= heads.capacity {
            break;
        }
        let end = bytes.len() as u32 * 8;
        let from_end = heads.bits * (heads.capacity - slot);
        let place = end.saturating_sub(from_end);
        let byte = bytes.get(place as usize / 8).copied().unwrap_or(0);
        let head = byte >> (place % 8) & (0xff >> (8 - heads.bits));
        equal |= u64::from(head == heads.value) << slot;
    }
    equal
}

/// The reversed head of a slot: from the end of the block, the high nibble of
/// a byte first.
#[inline(always)]
pub(crate) fn reversed_head(block: &[u8], slot: u32) -> u8 {
    let byte = block[block.len() - 1 - slot as usize / 2];
    if slot % 2 == 0 { byte >> 4 } else { byte & 0x0f }
}
