//! Fingerprint block operations with NEON: 16 bytes of heads per comparison,
//! sixteen planes per table lookup. NEON has no PDEP: a select counts bits by
//! bytes.
#![expect(unsafe_code, reason = "vector intrinsics")]
#![allow(
    unused_unsafe,
    clippy::allow_attributes,
    reason = "newer compilers have safe intrinsics for enabled features"
)]

use core::arch::aarch64::{
    int32x4_t, uint8x16_t, uint8x16x2_t, uint8x16x4_t, uint32x4_t, vaddq_s32,
    vaddq_u32, vandq_s32, vandq_u8, vandq_u32, vbslq_u8, vceqq_u8, vcltq_s32,
    vcnt_u8, vcombine_u8, vcreate_u8, vdupq_n_s32, vdupq_n_u8, vdupq_n_u16,
    vdupq_n_u32, veorq_u8, vextq_u8, vextq_u32, vget_high_s16, vget_lane_u64,
    vget_low_s16, vgetq_lane_u64, vld1_s8, vld1_u8, vld1q_u8, vld1q_u16,
    vmlaq_n_u16, vmovl_s8, vmovl_s16, vmovl_u8, vmovn_u16, vorrq_u32,
    vpaddq_u8, vqtbl2q_u8, vqtbl4q_u8, vreinterpret_u64_u8,
    vreinterpretq_s8_u8, vreinterpretq_s16_u16, vreinterpretq_s32_u32,
    vreinterpretq_u8_u32, vreinterpretq_u8_u64, vreinterpretq_u32_u8,
    vreinterpretq_u64_u8, vsetq_lane_u32, vsetq_lane_u64, vshlq_u8, vshlq_u32,
    vshrn_n_u16, vshrq_n_u8, vshrq_n_u32, vsliq_n_u8, vst1q_u8, vsubq_s32,
    vtstq_u8,
};

use super::bits;
use super::ops::{
    Heads, LINE, NewEntry, NewHead, Ops, Planes, Tail, TailTables,
};
use crate::arch::{Neon, Scalar};

impl Ops for Neon {
    const PLANES: u32 = 16;

    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: `self` proves NEON.
        let counts = unsafe {
            let counts = vcnt_u8(vcreate_u8(mask));
            vget_lane_u64::<0>(vreinterpret_u64_u8(counts))
        };
        bits::deposit(bits, mask, counts)
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
            match_bytes(self, block, heads.value)
        } else {
            match_nibbles(self, half(&block[BYTES - 32..]), heads.value)
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
        let equal = match_nibbles(self, half(&block[..32]), heads.value);
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
        let equal = match_nibbles(self, half(&block[from..]), value);
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
        let rest = rest.map(u64::to_le_bytes);
        let rest: &[u8; LINE] = bytemuck::cast_ref(&rest);
        add(self, block, head, line(self, rest));
    }

    #[inline(always)]
    fn insert_entry<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        entry: NewEntry,
    ) {
        let here = whole(self, block);
        let Vectors([a, b, c, d]) = here;
        // SAFETY: `self` proves NEON.
        let first = unsafe {
            // The lane in front of the first is never used: no bit of an
            // entry is in front of it.
            let first = moved_apart(self, a, a, 0, entry);
            match BYTES {
                64 => {
                    let words = vreinterpretq_u64_u8(first);
                    let words = vsetq_lane_u64::<0>(entry.index, words);
                    vreinterpretq_u8_u64(words)
                }
                _ => {
                    let words = vreinterpretq_u32_u8(first);
                    let index = entry.index as u32;
                    vreinterpretq_u8_u32(vsetq_lane_u32::<0>(index, words))
                }
            }
        };
        let second = moved_apart(self, a, b, 4, entry);
        let rest = match BYTES {
            64 => {
                let third = moved_apart(self, b, c, 8, entry);
                let fourth = moved_apart(self, c, d, 12, entry);
                Vectors([first, second, third, fourth])
            }
            _ => Vectors([first, second, first, second]),
        };
        add(self, block, entry.head, rest);
    }

    #[inline(always)]
    fn differing_planes<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        planes: Planes,
        tail: u64,
    ) -> u32 {
        static LANES: [u16; 16] =
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let Vectors([a, b, c, d]) = whole(self, block);
        // SAFETY: `self` proves NEON; loads of the two halves of `LANES`.
        let ones = unsafe {
            // Places wrap in unused planes, whose bits are cleared below.
            let first = vdupq_n_u16(planes.first as u16);
            let stride = planes.stride as u16;
            let low = vld1q_u16(LANES.as_ptr());
            let high = vld1q_u16(LANES[8..].as_ptr());
            let low = vmlaq_n_u16(first, low, stride);
            let high = vmlaq_n_u16(first, high, stride);
            let byte =
                vcombine_u8(vshrn_n_u16::<3>(low), vshrn_n_u16::<3>(high));
            let place = vcombine_u8(vmovn_u16(low), vmovn_u16(high));
            let found = match BYTES {
                64 => vqtbl4q_u8(uint8x16x4_t(a, b, c, d), byte),
                _ => vqtbl2q_u8(uint8x16x2_t(a, b), byte),
            };
            let bit = vandq_u8(place, vdupq_n_u8(7));
            let bit = vshlq_u8(vdupq_n_u8(1), vreinterpretq_s8_u8(bit));
            let set = vandq_u8(vtstq_u8(found, bit), lane_bits());
            let sums = vpaddq_u8(set, set);
            let sums = vpaddq_u8(sums, sums);
            let sums = vpaddq_u8(sums, sums);
            vgetq_lane_u64::<0>(vreinterpretq_u64_u8(sums)) as u32
        };
        let wanted = tail.reverse_bits() as u32;
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

/// A line, or a half line twice.
#[derive(Clone, Copy)]
struct Vectors([uint8x16_t; 4]);

/// 32 bytes; zeros if `bytes` has fewer.
#[inline(always)]
fn half(bytes: &[u8]) -> &[u8; 32] {
    bytes.first_chunk().unwrap_or(&[0; 32])
}

#[inline(always)]
fn sixteen(_proof: Neon, bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: `_proof` proves NEON; a load of the 16 bytes of `bytes`.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline(always)]
fn line(proof: Neon, bytes: &[u8; LINE]) -> Vectors {
    let parts: &[[u8; 16]; 4] = bytemuck::cast_ref(bytes);
    let [a, b, c, d] = parts;
    Vectors([
        sixteen(proof, a),
        sixteen(proof, b),
        sixteen(proof, c),
        sixteen(proof, d),
    ])
}

#[inline(always)]
fn whole<const BYTES: usize>(proof: Neon, block: &[u8; BYTES]) -> Vectors {
    if let Some(bytes) = block.first_chunk() {
        return line(proof, bytes);
    }
    let parts: &[[u8; 16]; 2] = bytemuck::cast_ref(half(block));
    let [a, b] = parts;
    let (a, b) = (sixteen(proof, a), sixteen(proof, b));
    Vectors([a, b, a, b])
}

/// One bit per lane, of eight lanes.
#[inline(always)]
fn lane_bits() -> uint8x16_t {
    static BITS: [u8; 16] =
        [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    sixteen(Neon, &BITS)
}

/// Mask of the bytes that are equal to `value`, that of the last byte highest.
#[inline(always)]
fn match_bytes<const BYTES: usize>(
    proof: Neon,
    block: &[u8; BYTES],
    value: u8,
) -> u64 {
    let Vectors([a, b, c, d]) = whole(proof, block);
    let bits = lane_bits();
    // SAFETY: `proof` proves NEON.
    unsafe {
        let value = vdupq_n_u8(value);
        let c = vandq_u8(vceqq_u8(c, value), bits);
        let d = vandq_u8(vceqq_u8(d, value), bits);
        let upper = vpaddq_u8(c, d);
        let lower = match BYTES {
            64 => {
                let a = vandq_u8(vceqq_u8(a, value), bits);
                let b = vandq_u8(vceqq_u8(b, value), bits);
                vpaddq_u8(a, b)
            }
            _ => vdupq_n_u8(0),
        };
        let sums = vpaddq_u8(lower, upper);
        let sums = vpaddq_u8(sums, sums);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(sums))
    }
}

/// Mask of the nibbles, of 64, that are equal to `value`.
#[inline(always)]
fn match_nibbles(proof: Neon, bytes: &[u8; 32], value: u8) -> u64 {
    /// The two bits of each byte, of four bytes.
    static PAIRS: [u8; 16] =
        [3, 12, 48, 192, 3, 12, 48, 192, 3, 12, 48, 192, 3, 12, 48, 192];
    let parts: &[[u8; 16]; 2] = bytemuck::cast_ref(bytes);
    let [a, b] = parts;
    let pairs = sixteen(proof, &PAIRS);
    // SAFETY: `proof` proves NEON.
    unsafe {
        let value = vdupq_n_u8((value & 0x0f) * 0x11);
        // Ones where a nibble differs, in both bits of its byte's pair.
        let differs = |bytes: uint8x16_t| {
            let differs = veorq_u8(bytes, value);
            let low = vtstq_u8(differs, vdupq_n_u8(0x0f));
            let high = vtstq_u8(differs, vdupq_n_u8(0xf0));
            vandq_u8(vbslq_u8(vdupq_n_u8(0x55), low, high), pairs)
        };
        let a = differs(sixteen(proof, a));
        let b = differs(sixteen(proof, b));
        let sums = vpaddq_u8(a, b);
        let sums = vpaddq_u8(sums, sums);
        !vgetq_lane_u64::<0>(vreinterpretq_u64_u8(sums))
    }
}

/// The four 32-bit lanes from `lane` on, with the bits of a new entry inserted
/// into the planes; `back` are the 16 bytes in front of `here`.
#[inline(always)]
fn moved_apart(
    _proof: Neon,
    back: uint8x16_t,
    here: uint8x16_t,
    lane: usize,
    entry: NewEntry,
) -> uint8x16_t {
    let NewEntry { start, new, capacity, lanes, .. } = entry;
    let eight = lane / 8 * 8;
    let skew = lanes.skew.get(eight..).and_then(|s| s.first_chunk::<8>());
    let passed = lanes.passed.get(eight..).and_then(|s| s.first_chunk::<8>());
    let skew: &[i8; 8] = skew.unwrap_or(&[0; 8]);
    let passed: &[u8; 8] = passed.unwrap_or(&[0; 8]);
    // SAFETY: `_proof` proves NEON; loads of the eight bytes of both arrays.
    unsafe {
        let skew = vmovl_s8(vld1_s8(skew.as_ptr()));
        let passed = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(passed.as_ptr())));
        let (skew, passed) = match lane % 8 {
            0 => (vget_low_s16(skew), vget_low_s16(passed)),
            _ => (vget_high_s16(skew), vget_high_s16(passed)),
        };
        let (skew, passed) = (vmovl_s16(skew), vmovl_s16(passed));
        let here = vreinterpretq_u32_u8(here);
        let before = vextq_u32::<3>(vreinterpretq_u32_u8(back), here);
        let start = vdupq_n_s32(start as i32);
        let capacity_lanes = vdupq_n_s32(capacity as i32);
        // -1 in lanes with one more bit of the entry in front than an entry in
        // slot 0 has.
        let late = vreinterpretq_s32_u32(vcltq_s32(start, skew));
        let passed = vsubq_s32(passed, late);
        let gap = vsubq_s32(start, skew);
        let gap = vaddq_s32(gap, vandq_s32(late, capacity_lanes));
        // A shift takes the low byte of its distance as a signed number, to
        // the right if negative, and gives zero from 32 on. Distances are
        // below 225, which the next would take for -31: 0 <= gap < 128 + 66,
        // since slots are below 128 and skews at least -66.
        let bits = vorrq_u32(
            vshlq_u32(here, passed),
            vshlq_u32(before, vsubq_s32(passed, vdupq_n_s32(32))),
        );
        let new = vshlq_u32(vdupq_n_u32(new), passed);
        let bits = with_bit(bits, new, gap);
        if capacity >= 32 {
            return vreinterpretq_u8_u32(bits);
        }
        let gap = vaddq_s32(gap, capacity_lanes);
        vreinterpretq_u8_u32(with_bit(bits, vaddq_u32(new, new), gap))
    }
}

/// Inserts the highest bit of each lane of `new` at `gap`.
///
/// # Safety
///
/// The processor must have NEON.
#[inline(always)]
unsafe fn with_bit(
    bits: uint32x4_t,
    new: uint32x4_t,
    gap: int32x4_t,
) -> uint32x4_t {
    // SAFETY: NEON by this function's contract.
    unsafe {
        // Doubles the bits behind the gap, which shifts them by one.
        let behind = vshlq_u32(vdupq_n_u32(u32::MAX), gap);
        let bits = vaddq_u32(bits, vandq_u32(bits, behind));
        vorrq_u32(bits, vshlq_u32(vshrq_n_u32::<31>(new), gap))
    }
}

/// Inserts a head, with `rest` in front of all heads.
#[inline(always)]
fn add<const BYTES: usize>(
    proof: Neon,
    block: &mut [u8; BYTES],
    head: NewHead,
    rest: Vectors,
) {
    let NewHead { nibbles, begin, at, value } = head;
    let Vectors(here) = whole(proof, block);
    let through = front(proof, at + nibbles);
    let before = front(proof, at);
    let planes = front(proof, begin);
    let parts: &mut [[u8; 16]] = bytemuck::cast_slice_mut(block);
    let last = parts.len() - 1;
    for (at, part) in parts.iter_mut().enumerate() {
        // SAFETY: `proof` proves NEON; a store of the 16 bytes of `part`.
        unsafe {
            // Moves every head down by one. No head follows the last one, and
            // none is needed: a head that moves has another behind it.
            let next = here[(at + 1).min(last)];
            let next = vextq_u8::<1>(here[at], next);
            let moved = match nibbles {
                2 => next,
                _ => vsliq_n_u8::<4>(vshrq_n_u8::<4>(here[at]), next),
            };
            let value = vdupq_n_u8(value);
            let new = vbslq_u8(through.0[at], value, here[at]);
            let new = vbslq_u8(before.0[at], moved, new);
            let new = vbslq_u8(planes.0[at], rest.0[at], new);
            vst1q_u8(part.as_mut_ptr(), new);
        }
    }
}

/// Ones in the nibbles in front of `place`.
#[inline(always)]
fn front(proof: Neon, place: u8) -> Vectors {
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
    let at = 128 - place / 2 + place % 2 * 256;
    let from: *const u8 = FRONTS.as_ptr();
    // SAFETY: `at <= 128 + 256`, so the 64 bytes from there on are inside the
    // table of 512.
    line(proof, unsafe { &*from.add(at).cast::<[u8; LINE]>() })
}
