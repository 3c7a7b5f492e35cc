//! How long something took.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The processor time of this thread: on a machine with other work, time
/// on the wall would measure that work too.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The nanoseconds `act` took, and its result.
#[inline(always)]
pub(crate) fn timed<T>(act: impl FnOnce() -> T) -> (f64, T) {
    let start = now();
    let result = act();
    let taken = now() - start;
    (taken.as_nanos() as f64, result)
}
