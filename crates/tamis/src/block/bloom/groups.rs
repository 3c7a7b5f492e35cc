//! [`Ops::all_set`] for instruction sets that test eight positions at once.
#![expect(unsafe_code, reason = "an optimisation barrier, and BMI2")]

#[cfg(target_arch = "x86_64")]
use super::Count;
use super::{LANES, Ops, Probes};
use crate::arch::WithToken;

/// An instruction set that tests eight positions at once.
///
/// # Safety
///
/// On x86-64 a value of the type proves that the processor has BMI2.
pub(super) unsafe trait Groups: Ops {
    /// Whether the positions of the `group`-th group are set.
    fn group_set(self, block: &[u8], probes: Probes, group: u32) -> bool;
}

/// Mask of the lanes of the `group`-th group that hold a position.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn wanted<T: Groups>(_: T, count: Count, group: u32) -> u32 {
    match group {
        0 => count.first,
        // SAFETY: the token proves BMI2, by the contract of `Groups`.
        _ => unsafe {
            core::arch::x86_64::_bzhi_u32(0xff, count.all - group * LANES)
        },
    }
}

/// The number of groups, `GROUPS` as in [`Ops::all_set`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn number<const GROUPS: u32>(count: Count) -> u32 {
    match GROUPS {
        super::ANY => count.all.div_ceil(LANES),
        groups => groups,
    }
}

/// [`Ops::all_set`], group by group. Few absent keys pass the first group.
#[inline(always)]
pub(super) fn all_set<T: Groups, const GROUPS: u32>(
    token: T,
    block: &[u8],
    probes: Probes,
) -> bool {
    let count = probes.count.all;
    let (no_second, no_third) = match GROUPS {
        1 => (true, true),
        2 => (false, true),
        _ => (count <= LANES, count <= 2 * LANES),
    };
    debug_assert_eq!(no_second, count <= LANES);
    debug_assert_eq!(no_third, count <= 2 * LANES);
    token.group_set(block, probes, 0)
        && (no_second || second_set(token, block, probes))
        && (no_third || token.call_outlined(Rest { block, probes }))
}

/// The operands of the barrier below, in registers of their sizes.
#[cfg(target_arch = "x86_64")]
macro_rules! operands {
    () => {
        "/* {0} {1} {2:e} */"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! operands {
    () => {
        "/* {0} {1} {2:w} */"
    };
}

/// Whether the positions of the second group are set.
///
/// The empty `asm!` hides from the compiler that key, block and count are
/// those of the first group. Otherwise it computes the second positions
/// before the first are tested, although most lookups end there, and keeps
/// the block in registers where a memory operand is free.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn second_set<T: Groups>(token: T, block: &[u8], probes: Probes) -> bool {
    let Probes { mut hash, mut count, .. } = probes;
    let mut start = block.as_ptr();
    // SAFETY: the assembly has no instruction: it changes no register, no
    // flag and no memory, as `readonly`, `nostack` and `preserves_flags`
    // state. So `start` is still `block.as_ptr()`, and the slice is `block`.
    let block = unsafe {
        core::arch::asm!(
            operands!(),
            inout(reg) start,
            inout(reg) hash,
            inout(reg) count.all,
            options(readonly, nostack, preserves_flags),
        );
        core::slice::from_raw_parts(start, block.len())
    };
    token.group_set(block, Probes { hash, count, ..probes }, 1)
}

/// [`second_set`] without a barrier, which needs inline assembly.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn second_set<T: Groups>(token: T, block: &[u8], probes: Probes) -> bool {
    token.group_set(block, probes, 1)
}

/// The groups from the third on, which only rates far below 0.01 % need. Out
/// of line, because a loop would raise register pressure in every lookup.
struct Rest<'a> {
    block: &'a [u8],
    probes: Probes,
}

impl<T: Groups> WithToken<T> for Rest<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, token: T) -> bool {
        let Self { block, probes } = self;
        let mut group = 2;
        while group * LANES < probes.count.all {
            if !token.group_set(block, probes, group) {
                return false;
            }
            group += 1;
        }
        true
    }
}
