//! Parallel builds whose bytes equal those of a serial build.
//!
//! The array of blocks is divided into one range per thread. Every thread
//! pulls chunks of keys, hashes them, and sends each part of a key to the
//! thread that owns its block. Owners insert the parts in the order of the
//! chunks, so that structures whose bytes depend on the order of insertion
//! come out the same. Atomic operations on shared blocks would avoid the
//! channels, but a locked instruction per probe costs more than they do.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZero;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;

/// Keys per chunk of a slice or an iterator.
pub(crate) const KEYS_PER_CHUNK: usize = 4096;

/// The number of chunks that may wait for an earlier one before a thread stops
/// pulling more. Bounds the memory if one thread is starved.
const BACKLOG: usize = 64;

/// The largest number of threads. Every thread sends to every other, so the
/// number of parcels grows with its square. Memory bandwidth limits a build
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
    let threads = threads.min(MAX_THREADS).get() as u64;
    let per_thread = array.blocks().div_ceil(threads);
    let range_bytes = per_thread as usize * array.block_bytes();
    let ranges: Vec<&mut [u8]> = blocks.chunks_mut(range_bytes).collect();

    let (senders, receivers): (Vec<_>, Vec<_>) =
        ranges.iter().map(|_| channel::<Parcel>()).unzip();
    let chunks = Mutex::new(chunks.fuse().enumerate());
    let work = Work { array, per_thread, chunks: &chunks, hash: &hash };
    thread::scope(|scope| {
        let mut running = Vec::new();
        for (me, (range, inbox)) in
            ranges.into_iter().zip(receivers).enumerate()
        {
            let (work, senders) = (&work, senders.clone());
            running.push(
                scope.spawn(move || work.run(me, range, senders, &inbox)),
            );
        }
        // Every worker owns clones: an inbox closes when the last worker has
        // dropped its senders.
        drop(senders);
        let mut counts = 0u64;
        for thread in running {
            match thread.join() {
                Ok(count) => counts = counts.saturating_add(count),
                // The caller's iterator or hash function panicked: resume
                // the panic on the caller's thread.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        counts
    })
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
    let chunks = Mutex::new(chunks.fuse().enumerate());
    let (sender, receiver) = sync_channel(2 * hashing);
    thread::scope(|scope| {
        let mut running = Vec::new();
        for _ in 0..hashing {
            let (chunks, hash, sender) = (&chunks, &hash, sender.clone());
            running.push(scope.spawn(move || {
                loop {
                    let next = match chunks.lock() {
                        Ok(mut chunks) => chunks.next(),
                        Err(_) => None,
                    };
                    let Some((number, chunk)) = next else { return };
                    let mut hashes = Vec::new();
                    hash(chunk, &mut hashes);
                    if sender.send((number, hashes)).is_err() {
                        return;
                    }
                }
            }));
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for (number, hashes) in receiver {
            waiting.insert(number, hashes);
            while let Some(hashes) = waiting.remove(&next) {
                sink(&hashes);
                next += 1;
            }
        }
        for thread in running {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// The share of one owner in a chunk: the number of the chunk, and for every
/// part the hashes of the keys that have it in a block of the owner.
type Parcel = (usize, Vec<Vec<u64>>);

/// The state that the workers of [`insert`] share.
struct Work<'a, A, I, H> {
    array: A,
    per_thread: u64,
    chunks: &'a Mutex<I>,
    hash: &'a H,
}

impl<A, I, T, H> Work<'_, A, I, H>
where
    A: Divided,
    I: Iterator<Item = (usize, T)>,
    H: Fn(T, &mut Vec<u64>),
{
    /// Runs worker number `me`; returns the number of keys it hashed.
    fn run(
        &self,
        me: usize,
        range: &mut [u8],
        senders: Vec<Sender<Parcel>>,
        inbox: &Receiver<Parcel>,
    ) -> u64 {
        let first = me as u64 * self.per_thread;
        let mut queue =
            Queue { first, range, next: 0, waiting: BTreeMap::new() };
        let mut hashes = Vec::new();
        let mut count = 0;
        loop {
            // A poisoned lock means that the iterator panicked in another
            // worker, whose join reports it: stop pulling.
            let chunk = match self.chunks.lock() {
                Ok(mut chunks) => chunks.next(),
                Err(_) => None,
            };
            let Some((number, chunk)) = chunk else { break };
            hashes.clear();
            (self.hash)(chunk, &mut hashes);
            count += hashes.len() as u64;
            let parcels = self.parcels(&hashes, senders.len());
            for (owner, (parcel, sender)) in
                parcels.into_iter().zip(&senders).enumerate()
            {
                if owner == me {
                    queue.take(&self.array, (number, parcel));
                } else {
                    // Fails only after a panic of the owner, which ends the
                    // build.
                    let _ = sender.send((number, parcel));
                }
            }
            while let Ok(parcel) = inbox.try_recv() {
                queue.take(&self.array, parcel);
            }
            // No deadlock: a thread waits only after it has sent all its
            // chunks, so the thread with the missing chunk is not waiting.
            while queue.waiting.len() > BACKLOG {
                match inbox.recv() {
                    Ok(parcel) => queue.take(&self.array, parcel),
                    Err(_) => break,
                }
            }
        }
        // Inboxes close when all senders are dropped, and the other workers
        // wait for that too.
        drop(senders);
        for parcel in inbox {
            queue.take(&self.array, parcel);
        }
        count
    }

    /// Divides the hashes of a chunk into one parcel per owner.
    fn parcels(&self, hashes: &[u64], owners: usize) -> Vec<Vec<Vec<u64>>> {
        let mut parcels = vec![Vec::new(); owners];
        for part in 0..self.array.parts() {
            let mut shares: Vec<Vec<u64>> = (0..owners)
                .map(|_| {
                    // The expected share plus a margin.
                    let share = hashes.len() / owners;
                    Vec::with_capacity(share + share / 16 + 64)
                })
                .collect();
            for &hash in hashes {
                let block = self.array.block(hash, part);
                shares[self.owner(block, owners)].push(hash);
            }
            for (parcel, share) in parcels.iter_mut().zip(shares) {
                parcel.push(share);
            }
        }
        parcels
    }

    #[inline(always)]
    fn owner(&self, block: u64, owners: usize) -> usize {
        match owners {
            // A comparison: a division takes as long as the rest of the loop.
            2 => usize::from(block >= self.per_thread),
            _ => (block / self.per_thread) as usize,
        }
    }
}

/// Inserts parcels into a range in the order of their chunks.
struct Queue<'a> {
    first: u64,
    range: &'a mut [u8],
    /// The number of the next chunk.
    next: usize,
    waiting: BTreeMap<usize, Vec<Vec<u64>>>,
}

impl Queue<'_> {
    fn take<A: Divided>(&mut self, array: &A, parcel: Parcel) {
        self.waiting.insert(parcel.0, parcel.1);
        while let Some(parts) = self.waiting.remove(&self.next) {
            for (part, hashes) in (0..).zip(&parts) {
                array.apply(self.first, self.range, part, hashes);
            }
            self.next += 1;
        }
    }
}
