//! One bucket: its entries, and whom it sent away.

use alloc::vec::Vec;

use crate::placement::Admission;
use crate::summary::tracking;

/// Classes of keys a bucket tells apart: what fits beside a `Vec` for free.
const CLASSES: u32 = u64::BITS;

/// When a bucket refuses; never, if there is no threshold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule(Option<Admission>);

impl Rule {
    pub(super) fn new(threshold: Option<u32>, admission: f64) -> Self {
        Self(threshold.map(|h| Admission::new(h, admission)))
    }

    #[inline]
    fn refuses(self, load: usize, ticket: u64) -> bool {
        // A load beyond 32 bits is beyond every threshold.
        let load = u32::try_from(load).unwrap_or(u32::MAX);
        self.0.is_some_and(|rule| rule.refuses(load, || ticket))
    }

    /// The most entries a bucket ever has.
    fn most(self) -> usize {
        self.0.map_or(usize::MAX, |rule| rule.threshold as usize + 1)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Bucket<K, V> {
    pub(super) entries: Vec<(K, V)>,
    /// One bit for each class of keys of which one was refused. Never
    /// cleared by a removal: the refused key is still further on.
    pub(super) refused: u64,
}

impl<K, V> Bucket<K, V> {
    pub(super) const EMPTY: Self = Self { entries: Vec::new(), refused: 0 };

    /// Whether it would refuse a key now.
    #[inline]
    pub(super) fn refuses(&self, rule: Rule, ticket: u64) -> bool {
        rule.refuses(self.entries.len(), ticket)
    }

    /// Remembers that it refused a key.
    pub(super) fn mark(&mut self, ticket: u64) {
        self.refused |= 1 << tracking::class(ticket, CLASSES);
    }

    /// Whether it may have refused this key, at any time.
    #[inline]
    pub(super) fn may_have_refused(&self, ticket: u64) -> bool {
        self.refused >> tracking::class(ticket, CLASSES) & 1 == 1
    }

    /// The share of non-members that go on from here.
    pub(super) fn passes(&self) -> f64 {
        tracking::share(self.refused, CLASSES)
    }

    /// Takes an entry; the memory never outgrows the threshold.
    pub(super) fn push(&mut self, rule: Rule, entry: (K, V)) {
        let (load, room) = (self.entries.len(), self.entries.capacity());
        if load == room {
            let more = load.max(4).min(rule.most().saturating_sub(load));
            self.entries.reserve_exact(more);
        }
        self.entries.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_ends_at_the_threshold() {
        let rule = Rule::new(Some(8), 0.5);
        let mut bucket = Bucket::EMPTY;
        for i in 0..9 {
            bucket.push(rule, (i, ()));
        }
        assert_eq!(bucket.entries.capacity(), 9);
    }

    #[test]
    fn without_a_threshold_nothing_is_refused() {
        assert!(!Rule::new(None, 1.0).refuses(usize::MAX, u64::MAX));
        assert!(Rule::new(Some(2), 0.0).refuses(usize::MAX, 0));
    }
}
