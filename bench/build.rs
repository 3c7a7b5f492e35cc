//! Notes the compiler's version: a time means nothing without it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let version = output.map_or("rustc, version unknown".into(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    println!("cargo::rustc-env=RUSTC_VERSION={version}");
}
