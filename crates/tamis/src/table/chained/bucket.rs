//! One bucket: its entries, and whom it sent away.

use alloc::vec::Vec;

use crate::key::stretch;
use crate::summary::tracking;

/// Streams of [`stretch`] for the tickets, those of the balanced filter: the
/// upper half of a ticket is the coin of a key at one of its choices, the
/// lower half its class.
const TICKET_STREAM: usize = 40;

/// `admission` in 32 bits.
const ADMISSION_ONE: f64 = 4_294_967_296.0;

/// Classes of keys a bucket tells apart: what fits beside a `Vec` for free.
const CLASSES: u32 = u64::BITS;

/// What decides about a key at one of its choices.
#[inline(always)]
pub(super) fn ticket(hash: u64, choice: u32) -> u64 {
    stretch(hash, TICKET_STREAM + choice as usize)
}

/// When a bucket refuses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// A bucket below it takes every key; the largest number if none ever
    /// refuses.
    threshold: usize,
    /// The chance that a bucket exactly at the threshold takes one more, as
    /// a multiple of 2^-32.
    admission: u64,
}

impl Rule {
    pub(super) fn new(threshold: Option<u32>, admission: f64) -> Self {
        Self {
            threshold: threshold.map_or(usize::MAX, |h| h as usize),
            admission: libm::round(admission * ADMISSION_ONE) as u64,
        }
    }

    #[inline]
    fn refuses(self, load: usize, ticket: u64) -> bool {
        load > self.threshold
            || load == self.threshold && ticket >> 32 >= self.admission
    }

    /// The most entries a bucket ever has.
    fn most(self) -> usize {
        self.threshold.saturating_add(1)
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

    /// The same numbers as in the balanced filter.
    #[test]
    fn tickets_are_frozen() {
        let hash = 0x0123_4567_89ab_cdef;
        assert_eq!(ticket(hash, 0), 0x8342_61d1_a153_035f);
        assert_eq!(ticket(hash, 7), 0xf5a8_8429_037c_d3e9);
    }

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
    fn refuses_at_the_threshold_by_the_coin() {
        let rule = Rule::new(Some(2), 0.25);
        let coin = |share: f64| (share * ADMISSION_ONE) as u64 * (1 << 32);
        assert!(!rule.refuses(1, u64::MAX));
        assert!(!rule.refuses(2, coin(0.249)));
        assert!(rule.refuses(2, coin(0.25)));
        assert!(rule.refuses(3, 0));
        assert!(!Rule::new(Some(2), 1.0).refuses(2, u64::MAX));
        assert!(Rule::new(Some(2), 0.0).refuses(2, 0));
        assert!(!Rule::new(None, 1.0).refuses(usize::MAX, u64::MAX));
    }
}
