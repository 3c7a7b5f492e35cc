//! Overlapping reads: threads that read blocks for
//! [`Store::get_many`](crate::Store::get_many).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::core::{Found, FoundFor, Shared, Signal, lock};
use crate::error::{Error, Result};

/// A read that takes longer came from the disk: the next ones are given to
/// threads. Reads from the page cache are faster without them.
const SLOW: Duration = Duration::from_micros(15);

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

/// Threads that read. They start with the first job.
#[derive(Debug)]
pub(crate) struct Readers {
    threads: usize,
    started: OnceLock<Started>,
}

#[derive(Debug)]
struct Started {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Readers {
    /// At most `threads` threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, started: OnceLock::new() }
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
        while let Some((at, found)) = reads.next() {
            let start = Instant::now();
            values[at] = self.fetch(keys[at].as_ref(), &found)?;
            if reads.len() > 1 && start.elapsed() > SLOW {
                let (places, reads): (Vec<_>, Vec<_>) = reads
                    .map(|(at, f)| {
                        (at, (keys[at].as_ref().to_vec(), f.shared()))
                    })
                    .unzip();
                for (at, value) in places.into_iter().zip(self.share(reads)) {
                    values[at] = value?;
                }
                break;
            }
        }
        // The extents that were read belong to the view.
        drop(view);
        Ok(values)
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
