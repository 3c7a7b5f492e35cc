//! Readers who leave, disks that are full.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Lab, Run, lines};

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("keys", lines(1, 100_000));
    lab.run("build keys -o f --fpr 0.01").done();
    lab
}

/// Exit status and messages, or a panic if it does not end.
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

/// As in `tamis query f keys | head -1`.
#[test]
fn a_reader_may_leave_early() {
    let lab = lab();
    let mut child = lab
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

/// The reader is gone before the first byte: the input comes after that.
#[test]
fn a_reader_may_never_have_been() {
    let lab = lab();
    for arguments in ["query f", "query -c f", "query --json f"] {
        let mut child = lab
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

/// `-q` answers at the first member and does not wait for the rest.
#[test]
fn quiet_stops_at_the_first_member() {
    let lab = lab();
    let mut child = lab
        .command("query -q f")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Not ended: whoever waits for the end waits for ever.
    let _ = stdin.write_all(&lab.read("keys"));
    assert_eq!(end(child), (Some(0), String::new()));
    drop(stdin);
}

/// A pipe is no filter, and asking must not wait for someone to write to it.
#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_filter_is_refused_at_once() {
    let lab = Lab::new();
    let made =
        std::process::Command::new("mkfifo").arg(lab.path("pipe")).status();
    assert!(made.unwrap().success());
    for verb in
        ["info", "verify", "query -k a", "add -k a", "remove -k a", "grow"]
    {
        let child = lab
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

/// What can be refused before the keys are read is: they may take hours.
#[test]
fn refusals_do_not_wait_for_the_keys() {
    let lab = lab();
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
        let mut child = lab
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
        // Open until here: there never was an end of the input.
        drop(stdin);
    }
}

/// A full disk is an error, and is told.
#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let lab = lab();
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
        let child = lab
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

/// Progress is for terminals: nothing but messages goes to a pipe.
#[test]
fn nothing_is_drawn_into_a_pipe() {
    let lab = lab();
    lab.write("large", lines(2, 600_000));
    let mut command = lab.command("build large -o g --fpr 0.01 --threads 1");
    command.env("TERM", "xterm-256color");
    let run = Run::of(&mut command, None);
    assert!(!run.done().text().contains('\x1b'), "{run:?}");
}
