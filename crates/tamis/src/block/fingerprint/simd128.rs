//! Fingerprint block operations with the 128-bit vectors of WebAssembly: 16
//! bytes of heads per comparison, sixteen planes per table lookup. WebAssembly
//! has neither PDEP nor shifts by a distance per lane.
#![expect(unsafe_code, reason = "vector loads and stores")]

use core::arch::wasm32::{
    i8x16_popcnt, i8x16_sub, u8x16, u8x16_bitmask, u8x16_eq,
    u8x16_narrow_i16x8, u8x16_shl, u8x16_shr, u8x16_shuffle, u8x16_splat,
    u8x16_swizzle, u16x8, u16x8_add, u16x8_mul, u16x8_shr, u16x8_splat, u64x2,
    u64x2_extract_lane, v128, v128_and, v128_bitselect, v128_load, v128_or,
    v128_store, v128_xor,
};

use super::bits;
use super::ops::{
    Heads, LINE, NewEntry, NewHead, Ops, Planes, Tail, TailTables,
};
use crate::arch::{Scalar, Simd128};

impl Ops for Simd128 {
    const PLANES: u32 = 16;

    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        let counts = i8x16_popcnt(u64x2(mask, 0));
        bits::deposit(bits, mask, u64x2_extract_lane::<0>(counts))
    }

    #[inline(always)]
    fn expand_around(self, word: u64, gaps: u64) -> u64 {
        bits::expand_around(word, gaps)
    }

    #[inline(always)]
    fn match_heads<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: Heads,
        among: u64,
    ) -> u64 {
        // One bit per head, the last head in the highest bit.
        let equal = if heads.bits == 8 {
            match_bytes(block, heads.value)
        } else {
            match_nibbles(half(&block[BYTES - 32..]), heads.value)
        };
        // Rotates slot 0 to bit 0, as with AVX2.
        equal.rotate_left(heads.capacity) & among
    }

    #[inline(always)]
    fn match_heads_low_half<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: Heads,
        among: u64,
    ) -> u64 {
        let equal = match_nibbles(half(&block[..32]), heads.value);
        equal.rotate_left(heads.capacity) & among
    }

    #[inline(always)]
    fn match_heads_reversed<const FROM_SLOT_16: bool>(
        self,
        block: &[u8; LINE],
        value: u8,
        among: u64,
    ) -> u64 {
        let from = if FROM_SLOT_16 { 24 } else { 32 };
        let equal = match_nibbles(half(&block[from..]), value);
        // The last nibble is that of the first slot, which is bit 1.
        (equal.reverse_bits() << 1 | 1) & among
    }

    #[inline(always)]
    fn insert_head<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        head: NewHead,
        rest: [u64; 8],
    ) {
        let NewHead { nibbles, begin, at, value } = head;
        let here: [v128; 4] = whole(block);
        let [a, b, c, d, e, f, g, h] = rest;
        let rest = [u64x2(a, b), u64x2(c, d), u64x2(e, f), u64x2(g, h)];
        let through = front(at + nibbles);
        let before = front(at);
        let planes = front(begin);
        let parts: &mut [[u8; 16]] = bytemuck::cast_slice_mut(block);
        let last = parts.len() - 1;
        for (at, part) in parts.iter_mut().enumerate() {
            // Moves every head down by one. No head follows the last one, and
            // none is needed: a head that moves has another behind it.
            let next = here[(at + 1).min(last)];
            let next = u8x16_shuffle::<
                1,
                2,
                3,
                4,
                5,
                6,
                7,
                8,
                9,
                10,
                11,
                12,
                13,
                14,
                15,
                16,
            >(here[at], next);
            let moved = match nibbles {
                2 => next,
                _ => v128_or(u8x16_shr(here[at], 4), u8x16_shl(next, 4)),
            };
            let value = u8x16_splat(value);
            let new = v128_bitselect(value, here[at], through[at]);
            let new = v128_bitselect(moved, new, before[at]);
            let new = v128_bitselect(rest[at], new, planes[at]);
            // SAFETY: an unaligned store of the 16 bytes of `part`.
            unsafe { v128_store(part.as_mut_ptr().cast(), new) };
        }
    }

    #[inline(always)]
    fn insert_entry<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        entry: NewEntry,
    ) {
        Scalar.insert_entry(block, entry);
    }

    #[inline(always)]
    fn differing_planes<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        planes: Planes,
        tail: u64,
    ) -> u32 {
        /// A one at each place of a byte.
        const BITS: v128 =
            u8x16(1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128);
        // Places wrap in unused planes, whose bits are cleared below.
        let first = u16x8_splat(planes.first as u16);
        let stride = u16x8_splat(planes.stride as u16);
        let low = u16x8_mul(stride, u16x8(0, 1, 2, 3, 4, 5, 6, 7));
        let high = u16x8_mul(stride, u16x8(8, 9, 10, 11, 12, 13, 14, 15));
        let (low, high) = (u16x8_add(first, low), u16x8_add(first, high));
        let mut byte =
            u8x16_narrow_i16x8(u16x8_shr(low, 3), u16x8_shr(high, 3));
        let seven = u16x8_splat(7);
        let bit =
            u8x16_narrow_i16x8(v128_and(low, seven), v128_and(high, seven));
        let mask = u8x16_swizzle(BITS, bit);
        let mut found = u8x16_splat(0);
        for part in whole(block).into_iter().take(BYTES / 16) {
            found = v128_or(found, u8x16_swizzle(part, byte));
            byte = i8x16_sub(byte, u8x16_splat(16));
        }
        let set = u8x16_eq(v128_and(found, mask), mask);
        let wanted = tail.reverse_bits() as u32;
        let ones = u32::from(u8x16_bitmask(set));
        (ones ^ wanted) & ((1 << planes.count) - 1)
    }

    #[inline(always)]
    fn match_tails<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        tables: &TailTables,
        wanted: Tail,
    ) -> u64 {
        Scalar.match_tails(block, tables, wanted)
    }
}

/// 32 bytes; zeros if `bytes` has fewer.
#[inline(always)]
fn half(bytes: &[u8]) -> &[u8; 32] {
    bytes.first_chunk().unwrap_or(&[0; 32])
}

#[inline(always)]
fn sixteen(bytes: &[u8; 16]) -> v128 {
    // SAFETY: an unaligned load of the 16 bytes of `bytes`.
    unsafe { v128_load(bytes.as_ptr().cast()) }
}

/// A line, or a half line twice.
#[inline(always)]
fn whole<const BYTES: usize>(block: &[u8; BYTES]) -> [v128; 4] {
    if let Some(bytes) = block.first_chunk::<LINE>() {
        let parts: &[[u8; 16]; 4] = bytemuck::cast_ref(bytes);
        return [0, 1, 2, 3].map(|at: usize| sixteen(&parts[at]));
    }
    let parts: &[[u8; 16]; 2] = bytemuck::cast_ref(half(block));
    [0, 1, 0, 1].map(|at: usize| sixteen(&parts[at]))
}

/// Mask of the bytes that are equal to `value`, that of the last byte highest.
#[inline(always)]
fn match_bytes<const BYTES: usize>(block: &[u8; BYTES], value: u8) -> u64 {
    let value = u8x16_splat(value);
    let [a, b, c, d] = whole(block)
        .map(|part| u64::from(u8x16_bitmask(u8x16_eq(part, value))));
    match BYTES {
        64 => a | b << 16 | c << 32 | d << 48,
        _ => c << 32 | d << 48,
    }
}

/// Mask of the nibbles, of 64, that are equal to `value`.
#[inline(always)]
fn match_nibbles(bytes: &[u8; 32], value: u8) -> u64 {
    let value = u8x16_splat((value & 0x0f) * 0x11);
    let parts: &[[u8; 16]; 2] = bytemuck::cast_ref(bytes);
    let equal = |part| {
        let differs = v128_xor(sixteen(part), value);
        let low =
            u8x16_eq(v128_and(differs, u8x16_splat(0x0f)), u8x16_splat(0));
        let high = u8x16_eq(u8x16_shr(differs, 4), u8x16_splat(0));
        let first = u8x16_shuffle::<
            0,
            16,
            1,
            17,
            2,
            18,
            3,
            19,
            4,
            20,
            5,
            21,
            6,
            22,
            7,
            23,
        >(low, high);
        let second = u8x16_shuffle::<
            8,
            24,
            9,
            25,
            10,
            26,
            11,
            27,
            12,
            28,
            13,
            29,
            14,
            30,
            15,
            31,
        >(low, high);
        let first = u64::from(u8x16_bitmask(first));
        first | u64::from(u8x16_bitmask(second)) << 16
    };
    equal(&parts[0]) | equal(&parts[1]) << 32
}

/// Ones in the nibbles in front of `place`.
#[inline(always)]
fn front(place: u8) -> [v128; 4] {
    /// Ones up to the middle, for places before and inside a byte.
    static FRONTS: [u8; 512] = {
        let mut fronts = [0; 512];
        let mut at = 0;
        while at < 128 {
            fronts[at] = 0xff;
            fronts[256 + at] = 0xff;
            at += 1;
        }
        fronts[256 + 128] = 0x0f;
        fronts
    };
    let place = usize::from(place);
    // `at <= 128 + 256`, so that 64 bytes follow.
    let at = 128 - place / 2 + place % 2 * 256;
    whole::<LINE>(FRONTS[at..].first_chunk().unwrap_or(&[0; LINE]))
}
