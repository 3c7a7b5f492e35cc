//! Key sources, read in chunks.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indicatif::ProgressBar;

use super::{KeyChunk, KeyFormat};
use crate::failure::{Failure, Result};

/// Bytes of a chunk. Smaller chunks cause lock contention between the
/// inserting threads; larger ones add to the memory of every thread.
const CHUNK_BYTES: usize = 1 << 18;

/// KeySource of keys.
#[derive(Debug)]
pub(crate) enum KeySource {
    Stdin,
    File {
        path: PathBuf,
        bytes: u64,
        compression: Compression,
        seekable: bool,
    },
    /// Encoded keys from the command line.
    Memory(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl KeySource {
    pub(super) fn new(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdin);
        }
        let metadata = path.metadata().map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => {
                    " (expected a file of keys; --key takes a key)"
                }
                _ => "",
            };
            Failure::new(format_args!("{}: {error}{hint}", path.display()))
        })?;
        if metadata.is_dir() {
            return Err(Failure::new(format_args!(
                "{}: expected a file of keys, found a directory",
                path.display()
            )));
        }
        let compression = match path.extension().and_then(|e| e.to_str()) {
            Some("gz") => Compression::Gzip,
            Some("zst") => Compression::Zstd,
            _ => Compression::None,
        };
        Ok(Self::File {
            path: path.to_owned(),
            bytes: metadata.len(),
            compression,
            seekable: metadata.is_file(),
        })
    }

    /// True if a second pass is possible without decompressing again.
    pub(crate) fn is_rereadable(&self) -> bool {
        match self {
            Self::Stdin => false,
            Self::File { compression, seekable, .. } => {
                *seekable && *compression == Compression::None
            }
            Self::Memory(_) => true,
        }
    }

    /// Size in bytes, `None` for pipes.
    fn bytes(&self) -> Option<u64> {
        match self {
            Self::Stdin => None,
            Self::File { bytes, seekable, .. } => seekable.then_some(*bytes),
            Self::Memory(keys) => Some(keys.len() as u64),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".into(),
            Self::File { path, .. } => path.display().to_string(),
            Self::Memory(_) => "--key".into(),
        }
    }

    fn open(&self, bar: &ProgressBar) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Stdin => Box::new(bar.wrap_read(io::stdin())),
            Self::Memory(keys) => {
                Box::new(bar.wrap_read(Cursor::new(keys.clone())))
            }
            Self::File { path, compression, .. } => {
                let file = bar.wrap_read(File::open(path)?);
                match compression {
                    Compression::None => Box::new(file),
                    Compression::Gzip => {
                        Box::new(flate2::read::MultiGzDecoder::new(file))
                    }
                    Compression::Zstd => {
                        Box::new(zstd::stream::read::Decoder::new(file)?)
                    }
                }
            }
        })
    }
}

/// Iterator over the chunks of all sources in order. Stops at the first
/// error, which [`finish`](Feed::finish) returns.
pub(crate) struct Feed<'a> {
    sources: std::slice::Iter<'a, KeySource>,
    format: KeyFormat,
    open: Option<OpenSource>,
    bar: ProgressBar,
    failure: Option<Failure>,
}

struct OpenSource {
    reader: Box<dyn Read + Send>,
    name: Arc<str>,
    /// First bytes of an incomplete key.
    carry: Vec<u8>,
    keys: u64,
    /// Return complete keys without filling the chunk: the writer of a pipe
    /// may wait for the results before it writes more.
    eager: bool,
}

impl<'a> Feed<'a> {
    pub(super) fn new(
        verb: &'static str,
        sources: &'a [KeySource],
        format: KeyFormat,
    ) -> Self {
        let total = sources.iter().map(KeySource::bytes).sum();
        Self {
            sources: sources.iter(),
            format,
            open: None,
            bar: crate::progress::bytes(verb, total),
            failure: None,
        }
    }

    /// Clears the progress bar and returns the first error.
    pub(crate) fn finish(self) -> Result<()> {
        self.bar.finish_and_clear();
        self.failure.map_or(Ok(()), Err)
    }

    /// Stops the feed because of an error in a chunk.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    fn pull(&mut self) -> Result<Option<KeyChunk>> {
        loop {
            if let Some(open) = &mut self.open {
                if let Some(chunk) = open.pull(self.format)? {
                    return Ok(Some(chunk));
                }
                self.open = None;
            }
            let Some(source) = self.sources.next() else { return Ok(None) };
            let name = source.name();
            let reader = source.open(&self.bar).map_err(|error| {
                Failure::new(format_args!("{name}: {error}"))
            })?;
            self.open = Some(OpenSource {
                reader,
                name: name.into(),
                carry: Vec::new(),
                keys: 0,
                eager: source.bytes().is_none(),
            });
        }
    }
}

impl Iterator for Feed<'_> {
    type Item = KeyChunk;

    fn next(&mut self) -> Option<KeyChunk> {
        if self.failure.is_some() {
            return None;
        }
        match self.pull() {
            Ok(chunk) => chunk,
            Err(failure) => {
                self.fail(failure);
                None
            }
        }
    }
}

impl OpenSource {
    fn pull(&mut self, format: KeyFormat) -> Result<Option<KeyChunk>> {
        let mut bytes = std::mem::take(&mut self.carry);
        let mut used = bytes.len();
        let mut wanted = used + CHUNK_BYTES;
        let complete = loop {
            bytes.resize(wanted, 0);
            let read = match self.reader.read(&mut bytes[used..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    continue;
                }
                result => result.map_err(|error| {
                    Failure::new(format_args!("{}: {error}", self.name))
                })?,
            };
            used += read;
            if read == 0 {
                // End of the source: the last key may lack its delimiter.
                break used;
            }
            if used < wanted && !self.eager {
                continue;
            }
            match format.complete_len(&bytes[..used]) {
                // The key is longer than the chunk.
                0 if used == wanted => wanted *= 2,
                0 => {}
                complete => break complete,
            }
        };
        bytes.truncate(used);
        if bytes.is_empty() {
            return Ok(None);
        }
        self.carry.extend_from_slice(&bytes[complete..]);
        bytes.truncate(complete);
        let chunk = KeyChunk {
            bytes,
            format,
            name: self.name.clone(),
            keys_before: self.keys,
        };
        // The count is used in error messages; keys of the other formats
        // cannot be invalid.
        if matches!(format, KeyFormat::Hex | KeyFormat::U64le) {
            self.keys += chunk.count();
        }
        Ok(Some(chunk))
    }
}
