//! Counters of four bits.

use alloc::vec::Vec;

use super::zeroed;
use crate::error::Result;

/// The largest count. A counter that reaches it is never decremented: the
/// true count is lost, and one decrement too many would lose a key.
const STUCK: u8 = 15;

/// Counters of four bits, two per byte. In a half-full filter a counter is
/// Poisson with mean ln 2, so that it sticks with probability 1.6e-15.
#[derive(Clone)]
pub(super) struct Counters(Vec<u8>);

impl Counters {
    pub(super) fn new(count: u64) -> Result<Self> {
        Ok(Self(zeroed(count.div_ceil(2))?))
    }

    #[inline]
    fn get(&self, at: u64) -> u8 {
        self.0[(at / 2) as usize] >> (at % 2 * 4) & 15
    }

    fn set(&mut self, at: u64, count: u8) {
        let (byte, shift) = (&mut self.0[(at / 2) as usize], at % 2 * 4);
        *byte = *byte & !(15 << shift) | count << shift;
    }

    /// Increments a counter, up to [`STUCK`].
    pub(super) fn increment(&mut self, at: u64) {
        let count = self.get(at);
        if count < STUCK {
            self.set(at, count + 1);
        }
    }

    /// Decrements a counter unless it is 0 or [`STUCK`]; true if it is 0
    /// afterwards.
    pub(super) fn decrement(&mut self, at: u64) -> bool {
        let count = self.get(at);
        if count > 0 && count < STUCK {
            self.set(at, count - 1);
        }
        count <= 1
    }

    pub(super) fn is_zero(&self, at: u64) -> bool {
        self.get(at) == 0
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    pub(super) fn bits(&self) -> u64 {
        8 * self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_to_fourteen_and_sticks_at_fifteen() {
        let mut counters = Counters::new(3).unwrap();
        for at in 0..3 {
            assert!(counters.is_zero(at));
            (0..14).for_each(|_| counters.increment(at));
            for left in (0..14).rev() {
                assert_eq!(counters.decrement(at), left == 0);
            }
            assert!(counters.is_zero(at) && counters.decrement(at));
            (0..15).for_each(|_| counters.increment(at));
            assert!((0..100).all(|_| !counters.decrement(at)));
        }
        counters.clear();
        assert!((0..3).all(|at| counters.is_zero(at)));
        assert_eq!(counters.bits(), 16);
    }
}
