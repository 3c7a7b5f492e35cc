//! Sources of keys: files, standard input and the command line.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use super::compression::{self, Codec};
use super::unicode;
use crate::failure::{Failure, Result};
use crate::progress::Progress;

/// Source of keys, not yet open.
#[derive(Debug)]
pub(crate) enum KeySource {
    Stdin,
    File {
        path: PathBuf,
        /// Size; `None` for pipes and devices.
        bytes: Option<u64>,
        codec: Option<Codec>,
    },
    /// Encoded keys from the command line.
    Memory(Vec<u8>),
}

impl KeySource {
    pub(crate) fn new(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdin);
        }
        let failed = |error: &io::Error, hint: &str| {
            Failure::new(format_args!("{}: {error}{hint}", path.display()))
        };
        let metadata =
            path.metadata().map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => failed(
                    &error,
                    " (expected a file of keys; --key takes a key)",
                ),
                _ => failed(&error, ""),
            })?;
        if metadata.is_dir() {
            return Err(Failure::new(format_args!(
                "{}: expected a file of keys, found a directory",
                path.display()
            )));
        }
        // A pipe is not opened before its turn: that would wait for a writer.
        let (bytes, codec) = match metadata.is_file() {
            true => {
                let codec = compression::of_file(path)
                    .map_err(|error| failed(&error, ""))?;
                (Some(metadata.len()), codec)
            }
            false => (None, None),
        };
        Ok(Self::File { path: path.to_owned(), bytes, codec })
    }

    pub(crate) fn is_stdin(&self) -> bool {
        matches!(self, Self::Stdin)
    }

    /// True if a second pass is possible without decompressing again.
    pub(super) fn is_rereadable(&self) -> bool {
        match self {
            Self::Stdin => false,
            Self::File { bytes, codec, .. } => {
                bytes.is_some() && codec.is_none()
            }
            Self::Memory(_) => true,
        }
    }

    /// Size in bytes, `None` for pipes.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Stdin => None,
            Self::File { bytes, .. } => *bytes,
            Self::Memory(keys) => Some(keys.len() as u64),
        }
    }

    /// Name for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".into(),
            Self::File { path, .. } => path.display().to_string(),
            Self::Memory(_) => "--key".into(),
        }
    }

    /// Reader of the decompressed bytes; of UTF-8 text without byte order
    /// mark, if they are text. `progress` counts the bytes as stored.
    pub(crate) fn open(
        &self,
        progress: &Progress,
        is_text: bool,
    ) -> io::Result<Box<dyn Read + Send>> {
        let reader = match self {
            Self::Stdin => {
                compression::decompress(progress.wrap(io::stdin()))?
            }
            Self::File { path, .. } => {
                compression::decompress(progress.wrap(File::open(path)?))?
            }
            Self::Memory(keys) => {
                let keys = Cursor::new(keys.clone());
                return Ok(Box::new(progress.wrap(keys)));
            }
        };
        match is_text {
            true => unicode::utf8(reader),
            false => Ok(reader),
        }
    }
}
