//! The distribution of block loads.

use alloc::vec::Vec;

/// The share of blocks that hold 0, 1, 2, ... keys.
///
/// ```
/// use tamis_theory::bound::Bound;
///
/// let loads = Bound::new(1.2, 8.0, 0.0)?.distribution().clone();
/// assert_eq!(loads.as_slice().len(), 10);
/// assert!((loads.mean() - 8.0).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    share: Vec<f64>,
}

impl Distribution {
    pub(crate) fn new(share: Vec<f64>) -> Self {
        Distribution { share }
    }

    /// The shares, by load.
    ///
    /// ```
    /// use tamis_theory::single;
    ///
    /// let loads = single::fractions(2.5, 2, 0.5)?;
    /// assert!((loads.as_slice()[3] - 0.305448).abs() < 1e-6);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn as_slice(&self) -> &[f64] {
        &self.share
    }

    /// The average cost of a block when a block of load i costs `phi(i)`:
    /// equation (2) of the paper, where the dummy index is printed as j.
    ///
    /// ```
    /// use tamis_theory::bound::Bound;
    ///
    /// let bound = Bound::new(1.0, 8.0, 0.0)?;
    /// let empty = bound.distribution().cost(|i| f64::from(i == 0));
    /// assert!((empty - (-8.0f64).exp()).abs() < 1e-15);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn cost(&self, mut phi: impl FnMut(usize) -> f64) -> f64 {
        let costs = self.share.iter().enumerate();
        costs.map(|(i, share)| share * phi(i)).sum()
    }

    /// The average load.
    ///
    /// ```
    /// let loads = tamis_theory::single::fractions(9.6, 8, 0.5)?;
    /// assert!(loads.mean() > 7.0 && loads.mean() < 9.0);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn mean(&self) -> f64 {
        self.cost(|i| i as f64)
    }

    /// The variance of the load, the cost of equation (C.1).
    ///
    /// ```
    /// let loads = tamis_theory::single::fractions(8.0, 500, 1.0)?;
    /// assert!((loads.variance() - 8.0).abs() < 1e-9);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        self.cost(|i| (i as f64 - mean) * (i as f64 - mean))
    }

    /// The share of blocks with at least `load` keys.
    ///
    /// ```
    /// let loads = tamis_theory::single::fractions(8.0, 8, 0.0)?;
    /// assert!((loads.at_least(0) - 1.0).abs() < 1e-12);
    /// assert_eq!(loads.at_least(9), 0.0);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn at_least(&self, load: usize) -> f64 {
        self.share.iter().skip(load).rev().sum()
    }
}
