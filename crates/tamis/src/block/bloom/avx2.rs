//! Eight positions at once with AVX2.
//!
//! The block is two registers of eight 32-bit words. The upper bits of a
//! position select the word, fetched for all eight lanes by one permutation
//! per register; its lower five bits make the mask. A gather instruction
//! would cost eight loads.
#![expect(unsafe_code, reason = "vector intrinsics")]

use core::arch::x86_64::{
    __m128i, __m256i, _mm_set_epi64x, _mm_set1_epi16, _mm256_add_epi32,
    _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_ps,
    _mm256_castps_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32,
    _mm256_cvtepu16_epi32, _mm256_loadu_si256, _mm256_movemask_ps,
    _mm256_or_si256, _mm256_permutevar8x32_epi32, _mm256_set1_epi32,
    _mm256_setr_epi32, _mm256_setzero_si256, _mm256_slli_epi32,
    _mm256_sllv_epi32, _mm256_srli_epi32, _mm256_storeu_si256,
    _mm256_sub_epi32, _mm256_testc_si256,
};

use super::groups::{self, Groups};
use super::{ANY, LANES, Ops, Probes};
use crate::arch::Avx2;

impl Ops for Avx2 {
    #[inline(always)]
    fn all_set<const GROUPS: u32>(self, block: &[u8], probes: Probes) -> bool {
        groups::all_set::<_, GROUPS>(self, block, probes)
    }

    #[inline(always)]
    fn set_all(self, block: &mut [u8], probes: Probes) {
        self.set_missing::<ANY>(block, probes);
    }

    #[inline(always)]
    fn set_missing<const GROUPS: u32>(
        self,
        block: &mut [u8],
        probes: Probes,
    ) -> bool {
        let mut missing = false;
        // No iterator: a closure would have no AVX2.
        let mut group = 0;
        while group < groups::number::<GROUPS>(probes.count) {
            let places = places(self, probes, group);
            let (lower, upper) = block.split_at_mut(32);
            if let Ok(lower) = lower.try_into() {
                missing |= set_half(self, lower, 0, places);
            }
            if let Ok(upper) = upper.try_into() {
                missing |= set_half(self, upper, 256, places);
            }
            group += 1;
        }
        missing
    }
}

impl Groups for Avx2 {
    /// Tests one position per 32-bit lane.
    #[inline(always)]
    fn group_set(self, block: &[u8], probes: Probes, group: u32) -> bool {
        let [a, b] = probes.words(group);
        let wanted = groups::wanted(self, probes.count, group);
        // SAFETY: `self` proves AVX2.
        unsafe {
            let at = positions(a, b, probes.bits);
            if let Ok(wide) = block.try_into() {
                covers_512(wide, at, wanted)
            } else if let Ok(narrow) = block.try_into() {
                covers_256(narrow, at, wanted)
            } else {
                false
            }
        }
    }
}

/// The positions of a group; -1 in unused lanes.
#[inline(always)]
fn places(token: Avx2, probes: Probes, group: u32) -> [u32; LANES as usize] {
    let [a, b] = probes.words(group);
    let wanted = groups::wanted(token, probes.count, group);
    let mut places = [0u32; LANES as usize];
    // SAFETY: `token` proves AVX2; an unaligned store of the 32 bytes of
    // `places`.
    unsafe {
        let lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let used = _mm256_and_si256(lanes, _mm256_set1_epi32(wanted as i32));
        let unused = _mm256_cmpeq_epi32(used, _mm256_setzero_si256());
        let at = _mm256_or_si256(positions(a, b, probes.bits), unused);
        _mm256_storeu_si256(places.as_mut_ptr().cast(), at);
    }
    places
}

/// Sets the positions in one half of a block, which begins at position
/// `first`. Returns whether one was clear.
///
/// Broadcasts each position to all lanes, where it sets a bit in one: a shift
/// by 32 or more, or by a negative number, gives zero.
#[inline(always)]
fn set_half(
    _proof: Avx2,
    bytes: &mut [u8; 32],
    first: i32,
    places: [u32; LANES as usize],
) -> bool {
    // SAFETY: `_proof` proves AVX2; an unaligned load and an unaligned store
    // of the 32 bytes of `bytes`.
    unsafe {
        let lanes = _mm256_setr_epi32(0, 32, 64, 96, 128, 160, 192, 224);
        let lanes = _mm256_add_epi32(lanes, _mm256_set1_epi32(first));
        let one = _mm256_set1_epi32(1);
        let set = |place: u32| {
            let place = _mm256_set1_epi32(place as i32);
            _mm256_sllv_epi32(one, _mm256_sub_epi32(place, lanes))
        };
        // `black_box` keeps `places` in memory: a broadcast from memory needs
        // no shuffle port, one from a register does.
        let [a, b, c, d, e, f, g, h] = core::hint::black_box(places);
        let or = |x, y| _mm256_or_si256(x, y);
        let ab_cd = or(or(set(a), set(b)), or(set(c), set(d)));
        let ef_gh = or(or(set(e), set(f)), or(set(g), set(h)));
        let new = or(ab_cd, ef_gh);
        let old = _mm256_loadu_si256(bytes.as_ptr().cast());
        _mm256_storeu_si256(bytes.as_mut_ptr().cast(), or(old, new));
        // Zero if no bit of `new` is clear in `old`.
        _mm256_testc_si256(old, new) == 0
    }
}

/// The eight positions of a group, one per lane.
///
/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
pub(super) unsafe fn positions(a: u64, b: u64, bits: u32) -> __m256i {
    // SAFETY: AVX2 by this function's contract. The casts keep all bits: the
    // intrinsics take signed words, and `bits <= 512`.
    unsafe {
        let fields = _mm_set_epi64x(b as i64, a as i64);
        let scale = _mm_set1_epi16(bits as i16);
        let scaled: __m128i;
        // LLVM compiles the intrinsic `_mm_mulhi_epu16` to five instructions
        // here.
        core::arch::asm!(
            "vpmulhuw {scaled}, {fields}, {scale}",
            scaled = lateout(xmm_reg) scaled,
            fields = in(xmm_reg) fields,
            scale = in(xmm_reg) scale,
            options(pure, nomem, nostack, preserves_flags),
        );
        _mm256_cvtepu16_epi32(scaled)
    }
}

/// Whether each lane of `wanted` has a one at its position in the word found
/// for it.
///
/// Shifts the bits to the top of their lanes, from where one instruction
/// collects them: a comparison with masks would need one more vector and a
/// step to ignore the unused lanes.
///
/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
unsafe fn covers(found: __m256i, at: __m256i, wanted: u32) -> bool {
    // SAFETY: AVX2 by this function's contract.
    let ones = unsafe {
        let up = _mm256_andnot_si256(at, _mm256_set1_epi32(31));
        let found = _mm256_sllv_epi32(found, up);
        _mm256_movemask_ps(_mm256_castsi256_ps(found)) as u32
    };
    !ones & wanted == 0
}

/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
unsafe fn covers_512(block: &[u8; 64], at: __m256i, wanted: u32) -> bool {
    let [lower, upper] = [block.as_ptr(), block[32..].as_ptr()];
    // SAFETY: AVX2 by this function's contract; both loads are unaligned
    // loads of 32 bytes inside the 64 of `block`.
    unsafe {
        let lower = _mm256_loadu_si256(lower.cast());
        let upper = _mm256_loadu_si256(upper.cast());
        // The permutation uses three bits of the word index; the fourth
        // (bit 8 of the position) chooses the register.
        let word = _mm256_srli_epi32::<5>(at);
        let found = _mm256_blendv_ps(
            _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(lower, word)),
            _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(upper, word)),
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(at)),
        );
        covers(_mm256_castps_si256(found), at, wanted)
    }
}

/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
unsafe fn covers_256(block: &[u8; 32], at: __m256i, wanted: u32) -> bool {
    // SAFETY: AVX2 by this function's contract; the load is an unaligned
    // load of the 32 bytes of `block`.
    unsafe {
        let words = _mm256_loadu_si256(block.as_ptr().cast());
        let found =
            _mm256_permutevar8x32_epi32(words, _mm256_srli_epi32::<5>(at));
        covers(found, at, wanted)
    }
}
