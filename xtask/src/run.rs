//! Running other programs.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// Prints the heading of a step.
pub(crate) fn step(title: &str) {
    println!("\n== {title}");
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// A cargo command that runs in the root of the repository.
pub(crate) struct Cargo(Command);

impl Cargo {
    pub(crate) fn new(words: &str) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root()).args(words.split_whitespace());
        Self(command)
    }

    pub(crate) fn words(mut self, words: &str) -> Self {
        self.0.args(words.split_whitespace());
        self
    }

    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.0.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    pub(crate) fn run(self) -> Result {
        run(self.0)
    }
}

/// Prints and runs a command. Fails if its exit status is not zero.
pub(crate) fn run(mut command: Command) -> Result {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let shown = words.join(" ");
    println!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed: {status}")),
        Err(error) => Err(format!("`{shown}` cannot be run: {error}")),
    }
}

/// Unpacks the Debian packages in a directory into that directory, without
/// installing them.
pub(crate) fn unpack_packages(place: &Path) -> Result {
    let entries =
        std::fs::read_dir(place).map_err(|error| error.to_string())?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "deb") {
            let mut unpack = Command::new("dpkg");
            unpack.arg("-x").arg(path).arg(place);
            run(unpack)?;
        }
    }
    Ok(())
}
