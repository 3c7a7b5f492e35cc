//! Overlapping reads: a queue of the disk, or threads, that read blocks for
//! [`Store::get_many`](crate::Store::get_many).

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::core::{Counters, Found, FoundFor, FoundIn, Shared, Signal, lock};
use crate::disk::{DiskFile, ReadQueue};
use crate::error::{Error, Result};
use crate::options::{Options, Overlap, ReadMode};
use crate::stats::QueueState;

/// A read that takes longer came from the disk: the next ones overlap. Reads
/// from the page cache are faster one after the other.
const SLOW: Duration = Duration::from_micros(15);

/// Reads in a queue that take longer on average came from the disk, at least
/// in part: the next batch begins with the queue.
const SLOW_IN_QUEUE: Duration = Duration::from_micros(4);

/// A value, or its absence.
type Value = Option<Vec<u8>>;

/// Reads that threads share.
#[derive(Debug)]
struct Job {
    shared: Arc<Shared>,
    reads: Vec<(Vec<u8>, FoundFor)>,
    /// Number of the next read.
    next: AtomicUsize,
    values: Vec<OnceLock<Result<Value>>>,
    /// Reads that have not ended.
    left: AtomicUsize,
    finished: Signal,
}

impl Job {
    /// Reads until no read is left to begin.
    fn work(&self) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((key, found)) = self.reads.get(at) else { return };
            let _ = self.values[at].set(self.shared.fetch(key, found));
            if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.finished.notify();
            }
        }
    }

    /// Waits until all reads have ended.
    fn wait(&self) {
        let is_done = || self.left.load(Ordering::Acquire) == 0;
        while !is_done() {
            self.finished.wait(Duration::from_secs(1), is_done);
        }
    }
}

/// Jobs that wait for threads.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    added: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Arc<Job>>,
    stopping: bool,
}

/// A queue of reads, and threads, which start with the first job.
#[derive(Debug)]
pub(crate) struct Readers {
    queue: std::result::Result<Mutex<Box<dyn ReadQueue>>, QueueState>,
    /// Whether all reads come from the disk.
    direct: bool,
    /// Whether the queue's last reads came from the disk.
    slow: AtomicBool,
    threads: usize,
    started: OnceLock<Started>,
}

#[derive(Debug)]
struct Started {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Readers {
    /// The queue of `file` that the options want, and their threads.
    pub(crate) fn new(options: &Options, file: &dyn DiskFile) -> Self {
        let queue = match options.overlap {
            Overlap::Queue => file
                .queue(options.queue_depth())
                .map_err(|error| QueueState::Refused(error.kind())),
            Overlap::Threads => Err(QueueState::NotWanted),
        };
        Self {
            queue: queue.map(Mutex::new),
            direct: options.read_mode == ReadMode::Direct,
            slow: AtomicBool::new(false),
            threads: options.read_threads,
            started: OnceLock::new(),
        }
    }

    /// Bytes of memory of the queue.
    pub(crate) fn ram(&self) -> u64 {
        self.queue.as_ref().map_or(0, |queue| lock(queue).ram())
    }

    /// Whether there is a queue.
    pub(crate) fn queue_state(&self) -> QueueState {
        self.queue.as_ref().map_or_else(|state| *state, |_| QueueState::Open)
    }

    /// The queue, unless it is in use.
    fn free_queue(&self) -> Option<MutexGuard<'_, Box<dyn ReadQueue>>> {
        match self.queue.as_ref().ok()?.try_lock() {
            Ok(queue) => Some(queue),
            // A queue takes its pages back before it reads again.
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether the next reads probably come from the disk.
    fn expects_disk(&self) -> bool {
        self.direct || self.slow.load(Ordering::Relaxed)
    }

    /// Ends the threads and waits for them. They hold the lock of the store
    /// as long as they hold a job.
    pub(crate) fn stop(&self) {
        let Some(started) = self.started.get() else { return };
        let mut state = lock(&started.queue.state);
        state.stopping = true;
        state.jobs.clear();
        drop(state);
        started.queue.added.notify_all();
        for thread in lock(&started.threads).drain(..) {
            let _ = thread.join();
        }
    }

    /// Offers a job to all threads.
    fn offer(&self, job: &Arc<Job>) {
        let started = self.started.get_or_init(|| {
            let queue = Arc::new(Queue::default());
            let start = |_| {
                let queue = Arc::clone(&queue);
                // Without a thread the caller does its reads.
                std::thread::Builder::new()
                    .name("tamis-store-read".into())
                    .spawn(move || serve(&queue))
                    .ok()
            };
            let threads = (0..self.threads).filter_map(start).collect();
            Started { queue, threads: Mutex::new(threads) }
        });
        let queue = &started.queue;
        let helpers = self.threads.min(job.reads.len() - 1);
        let mut state = lock(&queue.state);
        state.jobs.extend((0..helpers).map(|_| Arc::clone(job)));
        drop(state);
        queue.added.notify_all();
    }
}

/// Bytes of memory that the queue of a handle with these options will have, if
/// the system does not refuse it.
pub(crate) fn queue_ram(options: &Options) -> u64 {
    match options.overlap {
        #[cfg(all(target_os = "linux", feature = "io-uring"))]
        Overlap::Queue => crate::ring::ram(options.queue_depth()),
        _ => 0,
    }
}

/// Works on jobs until the store is dropped.
fn serve(queue: &Queue) {
    loop {
        let job = {
            let state = lock(&queue.state);
            let waited = queue.added.wait_while(state, |state| {
                state.jobs.is_empty() && !state.stopping
            });
            let mut state =
                waited.unwrap_or_else(std::sync::PoisonError::into_inner);
            match state.jobs.pop_front() {
                Some(job) => job,
                None => return,
            }
        };
        job.work();
    }
}

impl Shared {
    /// See [`Store::get_many`](crate::Store::get_many).
    pub(crate) fn lookup_many<K: AsRef<[u8]>>(
        self: &Arc<Self>,
        keys: &[K],
    ) -> Result<Vec<Value>> {
        let view = self.view.load_full();
        let mut values: Vec<Value> = vec![None; keys.len()];
        let mut reads = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            match self.find(&view, key.as_ref(), u64::MAX)? {
                Found::Known(value) => values[at] = value,
                found => reads.push((at, found)),
            }
        }
        let mut reads = reads.into_iter();
        if !self.readers.expects_disk() {
            while let Some((at, found)) = reads.next() {
                let start = Instant::now();
                values[at] = self.fetch(keys[at].as_ref(), &found)?;
                if reads.len() > 1 && start.elapsed() > SLOW {
                    break;
                }
            }
        }
        self.overlap(keys, reads.collect(), &mut values)?;
        // The extents that were read belong to the view.
        drop(view);
        Ok(values)
    }

    /// Does the reads at the same time: those of single pages in the queue,
    /// others in threads.
    fn overlap<K: AsRef<[u8]>>(
        self: &Arc<Self>,
        keys: &[K],
        mut reads: Vec<(usize, FoundIn<'_>)>,
        values: &mut [Value],
    ) -> Result<()> {
        if reads.len() > 1 {
            if let Some(mut queue) = self.readers.free_queue() {
                let (start, count) = (Instant::now(), reads.len());
                reads = self.enqueue(&mut **queue, keys, reads, values)?;
                let queued = (count - reads.len()) as u32;
                if queued > 0 {
                    let slow = start.elapsed() > SLOW_IN_QUEUE * queued;
                    self.readers.slow.store(slow, Ordering::Relaxed);
                }
            }
        }
        if reads.len() > 1 {
            let (places, reads): (Vec<_>, Vec<_>) = reads
                .into_iter()
                .map(|(at, f)| (at, (keys[at].as_ref().to_vec(), f.shared())))
                .unzip();
            for (at, value) in places.into_iter().zip(self.share(reads)) {
                values[at] = value?;
            }
            return Ok(());
        }
        for (at, found) in reads {
            values[at] = self.fetch(keys[at].as_ref(), &found)?;
        }
        Ok(())
    }

    /// Reads the blocks that are single pages in the queue. Returns the other
    /// reads.
    fn enqueue<'v, K: AsRef<[u8]>>(
        &self,
        queue: &mut dyn ReadQueue,
        keys: &[K],
        reads: Vec<(usize, FoundIn<'v>)>,
        values: &mut [Value],
    ) -> Result<Vec<(usize, FoundIn<'v>)>> {
        let mut offsets = Vec::with_capacity(reads.len());
        let mut pages = Vec::with_capacity(reads.len());
        let mut others = Vec::new();
        for (at, found) in reads {
            match self.single_page(keys[at].as_ref(), &found) {
                Some(offset) => {
                    offsets.push(offset);
                    pages.push((at, found));
                }
                None => others.push((at, found)),
            }
        }
        let mut failed = None;
        queue.read(&offsets, &mut |i, bytes, read| {
            let (at, found) = &pages[i];
            let key = keys[*at].as_ref();
            match self.complete(key, found, offsets[i], bytes, read) {
                Ok(value) => values[*at] = value,
                Err(error) => failed = Some(error),
            }
        });
        let count = offsets.len() as u64;
        Counters::add(&self.counters.queued_reads, count);
        failed.map_or(Ok(others), Err)
    }

    /// Offset of the block at a place, if it is a page.
    fn single_page(&self, key: &[u8], found: &FoundIn<'_>) -> Option<u64> {
        match found {
            Found::Block { segment, page, pages: 1 } => {
                Some(segment.offset(*page))
            }
            Found::Run { slot, at } => {
                let position = self.hash.position(key);
                let (run, (page, pages)) =
                    slot.runs.as_ref()?.block(*at, position)?;
                (pages == 1).then(|| run.offset(page))
            }
            _ => None,
        }
    }

    /// The value of `key` in the page of a place that was read.
    fn complete(
        &self,
        key: &[u8],
        found: &FoundIn<'_>,
        offset: u64,
        bytes: &mut [u8],
        read: io::Result<usize>,
    ) -> Result<Value> {
        self.finish_read(bytes, offset, read)?;
        match found {
            Found::Block { segment, page, .. } => {
                self.value_in(key, segment, *page, bytes)
            }
            Found::Run { slot, at } => {
                let position = self.hash.position(key);
                let runs = slot.runs.as_ref();
                let block = runs.and_then(|runs| runs.block(*at, position));
                if let Some((run, (page, _))) = block {
                    let value = self.value_in_run(key, run, page, bytes)?;
                    if value.is_some() {
                        return Ok(value);
                    }
                }
                // Two keys have the same position.
                self.fetch_run(key, slot, *at)
            }
            Found::Known(_) | Found::Large(_) => self.fetch(key, found),
        }
    }

    /// Does the reads in several threads, this one among them.
    fn share(
        self: &Arc<Self>,
        reads: Vec<(Vec<u8>, FoundFor)>,
    ) -> Vec<Result<Value>> {
        let count = reads.len();
        let job = Arc::new(Job {
            shared: Arc::clone(self),
            next: AtomicUsize::new(0),
            values: (0..count).map(|_| OnceLock::new()).collect(),
            left: AtomicUsize::new(count),
            finished: Signal::default(),
            reads,
        });
        self.readers.offer(&job);
        job.work();
        job.wait();
        let value = |value: &OnceLock<Result<Value>>| match value.get() {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(error)) => Err(error.again()),
            None => Err(Error::Poisoned),
        };
        job.values.iter().map(value).collect()
    }
}
