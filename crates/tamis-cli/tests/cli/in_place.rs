//! `add --in-place` and `remove --in-place`: the bytes of a replacement,
//! whatever interrupts them.
#![cfg(unix)]

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tamis::AnyFilter;

use crate::support::{KINDS, ProgramRun, TestDir, lines, number};

#[test]
fn add_in_place_writes_the_bytes_of_add() {
    let dir = TestDir::in_memory();
    for kind in KINDS.into_iter().chain(["balanced"]) {
        let build = format!(
            "build -k first -o f --force --items 200000 --fpr 0.01 --kind \
             {kind}"
        );
        dir.run(&build).success();
        fs::copy(dir.path("f"), dir.path("g")).unwrap();
        for (stream, count) in [(1, 1), (2, 30_000), (1, 1), (3, 100)] {
            dir.write("keys", lines(stream, count));
            dir.run("add f keys").success();
            let report = dir.run("add --in-place g keys --json").json();
            assert_eq!(report["added"], count);
            assert_eq!(report["items"], dir.info("f")["items"]);
            assert_eq!(report["design_items"], 200_000);
            assert!(dir.read("f") == dir.read("g"), "{kind} {stream}");
        }
        let run = dir.run("add --in-place g -k more");
        assert!(run.success().text().starts_with("added "), "{run:?}");
    }
    dir.only(&["f", "g", "keys"]);
}

#[test]
fn remove_in_place_writes_the_bytes_of_remove() {
    let dir = TestDir::in_memory();
    dir.write("keys", lines(1, 50_000));
    let build = "--fpr 0.001 --kind tinyset --removable";
    dir.run(&format!("build keys -o f {build}")).success();
    fs::copy(dir.path("f"), dir.path("g")).unwrap();
    // The third have been removed, of the last half are absent.
    let absent = lines(2, 100);
    for removed in
        [lines(1, 1), lines(1, 2000), lines(1, 1), absent + &lines(1, 2100)]
    {
        dir.write("removed", removed);
        let replaced = dir.run("remove f removed --json");
        let in_place = dir.run("remove --in-place g removed --json");
        let [replaced, in_place]: [serde_json::Value; 2] =
            [replaced, in_place].map(|run| {
                serde_json::from_slice(&run.out).expect("a report")
            });
        let fields: Vec<_> =
            in_place.as_object().unwrap().keys().cloned().collect();
        assert_eq!(
            fields,
            ["removed", "stuck", "absent", "items", "design_items"]
        );
        for field in fields {
            assert_eq!(in_place[&field], replaced[&field], "{field}");
        }
        assert!(dir.read("f") == dir.read("g"));
    }
    dir.run("verify g").success();
    let run = dir.run("remove --in-place g -k absent");
    run.status(1);
    assert!(run.text().starts_with("removed         0\nabsent          1\n"));
    assert!(dir.read("f") == dir.read("g"));
    dir.run("remove --in-place g removed --quiet").no_match();
    dir.only(&["f", "g", "keys", "removed"]);
}

#[test]
fn remove_in_place_refuses_what_it_cannot_do() {
    let dir = TestDir::new();
    for kind in KINDS.into_iter().chain(["balanced"]) {
        let build =
            format!("build -k a -o f --force --fpr 0.01 --kind {kind}");
        dir.run(&build).success();
        let message = dir.refused("remove --in-place f -k a");
        assert!(message.contains("--kind tinyset --removable"), "{message}");
    }
    dir.run("build -k a -o f --force --fpr 0.01 --removable").success();
    dir.refused("remove --in-place f missing");
    dir.refused("remove --in-place f -k 123 --key-format hex");
    let reader = AnyFilter::open(dir.path("f")).unwrap();
    let message = dir.refused("remove --in-place f -k a --wait 0.05");
    assert!(message.contains("a reader is using"), "{message}");
    assert!(reader.contains("a"));
}

#[test]
fn add_in_place_refuses_what_it_cannot_do() {
    let dir = TestDir::new();
    let listing = "--kind balanced --scheme multilevel --overflow list";
    dir.write("keys", lines(1, 1000));
    dir.run(&format!("build keys -o f --bits-per-key 10 {listing}")).success();
    dir.write("more", lines(2, 1000));
    let message = dir.refused("add --in-place f more");
    assert!(message.contains("overflow list"), "{message}");
    assert!(message.contains("omit --in-place"), "{message}");
    dir.refused("add --in-place f missing");
    dir.refused("add --in-place f -k 123 --key-format hex");
    dir.refused("add --in-place missing -k a");
    dir.refused("add --in-place keys -k a");
    dir.run("add --in-place f -k a --threads 2").status(2);
    // Over its design, which is a warning.
    dir.run("add f more").status(0);
}

/// A reader that has the file mapped excludes changes of its blocks, and no
/// other.
#[test]
fn add_in_place_waits_for_readers() {
    let dir = TestDir::new();
    dir.run("build -k apple -o f --fpr 1e-9 --items 100").success();
    let reader = AnyFilter::open(dir.path("f")).unwrap();
    let message = dir.refused("add --in-place f -k pear --wait 0.05");
    assert!(message.contains("a reader is using"), "{message}");
    dir.run("add f -k pear").success();
    assert!(!reader.contains("pear"), "an old map");
    // The new file has no reader.
    dir.run("add --in-place f -k plum --wait 0").success();
    let reader = AnyFilter::open(dir.path("f")).unwrap();
    thread::scope(|scope| {
        let add = || dir.run("add --in-place f -k quince");
        let add = scope.spawn(add);
        thread::sleep(Duration::from_millis(100));
        assert!(!add.is_finished() && !reader.contains("quince"));
        drop(reader);
        add.join().unwrap().success();
    });
    for key in ["apple", "pear", "plum", "quince"] {
        dir.run(&format!("query -q f -k {key}")).success();
    }
}

/// Changes in place beside replacements, removals of locks, and readers.
#[test]
fn add_in_place_beside_other_writers() {
    let dir = TestDir::in_memory();
    dir.run(
        "build -k 0 -o f --items 2000 --fpr 0.0001 --kind tinyset --removable",
    )
    .success();
    thread::scope(|scope| {
        for i in 0..4 {
            let dir = &dir;
            scope.spawn(move || {
                for j in 0..25 {
                    let command = match (i, j) {
                        (3, 10 | 20) => "grow f".into(),
                        (3, _) => format!("add f -k {i}.{j}"),
                        _ => format!("add --in-place f -k {i}.{j}"),
                    };
                    dir.run(&command).success();
                    dir.run("verify f").success();
                }
            });
        }
    });
    let keys = (0..4).flat_map(|i| (0..25).map(move |j| (i, j)));
    let keys = keys.filter(|key| !matches!(key, (3, 10 | 20)));
    let keys: String = keys.map(|(i, j)| format!("{i}.{j}\n")).collect();
    dir.write("keys", &keys);
    dir.run("query -v f keys").no_match();
    assert_eq!(dir.info("f")["items"], 1 + 98);
    dir.only(&["f", "keys"]);
}

/// A change of a filter by a process that is killed.
#[derive(Clone, Copy, PartialEq)]
enum Update {
    Add,
    AddInPlace,
    RemoveInPlace,
}

impl Update {
    fn verb(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::AddInPlace => "add --in-place",
            Self::RemoveInPlace => "remove --in-place",
        }
    }
}

/// Kills `update` at `runs` moments. After each, the filter is intact and has
/// the changes of all completed runs, and of this run all or none.
fn kill_at_random_moments(update: Update, runs: u64) {
    const KEYS: u64 = 300;
    let dir = TestDir::new();
    let removes = update == Update::RemoveInPlace;
    let mut initial = "first\nsecond\n".to_owned();
    if removes {
        initial.extend((0..runs).map(|run| lines(run, KEYS)));
    }
    dir.write("keys", &initial);
    dir.run(
        "build keys -o f --fpr 1e-6 --items 310000 --kind tinyset --removable",
    )
    .success();
    let path = dir.path("f");
    let image = path.metadata().unwrap().len();
    let items = AnyFilter::open(&path).unwrap().len();
    let begin = Instant::now();
    let verb = update.verb();
    dir.run(&format!("{verb} f -k second")).success();
    let usual = begin.elapsed().as_micros() as u64;
    let items = if removes { items - 1 } else { items + 1 };
    // Whether the keys of each run are in the filter.
    let mut present = vec![removes; runs as usize];
    let mut changes = 0;
    let (mut killed, mut pending, mut kept) = (0, 0, 0);
    for run in 0..runs {
        dir.write("keys", lines(run, KEYS));
        let mut command = dir.command(&format!("{verb} f keys"));
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let random = number(1 << 15, run);
        if run % 2 == 0 || update == Update::Add {
            let delay = random % (usual + usual / 2);
            thread::sleep(Duration::from_micros(delay));
        } else {
            // From the first byte of the journal on.
            let length = || path.metadata().unwrap().len();
            while length() == image && child.try_wait().unwrap().is_none() {}
            thread::sleep(Duration::from_micros(random % (usual / 4 + 1)));
        }
        child.kill().unwrap();
        let is_done = child.wait().unwrap().success();
        pending += u64::from(path.metadata().unwrap().len() > image);
        let filter = AnyFilter::open(&path).unwrap();
        filter.verify().unwrap();
        let are_present = |run| {
            let lines = lines(run, KEYS);
            match lines.lines().filter(|&key| filter.contains(key)).count() {
                // At most one false positive.
                0 | 1 => false,
                found if found as u64 == KEYS => true,
                found => panic!("run {run}: {found} keys"),
            }
        };
        let is_changed = are_present(run) != removes;
        assert!(is_changed || !is_done, "run {run}");
        present[run as usize] = is_changed != removes;
        changes += u64::from(is_changed);
        killed += u64::from(!is_done);
        kept += u64::from(is_changed && !is_done);
        // All of them every now and then, and the last ones always.
        let first = if run % 50 == 49 { 0 } else { run.saturating_sub(5) };
        for other in first..runs.min(run + 2) {
            assert_eq!(are_present(other), present[other as usize], "{other}");
        }
        let expected = match removes {
            true => items - KEYS * changes,
            false => items + KEYS * changes,
        };
        assert_eq!(filter.len(), expected);
    }
    eprintln!(
        "{verb}, {runs} runs: {killed} killed, {kept} of them after the \
         change, {pending} with a journal left"
    );
    assert!(killed > runs / 4, "{killed}");
    assert!(pending > 0 || update == Update::Add, "{pending}");
    dir.run(&format!("{verb} f -k first")).success();
    assert_eq!(path.metadata().unwrap().len(), image);
    dir.run("verify f").success();
    dir.only(&["f", "keys"]);
}

#[test]
fn killed_updates_leave_the_whole_change_or_nothing() {
    kill_at_random_moments(Update::Add, 20);
    kill_at_random_moments(Update::AddInPlace, 40);
    kill_at_random_moments(Update::RemoveInPlace, 40);
}

#[test]
#[ignore = "slow tier"]
fn a_thousand_killed_updates_of_each_form() {
    kill_at_random_moments(Update::Add, 1000);
    kill_at_random_moments(Update::AddInPlace, 1000);
    kill_at_random_moments(Update::RemoveInPlace, 1000);
}

/// A limit on the file's length stops the journal, by a signal.
#[test]
fn a_limit_on_the_length_of_files_leaves_the_filter_as_it_was() {
    let dir = TestDir::new();
    dir.run("build -k first -o f --fpr 0.01 --items 300000").success();
    dir.write("keys", lines(1, 20_000));
    let before = dir.read("f");
    for more in [0, 1, 100] {
        let blocks = before.len().div_ceil(1024) + more;
        let program = env!("CARGO_BIN_EXE_tamis");
        let limited = format!(
            "ulimit -c 0; ulimit -f {blocks}; exec {program} add --in-place f \
             keys"
        );
        let mut shell = Command::new("bash");
        shell.args(["-c", &limited]).current_dir(dir.path(""));
        let end = shell.stderr(Stdio::null()).status().unwrap();
        assert!(!end.success());
        // The beginning of a journal may be left behind the image.
        assert!(dir.read("f").starts_with(&before), "{more}");
        dir.run("verify f").success();
        dir.run("query -q f -k first").success();
    }
    dir.run("add --in-place f keys").success();
    dir.run("query -v f keys").no_match();
    assert_eq!(dir.read("f").len(), before.len());
    dir.only(&["f", "keys"]);
}

/// Needs the right to mount a small file system.
#[test]
fn a_full_disk_leaves_the_filter_as_it_was() {
    let dir = TestDir::new();
    let disk = dir.path("disk");
    fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=600k", "tamis-test"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("skipped: cannot mount a file system");
        return;
    }
    dir.run("build -k first -o disk/f --fpr 0.01 --items 400000").success();
    dir.write("keys", lines(1, 20_000));
    let before = dir.read("disk/f");
    let check = || {
        let run = dir.run("add --in-place disk/f keys").refused();
        assert!(run.contains("No space left"), "{run}");
        assert!(dir.read("disk/f") == before);
        // A replacement needs the room for all of it.
        dir.run("add disk/f -k pear").refused();
        assert!(dir.read("disk/f") == before);
        dir.run("add --in-place disk/f -k pear").success();
        dir.run("verify disk/f").success();
        dir.run("query -q disk/f -k pear").success();
        assert_eq!(fs::read_dir(&disk).unwrap().count(), 1);
    };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
    let unmount = Command::new("umount").arg(&disk).status();
    assert!(unmount.unwrap().success());
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

/// A file that cannot be written is read all the same, with the change that
/// its journal has.
#[test]
fn readers_of_an_interrupted_update_need_no_permission_to_write() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;
    let dir = TestDir::new();
    dir.run("build -k first -o f --fpr 1e-9 --items 1000").success();
    let path = dir.path("f");
    let before = dir.read("f");
    dir.run("add --in-place f -k second").success();
    let after = dir.read("f");
    // The journal as the program writes it, with the whole image as record.
    let hasher = tamis::KeyHasher::default();
    let hash = |bytes: &[u8]| hasher.hash(bytes).to_le_bytes();
    let words = |words: [u64; 2]| words.map(u64::to_le_bytes).concat();
    let image = before.len() as u64;
    let len = 32 + 16 + image + 24;
    let mut journal = b"\x89TAMIJ\r\n".to_vec();
    journal.extend(words([image, len]));
    journal.extend(hash(&journal));
    journal.extend(words([0, image]));
    journal.extend(&after);
    journal.extend(hash(&journal));
    journal.extend(len.to_le_bytes());
    journal.extend(b"\x89TAMIE\r\n");
    let file = [&before[..], &journal].concat();
    fs::write(&path, &file).unwrap();
    let set_mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(&path, 0o444);
    set_mode(&dir.path(""), 0o755);
    for arguments in ["query -q f -k second", "verify f", "info f"] {
        let mut command = dir.command(arguments);
        if path.metadata().unwrap().uid() == 0 {
            command.uid(65_534);
        }
        ProgramRun::new(&mut command, None).success();
    }
    assert!(dir.read("f") == file, "readers do not write");
    dir.run("add f -k third").success();
    dir.run("query -q f -k second").success();
    fs::write(&path, &file).unwrap();
    dir.run("add --in-place f -k third").success();
    for key in ["first", "second", "third"] {
        dir.run(&format!("query -q f -k {key}")).success();
    }
    dir.run("verify f").success();
    assert_eq!(dir.read("f").len(), before.len());
}
