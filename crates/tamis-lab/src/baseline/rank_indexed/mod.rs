//! Rank-indexed hashing of Hua, Zhao, Lin and Xu (ICNP 2008): a hash table
//! with chains of fingerprints and without pointers.
//!
//! A hash selects one of the bundles and one of its L chains; the chain
//! holds the fingerprints of its keys. A bit for each chain and for each
//! entry replaces the pointers: the place of an entry is a number of bits
//! (module `bundle`). Bundles have fewer slots than their fullest needs;
//! those that overflow take an extension from a pool.
//!
//! A stranger is a false positive exactly if its bundle, chain and
//! fingerprint of r bits together are those of a key, so the rate is
//! `1-(1-1/(b L 2^r))^n` for b bundles. With removal, entries have counters
//! of two bits, and one that reaches its largest value stays.
//!
//! Known, from summaries of the paper and from the chapter on its sibling
//! BRICK in Varghese's *Network Algorithmics*: bundles of chains, levels,
//! both kinds of bits, positions by popcount, extensions for overflowing
//! bundles sized by statistical multiplexing, and exhaustive search for the
//! best sizes.
//!
//! Inferred: the form and number of extensions. Here groups of 256 bundles
//! share two pools; a bundle can have one extension of each, and the second
//! is reached through the first. A design overflows in less than 1 of 10^10
//! groups per pool and per bundle size. The counters are inferred too, from
//! the printed columns, which differ by 2.4 bits per key. Designs need
//!
//! | rate | here | printed | with removal | printed |
//! |---|---|---|---|---|
//! | 1 % | 10.43 | 10.6 | 12.81 | 13 |
//! | 0.1 % | 14.37 | 14.4 | 16.68 | 16.8 |
//! | 0.01 % | 18.24 | 18.2 | 20.56 | 20.6 |
//!
//! bits per key, where printed are the columns of Einziger and Friedman. The
//! size of a group is free: 64 bundles need 0.5 to 0.8 bits more, and 1024
//! need 0.3 to 0.5 less. So the columns confirm the form, not this size.

mod bundle;
mod design;
mod groups;

use super::{Baseline, Error, Lines};
use crate::simulation::{mix, reduce};
use bundle::{Chains, Entry};
use groups::Groups;

pub use design::{Design, Extensions};

/// A rank-indexed hash table of fingerprints.
///
/// ```
/// use tamis_lab::baseline::{Baseline, Design, RankIndexed};
///
/// let design = Design::search(0.01, true).ok_or("no design")?;
/// let mut filter = RankIndexed::new(design, 1);
/// filter.insert(1)?;
/// assert!(filter.contains(1));
/// filter.remove(1)?;
/// assert!(!filter.contains(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RankIndexed {
    groups: Groups,
}

/// Bundle, chain and fingerprint of a key.
#[derive(Debug, Clone, Copy)]
struct Place {
    bundle: u64,
    chain: u32,
    fingerprint: u64,
}

impl RankIndexed {
    /// A table of `groups` groups of 256 bundles.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, Design, RankIndexed};
    /// let design = Design::search(0.01, true).ok_or("no design")?;
    /// let [one, two] = [1, 2].map(|n| RankIndexed::new(design, n).bits());
    /// assert_eq!(two, 2 * one);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn new(design: Design, groups: u64) -> Self {
        Self { groups: Groups::new(design, groups.max(1)) }
    }

    /// Keys that the table is designed for.
    ///
    /// ```
    /// use tamis_lab::baseline::{Design, RankIndexed};
    /// let design = Design::search(0.01, true).ok_or("no design")?;
    /// let keys = RankIndexed::new(design, 1).nominal();
    /// assert_eq!(keys, (256.0 * design.load) as u64);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn nominal(&self) -> u64 {
        (self.groups.bundles() as f64 * self.groups.design.load) as u64
    }

    /// False-positive rate after `keys` different keys.
    ///
    /// ```
    /// use tamis_lab::baseline::{Design, RankIndexed};
    /// let design = Design::search(0.01, true).ok_or("no design")?;
    /// let filter = RankIndexed::new(design, 1);
    /// let rate = filter.expected_rate(filter.nominal());
    /// assert!((0.0099..0.01).contains(&rate));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn expected_rate(&self, keys: u64) -> f64 {
        let Design { chains, fingerprint_bits, .. } = self.groups.design;
        let places = self.groups.bundles() as f64
            * f64::from(chains)
            * 2f64.powi(fingerprint_bits as i32);
        -(keys as f64 * (-places.recip()).ln_1p()).exp_m1()
    }

    /// Extensions of each tier that bundles hold.
    ///
    /// ```
    /// use tamis_lab::baseline::{Design, RankIndexed};
    /// let design = Design::search(0.01, true).ok_or("no design")?;
    /// assert_eq!(RankIndexed::new(design, 1).extensions(), [0, 0]);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn extensions(&self) -> [u64; 2] {
        [0, 1].map(|tier| {
            let held =
                |bundle: &u64| self.groups.extension(*bundle, tier).is_some();
            (0..self.groups.bundles()).filter(held).count() as u64
        })
    }

    fn place(&self, key: u64) -> Place {
        let Design { chains, fingerprint_bits, .. } = self.groups.design;
        Place {
            bundle: reduce(mix(key, 0), self.groups.bundles()),
            chain: reduce(mix(key, 1), chains.into()) as u32,
            fingerprint: mix(key, 2) >> (64 - fingerprint_bits),
        }
    }

    /// The bundle's chains, and where in the key's chain its entry is.
    fn open(&self, place: Place) -> (Chains, Option<usize>) {
        let chains = self.groups.chains(place.bundle);
        let same = |entry: &Entry| entry.fingerprint == place.fingerprint;
        let found = chains[place.chain as usize].iter().position(same);
        (chains, found)
    }
}

impl Baseline for RankIndexed {
    fn name(&self) -> &'static str {
        match self.groups.design.counted {
            true => "rank-indexed CBF",
            false => "rank-indexed hashing",
        }
    }

    fn insert(&mut self, key: u64) -> Result<(), Error> {
        let place = self.place(key);
        let (mut chains, found) = self.open(place);
        let chain = &mut chains[place.chain as usize];
        match found {
            Some(_) if !self.groups.design.counted => return Ok(()),
            Some(i) => chain[i] = chain[i].repeated(),
            None => chain.push(Entry::new(place.fingerprint)),
        }
        self.groups.set_chains(place.bundle, &chains)
    }

    fn look_up(&self, key: u64, lines: &mut Lines) -> bool {
        let Place { bundle, chain, fingerprint } = self.place(key);
        let same = |entry: Entry| entry.fingerprint == fingerprint;
        self.groups.find(bundle, chain, lines, same).is_some()
    }

    fn remove(&mut self, key: u64) -> Result<(), Error> {
        if !self.groups.design.counted {
            return Err(Error::Unsupported);
        }
        let place = self.place(key);
        let (mut chains, found) = self.open(place);
        let chain = &mut chains[place.chain as usize];
        let i = found.ok_or(Error::Absent)?;
        match chain[i].removed() {
            Some(entry) => chain[i] = entry,
            None => drop(chain.remove(i)),
        }
        self.groups.set_chains(place.bundle, &chains)
    }

    fn bits(&self) -> u64 {
        self.groups.bits.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Keys, Rate, Sample, fill, runs};

    /// Sizes with which bundles overflow often.
    fn crowded(first: u64, second: u64) -> RankIndexed {
        let tiers = [(2, first), (12, second)];
        let design = Design {
            chains: 4,
            fingerprint_bits: 20,
            counted: true,
            load: 4.0,
            slots: 4,
            tiers: tiers.map(|(slots, count)| Extensions { slots, count }),
        };
        RankIndexed::new(design, 1)
    }

    #[test]
    fn a_full_table_does_not_change() {
        let mut filter = crowded(100, 20);
        let keys = Keys::new(1);
        let (mut stored, mut refused) = (Vec::new(), 0);
        for key in keys.members(3000) {
            let before = filter.clone();
            match filter.insert(key) {
                Ok(()) => stored.push(key),
                Err(error) => {
                    assert_eq!(error, Error::Full);
                    assert!(filter.groups.bits == before.groups.bits);
                    refused += 1;
                }
            }
        }
        assert_eq!(filter.extensions(), [100, 20]);
        assert!(refused > 1000 && stored.len() > 1000);
        assert!(stored.iter().all(|key| filter.contains(*key)));
        // All extensions come back.
        for key in stored {
            filter.remove(key).unwrap();
        }
        assert_eq!(filter.extensions(), [0, 0]);
        fill(&mut filter, keys.strangers(500)).unwrap();
    }

    #[test]
    fn extensions_are_used_as_often_as_predicted() {
        let design = Design::search(0.0001, true).unwrap();
        let used = runs(16, |run| {
            let mut filter = RankIndexed::new(design, 2);
            let keys = filter.nominal();
            // No group overflows.
            fill(&mut filter, Keys::new(run).members(keys)).unwrap();
            filter.extensions()
        });
        let limits = [design.slots, design.slots + design.tiers[0].slots];
        for (tier, limit) in limits.into_iter().enumerate() {
            let hits = used.iter().map(|used| used[tier]).sum();
            let rate = Rate { hits, trials: 16 * 512 };
            let expected = design.above(limit);
            assert!(rate.agrees(expected), "{rate:?} {expected}");
            let most = Sample::new(
                used.iter().map(|used| used[tier] as f64 / 2.0).collect(),
            );
            assert!(most.quantile(1.0) < design.tiers[tier].count as f64);
        }
    }

    #[test]
    fn a_design_has_no_room_for_a_fifth_more() {
        let design = Design::search(0.01, false).unwrap();
        let mut filter = RankIndexed::new(design, 1);
        let keys = filter.nominal() * 6 / 5;
        let result = fill(&mut filter, Keys::new(1).members(keys));
        assert_eq!(result, Err(Error::Full));
    }
}
