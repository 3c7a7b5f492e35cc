//! Lookups and insertions, for every shape of block.

use bytemuck::Pod;

use super::geometry::Geometry;
use crate::batch::together::{self, LANES, Together};
use crate::batch::{self, CACHE, Staged, Step, Unplanned, Updated};
use crate::block::fingerprint::{
    ANY, Answer, Entry, Expected, Fixed, Form, Insertion, Key, Repeats, Shape,
    State,
};
use crate::placement::{Range, address};
use crate::simd::{Backend, Task, dispatch, prefetch};
use crate::storage::{Anywhere, Memory, Owned};

/// One way to handle blocks.
pub(super) trait Blocks: Copy {
    /// What memory is divided into.
    type Unit: Pod;
    /// One block.
    type Raw: ?Sized + AsRef<[u8]> + AsMut<[u8]>;
    /// The way of the second level.
    type Second: Blocks<Unit = Self::Unit, Raw = Self::Raw>;
    /// Whether chains may have moved to a second level.
    const SPILL: bool;

    fn of_second(&self, shape: Shape) -> Option<Self::Second>;

    fn get<'a>(&self, units: &'a [Self::Unit], block: u64) -> &'a Self::Raw;

    fn get_mut<'a>(
        &self,
        units: &'a mut [Self::Unit],
        block: u64,
    ) -> &'a mut Self::Raw;

    /// How many blocks a hash chooses from, if `count` are of the first
    /// level.
    fn count(units: Range<'_, Self::Unit>, count: u64) -> u64;

    /// The block that it chooses, and what is left of it.
    fn choose<'a>(
        &self,
        units: Range<'a, Self::Unit>,
        count: u64,
        hash: u64,
    ) -> (&'a Self::Raw, u64);

    /// The same in data of which it is not known that it is there.
    fn choose_in<D, M: Memory<D>>(
        data: &D,
        before: u64,
        count: u64,
        hash: u64,
    ) -> Option<(&Self::Raw, u64)>;

    /// Such data, for blocks that begin at one of its bytes.
    type Data<'a>: Data<'a, Self::Raw>;

    fn data<'a>(&self, data: &'a [u8]) -> Option<Self::Data<'a>>;

    /// Bytes from one block to the next.
    fn bytes(&self) -> usize;

    /// The chain of a key.
    fn chain(&self, hash: u64) -> u32;

    /// What a block is asked for.
    fn key(chain: u32, fraction: u64) -> Key;

    fn look<B: Backend>(
        &self,
        backend: B,
        block: &Self::Raw,
        key: Key,
    ) -> Answer;

    /// The same, if the block is a usual one.
    fn look_usual<B: Backend>(
        &self,
        backend: B,
        block: &Self::Raw,
        key: Key,
    ) -> Option<Answer>;

    /// The same, if it is not.
    fn look_unusual<B: Backend>(
        &self,
        backend: B,
        block: &Self::Raw,
        key: Key,
    ) -> Answer;

    /// The fast way to insert, if it can.
    fn try_insert<B: Backend>(
        &self,
        backend: B,
        block: &mut Self::Raw,
        chain: u32,
        fraction: u64,
        repeats: Repeats,
    ) -> Insertion;
}

impl<const BYTES: usize, const FLAGS: u32, const FILL: u8> Blocks
    for Fixed<BYTES, FLAGS, FILL>
{
    type Unit = [u8; BYTES];
    type Raw = [u8; BYTES];
    type Second = Fixed<BYTES, 0, ANY>;
    const SPILL: bool = Self::SPILL;

    fn of_second(&self, shape: Shape) -> Option<Self::Second> {
        // The one way of which nothing is expected: how full its blocks are
        // matters to few lookups.
        Fixed::new(shape, Expected { entries: 0, cached: false })
    }

    #[inline(always)]
    fn get<'a>(&self, units: &'a [[u8; BYTES]], block: u64) -> &'a Self::Raw {
        &units[block as usize]
    }

    #[inline(always)]
    fn get_mut<'a>(
        &self,
        units: &'a mut [[u8; BYTES]],
        block: u64,
    ) -> &'a mut Self::Raw {
        &mut units[block as usize]
    }

    /// Where there is one level, as many as there are: then it is known that
    /// the one which is chosen is there.
    #[inline(always)]
    fn count(units: Range<'_, [u8; BYTES]>, count: u64) -> u64 {
        if Self::SPILL { count } else { units.all().len() as u64 }
    }

    #[inline(always)]
    fn choose<'a>(
        &self,
        units: Range<'a, [u8; BYTES]>,
        count: u64,
        hash: u64,
    ) -> (&'a Self::Raw, u64) {
        if Self::SPILL {
            let (block, rest) = address(hash, count);
            (self.get(units.all(), block), rest)
        } else {
            units.choose_and_rest(hash)
        }
    }

    #[inline(always)]
    fn choose_in<D, M: Memory<D>>(
        data: &D,
        before: u64,
        count: u64,
        hash: u64,
    ) -> Option<(&Self::Raw, u64)> {
        if !Self::SPILL {
            return M::choose(data, before, count, hash);
        }
        // Those of the second level are there, too.
        let (block, rest) = address(hash, count);
        Some((M::block(data, before, block)?, rest))
    }

    type Data<'a> = Anywhere<'a, BYTES>;

    #[inline(always)]
    fn data<'a>(&self, data: &'a [u8]) -> Option<Anywhere<'a, BYTES>> {
        Anywhere::new(data)
    }

    #[inline(always)]
    fn bytes(&self) -> usize {
        BYTES
    }

    #[inline(always)]
    fn chain(&self, hash: u64) -> u32 {
        Self::chain(hash)
    }

    #[inline(always)]
    fn key(chain: u32, fraction: u64) -> Key {
        Self::key(chain, fraction)
    }

    #[inline(always)]
    fn look<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        key: Key,
    ) -> Answer {
        self.look(backend, block, key)
    }

    #[inline(always)]
    fn look_usual<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        key: Key,
    ) -> Option<Answer> {
        self.look_usual(backend, block, key)
    }

    #[inline(always)]
    fn look_unusual<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        key: Key,
    ) -> Answer {
        self.look_harder(backend, block, key)
    }

    #[inline(always)]
    fn try_insert<B: Backend>(
        &self,
        backend: B,
        block: &mut [u8; BYTES],
        chain: u32,
        fraction: u64,
        repeats: Repeats,
    ) -> Insertion {
        self.insert(backend, block, chain, fraction, repeats)
    }
}

/// Data of blocks that begin at one of its bytes.
pub(super) trait Data<'a, T: ?Sized>: Copy {
    /// The block that begins there.
    fn at(self, offset: u64) -> Option<&'a T>;
}

impl<'a, const BYTES: usize> Data<'a, [u8; BYTES]> for Anywhere<'a, BYTES> {
    #[inline(always)]
    fn at(self, offset: u64) -> Option<&'a [u8; BYTES]> {
        self.get(offset)
    }
}

impl<'a> Data<'a, [u8]> for (&'a [u8], usize) {
    fn at(self, offset: u64) -> Option<&'a [u8]> {
        let (data, bytes) = self;
        data.get(offset as usize..)?.get(..bytes)
    }
}

/// Blocks of any size, bit by bit.
impl Blocks for Shape {
    type Unit = u8;
    type Raw = [u8];
    type Second = Self;
    const SPILL: bool = false;

    fn of_second(&self, shape: Shape) -> Option<Self> {
        Some(shape)
    }

    fn get<'a>(&self, units: &'a [u8], block: u64) -> &'a [u8] {
        let start = block as usize * self.bytes();
        &units[start..start + self.bytes()]
    }

    fn get_mut<'a>(&self, units: &'a mut [u8], block: u64) -> &'a mut [u8] {
        let start = block as usize * self.bytes();
        &mut units[start..start + self.bytes()]
    }

    fn count(_: Range<'_, u8>, count: u64) -> u64 {
        count
    }

    fn choose<'a>(
        &self,
        units: Range<'a, u8>,
        count: u64,
        hash: u64,
    ) -> (&'a [u8], u64) {
        let (block, rest) = address(hash, count);
        (self.get(units.all(), block), rest)
    }

    fn choose_in<D, M: Memory<D>>(
        _: &D,
        _: u64,
        _: u64,
        _: u64,
    ) -> Option<(&[u8], u64)> {
        None
    }

    /// And the bytes of a block.
    type Data<'a> = (&'a [u8], usize);

    fn data<'a>(&self, data: &'a [u8]) -> Option<(&'a [u8], usize)> {
        Some((data, self.bytes()))
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn chain(&self, hash: u64) -> u32 {
        self.chain(hash)
    }

    fn key(chain: u32, fraction: u64) -> Key {
        // Heads are read like other bits.
        Key::new(chain, fraction, 0)
    }

    fn look<B: Backend>(&self, _: B, block: &[u8], key: Key) -> Answer {
        let state = State::read_or_saturated(self, block);
        match state.count(key.chain(), key.fraction()) {
            Some(0) => Answer::No,
            _ => Answer::Maybe,
        }
    }

    fn look_usual<B: Backend>(
        &self,
        _: B,
        _: &[u8],
        _: Key,
    ) -> Option<Answer> {
        None
    }

    fn look_unusual<B: Backend>(
        &self,
        backend: B,
        block: &[u8],
        key: Key,
    ) -> Answer {
        self.look(backend, block, key)
    }

    fn try_insert<B: Backend>(
        &self,
        _: B,
        _: &mut [u8],
        _: u32,
        _: u64,
        _: Repeats,
    ) -> Insertion {
        Insertion::Slow
    }
}

/// The blocks of some keys and what they are asked for, each part of it a
/// row of its own: a vector at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct Places {
    /// Where the block begins.
    offsets: [u64; LANES],
    /// As a [`Key`] packs them.
    words: [u64; LANES],
    heads: [u64; LANES],
}

impl Places {
    #[inline(always)]
    fn get(&self, lane: usize) -> (u64, Key) {
        let key = Key::unpack((self.words[lane], self.heads[lane]));
        (self.offsets[lane], key)
    }

    #[inline(always)]
    fn set(&mut self, lane: usize, (offset, key): (u64, Key)) {
        self.offsets[lane] = offset;
        (self.words[lane], self.heads[lane]) = key.pack();
    }
}

/// What a lookup needs and nothing else.
#[derive(Clone, Copy)]
pub(super) struct View<'a, C: Blocks> {
    geometry: &'a Geometry,
    /// Of the first level.
    count: u64,
    blocks: &'a C,
    units: Range<'a, C::Unit>,
}

impl<'a, C: Blocks> View<'a, C> {
    #[inline(always)]
    pub(super) fn new(
        geometry: &'a Geometry,
        blocks: &'a C,
        bytes: &'a [u8],
    ) -> Self {
        // Whole blocks: the length was checked when the filter was made.
        let units = Range::new(bytemuck::cast_slice(bytes))
            .expect("a filter has blocks");
        Self { geometry, count: geometry.blocks, blocks, units }
    }

    /// All blocks.
    #[inline(always)]
    fn data(&self) -> &'a [u8] {
        bytemuck::cast_slice(self.units.all())
    }

    /// How many blocks a hash chooses from: known to be there, where that is
    /// all of them.
    #[inline(always)]
    fn count(&self) -> u64 {
        let count = C::count(self.units, self.count);
        debug_assert_eq!(count, self.count);
        count
    }

    /// Where a block begins.
    #[inline(always)]
    fn offset(&self, block: u64) -> u64 {
        block * self.blocks.bytes() as u64
    }

    /// The block of a key, and what it is asked for.
    #[inline(always)]
    fn asked(&self, hash: u64) -> (&'a C::Raw, Key) {
        let (raw, fraction) = self.blocks.choose(self.units, self.count, hash);
        (raw, C::key(self.blocks.chain(hash), fraction))
    }

    /// A lookup in the second level.
    #[inline(always)]
    fn second<B: Backend>(
        &self,
        backend: B,
        (block, chain, fraction): (u64, u32, u64),
    ) -> Answer {
        let (block, chain) = self.geometry.second_address(block, chain);
        let raw = self.blocks.get(self.units.all(), block);
        match self.blocks.of_second(self.geometry.second_shape()) {
            Some(blocks) => {
                let key = C::Second::key(chain, fraction);
                blocks.look(backend, raw, key)
            }
            None => Answer::Maybe,
        }
    }
}

impl<'a, C: Blocks> Staged for View<'a, C> {
    const AHEAD: usize = 32;
    const CACHED: usize = CACHE;

    type First = Self;
    type Later = Second<'a, C>;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.units.all())
    }

    #[inline(always)]
    fn first(&self) -> Self {
        *self
    }

    #[inline(always)]
    fn later(&self, _: u32) -> Second<'a, C> {
        Second(*self)
    }

    #[inline(always)]
    fn is_one_round(&self) -> bool {
        !C::SPILL
    }
}

impl<C: Blocks> Unplanned for View<'_, C> {
    #[inline(always)]
    fn ask<const CACHED: bool>(&self, hash: u64) {
        let (block, _) = address(hash, self.count());
        prefetch::<CACHED>(self.data(), self.offset(block) as usize);
    }

    #[inline(always)]
    fn step<B: Backend>(&self, backend: B, hash: u64) -> Step {
        let (raw, key) = self.asked(hash);
        let usual = self.blocks.look_usual(backend, raw, key);
        let view = *self;
        usual
            .unwrap_or_else(|| backend.outline_rare(Unusual { view, hash }))
            .into()
    }
}

/// A lookup in a block that is not a usual one. Begins again: what is handed
/// on would have to be kept, and somewhere, by all lookups.
pub(super) struct Unusual<'a, C: Blocks> {
    pub(super) view: View<'a, C>,
    pub(super) hash: u64,
}

impl<C: Blocks> Task for Unusual<'_, C> {
    type Output = Answer;

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) -> Answer {
        let Self { view, hash } = self;
        let (raw, key) = view.asked(hash);
        view.blocks.look_unusual(backend, raw, key)
    }
}

/// Lookups in rows, where there is no second level.
#[derive(Clone, Copy)]
pub(super) struct InRows<'a, C: Blocks> {
    view: View<'a, C>,
    data: C::Data<'a>,
    /// The number of blocks if 32 bits are enough, else zero.
    few: u32,
}

impl<'a, C: Blocks> InRows<'a, C> {
    #[inline(always)]
    pub(super) fn new(view: View<'a, C>) -> Option<Self> {
        let data = view.blocks.data(view.data())?;
        let few = u32::try_from(view.count).unwrap_or(0);
        (!C::SPILL).then_some(Self { view, data, few })
    }

    /// Where the block of a key begins, and what it is asked for.
    #[inline(always)]
    fn place(&self, hash: u64, block: u64, fraction: u64) -> (u64, Key) {
        let View { blocks, .. } = self.view;
        let key = C::key(blocks.chain(hash), fraction);
        (self.view.offset(block), key)
    }

    /// Plans keys one by one: more blocks than 32 bits can count.
    #[cold]
    #[inline(never)]
    fn plan_each(&self, hashes: &[u64; LANES], places: &mut Places) {
        for (lane, &hash) in hashes.iter().enumerate() {
            let (block, fraction) = address(hash, self.view.count);
            places.set(lane, self.place(hash, block, fraction));
        }
    }
}

impl<C: Blocks> Together for InRows<'_, C> {
    type Plans = Places;

    const CACHED: usize = CACHE;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.view.units.all())
    }

    #[inline(always)]
    fn plan(&self, hashes: &[u64; LANES], places: &mut Places) {
        if self.few == 0 {
            return self.plan_each(hashes, places);
        }
        // Products of 32 bits: of those a vector has room for several, and
        // the compiler sees it.
        let count = u64::from(self.few);
        for (lane, &hash) in hashes.iter().enumerate() {
            let high = (hash >> 32) * count;
            let low = (hash & 0xffff_ffff) * count;
            // Below 2^64: a product of 32 bits, and less than 2^32.
            let upper = high + (low >> 32);
            let fraction = upper << 32 | low & 0xffff_ffff;
            places.set(lane, self.place(hash, upper >> 32, fraction));
        }
    }

    #[inline(always)]
    fn ask<const CACHED: bool>(&self, places: &Places, lane: usize) {
        prefetch::<CACHED>(self.view.data(), places.offsets[lane] as usize);
    }

    #[inline(always)]
    fn look<B: Backend>(
        &self,
        backend: B,
        places: &Places,
        lane: usize,
    ) -> bool {
        let (offset, key) = places.get(lane);
        match self.data.at(offset) {
            Some(block) => {
                self.view.blocks.look(backend, block, key) != Answer::No
            }
            // Not in a filter that was checked.
            None => true,
        }
    }
}

/// The round in the second level.
#[derive(Clone, Copy)]
pub(super) struct Second<'a, C: Blocks>(View<'a, C>);

impl<C: Blocks> Unplanned for Second<'_, C> {
    #[inline(always)]
    fn ask<const CACHED: bool>(&self, hash: u64) {
        let Self(view) = self;
        let (block, _) = address(hash, view.count);
        let chain = view.blocks.chain(hash);
        let (block, _) = view.geometry.second_address(block, chain);
        prefetch::<CACHED>(view.data(), view.offset(block) as usize);
    }

    #[inline(always)]
    fn step<B: Backend>(&self, backend: B, hash: u64) -> Step {
        let Self(view) = *self;
        let (block, fraction) = address(hash, view.count);
        let key = (block, view.blocks.chain(hash), fraction);
        backend.outline(InSecond { view, key }).into()
    }
}

impl From<Answer> for Step {
    #[inline(always)]
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::No => Self::No,
            Answer::Maybe => Self::Yes,
            Answer::Spilled => Self::Next,
        }
    }
}

/// [`View::second`], out of line: few lookups get there, and most filters
/// have no second level.
struct InSecond<'a, C: Blocks> {
    view: View<'a, C>,
    key: (u64, u32, u64),
}

impl<C: Blocks> Task for InSecond<'_, C> {
    type Output = Answer;

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) -> Answer {
        self.view.second(backend, self.key)
    }
}

/// Many lookups; `found` is overwritten.
pub(super) fn contains_all<C: Blocks>(
    view: View<'_, C>,
    hashes: &[u64],
    found: &mut [bool],
) {
    struct Many<'a, C: Blocks>(View<'a, C>, &'a [u64], &'a mut [bool]);
    impl<C: Blocks> Task for Many<'_, C> {
        type Output = ();

        #[inline(always)]
        fn run<B: Backend>(self, backend: B) {
            let Self(view, hashes, found) = self;
            match InRows::new(view) {
                Some(rows) if B::WIDE => {
                    together::look_up(rows, backend, hashes, found);
                }
                _ => batch::look_up(view, backend, hashes, found),
            }
        }
    }
    found.fill(false);
    dispatch(Many(view, hashes, found));
}

/// What an insertion needs.
pub(super) struct Store<'a, C: Blocks> {
    geometry: &'a Geometry,
    blocks: &'a C,
    units: &'a mut [C::Unit],
    /// The first block of `units`, which may be a part of all.
    first: u64,
}

impl<'a, C: Blocks> Store<'a, C> {
    #[inline(always)]
    pub(super) fn new(
        geometry: &'a Geometry,
        blocks: &'a C,
        memory: &'a mut [impl Pod],
        first: u64,
    ) -> Self {
        let units = bytemuck::cast_slice_mut(memory);
        Self { geometry, blocks, units, first }
    }

    /// All of a filter.
    #[inline(always)]
    pub(super) fn of(
        geometry: &'a Geometry,
        blocks: &'a C,
        data: &'a mut Owned,
    ) -> Self {
        // Lines: what is cast from them needs no test.
        Self::new(geometry, blocks, data.lines_mut(), 0)
    }

    /// Inserts keys.
    pub(super) fn insert_all(self, hashes: &[u64]) {
        struct Fill<'s, 'a, C: Blocks> {
            store: Store<'a, C>,
            hashes: &'s [u64],
        }
        impl<C: Blocks> Task for Fill<'_, '_, C> {
            type Output = ();

            #[inline(always)]
            fn run<B: Backend>(self, backend: B) {
                let Self { mut store, hashes } = self;
                batch::update_all(backend, &mut store, hashes);
            }
        }
        dispatch(Fill { store: self, hashes });
    }

    /// Inserts a key the fast way, if it can.
    #[inline(always)]
    pub(super) fn try_insert<B: Backend>(
        &mut self,
        backend: B,
        hash: u64,
        repeats: Repeats,
    ) -> Insertion {
        let (block, fraction) = address(hash, self.geometry.blocks);
        let chain = self.blocks.chain(hash);
        let raw = self.blocks.get_mut(self.units, block - self.first);
        self.blocks.try_insert(backend, raw, chain, fraction, repeats)
    }

    /// Inserts a key by taking its block apart; whether it certainly is
    /// new, if that was asked.
    pub(super) fn insert_apart<B: Backend>(
        &mut self,
        backend: B,
        hash: u64,
        repeats: Repeats,
    ) -> bool {
        let (block, fraction) = address(hash, self.geometry.blocks);
        let chain = self.blocks.chain(hash);
        let mut new = true;
        if repeats != Repeats::Store {
            let raw = self.blocks.get(self.units, block - self.first);
            let key = C::key(chain, fraction);
            new = match self.blocks.look(backend, raw, key) {
                Answer::No => true,
                Answer::Maybe => false,
                // Structures of two levels are never filled in parts.
                Answer::Spilled => {
                    let bytes = bytemuck::cast_slice(self.units);
                    View::new(self.geometry, self.blocks, bytes)
                        .second(backend, (block, chain, fraction))
                        == Answer::No
                }
            };
        }
        if new || repeats != Repeats::Skip {
            self.insert_slowly(block, chain, fraction);
        }
        new
    }

    fn insert_slowly(&mut self, block: u64, chain: u32, fraction: u64) {
        let entry = Entry::new(chain, fraction);
        let shape = &self.geometry.shape;
        let raw = self.blocks.get_mut(self.units, block - self.first).as_mut();
        let state = State::read_or_saturated(shape, raw);
        let (cap, mut contents) = match (shape.form, state) {
            (Form::Capped(cap), State::Holding(contents)) => (cap, contents),
            (_, state) => {
                state.insert(shape, entry).write(shape, raw);
                return;
            }
        };
        let spilled = match contents.has_spilled(chain) {
            true => alloc::vec![entry],
            false => {
                let spilled = contents.insert_below(entry, cap);
                contents.settle(shape).write(shape, raw);
                spilled
            }
        };
        let shape = self.geometry.second_shape();
        for entry in spilled {
            let (block, chain) =
                self.geometry.second_address(block, entry.chain);
            let raw = self.blocks.get_mut(self.units, block).as_mut();
            State::read_or_saturated(&shape, raw)
                .insert(&shape, Entry { chain, ..entry })
                .write(&shape, raw);
        }
    }
}

impl<C: Blocks> Updated for Store<'_, C> {
    type Item = u64;

    #[inline(always)]
    fn prefetch(&self, &hash: &u64) {
        let (block, _) = address(hash, self.geometry.blocks);
        let bytes = bytemuck::cast_slice(self.units);
        let place = (block - self.first) as usize * self.blocks.bytes();
        prefetch::<false>(bytes, place);
    }

    #[inline(always)]
    fn update<B: Backend>(&mut self, backend: B, &hash: &u64) {
        let repeats = match self.geometry.repeats {
            false => Repeats::Skip,
            true => Repeats::Store,
        };
        let done = self.try_insert(backend, hash, repeats);
        if done == Insertion::Slow {
            backend.outline(Slowly { store: self, hash, repeats });
        }
    }
}

/// [`Store::insert_apart`], out of line.
struct Slowly<'s, 'a, C: Blocks> {
    store: &'s mut Store<'a, C>,
    hash: u64,
    repeats: Repeats,
}

impl<C: Blocks> Task for Slowly<'_, '_, C> {
    type Output = bool;

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) -> bool {
        let Self { store, hash, repeats } = self;
        store.insert_apart(backend, hash, repeats)
    }
}

/// The blocks of a filter of one level, to be filled on several threads.
#[cfg(feature = "std")]
#[derive(Clone, Copy)]
pub(super) struct Array<'a, C> {
    pub(super) geometry: &'a Geometry,
    pub(super) blocks: &'a C,
}

#[cfg(feature = "std")]
impl<C: Blocks + Sync> crate::parallel::Divided for Array<'_, C> {
    fn blocks(&self) -> u64 {
        self.geometry.blocks
    }

    fn block_bytes(&self) -> usize {
        self.blocks.bytes()
    }

    #[inline(always)]
    fn parts(&self) -> u32 {
        1
    }

    #[inline(always)]
    fn block(&self, hash: u64, _: u32) -> u64 {
        address(hash, self.geometry.blocks).0
    }

    fn apply(&self, first: u64, range: &mut [u8], _: u32, hashes: &[u64]) {
        Store::new(self.geometry, self.blocks, range, first)
            .insert_all(hashes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::fingerprint::{HALVED, PLACED};
    use proptest::prelude::*;
    use tamis_theory::tinyset::Block;

    /// Rows are planned as single keys are, however many blocks there are.
    fn planned_alike<C: Blocks>(blocks: &C, count: u64, hashes: [u64; LANES]) {
        let shape = Shape::new(Block::new(512, 64), Form::Plain);
        let geometry = Geometry {
            blocks: count,
            shape,
            second: 0,
            removable: false,
            repeats: false,
        };
        // No block is looked at: one is enough.
        let bytes = [0; 64];
        let view = View::new(&geometry, blocks, &bytes);
        let rows = InRows::new(view).expect("there is room for a block");
        let mut places = Places::default();
        rows.plan(&hashes, &mut places);
        for (lane, hash) in hashes.into_iter().enumerate() {
            let (block, fraction) = address(hash, count);
            let (offset, key) = places.get(lane);
            assert_eq!(offset, block * blocks.bytes() as u64);
            let chain = blocks.chain(hash);
            assert_eq!(key.chain(), chain);
            // What fingerprints are made of.
            assert_eq!(key.fraction() >> 16, fraction >> 16);
            assert_eq!(key.pack(), C::key(chain, fraction).pack());
        }
    }

    proptest! {
        #[test]
        fn rows_are_planned_as_single_keys(
            hashes in any::<[u64; LANES]>(),
            count in prop_oneof![
                1u64..1000,
                Just(u64::from(u32::MAX)),
                Just(1 << 32),
                1u64..1 << 50,
            ],
        ) {
            let expected = Expected { entries: 57, cached: true };
            let shape = Shape::new(Block::new(512, 64), Form::Plain);
            let halves = shape.with_head(4);
            let bytes = Fixed::<64, 0>::new(shape, expected).unwrap();
            planned_alike(&bytes, count, hashes);
            let halved = Fixed::<64, 0, HALVED>::new(halves, expected);
            planned_alike(&halved.unwrap(), count, hashes);
            let placed = shape.with_placed_heads();
            let placed = Fixed::<64, 0, PLACED>::new(placed, expected);
            planned_alike(&placed.unwrap(), count, hashes);
            planned_alike(&shape, count, hashes);
        }
    }
}
