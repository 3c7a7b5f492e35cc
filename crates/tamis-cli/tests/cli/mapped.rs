//! Filters that other programs change while they are used.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};

use crate::support::{KINDS, ProgramRun, TestDir, header, lines};

const KEYS: u64 = 20_000;

/// A `query` that waits for more keys.
struct Query {
    child: Child,
    stdin: ChildStdin,
    out: BufReader<ChildStdout>,
    err: ChildStderr,
}

impl Query {
    fn start(dir: &TestDir, options: &str) -> Self {
        let mut command = dir.command(&format!("query f - {options}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = child.stderr.take().unwrap();
        let mut query = Self { child, stdin, out, err };
        let first = lines(1, 1);
        query.stdin.write_all(first.as_bytes()).unwrap();
        let mut line = String::new();
        query.out.read_line(&mut line).unwrap();
        assert_eq!(line, first);
        query
    }

    /// Sends all keys; returns the status, the further lines printed, and
    /// the messages.
    fn finish(self) -> (Option<i32>, String, String) {
        let Self { mut child, mut stdin, mut out, mut err } = self;
        let writer = std::thread::spawn(move || {
            // The program may stop reading early.
            let _ = stdin.write_all(lines(1, KEYS).as_bytes());
        });
        let (mut printed, mut messages) = (String::new(), String::new());
        out.read_to_string(&mut printed).unwrap();
        err.read_to_string(&mut messages).unwrap();
        writer.join().unwrap();
        (child.wait().unwrap().code(), printed, messages)
    }
}

fn build(dir: &TestDir, kind: &str, name: &str) {
    dir.write("keys", lines(1, KEYS));
    dir.run(&format!("build keys -o {name} --fpr 1e-4 --kind {kind}"))
        .success();
}

/// Changes of the file `f` by other programs: shorter, empty, and bytes of
/// another filter in the same file, as `cp` writes them.
fn change(dir: &TestDir, number: usize) {
    let path = dir.path("f");
    match number {
        0 => File::options().write(true).open(path).unwrap().set_len(4096),
        1 => File::create(path).map(|_| ()),
        _ => {
            let other = fs::read(dir.path("other")).unwrap();
            File::create(path).unwrap().write_all(&other)
        }
    }
    .unwrap();
}

/// Without a copy the first case would end the program by a signal, and the
/// last one would print no key.
#[test]
fn queries_of_a_copy_ignore_changes_of_the_file() {
    let dir = TestDir::new();
    dir.run("build -k a -o other --items 20000 --fpr 1e-4").success();
    for (i, kind) in KINDS.into_iter().chain(["balanced"]).enumerate() {
        build(&dir, kind, "f");
        let query = Query::start(&dir, "--no-mmap");
        change(&dir, i % 3);
        let (status, printed, messages) = query.finish();
        assert_eq!((status, &messages[..]), (Some(0), ""), "{kind}");
        assert!(printed == lines(1, KEYS), "{kind}");
        fs::remove_file(dir.path("f")).unwrap();
    }
}

/// A change during a lookup is a signal; these precede it.
#[test]
fn queries_of_a_changed_map_are_an_error_without_answers() {
    let dir = TestDir::new();
    dir.run("build -k a -o other --items 20000 --fpr 1e-4").success();
    for number in 0..3 {
        build(&dir, "tinyset", "f");
        let query = Query::start(&dir, "");
        change(&dir, number);
        let (status, printed, messages) = query.finish();
        assert_eq!((status, &printed[..]), (Some(2), ""), "{number}");
        let message = "tamis: f: another program changed the filter";
        assert!(messages.starts_with(message), "{number}: {messages}");
        fs::remove_file(dir.path("f")).unwrap();
    }
}

/// tamis replaces a file, and waits for its maps before it changes it.
#[test]
fn queries_ignore_changes_by_tamis() {
    let dir = TestDir::new();
    build(&dir, "tinyset", "f");
    for options in ["", "--no-mmap"] {
        let query = Query::start(&dir, options);
        let in_place = dir.run("add f --in-place -k b --wait 0");
        match options {
            "" => _ = in_place.refused(),
            _ => _ = in_place.success(),
        }
        dir.run("add f -k a").done();
        dir.run("build keys -o f --force --fpr 0.01 --kind bloom").success();
        let (status, printed, messages) = query.finish();
        assert_eq!((status, &messages[..]), (Some(0), ""), "{options}");
        assert!(printed == lines(1, KEYS), "{options}");
        fs::remove_file(dir.path("f")).unwrap();
        build(&dir, "tinyset", "f");
    }
}

#[test]
fn all_readers_take_copies() {
    let dir = TestDir::new();
    build(&dir, "tinyset", "f");
    build(&dir, "tinyset", "g");
    dir.feed("seen w --window 100 -c", b"a\n").status(0);
    for verb in ["info f w", "verify f w"] {
        let mapped = dir.run(verb).success().text().to_owned();
        let copied = dir.run(&format!("{verb} --no-mmap"));
        assert_eq!(copied.success().text(), mapped);
    }
    dir.run("merge f g -o m --no-mmap").done();
    dir.run("fold f -o h --no-mmap").done();
    for (filter, by) in [("m", "merge f g -o n"), ("h", "fold f -o n")] {
        dir.run(&format!("{by} --force")).done();
        assert!(dir.read(filter) == dir.read("n"));
    }
    let message = dir.refused("query w -k a --no-mmap");
    assert!(message.contains("a window of recent keys"), "{message}");
    let mut damaged = dir.read("f");
    // A block.
    let block = header(&damaged) + 5;
    damaged[block] ^= 1;
    dir.write("f", damaged);
    // A copy is verified; a map is not.
    dir.run("query f -q keys").success();
    let message = dir.refused("query f -q keys --no-mmap");
    assert!(message.contains("damaged"), "{message}");
    let mut command = dir.command("verify f --no-mmap");
    ProgramRun::new(&mut command, None).status(1).message();
}
