//! Admission of keys to a block that is nearly full.

use crate::key::Stream;

/// The stream of the tickets at choice j is `TICKET_STREAM + j`.
const TICKET_STREAM: usize = 40;

/// The random word of a key at one of its choices: the upper half is its coin
/// for [`Admission`], the lower half its class for
/// [`tracking`](super::tracking).
///
/// Derived from the hash, so that a lookup repeats the decisions of the
/// insertion.
#[inline(always)]
pub(crate) fn ticket(hash: u64, choice: u32) -> u64 {
    ticket_stream(choice).word(hash)
}

/// The stream of the tickets at a choice.
#[inline(always)]
pub(crate) fn ticket_stream(choice: u32) -> Stream {
    Stream::new(TICKET_STREAM + choice as usize)
}

/// The rule of a block that refuses keys: below the threshold (h) it accepts
/// every key, exactly at the threshold one more with probability p.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(crate) threshold: u32,
    /// p as a multiple of 2^-32.
    pub(crate) share: u64,
}

impl Admission {
    /// The share of probability 1.
    pub(crate) const ONE: u64 = 1 << 32;

    pub(crate) fn new(threshold: u32, probability: f64) -> Self {
        let share = libm::round(probability * Self::ONE as f64) as u64;
        Self { threshold, share }
    }

    pub(crate) fn probability(self) -> f64 {
        self.share as f64 / Self::ONE as f64
    }

    /// Whether a block with this load refuses a key with this ticket. The
    /// ticket costs a multiplication and is computed only at the threshold.
    #[inline(always)]
    pub(crate) fn refuses(
        self,
        load: u32,
        ticket: impl FnOnce() -> u64,
    ) -> bool {
        load > self.threshold
            || load == self.threshold && ticket() >> 32 >= self.share
    }

    /// The share of all keys that a block with this load refuses.
    pub(crate) fn refused_share(self, load: u32) -> f64 {
        match load.cmp(&self.threshold) {
            core::cmp::Ordering::Less => 0.0,
            core::cmp::Ordering::Equal => 1.0 - self.probability(),
            core::cmp::Ordering::Greater => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_frozen() {
        let hash = 0x0123_4567_89ab_cdef;
        assert_eq!(ticket(hash, 0), 0x8342_61d1_a153_035f);
        assert_eq!(ticket(hash, 7), 0xf5a8_8429_037c_d3e9);
    }

    #[test]
    fn refuses_at_the_threshold_by_the_coin() {
        let at = |admission: Admission, load, ticket: u64| {
            admission.refuses(load, || ticket)
        };
        let coin = |share: f64| (share * 2f64.powi(32)) as u64 * (1 << 32);
        let admission = Admission::new(2, 0.25);
        assert!(!at(admission, 1, u64::MAX));
        assert!(!at(admission, 2, coin(0.249)));
        assert!(at(admission, 2, coin(0.25)));
        assert!(at(admission, 3, 0));
        assert!(!at(Admission::new(2, 1.0), 2, u64::MAX));
        assert!(at(Admission::new(2, 0.0), 2, 0));
        let shares = [1, 2, 3].map(|load| admission.refused_share(load));
        assert_eq!(shares, [0.0, 0.75, 1.0]);
    }
}
