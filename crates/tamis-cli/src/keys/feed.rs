//! Chunks of all sources, in order.

use std::io::{self, Read};
use std::iter::Enumerate;
use std::sync::Arc;

use super::KeyInput;
use super::chunk::{KeyChunk, SourceInfo};
use super::csv::{Header, Table};
use super::format::{Notation, Scanner};
use super::source::KeySource;
use crate::failure::{Failure, Result};
use crate::progress::{Extent, Progress, Work};
use crate::report::count;

/// Bytes of a chunk. Smaller chunks cause lock contention between the
/// inserting threads; larger ones add to the memory of every thread.
const CHUNK_BYTES: usize = 1 << 18;

/// Iterator over the chunks of all sources in order. Stops at the first
/// error, which [`finish`](Feed::finish) returns.
pub(crate) struct Feed<'a> {
    input: &'a KeyInput,
    sources: Enumerate<std::slice::Iter<'a, KeySource>>,
    open: Option<OpenSource>,
    /// Keys of the chunks so far, if they are limited.
    keys: u64,
    progress: Progress,
    failure: Option<Failure>,
}

impl<'a> Feed<'a> {
    pub(super) fn new(
        verb: &'static str,
        input: &'a KeyInput,
        prints_rows: bool,
    ) -> Self {
        let sources = &input.sources;
        let work = Work {
            verb,
            extent: (sources.iter().map(KeySource::bytes).sum::<Option<_>>())
                .map_or(Extent::Stream, Extent::Bytes),
            reads_stdin: sources.iter().any(KeySource::is_stdin),
            prints_rows,
        };
        Self {
            input,
            sources: sources.iter().enumerate(),
            open: None,
            keys: 0,
            progress: Progress::new(work),
            failure: None,
        }
    }

    /// Clears the progress bar and returns the first error.
    pub(crate) fn finish(self) -> Result<()> {
        drop(self.progress);
        self.failure.map_or(Ok(()), Err)
    }

    /// Stops the feed because of an error in a chunk.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Continues with the next source.
    pub(crate) fn skip_source(&mut self) {
        self.open = None;
    }

    fn pull(&mut self) -> Result<Option<KeyChunk>> {
        loop {
            if let Some(open) = &mut self.open {
                if let Some(chunk) = open.pull(&self.input.notation)? {
                    self.check_keys(&chunk)?;
                    return Ok(Some(chunk));
                }
                self.open = None;
            }
            let Some((index, source)) = self.sources.next() else {
                return Ok(None);
            };
            let name = source.name();
            let reader = source
                .open(&self.progress, self.input.notation.is_text())
                .map_err(|error| {
                    Failure::new(format_args!("{name}: {error}"))
                })?;
            let info =
                SourceInfo { index, name, header: Vec::new(), column: 0 };
            let eager = source.bytes().is_none();
            self.open = Some(OpenSource::new(reader, info, eager, self.input));
        }
    }

    fn check_keys(&mut self, chunk: &KeyChunk) -> Result<()> {
        let Some(max_keys) = self.input.max_keys else { return Ok(()) };
        self.keys += chunk.count();
        if self.keys > max_keys {
            return Err(Failure::new(format_args!(
                "{}: the input has more than {} keys (--max-keys)",
                chunk.source().name(),
                count(max_keys)
            )));
        }
        Ok(())
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

struct OpenSource {
    reader: Box<dyn Read + Send>,
    info: Arc<SourceInfo>,
    /// Table whose header has not been read.
    table: Option<Table>,
    scanner: Scanner,
    /// First bytes of an incomplete row, already scanned.
    carry: Vec<u8>,
    rows: u64,
    /// Return complete rows without filling the chunk: the writer of a pipe
    /// may wait for the results before it writes more.
    eager: bool,
    ended: bool,
    /// Bytes in which the end of a row was searched.
    #[cfg(test)]
    scanned: usize,
}

impl OpenSource {
    fn new(
        reader: Box<dyn Read + Send>,
        info: SourceInfo,
        eager: bool,
        input: &KeyInput,
    ) -> Self {
        Self {
            reader,
            info: Arc::new(info),
            table: input.table.clone(),
            scanner: input.notation.scanner(),
            carry: Vec::new(),
            rows: 0,
            eager,
            ended: false,
            #[cfg(test)]
            scanned: 0,
        }
    }

    fn pull(&mut self, notation: &Arc<Notation>) -> Result<Option<KeyChunk>> {
        let Some((mut bytes, mut rows)) = self.read_rows(notation)? else {
            return Ok(None);
        };
        if let Some(table) = self.table.take() {
            let SourceInfo { index, ref name, .. } = *self.info;
            let Header { row: header, column } =
                table.take_header(&mut bytes).map_err(|reason| {
                    Failure::new(format_args!("{name}: {reason}"))
                })?;
            self.rows = u64::from(!header.is_empty());
            rows -= self.rows;
            let name = name.clone();
            self.info = Arc::new(SourceInfo { index, name, header, column });
        }
        let rows_before = self.rows;
        self.rows += rows;
        Ok(Some(KeyChunk {
            bytes,
            notation: notation.clone(),
            source: self.info.clone(),
            rows,
            rows_before,
        }))
    }

    /// Reads complete rows and counts them; `None` at the end.
    fn read_rows(
        &mut self,
        notation: &Notation,
    ) -> Result<Option<(Vec<u8>, u64)>> {
        let failed = |reason: &dyn std::fmt::Display| {
            Failure::new(format_args!("{}: {reason}", self.info.name))
        };
        // A terminal would wait for more input after its end.
        if self.ended {
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.carry);
        let mut used = bytes.len();
        let mut scanned = used;
        let mut wanted = used + CHUNK_BYTES;
        let (complete, rows) = loop {
            bytes.resize(wanted, 0);
            let read = match self.reader.read(&mut bytes[used..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    continue;
                }
                result => result.map_err(|error| failed(&error))?,
            };
            used += read;
            if read > 0 && used < wanted && !self.eager {
                continue;
            }
            let new = &bytes[scanned..used];
            #[cfg(test)]
            {
                self.scanned += new.len();
            }
            let boundary = self.scanner.push(new);
            if read == 0 {
                self.ended = true;
                // The last row may lack its end.
                let (rest, rows) = match boundary {
                    Some((end, rows)) => (&new[end..], rows),
                    None => (&bytes[..used], 0),
                };
                let rows = rows + self.scanner.finish(rest);
                if self.rows == 0 && rows == 1 {
                    notation
                        .check_only_row(&bytes[..used])
                        .map_err(|reason| failed(&reason))?;
                }
                break (used, rows);
            }
            match boundary {
                Some((end, rows)) => break (scanned + end, rows),
                None => scanned = used,
            }
            if used > notation.max_len {
                let number = self.rows + 1;
                let name = notation.row_name();
                let reason = notation.too_long();
                return Err(failed(&format_args!(
                    "{name} {number}: {reason}"
                )));
            }
            if used == wanted {
                // At most `max_len`: more is refused above.
                wanted = (2 * wanted).min(notation.max_len + CHUNK_BYTES);
            }
        };
        bytes.truncate(used);
        if bytes.is_empty() {
            return Ok(None);
        }
        self.carry.extend_from_slice(&bytes[complete..]);
        bytes.truncate(complete);
        Ok(Some((bytes, rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::StoredFormat;
    use super::super::csv::Csv;
    use super::super::format::{Rows, Text};
    use super::*;

    /// Pipe with one key of 32 MiB between short ones; a read returns at most
    /// 64 KiB.
    struct Pipe {
        position: usize,
    }

    const LONG: usize = 32 << 20;

    impl Read for Pipe {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let left = (LONG + 7).saturating_sub(self.position);
            let len = buffer.len().min(1 << 16).min(left);
            for (offset, byte) in buffer[..len].iter_mut().enumerate() {
                let position = self.position + offset;
                *byte = match position {
                    2 => b'\n',
                    _ if position == LONG + 3 => b'\n',
                    _ => b'x',
                };
            }
            self.position += len;
            Ok(len)
        }
    }

    fn open(
        eager: bool,
        rows: Rows,
        max_len: usize,
    ) -> (OpenSource, KeyInput) {
        let notation =
            Notation { rows, text: Text::Plain, max_len, is_default: true };
        let input = KeyInput {
            sources: Vec::new(),
            notation: Arc::new(notation),
            table: None,
            max_keys: None,
            format: StoredFormat::default(),
        };
        let name = String::from("pipe");
        let info = SourceInfo { index: 0, name, header: vec![], column: 0 };
        let pipe = Box::new(Pipe { position: 0 });
        (OpenSource::new(pipe, info, eager, &input), input)
    }

    #[test]
    fn every_byte_of_a_long_key_is_scanned_once() {
        let csv = Csv { delimiter: b',', quoting: true };
        for rows in [Rows::Delimited(b'\n'), Rows::Csv(csv)] {
            for eager in [false, true] {
                let (mut source, input) = open(eager, rows.clone(), LONG + 1);
                let mut lengths = Vec::new();
                while let Some(chunk) = source.pull(&input.notation).unwrap() {
                    let push = |key: &[u8], _| lengths.push(key.len());
                    input
                        .notation
                        .for_each_key(&chunk.bytes, 0, push)
                        .unwrap();
                }
                assert_eq!(lengths, [2, LONG, 3]);
                assert_eq!(source.scanned, LONG + 7);
            }
        }
    }

    /// The error comes before the rest of the key is read.
    #[test]
    fn longer_keys_are_refused() {
        for eager in [false, true] {
            let lines = Rows::Delimited(b'\n');
            let (mut source, input) = open(eager, lines, 1 << 20);
            let failure = loop {
                match source.pull(&input.notation) {
                    Ok(chunk) => assert!(chunk.is_some()),
                    Err(failure) => break failure,
                }
            };
            assert_eq!(
                failure.to_string(),
                "pipe: key 2: longer than 1,048,576 bytes (see \
                 --max-key-length)"
            );
            assert!(source.scanned <= (1 << 20) + (1 << 18) + 3);
        }
    }
}
