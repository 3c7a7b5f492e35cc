//! The variable-increment counting Bloom filter (VI-CBF) of Rottenstreich,
//! Kanizo and Keslassy (INFOCOM 2012), with increments from L to 2L-1.
//!
//! Each probe of a key has a counter and an increment, which is added to
//! the counter. A counter c holds a key's increment v only if c = v or
//! c - v >= L, because every sum of other increments is at least L. With j
//! other increments in the counter, of which the load is Poisson with mean
//! nk/m, a stranger passes with probability
//!
//! | j | passes |
//! |---|---|
//! | 0 | 0 |
//! | 1 | 1/L |
//! | 2 | 1-(L^2-1)/(6L^2) |
//! | 3 or more | 1 |
//!
//! and the false-positive rate is the k-th power. With L = 8 and 7-bit
//! counters, the memory is 25.28, 37.92 and 50.56 bits per key at 1, 0.1 and
//! 0.01 %; with L = 4 and 6-bit counters, 24.66, 36.98 and 49.31.
//!
//! Inferred, as only the abstract and descriptions were at hand: the
//! probabilities above, counted over all increments, instead of the paper's
//! own form of them; and a counter that would exceed its largest value
//! sticks there and admits every key, as in a counting Bloom filter.

use super::bits::{Bits, mask};
use super::{Baseline, Error, Lines};
use crate::simulation::{mix, reduce};

/// Largest number of probes that is considered.
const MAX_PROBES: u32 = 40;

/// A set of increments and the counters that hold their sums.
///
/// ```
/// use tamis_lab::baseline::Increments;
/// assert!(Increments::EIGHT.bits_per_key(0.01) < 25.3);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Increments {
    /// Smallest increment, L; the largest is 2L-1.
    pub smallest: u32,
    /// Bits of a counter, less than 64.
    pub width: u32,
}

impl Increments {
    /// 4 to 7, in counters of 6 bits.
    pub const FOUR: Self = Self { smallest: 4, width: 6 };
    /// 8 to 15, in counters of 7 bits.
    pub const EIGHT: Self = Self { smallest: 8, width: 7 };

    /// Probability that a counter admits the increment of an absent key, if
    /// the counters hold `load` increments on average.
    ///
    /// ```
    /// use tamis_lab::baseline::Increments;
    /// // One of eight increments is equal to the only one in the counter.
    /// let one = Increments::EIGHT.admission(0.001) / 0.001;
    /// assert!((one - 1.0 / 8.0).abs() < 0.001);
    /// ```
    pub fn admission(self, load: f64) -> f64 {
        let l = f64::from(self.smallest);
        let [none, one, two] =
            [1.0, load, load * load / 2.0].map(|term| term * (-load).exp());
        let more = (1.0 - none - one - two).max(0.0);
        one / l + two * (1.0 - (l * l - 1.0) / (6.0 * l * l)) + more
    }

    /// Bits per key at the best number of probes, which need not be whole.
    ///
    /// ```
    /// use tamis_lab::baseline::Increments;
    /// assert!((Increments::EIGHT.bits_per_key(0.0001) - 50.55).abs() < 0.01);
    /// ```
    pub fn bits_per_key(self, rate: f64) -> f64 {
        let loads = (1..4000).map(|i| f64::from(i) / 1000.0);
        let cost = |load: f64| rate.ln() / self.admission(load).ln() / load;
        f64::from(self.width) * loads.map(cost).fold(f64::INFINITY, f64::min)
    }

    /// Largest load at which `probes` counters admit an absent key with
    /// probability `rate`.
    fn load(self, rate: f64, probes: u32) -> f64 {
        let each = rate.powf(f64::from(probes).recip());
        let (mut low, mut high) = (0.0, 100.0);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            match self.admission(middle) <= each {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }
}

/// A variable-increment counting Bloom filter.
///
/// ```
/// use tamis_lab::baseline::{Baseline, Increments, VariableIncrement};
///
/// let mut filter = VariableIncrement::for_rate(1000, 0.01, Increments::EIGHT);
/// filter.insert(1)?;
/// assert!(filter.contains(1));
/// filter.remove(1)?;
/// assert!(!filter.contains(1));
/// # Ok::<(), tamis_lab::baseline::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct VariableIncrement {
    increments: Increments,
    counters: Bits,
    probes: u64,
}

/// Bit offset of a counter and the key's increment of it.
type Probe = (u64, u64);

impl VariableIncrement {
    /// A filter of `counters` counters, of which each key has `probes`.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, Increments, VariableIncrement};
    /// let filter = VariableIncrement::new(1000, 4, Increments::FOUR);
    /// assert_eq!(filter.bits(), 6000);
    /// ```
    pub fn new(counters: u64, probes: u32, increments: Increments) -> Self {
        let bits = counters.max(1) * u64::from(increments.width);
        let counters = Bits::new(bits);
        Self { increments, counters, probes: u64::from(probes) }
    }

    /// The smallest filter that has the false-positive rate `rate` with
    /// `keys` keys, up to rounding.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, Increments, VariableIncrement};
    /// let filter =
    ///     VariableIncrement::for_rate(1000, 0.01, Increments::EIGHT);
    /// assert!((filter.bits() as f64 / 1000.0 - 25.28).abs() < 0.02);
    /// ```
    pub fn for_rate(keys: u64, rate: f64, increments: Increments) -> Self {
        let counters = |probes: u32| {
            let throws = keys as f64 * f64::from(probes);
            (throws / increments.load(rate, probes)).ceil() as u64
        };
        let sizes = (1..=MAX_PROBES).map(|probes| (counters(probes), probes));
        let (counters, probes) = sizes.min().unwrap_or((1, 1));
        Self::new(counters, probes, increments)
    }

    /// False-positive rate after `keys` different keys.
    ///
    /// ```
    /// use tamis_lab::baseline::{Increments, VariableIncrement};
    /// let filter =
    ///     VariableIncrement::for_rate(1000, 0.01, Increments::EIGHT);
    /// assert!((filter.expected_rate(1000) - 0.01).abs() < 1e-4);
    /// ```
    pub fn expected_rate(&self, keys: u64) -> f64 {
        let load = keys as f64 * self.probes as f64 / self.counters() as f64;
        self.increments.admission(load).powi(self.probes as i32)
    }

    fn counters(&self) -> u64 {
        self.counters.len() / u64::from(self.increments.width)
    }

    /// A counter with this value no longer changes.
    fn stuck(&self) -> u64 {
        mask(self.increments.width)
    }

    fn probes(&self, key: u64) -> impl Iterator<Item = Probe> + use<> {
        let Increments { smallest, width } = self.increments;
        let [count, smallest, width] =
            [self.counters(), smallest.into(), width.into()];
        (0..self.probes).map(move |i| {
            let counter = reduce(mix(key, 2 * i), count);
            let offset = reduce(mix(key, 2 * i + 1), smallest);
            (counter * width, smallest + offset)
        })
    }

    fn change(&mut self, key: u64, changed: impl Fn(u64, u64) -> u64) {
        let (width, stuck) = (self.increments.width, self.stuck());
        for (at, increment) in self.probes(key) {
            let value = self.counters.get(at, width);
            if value != stuck {
                let value = changed(value, increment).min(stuck);
                self.counters.set(at, width, value);
            }
        }
    }
}

impl Baseline for VariableIncrement {
    fn name(&self) -> &'static str {
        match self.increments {
            Increments::FOUR => "VI-CBF, L = 4",
            Increments::EIGHT => "VI-CBF, L = 8",
            _ => "VI-CBF",
        }
    }

    fn insert(&mut self, key: u64) -> Result<(), Error> {
        self.change(key, |value, increment| value + increment);
        Ok(())
    }

    fn look_up(&self, key: u64, lines: &mut Lines) -> bool {
        let Increments { smallest, width } = self.increments;
        self.probes(key).all(|(at, increment)| {
            let value = self.counters.read(at, width, lines);
            value == increment
                || value == self.stuck()
                || value >= increment + u64::from(smallest)
        })
    }

    fn remove(&mut self, key: u64) -> Result<(), Error> {
        if !self.contains(key) {
            return Err(Error::Absent);
        }
        // A false positive can have two probes on one small counter.
        self.change(key, u64::saturating_sub);
        Ok(())
    }

    fn bits(&self) -> u64 {
        self.counters.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes of all sums of `others` increments against all increments.
    fn counted(l: u64, others: u32) -> f64 {
        let all = (l..2 * l).collect::<Vec<_>>();
        let mut sums = vec![0];
        for _ in 0..others {
            let add = |sum| all.iter().map(move |v| sum + v);
            sums = sums.into_iter().flat_map(add).collect();
        }
        let pairs = sums.iter().flat_map(|c| all.iter().map(move |v| (c, v)));
        let passes = pairs.filter(|(c, v)| c == v || **c >= *v + l).count();
        passes as f64 / (sums.len() * all.len()) as f64
    }

    #[test]
    fn the_probabilities_are_those_of_all_sums() {
        for l in [4u64, 8, 16] {
            let square = (l * l) as f64;
            let two = 1.0 - (square - 1.0) / (6.0 * square);
            let expected = [0.0, 1.0 / l as f64, two, 1.0];
            for (others, expected) in expected.into_iter().enumerate() {
                let found = counted(l, others as u32);
                assert!((found - expected).abs() < 1e-12, "{l} {others}");
            }
        }
    }

    #[test]
    fn no_sum_of_others_hides_a_key() {
        // c - v is zero or a sum of increments, at least L.
        for l in [4u64, 8] {
            for v in l..2 * l {
                for others in 0..200 {
                    let possible = others == 0 || others >= l;
                    let c = v + others;
                    assert!(!possible || c == v || c >= v + l);
                }
            }
        }
    }

    #[test]
    fn full_counters_stick_and_admit() {
        let mut filter = VariableIncrement::new(1, 1, Increments::FOUR);
        for key in 0..40 {
            filter.insert(key).unwrap();
        }
        assert_eq!(filter.counters.get(0, 6), 63);
        for key in 0..40 {
            filter.remove(key).unwrap();
        }
        assert!(filter.contains(1000));
    }
}
