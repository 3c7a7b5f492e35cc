//! Licences, sources and duplicate versions of the dependencies, by the rules
//! in `deny.toml`.

use crate::run::{Result, step};
use crate::tools;

const VERSION: &str = "0.20.2";

/// Whether cargo-deny was compiled before, which takes minutes.
pub(crate) fn is_installed() -> bool {
    tools::is_installed("cargo-deny", VERSION)
}

pub(crate) fn deny() -> Result {
    step("dependencies");
    for manifest in ["Cargo.toml", "python/Cargo.toml"] {
        // No advisories: their database needs the network. A version that only
        // one of the manifests has twice is a skip that the other lacks.
        let words = format!(
            "deny --manifest-path {manifest} --config deny.toml check \
             -A unmatched-skip -A unnecessary-skip licenses bans sources"
        );
        tools::cargo("cargo-deny", VERSION, &words)?.run()?;
    }
    Ok(())
}
