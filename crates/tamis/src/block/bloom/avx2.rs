//! Eight positions at once with AVX2.
//!
//! The block is two registers of eight 32-bit words. The upper bits of a
//! position select the word, fetched for all eight lanes by one permutation
//! per register; its lower five bits make the mask. A gather instruction
//! would cost eight loads.
#![expect(unsafe_code, reason = "vector intrinsics")]

use core::arch::x86_64::{
    __m128i, __m256i, _mm_set_epi64x, _mm_set1_epi16, _mm256_and_si256,
    _mm256_andnot_si256, _mm256_blendv_ps, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cvtepu16_epi32,
    _mm256_loadu_si256, _mm256_movemask_ps, _mm256_permutevar8x32_epi32,
    _mm256_set1_epi32, _mm256_setr_epi32, _mm256_slli_epi32,
    _mm256_sllv_epi32, _mm256_srli_epi32, _mm256_storeu_si256,
};

use super::groups::{self, Groups};
use super::{ANY, LANES, Ops, Probes};
use crate::arch::Avx2;
use crate::memory::blocks_mut;

impl Ops for Avx2 {
    #[inline(always)]
    fn all_set<const GROUPS: u32>(self, block: &[u8], probes: Probes) -> bool {
        groups::all_set::<_, GROUPS>(self, block, probes)
    }

    #[inline(always)]
    fn set_all(self, block: &mut [u8], probes: Probes) {
        let mut group = 0;
        while group < groups::number::<ANY>(probes.count) {
            Group::new(self, probes, group).set(block);
            group += 1;
        }
    }

    /// One test for all positions of a group, and writes without a branch.
    #[inline(always)]
    fn set_missing<const GROUPS: u32>(
        self,
        block: &mut [u8],
        probes: Probes,
    ) -> bool {
        let mut all = true;
        // No iterator: a closure would have no AVX2.
        let mut group = 0;
        while group < groups::number::<GROUPS>(probes.count) {
            let positions = Group::new(self, probes, group);
            all &= positions.is_set(block);
            positions.set(block);
            group += 1;
        }
        !all
    }
}

// SAFETY: `Avx2` is made after BMI2 was detected: it is in its feature list.
unsafe impl Groups for Avx2 {
    /// Tests one position per 32-bit lane.
    #[inline(always)]
    fn group_set(self, block: &[u8], probes: Probes, group: u32) -> bool {
        Group::new(self, probes, group).is_set(block)
    }
}

/// The positions of a group, one per lane.
#[derive(Clone, Copy)]
struct Group {
    _proof: Avx2,
    at: __m256i,
    /// Mask of the lanes in use.
    wanted: u32,
}

impl Group {
    #[inline(always)]
    fn new(proof: Avx2, probes: Probes, group: u32) -> Self {
        let [a, b] = probes.words(group);
        let wanted = groups::wanted(proof, probes.count, group);
        // SAFETY: `proof` proves AVX2.
        let at = unsafe { positions(a, b, probes.bits) };
        Self { _proof: proof, at, wanted }
    }

    #[inline(always)]
    fn is_set(self, block: &[u8]) -> bool {
        let Self { at, wanted, .. } = self;
        // SAFETY: `_proof` proves AVX2.
        unsafe {
            if let Ok(wide) = block.try_into() {
                covers_512(wide, at, wanted)
            } else if let Ok(narrow) = block.try_into() {
                covers_256(narrow, at, wanted)
            } else {
                false
            }
        }
    }

    /// Sets the positions in a block of 64 or 32 bytes: in each lane the index
    /// of a word and its new bit, none in unused lanes, and then one
    /// instruction per word.
    #[inline(always)]
    fn set(self, block: &mut [u8]) {
        const _: () = assert!(LANES == 8);
        let Self { at, wanted, .. } = self;
        let words = blocks_mut::<4>(block);
        let last = match words.len() {
            16 => 15,
            8 => 7,
            _ => return,
        };
        let (mut at_word, mut bits) = ([0u32; 8], [0u32; 8]);
        // SAFETY: `_proof` proves AVX2; unaligned stores of the 32 bytes of
        // both arrays.
        unsafe {
            let word = _mm256_srli_epi32::<5>(at);
            let word = _mm256_and_si256(word, _mm256_set1_epi32(last));
            _mm256_storeu_si256(at_word.as_mut_ptr().cast(), word);
            let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let used =
                _mm256_and_si256(lane, _mm256_set1_epi32(wanted as i32));
            let used = _mm256_cmpeq_epi32(used, lane);
            let bit = _mm256_and_si256(at, _mm256_set1_epi32(31));
            let bit = _mm256_sllv_epi32(_mm256_set1_epi32(1), bit);
            let bit = _mm256_and_si256(bit, used);
            _mm256_storeu_si256(bits.as_mut_ptr().cast(), bit);
        }
        // `black_box` keeps the lanes in memory, from where each is one load.
        let lanes = core::hint::black_box((at_word, bits));
        let mut lane = 0;
        while lane < 8 {
            // SAFETY: the vector instruction `&` made every index at most
            // `last`, which is less than `words.len()`.
            let word =
                unsafe { words.get_unchecked_mut(lanes.0[lane] as usize) };
            let old = u32::from_le_bytes(*word);
            *word = (old | lanes.1[lane]).to_le_bytes();
            lane += 1;
        }
    }
}

/// The eight positions of a group, one per lane of 32 bits.
///
/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
unsafe fn positions(a: u64, b: u64, bits: u32) -> __m256i {
    // SAFETY: AVX2 by this function's contract. The casts keep all bits: the
    // intrinsic takes signed words.
    unsafe {
        let fields = _mm_set_epi64x(b as i64, a as i64);
        _mm256_cvtepu16_epi32(scaled(fields, bits))
    }
}

/// Fields of 16 bits scaled to `0..bits`, with `bits <= 512`.
///
/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
pub(super) unsafe fn scaled(fields: __m128i, bits: u32) -> __m128i {
    let scaled: __m128i;
    // SAFETY: AVX2 by this function's contract; the instruction changes
    // nothing but its output.
    unsafe {
        let scale = _mm_set1_epi16(bits as i16);
        // LLVM compiles the intrinsic `_mm_mulhi_epu16` to five instructions
        // here.
        core::arch::asm!(
            "vpmulhuw {scaled}, {fields}, {scale}",
            scaled = lateout(xmm_reg) scaled,
            fields = in(xmm_reg) fields,
            scale = in(xmm_reg) scale,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    scaled
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
