//! Eight positions at once with AVX-512, in lanes of 32 bits.
//!
//! One permutation of the whole block brings the word of each position into
//! its lane, one rotation the bit to the lane's end. Both take as many bits
//! of a position as they need and ignore the others, so that positions are
//! only shifted, not cut out.
//!
//! Registers of 256 bits and not of 512, although a block would be one of
//! these: three units execute what is done in them, and not two, of which
//! multiplications need one, too.
#![expect(unsafe_code, reason = "vector intrinsics")]
#![expect(clippy::incompatible_msrv, reason = "compiled from 1.89 on")]

use core::arch::x86_64::{
    __m256i, __m512i, _mm_set_epi64x, _mm256_and_si256, _mm256_cvtepu16_epi32,
    _mm256_loadu_si256, _mm256_mask_mov_epi32, _mm256_mask_testn_epi32_mask,
    _mm256_permutevar8x32_epi32, _mm256_permutex2var_epi32, _mm256_rorv_epi32,
    _mm256_set1_epi32, _mm256_srli_epi32, _mm256_storeu_si256,
    _mm512_cmpneq_epi64_mask, _mm512_loadu_si512, _mm512_set1_epi32,
    _mm512_setr_epi32, _mm512_sllv_epi32, _mm512_storeu_si512,
    _mm512_sub_epi32, _mm512_ternarylogic_epi32,
};

use super::groups::{self, Groups};
use super::scalar::{look_and_set, set_one_by_one};
use super::{LANES, Probes, avx2};
use crate::simd::Avx512;

/// [`Backend::all_set`](crate::simd::Backend::all_set) for this processor.
#[inline(always)]
pub(crate) fn all_set<const GROUPS: u32>(
    proof: Avx512,
    block: &[u8],
    probes: Probes,
) -> bool {
    groups::all_set::<_, GROUPS>(proof, block, probes)
}

impl Groups for Avx512 {
    #[inline(always)]
    fn group_set(self, block: &[u8], probes: Probes, group: u32) -> bool {
        group_set(self, block, probes, group)
    }
}

/// Whether the `group`-th eight positions are set, or what there is of them.
#[inline(always)]
fn group_set(proof: Avx512, block: &[u8], probes: Probes, group: u32) -> bool {
    let at = positions(proof, block.len(), probes, group);
    let Some(found) = words(proof, block, at.word) else { return false };
    // SAFETY: `proof` says that AVX2 and AVX-512VL are there.
    let zeros = unsafe {
        let found = _mm256_rorv_epi32(found, at.bit);
        let one = _mm256_set1_epi32(1);
        _mm256_mask_testn_epi32_mask(at.wanted as u8, found, one)
    };
    zeros == 0
}

/// Eight positions of a block, one a lane.
#[derive(Clone, Copy)]
struct Positions {
    /// The word of 32 bits; only the lowest four bits count, or three.
    word: __m256i,
    /// The bit in it, of which only the lowest five count; those above them
    /// are the word.
    bit: __m256i,
    /// The lanes of positions that are there.
    wanted: u32,
}

/// The `group`-th eight positions in a block of so many bytes.
#[inline(always)]
fn positions(
    proof: Avx512,
    bytes: usize,
    probes: Probes,
    group: u32,
) -> Positions {
    let [a, b] = probes.words(group);
    // SAFETY: `proof` says that AVX2 is there. The casts keep all bits: the
    // intrinsics happen to take signed words.
    unsafe {
        let wanted = groups::wanted(proof, probes.count, group);
        let fields = _mm_set_epi64x(b as i64, a as i64);
        // To scale by a power of two is to shift each field by less.
        let (word, bit) = match (bytes, probes.bits) {
            (64, 512) => {
                let fields = _mm256_cvtepu16_epi32(fields);
                let word = _mm256_srli_epi32::<12>(fields);
                (word, _mm256_srli_epi32::<7>(fields))
            }
            (32, 256) => {
                let fields = _mm256_cvtepu16_epi32(fields);
                let word = _mm256_srli_epi32::<13>(fields);
                (word, _mm256_srli_epi32::<8>(fields))
            }
            (_, bits) => {
                let at = avx2::positions(a, b, bits);
                (_mm256_srli_epi32::<5>(at), at)
            }
        };
        Positions { word, bit, wanted }
    }
}

/// These words of a whole block, or of half of one.
#[inline(always)]
fn words(_proof: Avx512, block: &[u8], which: __m256i) -> Option<__m256i> {
    // SAFETY: `_proof` says that AVX2 and AVX-512VL are there; unaligned
    // loads of 32 bytes inside those of an array of that length.
    unsafe {
        if let Ok(wide) = <&[u8; 64]>::try_from(block) {
            let lower = _mm256_loadu_si256(wide.as_ptr().cast());
            let upper = _mm256_loadu_si256(wide[32..].as_ptr().cast());
            Some(_mm256_permutex2var_epi32(lower, which, upper))
        } else if let Ok(narrow) = <&[u8; 32]>::try_from(block) {
            let half = _mm256_loadu_si256(narrow.as_ptr().cast());
            Some(_mm256_permutevar8x32_epi32(half, which))
        } else {
            None
        }
    }
}

/// [`Backend::set_all`](crate::simd::Backend::set_all) for this processor.
#[inline(always)]
pub(crate) fn set_all(proof: Avx512, block: &mut [u8], probes: Probes) {
    match <&mut [u8; 64]>::try_from(&mut *block) {
        Ok(wide) => put(proof, wide, with_all(proof, wide, probes)),
        Err(_) => set_one_by_one(block, probes),
    }
}

/// [`Backend::set_missing`](crate::simd::Backend::set_missing) for this
/// processor.
///
/// Not a test and then, perhaps, the bits: what they make of the block is
/// compared with it.
#[inline(always)]
pub(crate) fn set_missing(
    proof: Avx512,
    block: &mut [u8],
    probes: Probes,
) -> bool {
    let Ok(wide) = <&mut [u8; 64]>::try_from(&mut *block) else {
        return look_and_set(proof, block, probes);
    };
    let new = with_all(proof, wide, probes);
    // SAFETY: `proof` says that AVX-512F is there.
    let differs = unsafe { _mm512_cmpneq_epi64_mask(new, line(proof, wide)) };
    if differs != 0 {
        put(proof, wide, new);
    }
    differs != 0
}

/// A block with all positions set.
#[inline(always)]
fn with_all(proof: Avx512, block: &[u8; 64], probes: Probes) -> __m512i {
    let mut words = line(proof, block);
    let mut group = 0;
    while group * LANES < probes.count.all {
        let at = positions(proof, 64, probes, group);
        words = with_group(proof, words, at);
        group += 1;
    }
    words
}

/// A block with eight positions set, or those that are there.
///
/// Each is brought to all lanes, of which it sets a bit in one: a shift by
/// 32 and more, or by a negative number, leaves nothing.
#[inline(always)]
fn with_group(_proof: Avx512, words: __m512i, at: Positions) -> __m512i {
    let mut places = [0u32; LANES as usize];
    // SAFETY: `_proof` says that AVX2 and AVX-512VL are there; an unaligned
    // store of the 32 bytes of `places`.
    unsafe {
        // Those that are not there are behind the block.
        let none = _mm256_set1_epi32(-1);
        let place = _mm256_and_si256(at.bit, _mm256_set1_epi32(511));
        let place = _mm256_mask_mov_epi32(none, at.wanted as u8, place);
        _mm256_storeu_si256(places.as_mut_ptr().cast(), place);
    }
    // From memory a number comes into all lanes by itself; from a register
    // it would take the one unit that permutes.
    let [a, b, c, d, e, f, g, h] = core::hint::black_box(places);
    // SAFETY: `_proof` says that AVX-512F is there.
    unsafe {
        let lanes = _mm512_setr_epi32(
            0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416,
            448, 480,
        );
        let one = _mm512_set1_epi32(1);
        let set = |place: u32| {
            let place = _mm512_set1_epi32(place as i32);
            _mm512_sllv_epi32(one, _mm512_sub_epi32(place, lanes))
        };
        const OR: i32 = 0xfe;
        let a = _mm512_ternarylogic_epi32::<OR>(set(a), set(b), set(c));
        let d = _mm512_ternarylogic_epi32::<OR>(set(d), set(e), set(f));
        let g = _mm512_ternarylogic_epi32::<OR>(set(g), set(h), words);
        _mm512_ternarylogic_epi32::<OR>(a, d, g)
    }
}

#[inline(always)]
fn line(_proof: Avx512, block: &[u8; 64]) -> __m512i {
    // SAFETY: `_proof` says that AVX-512F is there; an unaligned load of the
    // 64 bytes of `block`.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

#[inline(always)]
fn put(_proof: Avx512, block: &mut [u8; 64], words: __m512i) {
    // SAFETY: `_proof` says that AVX-512F is there; an unaligned store of
    // the 64 bytes of `block`.
    unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), words) };
}
