//! Seeded keys, measured rates with their intervals, and quantiles over
//! runs: the parts that every experiment shares.
//!
//! ```
//! use tamis_lab::baseline::Counting;
//! use tamis_lab::simulation::{Keys, false_positives, fill};
//!
//! let keys = Keys::new(1);
//! let mut filter = Counting::for_rate(10_000, 0.01);
//! fill(&mut filter, keys.members(10_000))?;
//! let rate = false_positives(&filter, keys.strangers(100_000));
//! assert!(rate.agrees(filter.expected_rate(10_000)));
//! # Ok::<(), tamis_lab::baseline::Error>(())
//! ```

mod fingerprints;
mod keys;
mod placement;
mod rate;
mod sample;

use std::num::NonZero;
use std::thread;

use crate::baseline::{Baseline, Error, Lines};

pub(crate) use fingerprints::fingerprint_rate;
pub use keys::Keys;
pub(crate) use keys::{mix, reduce};
pub(crate) use placement::{Placement, Scheme, shares};
pub use rate::Rate;
pub use sample::Sample;

/// Quantile of the normal distribution for a two-sided interval of 99.9 %.
pub const DEVIATIONS: f64 = 3.2905;

/// Inserts all `keys`, up to the first that does not fit.
///
/// ```
/// use tamis_lab::baseline::{Baseline, Counting};
/// use tamis_lab::simulation::{Keys, fill};
///
/// let mut filter = Counting::new(1000, 7);
/// fill(&mut filter, Keys::new(1).members(100))?;
/// assert!(filter.contains(Keys::new(1).member(99)));
/// # Ok::<(), tamis_lab::baseline::Error>(())
/// ```
pub fn fill(
    structure: &mut impl Baseline,
    keys: impl Iterator<Item = u64>,
) -> Result<(), Error> {
    keys.into_iter().try_for_each(|key| structure.insert(key))
}

/// Share of the absent keys `strangers` that `structure` contains.
///
/// ```
/// use tamis_lab::baseline::Counting;
/// use tamis_lab::simulation::{Keys, false_positives};
///
/// let empty = Counting::new(1000, 7);
/// let rate = false_positives(&empty, Keys::new(1).strangers(100));
/// assert_eq!((rate.hits, rate.trials), (0, 100));
/// ```
pub fn false_positives(
    structure: &impl Baseline,
    strangers: impl Iterator<Item = u64>,
) -> Rate {
    let mut rate = Rate::default();
    for key in strangers {
        rate.trials += 1;
        rate.hits += u64::from(structure.contains(key));
    }
    rate
}

/// Cache lines that a lookup of one of `keys` reads, on average; zero
/// without keys.
///
/// ```
/// use tamis_lab::baseline::Counting;
/// use tamis_lab::simulation::{Keys, mean_lines};
///
/// // The first counter is zero.
/// let empty = Counting::new(1000, 7);
/// assert_eq!(mean_lines(&empty, Keys::new(1).strangers(100)), 1.0);
/// ```
pub fn mean_lines(
    structure: &impl Baseline,
    keys: impl Iterator<Item = u64>,
) -> f64 {
    let (mut lookups, mut total) = (0u64, 0u64);
    let mut lines = Lines::counted();
    for key in keys {
        lines.clear();
        structure.look_up(key, &mut lines);
        lookups += 1;
        total += lines.count() as u64;
    }
    total as f64 / lookups.max(1) as f64
}

/// Results of `run(0)` to `run(count - 1)` in this order, computed on all
/// processors.
///
/// ```
/// let squares = tamis_lab::simulation::runs(5, |run| run * run);
/// assert_eq!(squares, [0, 1, 4, 9, 16]);
/// ```
pub fn runs<T: Send>(count: u64, run: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads as u64;
    let share = |first: u64| -> Vec<T> {
        (first..count).step_by(threads as usize).map(&run).collect()
    };
    let mut shares: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(count))
            .map(|first| scope.spawn(move || share(first)))
            .collect();
        let joined = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|e| std::panic::resume_unwind(e))
        });
        joined.map(Vec::into_iter).collect()
    });
    let owner = |run: u64| (run % threads) as usize;
    (0..count).filter_map(|run| shares[owner(run)].next()).collect()
}
