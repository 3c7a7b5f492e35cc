//! Invalid arguments.

use crate::support::{KINDS, ProgramRun, TestDir};

/// Asserts exit status 2, a message, no output and no new file.
#[track_caller]
fn assert_invalid(dir: &TestDir, arguments: &str) {
    let before = dir.files();
    let run = dir.run(arguments);
    run.status(2);
    assert!(run.out.is_empty(), "{run:?}");
    assert!(!run.err.trim().is_empty(), "{run:?}");
    assert_eq!(dir.files(), before, "{run:?}");
}

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("keys", "apple\npear\n");
    dir.run("build keys -o good --fpr 0.01").success();
    dir
}

#[test]
fn invalid_sizes_are_refused() {
    let dir = dir();
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
            assert_invalid(
                &dir,
                &format!("build keys -o new --kind {kind} {rate}"),
            );
        }
        assert_invalid(&dir, &format!("plan --items 1000 {rate}"));
    }
    let memory =
        ["0", "=0", "inf", "nan", "-1", "=-1", "x", "1e9", "1e-9", "="];
    for bits in memory {
        let bits = if bits.starts_with('=') {
            format!("--bits-per-key{bits}")
        } else {
            format!("--bits-per-key {bits}")
        };
        assert_invalid(&dir, &format!("build keys -o new {bits}"));
        assert_invalid(&dir, &format!("plan --items 1000 {bits}"));
    }
    for size in ["", "--fpr 0.01 --bits-per-key 10"] {
        assert_invalid(&dir, &format!("build keys -o new {size}"));
        assert_invalid(&dir, &format!("plan --items 1000 {size}"));
    }
    for items in ["-1", "=-1", "1.5", "x", "nan", "1e30", "=", "2e-1"] {
        let items = if items.starts_with('=') {
            format!("--items{items}")
        } else {
            format!("--items {items}")
        };
        assert_invalid(&dir, &format!("build keys -o new --fpr 0.01 {items}"));
        assert_invalid(&dir, &format!("plan --fpr 0.01 {items}"));
    }
    assert_invalid(&dir, "plan --fpr 0.01");
    for share in ["2", "=-1", "nan", "x"] {
        let share = share.trim_start_matches('=');
        assert_invalid(
            &dir,
            &format!("plan --items 9 --fpr 0.01 --miss-share={share}"),
        );
    }
}

/// Sizes beyond the address space are refused with a message.
#[test]
fn sizes_beyond_memory_are_refused() {
    let dir = dir();
    for items in ["1e15", "9e15", "18446744073709551615"] {
        for kind in KINDS {
            let message = dir.refused(&format!(
                "build keys -o new --fpr 0.01 --items {items} --kind {kind}"
            ));
            assert!(message.contains("cannot allocate"), "{message}");
        }
    }
    // `plan` allocates nothing.
    dir.run("plan --items 18446744073709551615 --fpr 0.01 --json").json();
}

#[test]
fn invalid_settings_are_refused() {
    let dir = dir();
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
        assert_invalid(
            &dir,
            &format!("build keys -o new --fpr 0.01 {setting}"),
        );
    }
    // The largest valid seeds are accepted.
    let wide = "--seed 0xffffffffffffffff";
    dir.run(&format!("build keys -o wide --fpr 0.01 {wide}")).success();
    let wide = "--hash siphash --seed 0xffffffffffffffffffffffffffffffff";
    dir.run(&format!("build keys -o wider --fpr 0.01 {wide}")).success();
}

#[test]
fn missing_and_conflicting_arguments_are_refused() {
    let dir = dir();
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
        "info",
        "info --json -q good",
        "verify",
        "verify --json -q good",
        "add --json -q good -k a",
    ] {
        assert_invalid(&dir, arguments);
    }
}

#[test]
fn keys_invalid_in_their_format_are_refused() {
    let dir = dir();
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
        ProgramRun::new(&mut dir.command_with(all), None).refused();
    }
}
