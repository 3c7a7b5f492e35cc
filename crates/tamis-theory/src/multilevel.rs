//! MULTILEVEL: levels of shrinking size, each key in the first that accepts
//! it.
//!
//! Each level is a SINGLE scheme whose arrivals are the keys refused by the
//! level above. Two closed forms, not in the paper, give its parameters. A
//! level keeps (1-gamma) r of a r arrivals, so it refuses a share
//! q = 1-(1-gamma)/a, the p(a) of Theorem 5 (not the admission p). On the
//! boundary of the optimality region
//!
//! * 1+q+...+q^(d-1) = a,
//! * gamma = q^d,
//! * alpha_j = q^(j-1)/a.
//!
//! None of these depends on the load, contrary to section 10 of the paper.
//! Section 7 misprints the blocks of level j as alpha_j n instead of
//! alpha_j m.
//!
//! ```
//! use tamis_theory::multilevel;
//!
//! let levels = multilevel::boundary(1.2, 3)?;
//! assert!((levels.level_shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
//! assert!((levels.refused.powi(3) - levels.overflow_fraction).abs() < 1e-12);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec::Vec;

use crate::bound::Bound;
use crate::sequential::falling_root;
use crate::single::Refusal;
use crate::{Distribution, Error, Result, check};

/// The division of the blocks into levels.
///
/// ```
/// let levels = tamis_theory::multilevel::boundary(1.2, 3)?;
/// assert!((levels.refused - 0.17082).abs() < 1e-6);
/// assert!((levels.overflow_fraction - 0.00498447).abs() < 1e-8);
/// assert!((levels.level_shares[1] - 0.14235).abs() < 1e-6);
/// assert_eq!(levels.probed, 1.0);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// Share of its arrivals each level refuses, q = p(a).
    pub refused: f64,
    /// Share of keys in no block.
    pub overflow_fraction: f64,
    /// Share of blocks in each level.
    pub level_shares: Vec<f64>,
    /// Share of keys inserted before the read budget is spent, t0 of (B.13).
    /// 1 on the boundary. Below 1 the remaining keys go to the list without
    /// a read, and a lookup that stops at a block that is not full misses
    /// them.
    pub probed: f64,
}

/// The smallest overflow that `choices` levels reach with `access_budget`
/// reads per key, and the shares that reach it.
///
/// ```
/// let levels = tamis_theory::multilevel::boundary(1.1, 2)?;
/// assert!((levels.overflow_fraction - 0.01).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn boundary(access_budget: f64, choices: u32) -> Result<Levels> {
    let choices = check::choices(choices, 2)?;
    let most = f64::from(choices);
    check::in_range("access_budget", access_budget, 1.0, most)?;
    let refused = geometric_root(access_budget - 1.0, choices);
    let level_shares = (0..choices)
        .map(|j| libm::pow(refused, f64::from(j)) / access_budget)
        .collect();
    let overflow_fraction = libm::pow(refused, most);
    Ok(Levels { refused, overflow_fraction, level_shares, probed: 1.0 })
}

/// The shares for an overflow above that of [`boundary`], (B.13).
///
/// The read budget is spent before the last key. Prefer [`boundary`]: the
/// keys listed without a read are found only if every lookup searches the
/// list, see [`lost_members`].
///
/// ```
/// let levels = tamis_theory::multilevel::inside(1.1, 3, 0.02)?;
/// assert!((levels.probed - 0.981274).abs() < 1e-6);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn inside(
    access_budget: f64,
    choices: u32,
    overflow_fraction: f64,
) -> Result<Levels> {
    let least = boundary(access_budget, choices)?.overflow_fraction;
    check::overflow_fraction(overflow_fraction)?;
    if overflow_fraction < least * (1.0 - 1e-12) {
        return Err(Error::OutsideRegion { overflow_fraction, least });
    }
    let refused = (access_budget - 1.0 + overflow_fraction) / access_budget;
    let powers: Vec<f64> =
        (0..choices).map(|j| libm::pow(refused, f64::from(j))).collect();
    // 1+q+...+q^(d-1), where (1-q^d)/(1-q) would cancel near q = 1.
    let sum: f64 = powers.iter().sum();
    let level_shares = powers.iter().map(|power| power / sum).collect();
    let probed = (access_budget / sum).min(1.0);
    Ok(Levels { refused, overflow_fraction, level_shares, probed })
}

/// The share of all members that the lookup of section 2 of the paper misses
/// when the scheme stops reading at its budget.
///
/// A key listed without a read is missed unless all its blocks are full at
/// the end.
///
/// ```
/// use tamis_theory::multilevel::{boundary, lost_members};
///
/// let lost = lost_members(1.1, 8.0, 3, 0.02)?;
/// assert!((lost - 0.0161275).abs() < 1e-7);
/// let safe = boundary(1.1, 3)?.overflow_fraction;
/// assert!(lost_members(1.1, 8.0, 3, safe)? < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn lost_members(
    access_budget: f64,
    load: f64,
    choices: u32,
    overflow_fraction: f64,
) -> Result<f64> {
    let levels = inside(access_budget, choices, overflow_fraction)?;
    let full = Bound::new(access_budget, load, overflow_fraction)?.full();
    let all_full = libm::pow(full, f64::from(choices));
    Ok((1.0 - levels.probed) * (1.0 - all_full))
}

/// The best multilevel scheme: Theorem 5 on the boundary of its region.
///
/// ```
/// let (levels, bound) = tamis_theory::multilevel::optimal(1.2, 8.0, 3)?;
/// assert_eq!(bound.threshold(), Some(8));
/// assert!((bound.admission() - 0.533809).abs() < 1e-6);
/// assert_eq!(bound.overflow_fraction(), levels.overflow_fraction);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn optimal(
    access_budget: f64,
    load: f64,
    choices: u32,
) -> Result<(Levels, Bound)> {
    let levels = boundary(access_budget, choices)?;
    let bound = Bound::new(access_budget, load, levels.overflow_fraction)?;
    Ok((levels, bound))
}

/// Arrivals, refusals and final loads of one level.
///
/// ```
/// let run = tamis_theory::multilevel::run(8.0, &[0.8, 0.2], 9, 0.5)?;
/// let [first, second] = &run.levels[..] else { panic!() };
/// assert_eq!(first.arrivals, 10.0);
/// let passed_on = 8.0 * first.refused / 0.2;
/// assert!((second.arrivals - passed_on).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Keys that arrive at each of its blocks.
    pub arrivals: f64,
    /// Share of the arrivals it refuses.
    pub refused: f64,
    /// Its final loads.
    pub distribution: Distribution,
}

/// Reads, overflow and levels of a scheme with given parameters.
///
/// ```
/// let shares = [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0];
/// let run = tamis_theory::multilevel::run(8.0, &shares, 9, 0.3)?;
/// assert!((run.access_budget - 1.76883).abs() < 1e-5);
/// assert!((run.overflow_fraction - 0.000766527).abs() < 1e-9);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Average blocks read per insertion, and by a member.
    pub access_budget: f64,
    /// Share of keys in no block.
    pub overflow_fraction: f64,
    /// The levels, from the first.
    pub levels: Vec<Level>,
    /// The final loads of all blocks.
    pub distribution: Distribution,
}

/// Theorem 6: any partition, threshold and admission.
///
/// ```
/// use tamis_theory::multilevel::{optimal, run};
///
/// let (levels, bound) = optimal(1.2, 8.0, 3)?;
/// let run = run(8.0, &levels.level_shares, 8, bound.admission())?;
/// assert!((run.access_budget - 1.2).abs() < 1e-12);
/// assert!((run.overflow_fraction - bound.overflow_fraction()).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn run(
    load: f64,
    level_shares: &[f64],
    threshold: u32,
    admission: f64,
) -> Result<Run> {
    let load = check::load(load)?;
    let mut reaching = 1.0;
    let mut access_budget = 0.0;
    let mut levels = Vec::with_capacity(level_shares.len());
    let mut blocks = alloc::vec![0.0; check::threshold(threshold)? + 2];
    for share in check::level_shares(level_shares)? {
        let arrivals = load * reaching / share;
        let refusal = Refusal::new(arrivals, threshold, admission)?;
        let refused = refusal.refused_share();
        let distribution = refusal.distribution();
        for (sum, part) in blocks.iter_mut().zip(distribution.as_slice()) {
            *sum += share * part;
        }
        levels.push(Level { arrivals, refused, distribution });
        access_budget += reaching;
        reaching *= refused;
    }
    Ok(Run {
        access_budget,
        overflow_fraction: reaching,
        levels,
        distribution: Distribution::new(blocks),
    })
}

/// The threshold and the admission with which given levels read
/// `access_budget` blocks per insertion.
///
/// With the shares of [`boundary`] they are those of [`optimal`].
///
/// ```
/// use tamis_theory::multilevel::{for_budget, run};
///
/// let shares = [4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0];
/// let (threshold, admission) = for_budget(1.2, 8.0, &shares)?;
/// let run = run(8.0, &shares, threshold, admission)?;
/// assert!((run.access_budget - 1.2).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn for_budget(
    access_budget: f64,
    load: f64,
    level_shares: &[f64],
) -> Result<(u32, f64)> {
    let load = check::load(load)?;
    let most = check::level_shares(level_shares)?.len() as f64 - 1e-6;
    check::in_range("access_budget", access_budget, 1.0 + 1e-9, most)?;
    let surplus = |threshold: u32, admission: f64| {
        run(load, level_shares, threshold, admission)
            .map(|run| run.access_budget - access_budget)
    };
    // Reads fall as h + p grows; (h, 1) equals (h + 1, 0).
    let (mut low, mut high) = (0, load as u32 + 1);
    while surplus(high, 0.0)? > 0.0 && high < check::MAX_THRESHOLD {
        (low, high) = (high, (2 * high).min(check::MAX_THRESHOLD));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match surplus(middle, 0.0)? > 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    // The arguments are those of the calls before.
    let at = |admission| surplus(low, admission).unwrap_or(0.0);
    Ok((low, falling_root(at)))
}

/// The q in [0, 1] with q+q^2+...+q^(d-1) = `sum`.
///
/// The sum is convex and at least q, so Newton's method from q = `sum`
/// decreases to the root.
fn geometric_root(sum: f64, choices: u32) -> f64 {
    let mut q = sum.min(1.0);
    for _ in 0..100 {
        let (mut value, mut slope) = (0.0, 0.0);
        for _ in 1..choices {
            slope = 1.0 + value + q * slope;
            value = q * (1.0 + value);
        }
        let step = (value - sum) / slope;
        if step.is_nan() || step <= 1e-16 * q {
            break;
        }
        q -= step;
    }
    q
}
