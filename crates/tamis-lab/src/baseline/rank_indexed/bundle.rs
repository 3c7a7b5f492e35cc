//! One bundle: chains stored level by level, found by counting bits.
//!
//! Bit c of the index: chain c has entries. Each slot holds an entry and the
//! bit that announces its successor. The first entries of all chains come
//! first, in order of the chains; then the second entries, and so on. From
//! the second level on, entries are thus in the order of the bits that
//! announce them: the successor of position i is at the number of chains
//! with entries, plus the number of such bits before i.

use super::super::bits::mask;
use super::super::{Error, Lines};
use super::design::COUNTER_BITS;
use super::groups::{Groups, Segment};

/// A counter with this value no longer changes.
const STUCK: u64 = (1 << COUNTER_BITS) - 1;

/// A fingerprint, and the number of its insertions after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) fingerprint: u64,
    repeats: u64,
}

impl Entry {
    pub(super) fn new(fingerprint: u64) -> Self {
        Self { fingerprint, repeats: 0 }
    }

    pub(super) fn repeated(self) -> Self {
        Self { repeats: (self.repeats + 1).min(STUCK), ..self }
    }

    /// The entry after a removal; `None` if it was the last.
    pub(super) fn removed(self) -> Option<Self> {
        let repeats = match self.repeats {
            STUCK => STUCK,
            repeats => repeats.checked_sub(1)?,
        };
        Some(Self { repeats, ..self })
    }
}

/// The chains of a bundle, each in order of insertion.
pub(super) type Chains = Vec<Vec<Entry>>;

impl Groups {
    /// Position of the first entry of a chain that `accepts` accepts.
    pub(super) fn find(
        &self,
        bundle: u64,
        chain: u32,
        lines: &mut Lines,
        mut accepts: impl FnMut(Entry) -> bool,
    ) -> Option<u64> {
        let width = self.design.chains;
        let index = self.bits.read(self.bundle(bundle), width, lines);
        if index >> chain & 1 == 0 {
            return None;
        }
        let segments = self.segments(bundle);
        let heads = u64::from(index.count_ones());
        let mut position = u64::from((index & mask(chain)).count_ones());
        loop {
            let (segment, slot) = slot(&segments, position)?;
            if accepts(self.entry(segment, slot, lines)) {
                return Some(position);
            }
            if self.bits.read(segment.at + slot, 1, lines) == 0 {
                return None;
            }
            position = heads + self.rank(&segments, position, lines);
        }
    }

    /// Bits before `position` that announce a successor.
    fn rank(
        &self,
        segments: &[Segment],
        position: u64,
        lines: &mut Lines,
    ) -> u64 {
        let mut rest = position;
        let ones = segments.iter().map(|segment| {
            let here = rest.min(segment.slots);
            rest -= here;
            self.bits.ones(segment.at, here, lines)
        });
        ones.sum()
    }

    pub(super) fn chains(&self, bundle: u64) -> Chains {
        let chain = |chain| {
            let mut entries = Vec::new();
            self.find(bundle, chain, &mut Lines::ignored(), |entry| {
                entries.push(entry);
                false
            });
            entries
        };
        (0..self.design.chains).map(chain).collect()
    }

    /// Overwrites the chains of a bundle. [`Error::Full`] changes nothing if
    /// they have at most one entry more than before.
    pub(super) fn set_chains(
        &mut self,
        bundle: u64,
        chains: &Chains,
    ) -> Result<(), Error> {
        self.resize(bundle, chains.iter().map(|c| c.len() as u64).sum())?;
        let used = (0..).zip(chains).filter(|(_, chain)| !chain.is_empty());
        let index = used.map(|(c, _)| 1u64 << c).sum();
        self.bits.set(self.bundle(bundle), self.design.chains, index);
        let segments = self.segments(bundle);
        for Segment { at, slots } in segments {
            self.bits.clear(at, slots);
        }
        for (position, (entry, more)) in (0..).zip(by_level(chains)) {
            let (segment, slot) =
                slot(&segments, position).ok_or(Error::Full)?;
            self.bits.set(segment.at + slot, 1, more.into());
            self.set_entry(segment, slot, entry);
        }
        Ok(())
    }

    fn entry(&self, segment: Segment, slot: u64, lines: &mut Lines) -> Entry {
        let width = self.design.entry_bits();
        let at = segment.at + segment.slots + slot * u64::from(width);
        let field = self.bits.read(at, width, lines);
        let fingerprint_bits = self.design.fingerprint_bits;
        let fingerprint = field & mask(fingerprint_bits);
        Entry { fingerprint, repeats: field >> fingerprint_bits }
    }

    fn set_entry(&mut self, segment: Segment, slot: u64, entry: Entry) {
        let width = self.design.entry_bits();
        let at = segment.at + segment.slots + slot * u64::from(width);
        let repeats = entry.repeats << self.design.fingerprint_bits;
        self.bits.set(at, width, repeats | entry.fingerprint);
    }
}

/// Segment and slot of a position; `None` behind the last.
fn slot(segments: &[Segment], position: u64) -> Option<(Segment, u64)> {
    let mut rest = position;
    segments.iter().find_map(|segment| {
        let found = (rest < segment.slots).then_some((*segment, rest));
        rest = rest.saturating_sub(segment.slots);
        found
    })
}

/// Entries in the order of their positions, with whether a chain goes on.
fn by_level(chains: &Chains) -> impl Iterator<Item = (Entry, bool)> {
    let levels = chains.iter().map(Vec::len).max().unwrap_or(0);
    (0..levels).flat_map(move |level| {
        let entry = move |chain: &Vec<Entry>| {
            Some((*chain.get(level)?, chain.len() > level + 1))
        };
        chains.iter().filter_map(entry)
    })
}

#[cfg(test)]
mod tests {
    use super::super::design::{Design, Extensions};
    use super::*;
    use crate::simulation::{Keys, reduce};

    fn groups() -> Groups {
        let tiers = [(5, 30), (90, 10)];
        let design = Design {
            chains: 16,
            fingerprint_bits: 9,
            counted: true,
            load: 8.0,
            slots: 7,
            tiers: tiers.map(|(slots, count)| Extensions { slots, count }),
        };
        Groups::new(design, 2)
    }

    /// Chains of `entries` random entries.
    fn random(seed: u64, entries: u64) -> Chains {
        let mut chains = vec![Vec::new(); 16];
        for key in Keys::new(seed).members(entries) {
            let entry =
                Entry { fingerprint: key & 511, repeats: key >> 9 & 3 };
            chains[reduce(key, 16) as usize].push(entry);
        }
        chains
    }

    #[test]
    fn positions_are_those_of_a_naive_list() {
        let mut groups = groups();
        for seed in 0..300 {
            let bundle = seed * 7 % groups.bundles();
            let chains = random(seed, seed % 103);
            groups.set_chains(bundle, &chains).unwrap();
            // Level and chain of every entry, in order.
            let mut list: Vec<(usize, usize)> = (0..)
                .zip(&chains)
                .flat_map(|(c, chain)| (0..chain.len()).map(move |l| (l, c)))
                .collect();
            list.sort_unstable();
            for (position, (level, chain)) in list.into_iter().enumerate() {
                let mut passed = Vec::new();
                let ignored = &mut Lines::ignored();
                let find = |entry| {
                    passed.push(entry);
                    passed.len() > level
                };
                let found = groups.find(bundle, chain as u32, ignored, find);
                assert_eq!(found, Some(position as u64), "{seed}");
                assert_eq!(passed, chains[chain][..=level], "{seed}");
            }
            groups.set_chains(bundle, &vec![Vec::new(); 16]).unwrap();
        }
    }

    #[test]
    fn bundles_keep_their_chains_beside_others() {
        let mut groups = groups();
        let bundles = groups.bundles();
        let mut model = vec![random(0, 0); bundles as usize];
        for step in 0..4000 {
            let bundle = reduce(Keys::new(1).member(step), bundles);
            let size = reduce(Keys::new(2).member(step), 13);
            // Rarely, one that needs both extensions.
            let size = if step % 97 == 0 { 90 + size } else { size };
            let chains = random(step, size);
            let room = groups.set_chains(bundle, &chains);
            let kept = room.is_ok() || size > 7;
            assert!(kept, "{step}");
            if room.is_ok() {
                model[bundle as usize] = chains;
            } else {
                groups.set_chains(bundle, &random(0, 0)).unwrap();
                model[bundle as usize] = random(0, 0);
            }
            if step % 100 == 0 {
                for (bundle, chains) in (0..).zip(&model) {
                    assert_eq!(&groups.chains(bundle), chains, "{step}");
                }
            }
        }
    }

    #[test]
    fn counters_stick() {
        let mut entry = Entry::new(1);
        assert_eq!(entry.removed(), None);
        for _ in 0..2 {
            entry = entry.repeated();
        }
        assert_eq!(entry.removed(), Some(Entry::new(1).repeated()));
        let stuck = entry.repeated();
        assert_eq!([stuck.repeated(), stuck.removed().unwrap()], [stuck; 2]);
    }
}
