//! One filter of a stack.

use alloc::vec::Vec;

use tamis_theory::summary::Filter;

use super::counters::Counters;
use super::mixing::{Groups, MAX_PROBES, Mixed};
use super::{Deletion, zeroed};
use crate::error::{Error, Result};

/// A filter as it is in memory.
#[derive(Debug, Clone)]
pub(super) enum Layer {
    Bloom { groups: Groups, bits: Vec<u64>, counters: Option<Counters> },
    List { list: HashList, strings: Vec<u64> },
}

/// How the strings of a list are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct HashList {
    lane: u32,
    bits: u32,
}

impl HashList {
    fn string(self, key: Mixed) -> u64 {
        key.word(self.lane, 0) >> (u64::BITS - self.bits)
    }
}

/// Positions in as many groups as there are probes.
pub(super) fn groups(lane: u32, bits: u64, probes: u32) -> Result<Groups> {
    let invalid = |what, why| Err(Error::InvalidArgument { what, why });
    if !(1..=MAX_PROBES).contains(&probes) {
        return invalid("probes", "expected 1 to 64");
    }
    let size = bits / u64::from(probes);
    if size == 0 {
        return invalid("size of a filter", "expected one for each probe");
    }
    Ok(Groups { groups: probes, size, lane })
}

fn is_set(bits: &[u64], at: u64) -> bool {
    bits[(at / 64) as usize] >> (at % 64) & 1 == 1
}

impl Layer {
    /// An empty filter, with the hash functions of a lane.
    pub(super) fn new(
        filter: Filter,
        lane: u32,
        deletion: Deletion,
    ) -> Result<Self> {
        let (cells, probes) = match filter {
            Filter::Bloom { cells, probes } => (cells, probes),
            Filter::HashList { bits } => return Self::list(lane, bits),
        };
        let groups = groups(lane, cells, probes)?;
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
        let list = HashList { lane, bits };
        Ok(Self::List { list, strings: Vec::new() })
    }

    #[inline]
    pub(super) fn contains(&self, key: Mixed) -> bool {
        match self {
            Self::Bloom { groups, bits, .. } => {
                groups.positions(key).all(|at| is_set(bits, at))
            }
            Self::List { list, strings } => {
                strings.binary_search(&list.string(key)).is_ok()
            }
        }
    }

    /// Whether that could make it contain other keys.
    pub(super) fn insert(&mut self, key: Mixed) -> bool {
        match self {
            Self::Bloom { groups, bits, counters } => {
                let mut changed = false;
                for at in groups.positions(key) {
                    changed |= !is_set(bits, at);
                    bits[(at / 64) as usize] |= 1 << (at % 64);
                    if let Some(counters) = counters {
                        counters.increase(at);
                    }
                }
                changed
            }
            Self::List { list, strings } => {
                let string = list.string(key);
                let place = strings.binary_search(&string);
                let (Ok(at) | Err(at)) = place;
                strings.insert(at, string);
                place.is_err()
            }
        }
    }

    /// Nothing without counters, except in a list.
    pub(super) fn remove(&mut self, key: Mixed) {
        match self {
            Self::Bloom { groups, bits, counters: Some(counters) } => {
                for at in groups.positions(key) {
                    if counters.decrease(at) {
                        bits[(at / 64) as usize] &= !(1 << (at % 64));
                    }
                }
            }
            Self::Bloom { counters: None, .. } => {}
            Self::List { list, strings } => {
                if let Ok(at) = strings.binary_search(&list.string(key)) {
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

    /// The chance that it contains a key that was never inserted.
    pub(super) fn hit_rate(&self) -> f64 {
        match self {
            Self::Bloom { groups, bits, .. } => {
                groups.hit_rate(|at| is_set(bits, at))
            }
            Self::List { list, strings } => {
                let distinct = strings.chunk_by(|a, b| a == b).count();
                libm::scalbn(distinct as f64, -(list.bits as i32))
            }
        }
    }
}
