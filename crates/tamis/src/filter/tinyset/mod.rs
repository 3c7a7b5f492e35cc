//! Fingerprints that share a cache line and shrink as it fills.

mod builder;
mod geometry;
mod kernels;
mod loads;
#[cfg(feature = "std")]
mod sharded;
mod window;

pub use loads::{LoadHistogram, Stored};
pub use window::Window;

#[cfg(feature = "std")]
use alloc::vec::Vec;

use geometry::TinySetGeometry;
use kernels::{TinySetCore, TinySetFns};

use super::envelope::{Envelope, envelope_methods};
#[cfg(feature = "std")]
use super::in_place::Changed;
use super::methods::{filter_methods, filter_mut_methods};
use super::{
    Builder, Filter, FilterMut, Stats, assert_same_length, must_match,
    unsupported,
};
use crate::arch::{Hint as _, L1};
use crate::block::fingerprint::{DecodedBlock, Form, Removal, Shape};
use crate::error::{Error, Result};
use crate::format::{Counts, Image, ImageHeader, Kind, Persist, SectionTag};
use crate::key::{Key, KeyHasher};
use crate::memory::{AfterHeader, BlocksMut, Owned, WholeBuffer};
use crate::placement::address;

/// A filter that stores a short fingerprint of every key, all in the one
/// cache line that belongs to the key: TinySet of Einziger and Friedman.
///
/// | | |
/// |---|---|
/// | bits per key | 8.98 / 12.82 / 17.22 at 1 % / 0.1 % / 0.01 % |
/// | cache lines, hit / miss / insert | 1 / 1 / 1 |
/// | removable | 9.02 / 12.87 / 17.30 bits per key |
/// | two levels | 16.6 bits or less at 0.01 %; 1.06 lines a miss |
///
/// Fingerprints are as long as the line has room for: a line with few keys
/// answers almost without error, and past the design load the rate rises
/// smoothly instead of insertions failing. A TinySet is
/// [merged](Self::merge_from), [halved](Self::halved) and
/// [doubled](Self::doubled) without the keys.
///
/// **It cannot promise**: room for every key. A 64-byte line holds 448 keys;
/// one more saturates it. A saturated line answers "maybe" to every key, is
/// counted in [`Stats::saturated_blocks`] and recovers only when the filter
/// becomes empty or is [rebuilt](Self::rebuilt). No inserted key is ever lost.
///
/// Without [`repeats`](Builder::repeats) a key that already gets the answer
/// "maybe" is not stored again. (Merging stores such keys of the other set:
/// at rates of tens of percent the union has up to 15 % more entries than a
/// set that got all keys itself; at 1 % and below the difference vanishes.)
///
/// ```
/// use tamis::TinySet;
///
/// let mut filter = TinySet::builder().items(1_000_000).fpr(0.001).build()?;
/// filter.insert("apple");
/// assert!(filter.contains("apple"));
/// assert!(8 * filter.bytes() < 12_830_000);
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// # Removing
///
/// A [`removable`](Builder::removable) filter counts every insertion and
/// takes one back with each [`remove`](Self::remove), as long as only keys
/// are removed that are in it. A hot key takes the room of 16: from 16 copies
/// on a fingerprint *sticks*, later copies are not stored and removals do not
/// take it out ([`Stats::stuck_keys`]). Fingerprints do not grow back: after a share
/// of the keys has been replaced by others, oldest first, the rate is
///
/// | replaced | none | 50 % | 100 % | 1000 % |
/// |---|---|---|---|---|
/// | rate | 0.087 % | 0.19 % | 0.23 % | 0.51 % |
/// | times that of a fresh filter | 1 | 2.1 | 2.6 | 5.8 |
/// | times that of a fresh one in the paper's padded form | 0.85 | 1.8 | 2.2 | 5.0 |
///
/// at 39 keys a line of 64 bytes. [`rebuilt`](Self::rebuilt) from the keys
/// restores the rate; a [`Window`] keeps it without removing.
#[derive(Clone)]
pub struct TinySet<D = Owned> {
    core: TinySetCore,
    fns: TinySetFns<D>,
    envelope: Envelope<D>,
    /// Whether blocks may keep entries of keys that were removed: an upper
    /// bound, so that clearing the filter costs no more than the removals.
    residue: bool,
}

filter_methods!(TinySet, "TinySet::builder().items(100).fpr(0.01)");
filter_mut_methods!(TinySet, "TinySet::builder().items(100).fpr(0.01)");

impl TinySet {
    /// Starts building a filter.
    ///
    /// ```
    /// let filter = tamis::TinySet::builder().items(10).fpr(0.01).build()?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn builder() -> Builder<Self> {
        Builder::new(builder::TinySetSettings::default())
    }

    fn with_geometry(
        geometry: TinySetGeometry,
        hasher: KeyHasher,
        counts: Counts,
    ) -> Result<Self> {
        geometry.check()?;
        let envelope = Envelope::zeroed(geometry.payload(), hasher, counts)?;
        Ok(Self::owned(geometry, envelope))
    }

    /// Around memory that has all blocks and nothing else.
    fn owned(geometry: TinySetGeometry, envelope: Envelope) -> Self {
        let items = envelope.counts.design_items;
        let (core, kernel) = TinySetCore::new(geometry, items);
        let fns = kernels::select::<_, WholeBuffer>(kernel);
        Self { core, fns, envelope, residue: true }
    }

    /// An empty filter with the hash function and the metadata of this one.
    fn resized(
        &self,
        geometry: TinySetGeometry,
        counts: Counts,
    ) -> Result<Self> {
        geometry.check()?;
        let envelope = self.envelope.resized(geometry.payload(), counts)?;
        Ok(Self::owned(geometry, envelope))
    }

    /// A filter with the settings of this one and these keys: restores the
    /// false-positive rate of a filter after many removals.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`] if there is not enough memory.
    ///
    /// ```
    /// use tamis::TinySet;
    ///
    /// let mut filter =
    ///     TinySet::builder().items(2000).fpr(0.01).removable().build()?;
    /// for key in 0..10_000u32 {
    ///     filter.insert(&key);
    ///     if key >= 2000 {
    ///         filter.remove(&(key - 2000))?;
    ///     }
    /// }
    /// let fresh = filter.rebuilt(8000..10_000u32)?;
    /// assert!(fresh.stats().expected_fpr < filter.stats().expected_fpr);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn rebuilt<K: Key>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Self> {
        let counts = Counts { items: 0, ..self.envelope.counts };
        let mut fresh = self.resized(self.core.geometry, counts)?;
        fresh.extend(keys);
        Ok(fresh)
    }

    /// Inserts the hashes that `hash` makes of `chunks`, on several threads.
    #[cfg(feature = "std")]
    pub(super) fn insert_chunks<T: Send>(
        &mut self,
        chunks: impl Iterator<Item = T> + Send,
        threads: core::num::NonZero<usize>,
        hash: impl Fn(T, &mut Vec<u64>) + Sync,
    ) {
        // Keys that spill can go to any block of the second level.
        if threads.get() == 1 || self.core.geometry.second > 0 {
            crate::parallel::in_order(chunks, threads, hash, |hashes| {
                self.insert_hash_batch(hashes);
            });
            return;
        }
        let Self { core, fns, envelope, .. } = self;
        let blocks = kernels::ParallelTinySet { core, fns };
        let bytes = envelope.data.as_mut();
        let inserted =
            crate::parallel::insert(blocks, bytes, chunks, threads, hash);
        envelope.add_items(inserted);
    }
}

impl<'a> TinySet<&'a [u8]> {
    /// The same image elsewhere.
    #[inline(always)]
    pub(super) fn rebound(&self, data: &'a [u8]) -> Self {
        // Fields are copied in place: as variables they would be copied twice,
        // and the second copy would wait for the stores of the first.
        Self {
            core: self.core,
            fns: self.fns,
            envelope: self.envelope.rebound(data),
            residue: true,
        }
    }
}

impl<D: AsRef<[u8]>> TinySet<D> {
    pub(super) fn from_header(header: &ImageHeader, data: D) -> Result<Self> {
        let geometry =
            TinySetGeometry::decode(header.geometry(Kind::TinySet)?)?;
        let sections = [(SectionTag::BLOCKS, geometry.payload())];
        let (envelope, _) = Envelope::view(header, data, sections)?;
        let items = envelope.counts.design_items;
        let (core, kernel) = TinySetCore::new(geometry, items);
        let fns = kernels::select::<_, AfterHeader>(kernel);
        Ok(Self { core, fns, envelope, residue: true })
    }

    pub(super) fn envelope(&self) -> &Envelope<D> {
        &self.envelope
    }

    pub(super) fn envelope_mut(&mut self) -> &mut Envelope<D> {
        &mut self.envelope
    }

    /// Copies the filter into memory of its own, where it can be changed.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`] if there is not enough memory.
    ///
    /// ```
    /// use tamis::TinySet;
    /// let bytes = TinySet::builder().items(9).fpr(0.1).build()?.to_bytes();
    /// let mut filter = TinySet::from_bytes(&bytes[..])?.into_owned()?;
    /// filter.insert("apple");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn into_owned(self) -> Result<TinySet> {
        let Self { core, envelope, .. } = self;
        Ok(TinySet::owned(core.geometry, envelope.into_owned()?))
    }

    /// Number of blocks (m), those of a second level included.
    ///
    /// ```
    /// use tamis::TinySet;
    /// let filter =
    ///     TinySet::builder().items(1024).bits_per_key(16.0).build()?;
    /// assert_eq!(filter.block_count(), 1024 * 16 / 512);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn block_count(&self) -> u64 {
        self.core.geometry.blocks + self.core.geometry.second
    }

    /// Bits in a block (B).
    ///
    /// ```
    /// let filter = tamis::TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(filter.block_bits(), 512);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn block_bits(&self) -> u32 {
        self.core.geometry.shape.block.block_bits
    }

    /// Chains in a block (L).
    ///
    /// ```
    /// let filter = tamis::TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(filter.chains(), 64);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn chains(&self) -> u32 {
        self.core.geometry.shape.block.chains
    }

    /// Whether keys can be removed.
    ///
    /// ```
    /// let builder = tamis::TinySet::builder().items(9).fpr(0.1);
    /// assert!(!builder.build()?.is_removable());
    /// assert!(builder.removable().build()?.is_removable());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn is_removable(&self) -> bool {
        self.core.geometry.removable
    }

    /// How often the key with this hash is stored; see
    /// [`count`](Self::count).
    ///
    /// ```
    /// use tamis::TinySet;
    /// let mut filter =
    ///     TinySet::builder().items(9).fpr(0.001).repeats().build()?;
    /// filter.insert_hash(1 << 60);
    /// filter.insert_hash(1 << 60);
    /// assert_eq!(filter.count_hash(1 << 60), Some(2));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn count_hash(&self, hash: u64) -> Option<u64> {
        let (block, fraction) = address(hash, self.core.geometry.blocks);
        let chain = self.core.geometry.shape.chain(hash);
        let state = self.state(block);
        if let DecodedBlock::Holding(contents) = &state {
            if contents.has_spilled(chain) {
                let (block, chain) =
                    self.core.geometry.second_address(block, chain);
                let shape = self.core.geometry.second_shape();
                return self.state(block).count(&shape, chain, fraction);
            }
        }
        state.count(&self.core.geometry.shape, chain, fraction)
    }

    /// How often a key is stored: in a filter with
    /// [`repeats`](Builder::repeats) at least as often as it was inserted,
    /// more with the probability of a false positive. `None` from 16 copies
    /// on, which are no longer counted, and if its block is saturated.
    ///
    /// ```
    /// use tamis::TinySet;
    /// let mut filter =
    ///     TinySet::builder().items(9).fpr(0.001).repeats().build()?;
    /// filter.insert_batch(&["apple", "pear", "apple"]);
    /// assert_eq!(filter.count("apple"), Some(2));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        self.count_hash(self.hasher().hash(key))
    }

    #[inline(always)]
    fn blocks(&self) -> &[u8] {
        self.envelope.blocks()
    }

    /// One block, of the first or the second level.
    fn shape_of(&self, block: u64) -> Shape {
        match block < self.core.geometry.blocks {
            true => self.core.geometry.shape,
            false => self.core.geometry.second_shape(),
        }
    }

    /// Inserts keys into a copy of the blocks.
    #[cfg(feature = "std")]
    pub(super) fn insert_into(
        &self,
        blocks: &mut [u8],
        hashes: &[u64],
    ) -> Result<Changed> {
        let geometry = &self.core.geometry;
        let store = BlocksMut { first: 0, bytes: &mut *blocks };
        self.fns.insert_batch(&self.core, store, hashes);
        let mut touched: Vec<u64> = hashes
            .iter()
            .map(|&hash| address(hash, geometry.blocks).0)
            .collect();
        if geometry.second > 0 {
            touched.sort_unstable();
            touched.dedup();
            let spilled: Vec<u64> = touched
                .iter()
                .flat_map(|&block| {
                    let bytes = &blocks[geometry.place(block)];
                    let state = DecodedBlock::read_or_saturated(
                        &geometry.shape,
                        bytes,
                    );
                    let spilled = match state {
                        DecodedBlock::Holding(contents) => Some(contents),
                        DecodedBlock::Saturated => None,
                    };
                    let chains = 0..self.chains();
                    chains
                        .filter(move |&chain| {
                            let contents = spilled.as_ref();
                            contents.is_some_and(|it| it.has_spilled(chain))
                        })
                        .map(move |chain| {
                            geometry.second_address(block, chain).0
                        })
                })
                .collect();
            touched.extend(spilled);
        }
        let added = hashes.len() as u64;
        Ok(Changed {
            result: (),
            items: self.envelope.counts.items.saturating_add(added),
            geometry: geometry.encode(),
            touched: touched
                .into_iter()
                .map(|block| geometry.place(block))
                .collect(),
        })
    }

    /// Removes one occurrence of each key from a copy of the blocks.
    #[cfg(feature = "std")]
    pub(super) fn remove_from(
        &self,
        blocks: &mut [u8],
        hashes: &[u64],
    ) -> Result<Changed<Vec<Removal>>> {
        let geometry = &self.core.geometry;
        must_be_removable(geometry)?;
        let mut touched: Vec<_> = hashes
            .iter()
            .map(|&hash| geometry.place(address(hash, geometry.blocks).0))
            .collect();
        let (mut items, mut residue) = (self.envelope.counts.items, true);
        let mut removals = Vec::with_capacity(hashes.len());
        for &hash in hashes {
            let removal = remove_one(geometry, blocks, hash);
            removals.push(removal);
            if empties(removal, &mut items, &mut residue) {
                residue = false;
                let places = (0..geometry.blocks).map(|at| geometry.place(at));
                for place in places {
                    let block = &mut blocks[place.clone()];
                    if block.iter().any(|&byte| byte != 0) {
                        block.fill(0);
                        touched.push(place);
                    }
                }
            }
        }
        Ok(Changed {
            result: removals,
            items,
            geometry: geometry.encode(),
            touched,
        })
    }

    fn state(&self, block: u64) -> DecodedBlock {
        let bytes = &self.blocks()[self.core.geometry.place(block)];
        DecodedBlock::read_or_saturated(&self.shape_of(block), bytes)
    }

    /// The states of the first level, in order.
    fn states(&self) -> impl Iterator<Item = DecodedBlock> + '_ {
        (0..self.core.geometry.blocks).map(|block| self.state(block))
    }

    /// Refuses an operation on two levels.
    fn one_level(&self, operation: &'static str) -> Result<()> {
        match self.core.geometry.second {
            0 => Ok(()),
            _ => Err(unsupported(
                "two-level tinyset",
                operation,
                "two levels are for filters that are built once; \
                 build it again from the keys",
            )),
        }
    }

    fn must_match<E>(&self, other: &TinySet<E>) -> Result<()> {
        match_settings(
            (&self.envelope.hasher, &self.core.geometry),
            (&other.envelope.hasher, &other.core.geometry),
        )
    }

    /// The mean rate of the blocks of a filter that is not there yet.
    fn mean_rate(
        blocks: u64,
        shape: &Shape,
        states: impl Iterator<Item = DecodedBlock>,
    ) -> f64 {
        let sum: f64 = states.map(|state| state.rate(shape)).sum();
        sum / blocks as f64
    }

    /// The false-positive rate after [`merge_from`](TinySet::merge_from).
    pub(crate) fn merged_fpr<E: AsRef<[u8]>>(
        &self,
        other: &TinySet<E>,
    ) -> Result<f64> {
        self.one_level("merge")?;
        self.must_match(other)?;
        let TinySetGeometry { blocks, shape, .. } = self.core.geometry;
        let merged =
            self.states().zip(other.states()).map(|(ours, theirs)| {
                ours.merge(theirs, &shape, !self.core.geometry.repeats)
            });
        Ok(Self::mean_rate(blocks, &shape, merged))
    }

    /// The false-positive rate after [`halved`](TinySet::halved).
    pub(crate) fn folded_fpr(&self) -> Result<f64> {
        let geometry = self.folded_geometry()?;
        let shape = &geometry.shape;
        Ok(Self::mean_rate(geometry.blocks, shape, self.folded()))
    }

    fn folded_geometry(&self) -> Result<TinySetGeometry> {
        self.one_level("fold")?;
        let blocks = self.core.geometry.blocks;
        if blocks % 2 != 0 {
            return Err(Error::NotFoldable { blocks });
        }
        Ok(TinySetGeometry { blocks: blocks / 2, ..self.core.geometry })
    }

    fn folded(&self) -> impl Iterator<Item = DecodedBlock> + '_ {
        let once = !self.core.geometry.repeats;
        let shape = &self.core.geometry.shape;
        (0..self.core.geometry.blocks / 2).map(move |block| {
            let (left, right) =
                (self.state(2 * block), self.state(2 * block + 1));
            left.fold(right, shape, once)
        })
    }

    /// The false-positive rate after [`doubled`](TinySet::doubled): about
    /// the present one.
    pub(crate) fn grown_fpr(&self) -> Result<f64> {
        let geometry = self.grown_geometry()?;
        let shape = geometry.shape;
        Ok(Self::mean_rate(geometry.blocks, &shape, self.grown(&shape)))
    }

    /// The elastic form: entries that gave up a bit are shorter than their
    /// room, so blocks must store the length they are cut for.
    fn grown_geometry(&self) -> Result<TinySetGeometry> {
        self.one_level("grow")?;
        let TinySetGeometry { blocks, shape, .. } = self.core.geometry;
        let blocks = blocks
            .checked_mul(2)
            .ok_or(Error::Allocation { bytes: u64::MAX })?;
        let shape = shape.with_form(Form::Elastic);
        Ok(TinySetGeometry { blocks, shape, ..self.core.geometry })
    }

    fn grown<'a>(
        &'a self,
        shape: &'a Shape,
    ) -> impl Iterator<Item = DecodedBlock> + 'a {
        let once = !self.core.geometry.repeats;
        self.states().flat_map(move |state| state.split(shape, once))
    }
}

/// Compares two filters; the error names the first field that differs.
fn match_settings(
    (hasher, geometry): (&KeyHasher, &TinySetGeometry),
    (other_hasher, other_geometry): (&KeyHasher, &TinySetGeometry),
) -> Result<()> {
    let fields = |geometry: &TinySetGeometry| {
        let block = geometry.shape.block;
        [
            ("blocks", geometry.blocks),
            ("block bits", block.block_bits.into()),
            ("chains", block.chains.into()),
            ("remainder bits", block.remainder_bits.into()),
            ("elastic form", (geometry.shape.form == Form::Elastic).into()),
            ("removable mode", geometry.removable.into()),
            ("repeats", geometry.repeats.into()),
        ]
    };
    must_match(
        (hasher, &fields(geometry)),
        (other_hasher, &fields(other_geometry)),
    )
}

impl<D: AsRef<[u8]>> Filter for TinySet<D> {
    fn kind(&self) -> Kind {
        Kind::TinySet
    }

    envelope_methods!();

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.fns.contains(self, hash)
    }

    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_same_length(hashes.len(), found.len());
        self.fns.contains_batch(&self.core, self.blocks(), hashes, found);
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        let (block, _) = address(hash, self.core.geometry.blocks);
        let Envelope { data, payload, .. } = &self.envelope;
        let start = payload.start + self.core.geometry.place(block).start;
        L1::prefetch(data.as_ref(), start);
    }

    fn bytes(&self) -> u64 {
        let geometry = self.core.geometry.encode();
        self.envelope.header(Kind::TinySet, geometry, None).bytes
    }

    fn stats(&self) -> Stats {
        let loads = self.loads();
        let Counts { items, design_items, design_fpr } = self.envelope.counts;
        let TinySetGeometry { shape, repeats, .. } = self.core.geometry;
        let (least_items, estimated_items, most_items) =
            loads.estimate(shape.form, repeats).of_insertions(items);
        // Without repeats, keys that look present already are not stored.
        let load = loads.items().max(least_items);
        Stats {
            kind: Kind::TinySet,
            items,
            least_items,
            estimated_items,
            most_items: Some(most_items),
            design_items,
            bytes: self.bytes(),
            bits_per_key: (items > 0)
                .then(|| self.core.geometry.bits() / items as f64),
            expected_fpr: loads.expected_fpr(),
            design_fpr,
            reads_hit: loads.reads_hit(),
            reads_miss: loads.reads_miss(),
            saturated_blocks: loads.saturated(),
            stuck_keys: if repeats { loads.stuck() } else { 0 },
            over_design: loads.saturated() > 0
                || items > design_items && load > design_items,
        }
    }

    fn verify(&self) -> Result<()> {
        self.envelope.verify()?;
        // Whether copies of keys are counted that are not stored.
        let (mut stored, mut uncounted) = (0, false);
        let mut canonical = alloc::vec![0; self.core.geometry.shape.bytes()];
        for block in 0..self.block_count() {
            let bytes = &self.blocks()[self.core.geometry.place(block)];
            let shape = self.shape_of(block);
            let state = DecodedBlock::read(&shape, bytes)?;
            state.write(&shape, &mut canonical);
            if bytes != canonical {
                return Err(Error::Inconsistent(
                    "a block has bits where none belong",
                ));
            }
            match state {
                DecodedBlock::Holding(contents) => {
                    stored += contents.entries.len();
                    uncounted |= contents.has_stuck_groups(&shape);
                }
                DecodedBlock::Saturated => uncounted = true,
            }
        }
        // Growing stores an entry of no bits twice, in filters that were
        // overloaded many times.
        let elastic = self.core.geometry.shape.form == Form::Elastic;
        if stored as u64 > self.len() && !elastic {
            return Err(Error::Inconsistent(
                "more is stored than the keys counted could store",
            ));
        }
        let fewer = (stored as u64) < self.len();
        if fewer && self.core.geometry.repeats && !uncounted {
            return Err(Error::Inconsistent(
                "less is stored than there are keys counted",
            ));
        }
        if !self.is_empty() && stored == 0 && !uncounted {
            return Err(Error::Inconsistent(
                "keys are counted, none is stored",
            ));
        }
        Ok(())
    }
}

impl TinySet {
    /// Writes all blocks of the first level.
    fn fill(&mut self, states: impl Iterator<Item = DecodedBlock>) {
        let shape = self.core.geometry.shape;
        let blocks =
            self.envelope.data.as_mut().chunks_exact_mut(shape.bytes());
        for (block, state) in blocks.zip(states) {
            state.write(&shape, block);
        }
    }
}

impl FilterMut for TinySet {
    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        let Self { core, fns, envelope, .. } = self;
        envelope.add_items(1);
        fns.insert(core, envelope.data.as_mut(), hash)
    }

    fn insert_hash_batch(&mut self, hashes: &[u64]) {
        let Self { core, fns, envelope, .. } = self;
        envelope.add_items(hashes.len() as u64);
        let bytes = envelope.data.as_mut();
        let store = BlocksMut { first: 0, bytes };
        fns.insert_batch(core, store, hashes);
    }

    fn clear(&mut self) {
        self.envelope.clear();
        self.residue = false;
    }
}

impl TinySet {
    /// Removes one occurrence of `key`.
    ///
    /// From 16 copies on a fingerprint sticks: removals no longer take it out
    /// ([`Removal::Stuck`]), so that no key is lost. When [`len`](Self::len)
    /// becomes 0, every block is cleared, the saturated ones too.
    ///
    /// Removing a key that was never inserted may remove the entry of
    /// another key, which is then lost.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] unless the filter was built
    /// [`removable`](Builder::removable).
    ///
    /// ```
    /// use tamis::{Removal, TinySet};
    ///
    /// let mut filter =
    ///     TinySet::builder().items(100).fpr(0.001).removable().build()?;
    /// filter.insert("apple");
    /// assert_eq!(filter.remove("apple")?, Removal::Removed);
    /// assert_eq!(filter.remove("apple")?, Removal::Absent);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<Removal> {
        self.remove_hash(self.hasher().hash(key))
    }

    /// [`remove`](Self::remove) by hash.
    ///
    /// # Errors
    ///
    /// That of [`remove`](Self::remove).
    ///
    /// ```
    /// use tamis::TinySet;
    /// let mut filter = TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert!(filter.remove_hash(1 << 60).is_err(), "not removable");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove_hash(&mut self, hash: u64) -> Result<Removal> {
        let Self { core, envelope, residue, .. } = self;
        must_be_removable(&core.geometry)?;
        let bytes = envelope.data.as_mut();
        let removal = remove_one(&core.geometry, bytes, hash);
        if empties(removal, &mut envelope.counts.items, residue) {
            self.clear();
        }
        Ok(removal)
    }

    /// Adds all keys of `other`, without the keys.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] names the field that differs,
    /// [`Error::Unsupported`] if the filter has two levels; `self` is
    /// unchanged.
    ///
    /// ```
    /// use tamis::TinySet;
    /// let builder = TinySet::builder().items(1000).fpr(0.01);
    /// let mut left = builder.build_from(["apple"])?;
    /// left.merge_from(&builder.build_from(["pear"])?)?;
    /// assert!(left.contains("apple") && left.contains("pear"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn merge_from<D: AsRef<[u8]>>(
        &mut self,
        other: &TinySet<D>,
    ) -> Result<()> {
        self.one_level("merge")?;
        self.must_match(other)?;
        let once = !self.core.geometry.repeats;
        let shape = self.core.geometry.shape;
        for block in 0..self.core.geometry.blocks {
            let merged =
                self.state(block).merge(other.state(block), &shape, once);
            let place = self.core.geometry.place(block);
            merged.write(&shape, &mut self.envelope.data.as_mut()[place]);
        }
        self.envelope.add_items(other.len());
        self.residue = true;
        Ok(())
    }

    /// The filter of half the size, without the keys.
    ///
    /// # Errors
    ///
    /// [`Error::NotFoldable`] if the number of blocks is odd (see
    /// [`Builder::foldable`]), [`Error::Unsupported`] if the filter has two
    /// levels.
    ///
    /// ```
    /// use tamis::TinySet;
    /// let builder = TinySet::builder().items(1000).fpr(0.01);
    /// let filter = builder.build_from(["apple"])?;
    /// let half = filter.halved()?;
    /// assert!(half.contains("apple"));
    /// assert_eq!(2 * half.block_count(), filter.block_count());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn halved(&self) -> Result<Self> {
        let geometry = self.folded_geometry()?;
        // Half the memory does the same for half the keys.
        let design_items = self.capacity() / 2;
        let counts = Counts { design_items, ..self.envelope.counts };
        let mut folded = self.resized(geometry, counts)?;
        folded.fill(self.folded());
        Ok(folded)
    }

    /// The smallest filter that halving reaches with an
    /// [`expected_fpr`](Stats::expected_fpr) of at most `fpr`; a copy if
    /// halving once exceeds it.
    ///
    /// Build large, insert, then fold: for sets whose number of keys is
    /// known only at the end.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] unless `0 < fpr < 1`,
    /// [`Error::Unsupported`] if the filter has two levels.
    ///
    /// ```
    /// use tamis::TinySet;
    /// let builder = TinySet::builder().items(100_000).fpr(0.01);
    /// let mut filter = builder.foldable(8).build()?;
    /// filter.extend(0..1000u64);
    /// let folded = filter.folded_to(0.02)?;
    /// assert!(folded.bytes() < filter.bytes() / 30);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn folded_to(&self, fpr: f64) -> Result<Self> {
        super::folded_to(self, fpr, Self::halved)
    }

    /// The filter of twice the size, without the keys, to make room for
    /// more.
    ///
    /// The false-positive rate stays about the same; the first doubling of a
    /// full filter costs a fifth. Every fingerprint gives up one bit, so
    /// each doubling that is filled up again doubles the rate: a filter that
    /// grows far is better built again.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the filter has two levels,
    /// [`Error::Allocation`] if there is not enough memory.
    ///
    /// ```
    /// use tamis::TinySet;
    /// let builder = TinySet::builder().items(1000).fpr(0.001);
    /// let filter = builder.build_from(["apple"])?;
    /// let larger = filter.doubled()?;
    /// assert!(larger.contains("apple"));
    /// assert_eq!(larger.capacity(), 2000);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn doubled(&self) -> Result<Self> {
        let geometry = self.grown_geometry()?;
        let Counts { items, design_items, design_fpr } = self.envelope.counts;
        // Refilled, every fingerprint has one bit less than was designed.
        let counts = Counts {
            items,
            design_items: design_items.saturating_mul(2),
            design_fpr: (2.0 * design_fpr).min(1.0),
        };
        let mut grown = self.resized(geometry, counts)?;
        grown.fill(self.grown(&geometry.shape));
        Ok(grown)
    }
}

/// Refuses removals from a filter without an entry per insertion.
fn must_be_removable(geometry: &TinySetGeometry) -> Result<()> {
    match geometry.removable {
        true => Ok(()),
        false => Err(unsupported(
            Kind::TinySet.name(),
            "remove",
            "it was not built as removable",
        )),
    }
}

/// Removes one occurrence of a key.
fn remove_one(
    geometry: &TinySetGeometry,
    blocks: &mut [u8],
    hash: u64,
) -> Removal {
    let shape = &geometry.shape;
    let (block, fraction) = address(hash, geometry.blocks);
    let bytes = &mut blocks[geometry.place(block)];
    let mut state = DecodedBlock::read_or_saturated(shape, bytes);
    let removal = state.remove(shape, shape.chain(hash), fraction);
    if removal == Removal::Removed {
        state.write(shape, bytes);
    }
    removal
}

/// Counts a removal. Returns `true` if no key is left, and blocks may keep
/// entries nevertheless.
fn empties(removal: Removal, items: &mut u64, residue: &mut bool) -> bool {
    if removal == Removal::Absent {
        return false;
    }
    *items = items.saturating_sub(1);
    *residue |= removal == Removal::Stuck;
    *items == 0 && *residue
}

impl<D: AsRef<[u8]>> Persist for TinySet<D> {
    fn image(&self) -> Image<'_> {
        let geometry = self.core.geometry.encode();
        self.envelope.image(Kind::TinySet, geometry, None)
    }
}
