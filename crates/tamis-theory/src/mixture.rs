//! Theorem 2: the lower bound of [`crate::bound`] for hash functions with
//! different distributions over the blocks.
//!
//! A share k_p of all block reads comes from hash functions with distribution
//! f_p. Blocks with equal f_p(i) for every p form a *class*. As in Theorem 1
//! every read adds a key of its own, and the surplus is removed from the
//! fullest blocks; a block i then gets Poisson arrivals of mean
//!
//! a n w_i, with w_i = sum over p of k_p f_p(i).
//!
//! If w_i = 1/m for all blocks the bound is that of Theorem 1: this is
//! Theorem 2. For any other mixture, which the paper leaves out, the arrivals
//! are a mixture of Poisson distributions, the greedy removal has one
//! threshold for all blocks, and the bound is higher: for the same reads and
//! overflow no choice of distributions balances better than a uniform mixture.
//!
//! ```
//! use tamis_theory::bound::Bound;
//! use tamis_theory::mixture::{self, Hashes};
//!
//! // Two levels; the second gets a sixth of the reads and of the blocks.
//! let classes = [5.0 / 6.0, 1.0 / 6.0];
//! let hashes = [
//!     Hashes { reads: 5.0 / 6.0, classes: vec![1.0, 0.0] },
//!     Hashes { reads: 1.0 / 6.0, classes: vec![0.0, 1.0] },
//! ];
//! let mixed = mixture::bound(1.2, 8.0, 0.03, &classes, &hashes)?;
//! assert!(mixed.is_uniform());
//! let bound = Bound::new(1.2, 8.0, 0.03)?;
//! assert_eq!(mixed.threshold, bound.threshold());
//! let difference = mixed.distribution.variance()
//!     - bound.distribution().variance();
//! assert!(difference.abs() < 1e-10);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec::Vec;

use crate::poisson::{Poisson, sums_above};
use crate::{Distribution, Error, Result, check};

/// Hash functions with the same distribution.
///
/// ```
/// use tamis_theory::mixture::Hashes;
/// // Nine of ten proposals go to the first class.
/// let hashes = Hashes { reads: 1.0, classes: vec![0.9, 0.1] };
/// assert_eq!(hashes.clone(), hashes);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Hashes {
    /// The share of all block reads that they make (k_p).
    pub reads: f64,
    /// The chance that they propose a block of each class, uniform within the
    /// class.
    pub classes: Vec<f64>,
}

/// The best balance for a mixture of hash distributions.
///
/// ```
/// use tamis_theory::mixture::{self, Hashes};
///
/// let skewed = Hashes { reads: 1.0, classes: vec![0.75, 0.25] };
/// let mixed = mixture::bound(1.0, 8.0, 0.1, &[0.5, 0.5], &[skewed])?;
/// assert_eq!(mixed.rates, [1.5, 0.5]);
/// assert!(!mixed.is_uniform());
/// assert!((mixed.distribution.mean() - 7.2).abs() < 1e-9);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    /// Reads of a block of each class, relative to the average block: m w_i.
    pub rates: Vec<f64>,
    /// k0: the greedy removal leaves no block with more than one key above it;
    /// `None` if nothing is removed.
    pub threshold: Option<u32>,
    /// The loads of all blocks.
    pub distribution: Distribution,
}

impl Mixture {
    /// Whether every block gets the same share of the reads, the condition of
    /// Theorem 2.
    ///
    /// ```
    /// use tamis_theory::mixture::{self, Hashes};
    /// let even = Hashes { reads: 1.0, classes: vec![0.5, 0.5] };
    /// let mixed = mixture::bound(1.1, 8.0, 0.0, &[0.5, 0.5], &[even])?;
    /// assert!(mixed.is_uniform());
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn is_uniform(&self) -> bool {
        self.rates.iter().all(|rate| (rate - 1.0).abs() < 1e-9)
    }
}

/// Computes the bound for `load` keys per block, `access_budget` reads per
/// key, a share `overflow_fraction` of the keys in no block, and blocks in
/// classes of the shares `classes`.
///
/// # Errors
///
/// Those of [`Bound::new`](crate::bound::Bound::new), and
/// [`Error::LevelShares`] unless `classes`, the reads of the hashes, and the
/// chances of each of them sum to 1 (only the last may be 0).
///
/// ```
/// use tamis_theory::mixture::{self, Hashes};
///
/// // Shares of reads and of blocks differ: the balance is worse.
/// let bound = |first: f64| {
///     let hashes = [(first, [1.0, 0.0]), (1.0 - first, [0.0, 1.0])]
///         .map(|(reads, to)| Hashes { reads, classes: to.to_vec() });
///     mixture::bound(1.2, 8.0, 0.02, &[0.8, 0.2], &hashes)
/// };
/// let variance = |first| bound(first).map(|b| b.distribution.variance());
/// assert!(variance(0.8)? < variance(0.85)?);
/// assert!(variance(0.85)? < variance(0.9)?);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn bound(
    access_budget: f64,
    load: f64,
    overflow_fraction: f64,
    classes: &[f64],
    hashes: &[Hashes],
) -> Result<Mixture> {
    let max = f64::from(check::MAX_CHOICES);
    check::in_range("access_budget", access_budget, 1e-9, max)?;
    let load = check::load(load)?;
    check::overflow_fraction(overflow_fraction)?;
    check::level_shares(classes)?;
    let reads: Vec<f64> = hashes.iter().map(|hash| hash.reads).collect();
    check::level_shares(&reads)?;
    let mut rates = alloc::vec![0.0; classes.len()];
    for hash in hashes {
        let sum: f64 = hash.classes.iter().sum();
        let chances = hash.classes.iter().all(|chance| *chance >= 0.0);
        let levels = hash.classes.len();
        if !chances || levels != classes.len() || (sum - 1.0).abs() > 1e-9 {
            return Err(Error::LevelShares { levels, sum });
        }
        for (rate, (chance, share)) in
            rates.iter_mut().zip(hash.classes.iter().zip(classes))
        {
            *rate += hash.reads * chance / share;
        }
    }
    let surplus = access_budget - 1.0 + overflow_fraction;
    if surplus < -ROUNDING {
        return Err(Error::Infeasible { access_budget, overflow_fraction });
    }
    // P(N = i) of a block drawn from all.
    let mut chances: Vec<f64> = Vec::new();
    for (share, rate) in classes.iter().zip(&rates) {
        let mean = check::arrivals(access_budget * load * rate)?;
        let arrivals = Poisson::new(mean);
        let own = arrivals.chances();
        if own.len() > chances.len() {
            chances.resize(own.len(), 0.0);
        }
        for (sum, chance) in chances.iter_mut().zip(own) {
            *sum += share * chance;
        }
    }
    if surplus <= ROUNDING {
        let distribution = Distribution::new(chances);
        return Ok(Mixture { rates, threshold: None, distribution });
    }
    let removed = surplus * load;
    let (tails, excesses) = sums_above(&chances);
    let excess = |k: usize| excesses.get(k).copied().unwrap_or(0.0);
    let k0 = excesses.partition_point(|e| *e > removed).saturating_sub(1);
    let above = (excess(k0) - removed).max(0.0);
    let mut loads: Vec<f64> = chances.iter().take(k0).copied().collect();
    loads.resize(k0, 0.0);
    loads.push(tails.get(k0).copied().unwrap_or(0.0) - above);
    loads.push(above);
    Ok(Mixture {
        rates,
        threshold: Some(k0 as u32),
        distribution: Distribution::new(loads),
    })
}

/// Rounding error of `access_budget - 1 + overflow_fraction`.
const ROUNDING: f64 = 4.0 * f64::EPSILON;
