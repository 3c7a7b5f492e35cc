//! Several processes that change one file.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

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
        thread::sleep(Duration::from_millis(100));
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

/// Sends `signal` to `child` once it is writing its output, an unnamed file;
/// returns whether that happened.
#[cfg(target_os = "linux")]
fn interrupt(child: &mut Child, signal: &str) -> bool {
    let open = format!("/proc/{}/fd", child.id());
    let is_writing = || {
        let links = std::fs::read_dir(&open).ok()?;
        let deleted = |link: std::path::PathBuf| {
            let name = link.read_link().ok()?;
            let name = name.to_str()?.ends_with(" (deleted)");
            (name && link.metadata().ok()?.len() > 0).then_some(())
        };
        links.flatten().find_map(|link| deleted(link.path()))
    };
    while child.try_wait().unwrap().is_none() {
        if is_writing().is_some() {
            let id = child.id().to_string();
            Command::new("kill").args([signal, &id]).status().unwrap();
            return !child.wait().unwrap().success();
        }
    }
    false
}

/// A file without a name is gone with its writer.
#[cfg(target_os = "linux")]
#[test]
fn killed_writers_leave_no_temporary_file() {
    let dir = TestDir::new();
    // Large enough that writing takes tens of milliseconds.
    let sizes = "--items 2e7 --fpr 0.01 --kind blocked";
    dir.run(&format!("build -k apple -o f {sizes}")).success();
    let before = dir.read("f");
    for signal in ["-INT", "-TERM", "-HUP", "-KILL"] {
        let build = format!("build -k pear -o new {sizes}");
        let replace = format!("build -k pear -o f --force {sizes}");
        for command in [&build, &replace, "add f -k pear"] {
            // The program may end before the signal.
            let interrupted = (0..10).any(|_| {
                let mut command = dir.command(command);
                let silent = command.stdout(Stdio::null());
                let interrupted =
                    interrupt(&mut silent.spawn().unwrap(), signal);
                if !interrupted {
                    std::fs::write(dir.path("f"), &before).unwrap();
                    let _ = std::fs::remove_file(dir.path("new"));
                }
                interrupted
            });
            assert!(interrupted, "{signal} {command}");
            let mut left = dir.files();
            // The lock of `add` is an empty file, until the next writer.
            left.retain(|name| {
                let path = dir.path(name.to_str().unwrap());
                path.metadata().unwrap().len() > 0
            });
            assert_eq!(left, ["f".into()].into(), "{signal} {command}");
            assert!(dir.read("f") == before, "{signal} {command}");
        }
    }
    dir.run("build -k a -o g --fpr 0.01").success();
    dir.only(&["f", "g"]);
}

/// Temporary files of file systems without unnamed ones, and locks.
#[test]
fn the_next_writer_removes_stale_files() {
    let dir = TestDir::new();
    dir.run("build -k a -o f --fpr 0.01 --items 1e6").success();
    for verb in ["build -k b -o g --fpr 0.01", "add f -k b"] {
        dir.write(".tamis-0123abcd", "stale");
        dir.write(".tamis-lock-0123456789abcdef", "");
        let slow = slow_add(&dir);
        let writer = verb.starts_with("build");
        if writer {
            dir.run(verb).success();
            // The lock of the writer at work remains.
            assert_eq!(dir.files().len(), 3);
            dir.run("add f -k c --wait 0").refused();
        }
        finish(slow);
        if !writer {
            dir.run(verb).success();
        }
        dir.only(&["f", "g"]);
    }
}

/// Runs as root only: other users cannot give files away.
#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_owner_and_group() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;
    let dir = TestDir::new();
    dir.run("build -k apple -o f --fpr 0.01 --items 100").success();
    let path = dir.path("f");
    if chown(&path, Some(1), Some(1)).is_err() {
        eprintln!("skipped: needs the right to change owners");
        return;
    }
    let state = || {
        let found = path.metadata().unwrap();
        (found.uid(), found.gid(), found.mode() & 0o7777)
    };
    let set_mode = |path: &std::path::Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).unwrap();
    };
    set_mode(&path, 0o640);
    dir.run("add f -k pear").success();
    assert_eq!(state(), (1, 1, 0o640));
    dir.run("build -k plum -o f --fpr 0.01 --force").success();
    assert_eq!(state(), (1, 1, 0o640));

    // Another user may neither keep the owner nor a group of others, who
    // then get no permission that they had not.
    set_mode(dir.path("").as_path(), 0o777);
    let add = |groups: u32, key: &str| {
        let mut command = dir.command(&format!("add f -k {key}"));
        command.uid(2).gid(groups);
        ProgramRun::new(&mut command, None)
    };
    set_mode(&path, 0o664);
    add(1, "member").success();
    assert_eq!(state(), (2, 1, 0o664));
    add(7, "stranger").success();
    assert_eq!(state(), (2, 7, 0o644));
}
