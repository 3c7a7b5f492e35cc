//! Balanced filters whose last level takes every key: no list, no coin.
//!
//! All levels but the last refuse, at a number of keys or at a number of set
//! bits; the last never does, so that it needs neither counter nor tracking
//! bits and ends every lookup. Refusing by set bits balances the
//! quantity that the rate depends on, and needs no counter.
//!
//! ```
//! use tamis_theory::balanced::absorbing::{Refuse, predict};
//!
//! let shares = [0.85, 0.13, 0.02];
//! let p = predict(512, 40.0, &shares, Refuse::Popcount(240), 24, 8)?;
//! assert!(p.prediction.fpr < 3e-8 && p.prediction.reads_miss < 1.4);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec::Vec;

use super::{Refuser, Stage, Walk, bits_to_count, payload_bits};
use crate::{Prediction, Result, blocked, check, poisson::Poisson};

/// When a block of any level but the last refuses a key, and the state that
/// decides it.
///
/// ```
/// use tamis_theory::balanced::absorbing::{Refuse, predict};
///
/// let shares = [0.96, 0.04];
/// let counter = predict(512, 16.0, &shares, Refuse::Counter(37), 10, 1)?;
/// let build = predict(512, 16.0, &shares, Refuse::BuildCounter(37), 10, 1)?;
/// let popcount = predict(512, 16.0, &shares, Refuse::Popcount(262), 10, 1)?;
/// assert!(build.prediction.fpr < counter.prediction.fpr);
/// assert!(popcount.prediction.fpr < build.prediction.fpr);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refuse {
    /// At this many keys, counted in the block.
    Counter(u32),
    /// At this many keys, counted beside the filter while it is built and
    /// then forgotten. Needs tracking bits, since a finished block no longer
    /// shows whether it is full.
    BuildCounter(u32),
    /// At this many set bits.
    Popcount(u32),
}

/// Prediction for a filter without a list.
///
/// ```
/// use tamis_theory::balanced::absorbing::{Refuse, predict};
///
/// let shares = [0.9612241, 0.0387759];
/// let p = predict(512, 16.0, &shares, Refuse::Counter(37), 10, 1)?;
/// assert_eq!((p.counter_bits, p.payload_bits), (6, 505));
/// assert!(p.prediction.reads_hit < 1.03);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Absorbing {
    /// Rates and reads. `reads_hit` is also the average number of blocks
    /// read per insertion.
    pub prediction: Prediction,
    /// Keys that arrive at each block, by level.
    pub arrivals: Vec<f64>,
    /// Share of its arrivals that each level refuses; the last refuses none.
    pub refused: Vec<f64>,
    /// Bits of each block, but for the last level, that count its keys.
    pub counter_bits: u32,
    /// Bits of each block, but for the last level, left for the filter.
    pub payload_bits: u32,
}

/// Predicts a filter with any division of its blocks into levels.
///
/// One level is a blocked filter.
///
/// ```
/// use tamis_theory::{balanced::absorbing, blocked};
///
/// let refuse = absorbing::Refuse::Popcount(260);
/// let p = absorbing::predict(512, 16.0, &[1.0], refuse, 9, 0)?;
/// let plain = blocked::predict(512, 16.0, 9)?;
/// assert!((p.prediction.fpr / plain.fpr - 1.0).abs() < 1e-9);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict(
    block_bits: u32,
    bits_per_key: f64,
    level_shares: &[f64],
    refuse: Refuse,
    probes: u32,
    tracking_bits: u32,
) -> Result<Absorbing> {
    let block_bits = check::block_bits(block_bits)?;
    let bits_per_key = check::bits_per_key(bits_per_key)?;
    let probes = check::probes(probes, 1)?;
    let shares = check::level_shares(level_shares)?;
    let refusing = shares.len() - 1;
    let counter_bits = match refuse {
        Refuse::Counter(threshold) => {
            check::threshold(threshold)?;
            bits_to_count(threshold)
        }
        Refuse::BuildCounter(threshold) => {
            check::threshold(threshold)?;
            let least = if refusing > 0 { 1.0 } else { 0.0 };
            let bits = f64::from(tracking_bits);
            check::in_range("tracking_bits", bits, least, 4096.0)?;
            0
        }
        Refuse::Popcount(set_bits) => {
            let most = f64::from(block_bits);
            check::in_range("set_bits", f64::from(set_bits), 0.0, most)?;
            0
        }
    };
    let payload_bits = payload_bits(block_bits, counter_bits, tracking_bits)?;
    let load = f64::from(block_bits) / bits_per_key;
    let (mut reaching, mut reads_hit) = (1.0, 0.0);
    let (mut arrivals, mut refused) = (Vec::new(), Vec::new());
    let mut stages = Vec::with_capacity(shares.len());
    let refuser = |most: usize| match refuse {
        Refuse::Counter(h) | Refuse::BuildCounter(h) => {
            Refuser::at_load(payload_bits, probes, h as usize)
        }
        Refuse::Popcount(set_bits) => {
            Refuser::at_popcount(payload_bits, probes, set_bits, most)
        }
    };
    let mut table: Option<(usize, Refuser)> = None;
    for (level, share) in shares.iter().enumerate() {
        let mean = check::arrivals(load * reaching / share)?;
        arrivals.push(mean);
        reads_hit += reaching;
        let last = level == refusing;
        if last {
            let maybe = blocked::rate(block_bits, mean, probes);
            stages.push(Stage { maybe, go_on: 0.0, passed: 0.0 });
            refused.push(0.0);
            break;
        }
        let poisson = Poisson::new(mean);
        let most = poisson.chances().len();
        // Levels of about the same load share one table.
        let (covered, block) = table
            .take()
            .filter(|(keys, _)| *keys >= most)
            .unwrap_or_else(|| (most + most / 16, refuser(most + most / 16)));
        let outcome = block.outcome(poisson.chances(), tracking_bits);
        table = Some((covered, block));
        stages.push(Stage {
            maybe: outcome.maybe,
            go_on: outcome.go_on,
            passed: outcome.passed,
        });
        let share = if mean > 0.0 { outcome.refused / mean } else { 0.0 };
        refused.push(share);
        reaching *= share;
    }
    let walk = Walk::exact(stages);
    Ok(Absorbing {
        prediction: Prediction {
            bits_per_key,
            probes,
            fpr: walk.fpr,
            reads_hit,
            reads_miss: walk.reads,
        },
        arrivals,
        refused,
        counter_bits,
        payload_bits,
    })
}
