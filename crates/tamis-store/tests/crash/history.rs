//! Random histories of a store, and the states that it may have afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tamis_store::{
    Batch, Durability, Error, Options, ReadMode, Result, Store,
};

use crate::disk::{Fault, FaultKind, SimDisk};

/// Number of different keys.
const KEYS: u8 = 48;

/// Content of a store: the version of the value of each key.
type Content = BTreeMap<u8, u32>;

/// A run of histories on one disk.
pub(crate) struct Run {
    seed: u64,
    steps: usize,
    plan: Plan,
    watched: Option<Option<String>>,
}

/// The failures of a run.
enum Plan {
    /// A dozen crashes at random changes.
    Crashes,
    /// A crash at this change.
    CrashAt(u64),
    Fault(Fault),
}

impl Run {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, steps: 150, plan: Plan::Crashes, watched: None }
    }

    /// Crashes at random changes, a dozen times.
    pub(crate) fn crashing(mut self) -> Self {
        self.plan = Plan::Crashes;
        self
    }

    pub(crate) fn crash_at(mut self, at: u64) -> Self {
        self.plan = Plan::CrashAt(at);
        self
    }

    pub(crate) fn fault(
        mut self,
        at: u64,
        kind: FaultKind,
        lasting: bool,
    ) -> Self {
        self.plan = Plan::Fault(Fault { at, kind, lasting });
        self
    }

    pub(crate) fn steps(mut self, steps: usize) -> Self {
        self.steps = steps;
        self
    }

    /// Tells syncs apart, and ignores those from one place.
    pub(crate) fn watching(mut self, ignored: Option<&String>) -> Self {
        self.watched = Some(ignored.cloned());
        self
    }

    pub(crate) fn sync_places(self) -> BTreeSet<String> {
        let disk = SimDisk::new(self.seed);
        self.on(&disk);
        disk.sync_places()
    }

    /// Runs, and returns the number of crashes or faults that happened.
    ///
    /// # Panics
    ///
    /// If the store lost something.
    pub(crate) fn finish(self) -> u64 {
        let disk = SimDisk::new(self.seed);
        self.on(&disk)
    }

    fn on(self, disk: &SimDisk) -> u64 {
        if let Some(ignored) = &self.watched {
            disk.watch_syncs(ignored.as_deref());
        }
        let mut history = History::new(disk.clone(), self.seed, self.steps);
        match self.plan {
            Plan::Crashes => {
                let mut crashes = 0;
                for _ in 0..12 {
                    crashes += history.crash_soon();
                }
                crashes
            }
            Plan::CrashAt(at) => {
                disk.crash_at(at);
                match history.run() {
                    Ok(()) => 0,
                    Err(_) => {
                        history.restart();
                        history.reopen_and_check();
                        1
                    }
                }
            }
            Plan::Fault(fault) => history.run_with(fault),
        }
    }
}

/// A store, and the contents that it may have.
pub(crate) struct History {
    disk: SimDisk,
    rng: Rng,
    seed: u64,
    steps: usize,
    options: Options,
    /// Whether lookups are made in batches, which a queue of the disk reads.
    batched: bool,
    always: bool,
    store: Option<Store>,
    /// Contents after each write since the last that is surely durable. The
    /// last may be that of a write in flight.
    contents: Vec<Content>,
    /// The contents that a log without its last frames has.
    tail: Vec<Content>,
    version: u32,
}

impl History {
    pub(crate) fn new(disk: SimDisk, seed: u64, steps: usize) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x5eed);
        let always = rng.bool();
        let durability = match (always, rng.bool()) {
            (true, _) => Durability::Always,
            (false, true) => Durability::None,
            (false, false) => Durability::Interval(Duration::from_nanos(1)),
        };
        let mode = [ReadMode::Buffered, ReadMode::Direct, ReadMode::Mapped]
            [rng.usize(..3)];
        // Batches of other modes overlap only where a read takes long.
        let batched = mode == ReadMode::Direct && rng.bool();
        let options = Options::new()
            .background(false)
            .durability(durability)
            .read_mode(mode)
            .segment_bytes(16 << 10)
            .spill_eagerly(rng.bool())
            .buffer_bytes(1 << rng.u32(12..16))
            .seed(seed.into());
        Self {
            disk,
            rng,
            seed,
            steps,
            options,
            batched,
            always,
            store: None,
            contents: vec![Content::new()],
            tail: vec![Content::new()],
            version: 0,
        }
    }

    /// Opens the store, or creates it if no creation has succeeded.
    fn open(&mut self) -> Result<()> {
        let disk = Arc::new(self.disk.clone());
        let store = match Store::open_on(disk.clone(), &self.options) {
            Err(Error::NotFound) => {
                assert!(
                    self.contents.len() == 1 && self.version == 0,
                    "seed {}: the store has vanished",
                    self.seed
                );
                Store::create_on(disk, &self.options)?
            }
            opened => opened?,
        };
        self.store = Some(store);
        Ok(())
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }

    fn last(&self) -> &Content {
        self.contents.last().expect("one content at least")
    }

    /// All that was written so far is durable.
    fn settle(&mut self) {
        if self.contents.len() > 1 {
            self.tail.clone_from(&self.contents);
        }
        let last = self.contents.pop().expect("one content at least");
        self.contents = vec![last];
    }

    /// Makes all durable and drops the store.
    ///
    /// # Errors
    ///
    /// Those of the sync.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.store().flush()?;
        self.settle();
        self.store = None;
        Ok(())
    }

    /// Runs all steps.
    ///
    /// # Errors
    ///
    /// That of the step that failed.
    pub(crate) fn run(&mut self) -> Result<()> {
        if self.store.is_none() {
            self.open()?;
        }
        for _ in 0..self.steps {
            self.step()?;
        }
        self.check()
    }

    /// Lets the disk crash at a change that is not far, goes on until then,
    /// and checks the store after a restart. Returns the number of crashes.
    fn crash_soon(&mut self) -> u64 {
        let most = 1 << self.rng.u32(1..9);
        let at = self.disk.changes() + 1 + self.rng.u64(..most);
        self.disk.crash_at(at);
        if let Err(error) = self.run() {
            assert!(self.disk.has_crashed(), "seed {}: {error}", self.seed);
        }
        if !self.disk.has_crashed() {
            return 0;
        }
        self.restart();
        let mut crashes = 1;
        // Recovery is interrupted as well.
        while self.rng.u8(..3) == 0 {
            let at = self.disk.changes() + 1 + self.rng.u64(..8);
            self.disk.crash_at(at);
            let opened = self.open();
            if !self.disk.has_crashed() {
                opened.unwrap_or_else(|e| panic!("seed {}: {e}", self.seed));
                self.check_reopened();
                self.disk.crash_at(u64::MAX);
                return crashes;
            }
            self.restart();
            crashes += 1;
        }
        self.reopen_and_check();
        crashes
    }

    /// Runs with a fault, and returns 1 if the fault changed anything.
    fn run_with(&mut self, fault: Fault) -> u64 {
        self.disk.set_fault(Some(fault));
        let mut failed = 0;
        for _ in 0..2 {
            match self.run() {
                Ok(()) => break,
                Err(Error::Corrupt { why, .. }) => {
                    panic!("seed {}, {fault:?}: {why}", self.seed)
                }
                Err(_) => {
                    failed = 1;
                    self.check_after_error(fault);
                }
            }
        }
        let reached = u64::from(self.disk.calls() >= fault.at);
        self.disk.set_fault(None);
        self.store = None;
        self.reopen_and_check();
        reached.max(failed)
    }

    /// After an error without a crash: the failed write is not visible, and
    /// the store serves on, or demands to be opened again.
    fn check_after_error(&mut self, fault: Fault) {
        self.disk.set_fault(None);
        let Some(store) = &self.store else { return };
        match store.flush() {
            Ok(()) => {
                let found = self.read();
                let found = found.unwrap_or_else(|error| {
                    panic!("seed {}, {fault:?}: {error}", self.seed)
                });
                let written = self.contents.len();
                let before = &self.contents[written.saturating_sub(2)];
                assert!(
                    found == *self.last() || found == *before,
                    "seed {}, {fault:?}: an error changed the content",
                    self.seed
                );
                self.contents = vec![found];
            }
            Err(Error::Poisoned) => {
                self.store = None;
                self.reopen_and_check();
            }
            Err(error) => panic!("seed {}, {fault:?}: {error}", self.seed),
        }
    }

    /// Turns the power off and on, or ends the program and starts it again.
    pub(crate) fn restart(&mut self) {
        self.store = None;
        match self.rng.u8(..4) {
            0 => self.disk.restart_program(),
            _ => self.disk.restart(),
        }
    }

    pub(crate) fn reopen_and_check(&mut self) {
        self.open().unwrap_or_else(|e| panic!("seed {}: {e}", self.seed));
        self.check_reopened();
    }

    /// The content is that after one of the writes that may be durable. From
    /// now on it is durable.
    fn check_reopened(&mut self) {
        let found =
            self.read().unwrap_or_else(|e| panic!("seed {}: {e}", self.seed));
        assert!(
            self.contents.contains(&found),
            "seed {}: found {found:?}, and not one of {:?}",
            self.seed,
            self.contents
        );
        self.contents = vec![found];
    }

    /// The content is that after the last write.
    fn check(&self) -> Result<()> {
        let found = self.read()?;
        assert!(
            found == *self.last(),
            "seed {}: found {found:?}, and not {:?}",
            self.seed,
            self.last()
        );
        Ok(())
    }

    /// After a bit has changed: lookups fail or give the content after one of
    /// the writes since the last sync but one, because damage to the last
    /// frames of a log is not told from a torn write. Whether anything failed
    /// or changed.
    pub(crate) fn check_damaged(&mut self) -> bool {
        if self.open().is_err() {
            return true;
        }
        let found: Vec<_> = (0..KEYS)
            .map(|k| (k, self.store().get(key(k))))
            .filter_map(|(k, found)| Some((k, found.ok()?)))
            .map(|(k, value)| (k, value.map(|value| version(k, &value))))
            .collect();
        if self.batched {
            let keys: Vec<_> = (0..KEYS).map(key).collect();
            match self.store().get_many(&keys) {
                Err(_) => assert!(found.len() < KEYS.into()),
                Ok(values) => {
                    let values = (0..KEYS).zip(values);
                    let values = values
                        .map(|(k, v)| (k, v.map(|value| version(k, &value))));
                    assert_eq!(values.collect::<Vec<_>>(), found);
                }
            }
        }
        let agrees = |content: &Content| {
            found.iter().all(|(k, v)| content.get(k) == v.as_ref())
        };
        assert!(
            self.tail.iter().any(agrees),
            "seed {}: damaged data was returned: {found:?}, not one of {:?}",
            self.seed,
            self.tail
        );
        found.len() < KEYS.into() || !agrees(self.last())
    }

    /// The content, through lookups and through a snapshot.
    fn read(&self) -> Result<Content> {
        let store = self.store();
        let mut found = Content::new();
        let keys: Vec<_> = (0..KEYS).map(key).collect();
        let values = match self.batched {
            true => store.get_many(&keys)?,
            false => {
                keys.iter().map(|k| store.get(k)).collect::<Result<_>>()?
            }
        };
        for (k, value) in (0..KEYS).zip(values) {
            if let Some(value) = value {
                found.insert(k, version(k, &value));
            }
        }
        let mut listed = Content::new();
        for record in store.snapshot()?.iter() {
            let (name, value) = record?;
            let k = name[0];
            assert_eq!(name, key(k), "seed {}", self.seed);
            listed.insert(k, version(k, &value));
        }
        assert_eq!(found, listed, "seed {}: get and iter differ", self.seed);
        Ok(found)
    }

    fn step(&mut self) -> Result<()> {
        match self.rng.u8(..100) {
            0..50 => {
                let k = self.rng.u8(..KEYS);
                let len = self.value_len();
                self.version += 1;
                let value = value(k, self.version, len);
                let mut content = self.last().clone();
                content.insert(k, self.version);
                self.contents.push(content);
                self.store().put(key(k), &value)?;
                self.written();
            }
            50..65 => {
                let k = self.rng.u8(..KEYS);
                let mut content = self.last().clone();
                content.remove(&k);
                self.contents.push(content);
                self.store().delete(key(k))?;
                self.written();
            }
            65..75 => {
                let mut batch = Batch::new();
                let mut content = self.last().clone();
                for _ in 0..self.rng.u8(1..12) {
                    let k = self.rng.u8(..KEYS);
                    if self.rng.u8(..4) == 0 {
                        batch.delete(key(k))?;
                        content.remove(&k);
                    } else {
                        let len = self.value_len();
                        self.version += 1;
                        batch.put(key(k), value(k, self.version, len))?;
                        content.insert(k, self.version);
                    }
                }
                self.contents.push(content);
                self.store().write_batch(&batch)?;
                self.written();
            }
            75..85 => {
                let k = self.rng.u8(..KEYS);
                let found = self.store().get(key(k))?;
                let version = found.map(|value| version(k, &value));
                assert_eq!(
                    version,
                    self.last().get(&k).copied(),
                    "seed {}: key {k}",
                    self.seed
                );
            }
            85..92 => {
                self.store().flush()?;
                self.settle();
            }
            92..94 => self.check()?,
            94..96 => {
                self.store().compact()?;
                self.settle();
            }
            96 => {
                // Some are dropped. All else is in one commit.
                let finish = self.rng.u8(..4) > 0;
                let mut loader = self.store().loader()?;
                let mut content = self.last().clone();
                // More than the memory of a loader goes to a file.
                let long = self.rng.u8(..48) == 0;
                for _ in 0..self.rng.u8(1..60) {
                    let k = self.rng.u8(..KEYS);
                    let len = match long {
                        true => self.rng.usize(12_000..60_000),
                        false => self.value_len(),
                    };
                    self.version += 1;
                    loader.put(key(k), value(k, self.version, len))?;
                    content.insert(k, self.version);
                }
                if finish {
                    self.contents.push(content);
                    loader.finish()?;
                    self.settle();
                }
            }
            _ => {
                self.close()?;
                self.open()?;
                self.check()?;
            }
        }
        Ok(())
    }

    /// A write has returned.
    fn written(&mut self) {
        if self.always {
            self.settle();
        }
    }

    /// Mostly short, sometimes several pages, rarely an extent of its own.
    fn value_len(&mut self) -> usize {
        match self.rng.u8(..128) {
            0 => self.rng.usize(65_533..70_000),
            4..8 => self.rng.usize(4000..20_000),
            8..20 => self.rng.usize(500..3000),
            _ => self.rng.usize(..120),
        }
    }
}

/// Keys have different lengths.
fn key(k: u8) -> Vec<u8> {
    vec![k; 1 + usize::from(k % 23)]
}

/// The bytes of a version of the value of key `k`.
fn value(k: u8, version: u32, len: usize) -> Vec<u8> {
    let mut value = version.to_le_bytes().to_vec();
    value.extend((0..len).map(|i| filler(k, version, i)));
    value
}

fn filler(k: u8, version: u32, i: usize) -> u8 {
    (version as usize * 31 + i * 7 + usize::from(k)) as u8
}

/// The version of a value, all bytes of which are compared.
fn version(k: u8, value: &[u8]) -> u32 {
    let number = value[..4].try_into().expect("a value has a version");
    let version = u32::from_le_bytes(number);
    let whole = value[4..]
        .iter()
        .enumerate()
        .all(|(i, &byte)| byte == filler(k, version, i));
    assert!(whole, "the value of key {k}, version {version}, is damaged");
    version
}
