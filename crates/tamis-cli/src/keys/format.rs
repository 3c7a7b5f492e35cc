//! Encodings of keys in files.

use std::ffi::{OsStr, OsString};

use crate::failure::{Failure, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KeyFormat {
    /// One key per line; a carriage return before the line end is not part
    /// of the key
    Lines,
    /// Each key ends with a NUL byte
    Nul,
    /// 64-bit little-endian integers
    U64le,
    /// One key per line in hexadecimal; the key is the decoded bytes
    Hex,
}

/// Bytes of a `u64le` key.
const INTEGER_BYTES: usize = 8;

impl KeyFormat {
    /// Byte that ends a key; `None` for keys of fixed length.
    fn delimiter(self) -> Option<u8> {
        match self {
            Self::Lines | Self::Hex => Some(b'\n'),
            Self::Nul => Some(0),
            Self::U64le => None,
        }
    }

    /// Length of the longest prefix of `bytes` that ends with a complete
    /// key.
    pub(super) fn complete_len(self, bytes: &[u8]) -> usize {
        match self.delimiter() {
            Some(delimiter) => {
                memchr::memrchr(delimiter, bytes).map_or(0, |at| at + 1)
            }
            None => bytes.len() - bytes.len() % INTEGER_BYTES,
        }
    }

    /// Number of keys in `bytes`. The last one may lack its delimiter.
    pub(super) fn count(self, bytes: &[u8]) -> u64 {
        let count = match self.delimiter() {
            Some(delimiter) => {
                let ends = memchr::memchr_iter(delimiter, bytes).count();
                let unended = bytes.last().is_some_and(|&b| b != delimiter);
                ends + usize::from(unended)
            }
            None => bytes.len() / INTEGER_BYTES,
        };
        count as u64
    }

    /// Calls `f` with every decoded key and its encoded bytes, delimiter
    /// included.
    pub(super) fn for_each_key<'a>(
        self,
        bytes: &'a [u8],
        mut f: impl FnMut(&[u8], &'a [u8]),
    ) -> std::result::Result<(), KeyFault> {
        let Some(delimiter) = self.delimiter() else {
            let (keys, rest) = bytes.split_at(self.complete_len(bytes));
            keys.chunks_exact(INTEGER_BYTES).for_each(|key| f(key, key));
            return match rest.len() {
                0 => Ok(()),
                _ => Err(KeyFault {
                    index: self.count(bytes),
                    reason: TRUNCATED.into(),
                }),
            };
        };
        let mut decoded = Vec::new();
        let mut start = 0;
        // The last key may lack its delimiter.
        let unended = (bytes.last().is_some_and(|&byte| byte != delimiter))
            .then_some(bytes.len());
        let ends = memchr::memchr_iter(delimiter, bytes).chain(unended);
        for (index, end) in (0..).zip(ends) {
            let key = &bytes[start..end];
            let written = &bytes[start..bytes.len().min(end + 1)];
            let text = || key.strip_suffix(b"\r").unwrap_or(key);
            match self {
                Self::Nul | Self::U64le => f(key, written),
                Self::Lines => f(text(), written),
                Self::Hex => {
                    let digits = text();
                    decoded.resize(digits.len() / 2, 0);
                    hex::decode_to_slice(digits, &mut decoded).map_err(
                        |_| KeyFault { index, reason: hex_reason(digits) },
                    )?;
                    f(&decoded, written);
                }
            }
            start = end + 1;
        }
        Ok(())
    }

    /// Encodes keys from the command line.
    pub(super) fn encode(self, keys: &[OsString]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for key in keys {
            let key = key_bytes(key)?;
            match self.delimiter() {
                Some(delimiter) => {
                    if key.contains(&delimiter) {
                        return Err(Failure::new(
                            "--key: the key contains the delimiter of its \
                             format (choose another --key-format)",
                        ));
                    }
                    bytes.extend_from_slice(key);
                    bytes.push(delimiter);
                }
                None => {
                    let text = String::from_utf8_lossy(key);
                    let number: u64 = text.parse().map_err(|_| {
                        Failure::new(format_args!(
                            "--key {text}: expected an integer from 0 to \
                             2^64-1"
                        ))
                    })?;
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
            }
        }
        Ok(bytes)
    }

    /// Delimiter to append to the encoded key `written`: empty unless the
    /// last key of the input lacks it.
    pub(crate) fn missing_delimiter(self, written: &[u8]) -> &'static [u8] {
        match self.delimiter() {
            Some(b'\n') if !written.ends_with(b"\n") => b"\n",
            Some(0) if !written.ends_with(b"\0") => b"\0",
            _ => b"",
        }
    }
}

const TRUNCATED: &str = "the input ends within an 8-byte integer";

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

/// Reason why `digits` cannot be decoded: the first character that is no
/// digit and its column, or an odd length.
fn hex_reason(digits: &[u8]) -> String {
    let Some(at) = digits.iter().position(|byte| !byte.is_ascii_hexdigit())
    else {
        let count = digits.len();
        return format!(
            "expected an even number of hexadecimal digits, found {count}"
        );
    };
    // All characters before `at` are ASCII, so bytes are columns.
    let rest = String::from_utf8_lossy(&digits[at..]);
    let character = rest.chars().next().unwrap_or_default();
    let hint = match character {
        ':' | ' ' | ',' | ';' | '\t' => {
            ": keep one field per line, for example with `cut`"
        }
        _ => "",
    };
    format!(
        "expected a hexadecimal digit at column {}, found {character:?}{hint}",
        at + 1
    )
}

/// Key that cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyFault {
    /// Index of the key in the decoded bytes, from 0.
    pub(super) index: u64,
    pub(super) reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(format: KeyFormat, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let push = |key: &[u8], _: &[u8]| out.push(key.to_vec());
        format.for_each_key(bytes, push).unwrap();
        assert_eq!(out.len() as u64, format.count(bytes));
        out
    }

    #[test]
    fn lines_and_nul_split_at_delimiters() {
        assert_eq!(keys(KeyFormat::Lines, b""), [b""; 0]);
        assert_eq!(keys(KeyFormat::Lines, b"a\nbc\n"), [&b"a"[..], b"bc"]);
        assert_eq!(keys(KeyFormat::Lines, b"a\r\nbc"), [&b"a"[..], b"bc"]);
        assert_eq!(keys(KeyFormat::Lines, b"\n\n"), [b"", b""]);
        assert_eq!(keys(KeyFormat::Nul, b"a\n\0b\0"), [&b"a\n"[..], b"b"]);
    }

    #[test]
    fn u64le_and_hex_are_decoded() {
        assert_eq!(keys(KeyFormat::U64le, &[7; 16]), [[7; 8], [7; 8]]);
        assert_eq!(
            keys(KeyFormat::Hex, b"00fF\r\nab\n"),
            [&[0, 255][..], &[171]]
        );
        let fault =
            KeyFormat::Hex.for_each_key(b"00\nxyz\n", |_, _| {}).unwrap_err();
        assert_eq!(
            fault,
            KeyFault {
                index: 1,
                reason: "expected a hexadecimal digit at column 1, found 'x'"
                    .into()
            }
        );
        let fault =
            KeyFormat::U64le.for_each_key(&[1; 9], |_, _| {}).unwrap_err();
        assert_eq!(fault, KeyFault { index: 1, reason: TRUNCATED.into() });
    }

    #[test]
    fn incomplete_keys_are_left_for_the_next_chunk() {
        assert_eq!(KeyFormat::Lines.complete_len(b"ab\ncd"), 3);
        assert_eq!(KeyFormat::Lines.complete_len(b"abcd"), 0);
        assert_eq!(KeyFormat::U64le.complete_len(&[0; 17]), 16);
    }
}
