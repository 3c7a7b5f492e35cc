//! Errors as one clear line with a hint.

use std::fmt;
use std::io;
use std::path::Path;

/// What a verb found: the difference between exit status 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Yes,
    No,
}

#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of our output went away.
    PipeClosed,
    /// Anything the user should read.
    Said(String),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self::Said(message.to_string())
    }

    /// Tells the user, if anyone listens.
    pub(crate) fn tell(&self) {
        use io::Write as _;
        let _ = writeln!(io::stderr(), "tamis: {self}");
    }

    /// What happened to which file, and what to do about it.
    pub(crate) fn file(path: &Path, error: &tamis::Error) -> Self {
        let hint = match error {
            tamis::Error::Io(error) => match error.kind() {
                io::ErrorKind::AlreadyExists => " (--force overwrites it)",
                io::ErrorKind::NotFound => " (is the path right?)",
                _ => "",
            },
            tamis::Error::NotTamis { .. } => {
                " (filters are made by `tamis build`)"
            }
            tamis::Error::Checksum { .. }
            | tamis::Error::Length { .. }
            | tamis::Error::TooShort { .. } => {
                " (damaged: fetch or build it again)"
            }
            tamis::Error::NotFoldable { .. } => {
                " (build it for more items, or keep it as it is)"
            }
            tamis::Error::Unsupported { operation: "remove", .. } => {
                " (build it with --kind tinyset --removable)"
            }
            _ => "",
        };
        Self::new(format_args!("{}: {error}{hint}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PipeClosed => f.write_str("the output was closed"),
            // One line, whatever a path or a library put into it.
            Self::Said(message) => f.write_str(&message.replace('\n', " ")),
        }
    }
}

impl From<tamis::Error> for Failure {
    fn from(error: tamis::Error) -> Self {
        Self::new(error)
    }
}

impl From<tamis_theory::Error> for Failure {
    fn from(error: tamis_theory::Error) -> Self {
        Self::new(error)
    }
}

/// An error while writing the output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::new(format_args!("cannot write the output: {error}")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}
