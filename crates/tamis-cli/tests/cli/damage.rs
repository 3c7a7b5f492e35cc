//! Files that are not, or no longer, filters.

use crate::support::{KINDS, Lab, Run, header, lines};

fn verify(lab: &Lab) -> Run {
    let run = lab.run("verify bad");
    assert!(run.out.is_empty(), "{run:?}");
    run
}

/// No verb makes a file or an answer out of `bad`; the messages.
fn refused_by_all(lab: &Lab) -> Vec<String> {
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
    .map(|command| lab.refused(command))
    .into()
}

fn lab(kind: &str) -> Lab {
    let lab = Lab::new();
    lab.write("keys", lines(1, 2_000));
    lab.run(&format!("build keys -o good --fpr 0.01 --kind {kind}")).done();
    lab
}

#[test]
fn a_damaged_payload_is_found_and_never_passed_on() {
    for kind in KINDS {
        let lab = lab(kind);
        let good = lab.read("good");
        let header = header(&good);
        for at in [header, header + good.len() / 2, good.len() - 1] {
            let at = at.min(good.len() - 1);
            for mask in [1, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= mask;
                lab.write("bad", &bytes);
                let message = verify(&lab).status(1).one_line();
                assert!(message.contains("bad: checksum"), "{message}");
                for command in [
                    "add bad keys",
                    "remove bad keys",
                    "merge bad good -o out",
                    "merge good bad -o out",
                    "fold bad -o out",
                    "grow bad",
                ] {
                    let message = lab.refused(command);
                    assert!(message.contains("bad: checksum"), "{message}");
                }
                // Opened in constant time, so answered: perhaps wrongly,
                // never with a crash.
                assert_eq!(lab.run("query -c bad keys").status(0).err, "");
                lab.run("info --json bad").json();
            }
        }
    }
}

#[test]
fn a_damaged_header_is_found_by_everyone() {
    for kind in KINDS {
        let lab = lab(kind);
        let good = lab.read("good");
        // Every field: magic, version, kind, hash, flags, seed, lengths,
        // counts, rate, geometry, section table, checksum.
        let header = header(&good);
        for at in (0..header).step_by(5).chain(header - 8..header) {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            lab.write("bad", &bytes);
            let message = verify(&lab).status(1).one_line();
            assert!(message.contains("bad:"), "{message}");
            let message = lab.refused("info bad");
            assert!(message.contains("bad:"), "{message}");
            lab.refused("add bad keys");
        }
        let mut bytes = good;
        bytes[40] ^= 1;
        lab.write("bad", &bytes);
        for message in refused_by_all(&lab) {
            assert!(message.contains("bad: checksum"), "{message}");
        }
    }
}

#[test]
fn cut_and_grown_files_are_refused() {
    let lab = lab("blocked");
    let good = lab.read("good");
    let len = good.len();
    for cut in [0, 1, 7, 8, 63, 80, 127, 128, 129, len / 2, len - 1] {
        lab.write("bad", &good[..cut]);
        verify(&lab).status(1).one_line();
        refused_by_all(&lab);
    }
    for more in [1, 64, 4096] {
        let mut bytes = good.clone();
        bytes.resize(len + more, 0);
        lab.write("bad", &bytes);
        verify(&lab).status(1).one_line();
        for message in refused_by_all(&lab) {
            assert!(message.contains(&format!("{len}")), "{message}");
        }
    }
}

#[test]
fn other_files_are_told_apart() {
    let lab = lab("split");
    for other in ["", "word", "a text file\n", &"text\n".repeat(1000)] {
        lab.write("bad", other);
        verify(&lab).status(1).one_line();
        for message in refused_by_all(&lab) {
            let fair = message.contains("not a tamis file")
                || other.len() < 8 && message.contains("too short");
            assert!(fair, "{other:?}: {message}");
        }
    }
    lab.write("bad", [0; 1 << 16]);
    refused_by_all(&lab);
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let lab = lab("bloom");
    // Missing.
    for message in refused_by_all(&lab) {
        assert!(message.contains("bad: "), "{message}");
    }
    verify(&lab).refused();
    lab.refused("build missing -o out --fpr 0.01");
    lab.refused("query good missing");
    lab.refused("query good keys missing");
    // A directory.
    std::fs::create_dir(lab.path("bad")).unwrap();
    for message in refused_by_all(&lab) {
        assert!(message.contains("bad: not a regular file"), "{message}");
    }
    verify(&lab).refused();
    lab.refused("build bad -o out --fpr 0.01");
    lab.refused("query good bad");
    lab.refused("query -c good bad");
}

/// A message stays one line whatever the file is called.
#[cfg(unix)]
#[test]
fn names_with_line_ends_keep_to_one_line() {
    let lab = Lab::new();
    let mut command = lab.command_with(["info", "no\nsuch\nfile"]);
    Run::of(&mut command, None).refused();
    lab.write("two\nlines", "text");
    let mut command = lab.command_with(["verify", "two\nlines"]);
    Run::of(&mut command, None).status(1).one_line();
}
