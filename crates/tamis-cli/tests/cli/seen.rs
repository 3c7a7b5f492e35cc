//! seen.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{ProgramRun, TestDir, lines, number};

/// Rate at which none of the keys of a test is lost.
const NO_LOSS: &str = "--items 50000 --fpr 1e-9";

/// `count` keys, of which about 2 in 5 are the first of their kind.
fn stream(stream: u64, count: u64) -> String {
    let mut out = String::new();
    for i in 0..count {
        let key = number(stream, i) % (count / 2);
        writeln!(out, "key {key}").unwrap();
    }
    out
}

/// First line of every kind, in order.
fn first_lines(text: &str) -> String {
    let mut seen = HashSet::new();
    text.lines()
        .filter(|line| seen.insert(*line))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Counts of `tamis: K keys: N new, R repeats, about L lost`.
#[track_caller]
fn summary(run: &ProgramRun) -> [u64; 3] {
    let message = run.message();
    let words: Vec<&str> = message.split_whitespace().collect();
    let number = |i: usize| words[i].replace(',', "").parse().unwrap();
    assert_eq!([words[2], words[4]], ["keys:", "new,"], "{message}");
    assert_eq!([words[6], words[9]], ["repeats,", "lost"], "{message}");
    [number(1), number(3), number(5)]
}

#[test]
fn every_new_line_is_printed_once_and_remembered() {
    let dir = TestDir::new();
    let text = stream(1, 30_000);
    let unique = first_lines(&text);
    dir.write("keys", &text);
    let run = dir.run(&format!("seen f {NO_LOSS} keys"));
    assert!(run.status(0).text() == unique);
    let new = unique.lines().count() as u64;
    assert_eq!(summary(&run), [30_000, new, 30_000 - new]);
    assert_eq!(dir.info("f")["items"], new);
    assert_eq!(dir.info("f")["over_design"], false);
    dir.run("verify f").success();

    // A second run: only keys that the first one had not seen.
    let more = stream(2, 40_000);
    let all = first_lines(&format!("{text}{more}"));
    let run = dir.feed("seen f", more.as_bytes());
    assert!(run.status(0).text() == &all[unique.len()..]);
    let run = dir.feed("seen f", more.as_bytes());
    assert_eq!(run.status(1).text(), "");
    assert_eq!(summary(&run), [40_000, 0, 40_000]);
}

#[test]
fn options_select_count_and_silence() {
    let dir = TestDir::new();
    let text = "b\na\nb\nc\na\nb";
    let run = |options: &str| {
        let _ = std::fs::remove_file(dir.path("f"));
        let run =
            dir.feed(&format!("seen f --items 9 {options}"), text.as_bytes());
        run.status(0);
        (run.text().to_owned(), run.err)
    };
    assert_eq!(run("").0, "b\na\nc\n");
    assert_eq!(run("-v").0, "b\na\nb\n");
    assert_eq!(run("-c").0, "3\n");
    assert_eq!(run("-v -c").0, "3\n");
    assert_eq!(run("-q"), (String::new(), String::new()));
    let (json, err) = run("--json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!([&json["keys"], &json["new"], &json["repeats"]], [6, 3, 3]);
    assert!(json["expected_lost"].as_f64().unwrap() < 0.1, "{json}");
    assert_eq!(err, "");
    // The exit status tests and sets, like that of `mkdir`.
    dir.run("seen f -q -k d").success();
    dir.run("seen f -q -k d").no_match();
    dir.run("seen f -q -v -k d").success();
    dir.run("seen f -q -v -k e").no_match();
    dir.run("query f -q -k e").success();
}

#[test]
fn other_formats_of_keys_are_printed_as_they_were_written() {
    let dir = TestDir::new();
    let nul = "seen n --items 9 --key-format nul -q";
    dir.feed(nul, b"a\nb\0c\0").success();
    let run = dir.feed("seen n --key-format nul", b"c\0a\nb\0x\0c");
    assert_eq!(run.status(0).text(), "x\0");
    let run = dir.feed("seen h --items 9 --key-format hex", b"ab\nAB\r\nCD\n");
    assert_eq!(run.status(0).text(), "ab\nCD\n");
    dir.write("f.gz", [0x1f, 0x8b]);
    dir.run("seen n f.gz").refused();
}

#[test]
fn windows_forget_old_keys_and_survive_a_restart() {
    let dir = TestDir::new();
    let keys = lines(1, 10_000);
    let last = |n: usize| {
        let all: Vec<&str> = keys.lines().collect();
        all[all.len() - n..].join("\n")
    };
    // In two runs, which must not differ from one.
    let (first, second) = keys.split_at(lines(1, 3_700).len());
    let options = "seen w --window 1000 --fpr 1e-6 -q";
    dir.feed(options, first.as_bytes()).success();
    dir.feed(options, second.as_bytes()).success();
    dir.feed("seen one --window 1000 --fpr 1e-6 -q", keys.as_bytes())
        .success();
    assert!(dir.read("w") == dir.read("one"));

    let before = dir.read("w");
    let run = dir.feed("seen w", last(1000).as_bytes());
    assert_eq!(summary(run.status(1)), [1000, 0, 1000]);
    dir.write("w", before);
    let run = dir.feed("seen w -c", keys.as_bytes());
    let [_, new, repeats] = summary(run.status(0));
    assert_eq!(run.text().trim_end(), new.to_string());
    // All keys are forgotten before they come again.
    assert!(repeats < 10, "{run:?}");
}

#[test]
fn files_that_do_not_fit_the_options_are_refused() {
    let dir = TestDir::new();
    let message = dir.refused("seen f -k a");
    assert!(message.contains("--items"), "{message}");
    dir.refused("seen missing/f --items 9 -k a");
    dir.refused("seen f --items 9 missing");
    dir.refused("seen f --window 0 -k a");
    dir.run("seen f --items 9 -q -k a").success();
    let message = dir.refused("seen f --window 9 -k a");
    assert!(message.contains("keeps all keys"), "{message}");
    dir.run("seen w --window 9 -q -k a").success();
    let message = dir.refused("seen w --window 8 -k a");
    assert!(message.contains("last 9 keys"), "{message}");
    dir.write("keys", "a\n");
    dir.refused("seen keys -k a");
    let mut bytes = dir.read("w");
    let middle = bytes.len() / 4;
    bytes[middle] ^= 1;
    dir.write("w", bytes);
    dir.refused("seen w -k a");
    for interval in ["0", "0s", "-1", "1.5", "xs", "s", "infs", "1m"] {
        let run = dir.run(&format!("seen f --save-every={interval} -k b"));
        run.status(2);
        assert!(run.out.is_empty(), "{run:?}");
    }
}

/// A run that is killed has saved what `--save-every` promised.
#[test]
fn killed_runs_lose_no_key() {
    let dir = TestDir::new();
    for interval in ["100", "0.000001s"] {
        let mut child = dir
            .command(&format!("seen f --items 999 --save-every {interval}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut answer = |keys: &str| {
            stdin.write_all(keys.as_bytes()).unwrap();
            let mut line = String::new();
            for _ in keys.lines() {
                out.read_line(&mut line).unwrap();
            }
            assert_eq!(line, keys);
        };
        let (first, second) = (lines(1, 100), lines(2, 5));
        answer(&first);
        // Answers to these keys come after the first ones were saved.
        answer(&second);
        child.kill().unwrap();
        child.wait().unwrap();
        let run = dir.feed("seen f", first.as_bytes());
        assert_eq!(run.status(1).text(), "", "{interval}");
        let run = dir.feed("seen f", second.as_bytes());
        if interval == "100" {
            assert_eq!(run.status(0).text(), second);
        }
        std::fs::remove_file(dir.path("f")).unwrap();
    }
}

/// Keys printed into a closed pipe are not saved: the next run prints them.
#[test]
fn closed_stdout_saves_nothing() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 5_000));
    let mut child = dir
        .command("seen f --items 5000 keys")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(dir.info("f")["items"], 0);
}

/// Losses of new keys, measured where there are no repeats, against the
/// number that is printed. Their standard deviation is that of a Poisson
/// variable, since the filters are fixed by the keys.
#[test]
fn expected_losses_are_those_measured() {
    let dir = TestDir::new();
    for (name, options, count) in [
        ("tinyset", "--items 40000 --fpr 3%", 40_000),
        ("low", "--items 200000 --fpr 0.3%", 200_000),
        ("blocked", "--items 40000 --fpr 10%", 40_000),
        ("full", "--items 20000 --fpr 1%", 40_000),
        ("window", "--window 7000 --fpr 2%", 40_000),
    ] {
        let keys = lines(7, count);
        let run = dir
            .feed(&format!("seen {name} {options} --json"), keys.as_bytes());
        let json: Value = serde_json::from_slice(&run.status(0).out).unwrap();
        let expected = json["expected_lost"].as_f64().unwrap();
        let lost = json["repeats"].as_f64().unwrap();
        let z = (lost - expected) / expected.sqrt();
        println!("{name}: lost {lost}, expected {expected:.1}, z {z:.2}");
        assert!(expected > 50.0 && z.abs() < 3.3, "{name}: {lost}, {json}");
        // A second run starts from the rate of the file.
        let keys = lines(8, 2_000);
        let run = dir.feed(&format!("seen {name} --json"), keys.as_bytes());
        let json: Value = serde_json::from_slice(&run.status(0).out).unwrap();
        let expected = json["expected_lost"].as_f64().unwrap();
        let lost = json["repeats"].as_f64().unwrap();
        let z = (lost - expected) / expected.max(1.0).sqrt();
        println!("{name}: lost {lost}, expected {expected:.1}, z {z:.2}");
        assert!(z.abs() < 3.3, "{name} again: {lost}, {json}");
    }
}

/// Processes that share a filter wait for each other: each key is new in one
/// of them.
#[test]
fn simultaneous_runs_print_each_key_once() {
    let dir = TestDir::new();
    let keys = lines(1, 2_000);
    for options in [NO_LOSS, "--window 5000 --fpr 1e-9"] {
        let runs: Vec<ProgramRun> = std::thread::scope(|scope| {
            let run =
                || dir.feed(&format!("seen f {options}"), keys.as_bytes());
            let runs: Vec<_> = (0..6).map(|_| scope.spawn(run)).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        let all: String = runs.iter().map(ProgramRun::text).collect();
        assert!(all == keys, "{}", all.lines().count());
        assert_eq!(dir.files().len(), 1, "{:?}", dir.files());
        std::fs::remove_file(dir.path("f")).unwrap();
    }
}
