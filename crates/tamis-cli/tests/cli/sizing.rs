//! One filter, however its keys are counted and by however many threads
//! they are inserted.

use std::process::Stdio;

use crate::support::{KINDS, Lab, Run, header, integers, lines};

#[test]
fn counted_told_and_spooled_give_the_same_bytes() {
    let lab = Lab::new();
    let input = lines(1, 100_000);
    lab.write("keys", &input);
    for kind in KINDS {
        for size in ["--fpr 0.001", "--bits-per-key 11.5"] {
            let settings = format!("-o f --force --kind {kind} {size}");
            lab.run(&format!("build keys {settings}")).done();
            let counted = lab.read("f");
            lab.run(&format!("build keys {settings} --items 100000")).done();
            assert!(lab.read("f") == counted, "{kind} {size}: told");
            lab.run(&format!("build keys {settings} --items 1e5")).done();
            assert!(lab.read("f") == counted, "{kind} {size}: told");
            let run = lab.feed(&format!("build {settings}"), input.as_bytes());
            run.done();
            assert!(lab.read("f") == counted, "{kind} {size}: spooled");
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let lab = Lab::new();
    let input = lines(1, 150_000);
    lab.write("keys", &input);
    lab.write("more", lines(2, 50_000));
    for kind in KINDS {
        let mut expected = None;
        for threads in [1, 2, 3, 5, 8] {
            let settings = format!(
                "-o f --force --kind {kind} --fpr 0.01 --threads {threads}"
            );
            lab.run(&format!("build keys {settings}")).done();
            let built = lab.read("f");
            lab.feed(&format!("build {settings}"), input.as_bytes()).done();
            assert!(lab.read("f") == built, "{kind} spooled on {threads}");
            lab.run(&format!("add f more --threads {threads}")).done();
            let found = (built, lab.read("f"));
            let expected = expected.get_or_insert_with(|| found.clone());
            assert!(*expected == found, "{kind} on {threads} threads");
        }
    }
    // More threads than blocks.
    let two = |threads| {
        let arguments = format!(
            "build -k a -k b -o f --force --fpr 0.01 --threads {threads}"
        );
        lab.run(&arguments).done();
        lab.read("f")
    };
    assert!(two(1) == two(64));
}

/// More hashes than are kept in memory: they go through a file.
#[test]
fn a_large_pipe_is_spooled_through_a_file() {
    let lab = Lab::new();
    let input = integers(1, 4_400_000);
    let settings = "--bits-per-key 8 --key-format u64le";
    let before = lab.files();
    let run = lab.feed(&format!("build -o f {settings}"), &input);
    run.done();
    let spooled = lab.read("f");
    std::fs::remove_file(lab.path("f")).unwrap();
    assert_eq!(lab.files(), before, "something is left behind");
    // And if there is no place for that file, the way out is named.
    let mut command = lab.command(&format!("build -o f {settings}"));
    command.env("TMPDIR", lab.path("no such directory"));
    let message = Run::of(&mut command, Some(&input)).refused();
    assert!(message.contains("--items"), "{message}");
    assert!(message.contains("TMPDIR"), "{message}");
    assert_eq!(lab.files(), before, "something is left behind");

    lab.write("keys", input);
    lab.run(&format!("build keys -o f {settings}")).done();
    assert!(lab.read("f") == spooled);
}

/// `/dev/stdin` and process substitution are files that can be read once.
#[cfg(unix)]
#[test]
fn a_pipe_with_a_name_is_read_once() {
    let lab = Lab::new();
    let input = lines(1, 50_000);
    lab.feed("build -o f --fpr 0.01", input.as_bytes()).done();
    lab.feed("build /dev/stdin -o g --fpr 0.01", input.as_bytes()).done();
    assert!(lab.read("f") == lab.read("g"));
    lab.write("keys", &input);
    let mut command = lab.command("build /dev/stdin -o h --fpr 0.01");
    let file = std::fs::File::open(lab.path("keys")).unwrap();
    Run::of(command.stdin(Stdio::from(file)), None).done();
    assert!(lab.read("f") == lab.read("h"));
}

#[test]
fn repeated_keys_do_no_damage() {
    let lab = Lab::new();
    let once = lines(1, 20_000);
    lab.write("once", &once);
    lab.write("thrice", once.repeat(3));
    for kind in KINDS {
        let settings =
            format!("--fpr 0.01 --kind {kind} --items 20000 --force");
        lab.run(&format!("build once -o once.tamis {settings}")).done();
        lab.run(&format!("build thrice -o thrice.tamis {settings}")).done();
        let (one, three) = (lab.read("once.tamis"), lab.read("thrice.tamis"));
        // The same bits behind a header that counts differently.
        let header = header(&one);
        assert!(one[header..] == three[header..], "{kind}");
        let info = lab.info("thrice.tamis");
        assert_eq!(info["items"], 60_000);
        let estimate = info["estimated_items"].as_f64().unwrap();
        assert!((estimate / 20_000.0 - 1.0).abs() < 0.03, "{estimate}");
        lab.run("verify thrice.tamis").done();
        lab.run("query -v thrice.tamis once").nothing();
        // Sized by the count of lines instead, it is only larger.
        let counted = format!("--fpr 0.01 --kind {kind} --force");
        lab.run(&format!("build thrice -o large.tamis {counted}")).done();
        lab.run("query -v large.tamis once").nothing();
        let rate = |name| lab.info(name)["expected_fpr"].as_f64().unwrap();
        assert!(rate("large.tamis") < rate("once.tamis"), "{kind}");
    }
}

/// Repeats are not load. At exactly the design load the estimate of
/// different keys is above the design every other time, so an alarm needs
/// more than that.
#[test]
fn repeated_keys_raise_no_alarm() {
    let lab = Lab::new();
    for kind in KINDS {
        for stream in 0..20 {
            lab.write("keys", lines(stream, 1_000).repeat(2));
            lab.run(&format!(
                "build keys -o f --force --fpr 0.01 --kind {kind} --items 1000"
            ))
            .done();
            let info = lab.info("f");
            assert_eq!(info["over_design"], false, "{kind}: {info}");
        }
    }
}
