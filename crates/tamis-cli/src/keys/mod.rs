//! Keys of a verb, from files, standard input and the command line.
//!
//! Steps of a verb that reads keys:
//!
//! 1. It has the options [`KeyArgs`] and opens them: [`KeyArgs::open`] checks
//!    the options and the files before any key is read.
//! 2. [`KeyInput::feed`] is an iterator of [`KeyChunk`]s, complete rows of one
//!    source. Threads decode chunks in parallel: [`KeyChunk::hash`] for the
//!    hashes of the keys, [`KeyChunk::for_each_key`] for the rows as well.
//! 3. [`Feed::finish`] returns the first error of the input.
//!
//! A *row* is the part of the input that has one key and that `query` prints:
//! a line, a row of a table, an integer. `format` divides the input into rows
//! and decodes their keys, with `csv` and `json` for keys inside of rows;
//! `compression` recognises compressed sources, `unicode` UTF-16 text.

mod chunk;
mod compression;
mod csv;
mod digest;
mod feed;
mod format;
mod json;
mod source;
mod stored;
mod unicode;

pub(crate) use chunk::KeyChunk;
pub(crate) use digest::Digest;
pub(crate) use feed::Feed;
pub(crate) use format::KeyFormat;
pub(crate) use source::KeySource;
pub(crate) use stored::StoredFormat;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tamis::AnyFilter;

use crate::failure::{Failure, Result};
use crate::identity::FileIdentity;
use csv::{Csv, Field, Table};
use format::{Notation, Rows, Text};
use json::JsonPointer;

/// Heading in the help.
const HEADING: &str = "Notation of the keys";

/// Arguments that name the keys, shared by all verbs that read keys.
#[derive(clap::Args)]
pub(crate) struct KeyArgs {
    /// Files of keys, `-` for standard input. Data compressed by gzip, zstd,
    /// xz or bzip2 is decompressed, whatever its name; text that begins with
    /// a byte order mark is read as UTF-8 or UTF-16 [default: -]
    #[arg(value_name = "KEYS")]
    files: Vec<PathBuf>,

    /// Use this key instead of files; repeatable
    #[arg(
        short = 'k',
        long = "key",
        value_name = "KEY",
        conflicts_with_all = ["files", "field", "json_field"],
        allow_hyphen_values = true
    )]
    literal: Vec<OsString>,

    /// Encoding of the keys [default: the one that the filter was built with,
    /// lines for a new filter]
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        help_heading = HEADING
    )]
    key_format: Option<KeyFormat>,

    /// Keys end with a NUL byte: --key-format nul
    #[arg(
        short = '0',
        long,
        conflicts_with_all = ["key_format", "field", "json_field"],
        help_heading = HEADING
    )]
    null: bool,

    /// Rows of a table (CSV): the key is this field, a number from 1 or a
    /// name in the header. `query` prints the whole row
    #[arg(
        short = 'f',
        long,
        value_name = "FIELD",
        value_parser = parse_field,
        help_heading = HEADING
    )]
    field: Option<Field>,

    /// Character between fields, `\t` for tabs [default: ,]
    #[arg(
        short = 'd',
        long,
        value_name = "CHAR",
        value_parser = parse_delimiter,
        requires = "field",
        help_heading = HEADING
    )]
    delimiter: Option<u8>,

    /// The first row of each table is a header, not a key. Implied if --field
    /// is a name
    #[arg(long, requires = "field", help_heading = HEADING)]
    header: bool,

    /// Double quotes in tables have no meaning
    #[arg(long, requires = "field", help_heading = HEADING)]
    no_quoting: bool,

    /// Lines of JSON: the key is the string, number or boolean with this
    /// name, or at this pointer such as /user/id. `query` prints the whole
    /// line
    #[arg(
        long,
        value_name = "POINTER",
        value_parser = JsonPointer::parse,
        conflicts_with = "field",
        help_heading = HEADING
    )]
    json_field: Option<JsonPointer>,

    /// The keys of the filter are digests: plain keys are hashed first, and
    /// printed as they are. With --key-format hex the input has digests
    /// already. The filter remembers it
    #[arg(long, value_enum, value_name = "HASH", help_heading = HEADING)]
    digest: Option<Digest>,

    /// Stop with an error after N keys, such as 1e9
    #[arg(
        long,
        value_name = "N",
        value_parser = crate::verb::parse_items,
        hide_short_help = true,
        help_heading = HEADING
    )]
    max_keys: Option<u64>,

    /// Longest key, or row with --field and --json-field
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_bytes,
        default_value = "64MiB",
        hide_short_help = true,
        help_heading = HEADING
    )]
    max_key_length: u64,
}

impl KeyArgs {
    /// True if `path` is one of the files of keys, under any name.
    pub(crate) fn contain(&self, path: &Path) -> bool {
        let Some(output) = FileIdentity::of(path) else { return false };
        let reads_stdin = self.files.is_empty() && self.literal.is_empty();
        let stdin = reads_stdin.then(|| Path::new("-"));
        let files = self.files.iter().map(PathBuf::as_path);
        files
            .chain(stdin)
            .filter_map(|file| match file.as_os_str() == "-" {
                true => FileIdentity::of_stdin(),
                false => FileIdentity::of(file),
            })
            .any(|input| input == output)
    }

    /// Keys for the filter `filter`, the file `path`. Checks the options and
    /// the files; reads no key.
    pub(crate) fn open_for<D: AsRef<[u8]>>(
        &self,
        path: &Path,
        filter: &AnyFilter<D>,
    ) -> Result<KeyInput> {
        let stored = StoredFormat::of(path, filter)?;
        self.open(stored).map_err(|reason| {
            Failure::new(format_args!("{}: {reason}", path.display()))
        })?
    }

    /// Keys for a new filter. Checks the options and the files; reads no key.
    pub(crate) fn open_new(&self) -> Result<KeyInput> {
        self.open(StoredFormat::default()).map_err(Failure::new)?
    }

    /// Keys for a filter with the format `stored`. The outer error is a format
    /// that does not fit.
    fn open(
        &self,
        stored: StoredFormat,
    ) -> std::result::Result<Result<KeyInput>, String> {
        let in_fields = self.field.is_some() || self.json_field.is_some();
        let given = match self.null {
            true => Some(KeyFormat::Nul),
            false => self.key_format,
        };
        let (format, digest) =
            stored.resolve(given, self.digest, in_fields)?;
        Ok(self.input(format, digest, given.is_none()))
    }

    fn input(
        &self,
        format: KeyFormat,
        digest: Option<Digest>,
        is_default: bool,
    ) -> Result<KeyInput> {
        let notation = self.notation(format, digest, is_default)?;
        Ok(KeyInput {
            sources: self.sources(&notation)?,
            notation: Arc::new(notation),
            table: self.table(),
            max_keys: self.max_keys,
            format: match digest {
                Some(_) => {
                    StoredFormat { format: Some(KeyFormat::Hex), digest }
                }
                None => StoredFormat { format: Some(format), digest },
            },
        })
    }

    fn table(&self) -> Option<Table> {
        let field = self.field.clone()?;
        Some(Table {
            csv: Csv {
                delimiter: self.delimiter.unwrap_or(b','),
                quoting: !self.no_quoting,
            },
            header: self.header || matches!(field, Field::Name(_)),
            field,
        })
    }

    fn notation(
        &self,
        format: KeyFormat,
        digest: Option<Digest>,
        is_default: bool,
    ) -> Result<Notation> {
        let refuse = |why: &str| Err(Failure::new(why));
        let table = self.table().map(|table| Rows::Csv(table.csv));
        let json = self.json_field.clone().map(Rows::JsonLines);
        let fields = table.or(json);
        if fields.is_some() && format == KeyFormat::Nul {
            return refuse(
                "--key-format nul has no fields: omit --field and \
                 --json-field",
            );
        }
        if format == KeyFormat::U64le && digest.is_some() {
            return refuse("--digest needs plain keys or --key-format hex");
        }
        let text = match (format, digest) {
            (KeyFormat::Hex, digest) => Text::Hex(digest),
            (KeyFormat::U64le, _) if fields.is_some() => Text::Decimal,
            (_, Some(digest)) => Text::Digest(digest),
            (_, None) => Text::Plain,
        };
        let rows = fields.unwrap_or(match format {
            KeyFormat::Lines | KeyFormat::Hex => Rows::Delimited(b'\n'),
            KeyFormat::Nul => Rows::Delimited(0),
            KeyFormat::U64le => Rows::Integers,
        });
        let max_len = usize::try_from(self.max_key_length);
        Ok(Notation {
            rows,
            text,
            max_len: max_len.unwrap_or(usize::MAX),
            is_default,
        })
    }

    fn sources(&self, notation: &Notation) -> Result<Vec<KeySource>> {
        if !self.literal.is_empty() {
            let mut encoded = Vec::new();
            for key in &self.literal {
                notation.encode(key, &mut encoded)?;
            }
            return Ok(vec![KeySource::Memory(encoded)]);
        }
        if self.files.is_empty() {
            return Ok(vec![KeySource::Stdin]);
        }
        let standard = self.files.iter().filter(|f| f.as_os_str() == "-");
        if standard.count() > 1 {
            return Err(Failure::new("`-`: standard input given twice"));
        }
        self.files.iter().map(|path| KeySource::new(path)).collect()
    }
}

/// Keys of a verb, not yet read.
#[derive(Debug)]
pub(crate) struct KeyInput {
    sources: Vec<KeySource>,
    notation: Arc<Notation>,
    table: Option<Table>,
    max_keys: Option<u64>,
    format: StoredFormat,
}

impl KeyInput {
    /// Format of the keys, for a filter built from them.
    pub(crate) fn format(&self) -> StoredFormat {
        self.format
    }

    /// Chunks of all sources, with a progress bar labelled `verb`.
    pub(crate) fn feed(&self, verb: &'static str) -> Feed<'_> {
        Feed::new(verb, self, false)
    }

    /// Chunks of all sources for a verb that prints rows as it reads them:
    /// has no progress bar if that goes to a terminal.
    pub(crate) fn feed_for_printing(&self, verb: &'static str) -> Feed<'_> {
        Feed::new(verb, self, true)
    }

    /// Number of sources.
    pub(crate) fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// Names of the sources, in order.
    pub(crate) fn source_names(&self) -> impl Iterator<Item = String> {
        self.sources.iter().map(KeySource::name)
    }

    /// True if rows are not text.
    pub(crate) fn is_binary(&self) -> bool {
        self.notation.rows == Rows::Integers
    }

    /// True if a second feed returns the same keys without decompressing
    /// again.
    pub(crate) fn is_rereadable(&self) -> bool {
        self.sources.iter().all(KeySource::is_rereadable)
    }
}

fn parse_field(text: &str) -> std::result::Result<Field, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("fields are numbered from 1".into()),
        Ok(number) => Ok(Field::Index(number - 1)),
        Err(_) => Ok(Field::Name(text.into())),
    }
}

fn parse_delimiter(text: &str) -> std::result::Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [b'\n' | b'\r' | b'"'] => Err("expected another character".into()),
        &[byte] if byte.is_ascii() => Ok(byte),
        _ => Err("expected one ASCII character or \\t".into()),
    }
}

/// Parses a number of bytes: 65536, 64K, 64KiB, 1.5G.
pub(crate) fn parse_bytes(text: &str) -> std::result::Result<u64, String> {
    let number = text.trim_end_matches("iB");
    let (number, shift) = match number.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&number[..at], 10),
        Some((at, 'M')) => (&number[..at], 20),
        Some((at, 'G')) => (&number[..at], 30),
        Some((at, 'T')) => (&number[..at], 40),
        _ => (text, 0),
    };
    number
        .parse::<f64>()
        .ok()
        .map(|number| number * f64::from(1u32 << (shift / 2)).powi(2))
        .filter(|&bytes| (1.0..2f64.powi(63)).contains(&bytes))
        .map(|bytes| bytes as u64)
        .ok_or_else(|| "expected a number of bytes, such as 64MiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_are_parsed() {
        assert_eq!(parse_bytes("1"), Ok(1));
        assert_eq!(parse_bytes("64K"), Ok(65_536));
        assert_eq!(parse_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(parse_bytes("1.5G"), Ok(3 << 29));
        assert_eq!(parse_bytes("2T"), Ok(2 << 40));
        for wrong in ["", "0", "-1", "x", "1X", "inf", "1e30", "5iB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
