//! Arguments that make no sense.

use crate::support::{KINDS, Lab, Run};

/// Status 2, a message, no output, no file.
#[track_caller]
fn nonsense(lab: &Lab, arguments: &str) {
    let before = lab.files();
    let run = lab.run(arguments);
    run.status(2);
    assert!(run.out.is_empty(), "{run:?}");
    assert!(!run.err.trim().is_empty(), "{run:?}");
    assert_eq!(lab.files(), before, "{run:?}");
}

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("keys", "apple\npear\n");
    lab.run("build keys -o good --fpr 0.01").done();
    lab
}

#[test]
fn sizes_that_are_none() {
    let lab = lab();
    let rates = [
        "0", "1", "nan", "NaN", "-1", "=-1", "=-0.5", "inf", "1.5", "100%",
        "0%", "=", "x", "1e-300", "1e-16",
    ];
    for rate in rates {
        let rate = if rate.starts_with('=') {
            format!("--fpr{rate}")
        } else {
            format!("--fpr {rate}")
        };
        for kind in KINDS {
            nonsense(&lab, &format!("build keys -o new --kind {kind} {rate}"));
        }
        nonsense(&lab, &format!("plan --items 1000 {rate}"));
    }
    let memory =
        ["0", "=0", "inf", "nan", "-1", "=-1", "x", "1e9", "1e-9", "="];
    for bits in memory {
        let bits = if bits.starts_with('=') {
            format!("--bits-per-key{bits}")
        } else {
            format!("--bits-per-key {bits}")
        };
        nonsense(&lab, &format!("build keys -o new {bits}"));
        nonsense(&lab, &format!("plan --items 1000 {bits}"));
    }
    for size in ["", "--fpr 0.01 --bits-per-key 10"] {
        nonsense(&lab, &format!("build keys -o new {size}"));
        nonsense(&lab, &format!("plan --items 1000 {size}"));
    }
    for items in ["-1", "=-1", "1.5", "x", "nan", "1e30", "=", "2e-1"] {
        let items = if items.starts_with('=') {
            format!("--items{items}")
        } else {
            format!("--items {items}")
        };
        nonsense(&lab, &format!("build keys -o new --fpr 0.01 {items}"));
        nonsense(&lab, &format!("plan --fpr 0.01 {items}"));
    }
    nonsense(&lab, "plan --fpr 0.01");
    for share in ["2", "=-1", "nan", "x"] {
        let share = share.trim_start_matches('=');
        nonsense(
            &lab,
            &format!("plan --items 9 --fpr 0.01 --miss-share={share}"),
        );
    }
}

/// More memory than any machine has is refused, in words.
#[test]
fn sizes_beyond_memory() {
    let lab = lab();
    for items in ["1e15", "9e15", "18446744073709551615"] {
        for kind in KINDS {
            let message = lab.refused(&format!(
                "build keys -o new --fpr 0.01 --items {items} --kind {kind}"
            ));
            assert!(message.contains("cannot allocate"), "{message}");
        }
    }
    // To plan for it costs nothing.
    lab.run("plan --items 18446744073709551615 --fpr 0.01 --json").json();
}

#[test]
fn settings_that_do_not_exist() {
    let lab = lab();
    for setting in [
        "--kind quotient-of-nothing",
        "--kind=",
        "--kind Blocked",
        "--block-bits 100",
        "--block-bits 0",
        "--block-bits 1024",
        "--block-bits=-512",
        "--block-bits x",
        "--block-bytes 512",
        "--block-bytes 0",
        "--block-bytes 64 --block-bits 512",
        "--prefer size",
        "--prefer speed --kind blocked",
        "--kind tinyset --levels 0",
        "--kind tinyset --levels 3",
        "--kind tinyset --levels x",
        "--kind tinyset --levels 2 --removable",
        "--hash md5",
        "--hash=",
        "--seed x",
        "--seed=-1",
        "--seed 0x",
        "--seed 0xg",
        // 2^64 and 2^128.
        "--seed 18446744073709551616",
        "--seed 0x10000000000000000",
        "--hash siphash --seed 0x100000000000000000000000000000000",
        "--threads 0",
        "--threads=-1",
        "--threads x",
        "--key-format utf16",
        "--no-such-option",
        "--key apple",
        "--fpr 0.02",
    ] {
        nonsense(&lab, &format!("build keys -o new --fpr 0.01 {setting}"));
    }
    // The widest seeds that fit are taken.
    let wide = "--seed 0xffffffffffffffff";
    lab.run(&format!("build keys -o wide --fpr 0.01 {wide}")).done();
    let wide = "--hash siphash --seed 0xffffffffffffffffffffffffffffffff";
    lab.run(&format!("build keys -o wider --fpr 0.01 {wide}")).done();
}

#[test]
fn commands_that_say_too_little_or_too_much() {
    let lab = lab();
    for arguments in [
        "",
        "frobnicate",
        "build",
        "build keys",
        "build keys --fpr 0.01",
        "build keys -o new",
        "query",
        "query -q -c good keys",
        "query --json -c good keys",
        "query --json -q good keys",
        "query good keys -k apple",
        "query good - -",
        "add",
        "add good keys -k apple",
        "remove",
        "remove good keys -k apple",
        "merge -o new",
        "merge good",
        "fold good",
        "fold -o new",
        "grow",
        "grow -o new",
        "grow good --force",
        "info",
        "info good good",
        "verify",
    ] {
        nonsense(&lab, arguments);
    }
}

#[test]
fn keys_that_their_format_cannot_hold() {
    let lab = lab();
    for arguments in [
        ["--key", "two\nlines", "--key-format", "lines"],
        ["--key", "fa\nde", "--key-format", "hex"],
        ["--key", "fad", "--key-format", "hex"],
        ["--key", "apple", "--key-format", "u64le"],
        ["--key", "18446744073709551616", "--key-format", "u64le"],
        ["--key=-1", "--key-format", "u64le", "--force"],
    ] {
        let all = ["build", "-o", "new", "--fpr", "0.01"];
        let all = all.into_iter().chain(arguments);
        Run::of(&mut lab.command_with(all), None).refused();
    }
}
