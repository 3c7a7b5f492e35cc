//! Parallel builds whose bytes equal those of a serial build, in bounded
//! memory.
//!
//! The array of blocks is divided into one range per thread. Every thread
//! pulls chunks of keys, hashes them, and sends each part of a key to the
//! thread that owns its block. Owners insert the parts in the order of the
//! chunks, so that structures whose bytes depend on the order of insertion
//! come out the same. Atomic operations on shared blocks would avoid the
//! parcels, but a locked instruction per probe costs more than they do.
//!
//! # Memory
//!
//! [`Exchange`] counts the bytes of all parcels that are not inserted yet. A
//! thread whose parcel would exceed the limit inserts parcels of its own range
//! until the parcel fits. The *head*, the first chunk that is not sent
//! completely, is exempt while no parcel of its thread is in flight: later
//! chunks may use up the limit, and no owner inserts those before the head.
//! The build does not deadlock: parcels before the head wait for nothing but
//! their owners, owners insert whenever they wait, and thus the head's thread
//! gets to send.
//!
//! Buffers of inserted parcels are used again. Freed by another thread than
//! the one that allocated them, they would fragment the allocator's memory:
//! with glibc and 16 threads on 2 cores to twice the bytes in flight.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZero;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Keys per chunk of a slice or an iterator.
pub(crate) const KEYS_PER_CHUNK: usize = 4096;

/// Keys in a parcel, at most.
const KEYS_PER_PARCEL: usize = 4096;

/// Limit of the bytes in flight, and its part for each thread. Less makes more
/// threads than cores wait for each other: with 16 threads on 2 cores, 8 MiB
/// and 1 MiB take 1.4 times the CPU time.
const IN_FLIGHT: usize = 32 << 20;
const IN_FLIGHT_PER_THREAD: usize = 2 << 20;

/// The largest number of threads. Every thread sends to every other, so the
/// number of shares grows with its square. Memory bandwidth limits a build
/// to fewer threads anyway.
const MAX_THREADS: NonZero<usize> = match NonZero::new(256) {
    Some(most) => most,
    None => NonZero::<usize>::MIN,
};

/// Cuts an iterator into vectors of [`KEYS_PER_CHUNK`] items.
pub(crate) fn chunks<K: Send>(
    keys: impl Iterator<Item = K> + Send,
) -> impl Iterator<Item = Vec<K>> + Send {
    let mut keys = keys.fuse();
    core::iter::from_fn(move || {
        let chunk: Vec<K> = keys.by_ref().take(KEYS_PER_CHUNK).collect();
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// An array of blocks that threads fill range by range.
pub(crate) trait Divided: Copy + Sync {
    fn blocks(&self) -> u64;

    fn block_bytes(&self) -> usize;

    /// The number of parts of a key, each in a block of its own. The parts
    /// may be inserted in any order.
    fn parts(&self) -> u32;

    /// The block of part number `part` of a key.
    fn block(&self, hash: u64, part: u32) -> u64;

    /// Inserts part number `part` of each key, in order, into the blocks of
    /// `range`, which begins with block number `first`.
    fn apply(&self, first: u64, range: &mut [u8], part: u32, hashes: &[u64]);
}

/// Hashes the chunks and inserts their keys into `blocks`; returns the number
/// of keys. Meant for two threads or more.
pub(crate) fn insert<A: Divided, T: Send>(
    array: A,
    blocks: &mut [u8],
    chunks: impl Iterator<Item = T> + Send,
    threads: NonZero<usize>,
    hash: impl Fn(T, &mut Vec<u64>) + Sync,
) -> u64 {
    insert_measured(array, blocks, chunks, threads, hash).0
}

/// [`insert`] that also returns the largest number of bytes in flight.
fn insert_measured<A: Divided, T: Send>(
    array: A,
    blocks: &mut [u8],
    chunks: impl Iterator<Item = T> + Send,
    threads: NonZero<usize>,
    hash: impl Fn(T, &mut Vec<u64>) + Sync,
) -> (u64, usize) {
    let threads = threads.min(MAX_THREADS).get();
    let per_thread = array.blocks().div_ceil(threads as u64);
    let range_bytes = per_thread as usize * array.block_bytes();
    let ranges: Vec<&mut [u8]> = blocks.chunks_mut(range_bytes).collect();

    let owners = ranges.len();
    let exchange = Exchange::new(owners, owners);
    let work = Work {
        exchange: &exchange,
        chunks: Mutex::new(chunks.fuse().enumerate()),
        hash,
        division: |hash, part| {
            let block = array.block(hash, part);
            match owners {
                // A comparison: a division takes as long as the rest of the
                // loop.
                2 => usize::from(block >= per_thread),
                _ => (block / per_thread) as usize,
            }
        },
        parts: array.parts(),
    };
    let count = thread::scope(|scope| {
        let mut running = Vec::new();
        for (me, range) in ranges.into_iter().enumerate() {
            let (array, work, exchange) = (&array, &work, &exchange);
            running.push(scope.spawn(move || {
                let first = me as u64 * per_thread;
                let owner = Owner::new(exchange, me, |part, hashes| {
                    array.apply(first, range, part, hashes);
                });
                work.run(me, Some(owner))
            }));
        }
        join(running)
    });
    let peak = exchange.lock().peak;
    (count, peak)
}

/// Hashes chunks on several threads and passes the hashes to `sink` in the
/// order of the chunks, for structures whose bytes depend on the order of
/// insertion.
pub(crate) fn in_order<T: Send>(
    chunks: impl Iterator<Item = T> + Send,
    threads: NonZero<usize>,
    hash: impl Fn(T, &mut Vec<u64>) + Sync,
    mut sink: impl FnMut(&[u64]),
) {
    // The calling thread inserts, the others hash.
    let hashing = threads.min(MAX_THREADS).get() - 1;
    if hashing == 0 {
        let mut hashes = Vec::new();
        for chunk in chunks {
            hashes.clear();
            hash(chunk, &mut hashes);
            sink(&hashes);
        }
        return;
    }
    let exchange = Exchange::new(1, hashing);
    let work = Work {
        exchange: &exchange,
        chunks: Mutex::new(chunks.fuse().enumerate()),
        hash,
        division: |_, _| 0,
        parts: 1,
    };
    thread::scope(|scope| {
        let work = &work;
        let running = (0..hashing)
            .map(|me| scope.spawn(move || work.run(me, None::<NoOwner>)))
            .collect();
        Owner::new(&exchange, 0, |_, hashes| sink(hashes)).finish();
        join(running);
    });
}

/// Sums the results of threads. The caller's iterator, hash function or sink
/// may have panicked: resumes the panic on the caller's thread.
fn join(running: Vec<thread::ScopedJoinHandle<'_, u64>>) -> u64 {
    running.into_iter().fold(0, |sum, thread| match thread.join() {
        Ok(count) => sum.saturating_add(count),
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Some hashes of a chunk. The share of an owner in a part is contiguous.
struct Parcel {
    /// Number of the chunk, and of the parcel in it.
    number: (usize, usize),
    /// The last parcel of its chunk.
    is_last: bool,
    sender: usize,
    /// The hashes of the first part by owner, of the second part, and so on.
    hashes: Vec<u64>,
    /// Where the shares end, in the same order.
    ends: Vec<usize>,
}

impl Parcel {
    /// Counts capacities: a short parcel may have the buffer of a long one.
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of::<u64>() * self.hashes.capacity()
            + size_of::<usize>() * self.ends.capacity()
    }

    /// The shares of an owner, one for each part.
    fn shares(
        &self,
        owner: usize,
        owners: usize,
    ) -> impl Iterator<Item = (u32, &[u64])> {
        let places = (owner..self.ends.len()).step_by(owners);
        (0..).zip(places.map(|place| {
            let start = place.checked_sub(1).map_or(0, |i| self.ends[i]);
            &self.hashes[start..self.ends[place]]
        }))
    }
}

/// The empty buffers of a parcel, for another one.
#[derive(Default)]
struct Buffers {
    hashes: Vec<u64>,
    ends: Vec<usize>,
}

/// Parcels on their way from threads to owners.
struct Exchange {
    limit: usize,
    state: Mutex<State>,
    /// Signalled at every change of the state.
    changed: Condvar,
}

struct State {
    inboxes: Vec<Vec<Arc<Parcel>>>,
    /// Buffers of inserted parcels.
    spare: Vec<Buffers>,
    /// Bytes of parcels sent and not inserted by all owners, and those of each
    /// sender.
    in_flight: usize,
    of_sender: Vec<usize>,
    /// The largest number of bytes in flight.
    peak: usize,
    /// First chunk that is not sent completely, and later ones that are.
    head: usize,
    sent: BTreeSet<usize>,
    /// Threads that may send more parcels.
    senders: usize,
    /// A thread has panicked: no more parcels are sent or received.
    stopped: bool,
}

impl Exchange {
    fn new(owners: usize, senders: usize) -> Self {
        Self {
            limit: IN_FLIGHT + IN_FLIGHT_PER_THREAD * senders,
            state: Mutex::new(State {
                inboxes: vec![Vec::new(); owners],
                spare: Vec::new(),
                in_flight: 0,
                of_sender: vec![0; senders],
                peak: 0,
                head: 0,
                sent: BTreeSet::new(),
                senders,
                stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs with the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes all threads that wait for it.
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Sends a parcel to all owners as soon as it fits. Inserts parcels of
    /// `owner` while it waits. Returns the buffers of the next parcel, `None`
    /// if the build has stopped.
    fn send<F: FnMut(u32, &[u64])>(
        &self,
        parcel: Parcel,
        owner: &mut Option<Owner<'_, F>>,
    ) -> Option<Buffers> {
        let parcel = Arc::new(parcel);
        let mut state = self.lock();
        while !state.has_room(&parcel, self.limit) && !state.stopped {
            let parcels =
                owner.as_mut().map(|owner| (state.take(owner.me), owner));
            state = match parcels {
                Some((parcels, owner)) if !parcels.is_empty() => {
                    drop(state);
                    owner.insert(parcels);
                    self.lock()
                }
                _ => self.wait(state),
            };
        }
        if state.stopped {
            return None;
        }
        state.send(parcel);
        let spare = state.spare.pop().unwrap_or_default();
        drop(state);
        self.changed.notify_all();
        Some(spare)
    }
}

impl State {
    fn has_room(&self, parcel: &Parcel, limit: usize) -> bool {
        self.in_flight + parcel.bytes() <= limit
            || parcel.number.0 == self.head
                && self.of_sender[parcel.sender] == 0
    }

    fn send(&mut self, parcel: Arc<Parcel>) {
        self.in_flight += parcel.bytes();
        self.of_sender[parcel.sender] += parcel.bytes();
        self.peak = self.peak.max(self.in_flight);
        if parcel.is_last {
            self.sent.insert(parcel.number.0);
            while self.sent.remove(&self.head) {
                self.head += 1;
            }
        }
        for inbox in &mut self.inboxes {
            inbox.push(parcel.clone());
        }
        // Before the lock is released: the last owner must have the last
        // reference.
        drop(parcel);
    }

    /// The parcels that have arrived for an owner.
    fn take(&mut self, owner: usize) -> Vec<Arc<Parcel>> {
        core::mem::take(&mut self.inboxes[owner])
    }
}

/// Stops the build if its thread panics: others would wait for its chunk.
struct StopOnPanic<'a>(&'a Exchange);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.change(|state| state.stopped = true);
        }
    }
}

/// Inserts the parcels of a range in the order of their numbers.
struct Owner<'a, F> {
    exchange: &'a Exchange,
    me: usize,
    owners: usize,
    /// Inserts the hashes of a part.
    sink: F,
    /// The number of the next parcel.
    next: (usize, usize),
    waiting: BTreeMap<(usize, usize), Arc<Parcel>>,
}

/// The type of owner of a thread that only hashes, which has none.
type NoOwner = Owner<'static, fn(u32, &[u64])>;

impl<'a, F: FnMut(u32, &[u64])> Owner<'a, F> {
    fn new(exchange: &'a Exchange, me: usize, sink: F) -> Self {
        let (next, waiting) = ((0, 0), BTreeMap::new());
        let owners = exchange.lock().inboxes.len();
        Self { exchange, me, owners, sink, next, waiting }
    }

    fn insert(&mut self, parcels: Vec<Arc<Parcel>>) {
        self.waiting
            .extend(parcels.into_iter().map(|parcel| (parcel.number, parcel)));
        while let Some(parcel) = self.waiting.remove(&self.next) {
            for (part, hashes) in parcel.shares(self.me, self.owners) {
                (self.sink)(part, hashes);
            }
            self.next = match parcel.is_last {
                true => (self.next.0 + 1, 0),
                false => (self.next.0, self.next.1 + 1),
            };
            // `Some` for the last of the owners.
            if let Some(parcel) = Arc::into_inner(parcel) {
                let bytes = parcel.bytes();
                let Parcel { sender, mut hashes, mut ends, .. } = parcel;
                hashes.clear();
                ends.clear();
                self.exchange.change(|state| {
                    state.in_flight -= bytes;
                    state.of_sender[sender] -= bytes;
                    state.spare.push(Buffers { hashes, ends });
                });
            }
        }
    }

    /// Inserts the parcels that have arrived.
    fn insert_arrived(&mut self) {
        let parcels = self.exchange.lock().take(self.me);
        self.insert(parcels);
    }

    /// Inserts parcels until all threads have sent their last one.
    fn finish(mut self) {
        let exchange = self.exchange;
        let _guard = StopOnPanic(exchange);
        let mut state = exchange.lock();
        while !state.stopped {
            let parcels = state.take(self.me);
            state = if !parcels.is_empty() {
                drop(state);
                self.insert(parcels);
                exchange.lock()
            } else if state.senders > 0 {
                exchange.wait(state)
            } else {
                return;
            };
        }
    }
}

/// The state that the threads of a build share.
struct Work<'a, I, H, O> {
    exchange: &'a Exchange,
    chunks: Mutex<I>,
    hash: H,
    /// The owner of a part of a hash.
    division: O,
    parts: u32,
}

impl<I, T, H, O> Work<'_, I, H, O>
where
    I: Iterator<Item = (usize, T)>,
    H: Fn(T, &mut Vec<u64>),
    O: Fn(u64, u32) -> usize,
{
    /// Runs thread number `me`; returns the number of keys it hashed.
    fn run<F: FnMut(u32, &[u64])>(
        &self,
        me: usize,
        mut owner: Option<Owner<'_, F>>,
    ) -> u64 {
        let _guard = StopOnPanic(self.exchange);
        let owners = self.exchange.lock().inboxes.len();
        let mut shares = vec![Vec::new(); owners];
        let mut hashes = Vec::new();
        let mut buffers = Buffers::default();
        let mut count = 0;
        'chunks: loop {
            // A poisoned lock means that the iterator panicked in another
            // thread, whose join reports it.
            let chunk = match self.chunks.lock() {
                Ok(mut chunks) => chunks.next(),
                Err(_) => None,
            };
            let Some((number, chunk)) = chunk else { break };
            hashes.clear();
            (self.hash)(chunk, &mut hashes);
            count += hashes.len() as u64;
            let parcels = hashes.len().div_ceil(KEYS_PER_PARCEL).max(1);
            for index in 0..parcels {
                let from = index * KEYS_PER_PARCEL;
                let to = hashes.len().min(from + KEYS_PER_PARCEL);
                let Buffers { hashes, ends } =
                    self.divide(&hashes[from..to], &mut shares, buffers);
                let parcel = Parcel {
                    number: (number, index),
                    is_last: index + 1 == parcels,
                    sender: me,
                    hashes,
                    ends,
                };
                match self.exchange.send(parcel, &mut owner) {
                    Some(spare) => buffers = spare,
                    None => break 'chunks,
                }
            }
            if let Some(owner) = &mut owner {
                owner.insert_arrived();
            }
        }
        self.exchange.change(|state| state.senders -= 1);
        if let Some(owner) = owner {
            owner.finish();
        }
        count
    }

    /// Sorts the parts of hashes by owner, in order. Returns also where the
    /// shares end. `shares` are empty buffers, one for each owner; `buffers`
    /// becomes the result.
    fn divide(
        &self,
        hashes: &[u64],
        shares: &mut [Vec<u64>],
        buffers: Buffers,
    ) -> Buffers {
        let parts = self.parts as usize;
        let Buffers { hashes: mut sorted, mut ends } = buffers;
        sorted.reserve_exact(hashes.len() * parts);
        ends.reserve_exact(shares.len() * parts);
        for part in 0..self.parts {
            for &hash in hashes {
                shares[(self.division)(hash, part)].push(hash);
            }
            for share in &mut *shares {
                sorted.append(share);
                ends.push(sorted.len());
            }
        }
        Buffers { hashes: sorted, ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const BLOCKS: u64 = 64;
    const PARTS: u32 = 4;

    /// Blocks of a byte that counts the insertions. Owners of the first block
    /// are slow.
    #[derive(Clone, Copy)]
    struct SlowCounters;

    impl Divided for SlowCounters {
        fn blocks(&self) -> u64 {
            BLOCKS
        }

        fn block_bytes(&self) -> usize {
            1
        }

        fn parts(&self) -> u32 {
            PARTS
        }

        fn block(&self, hash: u64, part: u32) -> u64 {
            (hash >> part) % BLOCKS
        }

        fn apply(
            &self,
            first: u64,
            range: &mut [u8],
            part: u32,
            hashes: &[u64],
        ) {
            if first == 0 {
                thread::sleep(Duration::from_micros(100));
            }
            for &hash in hashes {
                let block = (self.block(hash, part) - first) as usize;
                range[block] = range[block].wrapping_add(1);
            }
        }
    }

    /// Chunk number `n`, of any length.
    fn chunk(n: u64) -> impl Iterator<Item = u64> {
        let len = [0, 1, 300, 100_000, 1_000_000][n as usize % 5];
        (0..len).map(move |i| crate::key::finalise(n << 32 | i))
    }

    #[test]
    fn bytes_in_flight_are_bounded_with_a_slow_owner() {
        const CHUNKS: u64 = 15;
        let mut expected = [0u8; BLOCKS as usize];
        let mut keys = 0;
        for hash in (0..CHUNKS).flat_map(chunk) {
            keys += 1;
            for part in 0..PARTS {
                let block = SlowCounters.block(hash, part) as usize;
                expected[block] = expected[block].wrapping_add(1);
            }
        }
        for threads in [2, 3, 16] {
            let mut blocks = [0; BLOCKS as usize];
            let (count, peak) = insert_measured(
                SlowCounters,
                &mut blocks,
                0..CHUNKS,
                NonZero::new(threads).expect("not zero"),
                |n, hashes| hashes.extend(chunk(n)),
            );
            assert_eq!((count, blocks), (keys, expected));
            // Every thread may exceed the limit by a parcel.
            let parcel = (KEYS_PER_PARCEL + threads + 16) * PARTS as usize * 8;
            let each = IN_FLIGHT_PER_THREAD + parcel;
            let limit = IN_FLIGHT + threads * each;
            assert!(peak <= limit, "{threads} threads: {peak} bytes");
            assert!(peak > IN_FLIGHT, "the owner is not slow: {peak} bytes");
        }
    }

    /// The first chunk arrives last: the others wait for it.
    #[test]
    fn a_slow_first_chunk_bounds_the_others() {
        for threads in [2, 5] {
            let threads = NonZero::new(threads).expect("not zero");
            let mut sum = 0u64;
            let mut next = 0;
            in_order(
                0..200u64,
                threads,
                |n, hashes| {
                    if n == 0 {
                        thread::sleep(Duration::from_millis(100));
                    }
                    hashes.extend((0..50_000).map(|i| n * 50_000 + i));
                },
                |hashes| {
                    for &hash in hashes {
                        assert_eq!(hash, next);
                        next += 1;
                        sum = sum.wrapping_add(hash);
                    }
                },
            );
            assert_eq!(next, 200 * 50_000);
        }
    }

    #[test]
    fn a_panic_in_any_function_ends_the_build() {
        let stops = |build: &mut dyn FnMut()| {
            let build = std::panic::AssertUnwindSafe(build);
            assert!(std::panic::catch_unwind(build).is_err());
        };
        let threads = NonZero::new(4).expect("not zero");
        let hash = |n: u64, hashes: &mut Vec<u64>| {
            assert!(n != 7, "the hash function panics");
            hashes.extend(chunk(n));
        };
        let mut blocks = [0; BLOCKS as usize];
        stops(&mut || {
            insert(SlowCounters, &mut blocks, 0..1000, threads, hash);
        });
        stops(&mut || in_order(0..1000, threads, hash, |_| {}));
        let iterator = (0..1000).inspect(|&n| assert!(n != 7, "iterator"));
        stops(&mut || in_order(iterator.clone(), threads, |_, _| {}, |_| {}));
        let mut inserted = 0;
        let sink = |hashes: &[u64]| {
            inserted += hashes.len();
            assert!(inserted < 200_000, "the sink panics");
        };
        let mut sink = Some(sink);
        stops(&mut || {
            let sink = sink.take().expect("called once");
            let hash = |n, hashes: &mut Vec<u64>| hashes.extend(chunk(n));
            in_order(0..1000, threads, hash, sink);
        });
    }
}
