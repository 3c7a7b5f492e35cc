//! Fingerprint block operations with AVX2 and BMI2: 32 bytes of heads per
//! comparison, eight planes per comparison, one PDEP per select.
#![expect(unsafe_code, reason = "vector and bit-deposit intrinsics")]

use core::arch::x86_64::{
    __m128i, __m256i, _mm_cvtsi32_si128, _mm_cvtsi64_si128, _mm256_add_epi32,
    _mm256_alignr_epi8, _mm256_and_si256, _mm256_andnot_si256,
    _mm256_blend_epi32, _mm256_blendv_epi8, _mm256_blendv_ps,
    _mm256_castps_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi8,
    _mm256_cmpgt_epi8, _mm256_cmpgt_epi32, _mm256_cvtepi8_epi32,
    _mm256_cvtepu8_epi32, _mm256_loadu_si256, _mm256_movemask_epi8,
    _mm256_movemask_ps, _mm256_mullo_epi16, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_permute4x64_epi64,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi8, _mm256_set1_epi32,
    _mm256_setr_epi8, _mm256_setr_epi32, _mm256_setr_epi64x,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16,
    _mm256_slli_epi32, _mm256_slli_epi64, _mm256_sllv_epi32,
    _mm256_srli_epi32, _mm256_srli_epi64, _mm256_srlv_epi32,
    _mm256_storeu_si256, _mm256_sub_epi32, _mm256_unpackhi_epi8,
    _mm256_unpacklo_epi8, _mm256_xor_si256, _mm256_zextsi128_si256, _pdep_u64,
};

use super::ops::{
    Heads, LINE, NewEntry, NewHead, Ops, Planes, Tail, TailTables,
};
use crate::arch::{Avx2, Scalar};

impl Ops for Avx2 {
    const PLANES: u32 = 8;

    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: `self` proves BMI2.
        unsafe { _pdep_u64(bits, mask) }
    }

    #[inline(always)]
    fn match_heads<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: Heads,
        among: u64,
    ) -> u64 {
        let upper = half(self, &block[BYTES - 32..]);
        // One bit per head, the last head in the highest bit.
        let equal = if heads.bits == 8 {
            let mut equal = match_bytes(self, upper, heads.value) << 32;
            if BYTES == 64 {
                let lower = half(self, &block[..32]);
                equal |= match_bytes(self, lower, heads.value);
            }
            equal
        } else {
            match_nibbles(self, upper, heads.value)
        };
        // Rotates slot 0 to bit 0; `among` clears the bits above the last
        // slot. (A right shift would need 64 - capacity.)
        equal.rotate_left(heads.capacity) & among
    }

    #[inline(always)]
    fn match_heads_low_half<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: Heads,
        among: u64,
    ) -> u64 {
        let lower = half(self, &block[..32]);
        let equal = match_nibbles(self, lower, heads.value);
        equal.rotate_left(heads.capacity) & among
    }

    #[inline(always)]
    fn match_heads_reversed<const FROM_SLOT_16: bool>(
        self,
        block: &[u8; LINE],
        value: u8,
        among: u64,
    ) -> u64 {
        let bytes = half(self, &block[if FROM_SLOT_16 { 24 } else { 32 }..]);
        // SAFETY: `self` proves AVX2.
        let bytes = unsafe {
            let order = _mm256_setr_epi8(
                15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14,
                13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0,
            );
            // Eight-byte groups 0, 2, 1, 3 of the reversed order: the unpack
            // below takes half of each 128-bit lane.
            let reversed = _mm256_shuffle_epi8(bytes, order);
            _mm256_permute4x64_epi64::<0b01_11_00_10>(reversed)
        };
        let (low, high) = match_low_and_high(self, bytes, value);
        // SAFETY: `self` proves AVX2.
        let (first, second) = unsafe {
            // The high nibble of a byte comes first.
            let first = _mm256_unpacklo_epi8(high, low);
            let second = _mm256_unpackhi_epi8(high, low);
            (_mm256_movemask_epi8(first), _mm256_movemask_epi8(second))
        };
        // Slot 0 is bit 1.
        let first = 2 * u64::from(first as u32) + 1;
        let equal = first + (u64::from(second as u32) << 33);
        equal & among
    }

    #[inline(always)]
    fn expand_around(self, word: u64, gaps: u64) -> u64 {
        // SAFETY: `self` proves BMI2.
        unsafe { _pdep_u64(word, !gaps) }
    }

    #[inline(always)]
    fn insert_head<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        head: NewHead,
        rest: [u64; 8],
    ) {
        let [a, b, c, d, e, f, g, h] = rest;
        let rest = [four(self, [a, b, c, d]), four(self, [e, f, g, h])];
        add(self, block, head, rest);
    }

    #[inline(always)]
    fn insert_entry<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        entry: NewEntry,
    ) {
        let lower = moved_apart(self, block, 0, entry);
        // SAFETY: `self` proves AVX2.
        let lower = unsafe {
            if BYTES == 64 {
                let index = _mm_cvtsi64_si128(entry.index as i64);
                let index = _mm256_zextsi128_si256(index);
                _mm256_blend_epi32::<0b11>(lower, index)
            } else {
                let index = _mm_cvtsi32_si128(entry.index as i32);
                let index = _mm256_zextsi128_si256(index);
                _mm256_blend_epi32::<0b01>(lower, index)
            }
        };
        let upper = match BYTES {
            64 => moved_apart(self, block, 32, entry),
            _ => lower,
        };
        add(self, block, entry.head, [lower, upper]);
    }

    #[inline(always)]
    fn differing_planes<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        planes: Planes,
        tail: u64,
    ) -> u32 {
        let lower = half(self, &block[..32]);
        let upper = half(self, &block[BYTES - 32..]);
        // SAFETY: `self` proves AVX2.
        let differs = unsafe {
            // Places are below 2^16 in unused planes, too.
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let stride = _mm256_set1_epi32(planes.stride as i32);
            let first = _mm256_set1_epi32(planes.first as i32);
            let place =
                _mm256_add_epi32(first, _mm256_mullo_epi16(stride, lanes));
            // The permutation uses three bits of the word index; the fourth
            // (bit 8 of the place) selects the register.
            let word = _mm256_srli_epi32::<5>(place);
            let mut found = _mm256_permutevar8x32_epi32(lower, word);
            if BYTES == 64 {
                let upper = _mm256_permutevar8x32_epi32(upper, word);
                found = _mm256_castps_si256(_mm256_blendv_ps(
                    _mm256_castsi256_ps(found),
                    _mm256_castsi256_ps(upper),
                    _mm256_castsi256_ps(_mm256_slli_epi32::<23>(place)),
                ));
            }
            // Shifts the found bit and the wanted bit to the top of the lane.
            let up = _mm256_andnot_si256(place, _mm256_set1_epi32(31));
            let found = _mm256_sllv_epi32(found, up);
            let wanted = _mm256_set1_epi32((tail >> 32) as i32);
            let wanted = _mm256_sllv_epi32(wanted, lanes);
            let differs = _mm256_xor_si256(found, wanted);
            _mm256_movemask_ps(_mm256_castsi256_ps(differs)) as u32
        };
        differs & ((1 << planes.count) - 1)
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

/// Mask of the bytes, of 32, that are equal to `value`.
#[inline(always)]
fn match_bytes(_proof: Avx2, bytes: __m256i, value: u8) -> u64 {
    // SAFETY: `_proof` proves AVX2.
    unsafe {
        let value = _mm256_set1_epi8(value as i8);
        let equal = _mm256_cmpeq_epi8(bytes, value);
        u64::from(_mm256_movemask_epi8(equal) as u32)
    }
}

/// Nibble splat: `value` in both nibbles of a byte, the highest bit of each
/// inverted.
static NIBBLE_SPLAT: [u8; 16] = {
    let mut bytes = [0; 16];
    let mut value = 0;
    while value < 16 {
        bytes[value] = (value as u8 * 0x11) ^ 0x88;
        value += 1;
    }
    bytes
};

/// Mask of the nibbles, of 64, that are equal to `value`.
#[inline(always)]
fn match_nibbles(proof: Avx2, bytes: __m256i, value: u8) -> u64 {
    /// One constant for both deposits.
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let (low, high) = match_low_and_high(proof, bytes, value);
    // SAFETY: `proof` proves AVX2 and BMI2.
    unsafe {
        let low = _mm256_movemask_epi8(low) as u32;
        let high = _mm256_movemask_epi8(high) as u32;
        _pdep_u64(low.into(), EVEN) + 2 * _pdep_u64(high.into(), EVEN)
    }
}

/// Bytes of all ones where the low nibble, and where the high nibble, of 32
/// bytes is equal to `value`.
#[inline(always)]
fn match_low_and_high(
    _proof: Avx2,
    bytes: __m256i,
    value: u8,
) -> (__m256i, __m256i) {
    // SAFETY: `_proof` proves AVX2.
    unsafe {
        // A broadcast from memory is one instruction; from a register it is
        // two slow ones.
        let value =
            _mm256_set1_epi8(NIBBLE_SPLAT[usize::from(value % 16)] as i8);
        // An equal nibble becomes 8, so that its byte, as a signed number, is
        // less than every byte with an unequal one.
        let high = _mm256_xor_si256(bytes, value);
        let low = _mm256_slli_epi16::<4>(high);
        let least = _mm256_set1_epi8(0x90_u8 as i8);
        (_mm256_cmpgt_epi8(least, low), _mm256_cmpgt_epi8(least, high))
    }
}

/// The 32 bytes from byte `from` on, with the bits of a new entry inserted
/// into the planes.
#[inline(always)]
fn moved_apart<const BYTES: usize>(
    proof: Avx2,
    block: &[u8; BYTES],
    from: usize,
    entry: NewEntry,
) -> __m256i {
    let NewEntry { start, new, capacity, lanes, .. } = entry;
    let here = half(proof, &block[from..]);
    let before = match from {
        0 => one_lane_back(proof, here),
        _ => half(proof, &block[from - 4..]),
    };
    // SAFETY: `proof` proves AVX2.
    unsafe {
        let ones = _mm256_set1_epi32(-1);
        let start = _mm256_set1_epi32(start as i32);
        let capacity = _mm256_set1_epi32(capacity as i32);
        let skew = _mm256_cvtepi8_epi32(eight(proof, &lanes.skew[from / 4..]));
        let passed =
            _mm256_cvtepu8_epi32(eight(proof, &lanes.passed[from / 4..]));
        // -1 in lanes with one more bit of the entry in front than an entry in
        // slot 0 has.
        let late = _mm256_cmpgt_epi32(skew, start);
        let passed = _mm256_sub_epi32(passed, late);
        let gap = _mm256_sub_epi32(start, skew);
        let gap = _mm256_add_epi32(gap, _mm256_and_si256(late, capacity));
        // Shifts by 32 and more give zero, as needed.
        let room = _mm256_sub_epi32(_mm256_set1_epi32(32), passed);
        let bits = _mm256_or_si256(
            _mm256_sllv_epi32(here, passed),
            _mm256_srlv_epi32(before, room),
        );
        let new = _mm256_sllv_epi32(_mm256_set1_epi32(new as i32), passed);
        // Doubles the bits behind the gap, which shifts them by one.
        let behind = _mm256_and_si256(bits, _mm256_sllv_epi32(ones, gap));
        let bits = _mm256_add_epi32(bits, behind);
        let bit = _mm256_sllv_epi32(_mm256_srli_epi32::<31>(new), gap);
        let bits = _mm256_or_si256(bits, bit);
        // With more than 32 entries no lane has a second bit, and the rest
        // changes nothing. Lines with 8-bit heads have numbers of entries on
        // both sides: a branch would be mispredicted, and in memory it waits
        // for the block.
        if entry.head.nibbles != 2 && entry.capacity >= 32 {
            return bits;
        }
        let gap = _mm256_add_epi32(gap, capacity);
        let new = _mm256_add_epi32(new, new);
        let behind = _mm256_and_si256(bits, _mm256_sllv_epi32(ones, gap));
        let bits = _mm256_add_epi32(bits, behind);
        let bit = _mm256_sllv_epi32(_mm256_srli_epi32::<31>(new), gap);
        _mm256_or_si256(bits, bit)
    }
}

/// Moves every 32-bit lane up by one; the first is kept.
#[inline(always)]
fn one_lane_back(_proof: Avx2, lanes: __m256i) -> __m256i {
    // SAFETY: `_proof` proves AVX2.
    unsafe {
        let order = _mm256_setr_epi32(0, 0, 1, 2, 3, 4, 5, 6);
        _mm256_permutevar8x32_epi32(lanes, order)
    }
}

/// Four words as a vector.
#[inline(always)]
fn four(_proof: Avx2, words: [u64; 4]) -> __m256i {
    let [a, b, c, d] = words.map(|word| word as i64);
    // SAFETY: `_proof` proves AVX2.
    unsafe { _mm256_setr_epi64x(a, b, c, d) }
}

/// Eight bytes as a vector.
#[inline(always)]
fn eight<T: bytemuck::Pod>(_proof: Avx2, bytes: &[T]) -> __m128i {
    let bytes: &[u8] = bytemuck::cast_slice(bytes);
    let bytes = bytes.first_chunk::<8>().copied().unwrap_or_default();
    // SAFETY: `_proof` proves AVX2, which includes SSE2.
    unsafe { _mm_cvtsi64_si128(i64::from_le_bytes(bytes)) }
}

/// Inserts a head, with `rest` in front of all heads.
#[inline(always)]
fn add<const BYTES: usize>(
    proof: Avx2,
    block: &mut [u8; BYTES],
    head: NewHead,
    rest: [__m256i; 2],
) {
    match head.nibbles {
        2 => add_in::<BYTES, 2>(proof, block, head, rest),
        _ => add_in::<BYTES, 1>(proof, block, head, rest),
    }
}

#[inline(always)]
fn add_in<const BYTES: usize, const NIBBLES: u8>(
    proof: Avx2,
    block: &mut [u8; BYTES],
    head: NewHead,
    rest: [__m256i; 2],
) {
    // All loads come before the stores: a load that spans two stores cannot be
    // forwarded from the store buffer.
    let lower = with_head::<BYTES, NIBBLES>(proof, block, 0, head, rest[0]);
    if BYTES == 64 {
        let upper =
            with_head::<BYTES, NIBBLES>(proof, block, 32, head, rest[1]);
        put(proof, &mut block[32..], upper);
    }
    put(proof, &mut block[..32], lower);
}

/// The 32 bytes from byte `from` on, with a new head.
#[inline(always)]
fn with_head<const BYTES: usize, const NIBBLES: u8>(
    proof: Avx2,
    block: &[u8; BYTES],
    from: usize,
    head: NewHead,
    rest: __m256i,
) -> __m256i {
    let here = half(proof, &block[from..]);
    let last = from + 32 == BYTES;
    // No byte follows the last one, and none is needed: a head that moves has
    // another behind it.
    let moved = match NIBBLES {
        2 if last => one_byte_on(proof, here),
        2 => half(proof, &block[from + 1..]),
        _ if last => half_byte_on(proof, here, one_word_on(proof, here)),
        _ => half_byte_on(proof, here, half(proof, &block[from + 8..])),
    };
    let through = front::<NIBBLES>(proof, head.at + NIBBLES, from);
    let before = front::<NIBBLES>(proof, head.at, from);
    let planes = front::<NIBBLES>(proof, head.begin, from);
    // SAFETY: `proof` proves AVX2.
    let value = unsafe { _mm256_set1_epi8(head.value as i8) };
    let new = choose::<NIBBLES>(proof, through, value, here);
    let new = choose::<NIBBLES>(proof, before, moved, new);
    choose::<NIBBLES>(proof, planes, rest, new)
}

/// Selects `ones` where `mask` has ones, else `zeros`.
#[inline(always)]
fn choose<const NIBBLES: u8>(
    _proof: Avx2,
    mask: __m256i,
    ones: __m256i,
    zeros: __m256i,
) -> __m256i {
    // SAFETY: `_proof` proves AVX2.
    unsafe {
        match NIBBLES {
            2 => _mm256_blendv_epi8(zeros, ones, mask),
            _ => _mm256_or_si256(
                _mm256_and_si256(mask, ones),
                _mm256_andnot_si256(mask, zeros),
            ),
        }
    }
}

/// Ones in the nibbles in front of `place`, a multiple of `NIBBLES`, within the
/// 32 bytes from byte `from` (0 or 32) on.
#[inline(always)]
fn front<const NIBBLES: u8>(_proof: Avx2, place: u8, from: usize) -> __m256i {
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
    if NIBBLES == 2 {
        // SAFETY: `_proof` proves AVX2.
        return unsafe {
            // Less 64, so that signed comparisons work.
            let place = _mm256_set1_epi8(place.wrapping_sub(64) as i8);
            let places = half(_proof, &PLACES[from..]);
            _mm256_cmpgt_epi8(place, places)
        };
    }
    /// Offset of a place in the table: odd places are 256 bytes further on.
    static AT: [u16; 256] = {
        let mut at = [0; 256];
        let mut place = 0;
        while place < 256 {
            at[place] = (128 - place / 2 + place % 2 * 256) as u16;
            place += 1;
        }
        at
    };
    let at = usize::from(AT[usize::from(place)]) + from.min(32);
    let fronts: *const u8 = FRONTS.as_ptr();
    // SAFETY: `_proof` proves AVX2. `at <= 384 + 32`, so the 32 bytes from
    // there on are inside the table of 512.
    unsafe { _mm256_loadu_si256(fronts.add(at).cast()) }
}

/// Place of each byte of a block in nibbles, less 64.
static PLACES: [u8; 64] = {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = (2 * at as u8).wrapping_sub(64);
        at += 1;
    }
    places
};

/// Stores 32 bytes.
#[inline(always)]
fn put(_proof: Avx2, bytes: &mut [u8], new: __m256i) {
    if let Some(out) = bytes.first_chunk_mut::<32>() {
        // SAFETY: `_proof` proves AVX2; an unaligned store of the 32 bytes of
        // `out`.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), new) };
    }
}

/// Moves every 64-bit word down by one.
#[inline(always)]
fn one_word_on(_proof: Avx2, words: __m256i) -> __m256i {
    // SAFETY: `_proof` proves AVX2.
    unsafe { _mm256_permute4x64_epi64::<0b11_11_10_01>(words) }
}

/// Moves every nibble down by one, given the next words.
#[inline(always)]
fn half_byte_on(_proof: Avx2, here: __m256i, next: __m256i) -> __m256i {
    // SAFETY: `_proof` proves AVX2.
    unsafe {
        let here = _mm256_srli_epi64::<4>(here);
        _mm256_or_si256(here, _mm256_slli_epi64::<60>(next))
    }
}

/// Moves every byte down by one.
#[inline(always)]
fn one_byte_on(_proof: Avx2, bytes: __m256i) -> __m256i {
    // SAFETY: `_proof` proves AVX2.
    unsafe {
        let upper = _mm256_permute2x128_si256::<0x81>(bytes, bytes);
        _mm256_alignr_epi8::<1>(upper, bytes)
    }
}

/// Loads 32 bytes; zeros if `bytes` has fewer.
#[inline(always)]
fn half(_proof: Avx2, bytes: &[u8]) -> __m256i {
    let Some(bytes) = bytes.first_chunk::<32>() else {
        // SAFETY: `_proof` proves AVX2.
        return unsafe { _mm256_setzero_si256() };
    };
    // SAFETY: AVX2 as above; an unaligned load of the 32 bytes of `bytes`.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}
