//! Eight positions at a time, for backends that have them in lanes.
#![expect(
    unsafe_code,
    reason = "a step that the compiler does not see through"
)]

use core::arch::x86_64::_bzhi_u32;

use super::{Count, LANES, Probes};
use crate::simd::{Backend, Task};

/// A backend that tests eight positions at once; it has BMI2, too.
pub(super) trait Groups: Backend {
    /// Whether the `group`-th eight positions are set, or what there is of
    /// them.
    fn group_set(self, block: &[u8], probes: Probes, group: u32) -> bool;
}

/// Which of the `group`-th eight positions there are, as ones.
#[inline(always)]
pub(super) fn wanted<B: Groups>(_: B, count: Count, group: u32) -> u32 {
    match group {
        0 => count.first,
        // SAFETY: backends that have positions in lanes have BMI2.
        _ => unsafe { _bzhi_u32(0xff, count.all - group * LANES) },
    }
}

/// [`Backend::all_set`], group by group.
#[inline(always)]
pub(super) fn all_set<B: Groups, const GROUPS: u32>(
    backend: B,
    block: &[u8],
    probes: Probes,
) -> bool {
    // Hardly a key that is not there gets behind the first group.
    let count = probes.count.all;
    let (no_second, no_third) = match GROUPS {
        1 => (true, true),
        2 => (false, true),
        _ => (count <= LANES, count <= 2 * LANES),
    };
    debug_assert_eq!(no_second, count <= LANES);
    debug_assert_eq!(no_third, count <= 2 * LANES);
    backend.group_set(block, probes, 0)
        && (no_second || second_set(backend, block, probes))
        && (no_third || backend.outline(Rest { backend, block, probes }))
}

/// Whether the second eight positions are set.
///
/// The compiler does not know that key, block and count are those of the
/// first eight. It would otherwise work out these positions before those are
/// looked at, which are all that most lookups need; and it would load the
/// block once for both, although what is loaded by the instruction that needs
/// it is no instruction more.
#[inline(always)]
fn second_set<B: Groups>(backend: B, block: &[u8], probes: Probes) -> bool {
    let Probes { mut hash, mut count, .. } = probes;
    let mut start = block.as_ptr();
    // SAFETY: no instruction at all: the pointer stays what it is, and with
    // it the slice made of it.
    let block = unsafe {
        core::arch::asm!(
            "/* {0} {1} {2:e} */",
            inout(reg) start,
            inout(reg) hash,
            inout(reg) count.all,
            options(readonly, nostack, preserves_flags),
        );
        core::slice::from_raw_parts(start, block.len())
    };
    backend.group_set(block, Probes { hash, count, ..probes }, 1)
}

/// The groups behind the second: rates far below one in ten thousand. Out
/// of line, since a loop would take registers from all lookups.
struct Rest<'a, B> {
    backend: B,
    block: &'a [u8],
    probes: Probes,
}

impl<G: Groups> Task for Rest<'_, G> {
    type Output = bool;

    #[inline(always)]
    fn run<B: Backend>(self, _: B) -> bool {
        let Self { backend, block, probes } = self;
        let mut group = 2;
        while group * LANES < probes.count.all {
            if !backend.group_set(block, probes, group) {
                return false;
            }
            group += 1;
        }
        true
    }
}
