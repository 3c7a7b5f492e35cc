//! Compiling with the oldest supported Rust.
//!
//! Uses rustup's toolchain of that version. Without one, unpacks Debian's
//! packages of that version below `target/` and installs nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Cargo, Result, root, run, step, unpack_packages};

/// `rust-version` of the workspace.
const VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Debian's packages of that version, and their LLVM.
const PACKAGES: [&str; 4] =
    ["rustc-web", "libstd-rust-web-dev", "libstd-rust-web-1.85", "libllvm19"];

pub(crate) fn msrv() -> Result {
    step(&format!("oldest supported Rust, {VERSION}"));
    let Some((rustc, libraries)) = find()? else {
        println!(
            "SKIPPED: Rust {VERSION} is not installed (rustup toolchain \
             install {VERSION})"
        );
        return Ok(());
    };
    println!("using {}", rustc.display());
    Cargo::new("check --workspace --target-dir target/msrv")
        .env("RUSTC", &rustc.to_string_lossy())
        .env("LD_LIBRARY_PATH", &libraries)
        // Rust 1.85 does not count a bound of a public trait as a use.
        .env("RUSTFLAGS", "-D warnings -A unreachable_pub")
        .run()
}

/// Path of the compiler, and the directory of its libraries.
fn find() -> Result<Option<(PathBuf, String)>> {
    let rustup = Command::new("rustup")
        .args(["which", "--toolchain", VERSION, "rustc"])
        .output();
    if let Ok(output) = rustup {
        if output.status.success() {
            let path = String::from_utf8_lossy(&output.stdout);
            return Ok(Some((path.trim().into(), String::new())));
        }
    }
    let place = root().join("target/msrv-rustc");
    let rustc = place.join("usr/bin/rustc");
    if !rustc.exists() && unpack(&place).is_err() {
        return Ok(None);
    }
    let libraries = place.join("usr/lib/x86_64-linux-gnu");
    Ok(Some((rustc, libraries.to_string_lossy().into_owned())))
}

fn unpack(place: &Path) -> Result {
    let version = exact_version().ok_or("not in Debian's lists")?;
    std::fs::create_dir_all(place).map_err(|error| error.to_string())?;
    for package in PACKAGES {
        let mut download = Command::new("apt-get");
        download.current_dir(place).args(["download", "--quiet"]);
        match package.starts_with("lib") && package.contains("llvm") {
            true => download.arg(package),
            false => download.arg(format!("{package}={version}")),
        };
        run(download)?;
    }
    unpack_packages(place)
}

/// Full version of Debian's package of [`VERSION`].
fn exact_version() -> Option<String> {
    let list = || {
        let output = Command::new("apt-cache")
            .args(["madison", PACKAGES[0]])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().find_map(|line| {
            let version = line.split('|').nth(1)?.trim();
            version.starts_with(VERSION).then(|| version.to_owned())
        })
    };
    list().or_else(|| {
        // A fresh machine has no package lists.
        let mut update = Command::new("apt-get");
        update.args(["update", "--quiet"]);
        run(update).ok()?;
        list()
    })
}
