//! Building on all cores, with the bytes of a serial build.
//!
//! The array of blocks is cut into one range a thread. Every thread pulls
//! work, hashes it, and sends each part of a key to the thread that owns its
//! block; that one sets the bits. Bits are only ever ORed, so the order in
//! which parts arrive does not show. Atomic ORs would need no sending, but
//! cost a locked instruction a probe, which is more than the sending does.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::num::NonZero;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;

use crate::batch;
use crate::block::bloom::{Backend, BlockProbe};
use crate::filter::{BitFilter, Insert, Layout};
use crate::simd::{Task, dispatch, prefetch};

/// Keys pulled at a time from a slice or an iterator.
pub(crate) const CHUNK: usize = 4096;

/// Parts sent at a time.
const PARCEL: usize = 4096;

/// Threads used at most. Every thread sends to every other, so their parcels
/// grow with the square of the number; no memory is fast enough for more.
const MAX_THREADS: NonZero<usize> = match NonZero::new(256) {
    Some(most) => most,
    None => NonZero::<usize>::MIN,
};

/// A part of a key, on its way to the owner of its block.
type Part = (u64, u32);

pub(crate) fn insert<L: Layout, T: Send>(
    filter: &mut BitFilter<L>,
    chunks: impl Iterator<Item = T> + Send,
    threads: NonZero<usize>,
    hash: impl Fn(T, &mut Vec<u64>) + Sync,
) {
    let threads = threads.min(MAX_THREADS);
    if threads.get() == 1 {
        let mut hashes = Vec::new();
        for chunk in chunks {
            hashes.clear();
            hash(chunk, &mut hashes);
            filter.insert_hash_batch(&hashes);
        }
        return;
    }
    let (layout, items, blocks) = filter.split_mut();
    let geometry = *layout.geometry();
    let per_thread = geometry.blocks.div_ceil(threads.get() as u64);
    let range_bytes = geometry.place(per_thread).start;
    let ranges: Vec<&mut [u8]> = blocks.chunks_mut(range_bytes).collect();

    let (senders, receivers): (Vec<_>, Vec<_>) =
        ranges.iter().map(|_| channel::<Vec<Part>>()).unzip();
    let chunks = Mutex::new(chunks.fuse());
    let work =
        Work { layout: *layout, per_thread, chunks: &chunks, hash: &hash };
    let counts = thread::scope(|scope| {
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
        let mut counts = 0;
        for thread in running {
            match thread.join() {
                Ok(count) => counts += count,
                // The caller's iterator or hash function panicked: pass it
                // on as if it had happened on this thread.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        counts
    });
    *items = items.saturating_add(counts);
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

struct Work<'a, L, I, H> {
    layout: L,
    per_thread: u64,
    chunks: &'a Mutex<I>,
    hash: &'a H,
}

impl<L, I, T, H> Work<'_, L, I, H>
where
    L: Layout,
    I: Iterator<Item = T>,
    H: Fn(T, &mut Vec<u64>),
{
    /// One worker; returns how many keys it hashed.
    fn run(
        &self,
        me: usize,
        range: &mut [u8],
        senders: Vec<Sender<Vec<Part>>>,
        inbox: &Receiver<Vec<Part>>,
    ) -> u64 {
        let first = me as u64 * self.per_thread;
        let mut outboxes: Vec<Vec<Part>> =
            senders.iter().map(|_| Vec::new()).collect();
        let mut hashes = Vec::new();
        let mut count = 0;
        loop {
            // A poisoned lock means that another worker's pull panicked:
            // stop pulling, its panic is reported.
            let chunk = match self.chunks.lock() {
                Ok(mut chunks) => chunks.next(),
                Err(_) => None,
            };
            let Some(chunk) = chunk else { break };
            hashes.clear();
            (self.hash)(chunk, &mut hashes);
            count += hashes.len() as u64;
            for &hash in &hashes {
                for part in 0..self.layout.parts() {
                    let (block, _) = self.layout.part(hash, part);
                    let owner = (block / self.per_thread) as usize;
                    let outbox = &mut outboxes[owner];
                    outbox.push((hash, part));
                    if outbox.len() == PARCEL {
                        self.deliver(
                            me, owner, first, range, outbox, &senders,
                        );
                    }
                }
            }
            while let Ok(parcel) = inbox.try_recv() {
                self.apply(first, range, &parcel);
            }
        }
        for (owner, outbox) in outboxes.iter_mut().enumerate() {
            self.deliver(me, owner, first, range, outbox, &senders);
        }
        // The others wait for the same: none may keep a sender alive.
        drop(senders);
        for parcel in inbox {
            self.apply(first, range, &parcel);
        }
        count
    }

    fn deliver(
        &self,
        me: usize,
        owner: usize,
        first: u64,
        range: &mut [u8],
        outbox: &mut Vec<Part>,
        senders: &[Sender<Vec<Part>>],
    ) {
        if owner == me {
            self.apply(first, range, outbox);
            outbox.clear();
        } else {
            let parcel =
                core::mem::replace(outbox, Vec::with_capacity(outbox.len()));
            // Fails only if the owner has panicked, which ends the build.
            let _ = senders[owner].send(parcel);
        }
    }

    fn apply(&self, first: u64, range: &mut [u8], parts: &[Part]) {
        struct Apply<'a, L>(&'a L, u64, &'a mut [u8], &'a [Part]);
        impl<L: Layout> Task for Apply<'_, L> {
            type Output = ();

            #[inline(always)]
            fn run<B: Backend>(self, _: B) {
                let Self(layout, first, range, parts) = self;
                let geometry = layout.geometry();
                batch::ahead(
                    parts,
                    range,
                    |range, &(hash, part)| {
                        let (block, _) = layout.part(hash, part);
                        prefetch(range, geometry.place(block - first).start);
                    },
                    |range, &(hash, part)| {
                        let (block, probe) = layout.part(hash, part);
                        probe.set(&mut range[geometry.place(block - first)]);
                    },
                );
            }
        }
        dispatch(Apply(&self.layout, first, range, parts));
    }
}
