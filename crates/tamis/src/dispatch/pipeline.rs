//! The batch loops: one for lookups, one for updates.
//!
//! A lookup is a sequence of *probes*, each of which reads one block. In a
//! batch the block of a later key is prefetched while that of an earlier one
//! is tested. Keys are handled in rows of [`ROW`], so that the work before
//! the block arrives (which block, which chain, which bits) can be planned for
//! a row at once, in vectors. Keys whose first block does not decide go
//! through the same loop again with their next block.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::Backend;
use crate::arch::{Hint, L1, L2, WithToken, opaque};
use crate::block::Verdict;

/// Keys in a row.
pub(crate) const ROW: usize = 16;

/// Keys that go through one probe before those that need another one do:
/// bounds the memory for them.
const CHUNK: usize = 4096;

/// Items prefetched ahead of an update.
const UPDATES_AHEAD: usize = 32;

/// Size in bytes up to which a structure is likely to be in the third-level
/// cache, and in the second-level one.
pub(crate) const L3_BYTES: usize = 16 << 20;
pub(crate) const L2_BYTES: usize = 1 << 20;

/// One block read of a lookup.
pub(crate) trait Probe: Copy {
    /// Intermediate values of a row of keys, kept until their blocks arrive.
    /// Arrays of one value each, which the compiler computes in vectors.
    type Plans: Copy + Default;

    /// Whether [`test`](Self::test) ends in different places for different
    /// verdicts. Absent keys then need no store.
    const BRANCHES: bool = false;

    /// Whether [`plan_row`](Self::plan_row) does anything.
    const PLANS_ROWS: bool = false;

    /// Computes the part of a row's plans that is computed in vectors.
    #[inline(always)]
    fn plan_row(&self, hashes: &[u64; ROW], plans: &mut Self::Plans) {
        let _ = (hashes, plans);
    }

    /// Computes the rest of the plan of the key in a lane, and prefetches its
    /// block.
    fn prefetch<H: Hint>(
        &self,
        hash: u64,
        plans: &mut Self::Plans,
        lane: usize,
    );

    /// Tests the block of the key in a lane.
    fn test<B: Backend>(
        &self,
        backend: B,
        hash: u64,
        plans: &Self::Plans,
        lane: usize,
    ) -> Verdict;

    /// Plans and tests a single key.
    fn test_one<B: Backend>(&self, backend: B, hash: u64) -> Verdict;
}

/// A structure as a sequence of probes.
pub(crate) trait MultiProbe: Copy {
    /// Keys prefetched ahead if the structure is in memory: 32 or 64. Far
    /// enough to keep all fill buffers busy; nearer for tests that stall on
    /// their block even when it has arrived.
    const AHEAD: usize;

    /// Size in bytes up to which blocks are prefetched into the first-level
    /// cache, which has few fill buffers.
    const L1_BELOW: usize;

    /// Size in bytes up to which prefetching does not pay: out-of-order
    /// execution overlaps the second-level cache hits.
    const NO_PREFETCH_BELOW: usize = 0;

    /// Whether the first probe decides every lookup.
    const IS_SINGLE: bool;

    /// The first probe, which every key needs, and the later ones.
    type First: Probe;
    type Next: Probe;

    /// Size of all blocks in bytes.
    fn bytes(&self) -> usize;

    fn first(&self) -> Self::First;

    /// Probe `number`, counted from 0; at least 1.
    fn next(&self, number: u32) -> Self::Next;

    /// Looks up one key of a batch that is not prefetched.
    #[inline(always)]
    fn contains_one<B: Backend>(self, backend: B, hash: u64) -> bool {
        contains(self, backend, hash)
    }
}

/// Looks up one key.
#[inline(always)]
pub(crate) fn contains<S: MultiProbe, B: Backend>(
    structure: S,
    backend: B,
    hash: u64,
) -> bool {
    let mut verdict = structure.first().test_one(backend, hash);
    let mut number = 0;
    while verdict == Verdict::Continue {
        number += 1;
        verdict = structure.next(number).test_one(backend, hash);
    }
    verdict == Verdict::Maybe
}

/// [`contains`], out of line: with [`IS_COMPACT`](crate::arch::Token) one
/// function for single lookups in memory of every type and for batches.
#[inline(always)]
pub(crate) fn contains_outlined<S: MultiProbe, B: Backend>(
    structure: S,
    backend: B,
    hash: u64,
) -> bool {
    backend.call_outlined(One { structure, hash })
}

/// One lookup.
struct One<S> {
    structure: S,
    hash: u64,
}

impl<S: MultiProbe, B: Backend> WithToken<B> for One<S> {
    type Output = bool;

    #[inline(always)]
    fn run(self, backend: B) -> bool {
        contains(self.structure, backend, self.hash)
    }
}

/// Looks up `hashes`. `found` has the same length and is overwritten.
#[inline(always)]
pub(crate) fn contains_batch<S: MultiProbe, B: Backend>(
    structure: S,
    backend: B,
    hashes: &[u64],
    found: &mut [bool],
) {
    let bytes = structure.bytes();
    // `const` blocks, so that loops that are never entered are not compiled.
    if const { B::IS_COMPACT } {
        for (&hash, found) in hashes.iter().zip(found) {
            *found = contains_outlined(structure, backend, hash);
        }
    } else if const { B::IS_TUNED && S::NO_PREFETCH_BELOW > 0 }
        && bytes <= S::NO_PREFETCH_BELOW
    {
        backend.call_outlined(OneByOne { structure, hashes, found });
    } else if const { B::IS_TUNED && S::L1_BELOW > S::NO_PREFETCH_BELOW }
        && bytes <= S::L1_BELOW
    {
        all_probes::<S, L1, B, 3>(structure, backend, hashes, found);
    } else if const { B::IS_TUNED && S::AHEAD > 32 } {
        all_probes::<S, L2, B, 5>(structure, backend, hashes, found);
    } else {
        all_probes::<S, L2, B, 3>(structure, backend, hashes, found);
    }
}

/// Lookups one after the other.
struct OneByOne<'a, S> {
    structure: S,
    hashes: &'a [u64],
    found: &'a mut [bool],
}

impl<S: MultiProbe, B: Backend> WithToken<B> for OneByOne<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self, backend: B) {
        let Self { structure, hashes, found } = self;
        for (&hash, found) in hashes.iter().zip(found) {
            *found = structure.contains_one(backend, hash);
        }
    }
}

/// Every key through its first probe, those that it does not decide through
/// the second, and so on.
#[inline(always)]
fn all_probes<S: MultiProbe, H: Hint, B: Backend, const RING: usize>(
    structure: S,
    backend: B,
    hashes: &[u64],
    found: &mut [bool],
) {
    let first = structure.first();
    if S::IS_SINGLE {
        let scan = Scan::<_, H, _, RING>::new(first, hashes, found, Decided);
        backend.call_outlined(scan);
        return;
    }
    let mut undecided = Undecided::default();
    for (hashes, found) in hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK)) {
        let next = Places::new(&mut undecided.next);
        let scan = Scan::<_, H, _, RING>::new(first, hashes, found, next);
        backend.call_outlined(scan);
        undecided.start(hashes);
        let mut number = 1;
        while !undecided.hashes.is_empty() {
            let Undecided { hashes, answers, next, .. } = &mut undecided;
            let probe = structure.next(number);
            let next = Places::new(next);
            let scan =
                Scan::<_, H, _, RING>::new(probe, hashes, answers, next);
            backend.call_outlined(scan);
            undecided.advance(found);
            number += 1;
        }
    }
}

/// The keys of a chunk that need another probe.
#[derive(Default)]
struct Undecided {
    hashes: Vec<u64>,
    /// Their places in the chunk.
    places: Vec<u16>,
    /// Their answers after the present probe.
    answers: Vec<bool>,
    /// The places, among these keys, of those that need one more probe.
    next: Vec<u16>,
}

impl Undecided {
    /// Collects the undecided keys after the first probe of a chunk.
    fn start(&mut self, hashes: &[u64]) {
        let next = self.next.iter().map(|&at| hashes[usize::from(at)]);
        self.hashes.clear();
        self.hashes.extend(next);
        self.places.clear();
        self.places.append(&mut self.next);
        self.answers.resize(self.hashes.len(), false);
    }

    /// After a later probe: stores the answers, keeps the undecided keys.
    fn advance(&mut self, found: &mut [bool]) {
        for (&place, &answer) in self.places.iter().zip(&self.answers) {
            if answer {
                found[usize::from(place)] = true;
            }
        }
        // `from >= to`, because `next` ascends: no key is overwritten before
        // it is moved.
        for (to, &from) in self.next.iter().enumerate() {
            self.hashes[to] = self.hashes[usize::from(from)];
            self.places[to] = self.places[usize::from(from)];
        }
        let left = self.next.len();
        self.hashes.truncate(left);
        self.places.truncate(left);
        self.answers.truncate(left);
        self.next.clear();
    }
}

/// The lookup loop: one probe of many keys, each row planned and prefetched
/// `RING - 1` rows ahead. Out of line, so that the loop has all registers.
struct Scan<'a, P, H, U, const RING: usize> {
    probe: P,
    hashes: &'a [u64],
    found: &'a mut [bool],
    undecided: U,
    hint: PhantomData<H>,
}

impl<'a, P, H, U, const RING: usize> Scan<'a, P, H, U, RING> {
    #[inline(always)]
    fn new(
        probe: P,
        hashes: &'a [u64],
        found: &'a mut [bool],
        undecided: U,
    ) -> Self {
        Self { probe, hashes, found, undecided, hint: PhantomData }
    }
}

impl<B, P, H, U, const RING: usize> WithToken<B> for Scan<'_, P, H, U, RING>
where
    B: Backend,
    P: Probe,
    H: Hint,
    U: Collect,
{
    type Output = ();

    #[inline(always)]
    fn run(self, backend: B) {
        let Self { probe, hashes, found, mut undecided, .. } = self;
        let (whole, rest) = hashes.split_at(hashes.len() / ROW * ROW);
        let whole: &[[u64; ROW]] = bytemuck::cast_slice(whole);
        // The last row of a batch of few rows.
        let mut padded = [0; ROW];
        padded[..rest.len()].copy_from_slice(rest);
        let rows = whole.iter().chain([&padded]);
        let rows = rows.take(hashes.len().div_ceil(ROW));
        // Those of the rows ahead, and of the row that is planned next.
        let mut plans = no_plans::<P::Plans, RING>();
        let ahead = match P::PLANS_ROWS {
            true => RING - 1,
            // Hidden from the optimiser, which would unroll the loop: a
            // sixth of the code. Not with plans of rows, where it is a
            // quarter more.
            false => opaque(RING as u64 - 1) as usize,
        };
        for (plans, row) in plans.iter_mut().take(ahead).zip(rows) {
            probe.plan_row(row, plans);
            for (lane, &hash) in row.iter().enumerate() {
                probe.prefetch::<H>(hash, plans, lane);
            }
        }
        // Rows with a row to plan, and the last keys without. A window has
        // one base address for both rows.
        let early = (whole.len() + 1).saturating_sub(RING) * ROW;
        let (found, found_last) = found.split_at_mut(early);
        let mut at = 0;
        for (found, window) in
            found.chunks_exact_mut(ROW).zip(whole.windows(RING))
        {
            let (row, later) = (&window[0], &window[RING - 1]);
            let (here, next) = here_and_next(&mut plans, at);
            at = if at == RING - 1 { 0 } else { at + 1 };
            probe.plan_row(later, next);
            clear::<P>(found);
            for (lane, found) in found.iter_mut().enumerate() {
                probe.prefetch::<H>(later[lane], next, lane);
                let verdict = probe.test(backend, row[lane], here, lane);
                record::<P>(found, verdict);
                undecided.key(verdict);
            }
            undecided.row(ROW);
        }
        let hashes = &hashes[early..];
        let last = Last { probe, hashes, found: found_last, undecided };
        backend.call_outlined(last);
    }
}

/// Plans to be overwritten. Out of line: a third of the code of a scan.
#[inline(never)]
fn no_plans<T: Copy + Default, const RING: usize>() -> [T; RING] {
    [T::default(); RING]
}

/// The last keys of a scan, whose blocks are prefetched: one after the other,
/// without their plans. A second copy of the planned test would be a third of
/// the code of a scan.
struct Last<'a, P, U> {
    probe: P,
    hashes: &'a [u64],
    found: &'a mut [bool],
    undecided: U,
}

impl<B: Backend, P: Probe, U: Collect> WithToken<B> for Last<'_, P, U> {
    type Output = ();

    #[inline(always)]
    fn run(self, backend: B) {
        let Self { probe, hashes, found, mut undecided } = self;
        clear::<P>(found);
        for (hashes, found) in hashes.chunks(ROW).zip(found.chunks_mut(ROW)) {
            for (&hash, found) in hashes.iter().zip(found) {
                let verdict = probe.test_one(backend, hash);
                record::<P>(found, verdict);
                undecided.key(verdict);
            }
            undecided.row(hashes.len());
        }
        undecided.finish();
    }
}

/// Clears the answers of a row, one store, where [`record`] expects it.
#[inline(always)]
fn clear<P: Probe>(found: &mut [bool]) {
    if P::BRANCHES {
        found.fill(false);
    }
}

/// Stores an answer. With [`Probe::BRANCHES`], `*found` is `false` on entry.
#[inline(always)]
fn record<P: Probe>(found: &mut bool, verdict: Verdict) {
    let maybe = verdict == Verdict::Maybe;
    if !P::BRANCHES {
        *found = maybe;
    } else if maybe {
        *found = true;
    }
}

/// The plans of a row, and those of the row before it, which is done.
#[inline(always)]
fn here_and_next<P, const RING: usize>(
    plans: &mut [P; RING],
    at: usize,
) -> (&P, &mut P) {
    let (before, from) = plans.split_at_mut(at);
    match (before.last_mut(), from) {
        (Some(next), [here, ..]) => (here, next),
        (None, [here, .., next]) => (here, next),
        _ => unreachable!("at < RING, and RING > 1"),
    }
}

/// Collects the keys that need another probe.
trait Collect {
    /// The next key.
    fn key(&mut self, verdict: Verdict);

    /// The end of a row of `keys` keys.
    fn row(&mut self, keys: usize);

    /// The end of all rows.
    fn finish(&mut self);
}

/// No key needs another probe.
struct Decided;

impl Collect for Decided {
    #[inline(always)]
    fn key(&mut self, _: Verdict) {}

    #[inline(always)]
    fn row(&mut self, _: usize) {}

    #[inline(always)]
    fn finish(&mut self) {}
}

/// The places of the undecided keys, collected as one bit per key: appending a
/// place at once would make the address of the store depend on a cache miss
/// and stall later prefetches, and a branch would be mispredicted.
struct Places<'a> {
    /// The bits of the last `keys <= 64` keys, the last key lowest.
    word: u64,
    keys: usize,
    /// Place of the first of these keys.
    start: usize,
    places: &'a mut Vec<u16>,
}

impl<'a> Places<'a> {
    fn new(places: &'a mut Vec<u16>) -> Self {
        Self { word: 0, keys: 0, start: 0, places }
    }
}

impl Collect for Places<'_> {
    #[inline(always)]
    fn key(&mut self, verdict: Verdict) {
        self.word <<= 1;
        self.word |= u64::from(verdict == Verdict::Continue);
    }

    #[inline(always)]
    fn row(&mut self, keys: usize) {
        self.keys += keys;
        if self.keys > 64 - ROW {
            self.finish();
        }
    }

    #[inline(always)]
    fn finish(&mut self) {
        let mut left = match self.keys {
            0 => 0,
            keys => self.word.reverse_bits() >> (64 - keys),
        };
        while left != 0 {
            // `place < CHUNK`, which is less than 2^16.
            let place = self.start + left.trailing_zeros() as usize;
            self.places.push(place as u16);
            left &= left - 1;
        }
        self.start += self.keys;
        (self.word, self.keys) = (0, 0);
    }
}

/// A structure that is changed item by item.
///
/// A trait and not two closures: a closure can become a function without the
/// target features of its caller.
pub(crate) trait Update {
    type Item;

    /// Size of all blocks in bytes.
    fn bytes(&self) -> usize;

    /// Prefetches the blocks that `item` changes.
    fn prefetch(&self, item: &Self::Item);

    fn update<B: Backend>(&mut self, backend: B, item: &Self::Item);
}

/// The update loop: every item in order, each prefetched
/// [`UPDATES_AHEAD`] items earlier unless all blocks are in the second-level
/// cache.
#[inline(always)]
pub(crate) fn update_batch<U: Update, B: Backend>(
    backend: B,
    structure: &mut U,
    items: &[U::Item],
) {
    let prefetched = match structure.bytes() <= L2_BYTES {
        true => &[],
        false => items,
    };
    for item in prefetched.iter().take(UPDATES_AHEAD) {
        structure.prefetch(item);
    }
    // One loop with a test, and not three: an update is long.
    for (at, item) in items.iter().enumerate() {
        if let Some(later) = prefetched.get(at + UPDATES_AHEAD) {
            structure.prefetch(later);
        }
        structure.update(backend, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Scalar;
    use alloc::vec;
    use core::cell::RefCell;

    /// A structure in which the `n`-th probe decides a key whose lowest byte
    /// is `n`, and finds those with an even second byte. Records prefetches.
    #[derive(Clone, Copy)]
    struct Fake<'a, const SINGLE: bool> {
        prefetched: &'a RefCell<Vec<(u32, u64)>>,
        number: u32,
        bytes: usize,
    }

    fn member(hash: u64) -> bool {
        hash >> 8 & 1 == 0
    }

    impl<const SINGLE: bool> Probe for Fake<'_, SINGLE> {
        type Plans = [u64; ROW];

        fn plan_row(&self, hashes: &[u64; ROW], plans: &mut [u64; ROW]) {
            *plans = *hashes;
        }

        fn prefetch<H: Hint>(
            &self,
            hash: u64,
            plans: &mut [u64; ROW],
            lane: usize,
        ) {
            assert_eq!(plans[lane], hash);
            self.prefetched.borrow_mut().push((self.number, hash));
        }

        fn test<B: Backend>(
            &self,
            backend: B,
            hash: u64,
            plans: &[u64; ROW],
            lane: usize,
        ) -> Verdict {
            assert_eq!(plans[lane], hash);
            self.test_one(backend, hash)
        }

        fn test_one<B: Backend>(&self, _: B, hash: u64) -> Verdict {
            match SINGLE || hash as u8 as u32 == self.number {
                true => Verdict::from_match(member(hash)),
                false => Verdict::Continue,
            }
        }
    }

    impl<const SINGLE: bool> MultiProbe for Fake<'_, SINGLE> {
        const AHEAD: usize = 64;
        const L1_BELOW: usize = 10;
        const NO_PREFETCH_BELOW: usize = 1;
        const IS_SINGLE: bool = SINGLE;

        type First = Self;
        type Next = Self;

        fn bytes(&self) -> usize {
            self.bytes
        }

        fn first(&self) -> Self {
            *self
        }

        fn next(&self, number: u32) -> Self {
            assert!(number > 0 && !SINGLE);
            Self { number, ..*self }
        }
    }

    fn check<B: Backend, const SINGLE: bool>(
        backend: B,
        len: usize,
        bytes: usize,
    ) {
        let mut state = 1u64;
        let hashes: Vec<u64> = (0..len)
            .map(|_| {
                state =
                    state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                // Up to four probes.
                state >> 20 & !0xff | state >> 40 & 3
            })
            .collect();
        let prefetched = RefCell::default();
        let fake =
            Fake::<SINGLE> { prefetched: &prefetched, number: 0, bytes };
        let mut found = vec![true; len];
        contains_batch(fake, backend, &hashes, &mut found);
        for (&hash, found) in hashes.iter().zip(found) {
            assert_eq!(found, member(hash), "{len} keys, {bytes} bytes");
            assert_eq!(contains(fake, backend, hash), member(hash));
        }
        // The first probe of every key is prefetched once, but for the keys
        // behind the last whole row of a batch of many.
        let prefetches = !B::IS_COMPACT && (bytes > 1 || !B::IS_TUNED);
        let ahead = if B::IS_TUNED && bytes == 11 { 4 } else { 2 };
        let whole = match len / ROW {
            _ if !prefetches => 0,
            few if few < ahead => len,
            rows => rows * ROW,
        };
        let mut actual: Vec<u64> = prefetched
            .take()
            .into_iter()
            .filter(|&(number, hash)| number == 0 && hash != 0)
            .map(|(_, hash)| hash)
            .collect();
        if len <= CHUNK {
            let mut expected = hashes[..whole].to_vec();
            // Padding of the last row.
            expected.retain(|&hash| hash != 0);
            actual.sort_unstable();
            expected.sort_unstable();
            assert_eq!(actual, expected, "{len} keys, {bytes} bytes");
        }
    }

    #[test]
    fn every_key_gets_its_own_answer() {
        let lengths = (0..=11 * ROW).chain([CHUNK - 1, CHUNK + 1, 10_000]);
        for len in lengths {
            for bytes in [1, 10, 11] {
                check::<_, true>(Scalar, len, bytes);
                check::<_, false>(Scalar, len, bytes);
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                if let Some(token) = crate::arch::Avx2::new() {
                    check::<_, true>(token, len, bytes);
                    check::<_, false>(token, len, bytes);
                }
                #[cfg(neon)]
                {
                    check::<_, true>(crate::arch::Neon, len, bytes);
                    check::<_, false>(crate::arch::Neon, len, bytes);
                }
            }
        }
    }

    #[test]
    fn updates_are_prefetched_and_in_order() {
        struct Log {
            bytes: usize,
            prefetched: RefCell<Vec<usize>>,
            updated: Vec<usize>,
        }
        impl Update for Log {
            type Item = usize;

            fn bytes(&self) -> usize {
                self.bytes
            }

            fn prefetch(&self, &item: &usize) {
                self.prefetched.borrow_mut().push(item);
            }

            fn update<B: Backend>(&mut self, _: B, &item: &usize) {
                let is_prefetched = self.prefetched.borrow().contains(&item);
                assert_eq!(is_prefetched, self.bytes > L2_BYTES);
                self.updated.push(item);
            }
        }
        for len in 0..3 * UPDATES_AHEAD {
            let items: Vec<usize> = (0..len).collect();
            for bytes in [L2_BYTES, L2_BYTES + 1] {
                let prefetched = RefCell::default();
                let mut log = Log { bytes, prefetched, updated: Vec::new() };
                update_batch(Scalar, &mut log, &items);
                assert_eq!(log.updated, items);
                if bytes > L2_BYTES {
                    assert_eq!(log.prefetched.take(), items);
                }
            }
        }
    }
}
