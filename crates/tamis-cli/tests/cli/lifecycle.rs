//! A filter's life, kind by kind: built, asked, added to, merged, folded.

use crate::support::{KINDS, Lab, Run, expected, lines};

#[test]
fn every_kind_is_built_asked_and_added_to() {
    let lab = Lab::new();
    let (members, more) = (lines(1, 20_000), lines(2, 20_000));
    let strangers = lines(3, 20_000);
    lab.write("members.txt", &members);
    lab.write("more.txt", &more);
    lab.write("strangers.txt", &strangers);
    for kind in KINDS {
        let build = lab.run(&format!(
            "build members.txt -o {kind}.tamis --fpr 0.01 --kind {kind}"
        ));
        build.done();
        assert!(build.text().contains(kind), "{build:?}");
        let keys: Vec<&str> = members.lines().collect();
        assert!(
            lab.read(&format!("{kind}.tamis")) == expected(kind, &keys, 0.01),
            "{kind}: not the library's bytes"
        );

        // No false negative: every member is printed, in order.
        let query = lab.run(&format!("query {kind}.tamis members.txt"));
        assert!(query.done().text() == members, "{kind}");
        let query = lab.run(&format!("query -v {kind}.tamis members.txt"));
        assert_eq!(query.nothing().text(), "", "{kind}");

        // What is selected and what -v selects are all keys together.
        let maybe = lab.run(&format!("query {kind}.tamis strangers.txt"));
        let never = lab.run(&format!("query -v {kind}.tamis strangers.txt"));
        never.done();
        let (maybe, never) = (maybe.text(), never.text());
        assert!(maybe.lines().count() < 400, "{kind}");
        let mut both: Vec<&str> = maybe.lines().chain(never.lines()).collect();
        let mut all: Vec<&str> = strangers.lines().collect();
        both.sort_unstable();
        all.sort_unstable();
        assert!(both == all, "{kind}");

        let verify = lab.run(&format!("verify {kind}.tamis"));
        assert!(verify.done().text().contains("intact"), "{verify:?}");
        let info = lab.info(&format!("{kind}.tamis"));
        assert_eq!(info["kind"], kind);
        assert_eq!(info["items"], 20_000);

        let add = lab.run(&format!("add {kind}.tamis more.txt --json"));
        assert_eq!(add.json()["items"], 40_000);
        for file in ["members.txt", "more.txt"] {
            let query = lab.run(&format!("query -v {kind}.tamis {file}"));
            assert_eq!(query.nothing().text(), "", "{kind}: {file}");
        }
        lab.run(&format!("verify {kind}.tamis")).done();
        assert_eq!(lab.info(&format!("{kind}.tamis"))["items"], 40_000);
    }
}

/// `add` gives the bytes of a build from all keys at once.
#[test]
fn adding_is_building_in_two_steps() {
    let lab = Lab::new();
    lab.write("left.txt", lines(1, 5_000));
    lab.write("right.txt", lines(2, 5_000));
    for kind in KINDS {
        let settings = format!("--items 10000 --fpr 0.001 --kind {kind}");
        lab.run(&format!(
            "build left.txt right.txt -o all {settings} --force"
        ))
        .done();
        lab.run(&format!("build left.txt -o parts {settings} --force")).done();
        lab.run("add parts right.txt").done();
        assert!(lab.read("parts") == lab.read("all"), "{kind}");
    }
}

#[test]
fn what_query_prints_and_returns() {
    let lab = Lab::new();
    lab.write("members.txt", "apple\npear\n");
    lab.run("build members.txt -o f.tamis --fpr 1e-9").done();
    lab.write("mixed.txt", "apple\nplum\npear\nquince\nplum\n");

    let run = lab.run("query f.tamis mixed.txt");
    assert_eq!(run.done().text(), "apple\npear\n");
    let run = lab.run("query f.tamis mixed.txt -v");
    assert_eq!(run.done().text(), "plum\nquince\nplum\n");
    assert_eq!(lab.count("f.tamis mixed.txt"), 2);
    assert_eq!(lab.count("-v f.tamis mixed.txt"), 3);
    let run = lab.run("query f.tamis mixed.txt --json");
    let expected = serde_json::json!(
        { "keys": 5, "matched": 2, "absent": 3 }
    );
    assert_eq!(run.json(), expected);

    for (arguments, status) in [
        ("query -q f.tamis mixed.txt", 0),
        ("query -q -v f.tamis mixed.txt", 0),
        ("query -q f.tamis -k plum", 1),
        ("query -q f.tamis -k apple", 0),
        ("query -q -v f.tamis -k apple -k pear", 1),
        ("query f.tamis -k plum", 1),
        ("query -v f.tamis members.txt", 1),
    ] {
        let run = lab.run(arguments);
        assert_eq!((run.text(), &run.err[..]), ("", ""), "{arguments}");
        run.status(status);
    }
    // The counts are printed even when they are nothing.
    let run = lab.run("query -c f.tamis -k plum");
    assert_eq!(run.nothing().text(), "0\n");
    let run = lab.run("query --json f.tamis -k plum");
    assert_eq!(run.status(1).err, "");
    let counts: serde_json::Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!(counts["absent"], 1);
}

#[test]
fn keys_come_from_files_from_stdin_and_from_the_command_line() {
    let lab = Lab::new();
    lab.write("1.txt", "apple\n");
    // Not ended: the key must not run into the next file's first.
    lab.write("2.txt", "pear");
    lab.write("3.txt", "plum\n");
    let settings = "--fpr 0.001";
    lab.run(&format!("build 1.txt 2.txt 3.txt -o files {settings}")).done();
    let expected = lab.read("files");
    assert!(
        expected
            == self::expected("tinyset", &["apple", "pear", "plum"], 0.001)
    );

    let all = b"apple\npear\nplum\n";
    lab.feed(&format!("build -o none {settings}"), all).done();
    lab.feed(&format!("build - -o dash {settings}"), all).done();
    lab.feed(&format!("build 1.txt - 3.txt -o mixed {settings}"), b"pear\n")
        .done();
    lab.run(&format!("build -k apple -k pear --key plum -o keys {settings}"))
        .done();
    for file in ["none", "dash", "mixed", "keys"] {
        assert!(lab.read(file) == expected, "{file}");
    }

    for arguments in ["query files", "query files -"] {
        let run = lab.feed(arguments, b"plum\nquince\npear");
        assert_eq!(run.done().text(), "plum\npear\n", "{arguments}");
    }
    let run = lab.run("query files 2.txt 1.txt -k apple");
    run.status(2);
    let run = lab.run("query files 2.txt 1.txt 3.txt");
    assert_eq!(run.done().text(), "pear\napple\nplum\n");
    lab.feed("add files", b"quince\n").done();
    lab.run("query -q files -k quince").done();

    // A key may be empty, hold spaces, or look like an option.
    for key in ["", " a  b ", "-v", "--", "é"] {
        let lab = Lab::new();
        let key = format!("--key={key}");
        let build = ["build", &key, "-o", "f", "--fpr", "1e-9"];
        Run::of(&mut lab.command_with(build), None).done();
        let query = ["query", "-q", "f", &key];
        Run::of(&mut lab.command_with(query), None).done();
        lab.run("query -q f -k another").nothing();
    }
}

#[test]
fn help_tells_the_exit_codes_and_every_verb_has_one() {
    let lab = Lab::new();
    let help = lab.run("--help");
    assert!(help.done().text().contains("Exit status: 0"), "{help:?}");
    let verbs = [
        "build", "query", "add", "remove", "merge", "fold", "grow", "info",
        "verify", "plan",
    ];
    for verb in verbs {
        assert!(help.text().contains(&format!("\n  {verb} ")), "{verb}");
        let own = lab.run(&format!("{verb} --help"));
        assert!(own.done().text().contains("Usage: tamis"), "{own:?}");
    }
    for verb in ["query", "verify"] {
        let own = lab.run(&format!("{verb} --help"));
        let text = own.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("Exit status: 0 if"), "{own:?}");
    }
    lab.run("--version").done();
}

#[test]
fn nothing_is_overwritten_unasked() {
    let lab = Lab::new();
    lab.write("a.txt", lines(1, 500));
    lab.write("b.txt", lines(2, 500));
    lab.run("build a.txt -o a.tamis --fpr 0.01").done();
    lab.run("build b.txt -o b.tamis --fpr 0.01").done();
    let before = lab.read("a.tamis");
    lab.write("old", "precious");
    let commands = [
        "build a.txt -o old --fpr 0.01",
        "merge a.tamis b.tamis -o old",
        "fold a.tamis -o old",
        "grow a.tamis -o old",
    ];
    for command in commands {
        let message = lab.refused(command);
        assert!(message.contains("old"), "{message}");
        assert!(message.contains("--force"), "{message}");
    }
    for command in commands {
        lab.write("old", "precious");
        lab.run(&format!("{command} --force")).done();
        lab.run("verify old").done();
    }
    assert!(lab.read("a.tamis") == before, "an input was changed");
    // A refusal with --force still leaves what was there.
    lab.write("old", "precious");
    lab.refused("build missing.txt -o old --fpr 0.01 --force");
    lab.refused("merge a.tamis missing -o old --force");
    lab.refused("build a.txt -o . --fpr 0.01 --force");
    lab.refused("build a.txt -o no/such/directory --fpr 0.01");
}

#[test]
fn a_failed_addition_leaves_the_file_as_it_was() {
    let lab = Lab::new();
    let good: String = lines(1, 200_000)
        .lines()
        .map(|line| line[..8].to_owned() + "\n")
        .collect();
    lab.write("good.hex", &good);
    // Late enough that many keys are in when it is found.
    lab.write("bad.hex", good.clone() + "12345\n" + &good);
    lab.run("build good.hex -o f --fpr 0.01 --key-format hex").done();
    for threads in [1, 2, 8] {
        let message = lab.refused(&format!(
            "add f bad.hex --key-format hex --threads {threads}"
        ));
        assert!(message.contains("bad.hex: key 200001:"), "{message}");
        lab.refused(&format!(
            "build good.hex bad.hex -o new --fpr 0.01 --key-format hex \
             --threads {threads}"
        ));
    }
    lab.refused("add f -k 123 --key-format hex");
    lab.refused("add f -k twelve --key-format u64le");
    lab.refused("add f good.hex missing.hex --key-format hex");
    lab.refused("add f good.hex . --key-format hex");
    lab.write("odd.bin", [7; 17]);
    let message = lab.refused("add f odd.bin --key-format u64le");
    assert!(message.contains("odd.bin"), "{message}");
    // From a pipe the hashes are spooled: the same must hold.
    let before = lab.files();
    let bad = lab.read("bad.hex");
    let run =
        lab.feed("build -o new --fpr 0.01 --key-format hex", &bad).refused();
    assert!(run.contains("standard input: key 200001:"), "{run}");
    assert_eq!(lab.files(), before);
}

/// A filter may hold a secret seed: `add` must not publish it.
#[cfg(unix)]
#[test]
fn adding_keeps_the_permissions_of_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let lab = Lab::new();
    lab.run("build -k apple -o f --fpr 0.01 --hash siphash").done();
    let path = lab.path("f");
    let private = path.metadata().unwrap().permissions().mode() & 0o077;
    assert_eq!(private, 0, "{private:o}");
    for mode in [0o600, 0o640] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, permissions).unwrap();
        lab.run("add f -k pear").done();
        let kept = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(kept, mode, "{kept:o}");
    }
}

/// Two additions at once: the later one would undo the earlier, so it fails
/// and changes nothing.
#[test]
fn additions_notice_each_other() {
    use std::io::Write as _;
    use std::process::Stdio;
    let lab = Lab::new();
    lab.run("build -k apple -o f --fpr 0.01 --items 100").done();
    let mut slow = lab
        .command("add f -")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = slow.stdin.take().unwrap();
    input.write_all(b"pear\n").unwrap();
    // More than a pipe holds: once it is written, keys are being read, and
    // the filter was loaded before that.
    input.write_all(&b"quince\n".repeat(100_000)).unwrap();
    lab.run("add f -k plum").done();
    drop(input);
    let end = slow.wait_with_output().unwrap();
    let message = String::from_utf8(end.stderr).unwrap();
    assert_eq!(end.status.code(), Some(2), "{message}");
    assert!(message.contains("run the command again"), "{message}");
    lab.run("query f -k plum").done();
    lab.run("query -v f -k pear").done();
}

/// Renaming over it would replace a pipe, or for root a device, by a file.
#[cfg(unix)]
#[test]
fn only_regular_files_are_replaced() {
    use std::os::unix::fs::FileTypeExt as _;
    let lab = Lab::new();
    let pipe = lab.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let run = lab.run("build -k apple -o pipe --fpr 0.01 --force");
    assert!(pipe.metadata().unwrap().file_type().is_fifo(), "{run:?}");
    run.refused();
}
