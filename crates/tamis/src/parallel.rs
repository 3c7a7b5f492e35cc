//! Building on all cores, with the bytes of a serial build.
//!
//! The array of blocks is cut into one range a thread. Every thread pulls
//! work, hashes it, and sends each part of a key to the thread that owns its
//! block. Owners put the parts in by the order of the work they came from,
//! so that structures in which the order shows come out the same too.
//! Atomic operations would need no sending, but cost a locked instruction a
//! probe, which is more than the sending does.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZero;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;

/// Keys pulled at a time from a slice or an iterator.
pub(crate) const CHUNK: usize = 4096;

/// Pieces of work that may wait for an earlier one before a thread stops
/// pulling more: bounds the memory if one thread gets little time.
const BACKLOG: usize = 64;

/// Threads used at most. Every thread sends to every other, so their parcels
/// grow with the square of the number; no memory is fast enough for more.
const MAX_THREADS: NonZero<usize> = match NonZero::new(256) {
    Some(most) => most,
    None => NonZero::<usize>::MIN,
};

/// An array of blocks that can be filled range by range.
pub(crate) trait Divided: Copy + Sync {
    fn blocks(&self) -> u64;

    fn block_bytes(&self) -> usize;

    /// How many blocks a key has a part of itself in. Which part comes first
    /// must not matter.
    fn parts(&self) -> u32;

    /// The block of one of a key's parts.
    fn block(&self, hash: u64, part: u32) -> u64;

    /// Puts one of the parts of keys into the blocks of `range`, which
    /// begins with the block `first`, in this order.
    fn apply(&self, first: u64, range: &mut [u8], part: u32, hashes: &[u64]);
}

/// Fills `blocks` with what `hash` makes of the pieces of work; returns how
/// many keys that were. For more than one thread: with one there is nothing
/// to divide.
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
        // Each thread holds its own copies: an inbox ends when the last
        // worker has nothing more to send.
        drop(senders);
        let mut counts = 0u64;
        for thread in running {
            match thread.join() {
                Ok(count) => counts = counts.saturating_add(count),
                // The caller's iterator or hash function panicked: pass it
                // on as if it had happened on this thread.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        counts
    })
}

/// Hashes pieces of work on several threads and hands the hashes to `sink`
/// in the order of the pieces: for structures in which the order shows.
pub(crate) fn in_order<T: Send>(
    chunks: impl Iterator<Item = T> + Send,
    threads: NonZero<usize>,
    hash: impl Fn(T, &mut Vec<u64>) + Sync,
    mut sink: impl FnMut(&[u64]),
) {
    // One thread inserts, the others hash.
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

/// What one piece of work has for one owner, with its number: for every part
/// the hashes of the keys that have it in one of the owner's blocks.
type Parcel = (usize, Vec<Vec<u64>>);

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
    /// One worker; returns how many keys it hashed.
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
            // A poisoned lock means that another worker's pull panicked:
            // stop pulling, its panic is reported.
            let chunk = match self.chunks.lock() {
                Ok(mut chunks) => chunks.next(),
                Err(_) => None,
            };
            let Some((number, chunk)) = chunk else { break };
            hashes.clear();
            (self.hash)(chunk, &mut hashes);
            count += hashes.len() as u64;
            let parcels = self.sort(&hashes, senders.len());
            for (owner, (parcel, sender)) in
                parcels.into_iter().zip(&senders).enumerate()
            {
                if owner == me {
                    queue.take(&self.array, (number, parcel));
                } else {
                    // Fails only if the owner has panicked, which ends the
                    // build.
                    let _ = sender.send((number, parcel));
                }
            }
            while let Ok(parcel) = inbox.try_recv() {
                queue.take(&self.array, parcel);
            }
            // Whoever has what is missing is working on it, not waiting:
            // a thread waits only after it has sent all it pulled.
            while queue.waiting.len() > BACKLOG {
                match inbox.recv() {
                    Ok(parcel) => queue.take(&self.array, parcel),
                    Err(_) => break,
                }
            }
        }
        // The others wait for the same: none may keep a sender alive.
        drop(senders);
        for parcel in inbox {
            queue.take(&self.array, parcel);
        }
        count
    }

    /// A parcel for each of the owners.
    fn sort(&self, hashes: &[u64], owners: usize) -> Vec<Vec<Vec<u64>>> {
        let mut parcels = vec![Vec::new(); owners];
        for part in 0..self.array.parts() {
            let mut shares: Vec<Vec<u64>> = (0..owners)
                .map(|_| {
                    // A little more than its share.
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
            // A division takes as long as all the rest.
            2 => usize::from(block >= self.per_thread),
            _ => (block / self.per_thread) as usize,
        }
    }
}

/// Puts parcels into a range, in their order.
struct Queue<'a> {
    first: u64,
    range: &'a mut [u8],
    /// The number of the next parcel.
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
