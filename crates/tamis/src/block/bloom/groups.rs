//! Eight positions at a time, for backends that have them in lanes.

use super::{LANES, Probes};
use crate::simd::{Backend, Task};

/// A backend that tests eight positions at once.
pub(super) trait Groups: Backend {
    /// Whether the `group`-th eight positions are set, or what there is of
    /// them.
    fn group_set(self, block: &[u8], probes: Probes, group: u32) -> bool;
}

/// [`Backend::all_set`], group by group.
#[inline(always)]
pub(super) fn all_set<B: Groups>(
    backend: B,
    block: &[u8],
    probes: Probes,
) -> bool {
    // Hardly a key that is not there gets behind the first group.
    backend.group_set(block, probes, 0)
        && (probes.count <= LANES || backend.group_set(block, probes, 1))
        && (probes.count <= 2 * LANES
            || backend.outline(Rest { backend, block, probes }))
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
        while group * LANES < probes.count {
            if !backend.group_set(block, probes, group) {
                return false;
            }
            group += 1;
        }
        true
    }
}
