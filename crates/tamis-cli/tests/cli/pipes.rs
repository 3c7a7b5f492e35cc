//! Closed pipes, slow input, full disks.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{ProgramRun, TestDir, lines};

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 100_000));
    dir.run("build keys -o f --fpr 0.01").success();
    dir
}

/// Exit status and messages; panics after 20 seconds.
fn end(mut child: Child) -> (Option<i32>, String) {
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("still running");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (status.code(), err)
}

/// `tamis query f keys | head -1`.
#[test]
fn closed_stdout_after_the_first_line_is_no_error() {
    let dir = dir();
    let mut child = dir
        .command("query f keys")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    drop(out);
    assert_eq!(Some(first.trim_end()), lines(1, 1).lines().next());
    assert_eq!(end(child), (Some(0), String::new()));
}

/// The pipe is closed before the input is written.
#[test]
fn closed_stdout_before_the_first_byte_is_no_error() {
    let dir = dir();
    for arguments in ["query f", "query -c f", "query --json f"] {
        let mut child = dir
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().unwrap();
        let key = lines(1, 1);
        stdin.write_all(key.as_bytes()).unwrap();
        drop(stdin);
        let (status, err) = end(child);
        assert_eq!((status, &err[..]), (Some(0), ""), "{arguments}");
    }
}

#[test]
fn quiet_stops_at_the_first_member() {
    let dir = dir();
    let mut child = dir
        .command("query -q f")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The pipe stays open: waiting for its end would not return.
    let _ = stdin.write_all(&dir.read("keys"));
    assert_eq!(end(child), (Some(0), String::new()));
    drop(stdin);
}

/// Opening a pipe as a filter must not wait for a writer.
#[cfg(unix)]
#[test]
fn pipe_as_a_filter_is_refused_immediately() {
    let dir = TestDir::new();
    let made =
        std::process::Command::new("mkfifo").arg(dir.path("pipe")).status();
    assert!(made.unwrap().success());
    for verb in
        ["info", "verify", "query -k a", "add -k a", "remove -k a", "grow"]
    {
        let child = dir
            .command(&format!("{verb} pipe"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (status, err) = end(child);
        assert_eq!(status, Some(2), "{verb}: {err}");
        assert!(err.contains("not a regular file"), "{verb}: {err}");
    }
}

/// Reading the keys may take hours.
#[test]
fn invalid_arguments_are_refused_before_keys_are_read() {
    let dir = dir();
    for arguments in [
        "build -o f --fpr 0.01",
        "build -o new --fpr 1e-16",
        "build -o new --fpr 0.01 --block-bits 100",
        "build -o . --fpr 0.01",
        "build - missing -o new --fpr 0.01",
        "query missing",
        "add missing",
        "add keys",
        "remove missing",
        "remove keys",
        "remove f",
    ] {
        let mut child = dir
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let (status, err) = end(child);
        assert_eq!(status, Some(2), "{arguments}: {err}");
        assert_eq!(err.lines().count(), 1, "{arguments}: {err}");
        // Open until here: the input never ended.
        drop(stdin);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_an_error() {
    let dir = dir();
    for arguments in [
        "query f keys",
        "query -c f keys",
        "query --json f keys",
        "info f",
        "info --json f",
        "verify f",
        "plan --items 9 --fpr 0.01",
        "plan --items 9 --fpr 0.01 --json",
    ] {
        let full =
            std::fs::File::options().write(true).open("/dev/full").unwrap();
        let child = dir
            .command(arguments)
            .stdout(Stdio::from(full))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (status, err) = end(child);
        assert_eq!(status, Some(2), "{arguments}: {err}");
        assert_eq!(err.lines().count(), 1, "{arguments}: {err}");
    }
}

#[test]
fn progress_is_not_drawn_into_a_pipe() {
    let dir = dir();
    dir.write("large", lines(2, 600_000));
    let mut command = dir.command("build large -o g --fpr 0.01 --threads 1");
    command.env("TERM", "xterm-256color");
    let run = ProgramRun::new(&mut command, None);
    assert!(!run.success().text().contains('\x1b'), "{run:?}");
}
