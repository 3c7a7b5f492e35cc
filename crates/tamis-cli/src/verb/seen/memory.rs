//! Keys of earlier runs and of this one, and the expected losses.

use tamis::{AnyFilter, FileLock, Filter, FilterMut, KeyHasher, Window};

use crate::progress;

/// Keys seen: all of them, or the most recent ones.
pub(super) enum Memory {
    All(Box<AnyFilter>),
    Recent(Box<Window>),
}

/// Keys prefetched ahead of the one that is inserted.
const AHEAD: usize = 16;

impl Memory {
    /// Reads and verifies the locked file.
    pub(super) fn load(lock: &mut FileLock) -> tamis::Result<Self> {
        progress::during("reading the filter", || {
            lock.load().map(Box::new).map(Self::All).or_else(|error| {
                // The bytes of a window are those of two filters.
                let window = lock.load_window().map_err(|_| error)?;
                Ok(Self::Recent(Box::new(window)))
            })
        })
    }

    pub(super) fn save(&self, lock: &mut FileLock) -> tamis::Result<()> {
        match self {
            Self::All(filter) => lock.save(filter),
            Self::Recent(window) => lock.save_window(window),
        }
    }

    /// Number of recent keys that a window keeps.
    pub(super) fn window(&self) -> Option<u64> {
        match self {
            Self::All(_) => None,
            Self::Recent(_) => Some(self.young().capacity()),
        }
    }

    pub(super) fn hasher(&self) -> &KeyHasher {
        self.young().hasher()
    }

    /// The filter that new keys are inserted into.
    fn young(&self) -> &dyn Filter {
        match self {
            Self::All(filter) => filter.as_ref(),
            Self::Recent(window) => window.generations()[0],
        }
    }

    /// Inserts `hashes` in order, and appends to `new` whether each key was
    /// certainly absent.
    fn insert(&mut self, hashes: &[u64], new: &mut Vec<bool>) {
        match self {
            Self::All(filter) => {
                let filter = filter.as_mut();
                insert_each(filter, hashes, new, |filter, hash| {
                    // The filter would count the insertion of a repeat.
                    let absent = !filter.contains_hash(hash);
                    if absent {
                        filter.insert_hash(hash);
                    }
                    absent
                });
            }
            Self::Recent(window) => {
                let window = window.as_mut();
                insert_each(window, hashes, new, Window::insert_hash);
            }
        }
    }
}

fn insert_each<F: FilterMut>(
    filter: &mut F,
    hashes: &[u64],
    new: &mut Vec<bool>,
    insert: impl Fn(&mut F, u64) -> bool,
) {
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&later) = hashes.get(i + AHEAD) {
            filter.prefetch(later);
        }
        new.push(insert(filter, hash));
    }
}

/// Expected number of false positives before a new key is found absent.
fn odds(fpr: f64) -> f64 {
    fpr / (1.0 - fpr).max(f64::EPSILON)
}

/// Number of items and [`odds`] of a filter at one moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    items: u64,
    odds: f64,
}

impl Sample {
    fn of(filter: &dyn Filter) -> Self {
        let odds = odds(filter.stats().expected_fpr);
        Self { items: filter.len(), odds }
    }

    /// Mean of the odds while the filter is filled from `self` to `end`, by
    /// the power law through both.
    fn mean_odds(&self, end: &Self) -> f64 {
        if self.items == 0 || self.odds <= 0.0 || self.items >= end.items {
            return f64::midpoint(self.odds, end.odds);
        }
        let (from, to) = (self.items as f64, end.items as f64);
        let power = (end.odds / self.odds).ln() / (to / from).ln();
        (to * end.odds - from * self.odds) / ((power + 1.0) * (to - from))
    }
}

/// Expected number of new keys that are taken for repeats: the sum of the
/// false-positive rates that they met.
pub(super) struct Losses {
    expected: f64,
    /// Sample after which the keys below were inserted.
    start: Sample,
    /// Odds of the older generation of a window.
    older: f64,
    /// New keys since `start`.
    new: u64,
    /// Number of items at which the next sample is taken.
    next: u64,
}

impl Losses {
    pub(super) fn new(memory: &mut Memory) -> Self {
        let start = Sample { items: 0, odds: 0.0 };
        let mut losses =
            Self { expected: 0.0, start, older: 0.0, new: 0, next: 0 };
        losses.restart(memory);
        losses
    }

    /// Inserts `hashes` in order, and appends to `new` whether each key was
    /// certainly absent.
    pub(super) fn insert(
        &mut self,
        memory: &mut Memory,
        mut hashes: &[u64],
        new: &mut Vec<bool>,
    ) {
        while !hashes.is_empty() {
            let mut room = self.next.saturating_sub(memory.young().len());
            if room == 0 {
                self.sample(memory);
                self.restart(memory);
                room = self.next - memory.young().len();
            }
            let count = usize::try_from(room).unwrap_or(usize::MAX);
            let (now, later) = hashes.split_at(count.min(hashes.len()));
            let before = new.len();
            memory.insert(now, new);
            let found = new[before..].iter().filter(|&&new| new).count();
            self.new += found as u64;
            hashes = later;
        }
    }

    /// Expected number of new keys among `repeats` keys that were taken for
    /// repeats.
    pub(super) fn among(&mut self, repeats: u64, memory: &Memory) -> f64 {
        self.sample(memory);
        self.expected.min(repeats as f64)
    }

    /// Adds the expected losses since `start`.
    fn sample(&mut self, memory: &Memory) {
        let end = Sample::of(memory.young());
        let odds = (1.0 + self.start.mean_odds(&end)) * (1.0 + self.older);
        self.expected += self.new as f64 * (odds - 1.0);
        self.new = 0;
        self.start = end;
    }

    /// Starts a new generation of a window if the younger one is full, and
    /// places the next sample.
    fn restart(&mut self, memory: &mut Memory) {
        if let Memory::Recent(window) = memory {
            let [young, _] = window.generations();
            if young.len() >= young.capacity() {
                window.rotate();
            }
            let [_, old] = window.generations();
            self.older = odds(old.stats().expected_fpr);
        }
        let young = memory.young();
        self.start = Sample::of(young);
        self.next = next_sample(young.len(), young.capacity());
    }
}

/// Smallest number above `items` of the form `design * 2^(i/2)`, where
/// `i >= -12`: the samples of a filter that is filled to its design.
fn next_sample(items: u64, design: u64) -> u64 {
    let design = design.max(1) as f64;
    let mut half_octaves = -12.0;
    // Exact at the design: repeated multiplication would round past it.
    let mut place = design / 64.0;
    while place.ceil() <= items as f64 {
        half_octaves += 1.0;
        place = design * f64::exp2(half_octaves / 2.0);
    }
    (place.ceil() as u64).max(items.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_include_the_design_load() {
        let mut samples = vec![next_sample(0, 1000)];
        while samples.len() < 14 {
            let last = samples[samples.len() - 1];
            samples.push(next_sample(last, 1000));
        }
        assert_eq!(samples[0], 16);
        assert_eq!(samples[12], 1000);
        assert_eq!((next_sample(0, 0), next_sample(7, 0)), (1, 8));
    }

    /// The integral of x^2 from 1 to 2 and of a constant.
    #[test]
    fn power_laws_are_integrated_exactly() {
        let sample = |items, odds| Sample { items, odds };
        let mean = sample(100, 0.01).mean_odds(&sample(200, 0.04));
        assert!((mean - 0.07 / 3.0).abs() < 1e-12, "{mean}");
        let mean = sample(100, 0.01).mean_odds(&sample(200, 0.01));
        assert!((mean - 0.01).abs() < 1e-12, "{mean}");
        assert_eq!(sample(0, 0.0).mean_odds(&sample(9, 0.02)), 0.01);
    }
}
