//! SEQUENTIAL: d independent blocks of one array; the first that accepts the
//! key holds it.
//!
//! To a block a refused key of another is an arrival like any other, so after
//! s arrivals per block the loads are those of SINGLE, and a block refuses
//! the next key with chance
//!
//! u(s) = (1-p) f_h + f_{h+1} = sum over n >= 0 of P(N_s = h+n) (1-p(1-p)^n)
//!
//! so that a key reads g = 1+u+...+u^(d-1) blocks, which is both (A.2) and
//! (A.3). Hence the n-th key comes after a r arrivals, where the integral of
//! 1/g over 0..a r is r, and a share gamma = (1/r) times the integral of
//! u^d/g is refused by all d blocks. Both integrals have positive terms only;
//! the paper integrates (A.1) numerically.
//!
//! ```
//! use tamis_theory::sequential;
//!
//! let run = sequential::optimal(1.2, 8.0, 3)?;
//! assert!((run.distribution.mean() / 8.0 - 0.973789).abs() < 1e-6);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use crate::bound::Bound;
use crate::poisson::Poisson;
use crate::quadrature::Quadrature;
use crate::single::Refusal;
use crate::{Distribution, Error, Result, check};

/// Reads, overflow and final loads of a sequential scheme.
///
/// ```
/// let run = tamis_theory::sequential::optimal(1.2, 8.0, 3)?;
/// assert_eq!(run.threshold, Some(8));
/// assert!((run.admission - 0.244663).abs() < 1e-6);
/// assert!((run.overflow_fraction - 0.0262108).abs() < 1e-7);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Average blocks read per insertion, and by a member.
    pub access_budget: f64,
    /// A block below it accepts every key; `None` at `access_budget` 1.
    pub threshold: Option<u32>,
    /// Chance that a block exactly at the threshold accepts one more key.
    pub admission: f64,
    /// Share of keys in no block.
    pub overflow_fraction: f64,
    /// The final loads, the same for all blocks.
    pub distribution: Distribution,
}

/// The best sequential scheme: Theorem 4 on the boundary of its optimality
/// region, where the last key uses the last read of the budget.
///
/// `overflow_fraction` is the smallest at which the scheme reaches the bound
/// of [`crate::bound`]. Unlike that of [`crate::multilevel`] it grows with
/// the load.
///
/// ```
/// use tamis_theory::{multilevel, sequential};
///
/// let flat = sequential::optimal(1.1, 8.0, 3)?.overflow_fraction;
/// let levels = multilevel::boundary(1.1, 3)?.overflow_fraction;
/// assert!((flat - 0.00587399).abs() < 1e-8);
/// assert!(levels < flat);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn optimal(access_budget: f64, load: f64, choices: u32) -> Result<Run> {
    let load = check::load(load)?;
    let choices = check::choices(choices, 2)?;
    // At d reads per key every block refuses every key.
    let most = f64::from(choices) - 1e-6;
    check::in_range("access_budget", access_budget, 1.0, most)?;
    let arrivals = access_budget * load;
    let surplus = (access_budget - 1.0) * load;
    if access_budget - 1.0 <= 4.0 * f64::EPSILON {
        let chances = Poisson::new(load).chances().to_vec();
        return Ok(Run {
            access_budget,
            threshold: None,
            admission: 1.0,
            overflow_fraction: 0.0,
            distribution: Distribution::new(chances),
        });
    }
    let fluid = Fluid { choices, rule: Quadrature::new() };
    let extra =
        |h: u32, p: f64| fluid.totals(arrivals, h, p).extra_reads - surplus;
    // Extra reads fall as h + p grows; (h, 1) equals (h + 1, 0).
    // The bracket of h starts at the load, which is near the root; far below
    // it the integrals take long.
    let mut stride = 1;
    let (mut low, mut high) = (load as u32, load as u32 + 1);
    while extra(high, 0.0) > 0.0 && high < check::MAX_THRESHOLD {
        (low, high) = (high, high + stride);
        stride *= 2;
    }
    while low > 0 && extra(low, 0.0) <= 0.0 {
        (low, high) = (low.saturating_sub(stride), low);
        stride *= 2;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if extra(middle, 0.0) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let admission = falling_root(|p| extra(low, p));
    let refusal = Refusal::new(arrivals, low, admission)?;
    Ok(Run {
        access_budget,
        threshold: Some(low),
        admission,
        overflow_fraction: fluid.totals(arrivals, low, admission).overflow
            / load,
        distribution: refusal.distribution(),
    })
}

/// Threshold and admission for an overflow above that of [`optimal`], and the
/// share of keys inserted before the read budget is spent (t0 of the proof of
/// Theorem 4).
///
/// The keys after that share go to the list without a read, and are found
/// only if every lookup searches the list, see [`lost_members`].
///
/// ```
/// use tamis_theory::sequential;
///
/// let (bound, probed) = sequential::inside(1.1, 8.0, 3, 0.02)?;
/// assert_eq!(bound.threshold(), Some(9));
/// assert!(probed > 0.98 && probed < 1.0);
/// let least = sequential::optimal(1.1, 8.0, 3)?.overflow_fraction;
/// let (_, all) = sequential::inside(1.1, 8.0, 3, least)?;
/// assert!((all - 1.0).abs() < 1e-9);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn inside(
    access_budget: f64,
    load: f64,
    choices: u32,
    overflow_fraction: f64,
) -> Result<(Bound, f64)> {
    let least = optimal(access_budget, load, choices)?.overflow_fraction;
    if overflow_fraction < least * (1.0 - 1e-12) {
        return Err(Error::OutsideRegion { overflow_fraction, least });
    }
    let bound = Bound::new(access_budget, load, overflow_fraction)?;
    let Some(threshold) = bound.threshold() else {
        return Ok((bound, 1.0));
    };
    let fluid = Fluid { choices, rule: Quadrature::new() };
    let arrivals = access_budget * load;
    let totals = fluid.totals(arrivals, threshold, bound.admission());
    let probed = ((arrivals - totals.extra_reads) / load).min(1.0);
    Ok((bound, probed))
}

/// The share of all members that the lookup of section 2 of the paper misses
/// when the scheme stops reading at its budget.
///
/// A key listed without a read is missed unless all its blocks are full at
/// the end.
///
/// ```
/// use tamis_theory::sequential;
///
/// let lost = sequential::lost_members(1.1, 8.0, 3, 0.02)?;
/// assert!(lost > 0.01 && lost < 0.02);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn lost_members(
    access_budget: f64,
    load: f64,
    choices: u32,
    overflow_fraction: f64,
) -> Result<f64> {
    let (bound, probed) =
        inside(access_budget, load, choices, overflow_fraction)?;
    let all_full = libm::pow(bound.full(), f64::from(choices));
    Ok((1.0 - probed) * (1.0 - all_full))
}

/// A scheme with any threshold and admission, without a budget.
///
/// ```
/// let run = tamis_theory::sequential::run(8.0, 3, 8, 0.244663)?;
/// assert!((run.access_budget - 1.2).abs() < 1e-6);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn run(
    load: f64,
    choices: u32,
    threshold: u32,
    admission: f64,
) -> Result<Run> {
    let load = check::load(load)?;
    let choices = check::choices(choices, 1)?;
    check::threshold(threshold)?;
    let admission = check::admission(admission)?;
    let fluid = Fluid { choices, rule: Quadrature::new() };
    // The number of keys after s arrivals per block, the integral of 1/g,
    // is concave in s, so Newton's method increases s up to a r.
    let mut arrivals = load;
    for _ in 0..100 {
        let keys = arrivals
            - fluid.totals(arrivals, threshold, admission).extra_reads;
        let refuses = refuses(arrivals, threshold as usize, admission);
        let step = (load - keys) * (1.0 + extra_reads(refuses, choices));
        if step.is_nan() || step <= 1e-15 * arrivals {
            break;
        }
        arrivals = (arrivals + step).min(load * f64::from(choices));
    }
    let totals = fluid.totals(arrivals, threshold, admission);
    let refusal = Refusal::new(arrivals, threshold, admission)?;
    Ok(Run {
        access_budget: arrivals / load,
        threshold: Some(threshold),
        admission,
        overflow_fraction: totals.overflow / load,
        distribution: refusal.distribution(),
    })
}

struct Fluid {
    choices: u32,
    rule: Quadrature,
}

/// Per block: reads beyond the first of each key, and keys refused by all.
struct Totals {
    extra_reads: f64,
    overflow: f64,
}

impl Fluid {
    fn totals(&self, arrivals: f64, threshold: u32, p: f64) -> Totals {
        let h = f64::from(threshold);
        // u rises from 0 to 1 around s = h over a few times sqrt(h), and is
        // negligible below h - 18 sqrt(h + 1).
        let width = libm::sqrt(h + 1.0);
        let from = (h - 18.0 * width).clamp(0.0, arrivals);
        let span = (from, arrivals);
        let [extra_reads, overflow] =
            self.rule.integrate(span, 0.75 * width, |s| {
                let u = refuses(s, threshold as usize, p);
                let extra = extra_reads(u, self.choices);
                let all = libm::pow(u, f64::from(self.choices));
                [extra / (1.0 + extra), all / (1.0 + extra)]
            });
        Totals { extra_reads, overflow }
    }
}

/// u+u^2+...+u^(d-1).
fn extra_reads(u: f64, choices: u32) -> f64 {
    (1..choices).fold(0.0, |sum, _| u * (1.0 + sum))
}

/// u(s), summed outwards from its largest term to avoid underflow.
fn refuses(s: f64, h: usize, p: f64) -> f64 {
    if s <= 0.0 {
        return if h == 0 { 1.0 - p } else { 0.0 };
    }
    const SMALL: f64 = 1e-18;
    let start = h.max(s as usize);
    let i = start as f64;
    let log = i * libm::log(s) - s - libm::lgamma(i + 1.0);
    let first = libm::exp(log);
    let stay = 1.0 - p;
    let from = libm::pow(stay, (start - h) as f64);
    let (mut chance, mut still) = (first, from);
    let (mut n, mut sum) = (start, 0.0);
    while chance > SMALL * sum {
        sum += chance * (1.0 - p * still);
        n += 1;
        chance *= s / n as f64;
        still *= stay;
    }
    let (mut chance, mut n, mut still) = (first, start, from);
    while n > h && chance > SMALL * sum {
        chance *= n as f64 / s;
        n -= 1;
        // (1-p)^(n-h); dividing is exact enough unless it underflowed.
        still = match still > f64::MIN_POSITIVE {
            true => still / stay,
            false => libm::pow(stay, (n - h) as f64),
        };
        sum += chance * (1.0 - p * still);
    }
    sum.min(1.0)
}

/// The root in [0, 1] of a decreasing function, by the Illinois method with
/// a bisection every eighth step.
pub(crate) fn falling_root(f: impl Fn(f64) -> f64) -> f64 {
    let (mut a, mut b) = (0.0, 1.0);
    let (mut at_a, mut at_b) = (f(a), f(b));
    let mut moved = 0;
    for step in 0..100 {
        if b - a <= 1e-15 || at_a <= 0.0 || at_b >= 0.0 {
            break;
        }
        let x = if step % 8 == 7 {
            0.5 * (a + b)
        } else {
            a + (b - a) * at_a / (at_a - at_b)
        };
        let at_x = f(x);
        if at_x > 0.0 {
            if moved == 1 {
                at_b *= 0.5;
            }
            (a, at_a, moved) = (x, at_x, 1);
        } else {
            if moved == -1 {
                at_a *= 0.5;
            }
            (b, at_b, moved) = (x, at_x, -1);
        }
    }
    if at_a <= 0.0 { a } else { b }
}
