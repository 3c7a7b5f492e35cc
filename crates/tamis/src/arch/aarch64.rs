//! The level of 64-bit Arm: NEON, a part of the baseline. Nothing is detected.
//!
//! No level for SVE2: a TinySet would gain from its `BDEP`, an optional part
//! that neither Apple's processors nor Graviton 3 have, and Rust has no stable
//! intrinsics for it.
#![expect(unsafe_code, reason = "prefetch hints, an optimisation barrier")]

use super::{Token, WithToken};

/// Proof of NEON. Every processor this is compiled for has it: `cfg` of the
/// module names the target feature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon;

impl Token for Neon {
    #[inline(never)]
    fn call_outlined<W: WithToken<Self>>(self, work: W) -> W::Output {
        work.run(self)
    }
}

/// See [`super::opaque`].
#[inline(always)]
pub(super) fn opaque(mut number: u64) -> u64 {
    // SAFETY: the assembly has no instruction.
    unsafe {
        core::arch::asm!(
            "/* {0} */",
            inout(reg) number,
            options(nomem, nostack, preserves_flags),
        );
    }
    number
}

/// Prefetches into the first-level cache if `NEAR`, else into the second.
///
/// Assembly, because the intrinsic is unstable.
#[inline(always)]
pub(super) fn prefetch<const NEAR: bool>(bytes: &[u8], offset: usize) {
    let address = bytes.as_ptr().wrapping_add(offset);
    // SAFETY: PRFM is a hint: it reads no value and raises no fault whatever
    // the address.
    unsafe {
        match NEAR {
            true => core::arch::asm!(
                "prfm pldl1keep, [{0}]",
                in(reg) address,
                options(readonly, nostack, preserves_flags),
            ),
            false => core::arch::asm!(
                "prfm pldl2keep, [{0}]",
                in(reg) address,
                options(readonly, nostack, preserves_flags),
            ),
        }
    }
}
