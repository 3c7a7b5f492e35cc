//! The least loaded of d buckets: Azar, Broder, Karlin and Upfal, *Balanced
//! Allocations* (STOC 1994), as a table or as a filter of fingerprints.
//!
//! A key is hashed to d buckets and goes to the one with the fewest keys, of
//! equals the first that was hashed. With n keys in n buckets, the largest
//! load is log log n / log d + O(1) for two choices and more, and about
//! log n / log log n for one. Buckets are sized for the largest load, so it
//! decides the memory.
//!
//! The share s(i) of buckets with at least i keys follows the differential
//! equation of [`least_loaded`](tamis_theory::dynamics::least_loaded), and
//! the largest of m loads is at least i with probability `1-e^(-m s(i))`. A
//! lookup compares r bits with all keys of its d buckets, so the
//! false-positive rate is `1-(sum p(i) (1-2^-r)^i)^d` for the share p(i) of
//! buckets with i keys: to first order d 2^-r times the average load.
//!
//! A filter cannot remove keys: equal fingerprints of two keys that share
//! one bucket would be mistaken for each other. A table with whole keys can.
//!
//! Inferred: the filter, because the paper has balls and bins only; a
//! counter of the load per bucket; and the probability of the largest load,
//! for loads of different buckets as if they were independent.

use tamis_theory::dynamics;

use super::{Baseline, Error, Lines};
use crate::simulation::{mix, reduce};

/// A table of keys, or of fingerprints.
///
/// ```
/// use tamis_lab::baseline::{Baseline, LeastLoaded};
///
/// let mut table = LeastLoaded::table(100, 2);
/// table.insert(17)?;
/// assert!(table.contains(17) && table.largest() == 1);
/// table.remove(17)?;
/// assert!(!table.contains(17));
/// # Ok::<(), tamis_lab::baseline::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LeastLoaded {
    buckets: Vec<Vec<u64>>,
    choices: u32,
    /// Bits of a stored key or fingerprint.
    width: u32,
}

impl LeastLoaded {
    /// A table of whole keys with `choices` buckets for each.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, LeastLoaded};
    /// assert_eq!(LeastLoaded::table(100, 2).bits(), 0);
    /// ```
    pub fn table(buckets: u64, choices: u32) -> Self {
        Self::filter(buckets, choices, u64::BITS)
    }

    /// A filter of fingerprints of `width` bits, at most 64.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, Error, LeastLoaded};
    /// let mut filter = LeastLoaded::filter(100, 2, 8);
    /// filter.insert(17)?;
    /// // One slot of eight bits and a counter of one per bucket.
    /// assert_eq!(filter.bits(), 900);
    /// assert_eq!(filter.remove(17), Err(Error::Unsupported));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn filter(buckets: u64, choices: u32, width: u32) -> Self {
        let buckets = vec![Vec::new(); buckets.max(1) as usize];
        Self { buckets, choices: choices.max(1), width }
    }

    /// Keys of the fullest bucket.
    ///
    /// ```
    /// use tamis_lab::baseline::LeastLoaded;
    /// assert_eq!(LeastLoaded::table(100, 2).largest(), 0);
    /// ```
    pub fn largest(&self) -> usize {
        self.buckets.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Number of buckets with at least `load` keys.
    ///
    /// ```
    /// use tamis_lab::baseline::LeastLoaded;
    /// assert_eq!(LeastLoaded::table(100, 2).at_least(0), 100);
    /// ```
    pub fn at_least(&self, load: usize) -> u64 {
        let full = |bucket: &&Vec<u64>| bucket.len() >= load;
        self.buckets.iter().filter(full).count() as u64
    }

    /// Share of buckets with at least `load` keys after `keys` insertions.
    ///
    /// ```
    /// use tamis_lab::baseline::LeastLoaded;
    /// let expected = LeastLoaded::table(100, 1).expected_share(100, 1)?;
    /// assert!((expected - (1.0 - (-1f64).exp())).abs() < 1e-6);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn expected_share(
        &self,
        keys: u64,
        load: usize,
    ) -> tamis_theory::Result<f64> {
        let average = keys as f64 / self.buckets.len() as f64;
        let loads = dynamics::least_loaded(average, self.choices)?;
        Ok(loads.at_least(load))
    }

    /// Probability that some bucket has at least `load` keys.
    ///
    /// ```
    /// use tamis_lab::baseline::LeastLoaded;
    /// let table = LeastLoaded::table(1000, 2);
    /// assert!(table.expected_largest(1000, 2)? > 0.999);
    /// assert!(table.expected_largest(1000, 5)? < 0.001);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn expected_largest(
        &self,
        keys: u64,
        load: usize,
    ) -> tamis_theory::Result<f64> {
        let share = self.expected_share(keys, load)?;
        Ok(-(-share * self.buckets.len() as f64).exp_m1())
    }

    /// False-positive rate after `keys` insertions.
    ///
    /// ```
    /// use tamis_lab::baseline::LeastLoaded;
    /// let rate = LeastLoaded::filter(100, 2, 10).expected_rate(400)?;
    /// assert!((rate * 1024.0 / 8.0 - 1.0).abs() < 0.01);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn expected_rate(&self, keys: u64) -> tamis_theory::Result<f64> {
        let average = keys as f64 / self.buckets.len() as f64;
        let loads = dynamics::least_loaded(average, self.choices)?;
        let other = (-2f64.powi(-(self.width as i32))).ln_1p();
        let matched = loads.cost(|load| -(other * load as f64).exp_m1());
        Ok(-(f64::from(self.choices) * (-matched).ln_1p()).exp_m1())
    }

    fn places(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let count = self.buckets.len() as u64;
        (1..=u64::from(self.choices))
            .map(move |i| reduce(mix(key, i), count) as usize)
    }

    fn fingerprint(&self, key: u64) -> u64 {
        match self.width {
            u64::BITS => key,
            width => mix(key, 0) >> (u64::BITS - width),
        }
    }

    /// Bits of a bucket: a counter, and slots for the largest load.
    fn bucket_bits(&self) -> u64 {
        let largest = self.largest() as u64;
        let counter = u64::BITS - largest.leading_zeros();
        largest * u64::from(self.width) + u64::from(counter)
    }
}

impl Baseline for LeastLoaded {
    fn name(&self) -> &'static str {
        "least loaded"
    }

    fn insert(&mut self, key: u64) -> Result<(), Error> {
        let places = self.places(key);
        let place = places.min_by_key(|place| self.buckets[*place].len());
        let fingerprint = self.fingerprint(key);
        self.buckets[place.ok_or(Error::Full)?].push(fingerprint);
        Ok(())
    }

    /// The lines are those of full buckets, one after the other.
    fn look_up(&self, key: u64, lines: &mut Lines) -> bool {
        let fingerprint = self.fingerprint(key);
        let mut places = self.places(key);
        if lines.counting() {
            let width = self.bucket_bits();
            places.any(|place| {
                lines.read(place as u64 * width, width);
                self.buckets[place].contains(&fingerprint)
            })
        } else {
            places.any(|place| self.buckets[place].contains(&fingerprint))
        }
    }

    fn remove(&mut self, key: u64) -> Result<(), Error> {
        if self.width != u64::BITS {
            return Err(Error::Unsupported);
        }
        for place in self.places(key) {
            let bucket = &mut self.buckets[place];
            if let Some(slot) = bucket.iter().position(|k| *k == key) {
                bucket.swap_remove(slot);
                return Ok(());
            }
        }
        Err(Error::Absent)
    }

    fn bits(&self) -> u64 {
        self.buckets.len() as u64 * self.bucket_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Keys, Rate, fill, runs};

    #[test]
    fn loads_are_those_of_the_differential_equation() {
        for (choices, per_bucket) in [(1, 1), (2, 1), (2, 6), (4, 3)] {
            let mut table = LeastLoaded::table(200_000, choices);
            let keys = 200_000 * per_bucket;
            fill(&mut table, Keys::new(1).members(keys)).unwrap();
            for load in 1..=12 {
                let hits = table.at_least(load);
                let rate = Rate { hits, trials: 200_000 };
                let expected = table.expected_share(keys, load).unwrap();
                if expected * 200_000.0 < 10.0 {
                    assert!(load > 3 && hits < 30);
                    continue;
                }
                // Loads vary less than independent ones.
                let what = format!("{choices} {load}: {rate:?} {expected}");
                assert!(rate.agrees(expected), "{what}");
            }
        }
    }

    #[test]
    fn the_largest_load_is_as_predicted() {
        const RUNS: u64 = 300;
        const SIZE: u64 = 20_000;
        for (choices, median) in [(1, 7), (2, 3), (3, 3)] {
            let mut largest = runs(RUNS, |run| {
                let mut table = LeastLoaded::table(SIZE, choices);
                fill(&mut table, Keys::new(run).members(SIZE)).unwrap();
                table.largest()
            });
            largest.sort_unstable();
            assert_eq!(largest[RUNS as usize / 2], median, "{choices}");
            let table = LeastLoaded::table(SIZE, choices);
            for load in 1..=12 {
                let hits = largest.iter().filter(|l| **l >= load).count();
                let rate = Rate { hits: hits as u64, trials: RUNS };
                let expected = table.expected_largest(SIZE, load).unwrap();
                let what = format!("{choices} {load}: {rate:?} {expected}");
                assert!(rate.agrees(expected), "{what}");
            }
        }
    }

    #[test]
    fn keys_go_to_the_least_loaded_bucket() {
        let mut table = LeastLoaded::table(50, 3);
        for key in Keys::new(1).members(1000) {
            let before = table.clone();
            table.insert(key).unwrap();
            let loads = before.places(key).map(|i| before.buckets[i].len());
            let least = loads.min().unwrap();
            let changed = (0..50)
                .find(|i| before.buckets[*i] != table.buckets[*i])
                .unwrap();
            assert_eq!(before.buckets[changed].len(), least);
            assert_eq!(table.buckets[changed].last(), Some(&key));
        }
    }
}
