//! The balance of a placement scheme, computed by the theory.

use alloc::vec;
use alloc::vec::Vec;

use tamis_theory::bound::Bound;
use tamis_theory::{Distribution, multilevel, sequential, single};

use crate::error::{Error, Result};
use crate::placement::{MAX_CHOICES, Scheme};

/// A scheme, its limits, and the parameters given in place of the optimal
/// ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemeSettings<'a> {
    pub(crate) scheme: Scheme,
    /// Average blocks read per insertion (a).
    pub(crate) access_budget: f64,
    /// Blocks proposed per key (d).
    pub(crate) choices: u32,
    /// The share of keys in no block (gamma); by default the least of the
    /// scheme, and 0.5 % for SINGLE.
    pub(crate) overflow_fraction: Option<f64>,
    pub(crate) given: GivenParameters<'a>,
}

/// Parameters that replace those of the optimum.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GivenParameters<'a> {
    /// h; without `admission` it has no coin (p = 0).
    pub(crate) threshold: Option<u32>,
    /// p
    pub(crate) admission: Option<f64>,
    /// Relative sizes of the levels.
    pub(crate) level_shares: Option<&'a [f64]>,
}

impl GivenParameters<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.threshold.is_none()
            && self.admission.is_none()
            && self.level_shares.is_none()
    }
}

/// Share of keys that SINGLE refuses by default.
const SINGLE_OVERFLOW: f64 = 0.005;

/// The balance of a scheme.
///
/// Without given parameters it is the best one, at the boundary of its region:
/// the access budget lasts exactly until the last key, so that no key is
/// listed with a proposed block unread. A lookup stops at the first block
/// with room and would miss such a key.
///
/// Inside the region, and with given parameters, the insertions go on reading
/// past the budget for the same reason: `access_budget` and
/// `overflow_fraction` are then those of Theorem 6, with all keys read.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(feature = "table"),
    expect(dead_code, reason = "some fields are for tables")
)]
pub(crate) struct SchemeBalance {
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

impl SchemeSettings<'_> {
    /// The effective number of choices: 1 for SINGLE, the number of given
    /// levels, or else the setting.
    pub(crate) fn choices(&self) -> Result<u32> {
        let choices = match (self.scheme, self.given.level_shares) {
            (Scheme::Single, _) => 1,
            (_, Some(shares)) => shares.len() as u32,
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

    /// Whether the balance is the optimum at the boundary of the region.
    pub(crate) fn is_optimal(&self) -> bool {
        self.given.is_empty()
            && (self.overflow_fraction.is_none()
                || self.scheme == Scheme::Single)
    }

    /// The share of keys that SINGLE refuses.
    pub(crate) fn single_overflow(&self) -> f64 {
        self.overflow_fraction.unwrap_or(SINGLE_OVERFLOW)
    }

    /// The balance at `load` keys per block (r).
    pub(crate) fn balance(&self, load: f64) -> Result<SchemeBalance> {
        let choices = self.choices()?;
        let given = self.given;
        let shares = match given.level_shares {
            None => None,
            Some(_) if self.scheme != Scheme::Multilevel => {
                return Err(Error::InvalidArgument {
                    what: "level shares",
                    why: "only the multilevel scheme has levels",
                });
            }
            Some(shares) => Some(normalised(shares)?),
        };
        if let Some(admission) = given.admission {
            if !(0.0..=1.0).contains(&admission) {
                return Err(Error::InvalidArgument {
                    what: "admission",
                    why: "expected a probability",
                });
            }
        }
        if self.is_optimal() {
            return self.optimum(choices, load);
        }
        if choices == 1 {
            let optimum = || single::optimal(load, self.single_overflow());
            let Some((h, p)) = self.refusal(|| {
                let bound = optimum()?;
                Ok(bound.threshold().map(|h| (h, bound.admission())))
            })?
            else {
                return self.optimum(choices, load);
            };
            return sequential_balance(load, choices, h, p);
        }
        match self.scheme {
            Scheme::Multilevel => {
                let (shares, gamma) = match (shares, self.overflow_fraction) {
                    (Some(shares), _) => (shares, None),
                    (None, None) => {
                        self.check_budget(choices)?;
                        let a = self.access_budget;
                        let levels = multilevel::boundary(a, choices)?;
                        let gamma = levels.overflow_fraction;
                        (levels.level_shares, Some(gamma))
                    }
                    (None, Some(gamma)) => {
                        self.check_budget(choices)?;
                        let a = self.access_budget;
                        let levels = multilevel::inside(a, choices, gamma)?;
                        (levels.level_shares, Some(gamma))
                    }
                };
                let Some((h, p)) = self.refusal(|| {
                    self.check_budget(choices)?;
                    let a = self.access_budget;
                    let Some(gamma) = gamma else {
                        return Ok(Some(multilevel::for_budget(
                            a, load, &shares,
                        )?));
                    };
                    let bound = Bound::new(a, load, gamma)?;
                    Ok(bound.threshold().map(|h| (h, bound.admission())))
                })?
                else {
                    return self.optimum(choices, load);
                };
                let run = multilevel::run(load, &shares, h, p)?;
                Ok(SchemeBalance {
                    access_budget: run.access_budget,
                    threshold: Some(h),
                    admission: p,
                    level_shares: shares,
                    overflow_fraction: run.overflow_fraction,
                    loads: run.distribution,
                })
            }
            Scheme::Sequential | Scheme::Single => {
                let Some((h, p)) = self.refusal(|| {
                    self.check_budget(choices)?;
                    let a = self.access_budget;
                    let Some(gamma) = self.overflow_fraction else {
                        let run = sequential::optimal(a, load, choices)?;
                        return Ok(run.threshold.map(|h| (h, run.admission)));
                    };
                    let (bound, _) =
                        sequential::inside(a, load, choices, gamma)?;
                    Ok(bound.threshold().map(|h| (h, bound.admission())))
                })?
                else {
                    return self.optimum(choices, load);
                };
                sequential_balance(load, choices, h, p)
            }
        }
    }

    /// Threshold and admission: given, or those of `computed`. `None` if no
    /// block refuses a key.
    fn refusal(
        &self,
        computed: impl FnOnce() -> Result<Option<(u32, f64)>>,
    ) -> Result<Option<(u32, f64)>> {
        let GivenParameters { threshold, admission, .. } = self.given;
        if let Some(threshold) = threshold {
            return Ok(Some((threshold, admission.unwrap_or(0.0))));
        }
        let computed = computed()?;
        Ok(computed.map(|(h, p)| (h, admission.unwrap_or(p))))
    }

    fn check_budget(&self, choices: u32) -> Result<()> {
        let access_budget = self.access_budget;
        if !(access_budget > 1.0 && access_budget < f64::from(choices)) {
            return Err(Error::InvalidArgument {
                what: "access budget",
                why: "expected a number above 1 and below the number of \
                      choices",
            });
        }
        Ok(())
    }

    /// The best balance, at the boundary of the region.
    fn optimum(&self, choices: u32, load: f64) -> Result<SchemeBalance> {
        // One choice has no use for an access budget above 1.
        if choices == 1 {
            let bound = single::optimal(load, self.single_overflow())?;
            return Ok(SchemeBalance {
                access_budget: 1.0,
                threshold: bound.threshold(),
                admission: bound.admission(),
                level_shares: vec![1.0],
                overflow_fraction: bound.overflow_fraction(),
                loads: bound.distribution().clone(),
            });
        }
        self.check_budget(choices)?;
        let access_budget = self.access_budget;
        Ok(match self.scheme {
            Scheme::Multilevel => {
                let (levels, bound) =
                    multilevel::optimal(access_budget, load, choices)?;
                SchemeBalance {
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
                SchemeBalance {
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

/// One array, at a given threshold and admission.
fn sequential_balance(
    load: f64,
    choices: u32,
    threshold: u32,
    admission: f64,
) -> Result<SchemeBalance> {
    let run = sequential::run(load, choices, threshold, admission)?;
    Ok(SchemeBalance {
        access_budget: run.access_budget,
        threshold: Some(threshold),
        admission,
        level_shares: vec![1.0; choices as usize],
        overflow_fraction: run.overflow_fraction,
        loads: run.distribution,
    })
}

/// Relative sizes as shares that sum to 1.
fn normalised(sizes: &[f64]) -> Result<Vec<f64>> {
    let sum: f64 = sizes.iter().sum();
    let valid = sum.is_finite() && sizes.iter().all(|&size| size > 0.0);
    if !valid || sizes.len() > MAX_CHOICES {
        return Err(Error::InvalidArgument {
            what: "level shares",
            why: "expected 1 to 8 positive numbers",
        });
    }
    Ok(sizes.iter().map(|size| size / sum).collect())
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
