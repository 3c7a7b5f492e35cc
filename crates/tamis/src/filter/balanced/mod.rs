//! The balanced Bloom filter.

mod builder;
mod kernels;
mod shape;

pub use shape::Threshold;

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::envelope::{Envelope, envelope_methods};
use super::estimate::Estimate;
use super::methods::{filter_methods, filter_mut_methods};
use super::{Builder, Filter, FilterMut, Stats, assert_same_length};
use crate::block::bloom::power;
use crate::block::guarded::Division;
use crate::dispatch::KernelFns;
use crate::error::{Error, Result};
use crate::filter::{Parameter, Parameters};
use crate::format::{Counts, Image, ImageHeader, Kind, Persist, SectionTag};
use crate::key::{Key, KeyHasher};
use crate::memory::Owned;
use crate::overflow::{HashBytes, Overflow, OverflowList, OverflowListView};
use crate::placement::{Scheme, tracking};
use kernels::{Engine, Site};
use shape::{BalancedShape, Tally};

/// A balanced Bloom filter (Kanizo, Hay and Keslassy): blocks that are full
/// enough refuse a key, which then goes to the next of its blocks.
///
/// No block gets crowded, so from about 20 bits per key on the
/// false-positive rate is far below a blocked filter's: 0.42 of it at 24 bits
/// per key and 0.025 at 40, for 1.2 to 1.3 blocks read per lookup (512-bit
/// blocks, the default design). **At 12 bits per key and below it does not
/// pay**; [`Split`](crate::Split) has the lower rate up to some 30 bits per
/// key, and is the better one if lookups mostly miss. `tamis plan` compares.
///
/// Beyond the paper: the coin at the threshold is a hash of the key, so that
/// lookups repeat it; tracking bits record which classes of keys a block
/// refused, so that most lookups stop at their first block; refused keys
/// need no list (see [`Overflow`]); blocks may refuse by their set bits
/// instead of a counter (see [`Threshold`]).
///
/// | | |
/// |---|---|
/// | FPR | Σ over the path of E\[(X/B')^k\], B' the bits left by counter and tracking: `tamis_theory::balanced` |
/// | lines per hit / miss / insert | about `access_budget` (a) / 1.1 to 2.9, see [`Stats::reads_miss`] / a |
/// | memory | blocks, and 64 bits per listed key |
/// | merge, fold | not possible: the outcome depends on the order of insertion |
///
/// Inserting a key that is present takes no second place and returns `false`,
/// so [`Stats::items`] counts different keys (less the few that looked
/// present by a false positive, and are found all the same). Past the design
/// load every guarantee holds and only the rate rises.
///
/// **It cannot promise**: to forget a key; to be merged; the access budget
/// past the design load.
///
/// ```
/// use tamis::Balanced;
///
/// let mut filter =
///     Balanced::builder().items(10_000).bits_per_key(24.0).build()?;
/// filter.extend(0..10_000u32);
/// assert!((0..10_000u32).all(|key| filter.contains(&key)));
/// assert!(filter.stats().reads_miss < 1.25);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Balanced<D = Owned> {
    engine: Engine,
    envelope: Envelope<D>,
    tally: Tally,
    /// Range of the overflow list in the data, if that is an image; empty
    /// otherwise, and in an image without listed keys.
    stored_list: Range<usize>,
    /// The overflow list, if it is not in the data.
    list: OverflowList,
    fns: KernelFns<Self, Engine>,
}

/// The entry of the metadata with the capacity of the overflow list.
const LIST_CAPACITY: &str = "list-capacity";

/// The content of one block; made by
/// [`Inspector::block_states`](crate::inspect::Inspector::block_states).
///
/// ```
/// use tamis::{Balanced, inspect::Inspector};
/// let filter = Balanced::builder().items(100).bits_per_key(20.0).build()?;
/// assert!(Inspector::new(&filter).block_states().all(|block| block.ones == 0));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockState {
    /// Its level, from 0; always 0 unless the scheme is multilevel.
    pub level: u32,
    /// Keys counted in it; the counter stops one above the threshold, and
    /// there is none if the threshold is a number of bits.
    pub load: u32,
    /// Bloom bits set in it.
    pub ones: u32,
    /// Its tracking bits.
    pub tracked: u64,
}

filter_methods!(
    Balanced,
    "Balanced::builder().items(100).bits_per_key(20.0).tracking_bits(8)"
);
filter_mut_methods!(
    Balanced,
    "Balanced::builder().items(100).bits_per_key(20.0).tracking_bits(8)"
);

impl Balanced {
    /// Starts building a filter.
    ///
    /// Without more settings the builder takes the best design for the
    /// memory: levels, an absorbing last one, blocks that refuse by their
    /// set bits, and tracking bits so that a non-member reads at most
    /// [`max_reads_miss`](Builder::max_reads_miss) blocks (1.25 by default).
    /// The search evaluates the model at most 4000 times, which takes 1 to 4
    /// ms; [`Builder::fpr`] repeats a part of it for each size it tries.
    /// [`Builder::resolve`] searches once for many filters.
    ///
    /// [`Builder::build`] then divides whole blocks among the levels.
    /// [`design_fpr`](Self::design_fpr) is the rate of the filter built: small
    /// filters may get fewer levels, another threshold or, to keep a rate,
    /// some more blocks. That of a particular design is the limit of many
    /// blocks, which filters of less than some hundred blocks exceed.
    ///
    /// Any of [`scheme`](Builder::scheme),
    /// [`access_budget`](Builder::access_budget),
    /// [`choices`](Builder::choices), [`overflow`](Builder::overflow),
    /// [`tracking_bits`](Builder::tracking_bits),
    /// [`threshold`](Builder::threshold), [`admission`](Builder::admission),
    /// [`level_shares`](Builder::level_shares),
    /// [`overflow_fraction`](Builder::overflow_fraction),
    /// [`list_share`](Builder::list_share) or
    /// [`refuse_by_set_bits`](Builder::refuse_by_set_bits) selects a
    /// particular design instead, completed by the paper's: multilevel,
    /// a = 1.2, d = 3, an overflow list, a counter in the block, and no
    /// tracking bits.
    ///
    /// Bits per key are those of the blocks, as in the paper; a list comes
    /// on top, and [`Stats::bits_per_key`] counts it.
    ///
    /// ```
    /// use tamis::{Balanced, Overflow, Scheme};
    ///
    /// // The filter of the paper's section 10.
    /// let filter = Balanced::builder()
    ///     .items(6554)
    ///     .bits_per_key(40.0)
    ///     .block_bits(256)
    ///     .scheme(Scheme::Multilevel)
    ///     .access_budget(1.2)
    ///     .choices(3)
    ///     .overflow(Overflow::List)
    ///     .probes(28)
    ///     .build()?;
    /// assert_eq!(filter.level_blocks(), [854, 146, 25]);
    /// assert!((filter.design_fpr() / 2.0e-7 - 1.0).abs() < 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn builder() -> Builder<Self> {
        Builder::new(builder::BalancedSettings::default())
    }

    fn with_shape(
        shape: BalancedShape,
        hasher: KeyHasher,
        design_items: u64,
        design_fpr: f64,
    ) -> Result<Self> {
        shape.check()?;
        let counts = Counts::empty(design_items, design_fpr);
        let envelope = Envelope::zeroed(shape.payload(), hasher, counts)?;
        let (tally, list) = (Tally::default(), OverflowList::default());
        Ok(Self::new(shape, envelope, tally, 0..0, list))
    }

    /// Inserts the hashes that `hash` makes of `chunks`. The order of
    /// insertion matters here: several threads hash, one inserts.
    #[cfg(feature = "std")]
    pub(super) fn insert_chunks<T: Send>(
        &mut self,
        chunks: impl Iterator<Item = T> + Send,
        threads: core::num::NonZero<usize>,
        hash: impl Fn(T, &mut Vec<u64>) + Sync,
    ) {
        crate::parallel::in_order(chunks, threads, hash, |hashes| {
            self.insert_hash_batch(hashes);
        });
    }

    /// Inserts a key that is not in the set, without looking it up first.
    ///
    /// Faster, and each key takes exactly one place, as in the paper:
    /// [`insert_hash`](Self::insert_hash) leaves out the few keys that look
    /// present by a false positive (they are found all the same), which
    /// lowers the load by some percent at 8 bits per key and by next to
    /// nothing above 16. A key inserted twice with it takes two places in
    /// the blocks (in the list never); it is still found.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let mut filter =
    ///     Balanced::builder().items(1000).bits_per_key(20.0).build()?;
    /// let hasher = *filter.hasher();
    /// for key in 0..1000u32 {
    ///     filter.insert_distinct_hash(hasher.hash(&key));
    /// }
    /// assert_eq!(filter.len(), 1000);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_distinct_hash(&mut self, hash: u64) {
        self.insert_one(hash, true);
    }

    /// [`insert`](Self::insert) that fails instead of putting a key into its
    /// first block when the list is full; see
    /// [`list_share`](Builder::list_share).
    ///
    /// # Errors
    ///
    /// [`Error::ListFull`] if every block refuses the key, the key is not
    /// found, and the list is full. The filter is unchanged then.
    ///
    /// ```
    /// use tamis::{Balanced, Error};
    /// let builder = Balanced::builder().items(900).bits_per_key(20.0);
    /// let mut filter = builder.threshold(26).list_share(0.02).build()?;
    /// let mut keys = 0..100_000u32;
    /// let failure = keys.find_map(|key| filter.try_insert(&key).err());
    /// assert_eq!(failure, Some(Error::ListFull { capacity: 18 }));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn try_insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        self.try_insert_hash(self.envelope.hasher.hash(key))
    }

    /// [`try_insert`](Self::try_insert) by hash.
    ///
    /// # Errors
    ///
    /// Those of `try_insert`.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let mut filter =
    ///     Balanced::builder().items(9).bits_per_key(20.0).build()?;
    /// assert!(filter.try_insert_hash(u64::MAX / 3)?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn try_insert_hash(&mut self, hash: u64) -> Result<bool> {
        if let Some(capacity) = self.list.capacity {
            if self.list.is_full()
                && self.engine.all_refuse(self.envelope.blocks(), hash)
                && !self.contains_hash(hash)
            {
                return Err(Error::ListFull { capacity });
            }
        }
        Ok(self.insert_one(hash, false))
    }

    fn with_list_capacity(mut self, capacity: u64) -> Result<Self> {
        let text = alloc::format!("{capacity}");
        self.envelope.set_metadata(LIST_CAPACITY, &text)?;
        self.list.capacity = Some(capacity);
        Ok(self)
    }

    fn insert_one(&mut self, hash: u64, distinct: bool) -> bool {
        let (engine, fns, site) = self.site(distinct);
        let new = fns.insert(engine, site, hash);
        self.envelope.counts.items = self.tally.items();
        new
    }

    fn site(
        &mut self,
        distinct: bool,
    ) -> (&Engine, &KernelFns<Self, Engine>, Site<'_>) {
        let Self { engine, envelope, list, tally, fns, .. } = self;
        let blocks = envelope.data.as_mut();
        (engine, fns, Site { blocks, list, tally, distinct })
    }
}

impl<'a> Balanced<&'a [u8]> {
    /// The same image elsewhere.
    #[inline(always)]
    pub(super) fn rebound(&self, data: &'a [u8]) -> Self {
        Self {
            engine: self.engine,
            envelope: self.envelope.rebound(data),
            tally: self.tally,
            stored_list: self.stored_list.clone(),
            list: OverflowList::default(),
            fns: self.fns,
        }
    }
}

impl<D: AsRef<[u8]>> Balanced<D> {
    fn new(
        shape: BalancedShape,
        envelope: Envelope<D>,
        tally: Tally,
        stored_list: Range<usize>,
        list: OverflowList,
    ) -> Self {
        let engine = Engine::new(shape);
        let fns = kernels::select(&engine);
        Self { engine, envelope, tally, stored_list, list, fns }
    }

    fn shape(&self) -> &BalancedShape {
        &self.engine.shape
    }

    /// The capacity of the list: of the filter in memory, or the entry of the
    /// metadata.
    fn stored_list_capacity(&self) -> Result<Option<u64>> {
        if self.list.capacity.is_some()
            || self.shape().overflow != Overflow::List
        {
            return Ok(self.list.capacity);
        }
        let Some(text) = self.envelope.metadata()?.get(LIST_CAPACITY) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            Error::Inconsistent("list-capacity in the metadata is no number")
        })
    }

    pub(super) fn from_header(header: &ImageHeader, data: D) -> Result<Self> {
        let geometry = header.geometry(Kind::Balanced)?;
        let (shape, tally) =
            BalancedShape::decode(geometry, header.counts.items)?;
        let listed = match shape.overflow {
            Overflow::List => tally.refused,
            _ => 0,
        };
        let sections = [
            (SectionTag::BLOCKS, shape.payload()),
            (SectionTag::LIST, listed.checked_mul(8)),
        ];
        let (envelope, [_, list]) = Envelope::view(header, data, sections)?;
        let own = OverflowList::default();
        Ok(Self::new(shape, envelope, tally, list, own))
    }

    /// Inserts keys into a copy of the blocks. Fails for a key of the
    /// overflow list, which has no room in the file.
    #[cfg(feature = "std")]
    pub(super) fn insert_into(
        &self,
        blocks: &mut [u8],
        hashes: &[u64],
    ) -> Result<super::in_place::Changed> {
        let capacity = self.stored_list_capacity()?;
        let mut list = OverflowList::copy_of(self.list(), capacity);
        let mut tally = self.tally;
        let site = Site {
            blocks,
            list: &mut list,
            tally: &mut tally,
            distinct: false,
        };
        self.fns.insert_batch(&self.engine, site, hashes);
        let is_listing = self.shape().overflow == Overflow::List;
        if is_listing && tally.refused != self.tally.refused {
            return Err(super::unsupported(
                Kind::Balanced.name(),
                super::in_place::INSERTION,
                "its overflow list would grow; replace the file instead",
            ));
        }
        let choices = 0..self.shape().choices();
        let touched = hashes.iter().flat_map(|&hash| {
            choices.clone().map(move |choice| self.engine.place(hash, choice))
        });
        Ok(super::in_place::Changed {
            result: (),
            items: tally.items(),
            geometry: self.shape().encode(&tally),
            touched: touched.collect(),
        })
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
    /// use tamis::Balanced;
    /// let filter = Balanced::builder().items(9).bits_per_key(20.0).build()?;
    /// let bytes = filter.to_bytes();
    /// let mut again = Balanced::from_bytes(&bytes[..])?.into_owned()?;
    /// again.insert("apple");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn into_owned(self) -> Result<Balanced> {
        let capacity = self.stored_list_capacity()?;
        let list = OverflowList::copy_of(self.list(), capacity);
        let Self { engine, envelope, tally, .. } = self;
        let envelope = envelope.into_owned()?;
        Ok(Balanced::new(engine.shape, envelope, tally, 0..0, list))
    }

    /// How blocks are proposed.
    ///
    /// ```
    /// use tamis::{Balanced, Scheme};
    /// let filter = Balanced::builder().items(9).bits_per_key(20.0).build()?;
    /// assert_eq!(filter.scheme(), Scheme::Multilevel);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn scheme(&self) -> Scheme {
        self.shape().scheme
    }

    /// When a block refuses.
    ///
    /// ```
    /// use tamis::{Balanced, Threshold};
    /// let filter = Balanced::builder().items(9).bits_per_key(20.0).build()?;
    /// assert!(matches!(filter.threshold(), Threshold::SetBits { .. }));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn threshold(&self) -> Threshold {
        self.shape().refusal.threshold()
    }

    /// The number of blocks in each level; of the whole array for every
    /// choice unless the scheme is multilevel.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let filter =
    ///     Balanced::builder().items(9000).bits_per_key(20.0).build()?;
    /// let levels = filter.level_blocks();
    /// assert!(levels[0] > levels[1]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn level_blocks(&self) -> &[u64] {
        self.shape().levels()
    }

    /// Bits set per key (k).
    ///
    /// ```
    /// use tamis::Balanced;
    /// let filter = Balanced::builder().items(9).bits_per_key(40.0).build()?;
    /// assert!(filter.probes() > 20);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn probes(&self) -> u32 {
        self.shape().probes
    }

    /// The most keys that the overflow list may hold; `None` without a limit,
    /// or if the metadata of a file cannot be read.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let builder = Balanced::builder().items(9000).bits_per_key(20.0);
    /// let filter = builder.list_share(0.01).build()?;
    /// let bytes = filter.to_bytes();
    /// let again = Balanced::from_bytes(&bytes[..])?.into_owned()?;
    /// assert_eq!(again.list_capacity(), Some(90));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn list_capacity(&self) -> Option<u64> {
        self.stored_list_capacity().ok().flatten()
    }

    /// Average blocks read per insertion so far (a); none before the first.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let mut filter =
    ///     Balanced::builder().items(9).bits_per_key(20.0).build()?;
    /// filter.insert("apple");
    /// assert_eq!(filter.accesses(), Some(1.0));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn accesses(&self) -> Option<f64> {
        let Tally { refused, returned, .. } = self.tally;
        let choices = f64::from(self.shape().choices());
        let all = refused as f64 * choices + returned as f64 * (choices - 1.0);
        self.mean_reads(all)
    }

    /// The share of keys that every block refused (gamma); none before the
    /// first key.
    ///
    /// ```
    /// use tamis::Balanced;
    /// let mut filter =
    ///     Balanced::builder().items(9).bits_per_key(20.0).build()?;
    /// filter.insert("apple");
    /// assert_eq!(filter.overflow_fraction(), Some(0.0));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn overflow_fraction(&self) -> Option<f64> {
        let items = self.len();
        let refused = self.tally.refused + self.tally.returned;
        (items > 0).then(|| refused as f64 / items as f64)
    }

    /// The content of every block; see
    /// [`inspect`](crate::inspect::Inspector::block_states).
    pub(crate) fn block_states(
        &self,
    ) -> impl Iterator<Item = BlockState> + '_ {
        let levels = match self.shape().scheme {
            Scheme::Multilevel => self.shape().choices(),
            _ => 1,
        };
        (0..levels).flat_map(|level| self.level_states(level))
    }

    fn level_states(
        &self,
        choice: u32,
    ) -> impl Iterator<Item = BlockState> + '_ {
        let division = self.engine.division(choice);
        let (blocks, level) = self.level(choice);
        blocks.map(move |block| BlockState {
            level,
            load: division.load(block),
            ones: division.ones(block),
            tracked: division.tracked(block),
        })
    }

    /// The blocks a choice can propose, and their level.
    fn level(&self, choice: u32) -> (impl Iterator<Item = &[u8]> + '_, u32) {
        let level = self.shape().proposals.range(choice);
        let bytes = self.shape().block_bits as usize / 8;
        let start = level.first as usize * bytes;
        let end = start + level.blocks as usize * bytes;
        let number = match self.shape().scheme {
            Scheme::Multilevel => choice,
            _ => 0,
        };
        (self.blocks()[start..end].chunks_exact(bytes), number)
    }

    fn blocks(&self) -> &[u8] {
        self.envelope.blocks()
    }

    fn list(&self) -> OverflowListView<'_> {
        match self.stored_list.is_empty() {
            true => self.list.view(),
            false => OverflowListView {
                sorted: bytemuck::cast_slice(self.stored_list()),
                recent: &[],
            },
        }
    }

    fn stored_list(&self) -> &[u8] {
        &self.envelope.data.as_ref()[self.stored_list.clone()]
    }

    /// Reads per placed key plus `rest` reads for all others, on average.
    fn mean_reads(&self, rest: f64) -> Option<f64> {
        let items = self.len();
        let placed: f64 = (1..)
            .zip(&self.tally.placed)
            .map(|(reads, &keys): (u64, _)| reads as f64 * keys as f64)
            .sum();
        (items > 0).then(|| (placed + rest) / items as f64)
    }

    /// For each choice, the probabilities that its blocks claim an absent
    /// key, and that the lookup continues with the next choice.
    fn walk(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        (0..self.shape().choices()).map(|choice| {
            let division = self.engine.division(choice);
            let bits = division.payload_bits();
            let claim: Vec<f64> = (0..=bits)
                .map(|ones| {
                    let fill = f64::from(ones) / f64::from(bits);
                    power(fill, self.shape().probes)
                })
                .collect();
            let (mut claimed, mut passed, mut blocks) = (0.0, 0.0, 0.0);
            for state in self.level_states(choice) {
                let claim = claim[state.ones as usize];
                let refused = match self.shape().absorbs(choice) {
                    true => 0.0,
                    false => self.refused_share(&state, division),
                };
                claimed += claim;
                passed += (1.0 - claim) * refused;
                blocks += 1.0;
            }
            (claimed / blocks, passed / blocks)
        })
    }

    fn refused_share(&self, state: &BlockState, division: Division) -> f64 {
        let share = tracking::share(state.tracked, division.tracking_bits);
        self.shape().refusal.share(state.load, state.ones) * share
    }
}

impl<D: AsRef<[u8]>> Filter for Balanced<D> {
    fn kind(&self) -> Kind {
        Kind::Balanced
    }

    envelope_methods!();

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.fns.contains(self, hash)
    }

    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_same_length(hashes.len(), found.len());
        let view = (self.blocks(), self.list());
        self.fns.contains_batch(&self.engine, view, hashes, found);
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        self.engine.prefetch(self.blocks(), hash, 0);
    }

    fn bytes(&self) -> u64 {
        let list = self.list();
        let entries = list.sorted.len() + list.recent.len();
        let geometry = self.shape().encode(&self.tally);
        let list = Some(8 * entries);
        self.envelope.header(Kind::Balanced, geometry, list).bytes
    }

    fn stats(&self) -> Stats {
        let Counts { items, design_items, design_fpr } = self.envelope.counts;
        let (mut expected_fpr, mut reads_miss, mut reach) = (0.0, 0.0, 1.0);
        for (claimed, passed) in self.walk() {
            reads_miss += reach;
            expected_fpr += reach * claimed;
            reach *= passed;
        }
        let choices = f64::from(self.shape().choices());
        let refused = self.tally.refused as f64;
        let reads_of_refused = match self.shape().overflow {
            Overflow::List => {
                // Two different keys with one hash: the list's only error.
                expected_fpr += reach * refused / 18_446_744_073_709_551_616.0;
                choices
            }
            Overflow::First => 1.0,
            Overflow::Random => (choices + 1.0) / 2.0,
            Overflow::Absorb => 0.0,
        };
        let list_bits = match self.shape().overflow {
            Overflow::List => 64.0 * refused,
            _ => 0.0,
        };
        let bits = self.blocks().len() as f64 * 8.0 + list_bits;
        // The sum over a full filter may round to a little above one.
        let expected_fpr = expected_fpr.min(1.0);
        let estimate = Estimate::of_counted(items, expected_fpr);
        Stats {
            kind: Kind::Balanced,
            items,
            least_items: items,
            estimated_items: estimate
                .best
                .clamp(items as f64, u64::MAX as f64),
            most_items: estimate.finite_most(),
            design_items,
            bytes: self.bytes(),
            bits_per_key: (items > 0).then(|| bits / items as f64),
            expected_fpr,
            design_fpr,
            reads_hit: self
                .mean_reads(refused * reads_of_refused)
                .unwrap_or(1.0),
            reads_miss,
            saturated_blocks: 0,
            stuck_keys: 0,
            over_design: items > design_items,
        }
    }

    fn verify(&self) -> Result<()> {
        self.envelope.verify()?;
        let (mut ones, mut loads) = (0, 0);
        for state in self.block_states() {
            ones += u64::from(state.ones);
            loads += u64::from(state.load);
        }
        let items = self.len();
        if ones > items.saturating_mul(self.shape().probes.into()) {
            return Err(Error::Inconsistent(
                "more bits are set than the keys counted could set",
            ));
        }
        if loads > items {
            return Err(Error::Inconsistent(
                "the blocks count more keys than there are",
            ));
        }
        let sorted = self.list().sorted;
        let in_order = sorted.windows(2).all(|pair| {
            u64::from_le_bytes(pair[0]) < u64::from_le_bytes(pair[1])
        });
        if !in_order {
            return Err(Error::Inconsistent("the list is not sorted"));
        }
        Ok(())
    }
}

impl FilterMut for Balanced {
    fn insert_hash(&mut self, hash: u64) -> bool {
        self.insert_one(hash, false)
    }

    fn insert_hash_batch(&mut self, hashes: &[u64]) {
        let (engine, fns, site) = self.site(false);
        fns.insert_batch(engine, site, hashes);
        self.envelope.counts.items = self.tally.items();
    }

    fn clear(&mut self) {
        self.envelope.clear();
        self.tally = Tally::default();
        self.list.clear();
    }
}

impl<D: AsRef<[u8]>> Persist for Balanced<D> {
    fn image(&self) -> Image<'_> {
        let list = match self.stored_list.is_empty() {
            true => Cow::Owned(flatten(&self.list.to_sorted())),
            false => Cow::Borrowed(self.stored_list()),
        };
        let geometry = self.shape().encode(&self.tally);
        self.envelope.image(Kind::Balanced, geometry, Some(list))
    }
}

fn flatten(entries: &[HashBytes]) -> Vec<u8> {
    entries.as_flattened().to_vec()
}

impl<D: AsRef<[u8]>> Balanced<D> {
    /// The settings by name; see [`inspect`](crate::inspect::Inspector::parameters).
    pub(crate) fn parameters(&self) -> Parameters {
        let shape = self.shape();
        let mut all = vec![
            ("scheme", Parameter::Word(shape.scheme.name())),
            ("choices", Parameter::Count(shape.choices().into())),
            ("overflow", Parameter::Word(shape.overflow.name())),
        ];
        match shape.refusal.threshold() {
            Threshold::Keys { threshold, admission } => {
                all.push(("threshold_by", Parameter::Word("count")));
                all.push(("threshold", Parameter::Count(threshold.into())));
                all.push(("admission", Parameter::Number(admission)));
            }
            Threshold::SetBits { set_bits } => {
                all.push(("threshold_by", Parameter::Word("popcount")));
                all.push(("threshold", Parameter::Count(set_bits.into())));
            }
        }
        let division = self.engine.division(0);
        all.extend([
            ("tracking_bits", Parameter::Count(shape.tracking_bits.into())),
            ("counter_bits", Parameter::Count(division.counter_bits.into())),
            ("blocks", Parameter::Count(shape.blocks())),
            ("level_blocks", Parameter::Counts(shape.levels().to_vec())),
            ("block_bits", Parameter::Count(shape.block_bits.into())),
            ("probes", Parameter::Count(shape.probes.into())),
        ]);
        if let Some(capacity) = self.list_capacity() {
            all.push(("list_capacity", Parameter::Count(capacity)));
        }
        if let (Some(accesses), Some(overflow)) =
            (self.accesses(), self.overflow_fraction())
        {
            all.push(("accesses", Parameter::Number(accesses)));
            all.push(("overflow_fraction", Parameter::Number(overflow)));
        }
        all
    }
}
