//! Files and standard input, read in chunks.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indicatif::ProgressBar;

use super::{Chunk, Format};
use crate::failure::{Failure, Result};

/// Bytes handed out at a time: large enough that threads seldom meet, small
/// enough that all of them together stay far below the memory promised.
const CHUNK: usize = 1 << 18;

/// Somewhere keys come from.
#[derive(Debug)]
pub(crate) enum Source {
    Stdin,
    File {
        path: PathBuf,
        bytes: u64,
        packing: Packing,
        seekable: bool,
    },
    /// Keys from the command line.
    Memory(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Source {
    pub(super) fn new(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdin);
        }
        let metadata = path.metadata().map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => {
                    " (a key itself is given with --key)"
                }
                _ => "",
            };
            Failure::new(format_args!("{}: {error}{hint}", path.display()))
        })?;
        if metadata.is_dir() {
            return Err(Failure::new(format_args!(
                "{}: is a directory, not a file of keys",
                path.display()
            )));
        }
        let packing = match path.extension().and_then(|e| e.to_str()) {
            Some("gz") => Packing::Gzip,
            Some("zst") => Packing::Zstd,
            _ => Packing::Plain,
        };
        Ok(Self::File {
            path: path.to_owned(),
            bytes: metadata.len(),
            packing,
            seekable: metadata.is_file(),
        })
    }

    /// Whether reading it twice is possible and cheap.
    pub(crate) fn is_rereadable(&self) -> bool {
        match self {
            Self::Stdin => false,
            Self::File { packing, seekable, .. } => {
                *seekable && *packing == Packing::Plain
            }
            Self::Memory(_) => true,
        }
    }

    /// Bytes on disk, if known.
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
            Self::File { path, packing, .. } => {
                let file = bar.wrap_read(File::open(path)?);
                match packing {
                    Packing::Plain => Box::new(file),
                    Packing::Gzip => {
                        Box::new(flate2::read::MultiGzDecoder::new(file))
                    }
                    Packing::Zstd => {
                        Box::new(zstd::stream::read::Decoder::new(file)?)
                    }
                }
            }
        })
    }
}

/// All sources one after the other, as chunks. Ends at the first error,
/// which [`finish`](Feed::finish) returns.
pub(crate) struct Feed<'a> {
    sources: std::slice::Iter<'a, Source>,
    format: Format,
    open: Option<Open>,
    bar: ProgressBar,
    failure: Option<Failure>,
}

struct Open {
    reader: Box<dyn Read + Send>,
    name: Arc<str>,
    /// The beginning of a key whose end has not been read yet.
    carry: Vec<u8>,
    keys: u64,
    /// Hand out what there is: whoever writes to a pipe may wait for the
    /// answer before writing on.
    eager: bool,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(
        what: &'static str,
        sources: &'a [Source],
        format: Format,
    ) -> Self {
        let total = sources.iter().map(Source::bytes).sum();
        Self {
            sources: sources.iter(),
            format,
            open: None,
            bar: crate::progress::bytes(what, total),
            failure: None,
        }
    }

    /// Removes the progress bar, and says whether everything was read.
    pub(crate) fn finish(self) -> Result<()> {
        self.bar.finish_and_clear();
        self.failure.map_or(Ok(()), Err)
    }

    /// Ends the feed with an error found in a chunk.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    fn pull(&mut self) -> Result<Option<Chunk>> {
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
            self.open = Some(Open {
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
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
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

impl Open {
    fn pull(&mut self, format: Format) -> Result<Option<Chunk>> {
        let mut bytes = std::mem::take(&mut self.carry);
        let mut used = bytes.len();
        let mut wanted = used + CHUNK;
        let whole = loop {
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
                // The end: the last key may lack its delimiter.
                break used;
            }
            if used < wanted && !self.eager {
                continue;
            }
            match format.whole(&bytes[..used]) {
                // A key longer than the chunk: read on.
                0 if used == wanted => wanted *= 2,
                0 => {}
                whole => break whole,
            }
        };
        bytes.truncate(used);
        if bytes.is_empty() {
            return Ok(None);
        }
        self.carry.extend_from_slice(&bytes[whole..]);
        bytes.truncate(whole);
        let chunk = Chunk {
            bytes,
            format,
            name: self.name.clone(),
            keys_before: self.keys,
        };
        // Only messages need the count, and only these can be wrong.
        if matches!(format, Format::Hex | Format::U64le) {
            self.keys += chunk.count();
        }
        Ok(Some(chunk))
    }
}
