//! The optimal balance of a placement scheme, computed by the theory.

use alloc::vec;
use alloc::vec::Vec;

use tamis_theory::{Distribution, multilevel, sequential, single};

use crate::error::{Error, Result};
use crate::placement::{MAX_CHOICES, Scheme};

/// A scheme and its limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemeSettings {
    pub(crate) scheme: Scheme,
    /// Average blocks read per insertion (a).
    pub(crate) access_budget: f64,
    /// Blocks proposed per key (d).
    pub(crate) choices: u32,
    /// The share of keys that SINGLE may refuse (gamma).
    pub(crate) overflow_fraction: f64,
}

/// The best balance of a scheme, at the boundary of its region: the access
/// budget lasts exactly until the last key, so that no key is listed with a
/// proposed block unread. A lookup stops at the first block with room and
/// would miss such a key.
#[derive(Debug, Clone)]
pub(crate) struct SchemeOptimum {
    pub(crate) access_budget: f64,
    /// `None` if no block ever refuses a key.
    pub(crate) threshold: Option<u32>,
    pub(crate) admission: f64,
    /// The share of the blocks in each level; 1 for every choice from a single
    /// array.
    pub(crate) level_shares: Vec<f64>,
    pub(crate) overflow_fraction: f64,
    pub(crate) loads: Distribution,
}

impl SchemeSettings {
    /// The effective number of choices: 1 for SINGLE, whatever the setting.
    pub(crate) fn choices(&self) -> Result<u32> {
        let choices = match self.scheme {
            Scheme::Single => 1,
            _ => self.choices,
        };
        if !(1..=MAX_CHOICES as u32).contains(&choices) {
            return Err(Error::InvalidArgument {
                what: "choices",
                why: "expected 1 to 8",
            });
        }
        Ok(choices)
    }

    /// The optimum at `load` keys per block (r).
    pub(crate) fn optimum(&self, load: f64) -> Result<SchemeOptimum> {
        let choices = self.choices()?;
        // One choice has no use for an access budget above 1.
        if choices == 1 {
            let bound = single::optimal(load, self.overflow_fraction)?;
            return Ok(SchemeOptimum {
                access_budget: 1.0,
                threshold: bound.threshold(),
                admission: bound.admission(),
                level_shares: vec![1.0],
                overflow_fraction: bound.overflow_fraction(),
                loads: bound.distribution().clone(),
            });
        }
        let access_budget = self.access_budget;
        if !(access_budget > 1.0 && access_budget < f64::from(choices)) {
            return Err(Error::InvalidArgument {
                what: "access budget",
                why: "expected a number above 1 and below the number of \
                      choices",
            });
        }
        Ok(match self.scheme {
            Scheme::Multilevel => {
                let (levels, bound) =
                    multilevel::optimal(access_budget, load, choices)?;
                SchemeOptimum {
                    access_budget,
                    threshold: bound.threshold(),
                    admission: bound.admission(),
                    level_shares: levels.level_shares,
                    overflow_fraction: levels.overflow_fraction,
                    loads: bound.distribution().clone(),
                }
            }
            Scheme::Sequential | Scheme::Single => {
                let run = sequential::optimal(access_budget, load, choices)?;
                SchemeOptimum {
                    access_budget,
                    threshold: run.threshold,
                    admission: run.admission,
                    level_shares: vec![1.0; choices as usize],
                    overflow_fraction: run.overflow_fraction,
                    loads: run.distribution,
                }
            }
        })
    }
}

/// Divides `blocks` into levels by their shares. Every level gets at least one
/// block, and the first level the remainder. If the others leave no remainder,
/// all levels get the same number, up to one.
pub(crate) fn level_sizes(blocks: u64, shares: &[f64]) -> Vec<u64> {
    let mut levels: Vec<u64> = shares
        .iter()
        .map(|share| (libm::round(blocks as f64 * share) as u64).max(1))
        .collect();
    let others: u64 = levels.iter().skip(1).sum();
    if others < blocks {
        if let Some(first) = levels.first_mut() {
            *first = blocks - others;
        }
    } else {
        let choices = shares.len() as u64;
        for (i, level) in (0..).zip(&mut levels) {
            *level = blocks / choices + u64::from(i < blocks % choices);
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_sizes_sum_to_blocks_and_none_is_zero() {
        for choices in 2..=8u32 {
            for a in [1.0, 1.05, 1.2, 1.5, 1.99] {
                let shares =
                    multilevel::boundary(a, choices).unwrap().level_shares;
                for blocks in u64::from(choices)..200 {
                    let levels = level_sizes(blocks, &shares);
                    assert_eq!(levels.iter().sum::<u64>(), blocks);
                    assert!(levels.iter().all(|&level| level > 0));
                }
            }
        }
        let shares = multilevel::boundary(1.2, 3).unwrap().level_shares;
        assert_eq!(level_sizes(1024, &shares), [853, 146, 25]);
    }
}
