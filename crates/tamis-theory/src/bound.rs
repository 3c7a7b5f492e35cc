//! Theorem 1: the lower bound on the imbalance with `access_budget` reads
//! per key.
//!
//! Let each of the `access_budget` reads per key add a key of its own, then
//! remove the surplus from the fullest blocks. No online scheme balances
//! better, for any convex cost. The schemes of [`crate::single`],
//! [`crate::sequential`] and [`crate::multilevel`] reach the bound.
//!
//! With N Poisson of mean a r and R = (a-1+gamma) r keys per block to
//! remove, the threshold k0 is the largest integer with E(N-k0)^+ > R, which
//! is (3) in terms of the excess, and
//!
//! * P(i) = P(N = i) below k0,
//! * P(k0+1) = E(N-k0)^+ - R,
//! * P(k0) = P(N >= k0) - P(k0+1).
//!
//! This is (4) without differences of large numbers. Limits not in the
//! paper: for a = 1-gamma no key is removed, k0 is infinite and P is Poisson;
//! k0 = 0 is legal, with e0 = 0; (3) is strict, so P(k0+1) > 0 and the
//! admission lies in (0, 1], never at 0. A scheme (h, p = 1) equals
//! (h+1, p = 0).
//!
//! ```
//! use tamis_theory::bound::Bound;
//!
//! // Half a read more per key removes most of the variance.
//! let [one, more] = [1.0, 1.5].map(|a| Bound::new(a, 8.0, 0.0));
//! assert_eq!(one?.distribution().variance().round(), 8.0);
//! assert!(more?.distribution().variance() < 0.6);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use crate::poisson::Poisson;
use crate::single::solve_admission;
use crate::{Distribution, Error, Result, check};

/// Rounding error of `access_budget - 1 + overflow_fraction`.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// The best balance any scheme reaches with `access_budget` reads per key.
///
/// ```
/// use tamis_theory::bound::Bound;
///
/// let bound = Bound::new(1.2, 8.0, 0.005)?;
/// assert_eq!(bound.threshold(), Some(8));
/// assert!((bound.admission() - 0.533478).abs() < 1e-6);
/// assert!((bound.distribution().mean() - 8.0 * 0.995).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    access_budget: f64,
    load: f64,
    overflow_fraction: f64,
    threshold: Option<u32>,
    admission: f64,
    e0: f64,
    p0: f64,
    distribution: Distribution,
}

impl Bound {
    /// Computes the bound for `load` keys per block, `access_budget` reads
    /// per key and a share `overflow_fraction` of the keys in no block.
    ///
    /// Fails with [`Error::Infeasible`] unless `access_budget` is at least
    /// `1 - overflow_fraction`.
    ///
    /// ```
    /// use tamis_theory::{Error, bound::Bound};
    ///
    /// let error = Bound::new(0.9, 8.0, 0.05).unwrap_err();
    /// assert!(matches!(error, Error::Infeasible { .. }));
    /// ```
    pub fn new(
        access_budget: f64,
        load: f64,
        overflow_fraction: f64,
    ) -> Result<Self> {
        let max = f64::from(check::MAX_CHOICES);
        check::in_range("access_budget", access_budget, 1e-9, max)?;
        let load = check::load(load)?;
        check::overflow_fraction(overflow_fraction)?;
        let surplus = access_budget - 1.0 + overflow_fraction;
        if surplus < -ROUNDING {
            return Err(Error::Infeasible {
                access_budget,
                overflow_fraction,
            });
        }
        let arrivals = Poisson::new(access_budget * load);
        let given = Bound {
            access_budget,
            load,
            overflow_fraction,
            threshold: None,
            admission: 1.0,
            e0: arrivals.mean(),
            p0: 1.0,
            distribution: Distribution::new(arrivals.chances().to_vec()),
        };
        if surplus <= ROUNDING {
            return Ok(given);
        }
        Ok(given.cut(&arrivals, surplus * load))
    }

    fn cut(mut self, arrivals: &Poisson, removed: f64) -> Self {
        let k0 = arrivals.cut(removed);
        let above = (arrivals.excess(k0) - removed).max(0.0);
        let held = (removed - arrivals.excess(k0 + 1)).max(0.0);
        self.threshold = Some(k0 as u32);
        self.admission = solve_admission(arrivals, k0, held, above);
        self.e0 = arrivals.mean() * arrivals.below(k0);
        self.p0 = arrivals.below(k0 + 1);
        let mut share = alloc::vec![0.0; k0 + 2];
        let chances = arrivals.chances();
        for (share, chance) in share.iter_mut().zip(chances).take(k0) {
            *share = *chance;
        }
        share[k0] = arrivals.chance(k0) + held;
        share[k0 + 1] = above;
        self.distribution = Distribution::new(share);
        self
    }

    /// Reads per key this bound was computed for.
    ///
    /// ```
    /// let bound = tamis_theory::bound::Bound::new(1.2, 8.0, 0.0)?;
    /// assert_eq!(bound.access_budget(), 1.2);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn access_budget(&self) -> f64 {
        self.access_budget
    }

    /// Keys per block this bound was computed for, those in no block
    /// included.
    ///
    /// ```
    /// let bound = tamis_theory::bound::Bound::new(1.2, 8.0, 0.0)?;
    /// assert_eq!(bound.load(), 8.0);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn load(&self) -> f64 {
        self.load
    }

    /// Share of the keys in no block this bound was computed for.
    ///
    /// ```
    /// let bound = tamis_theory::bound::Bound::new(1.0, 8.0, 0.01)?;
    /// assert_eq!(bound.overflow_fraction(), 0.01);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn overflow_fraction(&self) -> f64 {
        self.overflow_fraction
    }

    /// k0: a block below it accepts every key. `None` at `access_budget` =
    /// 1 - `overflow_fraction`, where no block refuses a key.
    ///
    /// ```
    /// use tamis_theory::bound::Bound;
    ///
    /// assert_eq!(Bound::new(1.0, 8.0, 0.0)?.threshold(), None);
    /// assert_eq!(Bound::new(1.5, 0.3, 0.1)?.threshold(), Some(0));
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn threshold(&self) -> Option<u32> {
        self.threshold
    }

    /// p: chance that a block exactly at the threshold accepts one more key,
    /// such that the schemes end at this distribution. 1 without a
    /// threshold.
    ///
    /// The common fixed point of Theorems 3 to 5.
    ///
    /// ```
    /// let bound = tamis_theory::bound::Bound::new(1.1, 8.0, 0.0)?;
    /// assert!((bound.admission() - 0.457814).abs() < 1e-6);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn admission(&self) -> f64 {
        self.admission
    }

    /// e0 of (4), a r P(N <= k0-1): the load of the blocks at or below the
    /// threshold before the removal.
    ///
    /// ```
    /// let bound = tamis_theory::bound::Bound::new(1.1, 8.0, 0.0)?;
    /// assert!((bound.e0() - 4.24407).abs() < 1e-5);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn e0(&self) -> f64 {
        self.e0
    }

    /// p0 of (4), P(N <= k0): the share of blocks at or below the threshold
    /// before the removal.
    ///
    /// ```
    /// let bound = tamis_theory::bound::Bound::new(1.1, 8.0, 0.0)?;
    /// assert!((bound.p0() - 0.61374).abs() < 1e-6);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn p0(&self) -> f64 {
        self.p0
    }

    /// P_LB of (4). Without a threshold it is Poisson, cut off where the
    /// chances fall below 1e-75.
    ///
    /// ```
    /// let bound = tamis_theory::bound::Bound::new(1.2, 8.0, 0.0)?;
    /// let shares = bound.distribution().as_slice();
    /// assert!((shares[9] - 0.555935).abs() < 1e-6);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// Share of full blocks, past which a lookup continues: those at the
    /// threshold or above.
    ///
    /// With an admission of exactly 1, blocks at the threshold still accept
    /// every key and only those above it count.
    ///
    /// ```
    /// let bound = tamis_theory::bound::Bound::new(1.2, 8.0, 0.005)?;
    /// assert!((bound.full() - 0.741571).abs() < 1e-6);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn full(&self) -> f64 {
        self.threshold.map_or(0.0, |threshold| {
            let first = threshold as usize + usize::from(self.takes_more());
            self.distribution.at_least(first)
        })
    }

    /// Chance that a block refuses a key, u = (1-p) P(k0) + P(k0+1). A
    /// lookup continues with this chance if the admission coin is a hash of
    /// the key.
    ///
    /// ```
    /// let bound = tamis_theory::bound::Bound::new(1.2, 8.0, 0.005)?;
    /// assert!(bound.refuses() < bound.full());
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn refuses(&self) -> f64 {
        self.threshold.map_or(0.0, |threshold| {
            let share = self.distribution.as_slice();
            let h = threshold as usize;
            (1.0 - self.admission) * share[h] + share[h + 1]
        })
    }

    fn takes_more(&self) -> bool {
        self.admission >= 1.0
    }
}
