//! What happens to a key that every proposed block refused.

use alloc::vec::Vec;

use crate::key::stretch;
use crate::named::named_enum;
use crate::placement::reduce;
use crate::search::interpolate;

/// Stream of [`stretch`] for the random choice.
const RANDOM_STREAM: usize = 48;

/// Where a key goes that every block refused.
///
/// ```
/// use tamis::Overflow;
/// assert_eq!("absorb".parse(), Ok(Overflow::Absorb));
/// assert_eq!(Overflow::List.name(), "list");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// Into an exact list of hashes: the lowest false-positive rate, for 64
    /// bits per listed key and a search of the list by lookups that found
    /// every block full.
    List,
    /// Back into its first block, where every lookup begins.
    First,
    /// Into one of its blocks at random, as the paper's section 9.2 has it;
    /// for reproduction, since the small last level suffers.
    Random,
    /// Nowhere: the last proposed block takes everything.
    Absorb,
}

named_enum!(Overflow, "overflow", {
    List => "list",
    First => "first",
    Random => "random",
    Absorb => "absorb",
});

impl Overflow {
    /// The choice that takes a key in the end; none if it goes to the list.
    #[inline]
    pub(crate) fn choice(self, hash: u64, choices: u32) -> Option<u32> {
        match self {
            Self::List => None,
            Self::First => Some(0),
            Self::Random => {
                let word = stretch(hash, RANDOM_STREAM);
                Some(reduce(word, choices.into()) as u32)
            }
            Self::Absorb => Some(choices - 1),
        }
    }
}

/// A hash as it stands in a file.
pub(crate) type Entry = [u8; 8];

/// The exact list, wherever its bytes are: sorted hashes, and a few recent
/// ones that have not been sorted in yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListView<'a> {
    pub(crate) sorted: &'a [Entry],
    pub(crate) recent: &'a [u64],
}

impl ListView<'_> {
    #[inline(always)]
    pub(crate) fn contains(self, hash: u64) -> bool {
        // In pieces, which fit registers: all of it would be put into
        // memory, and with it whatever it is part of.
        is_in(self.sorted, self.recent, hash)
    }
}

#[inline(never)]
fn is_in(sorted: &[Entry], recent: &[u64], hash: u64) -> bool {
    find(sorted, hash).is_ok() || recent.binary_search(&hash).is_ok()
}

/// Where a hash is, or would be.
fn find(sorted: &[Entry], hash: u64) -> Result<usize, usize> {
    let at = |i: usize| u64::from_le_bytes(sorted[i]);
    interpolate(sorted.len(), 0..=u64::MAX, hash, at)
}

/// The list of a filter that can change.
///
/// New hashes wait in a short sorted list of their own and are merged in
/// bulk: inserting each into a list of a million would move megabytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    sorted: Vec<Entry>,
    recent: Vec<u64>,
}

impl List {
    /// A list from a sorted section of a file.
    pub(crate) fn from_sorted(sorted: &[Entry]) -> Self {
        Self { sorted: sorted.to_vec(), recent: Vec::new() }
    }

    pub(crate) fn view(&self) -> ListView<'_> {
        ListView { sorted: &self.sorted, recent: &self.recent }
    }

    /// Adds a hash that is not in the list.
    pub(crate) fn insert(&mut self, hash: u64) {
        if let Err(at) = self.recent.binary_search(&hash) {
            self.recent.insert(at, hash);
        }
        // About the square root: then merging and inserting cost the same.
        let most = 64.max(2 * self.sorted.len().isqrt());
        if self.recent.len() > most {
            self.settle();
        }
    }

    /// Merges the recent hashes into the sorted ones, from the back, in
    /// place.
    pub(crate) fn settle(&mut self) {
        let mut old = self.sorted.len();
        self.sorted.resize(old + self.recent.len(), [0; 8]);
        let mut end = self.sorted.len();
        while let Some(&recent) = self.recent.last() {
            end -= 1;
            if old > 0 && u64::from_le_bytes(self.sorted[old - 1]) > recent {
                self.sorted[end] = self.sorted[old - 1];
                old -= 1;
            } else {
                self.sorted[end] = recent.to_le_bytes();
                self.recent.pop();
            }
        }
    }

    /// All hashes, sorted.
    pub(crate) fn to_sorted(&self) -> Vec<Entry> {
        let mut settled = self.clone();
        settled.settle();
        settled.sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_set(
            hashes in proptest::collection::vec(
                prop_oneof![any::<u64>(), 0u64..20, u64::MAX - 20..=u64::MAX],
                0..500,
            ),
            probes in proptest::collection::vec(any::<u64>(), 0..20),
        ) {
            let mut list = List::default();
            let mut model = BTreeSet::new();
            for hash in hashes {
                if model.insert(hash) {
                    prop_assert!(!list.view().contains(hash));
                    list.insert(hash);
                }
            }
            let sorted: Vec<u64> =
                list.to_sorted().into_iter().map(u64::from_le_bytes).collect();
            prop_assert!(sorted.iter().eq(&model));
            let again = List::from_sorted(&list.to_sorted());
            for probe in probes.iter().chain(&model) {
                let expected = model.contains(probe);
                prop_assert_eq!(list.view().contains(*probe), expected);
                prop_assert_eq!(again.view().contains(*probe), expected);
            }
        }

        /// Bytes from strangers need not be sorted: the search must end.
        #[test]
        fn unsorted_bytes_are_searched_without_panic(
            bytes in proptest::collection::vec(any::<[u8; 8]>(), 0..200),
            hash: u64,
        ) {
            let _ = find(&bytes, hash);
        }
    }

    #[test]
    fn random_choices_are_uniform() {
        let mut seen = [0u32; 3];
        for i in 0..30_000u64 {
            let hash = crate::KeyHasher::default().hash(&i);
            let choice = Overflow::Random.choice(hash, 3).unwrap();
            seen[choice as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n.abs_diff(10_000) < 300), "{seen:?}");
    }
}
