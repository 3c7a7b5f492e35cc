//! Entries and loads of the blocks.

use alloc::vec;
use alloc::vec::Vec;

use super::{TinySet, TinySetGeometry};
use crate::block::fingerprint::{BlockLoad, DecodedBlock, Form, chain_share};
use crate::filter::estimate::{Estimate, Pools};
use crate::filter::{Parameter, Parameters};

/// Number of blocks by the keys they hold, with the false-positive rate
/// that results; made by [`Inspector::loads`](crate::inspect::Inspector::loads).
///
/// ```
/// use tamis::{TinySet, inspect::Inspector};
///
/// let mut filter = TinySet::builder().items(390).fpr(0.001).build()?;
/// filter.extend(0..390u32);
/// let loads = Inspector::new(&filter).loads();
/// assert_eq!(loads.blocks().iter().sum::<u64>(), filter.block_count());
/// assert!(loads.items() >= 380);
/// assert!(loads.mean() > 35.0 && loads.mean() < 43.0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct LoadHistogram {
    blocks: Vec<u64>,
    saturated: u64,
    stuck: u64,
    items: u64,
    slots: u64,
    /// Of them in the second level.
    second: u64,
    expected_fpr: f64,
    reads_miss: f64,
    pools: Pools,
    /// Entries that a block has room for.
    room: u32,
}

impl core::fmt::Debug for LoadHistogram {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "LoadHistogram {{ items: {}, mean: {:.2}, saturated: {}, \
             expected_fpr: {:e} }}",
            self.items,
            self.mean(),
            self.saturated,
            self.expected_fpr
        )
    }
}

impl LoadHistogram {
    /// `blocks()[x]`: the number of blocks with exactly `x` keys, those of
    /// a second level included, saturated blocks not.
    ///
    /// ```
    /// use tamis::{TinySet, inspect::Inspector};
    /// let filter = TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(Inspector::new(&filter).loads().blocks(), [filter.block_count()]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> &[u64] {
        &self.blocks
    }

    /// Saturated blocks: they answer "maybe" to every key.
    ///
    /// ```
    /// use tamis::{TinySet, inspect::Inspector};
    /// let filter = TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(Inspector::new(&filter).loads().saturated(), 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Keys stored, in blocks that are not saturated.
    ///
    /// ```
    /// use tamis::{TinySet, inspect::Inspector};
    /// let filter = TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(Inspector::new(&filter).loads().items(), 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Slots that the blocks are cut for, in blocks that are not saturated. In
    /// a filter with [`removable`](crate::Builder::removable) keys they exceed
    /// the [`items`](Self::items) by the slots that removals freed: the
    /// fingerprints stay as short as they were, until new keys take the slots
    /// or the filter is built again.
    ///
    /// ```
    /// use tamis::{TinySet, inspect::Inspector};
    /// let builder = TinySet::builder().items(400).fpr(0.01).removable();
    /// let mut filter = builder.build_from(0..400u32)?;
    /// assert_eq!(Inspector::new(&filter).loads().slots(), 400);
    /// (0..100u32).for_each(|key| assert!(filter.remove(&key).is_ok()));
    /// let loads = Inspector::new(&filter).loads();
    /// assert_eq!((loads.items(), loads.slots()), (300, 400));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Keys per block (r) that is not saturated.
    ///
    /// ```
    /// use tamis::{TinySet, inspect::Inspector};
    /// let filter = TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(Inspector::new(&filter).loads().mean(), 0.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn mean(&self) -> f64 {
        let blocks: u64 = self.blocks.iter().sum();
        self.items as f64 / blocks.max(1) as f64
    }

    /// The false-positive rate of these loads.
    ///
    /// ```
    /// use tamis::{TinySet, inspect::Inspector};
    /// let filter = TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(Inspector::new(&filter).loads().expected_fpr(), 0.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.expected_fpr
    }

    /// Stuck groups of entries.
    pub(super) fn stuck(&self) -> u64 {
        self.stuck
    }

    pub(super) fn reads_hit(&self) -> f64 {
        1.0 + self.second as f64 / self.items.max(1) as f64
    }

    pub(super) fn reads_miss(&self) -> f64 {
        self.reads_miss
    }

    /// The number of different keys, of which one may have several entries
    /// with `repeats`.
    pub(super) fn estimate(&self, form: Form, repeats: bool) -> Estimate {
        self.pools.estimate((self.saturated, self.room), form, repeats)
    }
}

/// The entry of one key; made by
/// [`Inspector::stored`](crate::inspect::Inspector::stored).
///
/// ```
/// use tamis::{TinySet, inspect::Inspector};
///
/// let mut filter = TinySet::builder().items(9).fpr(0.01).build()?;
/// filter.insert_hash(0x8000_0000_0000_0007);
/// let stored: Vec<_> = Inspector::new(&filter).stored().collect();
/// assert_eq!((stored[0].block, stored[0].chain), (0, 0));
/// assert_eq!(stored[0].bits, 26);
/// assert_eq!(stored[0].fingerprint, 1 << 25);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// Its block; blocks of a second level come after the first.
    pub block: u64,
    /// Its chain in the block.
    pub chain: u32,
    /// The fingerprint: the first bits behind the point of
    /// `hash * blocks / 2^64`.
    pub fingerprint: u64,
    /// Bits in the fingerprint.
    pub bits: u32,
}

impl<D: AsRef<[u8]>> TinySet<D> {
    /// The entries of all blocks; see [`inspect`](crate::inspect::Inspector::stored).
    pub(crate) fn stored(&self) -> impl Iterator<Item = Stored> + '_ {
        (0..self.block_count()).flat_map(|block| {
            let entries = match self.state(block) {
                DecodedBlock::Holding(contents) => contents.entries,
                DecodedBlock::Saturated => Vec::new(),
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

    /// The load of all blocks; see [`inspect`](crate::inspect::Inspector::loads).
    pub(crate) fn loads(&self) -> LoadHistogram {
        let geometry = &self.core.geometry;
        let second_shape = geometry.second_shape();
        let chains = geometry.shape.block.chains;
        let bytes = |block| &self.blocks()[geometry.place(block)];
        let mut blocks = vec![0];
        let (mut saturated, mut stuck, mut items) = (0, 0, [0; 2]);
        let mut all_slots = 0;
        let mut pools = Pools::default();
        // Of the blocks of the first level, and of chains in the second.
        let (mut rates, mut shares, mut moved) = (0.0, 0.0, 0);
        for block in 0..self.block_count() {
            let second = block >= geometry.blocks;
            let shape = if second { &second_shape } else { &geometry.shape };
            let load = BlockLoad::of(shape, bytes(block));
            if !second {
                rates += load.rate(shape);
            }
            let BlockLoad::Holding {
                slots,
                capacity,
                base,
                union,
                stuck: groups,
                spilled_from,
            } = load
            else {
                saturated += 1;
                continue;
            };
            stuck += u64::from(groups);
            all_slots += u64::from(capacity);
            let level = usize::from(second);
            pools.add(level, (base, spilled_from), slots, union);
            let slots = slots as usize;
            if slots >= blocks.len() {
                blocks.resize(slots + 1, 0);
            }
            blocks[slots] += 1;
            items[level] += slots as u64;
            for chain in spilled_from..chains {
                let (block, chain) = geometry.second_address(block, chain);
                shares += chain_share(&second_shape, bytes(block), chain);
                moved += 1;
            }
        }
        let first = geometry.blocks as f64;
        let all_chains = first * f64::from(chains);
        LoadHistogram {
            blocks,
            saturated,
            stuck,
            items: items[0] + items[1],
            slots: all_slots,
            second: items[1],
            expected_fpr: (rates / first + shares / all_chains).min(1.0),
            reads_miss: 1.0 + moved as f64 / all_chains,
            pools,
            room: geometry.shape.block.array_bits(),
        }
    }

    /// The settings by name; see [`inspect`](crate::inspect::Inspector::parameters).
    pub(crate) fn parameters(&self) -> Parameters {
        let TinySetGeometry { blocks, shape, second, removable, repeats } =
            self.core.geometry;
        let word = |yes| Parameter::Word(if yes { "yes" } else { "no" });
        let mut parameters = vec![
            ("blocks", Parameter::Count(blocks)),
            ("block_bits", Parameter::Count(shape.block.block_bits.into())),
            ("chains", Parameter::Count(shape.block.chains.into())),
            ("removable", word(removable)),
            ("repeats", word(repeats)),
        ];
        if let Form::Capped(cap) = shape.form {
            parameters.push(("second_blocks", Parameter::Count(second)));
            parameters.push(("cap", Parameter::Count(cap.into())));
        }
        parameters
    }
}
