//! Fingerprint block operations with AVX-512: a line in one register, so that
//! one comparison takes all heads or all planes of an entry.
#![expect(unsafe_code, reason = "vector intrinsics")]
#![expect(clippy::incompatible_msrv, reason = "compiled from 1.89 on")]

use core::arch::x86_64::{
    __m256i, __m512i, _mm_loadl_epi64, _mm256_loadu_si256, _mm512_add_epi8,
    _mm512_add_epi32, _mm512_and_si512, _mm512_broadcast_i64x4,
    _mm512_cmpeq_epi8_mask, _mm512_cvtepu8_epi16, _mm512_cvtepu8_epi64,
    _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_mask_and_epi64,
    _mm512_mask_cmpneq_epi64_mask, _mm512_movm_epi64, _mm512_mullo_epi16,
    _mm512_multishift_epi64_epi8, _mm512_permutexvar_epi8,
    _mm512_permutexvar_epi32, _mm512_rolv_epi32, _mm512_rorv_epi32,
    _mm512_set1_epi8, _mm512_set1_epi16, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_setr_epi32, _mm512_shrdv_epi64, _mm512_srli_epi32,
    _mm512_test_epi32_mask, _mm512_testn_epi8_mask, _mm512_xor_si512,
};

use super::ops::{
    Heads, LINE, NewEntry, NewHead, Ops, Planes, Tail, TailTables,
};
use crate::arch::Avx512;

impl Ops for Avx512 {
    const PLANES: u32 = 16;
    const WIDE: bool = true;

    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        self.avx2.deposit(bits, mask)
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
            match_bytes(self, whole(self, block), heads.value)
        } else {
            match_nibbles(self, &block[BYTES - 32..], heads.value)
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
        let equal = match_nibbles(self, &block[..32], heads.value);
        equal.rotate_left(heads.capacity) & among
    }

    #[inline(always)]
    fn match_heads_reversed<const FROM_SLOT_16: bool>(
        self,
        block: &[u8; LINE],
        value: u8,
        among: u64,
    ) -> u64 {
        /// Byte and nibble mask of every slot; lane 0 stands for no slot.
        static FIRST: HeadPlaces = reversed_from(0);
        static SLOTS_FROM_16: HeadPlaces = reversed_from(16);
        let slots = if FROM_SLOT_16 { &SLOTS_FROM_16 } else { &FIRST };
        let block = line(self, block);
        let (places, nibbles) = (line(self, &slots.0), line(self, &slots.1));
        let value = NIBBLE_SPLAT[usize::from(value % 16)];
        // SAFETY: `self` proves AVX-512F, BW and VBMI.
        let equal = unsafe {
            let bytes = _mm512_permutexvar_epi8(places, block);
            let differs = _mm512_xor_si512(bytes, _mm512_set1_epi32(value));
            _mm512_testn_epi8_mask(differs, nibbles)
        };
        equal & among
    }

    #[inline(always)]
    fn expand_around(self, word: u64, gaps: u64) -> u64 {
        self.avx2.expand_around(word, gaps)
    }

    #[inline(always)]
    fn insert_head<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        head: NewHead,
        rest: [u64; 8],
    ) {
        self.avx2.insert_head(block, head, rest);
    }

    #[inline(always)]
    fn insert_entry<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        entry: NewEntry,
    ) {
        self.avx2.insert_entry(block, entry);
    }

    #[inline(always)]
    fn differing_planes<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        planes: Planes,
        tail: u64,
    ) -> u32 {
        let block = whole(self, block);
        // SAFETY: `self` proves AVX-512F and BW.
        let differs = unsafe {
            // Places are below 2^16 in unused planes, too, so the product of
            // the low 16 bits of each lane is exact.
            let lanes = _mm512_setr_epi32(
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
            );
            let stride = _mm512_set1_epi16(planes.stride as i16);
            let first = _mm512_set1_epi32(planes.first as i32);
            let place =
                _mm512_add_epi32(first, _mm512_mullo_epi16(stride, lanes));
            // The permutation uses four bits of the word index. A half line
            // stands in the register twice, so the fourth does not matter.
            let word = _mm512_srli_epi32::<5>(place);
            let found = _mm512_permutexvar_epi32(word, block);
            // Rotates the found bit and the wanted bit to bit 0 of the lane.
            let found = _mm512_rorv_epi32(found, place);
            let wanted = _mm512_set1_epi32((tail >> 32) as i32);
            let up = _mm512_add_epi32(lanes, _mm512_set1_epi32(1));
            let wanted = _mm512_rolv_epi32(wanted, up);
            let differs = _mm512_xor_si512(found, wanted);
            _mm512_test_epi32_mask(differs, _mm512_set1_epi32(1))
        };
        u32::from(differs) & ((1 << planes.count) - 1)
    }

    #[inline(always)]
    fn match_tails<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        tables: &TailTables,
        Tail { entries, bits, worn }: Tail,
    ) -> u64 {
        /// Transposition of an 8 x 8 matrix of bytes.
        static FIRSTS: [u8; 64] = {
            let mut bytes = [0; 64];
            let mut at = 0;
            while at < 64 {
                bytes[at] = (at % 8 * 8 + at / 8) as u8;
                at += 1;
            }
            bytes
        };
        /// The identity matrix of 8 x 8 bits.
        const UNIT: i64 = 0x8040_2010_0804_0201_u64 as i64;
        let at = entries as usize % TailTables::ENTRIES;
        let block = whole(self, block);
        let bytes = line(self, &tables.bytes[at]);
        let masks = line(self, bytemuck::cast_ref(&tables.masks[at]));
        let firsts = line(self, &FIRSTS);
        // SAFETY: `self` proves AVX-512F, BW, DQ, VBMI, VBMI2 and GFNI; an
        // unaligned load of the eight bytes of an array.
        unsafe {
            let shifts = _mm_loadl_epi64(tables.shifts[at].as_ptr().cast());
            let shifts = _mm512_cvtepu8_epi64(shifts);
            let next = _mm512_add_epi8(bytes, _mm512_set1_epi8(8));
            // The permutation reduces indices modulo 64.
            let low = _mm512_permutexvar_epi8(bytes, block);
            let high = _mm512_permutexvar_epi8(next, block);
            let planes = _mm512_shrdv_epi64(low, high, shifts);
            let wanted = _mm512_movm_epi64(bits);
            let differ = _mm512_xor_si512(planes, wanted);
            let differ = _mm512_and_si512(differ, masks);
            // In a worn block the plane of extra bits counts only where it is
            // 1. Not a branch, which some blocks would mispredict.
            let all = _mm512_set1_epi64(-1);
            let worn = u8::from(worn).wrapping_neg();
            let some = _mm512_mask_cmpneq_epi64_mask(worn, masks, all);
            let differ = _mm512_mask_and_epi64(differ, some, differ, planes);
            // Transposes eight planes of eight entries: one byte per entry.
            let squares = _mm512_permutexvar_epi8(firsts, differ);
            let unit = _mm512_set1_epi64(UNIT);
            let entries = _mm512_gf2p8affine_epi64_epi8::<0>(unit, squares);
            _mm512_testn_epi8_mask(entries, entries)
        }
    }
}

/// Nibble splats: `value` in all nibbles of a word. As a memory operand, which
/// the comparison broadcasts.
static NIBBLE_SPLAT: [i32; 16] = {
    let mut words = [0; 16];
    let mut value = 0;
    while value < 16 {
        words[value] = (value as u32 * 0x1111_1111) as i32;
        value += 1;
    }
    words
};

/// Byte and nibble mask of the head of every slot.
#[repr(align(64))]
struct HeadPlaces([u8; LINE], [u8; LINE]);

/// The reversed heads of slot `first` and those behind it, from lane 1 on.
const fn reversed_from(first: usize) -> HeadPlaces {
    let mut places = HeadPlaces([0; LINE], [0; LINE]);
    let mut at = 1;
    while at < LINE {
        let slot = first + at - 1;
        places.0[at] = (LINE - 1 - slot / 2) as u8;
        places.1[at] = if slot % 2 == 0 { 0xf0 } else { 0x0f };
        at += 1;
    }
    places
}

/// Mask of the bytes, of 64, that are equal to `value`.
#[inline(always)]
fn match_bytes(_proof: Avx512, bytes: __m512i, value: u8) -> u64 {
    // SAFETY: `_proof` proves AVX-512BW.
    unsafe {
        let value = _mm512_set1_epi8(value as i8);
        _mm512_cmpeq_epi8_mask(bytes, value)
    }
}

/// Mask of the nibbles, of 64 in 32 bytes, that are equal to `value`.
#[inline(always)]
fn match_nibbles(proof: Avx512, bytes: &[u8], value: u8) -> u64 {
    // Bit offsets of eight nibbles in a word of four zero-extended bytes. The
    // multishift takes eight bits from each, of which the test ignores the
    // upper four.
    const PLACES: i64 = 0x3430_2420_1410_0400;
    let bytes = half(proof, bytes);
    // SAFETY: `proof` proves AVX-512F, BW and VBMI.
    unsafe {
        let bytes = _mm512_cvtepu8_epi16(bytes);
        let places = _mm512_set1_epi64(PLACES);
        let bytes = _mm512_multishift_epi64_epi8(places, bytes);
        let value = _mm512_set1_epi8(value as i8);
        let differs = _mm512_xor_si512(bytes, value);
        _mm512_testn_epi8_mask(differs, _mm512_set1_epi8(0x0f))
    }
}

/// Loads a line, or a half line twice.
#[inline(always)]
fn whole<const BYTES: usize>(proof: Avx512, block: &[u8; BYTES]) -> __m512i {
    if let Some(bytes) = block.first_chunk() {
        return line(proof, bytes);
    }
    let half = half(proof, block);
    // SAFETY: `proof` proves AVX-512F.
    unsafe { _mm512_broadcast_i64x4(half) }
}

/// Loads 32 bytes; zeros if `bytes` has fewer.
#[inline(always)]
fn half(_proof: Avx512, bytes: &[u8]) -> __m256i {
    let half = bytes.first_chunk::<32>().unwrap_or(&[0; 32]);
    // SAFETY: `_proof` proves AVX-512F, which includes AVX; an unaligned load
    // of the 32 bytes of `half`.
    unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
}

#[inline(always)]
fn line(_proof: Avx512, bytes: &[u8; 64]) -> __m512i {
    // SAFETY: `_proof` proves AVX-512F; an unaligned load of the 64 bytes of
    // `bytes`.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
