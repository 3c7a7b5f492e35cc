//! The three schemes, and what the theory makes of them.

use alloc::vec;
use alloc::vec::Vec;

use tamis_theory::{Distribution, multilevel, sequential, single};

use super::MAX_CHOICES;
use crate::error::{Error, Result};
use crate::named::named_enum;

/// How blocks are proposed to a key.
///
/// ```
/// use tamis::Scheme;
/// assert_eq!("multilevel".parse(), Ok(Scheme::Multilevel));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// One block (SINGLE).
    Single,
    /// Several blocks of one array (SEQUENTIAL).
    Sequential,
    /// One block in each of several levels of decreasing size (MHT).
    Multilevel,
}

named_enum!(Scheme, "scheme", {
    Single => "single",
    Sequential => "sequential",
    Multilevel => "multilevel",
});

/// What is asked of a scheme.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) scheme: Scheme,
    /// Average blocks read per insertion (a).
    pub(crate) access_budget: f64,
    /// Blocks proposed per key (d).
    pub(crate) choices: u32,
    /// The share of keys that SINGLE may refuse (gamma).
    pub(crate) overflow_fraction: f64,
}

/// The best a scheme can do, on the boundary of its region: there the
/// accesses last exactly until the last key, and no lookup ever misses a key
/// that was listed unread.
#[derive(Debug, Clone)]
pub(crate) struct Balance {
    pub(crate) access_budget: f64,
    /// None if no block ever refuses.
    pub(crate) threshold: Option<u32>,
    pub(crate) admission: f64,
    /// The share of each level; one for every choice of one array.
    pub(crate) shares: Vec<f64>,
    pub(crate) overflow_fraction: f64,
    pub(crate) loads: Distribution,
}

impl Wish {
    /// Choices there really are: SINGLE has one, whatever was said.
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

    /// Asks the theory for this many keys per block (r).
    pub(crate) fn balance(&self, load: f64) -> Result<Balance> {
        let choices = self.choices()?;
        // One choice has nothing to spend its accesses on.
        if choices == 1 {
            let bound = single::optimal(load, self.overflow_fraction)?;
            return Ok(Balance {
                access_budget: 1.0,
                threshold: bound.threshold(),
                admission: bound.admission(),
                shares: vec![1.0],
                overflow_fraction: bound.overflow_fraction(),
                loads: bound.distribution().clone(),
            });
        }
        let access_budget = self.access_budget;
        if !(access_budget > 1.0 && access_budget < f64::from(choices)) {
            return Err(Error::InvalidArgument {
                what: "access budget",
                why: "several choices need more than one access per key, \
                      and fewer than there are choices",
            });
        }
        Ok(match self.scheme {
            Scheme::Multilevel => {
                let (levels, bound) =
                    multilevel::optimal(access_budget, load, choices)?;
                Balance {
                    access_budget,
                    threshold: bound.threshold(),
                    admission: bound.admission(),
                    shares: levels.level_shares,
                    overflow_fraction: levels.overflow_fraction,
                    loads: bound.distribution().clone(),
                }
            }
            Scheme::Sequential | Scheme::Single => {
                let run = sequential::optimal(access_budget, load, choices)?;
                Balance {
                    access_budget,
                    threshold: run.threshold,
                    admission: run.admission,
                    shares: vec![1.0; choices as usize],
                    overflow_fraction: run.overflow_fraction,
                    loads: run.distribution,
                }
            }
        })
    }
}

/// Blocks by shares: every level has one at least, and the first what the
/// others leave. If they leave nothing, all get about the same.
pub(crate) fn divide(blocks: u64, shares: &[f64]) -> Vec<u64> {
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
    fn levels_add_up_and_none_is_empty() {
        for choices in 2..=8u32 {
            for a in [1.0, 1.05, 1.2, 1.5, 1.99] {
                let shares =
                    multilevel::boundary(a, choices).unwrap().level_shares;
                for blocks in u64::from(choices)..200 {
                    let levels = divide(blocks, &shares);
                    assert_eq!(levels.iter().sum::<u64>(), blocks);
                    assert!(levels.iter().all(|&level| level > 0));
                }
            }
        }
        let shares = multilevel::boundary(1.2, 3).unwrap().level_shares;
        assert_eq!(divide(1024, &shares), [853, 146, 25]);
    }
}
