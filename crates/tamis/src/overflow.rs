//! Keys that every proposed block refused.

use alloc::vec::Vec;

use crate::key::stretch;
use crate::named::named_enum;
use crate::placement::reduce;
use crate::search::interpolate;

/// Stream of [`stretch`] for [`Overflow::Random`].
const RANDOM_STREAM: usize = 48;

/// The destination of a key that every proposed block refused.
///
/// ```
/// use tamis::Overflow;
/// assert_eq!("absorb".parse(), Ok(Overflow::Absorb));
/// assert_eq!(Overflow::List.name(), "list");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// An exact list of hashes: the lowest false-positive rate, at 64 bits per
    /// listed key and a search of the list by lookups that find every block
    /// full.
    List,
    /// The first block, where every lookup begins.
    First,
    /// A random one of its blocks, as in section 9.2 of the paper. For
    /// reproduction only: it overloads the small last level.
    Random,
    /// No overflow: the last proposed block accepts every key.
    Absorb,
}

named_enum!(Overflow, "overflow", {
    List => "list",
    First => "first",
    Random => "random",
    Absorb => "absorb",
});

impl Overflow {
    /// The choice that receives a refused key; `None` for the list.
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

/// A hash in the byte order of a file.
pub(crate) type HashBytes = [u8; 8];

/// A view of the exact list in memory or in a file: sorted hashes, and a few
/// recent ones that are not merged yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverflowListView<'a> {
    pub(crate) sorted: &'a [HashBytes],
    /// Sorted as well.
    pub(crate) recent: &'a [u64],
}

impl OverflowListView<'_> {
    #[inline(always)]
    pub(crate) fn contains(self, hash: u64) -> bool {
        // Passes the slices in registers: a call with `self` would spill it
        // to the stack, together with the struct it is part of.
        list_contains(self.sorted, self.recent, hash)
    }
}

#[inline(never)]
fn list_contains(sorted: &[HashBytes], recent: &[u64], hash: u64) -> bool {
    find(sorted, hash).is_ok() || recent.binary_search(&hash).is_ok()
}

/// The index of a hash, or the index to insert it at.
fn find(sorted: &[HashBytes], hash: u64) -> Result<usize, usize> {
    let at = |i: usize| u64::from_le_bytes(sorted[i]);
    interpolate(sorted.len(), 0..=u64::MAX, hash, at)
}

/// The exact list of a mutable filter.
///
/// New hashes go to a short sorted list, which is merged in bulk: inserting
/// each into a list of a million hashes would move megabytes. Whatever the
/// hashes, an insertion into a list of n moves O(sqrt n) words on average, and
/// a search takes at most four times the steps of a binary one. Equal hashes
/// are one entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct OverflowList {
    sorted: Vec<HashBytes>,
    recent: Vec<u64>,
    /// The most hashes it may hold.
    pub(crate) capacity: Option<u64>,
}

impl OverflowList {
    pub(crate) fn copy_of(
        view: OverflowListView<'_>,
        capacity: Option<u64>,
    ) -> Self {
        let OverflowListView { sorted, recent } = view;
        Self { sorted: sorted.to_vec(), recent: recent.to_vec(), capacity }
    }

    pub(crate) fn is_full(&self) -> bool {
        let len = (self.sorted.len() + self.recent.len()) as u64;
        self.capacity.is_some_and(|capacity| len >= capacity)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self { capacity: self.capacity, ..Self::default() };
    }

    pub(crate) fn view(&self) -> OverflowListView<'_> {
        OverflowListView { sorted: &self.sorted, recent: &self.recent }
    }

    /// Adds a hash that is not in the list.
    pub(crate) fn insert(&mut self, hash: u64) {
        if let Err(at) = self.recent.binary_search(&hash) {
            self.recent.insert(at, hash);
        }
        // At about the square root of the length, merges and insertions cost
        // the same.
        let max_recent = 64.max(2 * self.sorted.len().isqrt());
        if self.recent.len() > max_recent {
            self.merge_recent();
        }
    }

    /// Merges the recent hashes into the sorted ones in place, from the back.
    pub(crate) fn merge_recent(&mut self) {
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
    pub(crate) fn to_sorted(&self) -> Vec<HashBytes> {
        let mut merged = self.clone();
        merged.merge_recent();
        merged.sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn list_equals_a_set(
            hashes in proptest::collection::vec(
                prop_oneof![any::<u64>(), 0u64..20, u64::MAX - 20..=u64::MAX],
                0..500,
            ),
            probes in proptest::collection::vec(any::<u64>(), 0..20),
        ) {
            let mut list = OverflowList::default();
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
            let sorted = list.to_sorted();
            let sorted = OverflowListView { sorted: &sorted, recent: &[] };
            let again = OverflowList::copy_of(sorted, None);
            for probe in probes.iter().chain(&model) {
                let expected = model.contains(probe);
                prop_assert_eq!(list.view().contains(*probe), expected);
                prop_assert_eq!(again.view().contains(*probe), expected);
            }
        }

        /// Untrusted bytes need not be sorted; the search must terminate.
        #[test]
        fn searching_unsorted_bytes_terminates(
            bytes in proptest::collection::vec(any::<[u8; 8]>(), 0..200),
            hash: u64,
        ) {
            let _ = find(&bytes, hash);
        }
    }

    /// The words moved by insertions of hashes in the worst order, and the
    /// most steps: 0, 1, 2, .. are as far from uniform as possible.
    #[test]
    fn chosen_hashes_move_few_words() {
        const COUNT: u64 = 100_000;
        let mut list = OverflowList::default();
        let mut moved = 0;
        for hash in (0..COUNT).rev() {
            let before = list.recent.len();
            list.insert(hash);
            // Every recent hash is larger.
            moved += before as u64;
            if list.recent.is_empty() {
                moved += list.sorted.len() as u64;
            }
        }
        let root = COUNT.isqrt();
        assert!(moved / COUNT <= 2 * root, "{}", moved / COUNT);
        assert!(list.recent.len() as u64 <= 64 + 2 * root);
        assert!((0..COUNT).all(|hash| list.view().contains(hash)));
        assert!(!list.view().contains(COUNT));
    }

    #[test]
    fn refused_keys_go_where_the_name_says() {
        for choices in 1..=8 {
            assert_eq!(Overflow::List.choice(7, choices), None);
            assert_eq!(Overflow::First.choice(7, choices), Some(0));
            let last = Overflow::Absorb.choice(7, choices);
            assert_eq!(last.map(|choice| choice + 1), Some(choices));
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
