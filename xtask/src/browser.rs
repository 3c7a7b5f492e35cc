//! Opening the pages in headless Chromium.
//!
//! Chromium is the machine's own (Debian's package `chromium`). Its driver,
//! playwright-core, comes from npm by the lock file in `xtask/browser`.

use std::process::Command;

use crate::run::{Cargo, Result, root, run, step};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const DRIVER: [&str; 3] = ["package.json", "package-lock.json", "drive.mjs"];

/// Checks the explorer and the report, and writes screenshots to
/// `target/browser`.
pub(crate) fn browser() -> Result {
    step("pages in a browser");
    let starts = |program: &&str| {
        let version = Command::new(program).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let Some(chromium) = BROWSERS.iter().find(|name| starts(name)) else {
        println!("SKIPPED: no chromium (apt-get install chromium)");
        return Ok(());
    };
    let root = root();
    let place = root.join("target/browser");
    std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    for name in DRIVER {
        let from = root.join("xtask/browser").join(name);
        std::fs::copy(&from, place.join(name))
            .map_err(|error| format!("{}: {error}", from.display()))?;
    }
    let mut install = Command::new("npm");
    install.current_dir(&place).args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
    ]);
    run(install)?;
    Cargo::new(
        "run --quiet --release -p tamis-cli --features lab -- lab run all \
         --quick -o target/browser/report",
    )
    .run()?;
    let mut drive = Command::new("node");
    drive
        .current_dir(&place)
        .arg("drive.mjs")
        .arg(program(chromium)?)
        .arg(&place)
        .arg(root.join("docs/explorer/index.html"))
        .arg(place.join("report/report.html"));
    run(drive)?;
    println!("screenshots: {}", place.display());
    Ok(())
}

/// Path of a program, which the driver needs.
fn program(name: &str) -> Result<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{name} is in no directory of PATH"))
}
