//! The levels to read for a key: its summary, corrected where it is wrong.

use alloc::collections::BTreeMap;

use crate::summary::{Levels, Located, Summary};

/// A summary, and the true levels of the keys that it misnames.
#[derive(Clone)]
pub(super) struct Directory<S> {
    pub(super) summary: S,
    /// The true levels of keys that the summary misnames, by hash.
    exceptions: BTreeMap<u64, Levels>,
    /// Whether `exceptions` contains every misnamed key.
    pub(super) audited: bool,
}

/// The levels to read for a key, in order.
pub(super) struct Route {
    /// The level to read before `others`.
    first: Option<u32>,
    others: Levels,
}

impl Iterator for Route {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let level = self.first.take().or_else(|| self.others.iter().next())?;
        self.others = self.others.without(level);
        Some(level)
    }
}

impl<S: Summary> Directory<S> {
    pub(super) fn new(summary: S) -> Self {
        Self { summary, exceptions: BTreeMap::new(), audited: true }
    }

    /// The recorded levels of an exception; otherwise the level that the
    /// summary names, followed, unless the table is audited, by the other
    /// possible levels.
    #[inline]
    pub(super) fn route(&self, hash: u64) -> Route {
        let Located { level, possible } = self.summary.locate(hash);
        if possible.is_empty() {
            return Route { first: None, others: possible };
        }
        if !self.exceptions.is_empty() {
            if let Some(&others) = self.exceptions.get(&hash) {
                return Route { first: None, others };
            }
        }
        match level {
            Some(_) if self.audited => {
                Route { first: level, others: Levels::NONE }
            }
            _ => Route { first: level, others: possible },
        }
    }

    /// Whether the summary names another level than the true one.
    pub(super) fn is_misnamed(&self, hash: u64, level: u32) -> bool {
        let named = self.summary.locate(hash).level;
        named.is_some_and(|named| named != level)
    }

    /// Records that a key was placed in `level`. Returns whether its levels
    /// must be [recorded](Self::record): the summary misnames the key, or its
    /// hash already is an exception.
    pub(super) fn insert(&mut self, hash: u64, level: u32) -> bool {
        if self.summary.insert(hash, level) {
            self.audited = false;
        }
        self.is_misnamed(hash, level) || self.is_exception(hash)
    }

    /// [`insert`](Self::insert) for a key that the summary may still have.
    pub(super) fn restore(&mut self, hash: u64, level: u32) -> bool {
        if self.summary.locate(hash).possible.contains(level) {
            self.is_misnamed(hash, level) || self.is_exception(hash)
        } else {
            self.insert(hash, level)
        }
    }

    pub(super) fn is_exception(&self, hash: u64) -> bool {
        self.exceptions.contains_key(&hash)
    }

    /// Records the levels that hold keys with this hash, or deletes the
    /// exception if none does. The levels are a set, because keys with equal
    /// hashes may be in several.
    pub(super) fn record(&mut self, hash: u64, levels: Levels) {
        match levels.is_empty() {
            true => self.exceptions.remove(&hash),
            false => self.exceptions.insert(hash, levels),
        };
    }

    /// The number of exceptions.
    pub(super) fn exceptions(&self) -> usize {
        self.exceptions.len()
    }

    pub(super) fn clear_exceptions(&mut self) {
        self.exceptions = BTreeMap::new();
    }

    /// Forgets all keys.
    pub(super) fn clear(&mut self) {
        self.summary.clear();
        self.clear_exceptions();
        self.audited = true;
    }
}
