//! docs/cookbook.md, run as printed.
#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::TestDir;

const COOKBOOK: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cookbook.md");

/// Output of a command line, messages included, in the directory of a job.
fn run(dir: &TestDir, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_tamis"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(dir.path(""))
        .env("PATH", path)
        .env("TMPDIR", dir.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // 1: no key was selected.
    let ended = matches!(output.status.code(), Some(0 | 1));
    assert!(ended, "{command}: {:?}\n{text}", output.status);
    text
}

#[test]
fn every_job_of_the_cookbook_prints_its_output() {
    let text = std::fs::read_to_string(COOKBOOK).unwrap();
    let jobs: Vec<&str> = text.split("\n## ").skip(1).collect();
    assert_eq!(jobs.len(), 8);
    for job in jobs {
        let dir = TestDir::new();
        let blocks = job.split("```console\n").skip(1);
        let (mut printed, mut found) = (String::new(), String::new());
        for line in blocks.flat_map(|block| {
            let end = block.find("```").unwrap();
            block[..end].lines()
        }) {
            printed += &format!("{line}\n");
            if let Some(command) = line.strip_prefix("$ ") {
                found += &format!("{line}\n{}", run(&dir, command));
            }
        }
        assert_eq!(found, printed);
    }
}
