//! Eight positions at once with the 128-bit vectors of WebAssembly.
//!
//! The block is the table of byte lookups, sixteen bytes each: a lookup gives
//! zero for the bytes of the other parts.
#![expect(unsafe_code, reason = "vector loads")]

use core::arch::wasm32::{
    i8x16_sub, u8x16_bitmask, u8x16_eq, u8x16_narrow_i16x8, u8x16_splat,
    u8x16_swizzle, u16x8_shr, u16x8_shuffle, u16x8_splat,
    u32x4_extmul_high_u16x8, u32x4_extmul_low_u16x8, u64x2, v128, v128_and,
    v128_load, v128_or,
};

use super::groups::{self, Groups};
use super::{LANES, Ops, Probes};
use crate::arch::{Scalar, Simd128};

impl Ops for Simd128 {
    #[inline(always)]
    fn all_set<const GROUPS: u32>(self, block: &[u8], probes: Probes) -> bool {
        groups::all_set::<_, GROUPS>(self, block, probes)
    }

    #[inline(always)]
    fn set_all(self, block: &mut [u8], probes: Probes) {
        Scalar.set_all(block, probes);
    }

    /// Bit by bit: without a scatter, a test in vectors and then the words one
    /// by one takes more instructions.
    #[inline(always)]
    fn set_missing<const GROUPS: u32>(
        self,
        block: &mut [u8],
        probes: Probes,
    ) -> bool {
        Scalar.set_missing::<GROUPS>(block, probes)
    }
}

// SAFETY: the contract names another architecture.
unsafe impl Groups for Simd128 {
    /// Tests one position per lane.
    #[inline(always)]
    fn group_set(self, block: &[u8], probes: Probes, group: u32) -> bool {
        Group::new(self, probes, group).is_set(block)
    }
}

/// The positions of a group, one per 16-bit lane.
#[derive(Clone, Copy)]
struct Group {
    at: v128,
    /// Lanes in use, 1 to 8.
    lanes: u32,
}

impl Group {
    #[inline(always)]
    fn new(_: Simd128, probes: Probes, group: u32) -> Self {
        let [a, b] = probes.words(group);
        let left = probes.count.all - group * LANES;
        let fields = u64x2(a, b);
        let at = match probes.bits {
            // Scaling by a power of two is a shift.
            512 => u16x8_shr(fields, 7),
            256 => u16x8_shr(fields, 8),
            bits => {
                let bits = u16x8_splat(bits as u16);
                let low = u32x4_extmul_low_u16x8(fields, bits);
                let high = u32x4_extmul_high_u16x8(fields, bits);
                u16x8_shuffle::<1, 3, 5, 7, 9, 11, 13, 15>(low, high)
            }
        };
        Self { at, lanes: left.min(LANES) }
    }

    #[inline(always)]
    fn is_set(self, block: &[u8]) -> bool {
        /// A one at each place of a byte.
        const BITS: v128 = core::arch::wasm32::u8x16(
            1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128,
        );
        let parts: &[[u8; 16]] = match block.len() {
            32 | 64 => bytemuck::cast_slice(block),
            _ => return false,
        };
        let byte = u16x8_shr(self.at, 3);
        let mut byte = u8x16_narrow_i16x8(byte, byte);
        let bit = v128_and(self.at, u16x8_splat(7));
        let mask = u8x16_swizzle(BITS, u8x16_narrow_i16x8(bit, bit));
        let mut found = u8x16_splat(0);
        for part in parts {
            // SAFETY: an unaligned load of the 16 bytes of `part`.
            let part = unsafe { v128_load(part.as_ptr().cast()) };
            found = v128_or(found, u8x16_swizzle(part, byte));
            byte = i8x16_sub(byte, u8x16_splat(16));
        }
        let set = u8x16_eq(v128_and(found, mask), mask);
        !u32::from(u8x16_bitmask(set)) << (32 - self.lanes) == 0
    }
}
