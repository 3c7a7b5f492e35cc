//! Values of repeated runs: mean, interval and quantiles.

use super::DEVIATIONS;

/// One value per run.
///
/// ```
/// use tamis_lab::simulation::Sample;
///
/// let sample = Sample::new(vec![3.0, 1.0, 2.0]);
/// assert_eq!((sample.mean(), sample.quantile(0.5)), (2.0, 2.0));
/// assert_eq!((sample.quantile(0.0), sample.quantile(1.0)), (1.0, 3.0));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Ascending.
    values: Vec<f64>,
}

impl Sample {
    /// A sample of `values` in any order.
    ///
    /// ```
    /// use tamis_lab::simulation::Sample;
    /// let [a, b] = [vec![1.0, 2.0], vec![2.0, 1.0]].map(Sample::new);
    /// assert_eq!(a, b);
    /// ```
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self { values }
    }

    /// The mean; NaN without values.
    ///
    /// ```
    /// use tamis_lab::simulation::Sample;
    /// assert_eq!(Sample::new(vec![1.0, 2.0]).mean(), 1.5);
    /// ```
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// The standard deviation of one value, estimated from all; NaN for
    /// fewer than two.
    ///
    /// ```
    /// use tamis_lab::simulation::Sample;
    /// assert_eq!(Sample::new(vec![1.0, 2.0, 3.0]).deviation(), 1.0);
    /// ```
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares = self.values.iter().map(|x| (x - mean) * (x - mean));
        (squares.sum::<f64>() / (self.values.len() as f64 - 1.0)).sqrt()
    }

    /// The value below which the share `q` of the runs lies, interpolated
    /// between neighbours; NaN without values.
    ///
    /// ```
    /// use tamis_lab::simulation::Sample;
    /// assert_eq!(Sample::new(vec![1.0, 2.0]).quantile(0.25), 1.25);
    /// ```
    pub fn quantile(&self, q: f64) -> f64 {
        let Some(last) = self.values.len().checked_sub(1) else {
            return f64::NAN;
        };
        let place = q.clamp(0.0, 1.0) * last as f64;
        let below = place.floor() as usize;
        let [low, high] =
            [below, (below + 1).min(last)].map(|i| self.values[i]);
        low + (high - low) * place.fract()
    }

    /// Interval of 99.9 % for the mean of all possible runs, by Student's
    /// distribution, of 16 runs or more; NaN for fewer than two.
    ///
    /// ```
    /// use tamis_lab::simulation::Sample;
    ///
    /// let sample = Sample::new((0..32).map(f64::from).collect());
    /// let [low, high] = sample.interval();
    /// assert!((low - 9.475).abs() < 0.001 && (high - 21.525).abs() < 0.001);
    /// ```
    pub fn interval(&self) -> [f64; 2] {
        let count = self.values.len() as f64;
        let half = student(count - 1.0) * self.deviation() / count.sqrt();
        [self.mean() - half, self.mean() + half]
    }

    /// Whether `expected` lies in the interval of the mean.
    ///
    /// ```
    /// use tamis_lab::simulation::Sample;
    /// let sample = Sample::new((0..32).map(f64::from).collect());
    /// assert!(sample.agrees(15.0) && !sample.agrees(22.0));
    /// ```
    pub fn agrees(&self, expected: f64) -> bool {
        let [low, high] = self.interval();
        (low..=high).contains(&expected)
    }
}

/// Quantile of Student's distribution for a two-sided interval of 99.9 %, by
/// its series in 1/`freedom` (Abramowitz and Stegun 26.7.5): within 0.1 %
/// from 15 degrees of freedom.
fn student(freedom: f64) -> f64 {
    let z = DEVIATIONS;
    let square = z * z;
    let terms = [
        z,
        z * (square + 1.0) / 4.0,
        z * ((5.0 * square + 16.0) * square + 3.0) / 96.0,
        z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| sum / freedom + term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Keys, runs};

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        let table = [(15.0, 4.073), (31.0, 3.633), (100.0, 3.390)];
        for (freedom, expected) in table {
            assert!((student(freedom) / expected - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn the_mean_of_uniform_numbers_is_one_half() {
        let uniform = |seed| {
            let numbers = Keys::new(seed).members(1000);
            numbers.map(|x| x as f64 / 2f64.powi(64)).sum::<f64>() / 1000.0
        };
        let sample = Sample::new(runs(40, uniform));
        assert!(sample.agrees(0.5));
        // The deviation of one number is 1/sqrt(12).
        let deviation = sample.deviation() * 12_000f64.sqrt();
        assert!((0.6..1.5).contains(&deviation), "{deviation}");
    }
}
