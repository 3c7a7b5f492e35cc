//! The most recent keys, without removing any.

use alloc::vec::Vec;

use super::{TinySet, TinySetBuilder};
use crate::error::{Error, Result};
use crate::filter::{Filter, Insert, Parameter, Stats};
use crate::key::KeyHasher;

/// Remembers the most recent keys: two filters of a fixed number of keys,
/// of which the older one is thrown away whenever the younger one is full.
///
/// It answers "maybe" for every one of the last `items` insertions, where
/// `items` is what the builder was told, and forgets a key at the latest
/// after twice as many. Since nothing is removed, the rate does not decay:
/// it is at most twice that of one filter, however long the window runs.
/// The price is a second line for keys that are not in the younger filter.
///
/// ```
/// use tamis::{Filter, Insert, TinySet, Window};
///
/// let builder = TinySet::builder().items(1000).fpr(0.001);
/// let mut recent = Window::new(builder)?;
/// for key in 0..100_000u32 {
///     recent.insert(&key);
/// }
/// assert!((99_000..100_000u32).all(|key| recent.contains(&key)));
/// assert!(recent.stats().expected_fpr < 0.002);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Window {
    builder: TinySetBuilder,
    young: TinySet,
    old: TinySet,
}

impl Window {
    /// An empty window over filters of this kind.
    ///
    /// # Errors
    ///
    /// That of [`TinySetBuilder::build`], and
    /// [`Error::InvalidArgument`] for a window of no keys.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// assert!(Window::new(TinySet::builder().items(9).fpr(0.1)).is_ok());
    /// assert!(Window::new(TinySet::builder().items(0).fpr(0.1)).is_err());
    /// ```
    pub fn new(builder: TinySetBuilder) -> Result<Self> {
        let builder = builder.resolve()?;
        let (young, old) = (builder.build()?, builder.build()?);
        if young.counts.design_items == 0 {
            return Err(Error::InvalidArgument {
                what: "items",
                why: "a window must hold at least one key",
            });
        }
        Ok(Self { builder, young, old })
    }

    /// Begins a new generation before this one is full, for windows by time
    /// instead of by number: call it once per period.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`] if there is not enough memory; nothing has
    /// changed then.
    ///
    /// ```
    /// use tamis::{Filter, Insert, TinySet, Window};
    ///
    /// let builder = TinySet::builder().items(1000).fpr(1e-6);
    /// let mut seen = Window::new(builder)?;
    /// seen.insert("monday");
    /// seen.rotate()?;
    /// assert!(seen.contains("monday"));
    /// seen.rotate()?;
    /// assert!(!seen.contains("monday"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn rotate(&mut self) -> Result<()> {
        let fresh = self.builder.build()?;
        self.old = core::mem::replace(&mut self.young, fresh);
        Ok(())
    }

    /// The younger and the older generation, to save them or look inside.
    ///
    /// ```
    /// use tamis::{Filter, Insert, TinySet, Window};
    /// let mut seen = Window::new(TinySet::builder().items(9).fpr(0.1))?;
    /// seen.insert("apple");
    /// assert_eq!(seen.generations()[0].stats().items, 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn generations(&self) -> [&TinySet; 2] {
        [&self.young, &self.old]
    }
}

impl Filter for Window {
    fn hasher(&self) -> &KeyHasher {
        self.young.hasher()
    }

    fn contains_hash(&self, hash: u64) -> bool {
        self.young.contains_hash(hash) || self.old.contains_hash(hash)
    }

    fn contains_hash_batch(&self, hashes: &[u64], found: &mut Vec<bool>) {
        let mut older = Vec::new();
        self.young.contains_hash_batch(hashes, found);
        self.old.contains_hash_batch(hashes, &mut older);
        for (found, older) in found.iter_mut().zip(older) {
            *found |= older;
        }
    }

    fn stats(&self) -> Stats {
        let (young, old) = (self.young.stats(), self.old.stats());
        let items = young.items + old.items;
        let bytes = young.bytes + old.bytes;
        let bits = self.young.geometry.bits() + self.old.geometry.bits();
        let either = |a: f64, b: f64| a + b - a * b;
        Stats {
            items,
            estimated_items: young.estimated_items + old.estimated_items,
            design_items: young.design_items + old.design_items,
            bytes,
            bits_per_key: (items > 0).then(|| bits / items as f64),
            expected_fpr: either(young.expected_fpr, old.expected_fpr),
            design_fpr: either(young.design_fpr, old.design_fpr),
            // Members of the older generation read both.
            reads_hit: young.reads_hit
                + old.items as f64 / items.max(1) as f64,
            reads_miss: young.reads_miss + old.reads_miss,
            saturated_blocks: young.saturated_blocks + old.saturated_blocks,
            over_design: young.over_design || old.over_design,
            kind: young.kind,
        }
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        self.young.parameters()
    }

    fn verify(&self) -> Result<()> {
        self.young.verify()?;
        self.old.verify()
    }
}

impl Insert for Window {
    /// Inserts a key into the younger generation; `true` if it certainly
    /// was in neither.
    fn insert_hash(&mut self, hash: u64) -> bool {
        if self.young.counts.items >= self.young.counts.design_items {
            // Without memory for a new generation the present one goes on:
            // better a rate that rises than a key that is lost.
            let _ = self.rotate();
        }
        let new = self.young.insert_hash(hash);
        new && !self.old.contains_hash(hash)
    }

    fn insert_hash_batch(&mut self, hashes: &[u64]) {
        for &hash in hashes {
            self.insert_hash(hash);
        }
    }
}
