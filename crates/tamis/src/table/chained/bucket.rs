//! A bucket: its entries, and the classes of keys it refused.

use alloc::vec::Vec;

use crate::placement::Admission;
use crate::placement::tracking;

/// Classes of keys that a bucket distinguishes: one word of tracking bits.
const CLASSES: u32 = u64::BITS;

/// The condition under which a bucket refuses a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusalRule(Admission);

impl RefusalRule {
    /// A design without a threshold refuses no key. Its buckets still have a
    /// limit, so that colliding keys go to the list, whose search is
    /// logarithmic. The load of a bucket is Poisson with mean `load`: above
    /// 4 `load` + 64 with a probability below 10^-60.
    pub(super) fn new(
        threshold: Option<u32>,
        admission: f64,
        load: f64,
    ) -> Self {
        // The cast saturates.
        let limit = (4.0 * load) as u32;
        let limit = Admission::new(limit.saturating_add(64), 0.0);
        Self(threshold.map_or(limit, |h| Admission::new(h, admission)))
    }

    #[inline]
    fn refuses(self, load: usize, ticket: u64) -> bool {
        // A load above `u32::MAX` is above every threshold.
        let load = u32::try_from(load).unwrap_or(u32::MAX);
        self.0.refuses(load, || ticket)
    }

    /// The largest number of entries of a bucket.
    fn max_entries(self) -> usize {
        (self.0.threshold as usize).saturating_add(1)
    }
}

/// The entries of a bucket.
#[derive(Clone)]
pub(super) struct Bucket<K, V> {
    pub(super) entries: Vec<(K, V)>,
    /// One bit per class, set if a key of that class was refused. A removal
    /// does not clear it: the refused key is still in a later bucket.
    pub(super) refused: u64,
}

impl<K, V> Bucket<K, V> {
    pub(super) const EMPTY: Self = Self { entries: Vec::new(), refused: 0 };

    /// Whether the bucket refuses a key at its present load.
    #[inline]
    pub(super) fn refuses(&self, rule: RefusalRule, ticket: u64) -> bool {
        rule.refuses(self.entries.len(), ticket)
    }

    /// Records that the bucket refused a key.
    pub(super) fn mark_refused(&mut self, ticket: u64) {
        self.refused |= 1 << tracking::class(ticket, CLASSES);
    }

    /// Whether the bucket ever refused a key of this key's class.
    #[inline]
    pub(super) fn may_have_refused(&self, ticket: u64) -> bool {
        self.refused >> tracking::class(ticket, CLASSES) & 1 == 1
    }

    /// The share of absent keys whose lookup continues to the next bucket.
    pub(super) fn pass_rate(&self) -> f64 {
        tracking::share(self.refused, CLASSES)
    }

    /// Adds an entry. The capacity never exceeds the largest number of
    /// entries.
    pub(super) fn push(&mut self, rule: RefusalRule, entry: (K, V)) {
        let (load, room) = (self.entries.len(), self.entries.capacity());
        if load == room {
            let more =
                load.max(4).min(rule.max_entries().saturating_sub(load));
            self.entries.reserve_exact(more);
        }
        self.entries.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_bounded_by_the_threshold() {
        let rule = RefusalRule::new(Some(8), 0.5, 8.0);
        let mut bucket = Bucket::EMPTY;
        for i in 0..9 {
            bucket.push(rule, (i, ()));
        }
        assert_eq!(bucket.entries.capacity(), 9);
    }

    #[test]
    fn without_a_threshold_only_colliding_keys_are_refused() {
        let rule = RefusalRule::new(None, 1.0, 8.0);
        assert!(!rule.refuses(95, u64::MAX));
        assert!(rule.refuses(96, 0));
        assert!(RefusalRule::new(None, 1.0, 1e300).refuses(usize::MAX, 0));
        assert!(RefusalRule::new(Some(2), 0.0, 1.0).refuses(usize::MAX, 0));
    }
}
