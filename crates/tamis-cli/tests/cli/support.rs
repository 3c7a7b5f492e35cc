//! Temporary directories, runs of the program and their assertions.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tamis::{AnyFilter, Blocked, Bloom, Split, TinySet};

pub(crate) const KINDS: [&str; 4] = ["bloom", "blocked", "split", "tinyset"];

/// Kinds whose bits do not depend on the order of the keys.
pub(crate) const BLOOM_KINDS: [&str; 3] = ["bloom", "blocked", "split"];

/// Temporary directory of a test. The program runs inside it, so file names
/// need no path. It is also `TMPDIR`, so leftover temporary files are found.
pub(crate) struct TestDir(tempfile::TempDir);

impl TestDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// In memory where the system has such a file system: for tests of many
    /// writes, each with a sync.
    pub(crate) fn in_memory() -> Self {
        match tempfile::tempdir_in("/dev/shm") {
            Ok(directory) => Self(directory),
            Err(_) => Self::new(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn files(&self) -> BTreeSet<OsString> {
        fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect()
    }

    /// Asserts that the directory holds these files and no other.
    #[track_caller]
    pub(crate) fn only(&self, names: &[&str]) {
        let names: BTreeSet<_> = names.iter().map(OsString::from).collect();
        assert_eq!(self.files(), names);
    }

    /// Command that runs the program here; `arguments` are split at spaces.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        self.command_with(arguments.split_whitespace())
    }

    pub(crate) fn command_with<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env("TMPDIR", self.0.path())
            // Panics print a backtrace whatever the environment.
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &str) -> ProgramRun {
        ProgramRun::new(&mut self.command(arguments), None)
    }

    /// Runs with `input` on standard input.
    pub(crate) fn feed(&self, arguments: &str, input: &[u8]) -> ProgramRun {
        ProgramRun::new(&mut self.command(arguments), Some(input))
    }

    /// Asserts that the run fails and changes no file; returns the message.
    pub(crate) fn refused(&self, arguments: &str) -> String {
        let before = self.snapshot();
        let message = self.run(arguments).refused();
        assert!(self.snapshot() == before, "{arguments}: files changed");
        message
    }

    fn snapshot(&self) -> Vec<(OsString, Option<Vec<u8>>)> {
        let read = |name: OsString| {
            let bytes = fs::read(self.0.path().join(&name)).ok();
            (name, bytes)
        };
        self.files().into_iter().map(read).collect()
    }

    pub(crate) fn info(&self, filter: &str) -> Value {
        self.run(&format!("info --json {filter}")).json()
    }

    /// Number of keys selected by `query -c`.
    pub(crate) fn count(&self, arguments: &str) -> u64 {
        let run = self.run(&format!("query -c {arguments}"));
        let count: u64 = run.text().trim_end().parse().unwrap();
        run.status(i32::from(count == 0));
        count
    }
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct ProgramRun {
    what: String,
    code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl ProgramRun {
    pub(crate) fn new(command: &mut Command, input: Option<&[u8]>) -> Self {
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                if let (Some(mut stdin), Some(input)) = (stdin, input) {
                    // The program may stop reading early.
                    let _ = stdin.write_all(input);
                }
            });
            child.wait_with_output().unwrap()
        });
        let run = Self {
            what: format!("{command:?}"),
            code: output.status.code(),
            out: output.stdout,
            err: String::from_utf8(output.stderr).unwrap(),
        };
        for word in ["panicked", "backtrace", "RUST_"] {
            assert!(!run.err.contains(word), "{run:?}");
        }
        run
    }

    #[track_caller]
    pub(crate) fn status(&self, expected: i32) -> &Self {
        assert_eq!(self.code, Some(expected), "{self:?}");
        self
    }

    /// Asserts status 0 without messages.
    #[track_caller]
    pub(crate) fn success(&self) -> &Self {
        assert_eq!(self.err, "", "{}", self.what);
        self.status(0)
    }

    /// Asserts status 0 without messages except warnings and hints.
    #[track_caller]
    pub(crate) fn done(&self) -> &Self {
        self.only_notices().status(0)
    }

    #[track_caller]
    fn only_notices(&self) -> &Self {
        for line in self.err.lines() {
            let notices = ["tamis: warning: ", "tamis: hint: "];
            let is_notice = notices.iter().any(|it| line.starts_with(it));
            assert!(is_notice, "{}: {line}", self.what);
        }
        self
    }

    /// Asserts status 1 (no key selected) without messages except warnings
    /// and hints.
    #[track_caller]
    pub(crate) fn no_match(&self) -> &Self {
        self.only_notices().status(1)
    }

    /// Asserts status 2, one line of message and no output; returns the
    /// message.
    #[track_caller]
    pub(crate) fn refused(&self) -> String {
        self.status(2);
        assert!(self.out.is_empty(), "{self:?}");
        self.message()
    }

    /// Asserts a message of one line; returns it.
    #[track_caller]
    pub(crate) fn message(&self) -> String {
        let line = self.err.strip_suffix('\n').expect("a message");
        assert!(!line.contains('\n'), "{self:?}");
        assert!(line.starts_with("tamis: "), "{self:?}");
        line.to_owned()
    }

    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        self.done();
        serde_json::from_slice(&self.out).unwrap()
    }
}

/// Pseudorandom number `i` of a stream. SplitMix64 is a bijection, so numbers
/// of different streams differ.
pub(crate) fn number(stream: u64, i: u64) -> u64 {
    let mut z = (stream << 48 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `count` different keys of different lengths, one per line.
pub(crate) fn lines(stream: u64, count: u64) -> String {
    (0..count)
        .map(|i| {
            let number = number(stream, i);
            let padding = "x".repeat((number % 13) as usize);
            format!("{number:x}{padding}\n")
        })
        .collect()
}

/// `count` different keys of 8 bytes.
pub(crate) fn integers(stream: u64, count: u64) -> Vec<u8> {
    (0..count).flat_map(|i| number(stream, i).to_le_bytes()).collect()
}

/// Length of the header, from its own field.
pub(crate) fn header(file: &[u8]) -> usize {
    u16::from_le_bytes([file[64], file[65]]).into()
}

/// Asserts that every field of `report` equals the field of `info`.
#[track_caller]
pub(crate) fn agree(report: &Value, info: &Value) {
    for (name, value) in report.as_object().unwrap() {
        assert_eq!(value, &info[name], "{name}");
    }
}

/// File written by the library after inserting the lines one by one.
pub(crate) fn expected<K: AsRef<[u8]>>(
    kind: &str,
    keys: &[K],
    fpr: f64,
) -> Vec<u8> {
    expected_in("lines", kind, keys, fpr)
}

/// File written by the library after inserting keys of a format.
pub(crate) fn expected_in<K: AsRef<[u8]>>(
    format: &str,
    kind: &str,
    keys: &[K],
    fpr: f64,
) -> Vec<u8> {
    macro_rules! build {
        ($kind:ident) => {{
            let items = keys.len() as u64;
            let builder = $kind::builder().items(items).fpr(fpr);
            AnyFilter::$kind(builder.build().unwrap())
        }};
    }
    let mut filter = match kind {
        "bloom" => build!(Bloom),
        "blocked" => build!(Blocked),
        "split" => build!(Split),
        "tinyset" => build!(TinySet),
        other => panic!("no kind {other}"),
    };
    for key in keys {
        filter.insert(key.as_ref());
    }
    filter.set_metadata("key-format", format).unwrap();
    filter.to_bytes()
}
