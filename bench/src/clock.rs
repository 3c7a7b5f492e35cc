//! Processor time of a closure.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of this thread. Wall-clock time would include the work of
/// other processes.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Nanoseconds of `act`, and its result.
#[inline(always)]
pub(crate) fn timed<T>(act: impl FnOnce() -> T) -> (f64, T) {
    let start = now();
    let result = act();
    let taken = now() - start;
    (taken.as_nanos() as f64, result)
}
