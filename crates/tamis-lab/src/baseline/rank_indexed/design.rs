//! The smallest design for a rate, by exhaustive search.

use std::ops::RangeInclusive;

/// Bundles that share extensions.
pub(super) const GROUP: u64 = 256;
/// Largest probability that a group runs out of extensions of one size, or
/// that one of its bundles outgrows both.
const OVERFLOW: f64 = 1e-10;
/// Chains of a bundle: their index is one word.
const CHAINS: RangeInclusive<u32> = 16..=64;
/// Keys of a bundle, on average.
const LOADS: RangeInclusive<f64> = 10.0..=200.0;
/// Slots of a first extension.
const EXTENSIONS: RangeInclusive<u64> = 4..=49;
/// Loads with a probability above 1e-10 at the largest average.
const MAX_LOAD: usize = 400;
/// Bits of a counter, in designs that can remove keys.
pub(super) const COUNTER_BITS: u32 = 2;

/// Sizes of a rank-indexed hash table.
///
/// ```
/// use tamis_lab::baseline::Design;
///
/// let design = Design::search(0.01, false).ok_or("no design")?;
/// assert!((design.bits_per_key() - 10.43).abs() < 0.005);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// Chains of a bundle, at most 64.
    pub chains: u32,
    /// Bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// Whether entries have counters, so that keys can be removed.
    pub counted: bool,
    /// Keys of a bundle, on average.
    pub load: f64,
    /// Slots of every bundle.
    pub slots: u64,
    /// Extensions of bundles with more keys than slots, and further ones of
    /// those that outgrow the first.
    pub tiers: [Extensions; 2],
}

/// Extensions that the 256 bundles of a group share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extensions {
    /// Slots of an extension.
    pub slots: u64,
    /// Extensions of a group.
    pub count: u64,
}

impl Extensions {
    /// Bits of a pointer: the number of an extension, or none.
    pub(super) fn pointer_bits(self) -> u32 {
        u64::BITS - self.count.leading_zeros()
    }
}

impl Design {
    /// The smallest design with this false-positive rate. `None` outside
    /// rates from about 10 % to 1e-15.
    ///
    /// ```
    /// use tamis_lab::baseline::Design;
    /// assert!(Design::search(0.01, true).is_some_and(|d| d.counted));
    /// ```
    pub fn search(rate: f64, counted: bool) -> Option<Self> {
        let shortest = (-rate.log2()).floor().clamp(1.0, 50.0) as u32;
        let mut best: Option<Self> = None;
        for fingerprint_bits in shortest..=shortest + 3 {
            for chains in CHAINS {
                // A chain holds load/chains fingerprints.
                let length = rate * 2f64.powi(fingerprint_bits as i32);
                let load = f64::from(chains) * length;
                if !LOADS.contains(&load) {
                    continue;
                }
                let frame = Self {
                    chains,
                    fingerprint_bits,
                    counted,
                    load,
                    slots: 0,
                    tiers: [Extensions { slots: 0, count: 0 }; 2],
                };
                let all = best.into_iter().chain(frame.filled());
                best = all.min_by(|a, b| {
                    a.bits_per_key().total_cmp(&b.bits_per_key())
                });
            }
        }
        best
    }

    /// The smallest numbers of slots and extensions for the other sizes.
    fn filled(self) -> Option<Self> {
        let above = tails(self.load);
        let spread = self.load.sqrt();
        let from = (self.load - spread) as u64;
        let to = (self.load + 2.5 * spread) as u64;
        // Bundles of a group with more than `from`, `from` + 1, ... keys.
        let exceed = |p: &f64| Some(largest(*p)).filter(|most| *most > 0);
        let most: Vec<u64> =
            above[from as usize..].iter().map_while(exceed).collect();
        let all = from + most.len() as u64;
        let designs = (from..=to).flat_map(|slots| {
            let most = &most;
            EXTENSIONS.filter_map(move |extension| {
                let count =
                    |load: u64| most.get((load - from) as usize).copied();
                let first =
                    Extensions { slots: extension, count: count(slots)? };
                let rest = all.checked_sub(slots + extension)?;
                let count = count(slots + extension)?;
                let second = Extensions { slots: rest, count };
                Some(Self { slots, tiers: [first, second], ..self })
            })
        });
        designs.min_by(|a, b| a.bits_per_key().total_cmp(&b.bits_per_key()))
    }

    /// Bits of an entry, without the bit that marks a successor.
    pub(super) fn entry_bits(&self) -> u32 {
        self.fingerprint_bits + if self.counted { COUNTER_BITS } else { 0 }
    }

    /// Bits of a bundle without extensions: index, pointer, slots.
    pub(super) fn bundle_bits(&self) -> u64 {
        let head = self.chains + self.tiers[0].pointer_bits();
        u64::from(head) + self.slot_bits(self.slots)
    }

    /// Bits of an extension: whether it is in use, in the first tier a
    /// pointer, and slots.
    pub(super) fn extension_bits(&self, tier: usize) -> u64 {
        let pointer = self.tiers.get(tier + 1).map_or(0, |t| t.pointer_bits());
        u64::from(1 + pointer) + self.slot_bits(self.tiers[tier].slots)
    }

    /// Bits of 256 bundles and their extensions.
    pub(super) fn group_bits(&self) -> u64 {
        let tier =
            |tier: usize| self.tiers[tier].count * self.extension_bits(tier);
        GROUP * self.bundle_bits() + tier(0) + tier(1)
    }

    /// Bits of `slots` slots.
    fn slot_bits(&self, slots: u64) -> u64 {
        slots * u64::from(1 + self.entry_bits())
    }

    /// Memory at the average load.
    ///
    /// ```
    /// use tamis_lab::baseline::Design;
    /// let [small, large] = [false, true]
    ///     .map(|counted| Design::search(0.001, counted))
    ///     .map(|design| design.map(|design| design.bits_per_key()));
    /// assert!(small < large);
    /// ```
    pub fn bits_per_key(&self) -> f64 {
        self.group_bits() as f64 / (GROUP as f64 * self.load)
    }

    /// Share of bundles with more keys than `slots`.
    ///
    /// ```
    /// use tamis_lab::baseline::Design;
    /// let design = Design::search(0.01, false).ok_or("no design")?;
    /// assert!(design.above(design.slots) > 0.1);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn above(&self, slots: u64) -> f64 {
        tails(self.load).get(slots as usize).copied().unwrap_or(0.0)
    }
}

/// Probabilities that a Poisson load exceeds 0, 1, 2, ...
fn tails(mean: f64) -> Vec<f64> {
    let term = |term: &mut f64, load: usize| {
        let here = *term;
        *term *= mean / (load + 1) as f64;
        Some(here)
    };
    let shares: Vec<f64> = (0..MAX_LOAD).scan((-mean).exp(), term).collect();
    let mut above = vec![0.0; MAX_LOAD];
    for load in (1..MAX_LOAD).rev() {
        above[load - 1] = above[load] + shares[load];
    }
    above
}

/// The smallest number that the bundles of a group with a property of
/// `probability` exceed with a probability below `OVERFLOW`.
fn largest(probability: f64) -> u64 {
    if probability * (GROUP as f64) < OVERFLOW {
        return 0;
    }
    // Logarithms, because the last term can be below any f64.
    let odds = probability.ln() - (-probability).ln_1p();
    let mut term = GROUP as f64 * probability.ln();
    let mut tail = 0.0;
    for count in (1..=GROUP).rev() {
        tail += term.exp();
        if tail >= OVERFLOW {
            return count;
        }
        term += (count as f64 / (GROUP - count + 1) as f64).ln() - odds;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_poisson_distribution() {
        // 1-e^-2 (1 + 2 + 2 + 4/3).
        let expected = 1.0 - (-2f64).exp() * (1.0 + 2.0 + 2.0 + 4.0 / 3.0);
        assert!((tails(2.0)[3] - expected).abs() < 1e-15);
        assert!((tails(200.0)[399] - 0.0).abs() < 1e-30);
        let mean: f64 = tails(81.92).iter().sum();
        assert!((mean - 81.92).abs() < 1e-9);
    }

    #[test]
    fn pools_are_those_of_the_binomial_distribution() {
        // One bundle of 256 has the property with probability 256 p, two
        // with about (256 p)^2 / 2 = 5e-11.
        assert_eq!(largest(1e-5 / 256.0), 1);
        assert_eq!(largest(1e-4 / 256.0), 2);
        assert_eq!(largest(1e-13), 0);
        // Mean 128, deviation 8, at 6.4 deviations.
        assert!((176..=182).contains(&largest(0.5)), "{}", largest(0.5));
        assert_eq!(largest(1.0 - 1e-9), 256);
    }
}
