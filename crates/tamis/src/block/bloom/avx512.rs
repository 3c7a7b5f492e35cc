//! Eight positions at once with AVX-512, the whole block in one register.
//!
//! One permutation brings the word of each position into its lane, one
//! rotation the bit to the lane's end. Both take as many bits of a position
//! as they need and ignore the others, so that positions are only shifted,
//! not cut out.
#![expect(unsafe_code, reason = "vector intrinsics")]
#![expect(clippy::incompatible_msrv, reason = "compiled from 1.89 on")]

use core::arch::x86_64::{
    __m512i, __mmask8, _bzhi_u32, _mm_mulhi_epu16, _mm_set_epi64x,
    _mm_set1_epi16, _mm256_loadu_si256, _mm512_add_epi64,
    _mm512_broadcast_i64x2, _mm512_broadcast_i64x4, _mm512_cvtepu16_epi64,
    _mm512_loadu_si512, _mm512_mask_and_epi64, _mm512_permutexvar_epi64,
    _mm512_rorv_epi64, _mm512_set1_epi64, _mm512_setr_epi64,
    _mm512_sllv_epi64, _mm512_srli_epi64, _mm512_srlv_epi64,
    _mm512_storeu_si512, _mm512_sub_epi64, _mm512_ternarylogic_epi64,
    _mm512_testn_epi64_mask,
};

use super::groups::{self, Groups};
use super::scalar::set_one_by_one;
use super::{LANES, Probes};
use crate::simd::Avx512;

/// [`Backend::all_set`](crate::simd::Backend::all_set) for this processor.
#[inline(always)]
pub(crate) fn all_set(proof: Avx512, block: &[u8], probes: Probes) -> bool {
    groups::all_set(proof, block, probes)
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
    let Some(words) = words(proof, block) else { return false };
    let Positions { word, bit, wanted } =
        positions(proof, block.len(), probes, group);
    // SAFETY: `proof` says that AVX-512F is there.
    let clear = unsafe {
        let found = _mm512_permutexvar_epi64(word, words);
        let found = _mm512_rorv_epi64(found, bit);
        _mm512_testn_epi64_mask(found, _mm512_set1_epi64(1))
    };
    clear & wanted == 0
}

/// Eight positions of a block, one a lane.
#[derive(Clone, Copy)]
struct Positions {
    /// The word of 64 bits; only the lowest three bits count.
    word: __m512i,
    /// The bit in it, of which only the lowest six count; in whole blocks
    /// the three above them are the word.
    bit: __m512i,
    /// The lanes of positions that are there.
    wanted: __mmask8,
}

/// The `group`-th eight positions in a block of so many bytes.
#[inline(always)]
fn positions(
    _proof: Avx512,
    bytes: usize,
    probes: Probes,
    group: u32,
) -> Positions {
    let [a, b] = probes.words(group).map(|word| word as i64);
    let left = probes.count - group * LANES;
    // SAFETY: `_proof` says that AVX-512F is there, and what comes with it,
    // and BMI2. The casts keep all bits: the intrinsics happen to take
    // signed words, and `bits` is at most 512.
    unsafe {
        let fields = _mm_set_epi64x(b, a);
        let shift = match (bytes, probes.bits) {
            (64, 512) => 7,
            // In half a block there are four words, and they come twice: a
            // third bit of their number does no harm.
            (32, 256) => 8,
            (_, bits) => {
                let scale = _mm_set1_epi16(bits as i16);
                let at = _mm_mulhi_epu16(fields, scale);
                let at = _mm512_cvtepu16_epi64(at);
                return Positions {
                    word: _mm512_srli_epi64::<6>(at),
                    bit: at,
                    wanted: _bzhi_u32(0xff, left) as u8,
                };
            }
        };
        // To scale by a power of two is to shift each field by less. The
        // two words are in turn in the lanes: in a batch they come from
        // memory, and then this is all done by a load.
        let fields = _mm512_broadcast_i64x2(fields);
        let bit = _mm512_setr_epi64(0, 0, 16, 16, 32, 32, 48, 48);
        let [bit, word] = [shift, shift + 6]
            .map(|more| _mm512_add_epi64(bit, _mm512_set1_epi64(more)));
        Positions {
            word: _mm512_srlv_epi64(fields, word),
            bit: _mm512_srlv_epi64(fields, bit),
            wanted: IN_TURN[left as usize % IN_TURN.len()],
        }
    }
}

/// The lanes of so many positions, if the first four are in the even ones
/// and the others in the odd ones.
static IN_TURN: [u8; 64] = {
    let mut lanes = [0xff; 64];
    let mut count = 0;
    while count < 8 {
        let even = 0x55 & ((1 << (2 * count)) - 1);
        let odd = match count {
            5.. => 0xaa & ((1 << (2 * (count - 4))) - 1),
            _ => 0,
        };
        lanes[count] = (even | odd) as u8;
        count += 1;
    }
    lanes
};

/// A whole block, or half of one twice.
#[inline(always)]
fn words(_proof: Avx512, block: &[u8]) -> Option<__m512i> {
    // SAFETY: `_proof` says that AVX-512F is there; unaligned loads of the
    // bytes of an array of that length.
    unsafe {
        if let Ok(wide) = <&[u8; 64]>::try_from(block) {
            Some(_mm512_loadu_si512(wide.as_ptr().cast()))
        } else if let Ok(narrow) = <&[u8; 32]>::try_from(block) {
            let half = _mm256_loadu_si256(narrow.as_ptr().cast());
            Some(_mm512_broadcast_i64x4(half))
        } else {
            None
        }
    }
}

/// [`Backend::set_all`](crate::simd::Backend::set_all) for this processor.
#[inline(always)]
pub(crate) fn set_all(proof: Avx512, block: &mut [u8], probes: Probes) {
    let Ok(wide) = <&mut [u8; 64]>::try_from(&mut *block) else {
        return set_one_by_one(block, probes);
    };
    let mut group = 0;
    while group * LANES < probes.count {
        set_group(proof, wide, positions(proof, 64, probes, group));
        group += 1;
    }
}

/// Sets eight positions, or those that are there.
///
/// Each is brought to all lanes, of which it sets a bit in one: a shift by
/// 64 and more, or by a negative number, leaves nothing.
#[inline(always)]
fn set_group(_proof: Avx512, block: &mut [u8; 64], at: Positions) {
    let mut places = [0u64; LANES as usize];
    // SAFETY: `_proof` says that AVX-512F is there; an unaligned store of
    // the 64 bytes of `places`.
    unsafe {
        // Those that are not there are behind the block.
        let none = _mm512_set1_epi64(-1);
        let place = _mm512_set1_epi64(511);
        let at = _mm512_mask_and_epi64(none, at.wanted, at.bit, place);
        _mm512_storeu_si512(places.as_mut_ptr().cast(), at);
    }
    // From memory a number comes into all lanes by itself; from a register
    // it would take the one unit that permutes.
    let [a, b, c, d, e, f, g, h] = core::hint::black_box(places);
    // SAFETY: `_proof` says that AVX-512F is there; an unaligned load and an
    // unaligned store of the 64 bytes of `block`.
    unsafe {
        let lanes = _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448);
        let one = _mm512_set1_epi64(1);
        let set = |place: u64| {
            let place = _mm512_set1_epi64(place as i64);
            _mm512_sllv_epi64(one, _mm512_sub_epi64(place, lanes))
        };
        const OR: i32 = 0xfe;
        let words = _mm512_loadu_si512(block.as_ptr().cast());
        let a = _mm512_ternarylogic_epi64::<OR>(set(a), set(b), set(c));
        let d = _mm512_ternarylogic_epi64::<OR>(set(d), set(e), set(f));
        let g = _mm512_ternarylogic_epi64::<OR>(set(g), set(h), words);
        let words = _mm512_ternarylogic_epi64::<OR>(a, d, g);
        _mm512_storeu_si512(block.as_mut_ptr().cast(), words);
    }
}
