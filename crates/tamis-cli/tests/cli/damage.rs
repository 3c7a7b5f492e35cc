//! Damaged filters and other files.

use crate::support::{KINDS, ProgramRun, TestDir, header, lines};

fn verify(dir: &TestDir) -> ProgramRun {
    let run = dir.run("verify bad");
    assert!(run.out.is_empty(), "{run:?}");
    run
}

/// Asserts that every verb refuses `bad`; returns the messages.
fn refused_by_all(dir: &TestDir) -> Vec<String> {
    [
        "query bad keys",
        "query -c bad keys",
        "query -v --json bad keys",
        "info bad",
        "info --json bad",
        "add bad keys",
        "remove bad keys",
        "merge bad good -o out",
        "merge good bad -o out",
        "fold bad -o out",
        "grow bad",
        "grow bad -o out",
    ]
    .map(|command| dir.refused(command))
    .into()
}

fn dir(kind: &str) -> TestDir {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 2_000));
    dir.run(&format!("build keys -o good --fpr 0.01 --kind {kind}")).success();
    dir
}

#[test]
fn damaged_payload_is_found_and_never_copied() {
    for kind in KINDS {
        let dir = dir(kind);
        let good = dir.read("good");
        let header = header(&good);
        // The metadata is the last section, shorter than 64 bytes.
        let end = (good.len() - 1) / 64 * 64;
        for at in [header, header + end / 2, end - 1] {
            let at = at.min(end - 1);
            for mask in [1, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= mask;
                dir.write("bad", &bytes);
                let message = verify(&dir).status(1).message();
                assert!(message.contains("bad: checksum"), "{message}");
                for command in [
                    "add bad keys",
                    "remove bad keys",
                    "merge bad good -o out",
                    "merge good bad -o out",
                    "fold bad -o out",
                    "grow bad",
                ] {
                    let message = dir.refused(command);
                    assert!(message.contains("bad: checksum"), "{message}");
                }
                // `query` and `info` open in constant time without
                // verifying: results may be wrong, without a crash.
                assert_eq!(dir.run("query -c bad keys").status(0).err, "");
                dir.run("info --json bad").json();
            }
        }
        // The key format decides the answers: it is verified by every verb
        // that reads keys.
        let mut bytes = good.clone();
        *bytes.last_mut().unwrap() ^= 1;
        dir.write("bad", &bytes);
        for command in ["query -c bad keys", "add bad keys"] {
            let message = dir.refused(command);
            assert!(message.contains("bad: checksum of the"), "{message}");
        }
        let info = dir.info("bad");
        assert_eq!(info["metadata"], serde_json::Value::Null);
    }
}

#[test]
fn damaged_header_is_found_by_every_verb() {
    for kind in KINDS {
        let dir = dir(kind);
        let good = dir.read("good");
        // Offsets in every field: magic, version, kind, hash, flags, seed,
        // lengths, counts, rate, geometry, section table, checksum.
        let header = header(&good);
        for at in (0..header).step_by(5).chain(header - 8..header) {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            dir.write("bad", &bytes);
            let message = verify(&dir).status(1).message();
            assert!(message.contains("bad:"), "{message}");
            let message = dir.refused("info bad");
            assert!(message.contains("bad:"), "{message}");
            dir.refused("add bad keys");
        }
        let mut bytes = good;
        bytes[40] ^= 1;
        dir.write("bad", &bytes);
        for message in refused_by_all(&dir) {
            assert!(message.contains("bad: checksum"), "{message}");
        }
    }
}

#[test]
fn truncated_and_extended_files_are_refused() {
    let dir = dir("blocked");
    let good = dir.read("good");
    let len = good.len();
    for cut in [0, 1, 7, 8, 63, 80, 127, 128, 129, len / 2, len - 1] {
        dir.write("bad", &good[..cut]);
        verify(&dir).status(1).message();
        refused_by_all(&dir);
    }
    for more in [1, 64, 4096] {
        let mut bytes = good.clone();
        bytes.resize(len + more, 0);
        dir.write("bad", &bytes);
        verify(&dir).status(1).message();
        for message in refused_by_all(&dir) {
            assert!(message.contains(&format!("{len}")), "{message}");
        }
    }
}

#[test]
fn other_files_are_refused() {
    let dir = dir("split");
    for other in ["", "word", "a text file\n", &"text\n".repeat(1000)] {
        dir.write("bad", other);
        verify(&dir).status(1).message();
        for message in refused_by_all(&dir) {
            let expected = message.contains("not a tamis file")
                || other.len() < 8 && message.contains("too short");
            assert!(expected, "{other:?}: {message}");
        }
    }
    dir.write("bad", [0; 1 << 16]);
    refused_by_all(&dir);
}

#[test]
fn unreadable_files_are_refused() {
    let dir = dir("bloom");
    // Missing file.
    for message in refused_by_all(&dir) {
        assert!(message.contains("bad: "), "{message}");
    }
    verify(&dir).refused();
    dir.refused("build missing -o out --fpr 0.01");
    dir.refused("query good missing");
    dir.refused("query good keys missing");
    // Directory.
    std::fs::create_dir(dir.path("bad")).unwrap();
    for message in refused_by_all(&dir) {
        assert!(message.contains("bad: not a regular file"), "{message}");
    }
    verify(&dir).refused();
    dir.refused("build bad -o out --fpr 0.01");
    dir.refused("query good bad");
    dir.refused("query -c good bad");
}

#[cfg(unix)]
#[test]
fn line_ends_in_paths_keep_messages_on_one_line() {
    let dir = TestDir::new();
    let mut command = dir.command_with(["info", "no\nsuch\nfile"]);
    ProgramRun::new(&mut command, None).refused();
    dir.write("two\nlines", "text");
    let mut command = dir.command_with(["verify", "two\nlines"]);
    ProgramRun::new(&mut command, None).status(1).message();
}

/// Control characters of a path are escaped in messages and output.
#[cfg(unix)]
#[test]
fn escape_sequences_in_paths_are_escaped() {
    let dir = TestDir::new();
    let name = "red\x1b[31m";
    let mut command = dir.command_with(["info", name]);
    let message = ProgramRun::new(&mut command, None).refused();
    assert!(message.contains(r"red\u{1b}[31m"), "{message}");
    dir.run("build -k a -o f --fpr 0.01").success();
    dir.write(name, dir.read("f"));
    let mut command = dir.command_with(["verify", name]);
    let run = ProgramRun::new(&mut command, None);
    assert!(run.success().text().starts_with(r"red\u{1b}[31m: "), "{run:?}");
}
