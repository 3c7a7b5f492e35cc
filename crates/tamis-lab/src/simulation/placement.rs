//! Loads of buckets under the placement schemes, without any contents: a
//! simulation that shares no code with the library.

use super::{Keys, mix, reduce};

/// First of the hashes of a key that decide admissions.
const COINS: u64 = 1000;

/// A placement scheme with all parameters given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scheme {
    /// Buckets of each level.
    pub(crate) levels: Vec<u64>,
    /// Buckets proposed in each level: more than one in a single level is
    /// SEQUENTIAL.
    pub(crate) choices: u32,
    pub(crate) threshold: u32,
    pub(crate) admission: f64,
    /// Reads after which every further key goes to the list.
    pub(crate) budget: Option<u64>,
}

impl Scheme {
    pub(crate) fn single(buckets: u64, threshold: u32, p: f64) -> Self {
        Self::sequential(buckets, 1, threshold, p)
    }

    pub(crate) fn sequential(
        buckets: u64,
        choices: u32,
        threshold: u32,
        admission: f64,
    ) -> Self {
        let levels = vec![buckets];
        Self { levels, choices, threshold, admission, budget: None }
    }

    /// Levels of the shares `shares` of `buckets`, of which the last takes
    /// the rounding.
    pub(crate) fn multilevel(
        buckets: u64,
        shares: &[f64],
        threshold: u32,
        admission: f64,
    ) -> Self {
        let mut levels: Vec<u64> = shares
            .iter()
            .map(|share| (share * buckets as f64).round() as u64)
            .collect();
        let others: u64 = levels.iter().rev().skip(1).sum();
        if let Some(last) = levels.last_mut() {
            *last = buckets.saturating_sub(others);
        }
        Self { levels, choices: 1, threshold, admission, budget: None }
    }
}

/// Buckets filled under a scheme.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    scheme: Scheme,
    /// Loads, by level.
    pub(crate) loads: Vec<Vec<u32>>,
    pub(crate) keys: u64,
    pub(crate) reads: u64,
    /// Keys in the list, those that were never tried included.
    pub(crate) listed: u64,
}

impl Placement {
    pub(crate) fn new(scheme: Scheme) -> Self {
        let levels = scheme.levels.iter();
        let loads = levels.map(|count| vec![0; *count as usize]).collect();
        Self { scheme, loads, keys: 0, reads: 0, listed: 0 }
    }

    /// A scheme filled with the first `keys` keys of the run `seed`.
    pub(crate) fn filled(scheme: Scheme, seed: u64, keys: u64) -> Self {
        let mut placement = Self::new(scheme);
        for key in Keys::new(seed).members(keys) {
            placement.insert(key);
        }
        placement
    }

    /// Buckets proposed for `key`, in order, each as level and place.
    fn proposals(&self, key: u64) -> impl Iterator<Item = (usize, usize)> {
        let choices = u64::from(self.scheme.choices);
        let levels = self.scheme.levels.iter().enumerate();
        levels.flat_map(move |(level, count)| {
            (0..choices).map(move |choice| {
                let hash = mix(key, level as u64 * choices + choice);
                (level, reduce(hash, *count) as usize)
            })
        })
    }

    /// Inserts a key; false if it goes to the list.
    pub(crate) fn insert(&mut self, key: u64) -> bool {
        self.keys += 1;
        if self.scheme.budget.is_none_or(|budget| self.reads < budget) {
            let proposals: Vec<_> = self.proposals(key).collect();
            for (number, (level, place)) in proposals.into_iter().enumerate() {
                self.reads += 1;
                let load = &mut self.loads[level][place];
                let coin = mix(key, COINS + number as u64) as f64;
                let takes = match (*load).cmp(&self.scheme.threshold) {
                    std::cmp::Ordering::Less => true,
                    std::cmp::Ordering::Equal => {
                        coin < self.scheme.admission * 2f64.powi(64)
                    }
                    std::cmp::Ordering::Greater => false,
                };
                if takes {
                    *load += 1;
                    return true;
                }
            }
        }
        self.listed += 1;
        false
    }

    /// Whether the lookup of the paper's section 2 reads the list for a
    /// listed key: all its buckets hold at least the threshold.
    pub(crate) fn reaches_list(&self, key: u64) -> bool {
        self.proposals(key).all(|(level, place)| {
            self.loads[level][place] >= self.scheme.threshold
        })
    }

    /// Average reads of an insertion.
    pub(crate) fn accesses(&self) -> f64 {
        self.reads as f64 / self.keys as f64
    }

    /// Share of the keys in the list.
    pub(crate) fn overflow(&self) -> f64 {
        self.listed as f64 / self.keys as f64
    }

    /// Share of all buckets, by load.
    pub(crate) fn shares(&self) -> Vec<f64> {
        shares(self.loads.iter().flatten().copied())
    }

    /// Variance of the load of all buckets.
    pub(crate) fn variance(&self) -> f64 {
        variance(&self.shares())
    }
}

/// Share of buckets, by load.
pub(crate) fn shares(loads: impl Iterator<Item = u32>) -> Vec<f64> {
    let mut counts = Vec::new();
    let mut total = 0.0;
    for load in loads {
        let load = load as usize;
        if load >= counts.len() {
            counts.resize(load + 1, 0.0);
        }
        counts[load] += 1.0;
        total += 1.0;
    }
    counts.iter().map(|count| count / total).collect()
}

/// Variance of a load, from the shares by load.
pub(crate) fn variance(shares: &[f64]) -> f64 {
    let moment = |power: i32| -> f64 {
        let loads = shares.iter().enumerate();
        loads.map(|(i, share)| share * (i as f64).powi(power)).sum()
    };
    moment(2) - moment(1) * moment(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_load_exceeds_the_threshold_by_more_than_one() {
        let scheme = Scheme::multilevel(1000, &[0.8, 0.15, 0.05], 8, 0.5);
        assert_eq!(scheme.levels, [800, 150, 50]);
        let filled = Placement::filled(scheme.clone(), 1, 9000);
        let stored: u32 = filled.loads.iter().flatten().sum();
        assert_eq!(u64::from(stored) + filled.listed, 9000);
        assert_eq!(filled.shares().len(), 10);
        // No admission: the threshold is never exceeded.
        let strict = Scheme { admission: 0.0, ..scheme.clone() };
        assert_eq!(Placement::filled(strict, 1, 9000).shares().len(), 9);
        // Two reads per key at most, of the first keys.
        let stopped = Scheme { budget: Some(1000), ..scheme };
        let stopped = Placement::filled(stopped, 1, 9000);
        assert!(stopped.reads < 1003 && stopped.listed > 7900);
    }

    #[test]
    fn without_a_threshold_loads_are_poisson() {
        let scheme = Scheme::single(100_000, 1000, 1.0);
        let filled = Placement::filled(scheme, 2, 800_000);
        assert_eq!((filled.accesses(), filled.listed), (1.0, 0));
        // The deviation of the variance is 0.036.
        assert!((filled.variance() - 8.0).abs() < 0.12);
        assert!((filled.shares()[8] - 0.139_587).abs() < 0.004);
    }
}
