//! All heads at once, eight planes at once, and ranks by one deposit.
#![expect(unsafe_code, reason = "vector and bit-deposit intrinsics")]

use core::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_add_epi32, _mm256_alignr_epi8,
    _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_epi8,
    _mm256_castsi256_ps, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8,
    _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_movemask_ps,
    _mm256_mullo_epi16, _mm256_or_si256, _mm256_permute2x128_si256,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi8, _mm256_set1_epi32,
    _mm256_setr_epi32, _mm256_setr_epi64x, _mm256_setzero_si256,
    _mm256_slli_epi16, _mm256_slli_epi32, _mm256_sllv_epi32,
    _mm256_srai_epi32, _mm256_srli_epi16, _mm256_srli_epi32,
    _mm256_storeu_si256, _mm256_xor_si256, _pdep_u64,
};

use super::{Heads, NewHead, Planes};
use crate::simd::Avx2;

/// [`Backend::select`](crate::simd::Backend::select) for this processor.
#[inline(always)]
pub(crate) fn select(_proof: Avx2, word: u64, ranks: u64) -> u64 {
    // SAFETY: `_proof` says that BMI2 is there.
    unsafe { _pdep_u64(ranks, word) }
}

/// [`Backend::apart`](crate::simd::Backend::apart) for this processor.
#[inline(always)]
pub(crate) fn apart(_proof: Avx2, word: u64, gaps: u64) -> u64 {
    // SAFETY: `_proof` says that BMI2 is there.
    unsafe { _pdep_u64(word, !gaps) }
}

/// [`Backend::equal_heads`](crate::simd::Backend::equal_heads) for this
/// processor.
#[inline(always)]
pub(crate) fn equal_heads<const BYTES: usize>(
    proof: Avx2,
    block: &[u8; BYTES],
    heads: Heads,
    among: u64,
) -> u64 {
    let upper = half(proof, &block[BYTES - 32..]);
    // One bit a head, the last head in the highest.
    let equal = if heads.bits == 8 {
        let mut equal = equal_bytes(proof, upper, heads.value) << 32;
        if BYTES == 64 {
            let lower = half(proof, &block[..32]);
            equal |= equal_bytes(proof, lower, heads.value);
        }
        equal
    } else {
        equal_nibbles(proof, upper, heads.value)
    };
    // A capacity of 64 shifts by 0, which is right; 0 has no entries.
    equal >> (heads.capacity.wrapping_neg() & 63) & among
}

/// [`Backend::equal_low_heads`](crate::simd::Backend::equal_low_heads) for
/// this processor.
#[inline(always)]
pub(crate) fn equal_low_heads<const BYTES: usize>(
    proof: Avx2,
    block: &[u8; BYTES],
    heads: Heads,
    among: u64,
) -> u64 {
    let lower = half(proof, &block[..32]);
    let equal = equal_nibbles(proof, lower, heads.value);
    equal >> (heads.capacity.wrapping_neg() & 63) & among
}

/// Which of 32 bytes are equal to `value`.
#[inline(always)]
fn equal_bytes(_proof: Avx2, bytes: __m256i, value: u8) -> u64 {
    // SAFETY: `_proof` says that AVX2 is there.
    unsafe {
        let value = _mm256_set1_epi8(value as i8);
        let equal = _mm256_cmpeq_epi8(bytes, value);
        u64::from(_mm256_movemask_epi8(equal) as u32)
    }
}

/// Which of 64 half bytes are equal to `value`.
#[inline(always)]
fn equal_nibbles(_proof: Avx2, bytes: __m256i, value: u8) -> u64 {
    // SAFETY: `_proof` says that AVX2 and BMI2 are there.
    unsafe {
        let value = _mm256_set1_epi8((value * 0x11) as i8);
        let low_mask = _mm256_set1_epi8(0x0f);
        let zero = _mm256_setzero_si256();
        let differs = _mm256_xor_si256(bytes, value);
        let low = _mm256_and_si256(differs, low_mask);
        let high = _mm256_andnot_si256(low_mask, differs);
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, zero));
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, zero));
        const EVEN: u64 = 0x5555_5555_5555_5555;
        _pdep_u64(u64::from(low as u32), EVEN)
            | _pdep_u64(u64::from(high as u32), !EVEN)
    }
}

/// [`Backend::differing`](crate::simd::Backend::differing) for this
/// processor.
#[inline(always)]
pub(crate) fn differing<const BYTES: usize>(
    proof: Avx2,
    block: &[u8; BYTES],
    planes: Planes,
    tail: u64,
) -> u32 {
    let lower = half(proof, &block[..32]);
    let upper = half(proof, &block[BYTES - 32..]);
    // SAFETY: `proof` says that AVX2 is there.
    let differs = unsafe {
        // Places are below 2^16 even in planes that are not asked for.
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let stride = _mm256_set1_epi32(planes.stride as i32);
        let first = _mm256_set1_epi32(planes.first as i32);
        let place = _mm256_add_epi32(first, _mm256_mullo_epi16(stride, lanes));
        // The permutation uses three bits of the word index; the fourth
        // (bit 8 of the place) chooses the register.
        let word = _mm256_srli_epi32::<5>(place);
        let mut found = _mm256_permutevar8x32_epi32(lower, word);
        if BYTES == 64 {
            found = _mm256_blendv_epi8(
                found,
                _mm256_permutevar8x32_epi32(upper, word),
                _mm256_srai_epi32::<31>(_mm256_slli_epi32::<23>(place)),
            );
        }
        // Both the bit found and the bit wanted move to the lane's top.
        let up = _mm256_andnot_si256(place, _mm256_set1_epi32(31));
        let found = _mm256_sllv_epi32(found, up);
        let wanted = _mm256_set1_epi32((tail >> 32) as i32);
        let wanted = _mm256_sllv_epi32(wanted, lanes);
        let differs = _mm256_xor_si256(found, wanted);
        _mm256_movemask_ps(_mm256_castsi256_ps(differs)) as u32
    };
    differs & ((1 << planes.count) - 1)
}

/// [`Backend::add_head`](crate::simd::Backend::add_head) for this
/// processor.
#[inline(always)]
pub(crate) fn add_head<const BYTES: usize>(
    proof: Avx2,
    block: &mut [u8; BYTES],
    head: NewHead,
    rest: &[u64; 8],
) {
    let old = *block;
    for from in (0..BYTES).step_by(32) {
        let here = half(proof, &old[from..]);
        // The next byte of each; behind the last one there is none, and
        // none is needed: a head that moves has one behind it.
        let next = match from + 32 < BYTES {
            true => half(proof, &old[from + 1..]),
            false => one_byte_on(proof, here),
        };
        let rest = gathered(proof, rest, from / 8);
        // SAFETY: `proof` says that AVX2 is there.
        let new = unsafe {
            let moved = match head.bits {
                8 => next,
                _ => {
                    let low_mask = _mm256_set1_epi8(0x0f);
                    let low = _mm256_srli_epi16::<4>(here);
                    let low = _mm256_and_si256(low, low_mask);
                    let high = _mm256_slli_epi16::<4>(next);
                    let high = _mm256_andnot_si256(low_mask, high);
                    _mm256_or_si256(low, high)
                }
            };
            let bytes = _mm256_add_epi8(
                _mm256_loadu_si256(COUNT.as_ptr().cast()),
                _mm256_set1_epi8(from as i8),
            );
            // At most 64, so that signed comparisons do.
            let at = _mm256_set1_epi8(head.at as i8);
            let first = _mm256_set1_epi8((head.begin / 8) as i8);
            let byte = _mm256_set1_epi8(head.byte as i8);
            let new =
                _mm256_blendv_epi8(here, byte, _mm256_cmpeq_epi8(at, bytes));
            let new =
                _mm256_blendv_epi8(new, moved, _mm256_cmpgt_epi8(at, bytes));
            let new =
                _mm256_andnot_si256(_mm256_cmpgt_epi8(first, bytes), new);
            _mm256_or_si256(new, rest)
        };
        if let Some(out) = block[from..].first_chunk_mut::<32>() {
            // SAFETY: AVX2 as above; an unaligned store of the 32 bytes of
            // `out`.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), new) };
        }
    }
    if head.begin % 8 != 0 {
        // The first head begins in the middle of a byte, and the half in
        // front of it may have been one that moved.
        let first = head.begin as usize / 8;
        let rest = rest[first / 8].to_le_bytes()[first % 8];
        block[first] = block[first] & 0xf0 | rest & 0x0f;
    }
}

/// Four words that have just been written, as a vector.
#[inline(always)]
fn gathered(_proof: Avx2, words: &[u64; 8], from: usize) -> __m256i {
    // One by one, and volatile so that the compiler keeps it so: a load of
    // all four waits until the stores have left the processor's queue,
    // which takes as long as a third of an insertion.
    let read = |at: usize| {
        let word: *const u64 = &words[from + at];
        // SAFETY: from a reference.
        (unsafe { word.read_volatile() }) as i64
    };
    // SAFETY: `_proof` says that AVX2 is there.
    unsafe { _mm256_setr_epi64x(read(0), read(1), read(2), read(3)) }
}

static COUNT: [u8; 32] = {
    let mut count = [0; 32];
    let mut i = 0;
    while i < 32 {
        count[i] = i as u8;
        i += 1;
    }
    count
};

/// Every byte where the one before it was.
#[inline(always)]
fn one_byte_on(_proof: Avx2, bytes: __m256i) -> __m256i {
    // SAFETY: `_proof` says that AVX2 is there.
    unsafe {
        let upper = _mm256_permute2x128_si256::<0x81>(bytes, bytes);
        _mm256_alignr_epi8::<1>(upper, bytes)
    }
}

/// Half a line, or all of a half line.
#[inline(always)]
fn half(_proof: Avx2, bytes: &[u8]) -> __m256i {
    let Some(bytes) = bytes.first_chunk::<32>() else {
        // SAFETY: `_proof` says that AVX2 is there.
        return unsafe { _mm256_setzero_si256() };
    };
    // SAFETY: AVX2 as above; an unaligned load of the 32 bytes of `bytes`.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}
