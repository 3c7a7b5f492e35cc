//! Records in files: tab-separated text, CSV, JSON lines and integers.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use tamis_store::{MAX_KEY, MAX_VALUE};

use crate::failure::{Failure, Result};

/// Notation of the records in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Lines: key, tab, value
    Tsv,
    /// Rows with fields in quotes where necessary: key, value
    Csv,
    /// Lines of JSON objects
    Jsonl,
    /// Pairs of 64-bit little-endian integers: key, value
    U64le,
}

impl Format {
    /// The format that the name of a file suggests.
    pub(super) fn of(path: &Path) -> Self {
        let name = path.to_string_lossy();
        let plain = [".gz", ".zst", ".xz", ".bz2"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(&name);
        match plain.rsplit_once('.') {
            Some((_, "csv")) => Self::Csv,
            Some((_, "jsonl" | "ndjson" | "json")) => Self::Jsonl,
            _ => Self::Tsv,
        }
    }

    pub(super) fn is_text(self) -> bool {
        self != Self::U64le
    }
}

/// Names of the fields of a record.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    pub(super) key: String,
    pub(super) value: String,
    /// Whether the first row of a table names the fields.
    pub(super) header: bool,
}

/// Records of one source.
pub(super) struct Records {
    /// Name for messages.
    name: String,
    reader: Reader,
    fields: Fields,
    /// Number of the record, from 1.
    number: u64,
}

enum Reader {
    Tsv(BufReader<Box<dyn Read + Send>>),
    Csv {
        reader: csv::Reader<Box<dyn Read + Send>>,
        record: csv::ByteRecord,
        columns: [usize; 2],
    },
    Jsonl(BufReader<Box<dyn Read + Send>>),
    U64le(BufReader<Box<dyn Read + Send>>),
}

impl Records {
    pub(super) fn new(
        name: String,
        bytes: Box<dyn Read + Send>,
        format: Format,
        fields: Fields,
    ) -> Result<Self> {
        let failed = |reason: &dyn fmt::Display| {
            Failure::new(format_args!("{name}: {reason}"))
        };
        let reader = match format {
            Format::Tsv => Reader::Tsv(BufReader::new(bytes)),
            Format::Jsonl => Reader::Jsonl(BufReader::new(bytes)),
            Format::U64le => Reader::U64le(BufReader::new(bytes)),
            Format::Csv => {
                let mut reader = csv::ReaderBuilder::new()
                    .has_headers(fields.header)
                    .flexible(true)
                    .from_reader(bytes);
                let mut columns = [0, 1];
                if fields.header {
                    let header =
                        reader.byte_headers().map_err(|e| failed(&e))?;
                    for (column, wanted) in
                        columns.iter_mut().zip([&fields.key, &fields.value])
                    {
                        *column = header
                            .iter()
                            .position(|field| field == wanted.as_bytes())
                            .ok_or_else(|| {
                                failed(&format_args!(
                                    "the header has no field `{wanted}` (see \
                                     --key and --value)"
                                ))
                            })?;
                    }
                }
                let record = csv::ByteRecord::new();
                Reader::Csv { reader, record, columns }
            }
        };
        Ok(Self { name, reader, fields, number: 0 })
    }

    /// Reads the next record into `key` and `value`; false at the end.
    pub(super) fn next(
        &mut self,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        self.number += 1;
        key.clear();
        value.clear();
        self.read(key, value).map_err(|reason| {
            Failure::new(format_args!(
                "{}: record {}: {reason}",
                self.name, self.number
            ))
        })
    }

    fn read(
        &mut self,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> std::result::Result<bool, String> {
        let failed = |error: io::Error| error.to_string();
        match &mut self.reader {
            Reader::Tsv(reader) => {
                if !read_line(reader, value)? {
                    return Ok(false);
                }
                let tab = memchr::memchr(b'\t', value)
                    .ok_or("no tab between key and value (see --format)")?;
                key.extend_from_slice(&value[..tab]);
                value.drain(..=tab);
            }
            Reader::Csv { reader, record, columns } => {
                let more = reader
                    .read_byte_record(record)
                    .map_err(|error| error.to_string())?;
                if !more {
                    return Ok(false);
                }
                for (out, &mut column) in [key, value].into_iter().zip(columns)
                {
                    let field = record.get(column).ok_or_else(|| {
                        format!(
                            "{} fields; the record needs {}",
                            record.len(),
                            column + 1
                        )
                    })?;
                    out.extend_from_slice(field);
                }
            }
            Reader::Jsonl(reader) => {
                if !read_line(reader, value)? {
                    return Ok(false);
                }
                let object: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_slice(value).map_err(|error| {
                        format!("expected a JSON object: {error}")
                    })?;
                value.clear();
                for (out, name) in
                    [(key, &self.fields.key), (value, &self.fields.value)]
                {
                    match object.get(name) {
                        Some(serde_json::Value::String(text)) => {
                            out.extend_from_slice(text.as_bytes());
                        }
                        Some(other) => {
                            out.extend_from_slice(
                                other.to_string().as_bytes(),
                            );
                        }
                        None => {
                            return Err(format!(
                                "no field `{name}` (see --key and --value)"
                            ));
                        }
                    }
                }
            }
            Reader::U64le(reader) => {
                let mut pair = Vec::with_capacity(16);
                let n =
                    reader.take(16).read_to_end(&mut pair).map_err(failed)?;
                if n == 0 {
                    return Ok(false);
                }
                if n < 16 {
                    return Err(format!("{n} bytes; a pair has 16"));
                }
                key.extend_from_slice(&pair[..8]);
                value.extend_from_slice(&pair[8..]);
            }
        }
        Ok(true)
    }
}

/// Reads a line without its end (LF or CRLF); false at the end of the input.
fn read_line(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
) -> std::result::Result<bool, String> {
    let most = (MAX_KEY + MAX_VALUE + 2) as u64;
    let read = reader
        .by_ref()
        .take(most)
        .read_until(b'\n', line)
        .map_err(|error| error.to_string())?;
    if read as u64 == most {
        return Err("longer than the longest record".into());
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    }
    Ok(read > 0)
}
