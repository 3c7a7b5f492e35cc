//! Error messages of one line each, with a hint, and exit statuses.

use std::fmt;
use std::io;
use std::path::Path;

/// Exit status of a verb that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Status 0.
    Success,
    /// Status 1: no key selected or removed, or damage found.
    Negative,
    /// Status 2, after the message was printed.
    Failure,
}

impl Exit {
    /// `Success` if `found`, otherwise `Negative`.
    pub(crate) fn success_if(found: bool) -> Self {
        if found { Self::Success } else { Self::Negative }
    }
}

#[derive(Debug)]
pub(crate) enum Failure {
    /// Standard output was closed by its reader.
    PipeClosed,
    /// Error message for the user.
    Message(String),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self::Message(message.to_string())
    }

    /// Prints the message, after which a verb goes on with its next file. A
    /// closed standard output ends it.
    pub(crate) fn continue_after(self) -> Result<Exit> {
        if matches!(self, Self::PipeClosed) {
            return Err(self);
        }
        self.print();
        Ok(Exit::Failure)
    }

    /// Prints the message to stderr; a closed stderr is ignored.
    pub(crate) fn print(&self) {
        use io::Write as _;
        let _ = writeln!(io::stderr(), "tamis: {self}");
    }

    /// Error of the library about the file `path`, with a hint.
    pub(crate) fn file(path: &Path, error: &tamis::Error) -> Self {
        let hint = match error {
            tamis::Error::Io(error) => match error.kind() {
                io::ErrorKind::AlreadyExists => " (--force overwrites it)",
                io::ErrorKind::NotFound => " (check the path)",
                _ => "",
            },
            tamis::Error::Busy { .. } => {
                " (run the command again, or wait longer with --wait)"
            }
            tamis::Error::Replaced => " (run the command again)",
            tamis::Error::NotTamis { .. } => {
                " (expected a filter written by `tamis build`)"
            }
            tamis::Error::Checksum { .. }
            | tamis::Error::Length { .. }
            | tamis::Error::TooShort { .. } => {
                " (the file is damaged: copy or build it again)"
            }
            tamis::Error::NotFoldable { .. } => {
                " (use it unfolded, or build it for more --items)"
            }
            tamis::Error::Unsupported {
                operation: "add keys in place" | "remove keys in place",
                ..
            } => " (omit --in-place)",
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
            Self::PipeClosed => f.write_str("standard output was closed"),
            Self::Message(message) => f.write_str(&printable(message)),
        }
    }
}

/// Escapes control characters, which paths and keys may contain: a message
/// has one line, and no effect on the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    out
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

/// Error while writing to standard output. Errors of other files are
/// converted with the path, by [`Failure::file`].
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
