//! A simulated disk: unsynced changes may be lost, reordered or torn.
//!
//! Each file has durable bytes and a list of changes since its last sync; the
//! folder has durable names and a list of changes since its last sync. A
//! crash keeps a random selection of these changes:
//!
//! * of a write, any selection of its 64-byte sectors; of two writes to one
//!   sector, the older, the newer or neither;
//! * the length after any of the changes of length;
//! * any selection of creations, renamings and removals.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use fastrand::Rng;
use tamis_store::{Disk, DiskFile, Lock, LockKind, Mode, ReadDone, ReadQueue};

/// Unit that the disk writes whole.
const SECTOR: u64 = 64;

/// A simulated disk. Clones are the same disk.
#[derive(Debug, Clone)]
pub(crate) struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// A failure that the disk reports once or, if `lasting`, from then on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    /// Number of the operation that fails, counted as [`SimDisk::calls`].
    pub at: u64,
    pub kind: FaultKind,
    pub lasting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// Any operation fails. A sync that fails loses its changes for good.
    Error,
    /// Operations that need space fail.
    NoSpace,
    /// Reads and writes move half of the bytes.
    Short,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    /// Content of all files, by number.
    files: BTreeMap<u64, FileState>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    /// Changes of names since the last sync of the folder.
    renamings: Vec<NameChange>,
    next_file: u64,
    locks: HashMap<String, (usize, bool)>,
    /// Changes and syncs so far: the points at which a crash can happen.
    changes: u64,
    /// All operations so far, reads included.
    calls: u64,
    crash_at: Option<u64>,
    crashed: bool,
    fault: Option<Fault>,
    syncs: Syncs,
}

/// Places of the product that sync.
#[derive(Debug, Default)]
struct Syncs {
    /// True if syncs are distinguished by their place.
    watched: bool,
    /// The place whose syncs do nothing.
    ignored: Option<String>,
    seen: BTreeSet<String>,
    /// Names of instruction addresses.
    known: HashMap<usize, Option<String>>,
}

#[derive(Debug, Clone, Default)]
struct FileState {
    /// Content that programs see.
    content: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
    Punch { offset: u64, len: u64 },
}

#[derive(Debug, Clone)]
enum NameChange {
    Create(String, u64),
    Rename { from: String, to: String, file: u64 },
    Remove(String),
}

impl SimDisk {
    pub(crate) fn new(seed: u64) -> Self {
        let state = State {
            rng: Rng::with_seed(seed),
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            renamings: Vec::new(),
            next_file: 0,
            locks: HashMap::new(),
            changes: 0,
            calls: 0,
            crash_at: None,
            crashed: false,
            fault: None,
            syncs: Syncs::default(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// Changes and syncs so far.
    pub(crate) fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Operations so far, reads included.
    pub(crate) fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Lets change number `at` and all later operations fail; of the change
    /// itself any part may be kept.
    pub(crate) fn crash_at(&self, at: u64) {
        self.state().crash_at = Some(at);
    }

    pub(crate) fn has_crashed(&self) -> bool {
        self.state().crashed
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        self.state().fault = fault;
    }

    /// Records from where syncs come, and makes those from `ignored` do
    /// nothing.
    pub(crate) fn watch_syncs(&self, ignored: Option<&str>) {
        let mut state = self.state();
        state.syncs.watched = true;
        state.syncs.ignored = ignored.map(str::to_owned);
    }

    /// Functions of the product that synced.
    pub(crate) fn sync_places(&self) -> BTreeSet<String> {
        self.state().syncs.seen.clone()
    }

    /// Turns the power off and on: keeps a random part of the unsynced changes.
    pub(crate) fn restart(&self) {
        let state = &mut *self.state();
        state.keep_some();
        state.crash_at = None;
        state.crashed = false;
        state.fault = None;
        state.locks.clear();
    }

    /// Goes on after a crash that ended only the program: the system still
    /// has all changes, synced or not.
    pub(crate) fn restart_program(&self) {
        let state = &mut *self.state();
        state.crash_at = None;
        state.crashed = false;
        state.fault = None;
        state.locks.clear();
    }

    /// Inverts a random bit of a random file that is not empty.
    pub(crate) fn flip_bit(&self) {
        let state = &mut *self.state();
        let mut files: Vec<_> = state
            .files
            .values_mut()
            .filter(|file| !file.content.is_empty())
            .collect();
        if files.is_empty() {
            return;
        }
        let i = state.rng.usize(..files.len());
        let file = &mut files[i];
        let at = state.rng.usize(..file.content.len());
        let bit = 1 << state.rng.u8(..8);
        file.content[at] ^= bit;
        if let Some(byte) = file.durable.get_mut(at) {
            *byte ^= bit;
        }
    }
}

impl State {
    /// Counts an operation and returns its outcome.
    fn begin(&mut self, change: bool, space: bool) -> io::Result<Outcome> {
        if self.crashed {
            return Err(io::Error::other("the simulated disk has crashed"));
        }
        self.calls += 1;
        if change {
            self.changes += 1;
            if self.crash_at == Some(self.changes) {
                self.crashed = true;
            }
        }
        let Some(fault) = self.fault else { return Ok(Outcome::Succeed) };
        let due = match fault.lasting {
            true => self.calls >= fault.at,
            false => self.calls == fault.at,
        };
        match fault.kind {
            _ if !due => Ok(Outcome::Succeed),
            FaultKind::Error => {
                Ok(Outcome::Fail(io::Error::other("simulated error")))
            }
            FaultKind::NoSpace if space => {
                Ok(Outcome::Fail(io::ErrorKind::StorageFull.into()))
            }
            FaultKind::NoSpace => Ok(Outcome::Succeed),
            FaultKind::Short => Ok(Outcome::Half),
        }
    }

    /// [`begin`](Self::begin) for an operation without a half.
    fn begin_whole(&mut self, change: bool, space: bool) -> io::Result<()> {
        match self.begin(change, space)? {
            Outcome::Fail(error) => Err(error),
            Outcome::Succeed | Outcome::Half => Ok(()),
        }
    }

    /// An error if the operation that was just applied was the last.
    fn end(&self) -> io::Result<()> {
        match self.crashed {
            true => Err(io::Error::other("the simulated disk has crashed")),
            false => Ok(()),
        }
    }

    fn keep_some(&mut self) {
        let rng = &mut self.rng;
        let style = Style::pick(rng);
        let mut names = self.durable_names.clone();
        for change in self.renamings.drain(..) {
            if !style.keep(rng) {
                continue;
            }
            match change {
                NameChange::Create(name, file) => {
                    names.insert(name, file);
                }
                NameChange::Rename { from, to, file } => {
                    if names.get(&from) == Some(&file) {
                        names.remove(&from);
                    }
                    names.insert(to, file);
                }
                NameChange::Remove(name) => {
                    names.remove(&name);
                }
            }
        }
        for file in self.files.values_mut() {
            file.crash(style, rng);
        }
        let kept: BTreeSet<_> = names.values().copied().collect();
        self.files.retain(|number, _| kept.contains(number));
        self.names.clone_from(&names);
        self.durable_names = names;
    }

    /// Whether a sync from the calling function counts.
    fn sync_counts(&mut self) -> bool {
        if !self.syncs.watched {
            return true;
        }
        let place = self.syncs.place();
        let counts = self.syncs.ignored.as_ref() != Some(&place);
        self.syncs.seen.insert(place);
        counts
    }
}

impl Syncs {
    /// Function, file and line of the product from which the disk was called.
    fn place(&mut self) -> String {
        let mut found = None;
        backtrace::trace(|frame| {
            let address = frame.ip() as usize;
            let known = self.known.entry(address).or_insert_with(|| {
                let mut place = None;
                backtrace::resolve(frame.ip(), |symbol| {
                    let file = symbol.filename().map(|f| f.to_string_lossy());
                    let (Some(file), Some(line)) = (file, symbol.lineno())
                    else {
                        return;
                    };
                    let source = file
                        .rsplit_once("tamis-store/src/")
                        .map(|(_, name)| name.to_owned());
                    if let (None, Some(source)) = (&place, source) {
                        place = Some(format!("{source}:{line}"));
                    }
                });
                place
            });
            found.clone_from(known);
            found.is_none()
        });
        found.expect("a sync comes from the product")
    }
}

/// What an operation is to do.
enum Outcome {
    Succeed,
    Fail(io::Error),
    Half,
}

/// How much a crash keeps.
#[derive(Debug, Clone, Copy)]
enum Style {
    Nothing,
    Everything,
    /// Whole writes with this chance in 256.
    Writes(u8),
    /// Sectors.
    Sectors,
}

impl Style {
    fn pick(rng: &mut Rng) -> Self {
        match rng.u8(..8) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2 => Self::Writes(32),
            3 => Self::Writes(128),
            4 => Self::Writes(224),
            _ => Self::Sectors,
        }
    }

    fn keep(self, rng: &mut Rng) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Writes(chance) => rng.u8(..) < chance,
            Self::Sectors => rng.bool(),
        }
    }
}

impl FileState {
    /// Content with `changes` applied.
    fn apply(content: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Write { offset, bytes } => {
                let end = *offset as usize + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset as usize..end].copy_from_slice(bytes);
            }
            Change::SetLen(len) => content.resize(*len as usize, 0),
            Change::Punch { offset, len } => {
                let end = (offset + len).min(content.len() as u64) as usize;
                let start = (*offset as usize).min(end);
                content[start..end].fill(0);
            }
        }
    }

    /// Makes a change that programs see at once.
    fn change(&mut self, change: Change) {
        Self::apply(&mut self.content, &change);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            Self::apply(&mut self.durable, &change);
        }
    }

    /// A sync that fails: a part of the changes is durable, and no later
    /// sync makes up for the rest.
    fn fail_sync(&mut self, style: Style, rng: &mut Rng) {
        let seen = std::mem::take(&mut self.content);
        self.crash(style, rng);
        self.content = seen;
    }

    /// Keeps a part of the changes since the last sync.
    fn crash(&mut self, style: Style, rng: &mut Rng) {
        // The number of changes after which the length was stored.
        let lengths = match style {
            Style::Nothing => 0,
            Style::Everything => self.pending.len(),
            Style::Writes(_) | Style::Sectors => {
                rng.usize(..=self.pending.len())
            }
        };
        let mut content = self.durable.clone();
        let mut len = content.len() as u64;
        // Of each sector, the writes that come too late for it.
        let mut cut: HashMap<u64, bool> = HashMap::new();
        for (i, change) in self.pending.drain(..).enumerate() {
            let keep = style.keep(rng);
            match &change {
                Change::SetLen(new) => {
                    if i < lengths {
                        len = *new;
                        Self::apply(&mut content, &change);
                    }
                }
                Change::Punch { .. } => {
                    if keep {
                        Self::apply(&mut content, &change);
                    }
                }
                Change::Write { offset, bytes } => {
                    let end = offset + bytes.len() as u64;
                    if i < lengths {
                        len = len.max(end);
                    }
                    let mut at = *offset;
                    while at < end {
                        let next = ((at / SECTOR + 1) * SECTOR).min(end);
                        let part = match style {
                            Style::Sectors => {
                                let sector = at / SECTOR;
                                let late = cut.entry(sector).or_default();
                                *late |= rng.u8(..3) == 0;
                                !*late
                            }
                            _ => keep,
                        };
                        if part {
                            let range = (at - offset) as usize
                                ..(next - offset) as usize;
                            let bytes = bytes[range].to_vec();
                            let write = Change::Write { offset: at, bytes };
                            Self::apply(&mut content, &write);
                        }
                        at = next;
                    }
                }
            }
        }
        content.resize(len as usize, 0);
        self.durable.clone_from(&content);
        self.content = content;
    }
}

impl Disk for SimDisk {
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        let create = mode == Mode::Create;
        state.begin_whole(create, create)?;
        let number = match (state.names.get(name).copied(), create) {
            (Some(_), true) => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            (None, false) => return Err(io::ErrorKind::NotFound.into()),
            (Some(number), false) => number,
            (None, true) => {
                let number = state.next_file;
                state.next_file += 1;
                state.files.insert(number, FileState::default());
                state.names.insert(name.into(), number);
                state.renamings.push(NameChange::Create(name.into(), number));
                number
            }
        };
        state.end()?;
        drop(state);
        Ok(Arc::new(SimFile { disk: self.clone(), number, mode }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.begin_whole(true, false)?;
        let file = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.into(), file);
        let (from, to) = (from.into(), to.into());
        state.renamings.push(NameChange::Rename { from, to, file });
        state.end()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.begin_whole(true, false)?;
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.renamings.push(NameChange::Remove(name.into()));
        state.end()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.begin_whole(false, false)?;
        Ok(state.names.keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let state = &mut *self.state();
        let counts = state.sync_counts();
        state.begin_whole(true, false)?;
        state.end()?;
        if counts {
            state.renamings.clear();
            state.durable_names.clone_from(&state.names);
        }
        Ok(())
    }

    fn lock(
        &self,
        name: &str,
        kind: LockKind,
    ) -> io::Result<Option<Box<dyn Lock>>> {
        let mut state = self.state();
        state.begin_whole(false, false)?;
        let exclusive = kind == LockKind::Exclusive;
        let held = state.locks.entry(name.into()).or_default();
        if held.0 > 0 && (exclusive || held.1) {
            return Ok(None);
        }
        *held = (held.0 + 1, exclusive);
        drop(state);
        Ok(Some(Box::new(SimLock { disk: self.clone(), name: name.into() })))
    }
}

#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    name: String,
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        if let Some(held) = self.disk.state().locks.get_mut(&self.name) {
            held.0 = held.0.saturating_sub(1);
        }
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    number: u64,
    mode: Mode,
}

impl SimFile {
    fn writes(&self) -> io::Result<()> {
        match self.mode {
            Mode::Write | Mode::Create => Ok(()),
            Mode::Read
            | Mode::ReadRandom
            | Mode::ReadDirect
            | Mode::ReadMapped => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Applies a change, of which a crash keeps any part.
    fn change(
        &self,
        space: bool,
        change: impl FnOnce(bool) -> Change,
    ) -> io::Result<()> {
        self.writes()?;
        let mut state = self.disk.state();
        let half = match state.begin(true, space)? {
            Outcome::Fail(error) => return Err(error),
            Outcome::Half => true,
            Outcome::Succeed => false,
        };
        if let Some(file) = state.files.get_mut(&self.number) {
            file.change(change(half));
        }
        state.end()
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.mode == Mode::ReadDirect {
            let address = buffer.as_ptr().addr() as u64;
            for number in [offset, buffer.len() as u64, address] {
                assert_eq!(number % 4096, 0, "direct reads are aligned");
            }
        }
        let mut state = self.disk.state();
        let wanted = match state.begin(false, false)? {
            Outcome::Fail(error) => return Err(error),
            Outcome::Half => buffer.len().div_ceil(2),
            Outcome::Succeed => buffer.len(),
        };
        let Some(file) = state.files.get(&self.number) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let content = &file.content;
        let start =
            usize::try_from(offset).expect("64 bits").min(content.len());
        let n = wanted.min(content.len() - start);
        buffer[..n].copy_from_slice(&content[start..start + n]);
        Ok(n)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut n = bytes.len();
        self.change(true, |half| {
            if half {
                n = n.div_ceil(2);
            }
            Change::Write { offset, bytes: bytes[..n].to_vec() }
        })?;
        Ok(n)
    }

    fn sync(&self) -> io::Result<()> {
        let state = &mut *self.disk.state();
        let counts = state.sync_counts();
        let outcome = state.begin(true, false)?;
        state.end()?;
        let Some(file) = state.files.get_mut(&self.number) else {
            return Ok(());
        };
        if let Outcome::Fail(error) = outcome {
            let style = Style::pick(&mut state.rng);
            file.fail_sync(style, &mut state.rng);
            return Err(error);
        }
        if counts {
            file.sync();
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        state.begin_whole(false, false)?;
        Ok(state.files[&self.number].content.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(true, |_| Change::SetLen(len))
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.change(false, |_| Change::Punch { offset, len })
    }

    fn queue(&self, depth: usize) -> io::Result<Box<dyn ReadQueue>> {
        assert!(depth > 1, "reads overlap");
        let (disk, number, mode) = (self.disk.clone(), self.number, self.mode);
        Ok(Box::new(SimQueue { file: Self { disk, number, mode } }))
    }
}

/// A queue whose reads complete in a random order.
#[derive(Debug)]
struct SimQueue {
    file: SimFile,
}

#[repr(align(4096))]
struct Page([u8; 4096]);

impl ReadQueue for SimQueue {
    fn read(&mut self, offsets: &[u64], done: &mut ReadDone<'_>) {
        let mut order: Vec<usize> = (0..offsets.len()).collect();
        self.file.disk.state().rng.shuffle(&mut order);
        let mut page = Box::new(Page([0; 4096]));
        for i in order {
            let read = self.file.read_at(&mut page.0, offsets[i]);
            done(i, &mut page.0, read);
        }
    }

    fn ram(&self) -> u64 {
        4096
    }
}
