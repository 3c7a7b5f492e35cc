//! The schemes as differential equations, integrated numerically.
//!
//! A check of the closed forms of the other modules, and the only solution
//! for [`least_loaded`], which has none. Keys arrive from time 0 to 1, as in
//! the paper.
//!
//! ```
//! use tamis_theory::{dynamics, sequential};
//!
//! let end = dynamics::sequential(8.0, 3, 8, 0.25)?;
//! let run = sequential::run(8.0, 3, 8, 0.25)?;
//! assert!((end.overflow_fraction - run.overflow_fraction).abs() < 1e-8);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec::Vec;

use crate::{Distribution, Result, check, ode};

/// Most equations per level, one for each load.
const MAX_FOLLOWED: u32 = 2000;

/// The final state of a scheme.
///
/// ```
/// let end = tamis_theory::dynamics::sequential(8.0, 3, 8, 0.25)?;
/// assert_eq!(end.distributions.len(), 1);
/// assert!(end.access_budget > 1.0 && end.overflow_fraction > 0.0);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// Average blocks read per insertion.
    pub access_budget: f64,
    /// Share of keys in no block.
    pub overflow_fraction: f64,
    /// Loads of each level; one level for SEQUENTIAL.
    pub distributions: Vec<Distribution>,
}

/// SEQUENTIAL by (A.1) to (A.4), without a budget. One choice is SINGLE,
/// (6) with its last line corrected to p f_h.
///
/// ```
/// use tamis_theory::{dynamics, single};
///
/// let followed = dynamics::sequential(2.5, 1, 2, 0.5)?;
/// let closed = single::fractions(2.5, 2, 0.5)?;
/// let pairs = followed.distributions[0].as_slice().iter();
/// for (x, y) in pairs.zip(closed.as_slice()) {
///     assert!((x - y).abs() < 1e-8);
/// }
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn sequential(
    load: f64,
    choices: u32,
    threshold: u32,
    admission: f64,
) -> Result<End> {
    let load = check::load(load)?;
    let choices = check::choices(choices, 1)?;
    let h = followed(threshold)?;
    let p = check::admission(admission)?;
    let mut y = empty_level(h);
    y.extend([0.0, 0.0]);
    ode::solve(&mut y, 1.0, |_, y, dy| {
        let (f, df) = (&y[..h + 2], &mut dy[..h + 4]);
        let u = (1.0 - p) * f[h] + f[h + 1];
        // (A.2) and (A.3) are the same 1+u+...+u^(d-1).
        let reads = (0..choices).fold(0.0, |sum, _| 1.0 + u * sum);
        flow(f, df, h, p, load * reads);
        df[h + 2] = reads;
        df[h + 3] = libm::pow(u, f64::from(choices));
    })?;
    let (access_budget, overflow_fraction) = (y[h + 2], y[h + 3]);
    y.truncate(h + 2);
    let distributions = alloc::vec![Distribution::new(y)];
    Ok(End { access_budget, overflow_fraction, distributions })
}

/// MULTILEVEL by (A.5) to (A.7), without a budget.
///
/// ```
/// use tamis_theory::{dynamics, multilevel};
///
/// let shares = [0.7, 0.2, 0.1];
/// let followed = dynamics::multilevel(8.0, &shares, 9, 0.3)?;
/// let closed = multilevel::run(8.0, &shares, 9, 0.3)?;
/// assert!((followed.access_budget - closed.access_budget).abs() < 1e-8);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn multilevel(
    load: f64,
    level_shares: &[f64],
    threshold: u32,
    admission: f64,
) -> Result<End> {
    let load = check::load(load)?;
    let shares = check::level_shares(level_shares)?;
    let h = followed(threshold)?;
    let p = check::admission(admission)?;
    let states = h + 2;
    let levels = shares.len();
    let mut y: Vec<f64> = (0..levels).flat_map(|_| empty_level(h)).collect();
    y.extend([0.0, 0.0]);
    ode::solve(&mut y, 1.0, |_, y, dy| {
        // (A.6): the chance that a key reaches this level.
        let (mut reaching, mut reads) = (1.0, 0.0);
        for (j, share) in shares.iter().enumerate() {
            let level = j * states..(j + 1) * states;
            let f = &y[level.clone()];
            flow(f, &mut dy[level], h, p, load * reaching / share);
            reads += reaching;
            reaching *= (1.0 - p) * f[h] + f[h + 1];
        }
        dy[levels * states] = reads;
        dy[levels * states + 1] = reaching;
    })?;
    let end = levels * states;
    Ok(End {
        access_budget: y[end],
        overflow_fraction: y[end + 1],
        distributions: y[..end]
            .chunks(states)
            .map(|level| Distribution::new(level.to_vec()))
            .collect(),
    })
}

/// The least-loaded scheme, for comparison: every key reads all `choices`
/// blocks and goes to the emptiest.
///
/// With s_i the share of blocks that hold at least i keys,
/// ds_i/dt = r (s_{i-1}^d - s_i^d).
///
/// ```
/// let loads = tamis_theory::dynamics::least_loaded(8.0, 2)?;
/// assert!((loads.variance() - 0.895816).abs() < 1e-6);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn least_loaded(load: f64, choices: u32) -> Result<Distribution> {
    let load = check::in_range("load", load, 1e-6, 1000.0)?;
    let choices = check::choices(choices, 1)?;
    // One choice is Poisson; with more the loads are far narrower.
    let most = load + 20.0 * libm::sqrt(load) + 40.0;
    let mut y = alloc::vec![0.0; most as usize];
    ode::solve(&mut y, 1.0, |_, y, dy| {
        let mut below = 1.0;
        for (s, ds) in y.iter().zip(dy) {
            let here = (0..choices).fold(1.0, |power, _| power * s);
            *ds = load * (below - here);
            below = here;
        }
    })?;
    let mut share = Vec::with_capacity(y.len() + 1);
    let mut below = 1.0;
    for s in y {
        share.push(below - s);
        below = s;
    }
    share.push(below);
    Ok(Distribution::new(share))
}

fn followed(threshold: u32) -> Result<usize> {
    let most = f64::from(MAX_FOLLOWED);
    check::in_range("threshold", f64::from(threshold), 0.0, most)?;
    Ok(threshold as usize)
}

/// A level whose blocks are all empty.
fn empty_level(h: usize) -> Vec<f64> {
    let mut level = alloc::vec![0.0; h + 2];
    level[0] = 1.0;
    level
}

/// Derivatives of the load shares: arrivals at `rate` move blocks from each
/// load to the next.
fn flow(f: &[f64], df: &mut [f64], h: usize, p: f64, rate: f64) {
    let mut incoming = 0.0;
    for i in 0..h {
        let outgoing = rate * f[i];
        df[i] = incoming - outgoing;
        incoming = outgoing;
    }
    let taken = rate * p * f[h];
    df[h] = incoming - taken;
    df[h + 1] = taken;
}
