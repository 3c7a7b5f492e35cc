//! The filter of one level in a filter stack.

use alloc::vec::Vec;

use super::counters::Counters;
use super::mixing::{MixedHash, ProbeGroups};
use super::{Deletion, LevelFilter, zeroed};
use crate::error::{Error, Result};

/// A [`LevelFilter`] with its contents.
#[derive(Clone)]
pub(super) enum Layer {
    Bloom { groups: ProbeGroups, bits: Vec<u64>, counters: Option<Counters> },
    List { cut: StringCut, strings: Vec<u64> },
}

/// The part of a hash that a hash list stores: `bits` bits of word 0 of a
/// lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct StringCut {
    lane: u32,
    bits: u32,
}

impl StringCut {
    fn string(self, key: MixedHash) -> u64 {
        key.word(self.lane, 0) >> (u64::BITS - self.bits)
    }
}

fn is_set(bits: &[u64], at: u64) -> bool {
    bits[(at / 64) as usize] >> (at % 64) & 1 == 1
}

impl Layer {
    /// An empty filter that probes with the words of `lane`.
    pub(super) fn new(
        filter: LevelFilter,
        lane: u32,
        deletion: Deletion,
    ) -> Result<Self> {
        let (cells, probes) = match filter {
            LevelFilter::Bloom { cells, probes } => (cells, probes),
            LevelFilter::HashList { bits } => return Self::list(lane, bits),
        };
        let groups = ProbeGroups::new(lane, cells, probes)?;
        let counters = match deletion {
            Deletion::Lazy { .. } => None,
            Deletion::Counting => Some(Counters::new(groups.len())?),
        };
        let bits = zeroed(groups.len().div_ceil(64))?;
        Ok(Self::Bloom { groups, bits, counters })
    }

    fn list(lane: u32, bits: u32) -> Result<Self> {
        if !(1..=u64::BITS).contains(&bits) {
            return Err(Error::InvalidArgument {
                what: "bits of a hash list",
                why: "expected 1 to 64",
            });
        }
        let cut = StringCut { lane, bits };
        Ok(Self::List { cut, strings: Vec::new() })
    }

    #[inline]
    pub(super) fn contains(&self, key: MixedHash) -> bool {
        match self {
            Self::Bloom { groups, bits, .. } => {
                groups.positions(key).all(|at| is_set(bits, at))
            }
            Self::List { cut, strings } => {
                strings.binary_search(&cut.string(key)).is_ok()
            }
        }
    }

    /// Adds a key; true if the filter may now contain keys it did not contain
    /// before.
    pub(super) fn insert(&mut self, key: MixedHash) -> bool {
        match self {
            Self::Bloom { groups, bits, counters } => {
                let mut changed = false;
                for at in groups.positions(key) {
                    changed |= !is_set(bits, at);
                    bits[(at / 64) as usize] |= 1 << (at % 64);
                    if let Some(counters) = counters {
                        counters.increment(at);
                    }
                }
                changed
            }
            Self::List { cut, strings } => {
                let string = cut.string(key);
                let place = strings.binary_search(&string);
                let (Ok(at) | Err(at)) = place;
                strings.insert(at, string);
                place.is_err()
            }
        }
    }

    /// Removes a key. A Bloom filter without counters stays unchanged.
    pub(super) fn remove(&mut self, key: MixedHash) {
        match self {
            Self::Bloom { groups, bits, counters: Some(counters) } => {
                for at in groups.positions(key) {
                    if counters.decrement(at) {
                        bits[(at / 64) as usize] &= !(1 << (at % 64));
                    }
                }
            }
            Self::Bloom { counters: None, .. } => {}
            Self::List { cut, strings } => {
                if let Ok(at) = strings.binary_search(&cut.string(key)) {
                    strings.remove(at);
                }
            }
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Bloom { bits, counters, .. } => {
                bits.fill(0);
                counters.iter_mut().for_each(Counters::clear);
            }
            Self::List { strings, .. } => strings.clear(),
        }
    }

    pub(super) fn bits(&self) -> u64 {
        match self {
            Self::Bloom { bits, counters, .. } => {
                let counters = counters.as_ref().map_or(0, Counters::bits);
                64 * bits.len() as u64 + counters
            }
            Self::List { strings, .. } => 64 * strings.capacity() as u64,
        }
    }

    /// The probability that the filter contains a key that was never
    /// inserted.
    pub(super) fn hit_rate(&self) -> f64 {
        match self {
            Self::Bloom { groups, bits, .. } => {
                groups.hit_rate(|at| is_set(bits, at))
            }
            Self::List { cut, strings } => {
                let distinct = strings.chunk_by(|a, b| a == b).count();
                libm::scalbn(distinct as f64, -(cut.bits as i32))
            }
        }
    }
}
