//! Measured shares and their intervals.

use super::DEVIATIONS;

/// A share measured by counting.
///
/// ```
/// use tamis_lab::simulation::Rate;
///
/// let rate = Rate { hits: 30, trials: 1000 };
/// assert_eq!(rate.value(), 0.03);
/// assert!(rate.agrees(0.02) && !rate.agrees(0.01));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rate {
    /// Trials that were counted.
    pub hits: u64,
    /// All trials.
    pub trials: u64,
}

impl Rate {
    /// The share; zero without trials.
    ///
    /// ```
    /// use tamis_lab::simulation::Rate;
    /// assert_eq!(Rate::default().value(), 0.0);
    /// ```
    pub fn value(self) -> f64 {
        self.hits as f64 / self.trials.max(1) as f64
    }

    /// Wilson's interval of 99.9 %: the probabilities whose binomial
    /// distribution has its mean within 3.29 deviations of the hits. It is
    /// approximate: of fewer than ten expected hits, it excludes too many.
    ///
    /// ```
    /// use tamis_lab::simulation::Rate;
    ///
    /// let [low, high] = Rate { hits: 100, trials: 10_000 }.interval();
    /// assert!((low - 0.00722).abs() < 1e-5 && (high - 0.01384).abs() < 1e-5);
    /// ```
    pub fn interval(self) -> [f64; 2] {
        let n = self.trials.max(1) as f64;
        let share = self.value();
        let square = DEVIATIONS * DEVIATIONS / n;
        let middle = (share + square / 2.0) / (1.0 + square);
        let inner = share * (1.0 - share) / n + square / (4.0 * n);
        let half = DEVIATIONS * inner.sqrt() / (1.0 + square);
        // Rounding must not exclude an end that is exact.
        let low = if self.hits == 0 { 0.0 } else { middle - half };
        let all = self.hits == self.trials;
        [low, if all { 1.0 } else { middle + half }]
    }

    /// Whether `probability` lies in the interval.
    ///
    /// ```
    /// use tamis_lab::simulation::Rate;
    /// assert!(Rate { hits: 0, trials: 100 }.agrees(0.01));
    /// ```
    pub fn agrees(self, probability: f64) -> bool {
        let [low, high] = self.interval();
        (low..=high).contains(&probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_ends_at_the_stated_number_of_deviations() {
        let rate = Rate { hits: 1234, trials: 100_000 };
        for p in rate.interval() {
            let variance = 100_000.0 * p * (1.0 - p);
            let deviations = (1234.0 - 100_000.0 * p).abs() / variance.sqrt();
            assert!((deviations - DEVIATIONS).abs() < 1e-9, "{deviations}");
        }
    }

    #[test]
    fn no_hits_and_only_hits_have_one_sided_intervals() {
        let none = Rate { hits: 0, trials: 1000 }.interval();
        let all = Rate { hits: 1000, trials: 1000 }.interval();
        assert_eq!((none[0], all[1]), (0.0, 1.0));
        assert!(none[1] < 0.011 && all[0] > 0.989);
    }
}
