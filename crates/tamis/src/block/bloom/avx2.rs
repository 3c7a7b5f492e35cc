//! Eight positions at once with AVX2.
//!
//! The block is two registers of eight 32-bit words. A position's upper
//! bits name the word, fetched for all eight lanes by one permutation per
//! register; its lower five bits make the mask. Gather instructions would do
//! the same from memory, but cost eight loads each.
#![expect(unsafe_code, reason = "vector intrinsics")]

use core::arch::x86_64::{
    __m256i, _mm_mulhi_epu16, _mm_set_epi64x, _mm_set1_epi16,
    _mm256_and_si256, _mm256_blendv_epi8, _mm256_cmpeq_epi32,
    _mm256_cmpgt_epi32, _mm256_cvtepu16_epi32, _mm256_loadu_si256,
    _mm256_movemask_epi8, _mm256_permutevar8x32_epi32, _mm256_set1_epi32,
    _mm256_setr_epi32, _mm256_slli_epi32, _mm256_sllv_epi32,
    _mm256_srai_epi32, _mm256_srli_epi32,
};

use super::{LANES, Probes};
use crate::simd::Avx2;

/// [`Backend::all_set`](crate::simd::Backend::all_set) for this processor.
#[inline(always)]
pub(crate) fn all_set(_proof: Avx2, block: &[u8], probes: Probes) -> bool {
    let mut group = 0;
    let mut left = probes.count;
    loop {
        let (a, b) = probes.words(group);
        let covered = if let Ok(wide) = block.try_into() {
            // SAFETY: `_proof` says that AVX2 is there.
            unsafe { covers_512(wide, positions(a, b, probes.bits), left) }
        } else if let Ok(narrow) = block.try_into() {
            // SAFETY: as above.
            unsafe { covers_256(narrow, positions(a, b, probes.bits), left) }
        } else {
            false
        };
        if !covered || left <= LANES {
            return covered;
        }
        left -= LANES;
        group += 1;
    }
}

/// The eight positions of a group, one a lane.
///
/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
unsafe fn positions(a: u64, b: u64, bits: u32) -> __m256i {
    // SAFETY: AVX2 by this function's contract. The casts keep all bits:
    // the intrinsics happen to take signed words, and `bits` is at most 512.
    unsafe {
        let fields = _mm_set_epi64x(b as i64, a as i64);
        let scaled = _mm_mulhi_epu16(fields, _mm_set1_epi16(bits as i16));
        _mm256_cvtepu16_epi32(scaled)
    }
}

/// A one in the bit each of the first `count` lanes asks for; lanes past
/// `count` ask for nothing.
///
/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
unsafe fn wanted(positions: __m256i, count: u32) -> __m256i {
    // SAFETY: AVX2 by this function's contract.
    unsafe {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let count = _mm256_set1_epi32(count as i32);
        let ones = _mm256_srli_epi32::<31>(_mm256_cmpgt_epi32(count, lanes));
        let bit = _mm256_and_si256(positions, _mm256_set1_epi32(31));
        _mm256_sllv_epi32(ones, bit)
    }
}

/// Whether every bit of `wanted` is set in `found`. By comparison and move
/// mask: the compiler takes the intrinsic made for this apart into twice as
/// many instructions.
///
/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
unsafe fn covers(found: __m256i, wanted: __m256i) -> bool {
    // SAFETY: AVX2 by this function's contract.
    unsafe {
        let both = _mm256_and_si256(found, wanted);
        _mm256_movemask_epi8(_mm256_cmpeq_epi32(both, wanted)) == -1
    }
}

/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
unsafe fn covers_512(block: &[u8; 64], at: __m256i, count: u32) -> bool {
    let [lower, upper] = [block.as_ptr(), block[32..].as_ptr()];
    // SAFETY: AVX2 by this function's contract; both loads are unaligned
    // loads of 32 bytes inside the 64 of `block`.
    unsafe {
        let lower = _mm256_loadu_si256(lower.cast());
        let upper = _mm256_loadu_si256(upper.cast());
        // The permutation uses three bits of the word index; the fourth
        // (bit 8 of the position) chooses the register.
        let word = _mm256_srli_epi32::<5>(at);
        let in_upper = _mm256_srai_epi32::<31>(_mm256_slli_epi32::<23>(at));
        let found = _mm256_blendv_epi8(
            _mm256_permutevar8x32_epi32(lower, word),
            _mm256_permutevar8x32_epi32(upper, word),
            in_upper,
        );
        covers(found, wanted(at, count))
    }
}

/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
unsafe fn covers_256(block: &[u8; 32], at: __m256i, count: u32) -> bool {
    // SAFETY: AVX2 by this function's contract; the load is an unaligned
    // load of the 32 bytes of `block`.
    unsafe {
        let words = _mm256_loadu_si256(block.as_ptr().cast());
        let found =
            _mm256_permutevar8x32_epi32(words, _mm256_srli_epi32::<5>(at));
        covers(found, wanted(at, count))
    }
}
