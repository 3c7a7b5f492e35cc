//! The counting Bloom filter of Fan, Cao, Almeida and Broder, *Summary
//! Cache* (2000): a Bloom filter whose bits are 4-bit counters.
//!
//! A counter that reaches 15 stays there, because its true count is lost.
//! The false-positive rate is that of a Bloom filter with as many bits as
//! counters, `(1-(1-1/m)^(kn))^k`, so the memory at the best k is
//! 4 log2(e) log2(1/rate) bits per key: 38.3, 57.5 and 76.7 at 1, 0.1 and
//! 0.01 %.
//!
//! Inferred: nothing. The paper's own text was not at hand; the counters,
//! their width and their overflow rule are in every description of it.

use super::bits::Bits;
use super::{Baseline, Error, Lines};
use crate::simulation::{mix, reduce};

/// Largest number of probes that is considered.
const MAX_PROBES: u32 = 40;
/// Bits of a counter.
const WIDTH: u32 = 4;
/// A counter with this value no longer changes.
const STUCK: u64 = (1 << WIDTH) - 1;

/// A counting Bloom filter.
///
/// ```
/// use tamis_lab::baseline::{Baseline, Counting};
///
/// let mut filter = Counting::for_rate(1000, 0.01);
/// filter.insert(1)?;
/// filter.insert(1)?;
/// filter.remove(1)?;
/// assert!(filter.contains(1));
/// filter.remove(1)?;
/// assert!(!filter.contains(1));
/// # Ok::<(), tamis_lab::baseline::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Counting {
    counters: Bits,
    probes: u64,
}

impl Counting {
    /// A filter of `counters` counters, of which each key has `probes`.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, Counting};
    /// assert_eq!(Counting::new(1000, 7).bits(), 4000);
    /// ```
    pub fn new(counters: u64, probes: u32) -> Self {
        let counters = Bits::new(counters.max(1) * u64::from(WIDTH));
        Self { counters, probes: u64::from(probes) }
    }

    /// The smallest filter that has the false-positive rate `rate` with
    /// `keys` keys, up to rounding.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, Counting};
    /// let filter = Counting::for_rate(1000, 0.01);
    /// assert!((filter.bits() as f64 / 1000.0 - 38.3).abs() < 0.1);
    /// ```
    pub fn for_rate(keys: u64, rate: f64) -> Self {
        let counters = |probes: u32| {
            let set = rate.powf(f64::from(probes).recip());
            let throws = keys as f64 * f64::from(probes);
            (throws / -(-set).ln_1p()).ceil() as u64
        };
        let sizes = (1..=MAX_PROBES).map(|probes| (counters(probes), probes));
        let (counters, probes) = sizes.min().unwrap_or((1, 1));
        Self::new(counters, probes)
    }

    /// Bits per key at the best number of probes, which need not be whole.
    ///
    /// ```
    /// use tamis_lab::baseline::Counting;
    /// assert!((Counting::bits_per_key(0.001) - 57.5).abs() < 0.05);
    /// ```
    pub fn bits_per_key(rate: f64) -> f64 {
        f64::from(WIDTH) * -rate.ln() / std::f64::consts::LN_2.powi(2)
    }

    /// False-positive rate after `keys` different keys.
    ///
    /// ```
    /// use tamis_lab::baseline::Counting;
    /// assert_eq!(Counting::new(1000, 7).expected_rate(0), 0.0);
    /// ```
    pub fn expected_rate(&self, keys: u64) -> f64 {
        let throws = keys as f64 * self.probes as f64;
        let empty = throws * (-1.0 / self.counters() as f64).ln_1p();
        (-empty.exp_m1()).powi(self.probes as i32)
    }

    /// Number of counters with each value.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, Counting};
    /// let mut filter = Counting::new(1000, 1);
    /// filter.insert(1)?;
    /// assert_eq!(filter.histogram()[..2], [999, 1]);
    /// # Ok::<(), tamis_lab::baseline::Error>(())
    /// ```
    pub fn histogram(&self) -> [u64; 1 << WIDTH] {
        let mut counts = [0; 1 << WIDTH];
        for at in (0..self.bits()).step_by(WIDTH as usize) {
            counts[self.counters.get(at, WIDTH) as usize] += 1;
        }
        counts
    }

    fn counters(&self) -> u64 {
        self.counters.len() / u64::from(WIDTH)
    }

    /// Bit offsets of the key's counters, which need not differ.
    fn places(&self, key: u64) -> impl Iterator<Item = u64> + use<> {
        let count = self.counters();
        (0..self.probes)
            .map(move |i| reduce(mix(key, i), count) * u64::from(WIDTH))
    }

    fn change(&mut self, key: u64, changed: impl Fn(u64) -> u64) {
        for at in self.places(key) {
            let value = self.counters.get(at, WIDTH);
            if value != STUCK {
                self.counters.set(at, WIDTH, changed(value));
            }
        }
    }
}

impl Baseline for Counting {
    fn name(&self) -> &'static str {
        "counting Bloom filter"
    }

    fn insert(&mut self, key: u64) -> Result<(), Error> {
        self.change(key, |value| value + 1);
        Ok(())
    }

    fn look_up(&self, key: u64, lines: &mut Lines) -> bool {
        self.places(key).all(|at| self.counters.read(at, WIDTH, lines) > 0)
    }

    fn remove(&mut self, key: u64) -> Result<(), Error> {
        if !self.contains(key) {
            return Err(Error::Absent);
        }
        // A false positive can have one probe twice on a counter of 1.
        self.change(key, |value| value.saturating_sub(1));
        Ok(())
    }

    fn bits(&self) -> u64 {
        self.counters.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Keys, Rate, fill};

    #[test]
    fn counters_have_the_poisson_distribution() {
        let keys = 100_000;
        let mut filter = Counting::for_rate(keys, 0.01);
        fill(&mut filter, Keys::new(2).members(keys)).unwrap();
        let counters = filter.counters();
        let mean = (keys * filter.probes) as f64 / counters as f64;
        let mut expected = (-mean).exp();
        for (value, hits) in filter.histogram().into_iter().enumerate() {
            let share = Rate { hits, trials: counters };
            assert!(share.agrees(expected), "{value}: {share:?} {expected}");
            expected *= mean / (value + 1) as f64;
        }
    }

    #[test]
    fn full_counters_stick() {
        let mut filter = Counting::new(8, 1);
        for _ in 0..20 {
            filter.insert(5).unwrap();
        }
        for _ in 0..20 {
            filter.remove(5).unwrap();
        }
        assert!(filter.contains(5));
        assert_eq!(filter.histogram()[15], 1);
        // One below the limit is still counted.
        for _ in 0..14 {
            filter.insert(6).unwrap();
        }
        for _ in 0..14 {
            filter.remove(6).unwrap();
        }
        assert_eq!(filter.remove(6), Err(Error::Absent));
    }
}
