//! Notations of keys, and their decoding.

use std::ffi::OsStr;

use super::csv::{Csv, CsvScanner};
use super::digest::Digest;
use super::json::JsonPointer;
use crate::failure::{Failure, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KeyFormat {
    /// One key per line; a carriage return before the line end, and a byte
    /// order mark, are not part of the key. UTF-16 with its mark is read as
    /// UTF-8
    Lines,
    /// Each key ends with a NUL byte
    Nul,
    /// 64-bit little-endian integers
    U64le,
    /// One key per line in hexadecimal; the key is the decoded bytes. A count
    /// may follow, as in HASH:COUNT, or a file name, as sha1sum writes it
    Hex,
}

/// Notation of the keys of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notation {
    pub(super) rows: Rows,
    pub(super) text: Text,
    /// Longest row, in bytes.
    pub(super) max_len: usize,
    /// True if the filter decided the format, and not an option.
    pub(super) is_default: bool,
}

/// Division of the input into rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rows {
    /// Each key ends with this byte.
    Delimited(u8),
    /// Each key has 8 bytes.
    Integers,
    /// The key is a field.
    Csv(Csv),
    /// One JSON value per line, which contains the key. Blank lines are
    /// skipped.
    JsonLines(JsonPointer),
}

/// Decoding of the text of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// The text is the key.
    Plain,
    /// The key is the digest of the text.
    Digest(Digest),
    /// Hexadecimal digits; of a digest, if there is one.
    Hex(Option<Digest>),
    /// Decimal digits of a 64-bit integer.
    Decimal,
}

/// Row of the input, which contains a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// The row as it is written, its end included.
    pub(crate) bytes: &'a [u8],
    /// Index in its chunk, from 0.
    pub(super) index: u64,
}

/// Row whose key cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyFault {
    /// Index in its chunk, from 0.
    pub(super) index: u64,
    pub(super) reason: String,
}

/// Bytes of a `u64le` key.
const INTEGER_BYTES: usize = 8;

impl Notation {
    /// True if rows are lines of text. Keys that end with NUL are often
    /// paths, which have no encoding.
    pub(super) fn is_text(&self) -> bool {
        !matches!(self.rows, Rows::Integers | Rows::Delimited(0))
    }

    /// Word for a row in messages.
    pub(super) fn row_name(&self) -> &'static str {
        match self.rows {
            Rows::Delimited(_) | Rows::Integers => "key",
            Rows::Csv(_) => "row",
            Rows::JsonLines(_) => "line",
        }
    }

    /// Number of keys in `bytes`, which are `rows` rows.
    pub(super) fn count(&self, bytes: &[u8], rows: u64) -> u64 {
        match self.rows {
            Rows::JsonLines(_) => {
                let lines = split(bytes, b'\n');
                lines.filter(|line| !line.trim_ascii().is_empty()).count()
                    as u64
            }
            _ => rows,
        }
    }

    /// Calls `f` with the key and the row of every row of `bytes`. The key is
    /// in the field `column`.
    pub(super) fn for_each_key<'a>(
        &self,
        bytes: &'a [u8],
        column: usize,
        mut f: impl FnMut(&[u8], Row<'a>),
    ) -> std::result::Result<(), KeyFault> {
        let mut decoded = Vec::new();
        let mut next = 0;
        let mut row = |bytes: &'a [u8], text: Found<'_>| {
            let index = next;
            next += 1;
            let fault = |reason| Err(KeyFault { index, reason });
            if bytes.len() > self.max_len {
                return fault(self.too_long());
            }
            let text = match text {
                Ok(Some(text)) => text,
                Ok(None) => return Ok(()),
                Err(reason) => return fault(reason),
            };
            match self.text.decode(text, &mut decoded) {
                Ok(key) => f(key, Row { bytes, index }),
                Err(reason) => return fault(reason),
            }
            Ok(())
        };
        match &self.rows {
            Rows::Delimited(end) => split(bytes, *end).try_for_each(|bytes| {
                let text = bytes.strip_suffix(&[*end]).unwrap_or(bytes);
                let text = match end {
                    b'\n' => text.strip_suffix(b"\r").unwrap_or(text),
                    _ => text,
                };
                row(bytes, Ok(Some(text)))
            }),
            Rows::Integers => {
                bytes.chunks(INTEGER_BYTES).try_for_each(|bytes| {
                    match bytes.len() {
                        INTEGER_BYTES => row(bytes, Ok(Some(bytes))),
                        _ => row(bytes, Err(TRUNCATED.into())),
                    }
                })
            }
            Rows::Csv(csv) => csv.for_each_row(bytes, |bytes, fields| {
                let field = fields.get(column).ok_or_else(|| {
                    format!(
                        "expected a field {}, found {} (is --delimiter \
                         right?)",
                        column + 1,
                        fields.len()
                    )
                });
                row(bytes, field.map(Some))
            }),
            Rows::JsonLines(pointer) => {
                split(bytes, b'\n').try_for_each(|bytes| {
                    if bytes.trim_ascii().is_empty() {
                        return row(bytes, Ok(None));
                    }
                    match pointer.key(bytes) {
                        Ok(key) => row(bytes, Ok(Some(&key))),
                        Err(reason) => row(bytes, Err(reason)),
                    }
                })
            }
        }
    }

    /// Refuses a source of a single row without delimiter that has lines: the
    /// filter remembers NUL, and the user forgot.
    pub(super) fn check_only_row(
        &self,
        row: &[u8],
    ) -> std::result::Result<(), &'static str> {
        let has_lines = self.rows == Rows::Delimited(0)
            && !row.ends_with(b"\0")
            && row.contains(&b'\n');
        match has_lines && self.is_default {
            true => Err("expected keys that end with NUL, as those of the \
                         filter, found lines (give --key-format lines)"),
            false => Ok(()),
        }
    }

    pub(super) fn too_long(&self) -> String {
        format!(
            "longer than {} bytes (see --max-key-length)",
            crate::report::count(self.max_len as u64)
        )
    }

    /// Row with the key `key` of the command line.
    pub(super) fn encode(&self, key: &OsStr, out: &mut Vec<u8>) -> Result<()> {
        let text = key_bytes(key)?;
        match self.rows {
            Rows::Delimited(end) => {
                if text.contains(&end) {
                    return Err(Failure::new(
                        "--key: the key contains the delimiter of its \
                         format (choose another --key-format)",
                    ));
                }
                out.extend_from_slice(text);
                out.push(end);
            }
            Rows::Integers => {
                let number = parse_integer(text).map_err(|reason| {
                    let text = String::from_utf8_lossy(text);
                    Failure::new(format_args!("--key {text}: {reason}"))
                })?;
                out.extend_from_slice(&number.to_le_bytes());
            }
            Rows::Csv(_) | Rows::JsonLines(_) => {
                return Err(Failure::new(
                    "--key takes the key itself: omit --field and \
                     --json-field",
                ));
            }
        }
        Ok(())
    }

    /// Line end or delimiter to append to `row`: empty unless the last row of
    /// a source lacks it.
    pub(super) fn missing_end(&self, row: &[u8]) -> &'static [u8] {
        let ends: &[u8] = match self.rows {
            Rows::Integers => return b"",
            Rows::Delimited(0) => b"\0",
            Rows::Csv(_) => b"\n\r",
            Rows::Delimited(_) | Rows::JsonLines(_) => b"\n",
        };
        match row.last() {
            Some(last) if ends.contains(last) => b"",
            _ if ends == b"\0" => b"\0",
            _ => b"\n",
        }
    }

    /// Search for the ends of rows from the start of a source.
    pub(super) fn scanner(&self) -> Scanner {
        match &self.rows {
            Rows::Delimited(end) => Scanner::Delimited(*end),
            Rows::JsonLines(_) => Scanner::Delimited(b'\n'),
            Rows::Integers => Scanner::Integers { partial: 0 },
            Rows::Csv(csv) => Scanner::Csv(Box::new(CsvScanner::new(*csv))),
        }
    }
}

/// Text of a key in its row, `None` in a row without key, or the reason why
/// it cannot be found.
type Found<'t> = std::result::Result<Option<&'t [u8]>, String>;

impl Text {
    /// Key with the given text. `decoded` is its memory.
    fn decode<'t>(
        self,
        text: &'t [u8],
        decoded: &'t mut Vec<u8>,
    ) -> std::result::Result<&'t [u8], String> {
        match self {
            Self::Plain => return Ok(text),
            Self::Digest(digest) => digest.compute(text, decoded)?,
            Self::Hex(digest) => {
                let digits = hex_digits(text);
                decoded.resize(digits.len() / 2, 0);
                hex::decode_to_slice(digits, decoded)
                    .map_err(|_| hex_reason(digits))?;
                match digest {
                    Some(digest) if decoded.len() != digest.len() => {
                        return Err(format!(
                            "expected {} hexadecimal digits, found {} (see \
                             --digest)",
                            2 * digest.len(),
                            digits.len()
                        ));
                    }
                    _ => {}
                }
            }
            Self::Decimal => {
                decoded.clear();
                decoded.extend(parse_integer(text)?.to_le_bytes());
            }
        }
        Ok(decoded)
    }
}

const TRUNCATED: &str =
    "the input ends within an 8-byte integer (see --key-format)";

/// Rows that end with `end`, which the last one may lack.
fn split(bytes: &[u8], end: u8) -> impl Iterator<Item = &[u8]> {
    let unended =
        (bytes.last().is_some_and(|&last| last != end)).then_some(bytes.len());
    let ends = memchr::memchr_iter(end, bytes).map(|at| at + 1);
    let mut start = 0;
    ends.chain(unended).map(move |end| {
        let row = &bytes[start..end];
        start = end;
        row
    })
}

/// Search for complete rows in a stream. Every byte is read once.
pub(super) enum Scanner {
    Delimited(u8),
    /// Bytes of an incomplete integer.
    Integers {
        partial: usize,
    },
    Csv(Box<CsvScanner>),
}

impl Scanner {
    /// Reads the next bytes of the stream. Returns the end of the last
    /// complete row in `new`, and the number of rows since the last one
    /// returned.
    pub(super) fn push(&mut self, new: &[u8]) -> Option<(usize, u64)> {
        match self {
            Self::Delimited(end) => {
                let len = memchr::memrchr(*end, new)? + 1;
                let rows = memchr::memchr_iter(*end, &new[..len]).count();
                Some((len, rows as u64))
            }
            Self::Integers { partial } => {
                let all = *partial + new.len();
                *partial = all % INTEGER_BYTES;
                let rows = all / INTEGER_BYTES;
                (rows > 0).then(|| (new.len() - *partial, rows as u64))
            }
            Self::Csv(scanner) => scanner.push(new),
        }
    }

    /// Number of rows in the bytes after the last complete row, `rest`, which
    /// end the stream.
    pub(super) fn finish(&mut self, rest: &[u8]) -> u64 {
        match self {
            Self::Csv(scanner) => scanner.finish(),
            _ => u64::from(!rest.is_empty()),
        }
    }
}

/// Bytes of a key from the command line.
#[cfg(unix)]
fn key_bytes(key: &OsStr) -> Result<&[u8]> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(key.as_bytes())
}

/// Bytes of a key from the command line. Other systems have no byte form of
/// arguments that are not Unicode.
#[cfg(not(unix))]
fn key_bytes(key: &OsStr) -> Result<&[u8]> {
    key.to_str().map(str::as_bytes).ok_or_else(|| {
        Failure::new("--key: expected Unicode text (use --key-format hex)")
    })
}

fn parse_integer(text: &[u8]) -> std::result::Result<u64, String> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| "expected an integer from 0 to 2^64-1".into())
}

/// Hexadecimal digits of a line: all of it, or those before `:COUNT`, as in
/// lists of breached passwords, or before the file name that sha1sum writes.
fn hex_digits(line: &[u8]) -> &[u8] {
    // sha1sum marks names with escapes.
    let digits = line.strip_prefix(b"\\").unwrap_or(line);
    let escaped = digits.len() < line.len();
    let Some(len) = digits.iter().position(|byte| !byte.is_ascii_hexdigit())
    else {
        return line;
    };
    let is_annotation = match &digits[len..] {
        [b':', count @ ..] => {
            !escaped
                && !count.is_empty()
                && count.iter().all(u8::is_ascii_digit)
        }
        [b' ', b' ' | b'*', name @ ..] => !name.is_empty(),
        _ => false,
    };
    if is_annotation && len > 0 { &digits[..len] } else { line }
}

/// Reason why `digits` cannot be decoded: the first character that is no
/// digit and its column, or an odd length.
fn hex_reason(digits: &[u8]) -> String {
    let Some(at) = digits.iter().position(|byte| !byte.is_ascii_hexdigit())
    else {
        let count = digits.len();
        return format!(
            "expected an even number of hexadecimal digits, found {count} \
             (see --key-format)"
        );
    };
    // All characters before `at` are ASCII, so bytes are columns.
    let rest = String::from_utf8_lossy(&digits[at..]);
    let character = rest.chars().next().unwrap_or_default();
    let hint = match character {
        ':' | ' ' | ',' | ';' | '\t' | '|' => {
            ": only HASH:COUNT and the lines of sha1sum have more than the \
             key (see --field)"
        }
        _ => " (see --key-format)",
    };
    format!(
        "expected a hexadecimal digit at column {}, found {character:?}{hint}",
        at + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notation(rows: Rows, text: Text) -> Notation {
        Notation { rows, text, max_len: 100, is_default: false }
    }

    fn lines(text: Text) -> Notation {
        notation(Rows::Delimited(b'\n'), text)
    }

    fn keys(notation: &Notation, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let push = |key: &[u8], _: Row<'_>| out.push(key.to_vec());
        notation.for_each_key(bytes, 0, push).unwrap();
        let mut scanner = notation.scanner();
        let (end, rows) = scanner.push(bytes).unwrap_or_default();
        let rows = rows + scanner.finish(&bytes[end..]);
        assert_eq!(out.len() as u64, notation.count(bytes, rows));
        out
    }

    fn fault(notation: &Notation, bytes: &[u8]) -> KeyFault {
        notation.for_each_key(bytes, 0, |_, _| {}).unwrap_err()
    }

    #[test]
    fn lines_and_nul_split_at_delimiters() {
        let lines = lines(Text::Plain);
        assert_eq!(keys(&lines, b""), [b""; 0]);
        assert_eq!(keys(&lines, b"a\nbc\n"), [&b"a"[..], b"bc"]);
        assert_eq!(keys(&lines, b"a\r\nbc"), [&b"a"[..], b"bc"]);
        assert_eq!(keys(&lines, b"\n\n"), [b"", b""]);
        let nul = notation(Rows::Delimited(0), Text::Plain);
        assert_eq!(keys(&nul, b"a\n\0b\0"), [&b"a\n"[..], b"b"]);
        let long = KeyFault { index: 1, reason: lines.too_long() };
        let row = format!("a\n{}", "b".repeat(101));
        assert_eq!(fault(&lines, row.as_bytes()), long);
    }

    #[test]
    fn u64le_and_hex_are_decoded() {
        let integers = notation(Rows::Integers, Text::Plain);
        assert_eq!(keys(&integers, &[7; 16]), [[7; 8], [7; 8]]);
        let expected = KeyFault { index: 1, reason: TRUNCATED.into() };
        assert_eq!(fault(&integers, &[1; 9]), expected);
        let hex = lines(Text::Hex(None));
        assert_eq!(keys(&hex, b"00fF\r\nab\n"), [&[0, 255][..], &[171]]);
        assert_eq!(
            fault(&hex, b"00\nxyz\n"),
            KeyFault {
                index: 1,
                reason: "expected a hexadecimal digit at column 1, found 'x' \
                         (see --key-format)"
                    .into()
            }
        );
        let decimal = lines(Text::Decimal);
        assert_eq!(keys(&decimal, b"258\n"), [258u64.to_le_bytes()]);
        assert_eq!(fault(&decimal, b"1\n-1\n").index, 1);
    }

    #[test]
    fn hexadecimal_lines_may_have_a_count_or_a_name() {
        let hex = lines(Text::Hex(None));
        for line in [
            "abcd",
            "abcd:17",
            "ABCD:0\r",
            "abcd  name",
            "abcd *a name",
            "\\abcd  a\\nname",
        ] {
            assert_eq!(keys(&hex, line.as_bytes()), [[0xab, 0xcd]], "{line}");
        }
        for line in [
            "ab cd", "abcd:", "abcd:x", "abcd 1", "abcd  ", "abcd,1", ":1",
            "  name", "\\abcd", "\\abcd:1", "abc:1", "abcd\t1",
        ] {
            fault(&hex, line.as_bytes());
        }
        let sha1 = lines(Text::Hex(Some(Digest::Sha1)));
        assert_eq!(keys(&sha1, &[b'0'; 40]), [[0; 20]]);
        let reason = fault(&sha1, &[b'0'; 32]).reason;
        assert!(reason.contains("expected 40") && reason.contains("found 32"));
    }

    #[test]
    fn blank_lines_between_json_values_are_no_keys() {
        let json = JsonPointer::parse("a").unwrap();
        let json = notation(Rows::JsonLines(json), Text::Plain);
        let text = b"{\"a\":1}\n\n \r\n{\"a\":\"b\"}";
        assert_eq!(keys(&json, text), [b"1", b"b"]);
        assert_eq!(fault(&json, b"\n{}\n").index, 1);
    }

    #[test]
    fn incomplete_rows_are_left_for_the_next_chunk() {
        let mut lines = lines(Text::Plain).scanner();
        assert_eq!(lines.push(b"ab\ncd"), Some((3, 1)));
        assert_eq!(lines.push(b"efg"), None);
        assert_eq!(lines.push(b"\n\nh"), Some((2, 2)));
        assert_eq!((lines.finish(b"h"), lines.finish(b"")), (1, 0));
        let mut integers = notation(Rows::Integers, Text::Plain).scanner();
        assert_eq!(integers.push(&[0; 17]), Some((16, 2)));
        assert_eq!(integers.push(&[0; 6]), None);
        assert_eq!(integers.push(&[0; 10]), Some((9, 2)));
        assert_eq!(integers.finish(&[0]), 1);
    }
}
