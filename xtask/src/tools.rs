//! Programs from crates.io, installed into `target/tools`.

use std::path::PathBuf;

use crate::run::{Cargo, Result, root};

fn programs() -> PathBuf {
    root().join("target/tools/bin")
}

/// An empty file beside the program, named after its version.
fn mark(name: &str, version: &str) -> PathBuf {
    programs().join(format!("{name}-{version}"))
}

pub(crate) fn is_installed(name: &str, version: &str) -> bool {
    mark(name, version).exists()
}

/// Installs a version of a program, once, with the versions of its lock file.
fn install(name: &str, version: &str) -> Result {
    if !is_installed(name, version) {
        Cargo::new(&format!(
            "install --quiet --locked --root target/tools {name}@{version}"
        ))
        .run()?;
        std::fs::write(mark(name, version), "")
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// A cargo subcommand of a program, which is installed first.
pub(crate) fn cargo(name: &str, version: &str, words: &str) -> Result<Cargo> {
    install(name, version)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(programs()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(all).map_err(|e| e.to_string())?;
    Ok(Cargo::new(words).env("PATH", &path.to_string_lossy()))
}
