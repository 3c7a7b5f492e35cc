//! SINGLE: one block per key, which refuses keys at the threshold.
//!
//! A block accepts every key while it holds fewer than `threshold` keys,
//! accepts one more with probability `admission` at exactly `threshold` keys,
//! and refuses the rest. With Poisson arrivals N at a block, the n-th arrival
//! past the threshold h finds the block at h only if all n-1 before it were
//! refused, so
//!
//! * f_i = P(N = i) below the threshold h,
//! * f_h = sum over n >= 0 of P(N = h+n) (1-p)^n,
//! * f_{h+1} = sum over n >= 1 of P(N = h+n) (1-(1-p)^n).
//!
//! These are the paper's (7), (8) and (A.8) without their cancellation: as
//! printed, (7) evaluates to 32768 instead of 0.121307 at h = 8, p = 0.999,
//! 9.6 arrivals. The last line of the differential equations (5) and (6) must
//! be p f_h, not p f_{h-1}: as printed, the fractions sum to 1.05 at t = 1 in
//! Fig. 3.
//!
//! ```
//! use tamis_theory::single;
//!
//! let scheme = single::optimal(8.0, 0.05)?;
//! let refused = single::overflow(8.0, 10, scheme.admission())?;
//! assert!((refused - 0.05).abs() < 1e-12);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use crate::bound::Bound;
use crate::poisson::Poisson;
use crate::{Distribution, Result, check};

/// The share of blocks at each load, after `arrivals` keys per block.
///
/// At time t of the paper, `arrivals` is `load` times t.
///
/// ```
/// // The end of Fig. 3: load 2.5, threshold 2, admission 1/2.
/// let loads = tamis_theory::single::fractions(2.5, 2, 0.5)?;
/// let expected = [0.082085, 0.205212, 0.407254, 0.305448];
/// for (got, want) in loads.as_slice().iter().zip(expected) {
///     assert!((got - want).abs() < 1e-6);
/// }
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn fractions(
    arrivals: f64,
    threshold: u32,
    admission: f64,
) -> Result<Distribution> {
    let refusal = Refusal::new(arrivals, threshold, admission)?;
    Ok(refusal.distribution())
}

/// The share of arrivals that the blocks refuse, equation (A.9).
///
/// ```
/// let refused = tamis_theory::single::overflow(2.5, 2, 0.5)?;
/// assert!((refused - 0.225574).abs() < 1e-6);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn overflow(arrivals: f64, threshold: u32, admission: f64) -> Result<f64> {
    Ok(Refusal::new(arrivals, threshold, admission)?.refused_share())
}

/// The best SINGLE scheme that leaves a share `overflow_fraction` of the
/// keys to the list: Theorem 3, equal to the bound at one read per key.
///
/// ```
/// let scheme = tamis_theory::single::optimal(8.0, 0.01)?;
/// assert_eq!(scheme.threshold(), Some(12));
/// assert!((scheme.admission() - 0.627087).abs() < 1e-6);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn optimal(load: f64, overflow_fraction: f64) -> Result<Bound> {
    Bound::new(1.0, load, overflow_fraction)
}

/// The admission at which a share `above` of the blocks ends with
/// `threshold + 1` keys.
///
/// The inverse of the last entry of [`fractions`], which grows with the
/// admission. `above` lies between 0 and the share of blocks with more than
/// `threshold` arrivals.
///
/// ```
/// use tamis_theory::single;
///
/// let above = single::fractions(9.6, 8, 0.25)?.as_slice()[9];
/// let admission = single::admission(9.6, 8, above)?;
/// assert!((admission - 0.25).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn admission(arrivals: f64, threshold: u32, above: f64) -> Result<f64> {
    let arrivals = Poisson::new(check::arrivals(arrivals)?);
    let threshold = check::threshold(threshold)?;
    let most = arrivals.at_least(threshold + 1);
    let above = check::in_range("above", above, 0.0, most)?;
    Ok(solve_admission(&arrivals, threshold, most - above, above))
}

/// One block with Poisson arrivals, a threshold and an admission.
pub(crate) struct Refusal {
    arrivals: Poisson,
    threshold: usize,
    admission: f64,
}

impl Refusal {
    pub(crate) fn new(
        arrivals: f64,
        threshold: u32,
        admission: f64,
    ) -> Result<Self> {
        let arrivals = check::arrivals(arrivals)?;
        let threshold = check::threshold(threshold)?;
        let admission = check::admission(admission)?;
        let arrivals = Poisson::new(arrivals);
        Ok(Refusal { arrivals, threshold, admission })
    }

    /// Chance that a block ends exactly at the threshold with at least one
    /// refused arrival.
    fn held(&self) -> f64 {
        let mut still = 1.0;
        let late = self.arrivals.from(self.threshold + 1).iter();
        late.map(|chance| {
            still *= 1.0 - self.admission;
            chance * still
        })
        .sum()
    }

    pub(crate) fn at_threshold(&self) -> f64 {
        self.arrivals.chance(self.threshold) + self.held()
    }

    pub(crate) fn above(&self) -> f64 {
        let (mut taken, mut still) = (0.0, 1.0);
        let late = self.arrivals.from(self.threshold + 1).iter();
        late.map(|chance| {
            taken += self.admission * still;
            still *= 1.0 - self.admission;
            chance * taken
        })
        .sum()
    }

    pub(crate) fn distribution(&self) -> Distribution {
        let mut share = alloc::vec![0.0; self.threshold + 2];
        for (share, chance) in
            share.iter_mut().zip(self.arrivals.chances()).take(self.threshold)
        {
            *share = *chance;
        }
        share[self.threshold] = self.at_threshold();
        share[self.threshold + 1] = self.above();
        Distribution::new(share)
    }

    /// Keys refused per block. Arrivals beyond h+1 are always refused; one
    /// more is refused in a block that ends at h.
    pub(crate) fn refused(&self) -> f64 {
        self.arrivals.excess(self.threshold + 1) + self.held()
    }

    pub(crate) fn refused_share(&self) -> f64 {
        let mean = self.arrivals.mean();
        if mean > 0.0 { self.refused() / mean } else { 0.0 }
    }

    /// Chances that the block ends at the threshold, or one above, and that
    /// a refused key set the tracking bit a lookup reads, one of t =
    /// `classes`: together E[1-(1-1/t)^R].
    pub(crate) fn tracked(&self, classes: u32) -> [f64; 2] {
        let unmarked = 1.0 - 1.0 / f64::from(classes.max(1));
        // `still`: no arrival past the threshold was admitted. `clean` and
        // `clean_before`: the first n and n - 1 refusals missed the class.
        let (mut still, mut clean) = (1.0, 1.0);
        let mut marked = [0.0; 2];
        for chance in self.arrivals.from(self.threshold + 1) {
            still *= 1.0 - self.admission;
            let clean_before = clean;
            clean *= unmarked;
            marked[0] += chance * still * (1.0 - clean);
            marked[1] += chance * (1.0 - still) * (1.0 - clean_before);
        }
        marked
    }

    pub(crate) fn admission(&self) -> f64 {
        self.admission
    }

    pub(crate) fn threshold(&self) -> usize {
        self.threshold
    }
}

/// The admission p with f_{h+1} = `above` and f_h = P(N = h) + `held`.
///
/// Newton's method on the smaller of the two. The first is concave in p, the
/// second convex in 1-p. Started at p = 0 or 1-p = 1, the iterates are
/// monotone, so no bracket is needed.
pub(crate) fn solve_admission(
    arrivals: &Poisson,
    threshold: usize,
    held: f64,
    above: f64,
) -> f64 {
    const STEPS: usize = 500;
    let late = arrivals.from(threshold + 1);
    // Sums of chance * s^n and of its derivative, n = 1, 2, ...
    let power = |s: f64| {
        let (mut before, mut value, mut slope) = (1.0, 0.0, 0.0);
        for (n, chance) in (1..).zip(late) {
            slope += chance * f64::from(n) * before;
            before *= s;
            value += chance * before;
        }
        (value, slope)
    };
    // Sum of chance * (1-(1-p)^n).
    let complement = |p: f64| {
        let (mut taken, mut still, mut value) = (0.0, 1.0, 0.0);
        for chance in late {
            taken += p * still;
            still *= 1.0 - p;
            value += chance * taken;
        }
        value
    };
    if above <= held {
        let mut p = 0.0;
        for _ in 0..STEPS {
            let step = (above - complement(p)) / power(1.0 - p).1;
            if step.is_nan() || step <= 1e-16 * p {
                break;
            }
            p += step;
        }
        p.clamp(0.0, 1.0)
    } else {
        let mut s = 1.0;
        for _ in 0..STEPS {
            let (value, slope) = power(s);
            let step = (value - held) / slope;
            if step.is_nan() || step <= 1e-16 * s {
                break;
            }
            s -= step;
        }
        (1.0 - s).clamp(0.0, 1.0)
    }
}
