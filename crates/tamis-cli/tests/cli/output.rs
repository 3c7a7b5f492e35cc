//! Output files, standard output, help and several files at once.

use std::fs::File;
use std::process::Stdio;

use serde_json::{Deserializer, Value};

use crate::support::{KINDS, ProgramRun, TestDir, lines};

#[test]
fn filters_are_written_to_standard_output() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 100));
    let build = "build keys --items 200 --fpr 0.01";
    for kind in KINDS {
        let build = format!("{build} --kind {kind}");
        dir.run(&format!("{build} -o {kind}")).success();
        let run = dir.run(&format!("{build} -o -"));
        assert!(run.success().out == dir.read(kind), "{kind}");
    }
    dir.run("merge tinyset tinyset -o m").success();
    for (verb, file) in [
        ("merge tinyset tinyset", "m"),
        ("fold tinyset", "fold"),
        ("grow tinyset", "grow"),
    ] {
        dir.run(&format!("{verb} -o {file} --force")).success();
        let run = dir.run(&format!("{verb} -o -"));
        assert!(run.success().out == dir.read(file), "{verb}");
    }
    assert!(!dir.path("-").exists());
    let message = dir.refused(&format!("{build} -o - --json"));
    assert!(message.contains("--json"), "{message}");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let out = dir.command(&format!("{build} -o -")).stdout(full).output();
    assert_eq!(out.unwrap().status.code(), Some(2));
}

#[test]
fn quiet_verbs_print_nothing() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 100));
    for verb in [
        "build keys -o f --fpr 0.01 --removable",
        "add f -k a",
        "remove f -k a",
        "merge f f -o m",
        "fold m -o half",
        "grow f",
        "verify f m half",
    ] {
        assert_eq!(dir.run(&format!("{verb} -q")).done().text(), "");
    }
    dir.refused("info missing");
}

#[test]
fn help_and_version_are_checked_for_write_errors() {
    let dir = TestDir::new();
    for arguments in ["--help", "-V", "query --help", "help add", "-h"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let run = dir
            .command(arguments)
            .stdout(Stdio::from(full))
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(2), "{arguments}: {run:?}");
        assert!(run.stderr.starts_with(b"tamis: "), "{arguments}: {run:?}");
        dir.run(arguments).success();
    }
    let version = dir.run("-V");
    assert!(version.text().starts_with("tamis "), "{version:?}");
    // Errors in the arguments.
    dir.run("--frobnicate").status(2);
    dir.run("query").status(2);
}

#[test]
fn info_describes_several_files() {
    let dir = TestDir::new();
    for name in ["a", "b"] {
        dir.run(&format!("build -k x -o {name} --fpr 0.01")).success();
    }
    let run = dir.run("info a b");
    let text = run.success().text();
    assert!(text.starts_with("==> a <==\nkind"), "{text}");
    assert!(text.contains("\n\n==> b <==\nkind"), "{text}");
    assert!(!dir.run("info a").text().contains("==>"));

    let run = dir.run("info a missing b --json");
    run.status(2);
    assert!(run.message().contains("missing"), "{run:?}");
    assert_eq!(files(&run), ["a", "b"]);
}

/// Values of `file` in a sequence of JSON objects.
fn files(run: &ProgramRun) -> Vec<String> {
    Deserializer::from_slice(&run.out)
        .into_iter::<Value>()
        .map(|value| value.unwrap()["file"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn verify_checks_several_files() {
    let dir = TestDir::new();
    for name in ["a", "b", "c"] {
        dir.run(&format!("build -k x -o {name} --fpr 0.01 --items 999"))
            .success();
    }
    dir.run("seen w --window 99 -q -k x").success();
    let mut bytes = dir.read("b");
    *bytes.last_mut().unwrap() ^= 1;
    dir.write("b", bytes);

    let run = dir.run("verify a c w");
    let text =
        "a: intact (tinyset)\nc: intact (tinyset)\nw: intact (window)\n";
    assert_eq!(run.success().text(), text);
    let run = dir.run("verify a b c");
    run.status(1);
    assert!(run.message().contains("b: "), "{run:?}");
    assert_eq!(run.text().lines().count(), 2);
    dir.run("verify a b missing c").status(2);
    dir.run("verify missing b").status(2);
    dir.run("verify -q a c").success();

    let run = dir.run("verify --json a b");
    assert_eq!((run.status(1).err.as_str(), files(&run).len()), ("", 2));
    let values: Vec<Value> = Deserializer::from_slice(&run.out)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(values[0]["intact"], true);
    assert_eq!(values[0]["kind"], "tinyset");
    assert_eq!(values[0]["damage"], Value::Null);
    assert_eq!(values[1]["intact"], false);
    assert!(values[1]["damage"].is_string(), "{values:?}");
}

#[test]
fn windows_are_described_and_refused_by_name() {
    let dir = TestDir::new();
    dir.feed("seen w --window 100 -q", lines(1, 250).as_bytes()).success();
    let info = dir.info("w");
    assert_eq!(info["window"], 100);
    assert_eq!(info["items"], 150);
    assert!(dir.run("info w").success().text().contains("window 100"));
    for verb in ["query w -k a", "fold w -o v", "merge w w -o v"] {
        let message = dir.refused(verb);
        assert!(message.contains("tamis seen"), "{message}");
    }
}

#[test]
fn keys_of_keyed_hashes_are_hidden() {
    let dir = TestDir::new();
    let build = "build -k a -o f --fpr 0.01 --hash siphash --seed 0x75bcd15";
    let run = dir.run(build);
    assert!(!run.success().text().contains("75bcd15"), "{run:?}");
    assert!(run.text().contains("--show-key"), "{run:?}");
    assert_eq!(dir.info("f")["seed"], Value::Null);
    for verb in ["info f", "add f -k b", "grow f", "merge f f -o g"] {
        let run = dir.run(verb);
        assert!(!run.success().text().contains("75bcd15"), "{run:?}");
    }
    let shown = dir.run("info --show-key f --json").json();
    assert_eq!(shown["seed"], "0x75bcd15");
    assert!(dir.run("info --show-key f").text().contains("0x75bcd15"));
}

#[test]
fn options_of_tinysets_choose_the_kind() {
    let dir = TestDir::new();
    // The default at this rate is blocked.
    let build = "build -k a -o f --fpr 0.1 --force";
    dir.run(build).success();
    assert_eq!(dir.info("f")["kind"], "blocked");
    dir.run(&format!("{build} --removable")).success();
    assert_eq!(dir.info("f")["removable"], true);
    dir.run("remove f -k a").success();
    dir.run(&format!("{build} --repeats")).success();
    assert_eq!(dir.info("f")["repeats"], true);
    dir.refused(&format!("{build} --removable --kind blocked"));
    dir.refused(&format!("{build} --removable --prefer speed"));
}

#[test]
fn merge_errors_name_the_cure_of_the_setting_that_differs() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 300));
    let build = |name: &str, options: &str| {
        dir.run(&format!("build keys -o {name} -q {options}")).status(0);
    };
    let base = "--kind tinyset --fpr 0.01 --items 1000";
    build("base", base);
    build("size", "--kind tinyset --fpr 0.01 --items 400");
    build("kind", "--kind blocked --fpr 0.01 --items 1000");
    build("seed", &format!("{base} --seed 7"));
    build("hash", &format!("{base} --hash siphash"));
    build("drawn", &format!("{base} --hash siphash"));
    build("removable", &format!("{base} --removable"));
    build("repeats", &format!("{base} --repeats"));
    build("block", "--kind tinyset --fpr 0.01 --items 500 --block-bytes 32");
    build("bits", &format!("{base} --block-bytes 32"));
    build("rate", "--kind tinyset --fpr 0.02 --items 1000");
    for (files, cure) in [
        ("base size", "--items 1000,"),
        ("size base size base", "--items 1200,"),
        ("base rate", "same --fpr"),
        ("base kind", "same --kind"),
        ("base seed", "--seed 0x0 and 0x7"),
        ("base hash", "same --hash"),
        ("drawn hash", "info --show-key"),
        ("base removable", "--removable, or none"),
        ("base repeats", "--repeats, or none"),
        ("base block", "--block-bytes"),
        ("base bits", "--block-bytes"),
    ] {
        let message = dir.refused(&format!("merge {files} -o m"));
        assert!(message.contains(cure), "{files}: {message}");
    }
}

/// No table is wider than a terminal of 80 columns.
#[test]
fn tables_fit_80_columns() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 30_000));
    dir.run("build keys -o f --fpr 0.001 --removable").success();
    dir.run("build keys -o b --fpr 1e-6 --kind balanced").success();
    dir.run("build keys -o o --items 9 --fpr 1e-6 -q").status(0);
    for arguments in [
        "info f b o",
        "plan --items 1e15 --fpr 0.001",
        "plan --items 123456789 --bits-per-key 40 --block-bytes 32",
        "remove f keys",
        "grow f",
        "merge f f -o m",
        "fold m -o half",
        "verify f m b",
        "theory bound --access-budget 1.2 --load 8 --overflow 0.005",
        "theory fpr --scheme multilevel --block-bits 512 --bits-per-key 40",
        "theory tune --block-bits 512 --bits-per-key 24 --max-reads-miss 1.25",
        "theory crisis --items 10000 --levels 18000,7200,3600,1200",
    ] {
        let run = dir.run(arguments);
        run.status(0);
        for line in run.text().lines() {
            assert!(line.chars().count() <= 80, "{arguments}: {line}");
        }
    }
}

#[test]
fn every_report_is_available_as_json() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 3_000));
    for arguments in [
        "build keys -o f --fpr 0.001 --removable",
        "add f -k a",
        "remove f -k a",
        "query f keys",
        "seen s --items 9 -k a",
        "grow f",
        "merge f f -o m",
        "fold m -o half",
        "info f",
        "verify f",
        "plan --items 1e9 --fpr 0.01",
        "theory bound --access-budget 1.2 --load 8 --overflow 0.005",
        "theory region --scheme multilevel --access-budget 1.2 --load 8 \
         --choices 3",
        "theory fpr --scheme tinyset --chains 64 --load 39",
        "theory tune --block-bits 512 --bits-per-key 24 --max-reads-miss 1.25",
        "theory crisis --items 10000 --levels 18000,7200,3600,1200",
        "theory summary --optimise --items 1000 --buckets-per-item 3",
    ] {
        let json = dir.run(&format!("{arguments} --json")).json();
        assert!(json.is_object(), "{arguments}: {json}");
        // Types of fields that other programs rely on.
        for (name, value) in json.as_object().unwrap() {
            let expected = match name.as_str() {
                "removable" | "repeats" if value.is_u64() => continue,
                "removable" | "repeats" | "over_design" | "intact" => {
                    value.is_boolean()
                }
                "seed" | "kind" | "hash" | "file" => value.is_string(),
                "items" | "bytes" | "design_items" => value.is_u64(),
                _ => true,
            };
            assert!(expected, "{arguments}: {name}: {value}");
        }
    }
}

#[test]
fn completions_and_manual_pages_have_every_verb() {
    let dir = TestDir::new();
    let verbs = [
        "build",
        "query",
        "seen",
        "add",
        "remove",
        "merge",
        "fold",
        "grow",
        "info",
        "verify",
        "plan",
        "theory",
        "completions",
        "man",
    ];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = dir.run(&format!("completions {shell}"));
        for verb in verbs {
            assert!(script.success().text().contains(verb), "{shell} {verb}");
        }
    }
    dir.run("completions tcsh").status(2);
    let page = dir.run("man");
    assert!(page.success().text().contains(".TH tamis 1"), "{page:?}");
    std::fs::create_dir(dir.path("man1")).unwrap();
    dir.run("man man1").success();
    for verb in verbs {
        let page = dir.read(&format!("man1/tamis-{verb}.1"));
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains(&format!("tamis\\-{verb}")), "{verb}: {page}");
    }
    dir.refused("man missing");
}

#[test]
fn explore_writes_a_page_that_needs_no_other_file() {
    let dir = TestDir::new();
    let run = dir.run("explore -o plan.html");
    assert_eq!(run.success().text(), "plan.html\n");
    let page = String::from_utf8(dir.read("plan.html")).unwrap();
    assert!(page == tamis_explorer::page());
    dir.write("plan.html", "old");
    dir.run("explore -o plan.html").success();
    assert!(dir.read("plan.html") == page.as_bytes());
    dir.only(&["plan.html"]);
    dir.run("explore -o keys.tamis").status(2);
    dir.only(&["plan.html"]);
    dir.refused("explore -o missing/plan.html");
    // The directory of temporary files is that of the test.
    let run = dir.run("explore --no-open");
    assert!(run.success().text().ends_with("/tamis-explorer.html\n"));
    assert!(dir.read("tamis-explorer.html") == page.as_bytes());
}
