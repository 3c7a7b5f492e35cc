//! A directory to work in, a way to run the program there, and what every
//! run must look like.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tamis::{AnyFilter, Blocked, Bloom, Insert, Persist, Split, TinySet};

pub(crate) const KINDS: [&str; 4] = ["bloom", "blocked", "split", "tinyset"];

/// Those whose bits are the same whatever the order of the keys.
pub(crate) const BLOOM_KINDS: [&str; 3] = ["bloom", "blocked", "split"];

/// A directory that disappears with the test. The program runs inside it,
/// so files go by bare names, and keeps its temporary files there too, so
/// that anything left behind is seen.
pub(crate) struct Lab(tempfile::TempDir);

impl Lab {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
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

    /// The program, about to run here; `arguments` are cut at spaces.
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
            // A panic must not hide behind a quiet setting.
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &str) -> Run {
        Run::of(&mut self.command(arguments), None)
    }

    /// Runs with `input` on standard input.
    pub(crate) fn feed(&self, arguments: &str, input: &[u8]) -> Run {
        Run::of(&mut self.command(arguments), Some(input))
    }

    /// Runs something that must fail, and must change nothing here.
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

    /// How many of the keys in a file are selected by `query -c`.
    pub(crate) fn count(&self, arguments: &str) -> u64 {
        let run = self.run(&format!("query -c {arguments}"));
        let count: u64 = run.text().trim_end().parse().unwrap();
        run.status(i32::from(count == 0));
        count
    }
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Run {
    what: String,
    code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn of(command: &mut Command, input: Option<&[u8]>) -> Self {
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
                    // The program may stop reading early, and may.
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

    /// Done, without a word of complaint.
    #[track_caller]
    pub(crate) fn done(&self) -> &Self {
        assert_eq!(self.err, "", "{}", self.what);
        self.status(0)
    }

    /// Status 1 (nothing selected), without a word of complaint.
    #[track_caller]
    pub(crate) fn nothing(&self) -> &Self {
        assert_eq!(self.err, "", "{}", self.what);
        self.status(1)
    }

    /// Status 2, one line of message and no output; the message.
    #[track_caller]
    pub(crate) fn refused(&self) -> String {
        self.status(2);
        assert!(self.out.is_empty(), "{self:?}");
        self.one_line()
    }

    /// The message, which is exactly one line.
    #[track_caller]
    pub(crate) fn one_line(&self) -> String {
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

/// Distinct numbers from a seed: SplitMix64 is a bijection, so different
/// streams never share one.
pub(crate) fn number(stream: u64, i: u64) -> u64 {
    let mut z = (stream << 48 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `count` different keys, one a line, of different lengths.
pub(crate) fn lines(stream: u64, count: u64) -> String {
    (0..count)
        .map(|i| {
            let number = number(stream, i);
            let padding = "x".repeat((number % 13) as usize);
            format!("{number:x}{padding}\n")
        })
        .collect()
}

/// `count` different keys of eight bytes.
pub(crate) fn integers(stream: u64, count: u64) -> Vec<u8> {
    (0..count).flat_map(|i| number(stream, i).to_le_bytes()).collect()
}

/// The length of a file's header, as the file says.
pub(crate) fn header(file: &[u8]) -> usize {
    u16::from_le_bytes([file[64], file[65]]).into()
}

/// Every field that a verb reports is the one that `info` shows.
#[track_caller]
pub(crate) fn agree(report: &Value, info: &Value) {
    for (name, value) in report.as_object().unwrap() {
        assert_eq!(value, &info[name], "{name}");
    }
}

/// The file the library makes of these keys, one inserted after the other.
pub(crate) fn expected<K: AsRef<[u8]>>(
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
    filter.to_bytes()
}
