//! From what is wanted to a balanced filter.

use alloc::vec::Vec;

use tamis_theory::balanced::{Lookup, fluid, list};
use tamis_theory::{Prediction, block, split, tune};

use super::Balanced;
use super::shape::{Refusal, Shape, Threshold};
use crate::balance::{SchemeSettings, level_sizes};
use crate::error::{Error, Result};
use crate::filter::builder::round_up;
use crate::key::KeyHasher;
use crate::overflow::Overflow;
use crate::placement::{Admission, Scheme};

/// Builds a balanced filter: say how many keys, and either the
/// false-positive rate or the bits per key.
///
/// Without more it takes the best design known for that memory: levels, an
/// absorbing last one, blocks that refuse by their set bits, and tracking
/// bits so that a non-member reads at most [`max_reads_miss`] blocks (1.25
/// unless said otherwise). Finding it takes up to seconds; `resolve` it once
/// to build many.
///
/// Any of [`scheme`](Self::scheme), [`access_budget`](Self::access_budget),
/// [`choices`](Self::choices), [`overflow`](Self::overflow),
/// [`tracking_bits`](Self::tracking_bits) or
/// [`threshold_by_popcount`](Self::threshold_by_popcount) asks for a
/// particular design instead, completed by the paper's: multilevel, a = 1.2,
/// d = 3, an overflow list, a counter in the block, and no tracking bits.
///
/// Bits per key are those of the blocks, as in the paper; a list comes on
/// top, and [`Stats::bits_per_key`](crate::Stats::bits_per_key) counts it.
///
/// [`max_reads_miss`]: Self::max_reads_miss
///
/// ```
/// use tamis::{Balanced, Filter, Overflow, Scheme};
///
/// // The filter of the paper's section 10.
/// let filter = Balanced::builder()
///     .items(6554)
///     .bits_per_key(40.0)
///     .block_bits(256)
///     .scheme(Scheme::Multilevel)
///     .access_budget(1.2)
///     .choices(3)
///     .overflow(Overflow::List)
///     .probes(28)
///     .build()?;
/// assert_eq!(filter.level_blocks(), [854, 146, 25]);
/// assert!((filter.stats().design_fpr / 2.0e-7 - 1.0).abs() < 0.01);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BalancedBuilder {
    items: Option<u64>,
    size: Size,
    block_bits: u32,
    probes: Option<u32>,
    hasher: KeyHasher,
    max_reads_miss: f64,
    settings: Option<Settings>,
}

/// What decides the size.
#[derive(Debug, Clone)]
enum Size {
    Unknown,
    /// A setting was changed after it had been computed.
    Stale,
    Fpr(f64),
    BitsPerKey(f64),
    Known(Design),
}

/// A particular design.
#[derive(Debug, Clone, Copy)]
struct Settings {
    scheme: Scheme,
    access_budget: f64,
    choices: u32,
    overflow: Overflow,
    overflow_fraction: f64,
    tracking_bits: u32,
    by_popcount: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scheme: Scheme::Multilevel,
            access_budget: 1.2,
            choices: 3,
            overflow: Overflow::List,
            overflow_fraction: 0.005,
            tracking_bits: 0,
            by_popcount: false,
        }
    }
}

/// A design for any number of keys.
#[derive(Debug, Clone)]
struct Design {
    scheme: Scheme,
    /// The share of each level; for one array its number of choices.
    shares: Vec<f64>,
    refusal: Refusal,
    overflow: Overflow,
    tracking_bits: u32,
    prediction: Prediction,
}

impl BalancedBuilder {
    pub(super) fn new() -> Self {
        Self {
            items: None,
            size: Size::Unknown,
            block_bits: 512,
            probes: None,
            hasher: KeyHasher::default(),
            max_reads_miss: 1.25,
            settings: None,
        }
    }

    /// How many keys will be inserted.
    ///
    /// ```
    /// use tamis::{Balanced, Filter};
    /// let filter = Balanced::builder().items(50).bits_per_key(20.0).build()?;
    /// assert_eq!(filter.stats().design_items, 50);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn items(self, items: u64) -> Self {
        Self { items: Some(items), ..self }
    }

    /// Size by the false-positive rate wanted with all keys inserted.
    ///
    /// ```
    /// use tamis::{Balanced, Filter};
    /// let filter = Balanced::builder()
    ///     .items(50)
    ///     .fpr(1e-5)
    ///     .tracking_bits(8)
    ///     .build()?;
    /// assert!(filter.stats().design_fpr <= 1e-5);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn fpr(self, fpr: f64) -> Self {
        Self { size: Size::Fpr(fpr), ..self }
    }

    /// Size by memory: bits of the blocks per key (beta).
    ///
    /// ```
    /// use tamis::Balanced;
    /// let filter =
    ///     Balanced::builder().items(5120).bits_per_key(30.0).build()?;
    /// assert_eq!(filter.level_blocks().iter().sum::<u64>(), 300);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(self, bits_per_key: f64) -> Self {
        Self { size: Size::BitsPerKey(bits_per_key), ..self }
    }

    /// Blocks of 512 bits (a cache line, the default) or 256.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// assert!(builder.block_bits(300).build().is_err());
    /// ```
    #[must_use]
    pub fn block_bits(self, block_bits: u32) -> Self {
        Self { block_bits, ..self.changed() }
    }

    /// Bits set per key (k), 1 to 32, instead of about the best number.
    /// Needs a particular design.
    ///
    /// ```
    /// use tamis::{Balanced, Scheme};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// let filter = builder.scheme(Scheme::Single).probes(9).build()?;
    /// assert_eq!(filter.probes(), 9);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn probes(self, probes: u32) -> Self {
        Self { probes: Some(probes), ..self.changed() }
    }

    /// How keys are hashed; XXH3 with seed 0 unless said otherwise.
    ///
    /// ```
    /// use tamis::{Balanced, Filter, KeyHasher};
    /// let filter = Balanced::builder()
    ///     .items(9)
    ///     .bits_per_key(20.0)
    ///     .hasher(KeyHasher::xxh3(7))
    ///     .build()?;
    /// assert_eq!(filter.hasher().seed(), 7);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(self, hasher: KeyHasher) -> Self {
        Self { hasher, ..self }
    }

    /// The most blocks a non-member may read on average, if the design is
    /// left open.
    ///
    /// ```
    /// use tamis::{Balanced, Filter};
    /// let builder = Balanced::builder().items(9).bits_per_key(24.0);
    /// let filter = builder.max_reads_miss(1.1).build()?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn max_reads_miss(self, max_reads_miss: f64) -> Self {
        Self { max_reads_miss, ..self.changed() }
    }

    /// How blocks are proposed.
    ///
    /// ```
    /// use tamis::{Balanced, Scheme};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// let filter = builder.scheme(Scheme::Sequential).build()?;
    /// assert_eq!(filter.scheme(), Scheme::Sequential);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn scheme(self, scheme: Scheme) -> Self {
        self.with(|settings| settings.scheme = scheme)
    }

    /// The average number of blocks read per insertion (a); SINGLE has 1.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// assert!(builder.access_budget(1.1).build().is_ok());
    /// ```
    #[must_use]
    pub fn access_budget(self, access_budget: f64) -> Self {
        self.with(|settings| settings.access_budget = access_budget)
    }

    /// Blocks proposed per key (d), 1 to 8; SINGLE has 1.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// assert_eq!(builder.choices(2).build()?.level_blocks().len(), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn choices(self, choices: u32) -> Self {
        self.with(|settings| settings.choices = choices)
    }

    /// Where a key goes that every block refused.
    ///
    /// ```
    /// use tamis::{Balanced, Overflow};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// assert!(builder.overflow(Overflow::First).build().is_ok());
    /// ```
    #[must_use]
    pub fn overflow(self, overflow: Overflow) -> Self {
        self.with(|settings| settings.overflow = overflow)
    }

    /// The share of keys that SINGLE may refuse (gamma), 0.5 % unless said
    /// otherwise; the other schemes take the least they can.
    ///
    /// ```
    /// use tamis::{Balanced, Scheme};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// let single = builder.scheme(Scheme::Single).overflow_fraction(0.01);
    /// assert!(single.build().is_ok());
    /// ```
    #[must_use]
    pub fn overflow_fraction(self, overflow_fraction: f64) -> Self {
        self.with(|settings| settings.overflow_fraction = overflow_fraction)
    }

    /// Bits in each block that remember which classes of keys it refused
    /// (t), 0 to 32.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// assert!(builder.tracking_bits(8).build().is_ok());
    /// ```
    #[must_use]
    pub fn tracking_bits(self, tracking_bits: u32) -> Self {
        self.with(|settings| settings.tracking_bits = tracking_bits)
    }

    /// Let blocks refuse by their set bits instead of a counter. The access
    /// budget is then met only about.
    ///
    /// ```
    /// use tamis::{Balanced, Threshold};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// let filter = builder.threshold_by_popcount(true).build()?;
    /// assert!(matches!(filter.threshold(), Threshold::Popcount { .. }));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn threshold_by_popcount(self, by_popcount: bool) -> Self {
        self.with(|settings| settings.by_popcount = by_popcount)
    }

    fn with(self, set: impl FnOnce(&mut Settings)) -> Self {
        let mut this = self.changed();
        set(this.settings.get_or_insert_with(Settings::default));
        this
    }

    /// A design that has been computed is not one for other settings.
    fn changed(self) -> Self {
        match self.size {
            Size::Known(_) => Self { size: Size::Stale, ..self },
            _ => self,
        }
    }

    /// Asks the theory now: the builder returned builds filters of any
    /// number of items without computing the design again.
    ///
    /// # Errors
    ///
    /// [`Error::Infeasible`] if there is no such design,
    /// [`Error::InvalidArgument`] if no size was given, or if a setting was
    /// changed after an earlier call.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let builder = Balanced::builder().bits_per_key(24.0).resolve()?;
    /// let small = builder.clone().items(1000).build()?;
    /// let large = builder.items(9000).build()?;
    /// assert_eq!(small.probes(), large.probes());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn resolve(self) -> Result<Self> {
        Ok(Self { size: Size::Known(self.design()?), ..self })
    }

    /// What the design is predicted to do at its design load.
    ///
    /// # Errors
    ///
    /// Those of [`resolve`](Self::resolve).
    ///
    /// ```
    /// use tamis::Balanced;
    /// let builder = Balanced::builder().bits_per_key(24.0);
    /// assert!(builder.predict()?.reads_miss <= 1.25);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn predict(&self) -> Result<Prediction> {
        Ok(self.design()?.prediction)
    }

    fn design(&self) -> Result<Design> {
        if !matches!(self.block_bits, 256 | 512) {
            return Err(Error::InvalidArgument {
                what: "block bits",
                why: "a block has 256 or 512 bits",
            });
        }
        match &self.size {
            Size::Unknown => Err(Error::InvalidArgument {
                what: "size",
                why: "give a false-positive rate or bits per key",
            }),
            Size::Stale => Err(Error::InvalidArgument {
                what: "settings",
                why: "changed after the design was resolved; give the \
                          size again",
            }),
            Size::Known(design) => Ok(design.clone()),
            Size::BitsPerKey(bits) => self.design_at(*bits),
            Size::Fpr(target) => self.design_for(*target),
        }
    }

    fn design_at(&self, bits_per_key: f64) -> Result<Design> {
        match &self.settings {
            Some(settings) => self.particular(settings, bits_per_key),
            None => self.tuned(bits_per_key),
        }
    }

    /// The least bits per key whose design reaches a rate.
    ///
    /// The logarithm of the rate is nearly a straight line in the bits per
    /// key, so a few secant steps from the split filter's size get there;
    /// integers in the design make it a line with small steps.
    fn design_for(&self, target: f64) -> Result<Design> {
        let start = split::for_fpr(self.block_bits, target)?.bits_per_key;
        let mut bits = round_up(start);
        if self.settings.is_none() && bits < LEAST_TUNED_BITS {
            return Err(Error::InvalidArgument {
                what: "false-positive rate",
                why: "so high a rate needs no balancing",
            });
        }
        let mut best: Option<Design> = None;
        let mut slope = -0.45;
        let mut last: Option<(f64, f64)> = None;
        for _ in 0..MOST_DESIGNS {
            let design = self.design_at(bits)?;
            let excess = libm::log(design.prediction.fpr / target);
            let good = excess <= 0.0;
            let smaller = best.as_ref().is_none_or(|best| {
                design.prediction.bits_per_key < best.prediction.bits_per_key
            });
            if good && smaller {
                best = Some(design);
            }
            if good && excess > -CLOSE {
                break;
            }
            if let Some((other, there)) = last {
                let secant = (excess - there) / (bits - other);
                if secant.is_finite() && secant < -0.05 {
                    slope = secant;
                }
            }
            last = Some((bits, excess));
            // Aim a little below the target.
            bits = round_up(bits - (excess + 0.5 * CLOSE) / slope);
        }
        best.ok_or(Error::InvalidArgument {
            what: "false-positive rate",
            why: "no balanced design reaches it",
        })
    }

    /// The best design for the memory.
    fn tuned(&self, bits_per_key: f64) -> Result<Design> {
        if self.probes.is_some() {
            return Err(Error::InvalidArgument {
                what: "probes",
                why: "can be chosen with a particular design only",
            });
        }
        let mode = Some(tune::Mode::Popcount);
        let found = tune::best(
            self.block_bits,
            bits_per_key,
            self.max_reads_miss,
            mode,
        )?;
        let tune::Design { level_shares, refuse, .. } = &found;
        let refusal = match refuse {
            tamis_theory::balanced::absorbing::Refuse::Popcount(set_bits) => {
                Refusal::Popcount { set_bits: *set_bits }
            }
            // The search was told the mode.
            tamis_theory::balanced::absorbing::Refuse::Counter(threshold)
            | tamis_theory::balanced::absorbing::Refuse::BuildCounter(
                threshold,
            ) => Refusal::Count(Admission::new(*threshold, 0.0)),
        };
        Ok(Design {
            scheme: Scheme::Multilevel,
            shares: level_shares.clone(),
            refusal,
            overflow: Overflow::Absorb,
            tracking_bits: found.tracking_bits,
            prediction: found.prediction,
        })
    }

    /// The design asked for, with threshold and admission from the theory.
    fn particular(
        &self,
        settings: &Settings,
        bits_per_key: f64,
    ) -> Result<Design> {
        let Settings { scheme, access_budget, tracking_bits, .. } = *settings;
        if tracking_bits > 32 {
            return Err(Error::InvalidArgument {
                what: "tracking bits",
                why: "expected at most 32",
            });
        }
        let limits = SchemeSettings {
            scheme,
            access_budget,
            choices: settings.choices,
            overflow_fraction: settings.overflow_fraction,
        };
        let choices = limits.choices()?;
        let load = f64::from(self.block_bits) / bits_per_key;
        let optimum = limits.optimum(load)?;
        let (admission, shares) = (optimum.admission, optimum.level_shares);
        let like = match scheme {
            _ if choices == 1 => list::Scheme::Single {
                overflow_fraction: settings.overflow_fraction,
            },
            Scheme::Multilevel => {
                list::Scheme::Multilevel { access_budget, choices }
            }
            Scheme::Sequential | Scheme::Single => {
                list::Scheme::Sequential { access_budget, choices }
            }
        };
        // No threshold at all means that no block ever refuses.
        let threshold = optimum.threshold.unwrap_or(126).min(126);
        let around = match self.probes {
            Some(probes) => probes..=probes,
            None => {
                let lookup = match tracking_bits {
                    0 => Lookup::Coin,
                    bits => Lookup::Tracking(bits),
                };
                let listed =
                    list::best(self.block_bits, bits_per_key, like, lookup)?;
                let best = listed.prediction.probes;
                // The overflow moves the optimum by one at most.
                best.saturating_sub(1).max(1)
                    ..=(best + 1).min(tamis_theory::MAX_PROBES)
            }
        };
        let mut best: Option<Design> = None;
        for probes in around {
            let refusal = match settings.by_popcount {
                false => {
                    Refusal::new(Threshold::Count { threshold, admission })?
                }
                true => {
                    let bits = self.block_bits - tracking_bits;
                    let keys = f64::from(threshold) + admission;
                    Refusal::Popcount {
                        set_bits: set_bits(bits, probes, keys)?,
                    }
                }
            };
            let outcome = fluid::predict(&fluid::Design {
                block_bits: self.block_bits,
                bits_per_key,
                choices: match scheme {
                    Scheme::Multilevel if choices > 1 => {
                        fluid::Choices::Multilevel(shares.clone())
                    }
                    _ => fluid::Choices::Sequential(choices),
                },
                refuse: match refusal.threshold() {
                    Threshold::Count { threshold, admission } => {
                        fluid::Refuse::Count { threshold, admission }
                    }
                    Threshold::Popcount { set_bits } => {
                        fluid::Refuse::Popcount(set_bits)
                    }
                },
                overflow: match settings.overflow {
                    Overflow::List => fluid::Overflow::List,
                    Overflow::First => fluid::Overflow::First,
                    Overflow::Random => fluid::Overflow::Random,
                    Overflow::Absorb => fluid::Overflow::Absorb,
                },
                probes,
                tracking_bits,
            })?;
            let better = best.as_ref().is_none_or(|best| {
                outcome.prediction.fpr < best.prediction.fpr
            });
            if better {
                best = Some(Design {
                    scheme,
                    shares: shares.clone(),
                    refusal,
                    overflow: settings.overflow,
                    tracking_bits,
                    prediction: outcome.prediction,
                });
            }
        }
        best.ok_or(Error::InvalidArgument {
            what: "probes",
            why: "expected 1 to 32",
        })
    }

    /// The empty filter.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a setting is missing or out of range,
    /// [`Error::Infeasible`] if there is no such design,
    /// [`Error::Allocation`] if there is not enough memory.
    ///
    /// ```
    /// use tamis::{Balanced, Error};
    /// let nothing_said = Balanced::builder().build().unwrap_err();
    /// assert!(matches!(nothing_said, Error::InvalidArgument { .. }));
    /// ```
    pub fn build(&self) -> Result<Balanced> {
        let design = self.design()?;
        let items = self.items.ok_or(Error::InvalidArgument {
            what: "items",
            why: "say how many keys to expect",
        })?;
        let Prediction { bits_per_key, probes, fpr, .. } = design.prediction;
        let bits = items as f64 * bits_per_key;
        let blocks = libm::ceil(bits / f64::from(self.block_bits)).max(1.0);
        if blocks >= (1u64 << 55) as f64 {
            return Err(Error::Allocation { bytes: u64::MAX });
        }
        let shape = Shape {
            scheme: design.scheme,
            overflow: design.overflow,
            refusal: design.refusal,
            block_bits: self.block_bits,
            probes,
            tracking_bits: design.tracking_bits,
            levels: match design.scheme {
                Scheme::Multilevel => {
                    let least = design.shares.len() as u64;
                    level_sizes((blocks as u64).max(least), &design.shares)
                }
                _ => alloc::vec![blocks as u64; design.shares.len()],
            },
        };
        Balanced::with_shape(shape, self.hasher, items, fpr)
    }
}

/// Bits per key from which on there are tuned designs.
const LEAST_TUNED_BITS: f64 = 4.0;
/// Designs tried for one false-positive rate.
const MOST_DESIGNS: usize = 10;
/// A rate this close below the target (in its logarithm) is as good.
const CLOSE: f64 = 0.005;

/// The set bits that `keys` keys leave on average.
fn set_bits(bits: u32, probes: u32, keys: f64) -> Result<u32> {
    // One probe of a block is the share of its bits set.
    let clear = 1.0 - block::approximate(bits, 1, keys * f64::from(probes))?;
    Ok(libm::round(f64::from(bits) * (1.0 - clear)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_has_a_design() {
        for scheme in Scheme::ALL {
            for overflow in Overflow::ALL {
                for by_popcount in [false, true] {
                    for tracking_bits in [0, 1, 8] {
                        let builder = Balanced::builder()
                            .bits_per_key(20.0)
                            .block_bits(256)
                            .scheme(scheme)
                            .overflow(overflow)
                            .threshold_by_popcount(by_popcount)
                            .tracking_bits(tracking_bits)
                            .probes(12);
                        let p = builder.predict().unwrap();
                        assert!(p.fpr > 1e-6 && p.fpr < 1e-2, "{p:?}");
                        assert!(p.reads_miss < 3.0, "{p:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn rates_are_met_from_below() {
        for target in [1e-3, 1e-5] {
            let builder = Balanced::builder().fpr(target).tracking_bits(8);
            let p = builder.predict().unwrap();
            assert!(p.fpr <= target && p.fpr > 0.9 * target, "{p:?}");
        }
    }
}
