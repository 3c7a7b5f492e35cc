//! Eight positions at once with NEON.
//!
//! The block is the table of a byte lookup: one `TBL` with four registers (two
//! for half a line) fetches the bytes of all positions.
#![expect(unsafe_code, reason = "vector intrinsics")]
#![allow(
    unused_unsafe,
    clippy::allow_attributes,
    reason = "newer compilers have safe intrinsics for enabled features"
)]

use core::arch::aarch64::{
    uint8x8_t, uint16x8_t, vand_u8, vcombine_u16, vcreate_u16, vdup_n_u8,
    vget_lane_u64, vget_low_u16, vld1q_u8_x2, vld1q_u8_x4, vmovn_u16,
    vmull_high_n_u16, vmull_n_u16, vqtbl2_u8, vqtbl4_u8, vreinterpret_s8_u8,
    vreinterpret_u64_u8, vreinterpretq_u16_u32, vshl_u8, vshrn_n_u16,
    vshrq_n_u16, vtst_u8, vuzp2q_u16,
};

use super::groups::{self, Groups};
use super::{LANES, Ops, Probes};
use crate::arch::{Neon, Scalar};

impl Ops for Neon {
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
unsafe impl Groups for Neon {
    /// Tests one position per lane.
    #[inline(always)]
    fn group_set(self, block: &[u8], probes: Probes, group: u32) -> bool {
        Group::new(self, probes, group).is_set(block)
    }
}

/// The positions of a group, one per 16-bit lane.
#[derive(Clone, Copy)]
struct Group {
    _proof: Neon,
    at: uint16x8_t,
    /// Lanes in use, 1 to 8.
    lanes: u32,
}

impl Group {
    #[inline(always)]
    fn new(proof: Neon, probes: Probes, group: u32) -> Self {
        let [a, b] = probes.words(group);
        let left = probes.count.all - group * LANES;
        // SAFETY: `proof` proves NEON.
        let at = unsafe {
            let fields = vcombine_u16(vcreate_u16(a), vcreate_u16(b));
            match probes.bits {
                // Scaling by a power of two is a shift.
                512 => vshrq_n_u16::<7>(fields),
                256 => vshrq_n_u16::<8>(fields),
                bits => {
                    let low = vmull_n_u16(vget_low_u16(fields), bits as u16);
                    let high = vmull_high_n_u16(fields, bits as u16);
                    vuzp2q_u16(
                        vreinterpretq_u16_u32(low),
                        vreinterpretq_u16_u32(high),
                    )
                }
            }
        };
        Self { _proof: proof, at, lanes: left.min(LANES) }
    }

    #[inline(always)]
    fn is_set(self, block: &[u8]) -> bool {
        let Some(found) = self.bytes(block) else { return false };
        // SAFETY: `_proof` proves NEON.
        let set = unsafe {
            let bit = vand_u8(vmovn_u16(self.at), vdup_n_u8(7));
            let mask = vshl_u8(vdup_n_u8(1), vreinterpret_s8_u8(bit));
            vget_lane_u64::<0>(vreinterpret_u64_u8(vtst_u8(found, mask)))
        };
        !set << ((8 - self.lanes) * 8) == 0
    }

    /// The bytes of a block of 64 or 32 bytes that hold the positions.
    #[inline(always)]
    fn bytes(self, block: &[u8]) -> Option<uint8x8_t> {
        // SAFETY: `_proof` proves NEON; loads of 64 and 32 bytes from arrays
        // of that length.
        unsafe {
            let byte = vshrn_n_u16::<3>(self.at);
            if let Ok(wide) = <&[u8; 64]>::try_from(block) {
                Some(vqtbl4_u8(vld1q_u8_x4(wide.as_ptr()), byte))
            } else if let Ok(narrow) = <&[u8; 32]>::try_from(block) {
                Some(vqtbl2_u8(vld1q_u8_x2(narrow.as_ptr()), byte))
            } else {
                None
            }
        }
    }
}
