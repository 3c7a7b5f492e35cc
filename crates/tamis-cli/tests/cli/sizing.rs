//! Counting keys, threads, and repeated keys.

use std::process::Stdio;

use crate::support::{KINDS, ProgramRun, TestDir, header, integers, lines};

#[test]
fn counted_given_and_spooled_sizes_give_the_same_bytes() {
    let dir = TestDir::new();
    let input = lines(1, 100_000);
    dir.write("keys", &input);
    for kind in KINDS {
        for size in ["--fpr 0.001", "--bits-per-key 11.5"] {
            let settings = format!("-o f --force --kind {kind} {size}");
            dir.run(&format!("build keys {settings}")).success();
            let counted = dir.read("f");
            dir.run(&format!("build keys {settings} --items 100000"))
                .success();
            assert!(dir.read("f") == counted, "{kind} {size}: given");
            dir.run(&format!("build keys {settings} --items 1e5")).success();
            assert!(dir.read("f") == counted, "{kind} {size}: given");
            let run = dir.feed(&format!("build {settings}"), input.as_bytes());
            run.success();
            assert!(dir.read("f") == counted, "{kind} {size}: spooled");
        }
    }
}

#[test]
fn bytes_are_independent_of_threads() {
    let dir = TestDir::new();
    let input = lines(1, 150_000);
    dir.write("keys", &input);
    dir.write("more", lines(2, 50_000));
    for kind in KINDS {
        let mut expected = None;
        for threads in [1, 2, 3, 5, 8] {
            let settings = format!(
                "-o f --force --kind {kind} --fpr 0.01 --threads {threads}"
            );
            dir.run(&format!("build keys {settings}")).success();
            let built = dir.read("f");
            dir.feed(&format!("build {settings}"), input.as_bytes()).success();
            assert!(dir.read("f") == built, "{kind} spooled on {threads}");
            dir.run(&format!("add f more --threads {threads}")).done();
            let found = (built, dir.read("f"));
            let expected = expected.get_or_insert_with(|| found.clone());
            assert!(*expected == found, "{kind} on {threads} threads");
        }
    }
    // More threads than blocks.
    let two = |threads| {
        let arguments = format!(
            "build -k a -k b -o f --force --fpr 0.01 --threads {threads}"
        );
        dir.run(&arguments).success();
        dir.read("f")
    };
    assert!(two(1) == two(64));
}

/// More hashes than `build` keeps in memory.
#[test]
fn large_pipe_is_spooled_through_a_file() {
    let dir = TestDir::new();
    let input = integers(1, 4_400_000);
    let settings = "--bits-per-key 8 --key-format u64le";
    let before = dir.files();
    let run = dir.feed(&format!("build -o f {settings}"), &input);
    run.success();
    let spooled = dir.read("f");
    std::fs::remove_file(dir.path("f")).unwrap();
    assert_eq!(dir.files(), before, "a temporary file is left");
    // Without a directory for that file, the message names the options.
    let mut command = dir.command(&format!("build -o f {settings}"));
    command.env("TMPDIR", dir.path("no such directory"));
    let message = ProgramRun::new(&mut command, Some(&input)).refused();
    assert!(message.contains("--items"), "{message}");
    assert!(message.contains("TMPDIR"), "{message}");
    assert_eq!(dir.files(), before, "a temporary file is left");

    dir.write("keys", input);
    dir.run(&format!("build keys -o f {settings}")).success();
    assert!(dir.read("f") == spooled);
}

/// `/dev/stdin` and process substitution cannot be read twice.
#[cfg(unix)]
#[test]
fn named_pipe_is_read_once() {
    let dir = TestDir::new();
    let input = lines(1, 50_000);
    dir.feed("build -o f --fpr 0.01", input.as_bytes()).success();
    dir.feed("build /dev/stdin -o g --fpr 0.01", input.as_bytes()).success();
    assert!(dir.read("f") == dir.read("g"));
    dir.write("keys", &input);
    let mut command = dir.command("build /dev/stdin -o h --fpr 0.01");
    let file = std::fs::File::open(dir.path("keys")).unwrap();
    ProgramRun::new(command.stdin(Stdio::from(file)), None).success();
    assert!(dir.read("f") == dir.read("h"));
}

#[test]
fn repeated_keys_do_not_change_the_bits() {
    let dir = TestDir::new();
    let once = lines(1, 20_000);
    dir.write("once", &once);
    dir.write("thrice", once.repeat(3));
    for kind in KINDS {
        let settings =
            format!("--fpr 0.01 --kind {kind} --items 20000 --force");
        dir.run(&format!("build once -o once.tamis {settings}")).success();
        dir.run(&format!("build thrice -o thrice.tamis {settings}")).success();
        let (one, three) = (dir.read("once.tamis"), dir.read("thrice.tamis"));
        // Equal bits; the header has another count.
        let header = header(&one);
        assert!(one[header..] == three[header..], "{kind}");
        let info = dir.info("thrice.tamis");
        assert_eq!(info["items"], 60_000);
        let estimate = info["estimated_items"].as_f64().unwrap();
        assert!((estimate / 20_000.0 - 1.0).abs() < 0.03, "{estimate}");
        dir.run("verify thrice.tamis").success();
        dir.run("query -v thrice.tamis once").no_match();
        // Sized by the number of lines, the filter is larger.
        let counted = format!("--fpr 0.01 --kind {kind} --force");
        dir.run(&format!("build thrice -o large.tamis {counted}")).done();
        dir.run("query -v large.tamis once").no_match();
        let rate = |name| dir.info(name)["expected_fpr"].as_f64().unwrap();
        assert!(rate("large.tamis") < rate("once.tamis"), "{kind}");
    }
}

/// At exactly the design load the estimate of different keys exceeds the
/// design in every second filter, so `over_design` needs a margin.
#[test]
fn repeated_keys_are_not_over_design() {
    let dir = TestDir::new();
    for kind in KINDS {
        for stream in 0..20 {
            dir.write("keys", lines(stream, 1_000).repeat(2));
            dir.run(&format!(
                "build keys -o f --force --fpr 0.01 --kind {kind} --items 1000"
            ))
            .success();
            let info = dir.info("f");
            assert_eq!(info["over_design"], false, "{kind}: {info}");
        }
    }
}
