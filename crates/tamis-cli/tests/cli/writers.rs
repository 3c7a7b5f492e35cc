//! Several processes that change one file.

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{ProgramRun, TestDir};

/// Runs `processes` threads; thread `i` runs the commands of `commands(i)`
/// one after another, each as a process that must succeed.
fn at_once(
    dir: &TestDir,
    processes: u64,
    commands: impl Fn(u64) -> Vec<String> + Sync,
) {
    thread::scope(|scope| {
        for i in 0..processes {
            let commands = &commands;
            scope.spawn(move || {
                for command in commands(i) {
                    dir.run(&command).success();
                }
            });
        }
    });
}

/// Lines `P.0` to `P.(keys - 1)` for each process P below `processes`.
fn keys(processes: u64, keys: u64) -> String {
    let key = |i| (0..keys).map(move |j| format!("{i}.{j}\n"));
    (0..processes).flat_map(key).collect()
}

#[test]
fn eight_processes_add_without_losing_a_key() {
    let dir = TestDir::in_memory();
    for (round, kind) in ["tinyset", "blocked", "balanced"].iter().enumerate()
    {
        let per_process = if round == 0 { 100 } else { 25 };
        dir.run(&format!(
            "build -k first -o f --force --items 1000 --fpr 0.0001 --kind \
             {kind}"
        ))
        .success();
        at_once(&dir, 8, |i| {
            let add = |j| format!("add f -k {i}.{j}");
            (0..per_process).map(add).collect()
        });
        dir.run("verify f").success();
        dir.write("keys", keys(8, per_process));
        dir.run("query -v f keys").no_match();
        assert_eq!(dir.info("f")["items"], 8 * per_process + 1, "{kind}");
    }
    dir.only(&["f", "keys"]);
}

/// Additions, removals and doublings at the same time, beside a reader.
#[test]
fn add_remove_and_grow_at_once() {
    let dir = TestDir::in_memory();
    dir.write("old", keys(1, 60));
    dir.run(
        "build old -o f --items 2000 --fpr 0.0001 --kind tinyset --removable",
    )
    .success();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) {
                dir.run("verify f").success();
                dir.run("query -q f -k 0.59").success();
                dir.info("f");
                reads += 1;
            }
            reads
        });
        at_once(&dir, 6, |i| match i {
            0 => (0..50).map(|j| format!("remove f -k 0.{j}")).collect(),
            1 => vec!["grow f".into(); 3],
            _ => (0..30).map(|j| format!("add f -k {i}.{j}")).collect(),
        });
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    let info = dir.info("f");
    assert_eq!(info["items"], 60 - 50 + 4 * 30);
    assert_eq!(info["design_items"], 8 * 2000);
    let kept = (50..60).map(|j| format!("0.{j}\n"));
    let added =
        (2..6).flat_map(|i| (0..30).map(move |j| format!("{i}.{j}\n")));
    dir.write("keys", kept.chain(added).collect::<String>());
    dir.run("query -v f keys").no_match();
    dir.only(&["f", "keys", "old"]);
}

/// Starts `tamis add f -`, which holds the lock until its input ends.
fn slow_add(dir: &TestDir) -> Child {
    let mut slow = dir
        .command("add f -")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // More than a pipe buffers: after this write keys are being read, and
    // the lock was acquired before them.
    let input = slow.stdin.as_mut().unwrap();
    input.write_all(&b"pear\n".repeat(100_000)).unwrap();
    slow
}

fn finish(slow: Child) {
    let end = slow.wait_with_output().unwrap();
    assert_eq!(end.status.code(), Some(0), "{end:?}");
}

#[test]
fn a_writer_waits_as_long_as_it_is_told() {
    let dir = TestDir::new();
    dir.run(
        "build -k apple -o f --fpr 0.01 --kind tinyset --removable --items \
         1e6",
    )
    .success();
    let slow = slow_add(&dir);
    for verb in ["add f -k plum", "remove f -k apple", "grow f"] {
        let run = dir.run(&format!("{verb} --wait 0"));
        let message = run.refused();
        assert!(message.contains("a writer is using"), "{message}");
        assert!(message.contains("--wait"), "{message}");
        dir.run(&format!("{verb} --wait 0.05")).refused();
        dir.run(&format!("{verb} --wait -1")).status(2);
    }
    // Readers do not wait, and neither does a writer of another file.
    dir.run("query -q f -k apple").success();
    dir.run("merge f -o g").success();
    dir.run("grow f -o h").success();
    let waiting = thread::scope(|scope| {
        let run = scope.spawn(|| dir.run("add f -k plum --wait 600"));
        // The other writer ends while this one waits.
        finish(slow);
        run.join().unwrap()
    });
    waiting.success();
    for key in ["apple", "pear", "plum"] {
        dir.run(&format!("query -q f -k {key}")).success();
    }
    dir.only(&["f", "g", "h"]);
}

/// A rebuilt filter is not undone by an addition to the old one.
#[test]
fn build_waits_for_a_writer_of_its_output() {
    let dir = TestDir::new();
    dir.run("build -k apple -o f --fpr 0.01 --items 1e6").success();
    let slow = slow_add(&dir);
    thread::scope(|scope| {
        let build = "build -k plum -o f --fpr 1e-9 --force";
        let run = scope.spawn(|| dir.run(build));
        thread::sleep(std::time::Duration::from_millis(100));
        dir.run("query -q f -k apple").success();
        finish(slow);
        run.join().unwrap().success();
    });
    dir.run("query -q f -k plum").success();
    dir.run("query -q f -k pear").no_match();
}

/// Another program may replace a file without a lock.
#[test]
fn a_file_replaced_by_another_program_is_left_alone() {
    let dir = TestDir::new();
    dir.run("build -k apple -o f --fpr 0.01 --items 1e6").success();
    dir.run("build -k plum -o other --fpr 0.01").success();
    let slow = slow_add(&dir);
    let other = dir.read("other");
    std::fs::rename(dir.path("other"), dir.path("f")).unwrap();
    let end = slow.wait_with_output().unwrap();
    let message = String::from_utf8(end.stderr).unwrap();
    assert_eq!(end.status.code(), Some(2), "{message}");
    assert!(message.contains("run the command again"), "{message}");
    assert!(dir.read("f") == other);
}

/// Symbolic links lead to the lock of the file, not to one of their own.
#[cfg(unix)]
#[test]
fn writers_meet_at_the_file_and_not_at_its_name() {
    let dir = TestDir::in_memory();
    std::fs::create_dir(dir.path("d")).unwrap();
    dir.run("build -k a -o d/f --items 1000 --fpr 0.0001").success();
    std::os::unix::fs::symlink("d/f", dir.path("link")).unwrap();
    let absolute = dir.path("d/f").display().to_string();
    at_once(&dir, 3, |i| {
        let path = ["d/../link", "d/f", &absolute][i as usize];
        (0..30).map(|j| format!("add {path} -k {i}.{j}")).collect()
    });
    dir.write("keys", keys(3, 30));
    dir.run("query -v link keys").no_match();
    assert!(dir.path("link").is_symlink());
}

/// The lock needs no room for the name of the filter in its own.
#[test]
fn long_names_have_locks() {
    let dir = TestDir::new();
    let name = "n".repeat(255);
    dir.run(&format!("build -k a -o {name} --fpr 0.01")).success();
    dir.run(&format!("add {name} -k b")).success();
    ProgramRun::new(&mut dir.command(&format!("query {name} -k b")), None)
        .success();
    dir.only(&[&name]);
}
