//! What the blocks hold.

use alloc::vec;
use alloc::vec::Vec;

use super::TinySet;
use crate::block::fingerprint::{State, Summary};

/// How many blocks hold how many keys, and what follows from it; made by
/// [`TinySet::loads`].
///
/// ```
/// use tamis::{Insert, TinySet};
///
/// let mut filter = TinySet::builder().items(390).fpr(0.001).build()?;
/// filter.insert_batch(&(0..390u32).collect::<Vec<_>>());
/// let loads = filter.loads();
/// assert_eq!(loads.blocks().iter().sum::<u64>(), filter.block_count());
/// assert!(loads.items() >= 380);
/// assert!(loads.mean() > 35.0 && loads.mean() < 43.0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LoadHistogram {
    blocks: Vec<u64>,
    saturated: u64,
    items: u64,
    /// Of them in the second level.
    second: u64,
    expected_fpr: f64,
    reads_miss: f64,
}

impl LoadHistogram {
    /// `blocks()[x]`: the number of blocks with exactly `x` keys, those of
    /// a second level included, saturated blocks not.
    ///
    /// ```
    /// let filter = tamis::TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(filter.loads().blocks(), [filter.block_count()]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> &[u64] {
        &self.blocks
    }

    /// Blocks that answer "maybe" to everything.
    ///
    /// ```
    /// let filter = tamis::TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(filter.loads().saturated(), 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Keys stored, in blocks that are not saturated.
    ///
    /// ```
    /// let filter = tamis::TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(filter.loads().items(), 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Keys per block (r) that is not saturated.
    ///
    /// ```
    /// let filter = tamis::TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(filter.loads().mean(), 0.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn mean(&self) -> f64 {
        let blocks: u64 = self.blocks.iter().sum();
        self.items as f64 / blocks.max(1) as f64
    }

    /// The false-positive rate these loads give.
    ///
    /// ```
    /// let filter = tamis::TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(filter.loads().expected_fpr(), 0.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.expected_fpr
    }

    pub(super) fn reads_hit(&self) -> f64 {
        1.0 + self.second as f64 / self.items.max(1) as f64
    }

    pub(super) fn reads_miss(&self) -> f64 {
        self.reads_miss
    }
}

/// What is stored of one key; made by [`TinySet::stored`].
///
/// ```
/// use tamis::{Insert, TinySet};
///
/// let mut filter = TinySet::builder().items(9).fpr(0.01).build()?;
/// filter.insert_hash(0x8000_0000_0000_0007);
/// let stored: Vec<_> = filter.stored().collect();
/// assert_eq!((stored[0].block, stored[0].chain), (0, 0));
/// assert_eq!(stored[0].bits, 26);
/// assert_eq!(stored[0].fingerprint, 1 << 25);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// The block it is in; those of a second level come after the first.
    pub block: u64,
    /// Its chain.
    pub chain: u32,
    /// The fingerprint: the first bits behind the point of
    /// `hash * blocks / 2^64`.
    pub fingerprint: u64,
    /// How many bits that are.
    pub bits: u32,
}

impl<D: AsRef<[u8]>> TinySet<D> {
    /// Everything stored, block by block; nothing of saturated blocks.
    ///
    /// ```
    /// use tamis::{Insert, TinySet};
    /// let mut filter = TinySet::builder().items(9).fpr(0.01).build()?;
    /// filter.insert_batch(&["apple", "pear"]);
    /// assert_eq!(filter.stored().count(), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn stored(&self) -> impl Iterator<Item = Stored> + '_ {
        (0..self.block_count()).flat_map(|block| {
            let entries = match self.state(block) {
                State::Holding(contents) => contents.entries,
                State::Saturated => Vec::new(),
            };
            entries.into_iter().map(move |entry| Stored {
                block,
                chain: entry.chain,
                fingerprint: match entry.known {
                    0 => 0,
                    known => entry.prefix >> (64 - known),
                },
                bits: entry.known,
            })
        })
    }

    /// How full the blocks are. Reads the whole filter.
    ///
    /// ```
    /// use tamis::{Insert, TinySet};
    /// let mut filter = TinySet::builder().items(9).fpr(0.01).build()?;
    /// filter.insert("apple");
    /// assert_eq!(filter.loads().items(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn loads(&self) -> LoadHistogram {
        let geometry = &self.geometry;
        let second_shape = geometry.second_shape();
        let mut blocks = vec![0];
        let (mut saturated, mut items) = (0, [0; 2]);
        let (mut rates, mut reads) = ([0.0; 2], 0.0);
        // Most blocks have a rate that another one had before.
        let mut known = Vec::new();
        for block in 0..self.block_count() {
            let second = block >= geometry.blocks;
            let shape = if second { &second_shape } else { &geometry.shape };
            let bytes = &self.bytes()[geometry.place(block)];
            let summary = Summary::of(shape, bytes);
            let same = |(second_too, s): &(bool, Summary)| {
                *second_too == second && *s == summary
            };
            let rate = match known.iter().find(|(key, _)| same(key)) {
                Some(&(_, rate)) => rate,
                None => {
                    let rate = summary.rate(shape);
                    // A few hundred at most, the commonest first.
                    if known.len() < 256 {
                        known.push(((second, summary), rate));
                    }
                    rate
                }
            };
            match summary {
                Summary::Saturated => saturated += 1,
                Summary::Holding { slots, spilled, .. } => {
                    let slots = slots as usize;
                    if slots >= blocks.len() {
                        blocks.resize(slots + 1, 0);
                    }
                    blocks[slots] += 1;
                    items[usize::from(second)] += slots as u64;
                    if !second {
                        // A key of a chain that has moved is not compared
                        // here at all.
                        let moved =
                            f64::from(spilled) / f64::from(shape.block.chains);
                        reads += moved;
                    }
                }
            }
            rates[usize::from(second)] += rate;
        }
        let first = geometry.blocks as f64;
        let moved = reads / first;
        let second_rate = match geometry.second {
            0 => 0.0,
            n => rates[1] / n as f64,
        };
        // A key of a chain that has moved meets what is in its block of the
        // second level by chance, and the entries of its own chain surely:
        // all of them are in the block and chain that it looks at.
        let own = rates[1] / first;
        LoadHistogram {
            blocks,
            saturated,
            items: items[0] + items[1],
            second: items[1],
            expected_fpr: (rates[0] / first + moved * second_rate + own)
                .min(1.0),
            reads_miss: 1.0 + moved,
        }
    }
}
