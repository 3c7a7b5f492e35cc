//! `tamis completions`.

use std::io::Write as _;

use clap_complete::Shell;

use crate::failure::{Exit, Result};

/// Print a completion script for a shell
///
/// For example, `tamis completions bash > /etc/bash_completion.d/tamis`, or
/// `source <(tamis completions zsh)` in the shell's start file.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Shell
    shell: Shell,
}

impl Args {
    pub(crate) fn run(&self, mut command: clap::Command) -> Result<Exit> {
        // `generate` panics if it cannot write.
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut command,
            "tamis",
            &mut script,
        );
        std::io::stdout().write_all(&script)?;
        Ok(Exit::Success)
    }
}
