//! build, query and add for every kind; output files.

use crate::support::{KINDS, ProgramRun, TestDir, expected, lines};

#[test]
fn build_query_and_add_work_for_every_kind() {
    let dir = TestDir::new();
    let (members, more) = (lines(1, 20_000), lines(2, 20_000));
    let others = lines(3, 20_000);
    dir.write("members.txt", &members);
    dir.write("more.txt", &more);
    dir.write("others.txt", &others);
    for kind in KINDS {
        let build = dir.run(&format!(
            "build members.txt -o {kind}.tamis --fpr 0.01 --kind {kind}"
        ));
        build.success();
        assert!(build.text().contains(kind), "{build:?}");
        let keys: Vec<&str> = members.lines().collect();
        assert!(
            dir.read(&format!("{kind}.tamis")) == expected(kind, &keys, 0.01),
            "{kind}: differs from the library"
        );

        // No false negatives: every member is printed, in order.
        let query = dir.run(&format!("query {kind}.tamis members.txt"));
        assert!(query.success().text() == members, "{kind}");
        let query = dir.run(&format!("query -v {kind}.tamis members.txt"));
        assert_eq!(query.no_match().text(), "", "{kind}");

        // `query` and `query -v` partition the keys.
        let maybe = dir.run(&format!("query {kind}.tamis others.txt"));
        let never = dir.run(&format!("query -v {kind}.tamis others.txt"));
        never.success();
        let (maybe, never) = (maybe.text(), never.text());
        assert!(maybe.lines().count() < 400, "{kind}");
        let mut both: Vec<&str> = maybe.lines().chain(never.lines()).collect();
        let mut all: Vec<&str> = others.lines().collect();
        both.sort_unstable();
        all.sort_unstable();
        assert!(both == all, "{kind}");

        let verify = dir.run(&format!("verify {kind}.tamis"));
        assert!(verify.success().text().contains("intact"), "{verify:?}");
        let info = dir.info(&format!("{kind}.tamis"));
        assert_eq!(info["kind"], kind);
        assert_eq!(info["items"], 20_000);

        let add = dir.run(&format!("add {kind}.tamis more.txt --json"));
        assert_eq!(add.json()["items"], 40_000);
        for file in ["members.txt", "more.txt"] {
            let query = dir.run(&format!("query -v {kind}.tamis {file}"));
            assert_eq!(query.no_match().text(), "", "{kind}: {file}");
        }
        dir.run(&format!("verify {kind}.tamis")).done();
        assert_eq!(dir.info(&format!("{kind}.tamis"))["items"], 40_000);
    }
}

#[test]
fn add_gives_the_bytes_of_one_build() {
    let dir = TestDir::new();
    dir.write("left.txt", lines(1, 5_000));
    dir.write("right.txt", lines(2, 5_000));
    for kind in KINDS {
        let settings = format!("--items 10000 --fpr 0.001 --kind {kind}");
        dir.run(&format!(
            "build left.txt right.txt -o all {settings} --force"
        ))
        .success();
        dir.run(&format!("build left.txt -o parts {settings} --force"))
            .success();
        dir.run("add parts right.txt").done();
        assert!(dir.read("parts") == dir.read("all"), "{kind}");
    }
}

#[test]
fn query_output_and_exit_status() {
    let dir = TestDir::new();
    dir.write("members.txt", "apple\npear\n");
    dir.run("build members.txt -o f.tamis --fpr 1e-9").success();
    dir.write("mixed.txt", "apple\nplum\npear\nquince\nplum\n");

    let run = dir.run("query f.tamis mixed.txt");
    assert_eq!(run.success().text(), "apple\npear\n");
    let run = dir.run("query f.tamis mixed.txt -v");
    assert_eq!(run.success().text(), "plum\nquince\nplum\n");
    assert_eq!(dir.count("f.tamis mixed.txt"), 2);
    assert_eq!(dir.count("-v f.tamis mixed.txt"), 3);
    let run = dir.run("query f.tamis mixed.txt --json");
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
        let run = dir.run(arguments);
        assert_eq!((run.text(), &run.err[..]), ("", ""), "{arguments}");
        run.status(status);
    }
    // Counts of zero are printed.
    let run = dir.run("query -c f.tamis -k plum");
    assert_eq!(run.no_match().text(), "0\n");
    let run = dir.run("query --json f.tamis -k plum");
    assert_eq!(run.status(1).err, "");
    let counts: serde_json::Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!(counts["absent"], 1);
}

#[test]
fn keys_are_read_from_files_stdin_and_the_command_line() {
    let dir = TestDir::new();
    dir.write("1.txt", "apple\n");
    // No line end: the key must not be joined with the next file's first.
    dir.write("2.txt", "pear");
    dir.write("3.txt", "plum\n");
    let settings = "--fpr 0.001";
    dir.run(&format!("build 1.txt 2.txt 3.txt -o files {settings}")).success();
    let expected = dir.read("files");
    assert!(
        expected
            == self::expected("tinyset", &["apple", "pear", "plum"], 0.001)
    );

    let all = b"apple\npear\nplum\n";
    dir.feed(&format!("build -o none {settings}"), all).success();
    dir.feed(&format!("build - -o dash {settings}"), all).success();
    dir.feed(&format!("build 1.txt - 3.txt -o mixed {settings}"), b"pear\n")
        .success();
    dir.run(&format!("build -k apple -k pear --key plum -o keys {settings}"))
        .success();
    for file in ["none", "dash", "mixed", "keys"] {
        assert!(dir.read(file) == expected, "{file}");
    }

    for arguments in ["query files", "query files -"] {
        let run = dir.feed(arguments, b"plum\nquince\npear");
        assert_eq!(run.success().text(), "plum\npear\n", "{arguments}");
    }
    let run = dir.run("query files 2.txt 1.txt -k apple");
    run.status(2);
    let run = dir.run("query files 2.txt 1.txt 3.txt");
    assert_eq!(run.success().text(), "pear\napple\nplum\n");
    dir.feed("add files", b"quince\n").success();
    dir.run("query -q files -k quince").success();

    // Empty keys, keys with spaces, keys that look like options.
    for key in ["", " a  b ", "-v", "--", "é"] {
        let dir = TestDir::new();
        let key = format!("--key={key}");
        let build = ["build", &key, "-o", "f", "--fpr", "1e-9"];
        ProgramRun::new(&mut dir.command_with(build), None).success();
        let query = ["query", "-q", "f", &key];
        ProgramRun::new(&mut dir.command_with(query), None).success();
        dir.run("query -q f -k another").no_match();
    }
}

#[test]
fn help_exists_for_every_verb_and_lists_exit_statuses() {
    let dir = TestDir::new();
    let help = dir.run("--help");
    assert!(help.success().text().contains("Exit status: 0"), "{help:?}");
    let verbs = [
        "build", "query", "add", "remove", "merge", "fold", "grow", "info",
        "verify", "plan",
    ];
    for verb in verbs {
        assert!(help.text().contains(&format!("\n  {verb} ")), "{verb}");
        let own = dir.run(&format!("{verb} --help"));
        assert!(own.success().text().contains("Usage: tamis"), "{own:?}");
    }
    for verb in ["query", "verify"] {
        let own = dir.run(&format!("{verb} --help"));
        let text = own.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("Exit status: 0 if"), "{own:?}");
    }
    dir.run("--version").success();
}

#[test]
fn existing_output_needs_force() {
    let dir = TestDir::new();
    dir.write("a.txt", lines(1, 500));
    dir.write("b.txt", lines(2, 500));
    dir.run("build a.txt -o a.tamis --fpr 0.01").success();
    dir.run("build b.txt -o b.tamis --fpr 0.01").success();
    let before = dir.read("a.tamis");
    dir.write("old", "precious");
    let commands = [
        "build a.txt -o old --fpr 0.01",
        "merge a.tamis b.tamis -o old",
        "fold a.tamis -o old",
        "grow a.tamis -o old",
    ];
    for command in commands {
        let message = dir.refused(command);
        assert!(message.contains("old"), "{message}");
        assert!(message.contains("--force"), "{message}");
    }
    for command in commands {
        dir.write("old", "precious");
        dir.run(&format!("{command} --force")).done();
        dir.run("verify old").success();
    }
    assert!(dir.read("a.tamis") == before, "an input was changed");
    // A failure with --force leaves the old file unchanged.
    dir.write("old", "precious");
    dir.refused("build missing.txt -o old --fpr 0.01 --force");
    dir.refused("merge a.tamis missing -o old --force");
    dir.refused("build a.txt -o . --fpr 0.01 --force");
    dir.refused("build a.txt -o no/such/directory --fpr 0.01");
}

#[test]
fn failed_add_leaves_the_file_unchanged() {
    let dir = TestDir::new();
    let good: String = lines(1, 200_000)
        .lines()
        .map(|line| line[..8].to_owned() + "\n")
        .collect();
    dir.write("good.hex", &good);
    // The invalid key follows 200,000 inserted ones.
    dir.write("bad.hex", good.clone() + "12345\n" + &good);
    dir.run("build good.hex -o f --fpr 0.01 --key-format hex").success();
    for threads in [1, 2, 8] {
        let message = dir.refused(&format!(
            "add f bad.hex --key-format hex --threads {threads}"
        ));
        assert!(message.contains("bad.hex: key 200001:"), "{message}");
        dir.refused(&format!(
            "build good.hex bad.hex -o new --fpr 0.01 --key-format hex \
             --threads {threads}"
        ));
    }
    dir.refused("add f -k 123 --key-format hex");
    dir.refused("build -o new --fpr 0.01 -k twelve --key-format u64le");
    dir.refused("add f good.hex missing.hex --key-format hex");
    dir.refused("add f good.hex . --key-format hex");
    dir.write("odd.bin", [7; 17]);
    dir.run("build -k 7 -o u --fpr 0.01 --key-format u64le").success();
    let message = dir.refused("add u odd.bin");
    assert!(message.contains("odd.bin"), "{message}");
    // Keys of a pipe go through the temporary file of hashes.
    let before = dir.files();
    let bad = dir.read("bad.hex");
    let run =
        dir.feed("build -o new --fpr 0.01 --key-format hex", &bad).refused();
    assert!(run.contains("standard input: key 200001:"), "{run}");
    assert_eq!(dir.files(), before);
}

/// The file may hold a secret seed.
#[cfg(unix)]
#[test]
fn add_keeps_the_permissions_of_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TestDir::new();
    dir.run("build -k apple -o f --fpr 0.01 --hash siphash").success();
    let path = dir.path("f");
    let private = path.metadata().unwrap().permissions().mode() & 0o077;
    assert_eq!(private, 0, "{private:o}");
    for mode in [0o600, 0o640] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, permissions).unwrap();
        dir.run("add f -k pear").success();
        let kept = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(kept, mode, "{kept:o}");
    }
}

/// A rename would replace a pipe, or for root a device, by a regular file.
#[cfg(unix)]
#[test]
fn only_regular_files_are_replaced() {
    use std::os::unix::fs::FileTypeExt as _;
    let dir = TestDir::new();
    let pipe = dir.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let run = dir.run("build -k apple -o pipe --fpr 0.01 --force");
    assert!(pipe.metadata().unwrap().file_type().is_fifo(), "{run:?}");
    run.refused();
}

#[test]
fn remove_exits_1_if_nothing_was_removed() {
    let dir = TestDir::new();
    let settings = "--kind tinyset --removable --fpr 1e-6 --items 100";
    dir.run(&format!("build -k a -k b -o f {settings}")).success();
    dir.run("remove f -k other").no_match();
    dir.run("remove f -k other -k a").success();
    dir.run("remove f -k a").no_match();
    dir.run("query -q f -k b").success();
}

#[test]
fn literal_keys_may_begin_with_a_hyphen() {
    let dir = TestDir::new();
    dir.run("build -k -x --key --y -k - -o f --fpr 1e-9").success();
    for key in ["-x", "--y", "-"] {
        dir.run(&format!("query -q f -k {key}")).success();
    }
    dir.run("query -q f -k x").no_match();
    dir.write("keys", "-x\n");
    dir.run("query -q f keys").success();
}

#[cfg(unix)]
#[test]
fn literal_keys_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let dir = TestDir::new();
    let key = OsStr::from_bytes(b"\xff\xfe");
    let build = ["build", "-o", "f", "--fpr", "1e-9", "-k"].map(OsStr::new);
    let mut command = dir.command_with(build.into_iter().chain([key]));
    ProgramRun::new(&mut command, None).success();
    let query = ["query", "-q", "f", "-k"].map(OsStr::new);
    let mut command = dir.command_with(query.into_iter().chain([key]));
    ProgramRun::new(&mut command, None).success();
}

/// Names of one file: the path, another spelling, a symbolic and a hard link.
fn names(dir: &TestDir, file: &str) -> Vec<String> {
    let mut names = vec![file.to_owned(), format!("./{file}")];
    #[cfg(unix)]
    {
        let link = format!("{file}-link");
        std::os::unix::fs::symlink(file, dir.path(&link)).unwrap();
        names.push(link);
    }
    let link = format!("{file}-hard-link");
    std::fs::hard_link(dir.path(file), dir.path(&link)).unwrap();
    names.push(link);
    names
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let dir = TestDir::new();
    dir.write("keys", "apple\n");
    dir.write("more", "pear\n");
    dir.run("build keys -o f --fpr 0.01 --kind tinyset --items 100").success();
    dir.run("build more -o g --fpr 0.01 --kind tinyset --items 100").success();
    for output in names(&dir, "keys") {
        let command =
            format!("build more keys -o {output} --fpr 0.01 --force");
        let message = dir.refused(&command);
        assert!(message.contains("one of the inputs"), "{message}");
        #[cfg(unix)]
        for command in ["build -o", "build - -o", "build more - -o"] {
            let input = std::fs::File::open(dir.path("keys")).unwrap();
            let command = format!("{command} {output} --fpr 0.01 --force");
            let mut command = dir.command(&command);
            let child = command.stdin(input).output().unwrap();
            let message = String::from_utf8(child.stderr).unwrap();
            assert!(message.contains("one of the inputs"), "{message}");
        }
    }
    for output in names(&dir, "f") {
        for command in ["merge g f", "merge f g", "fold f", "grow f"] {
            for force in ["", "--force"] {
                let command = format!("{command} -o {output} {force}");
                let message = dir.refused(&command);
                assert!(message.contains("one of the inputs"), "{message}");
            }
        }
    }
    assert_eq!(dir.read("keys"), b"apple\n");
    dir.run("build keys -o more --fpr 0.01 --force").success();
    dir.run("merge g -o f --force").success();
}
