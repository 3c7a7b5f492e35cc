//! The design of a balanced filter.

use tamis_theory::balanced::absorbing::Refuse;
use tamis_theory::balanced::{Lookup, fluid, list};
use tamis_theory::{Prediction, block, split, tune};

use super::Balanced;
use super::shape::{BalancedShape, Refusal, Threshold};
use crate::error::{Error, Result};
use crate::filter::builder::{Buildable, Builder, Size, Sizing, round_up};
use crate::overflow::Overflow;
use crate::placement::{Admission, MAX_CHOICES, Proposals, Scheme};
use crate::placement_design::{GivenParameters, SchemeSettings, level_sizes};

/// BalancedSettings of a balanced filter alone.
#[derive(Debug, Clone, Copy)]
pub struct BalancedSettings {
    probes: Option<u32>,
    max_reads_miss: f64,
    particular: Option<Particular>,
}

impl Default for BalancedSettings {
    fn default() -> Self {
        Self {
            probes: None,
            max_reads_miss: tune::MAX_READS_MISS,
            particular: None,
        }
    }
}

/// A particular design.
#[derive(Debug, Clone, Copy)]
struct Particular {
    scheme: Scheme,
    access_budget: f64,
    choices: u32,
    overflow: Overflow,
    overflow_fraction: Option<f64>,
    list_share: Option<f64>,
    threshold: Option<u32>,
    admission: Option<f64>,
    level_shares: Option<Shares>,
    tracking_bits: u32,
    by_set_bits: bool,
}

impl Default for Particular {
    fn default() -> Self {
        Self {
            scheme: Scheme::Multilevel,
            access_budget: 1.2,
            choices: 3,
            overflow: Overflow::List,
            overflow_fraction: None,
            list_share: None,
            threshold: None,
            admission: None,
            level_shares: None,
            tracking_bits: 0,
            by_set_bits: false,
        }
    }
}

/// A design for any number of keys.
#[derive(Debug, Clone, Copy)]
pub struct BalancedDesign {
    scheme: Scheme,
    shares: Shares,
    refusal: Refusal,
    overflow: Overflow,
    /// Most keys of the list, as a share of all.
    list_share: Option<f64>,
    tracking_bits: u32,
    prediction: Prediction,
}

/// The share of each level; of one array for every choice.
#[derive(Debug, Clone, Copy)]
struct Shares {
    shares: [f64; MAX_CHOICES],
    choices: usize,
}

impl Shares {
    fn new(given: &[f64]) -> Result<Self> {
        let mut shares = [0.0; MAX_CHOICES];
        let choices = given.len();
        match shares.get_mut(..choices) {
            Some(shares) => shares.copy_from_slice(given),
            None => {
                return Err(Error::InvalidArgument {
                    what: "choices",
                    why: "expected 1 for single, else 1 to 8",
                });
            }
        }
        Ok(Self { shares, choices })
    }

    fn as_slice(&self) -> &[f64] {
        &self.shares[..self.choices]
    }
}

impl Builder<Balanced> {
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
        self.with(|settings| settings.probes = Some(probes))
    }

    /// The most blocks that a non-member reads on average, for the best
    /// design; a particular design ignores it.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let builder = Balanced::builder().items(9).bits_per_key(24.0);
    /// let filter = builder.max_reads_miss(1.1).build()?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn max_reads_miss(self, max_reads_miss: f64) -> Self {
        self.with(|settings| settings.max_reads_miss = max_reads_miss)
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
        self.particular(|design| design.scheme = scheme)
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
        self.particular(|design| design.access_budget = access_budget)
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
        self.particular(|design| design.choices = choices)
    }

    /// Placement of keys that every block refused.
    ///
    /// ```
    /// use tamis::{Balanced, Overflow};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// assert!(builder.overflow(Overflow::First).build().is_ok());
    /// ```
    #[must_use]
    pub fn overflow(self, overflow: Overflow) -> Self {
        self.particular(|design| design.overflow = overflow)
    }

    /// The share of keys that every block refuses (gamma): for SINGLE 0.5 % by
    /// default, for the other schemes the least they can reach.
    ///
    /// A larger share takes the other schemes inside their region of
    /// optimality. The paper then stops reading at the access budget and lists
    /// the remaining keys unread, where its lookups miss them. This filter
    /// reads on, so that insertions exceed the budget and fewer keys are
    /// refused: see `reads_hit` of [`predict`](Self::predict).
    ///
    /// ```
    /// use tamis::{Balanced, Scheme};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// let single = builder.scheme(Scheme::Single).overflow_fraction(0.01);
    /// assert!(single.build().is_ok());
    ///
    /// let inside = builder.access_budget(1.1).overflow_fraction(0.02);
    /// assert!(inside.predict()?.reads_hit > 1.1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn overflow_fraction(self, overflow_fraction: f64) -> Self {
        self.particular(|design| {
            design.overflow_fraction = Some(overflow_fraction);
        })
    }

    /// Bounds the overflow list, like the content-addressable memory of a
    /// network device: the most keys it holds, as a share of the design items,
    /// at least the share that the design refuses.
    ///
    /// Once it is full, [`insert`](Balanced::insert) puts a refused key into
    /// its first block, where every lookup begins, so that no key is lost and
    /// the rate rises. [`try_insert`](Balanced::try_insert) returns
    /// [`Error::ListFull`] instead and changes nothing. The limit is stored as
    /// `list-capacity` in the metadata.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let builder = Balanced::builder().items(9000).bits_per_key(20.0);
    /// let filter = builder.list_share(0.01).build()?;
    /// assert_eq!(filter.list_capacity(), Some(90));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn list_share(self, share: f64) -> Self {
        self.particular(|design| design.list_share = Some(share))
    }

    /// The load below which a block takes every key (h), or the number of its
    /// set bits with [`refuse_by_set_bits`](Self::refuse_by_set_bits), instead
    /// of the best one. Without [`admission`](Self::admission) no coin is
    /// flipped: a block takes at most h keys, as in section 2 of the paper.
    ///
    /// ```
    /// use tamis::{Balanced, Threshold};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// let filter = builder.threshold(25).build()?;
    /// let expected = Threshold::Keys { threshold: 25, admission: 0.0 };
    /// assert_eq!(filter.threshold(), expected);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn threshold(self, threshold: u32) -> Self {
        self.particular(|design| design.threshold = Some(threshold))
    }

    /// The chance that a block exactly at the threshold takes one more key
    /// (p), instead of the best one.
    ///
    /// ```
    /// use tamis::{Balanced, Threshold};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// let filter = builder.threshold(25).admission(0.25).build()?;
    /// let expected = Threshold::Keys { threshold: 25, admission: 0.25 };
    /// assert_eq!(filter.threshold(), expected);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn admission(self, admission: f64) -> Self {
        self.particular(|design| design.admission = Some(admission))
    }

    /// The relative sizes of the levels, of any positive sum, instead of the
    /// best ones (Theorem 6); their number replaces
    /// [`choices`](Self::choices). Without [`threshold`](Self::threshold) the
    /// threshold and the admission are those that meet the access budget.
    ///
    /// ```
    /// use tamis::Balanced;
    /// // The shape of Fig. 1 of the paper.
    /// let builder = Balanced::builder().items(21).bits_per_key(512.0 / 3.0);
    /// let builder = builder.level_shares(&[4.0, 2.0, 1.0]).threshold(3);
    /// assert_eq!(builder.build()?.level_blocks(), [4, 2, 1]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn level_shares(self, shares: &[f64]) -> Self {
        // More than 8 are refused with the number of choices.
        let shares = Shares::new(shares)
            .unwrap_or(Shares { shares: [0.0; MAX_CHOICES], choices: 0 });
        self.particular(|design| design.level_shares = Some(shares))
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
        self.particular(|design| design.tracking_bits = tracking_bits)
    }

    /// Lets blocks refuse by their set bits instead of a counter. The
    /// access budget is then met only approximately.
    ///
    /// ```
    /// use tamis::{Balanced, Threshold};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// let filter = builder.refuse_by_set_bits().build()?;
    /// assert!(matches!(filter.threshold(), Threshold::SetBits { .. }));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn refuse_by_set_bits(self) -> Self {
        self.particular(|design| design.by_set_bits = true)
    }

    /// Lets blocks refuse by a counter of their keys, as in the paper.
    ///
    /// ```
    /// use tamis::{Balanced, Threshold};
    /// let builder = Balanced::builder().items(9).bits_per_key(20.0);
    /// let filter = builder.refuse_by_keys().build()?;
    /// assert!(matches!(filter.threshold(), Threshold::Keys { .. }));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn refuse_by_keys(self) -> Self {
        self.particular(|design| design.by_set_bits = false)
    }

    fn particular(self, set: impl FnOnce(&mut Particular)) -> Self {
        self.with(|settings| {
            set(settings.particular.get_or_insert_with(Particular::default));
        })
    }
}

impl Buildable for Balanced {
    type Settings = BalancedSettings;
    type Design = BalancedDesign;

    fn design(
        sizing: &Sizing,
        settings: &BalancedSettings,
    ) -> Result<BalancedDesign> {
        let size = sizing.size()?;
        let block_bits = sizing.block_bits;
        if !matches!(block_bits, 256 | 512) {
            return Err(Error::InvalidArgument {
                what: "block bits",
                why: "a block has 256 or 512 bits",
            });
        }
        let search = DesignSearch { block_bits, settings };
        match (&settings.particular, size) {
            (None, size) => search.tuned(size),
            (Some(particular), Size::BitsPerKey(bits)) => {
                search.particular(particular, bits, None)
            }
            (Some(particular), Size::Fpr(target)) => {
                search.particular_for(particular, target)
            }
        }
    }

    fn prediction(design: &BalancedDesign) -> Prediction {
        design.prediction
    }

    fn build(
        sizing: &Sizing,
        settings: &Self::Settings,
        design: &Self::Design,
        items: u64,
    ) -> Result<Self> {
        let block_bits = sizing.block_bits;
        let Prediction { bits_per_key, probes, fpr, .. } = design.prediction;
        let bits = items as f64 * bits_per_key;
        let blocks = libm::ceil(bits / f64::from(block_bits)).max(1.0);
        if blocks >= (1u64 << 55) as f64 {
            return Err(Error::Allocation { bytes: u64::MAX });
        }
        let blocks = blocks as u64;
        let shares = design.shares.as_slice();
        let levels = match design.scheme {
            Scheme::Multilevel => {
                level_sizes(blocks.max(shares.len() as u64), shares)
            }
            _ => alloc::vec![blocks; shares.len()],
        };
        let mut shape = BalancedShape {
            scheme: design.scheme,
            overflow: design.overflow,
            refusal: design.refusal,
            block_bits,
            probes,
            tracking_bits: design.tracking_bits,
            proposals: Proposals::new(design.scheme, &levels),
        };
        let refusal = (settings.particular, shape.refusal);
        let (None, Refusal::Popcount { set_bits }) = refusal else {
            let filter = Self::with_shape(shape, sizing.hasher, items, fpr)?;
            return match design.list_share {
                None => Ok(filter),
                // The cast saturates, above any memory.
                Some(share) => {
                    filter.with_list_capacity((share * items as f64) as u64)
                }
            };
        };
        // Below that the rate is as good as zero, and the theory has none.
        let least = blocks.saturating_mul(block_bits.into()) / 1000 + 1;
        let keys = items.max(least);
        let design = tune::Proportions {
            block_bits,
            level_shares: shares,
            refuse: Refuse::Popcount(set_bits),
            probes,
            tracking_bits: design.tracking_bits,
            max_reads_miss: settings.max_reads_miss,
        };
        let whole = match sizing.size()? {
            Size::Fpr(target) => design.whole_for_fpr(keys, blocks, target),
            Size::BitsPerKey(_) => {
                design.whole(keys, blocks, fpr * (1.0 + CLOSE))
            }
        }?;
        if let Refuse::Popcount(set_bits) = whole.refuse {
            shape.refusal = Refusal::Popcount { set_bits };
        }
        shape.probes = whole.probes;
        shape.proposals = Proposals::new(shape.scheme, &whole.levels);
        Self::with_shape(shape, sizing.hasher, items, whole.prediction.fpr)
    }
}

/// The search for a design in blocks of this size.
struct DesignSearch<'a> {
    block_bits: u32,
    settings: &'a BalancedSettings,
}

impl DesignSearch<'_> {
    /// A particular design with the least bits per key that reach a rate.
    ///
    /// The logarithm of the rate is nearly a straight line in the bits per
    /// key, so a few secant steps from the split filter's size get there;
    /// integers in the design make it a line with small steps.
    fn particular_for(
        &self,
        settings: &Particular,
        target: f64,
    ) -> Result<BalancedDesign> {
        let start = split::for_fpr(self.block_bits, target)?.bits_per_key;
        let mut bits = round_up(start);
        let mut best: Option<BalancedDesign> = None;
        let mut slope = -0.45;
        let mut last: Option<(f64, f64)> = None;
        let mut near: Option<BalancedDesign> = None;
        for _ in 0..MOST_DESIGNS {
            let design = self.particular(settings, bits, near.as_ref())?;
            near = Some(design);
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

    /// The best design for a memory, or for a rate.
    fn tuned(&self, size: Size) -> Result<BalancedDesign> {
        if self.settings.probes.is_some() {
            return Err(Error::InvalidArgument {
                what: "probes",
                why: "can be chosen with a particular design only",
            });
        }
        let mode = Some(tune::Mode::Popcount);
        let (bits, reads) = (self.block_bits, self.settings.max_reads_miss);
        let found = match size {
            Size::BitsPerKey(bits_per_key) => {
                tune::best(bits, bits_per_key, reads, mode)
            }
            Size::Fpr(target) => tune::for_fpr(bits, target, reads, mode),
        }?;
        let tune::Design { level_shares, refuse, .. } = &found;
        let refusal = match refuse {
            Refuse::Popcount(set_bits) => {
                Refusal::Popcount { set_bits: *set_bits }
            }
            // Unreachable: `mode` is popcount.
            Refuse::Counter(threshold) | Refuse::BuildCounter(threshold) => {
                Refusal::Count(Admission::new(*threshold, 0.0))
            }
        };
        Ok(BalancedDesign {
            scheme: Scheme::Multilevel,
            shares: Shares::new(level_shares)?,
            refusal,
            overflow: Overflow::Absorb,
            list_share: None,
            tracking_bits: found.tracking_bits,
            prediction: found.prediction,
        })
    }

    /// A particular design, with threshold and admission from the theory.
    /// `near` is the design for about as much memory: its probes are the
    /// first to be tried.
    fn particular(
        &self,
        settings: &Particular,
        bits_per_key: f64,
        near: Option<&BalancedDesign>,
    ) -> Result<BalancedDesign> {
        let Particular { scheme, access_budget, tracking_bits, .. } =
            *settings;
        if tracking_bits > 32 {
            return Err(Error::InvalidArgument {
                what: "tracking bits",
                why: "expected at most 32",
            });
        }
        if settings.by_set_bits && settings.admission.is_some() {
            return Err(Error::InvalidArgument {
                what: "admission",
                why: "a threshold of set bits has none",
            });
        }
        let set_bits_given =
            settings.threshold.filter(|_| settings.by_set_bits);
        let limits = SchemeSettings {
            scheme,
            access_budget,
            choices: settings.choices,
            overflow_fraction: settings.overflow_fraction,
            given: GivenParameters {
                threshold: settings.threshold.xor(set_bits_given),
                admission: settings.admission,
                level_shares: settings
                    .level_shares
                    .as_ref()
                    .map(Shares::as_slice),
            },
        };
        let choices = limits.choices()?;
        let load = f64::from(self.block_bits) / bits_per_key;
        let balance = limits.balance(load)?;
        let (admission, shares) = (balance.admission, balance.level_shares);
        let is_optimal = limits.is_optimal() && set_bits_given.is_none();
        let like = match scheme {
            _ if choices == 1 => list::Scheme::Single {
                overflow_fraction: limits.single_overflow(),
            },
            Scheme::Multilevel => {
                list::Scheme::Multilevel { access_budget, choices }
            }
            Scheme::Sequential | Scheme::Single => {
                list::Scheme::Sequential { access_budget, choices }
            }
        };
        // No threshold at all means that no block ever refuses.
        let threshold = match settings.threshold {
            Some(given) => given,
            None => balance.threshold.unwrap_or(126).min(126),
        };
        let near = near.map(|near| near.prediction.probes);
        let start = match self.settings.probes.or(near) {
            Some(probes) => probes,
            // The descent below finds the best number.
            None if !is_optimal => {
                let probes = core::f64::consts::LN_2 * bits_per_key;
                (probes as u32).clamp(1, tamis_theory::MAX_PROBES)
            }
            None => {
                let lookup = match tracking_bits {
                    0 => Lookup::Coin,
                    bits => Lookup::Tracking(bits),
                };
                let listed =
                    list::best(self.block_bits, bits_per_key, like, lookup)?;
                listed.prediction.probes
            }
        };
        let with_probes = |probes: u32| -> Result<BalancedDesign> {
            let refusal = match settings.by_set_bits {
                false => {
                    Refusal::new(Threshold::Keys { threshold, admission })?
                }
                true => {
                    let bits = self.block_bits - tracking_bits;
                    let keys = f64::from(threshold) + admission;
                    Refusal::Popcount {
                        set_bits: match set_bits_given {
                            Some(given) => given.min(self.block_bits),
                            None => set_bits(bits, probes, keys)?,
                        },
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
                    Threshold::Keys { threshold, admission } => {
                        fluid::Refuse::Count { threshold, admission }
                    }
                    Threshold::SetBits { set_bits } => {
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
            let refused = outcome.overflow_fraction;
            check_list(settings, refused)?;
            Ok(BalancedDesign {
                scheme,
                shares: Shares::new(&shares)?,
                refusal,
                overflow: settings.overflow,
                list_share: settings.list_share,
                tracking_bits,
                prediction: outcome.prediction,
            })
        };
        let mut best = with_probes(start)?;
        if !is_optimal && self.settings.probes.is_none() && near.is_none() {
            for by in [-1, 1] {
                loop {
                    let probes =
                        best.prediction.probes.saturating_add_signed(by);
                    if !(1..=tamis_theory::MAX_PROBES).contains(&probes) {
                        break;
                    }
                    let other = with_probes(probes)?;
                    if other.prediction.fpr >= best.prediction.fpr {
                        break;
                    }
                    best = other;
                }
            }
            return Ok(best);
        }
        // The overflow moves the optimum by one at most.
        for by in [-1, 1] {
            let probes = start.saturating_add_signed(by);
            if self.settings.probes.is_none()
                && best.prediction.probes == start
                && (1..=tamis_theory::MAX_PROBES).contains(&probes)
            {
                let other = with_probes(probes)?;
                if other.prediction.fpr < best.prediction.fpr {
                    best = other;
                }
            }
        }
        Ok(best)
    }
}

/// Refuses a bound of the list that the design exceeds.
fn check_list(settings: &Particular, refused: f64) -> Result<()> {
    let Some(share) = settings.list_share else { return Ok(()) };
    let invalid =
        |why| Err(Error::InvalidArgument { what: "list share", why });
    if settings.overflow != Overflow::List {
        return invalid("only the overflow `list` has a list");
    }
    if !(share >= refused && share <= 1.0) {
        return invalid(
            "expected at least the overflow fraction of the design, which \
             a filter without this limit reports, and at most 1",
        );
    }
    Ok(())
}

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
                for by_set_bits in [false, true] {
                    for tracking_bits in [0, 1, 8] {
                        let mut builder = Balanced::builder()
                            .bits_per_key(20.0)
                            .block_bits(256)
                            .scheme(scheme)
                            .overflow(overflow)
                            .tracking_bits(tracking_bits)
                            .probes(12);
                        if by_set_bits {
                            builder = builder.refuse_by_set_bits();
                        }
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
