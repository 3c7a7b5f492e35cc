//! How keys are cut out of bytes.

use crate::failure::{Failure, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One key a line; a carriage return before the line end is not part of
    /// the key
    Lines,
    /// Keys end with a NUL byte
    Nul,
    /// 64-bit little-endian integers
    U64le,
    /// Lines of hexadecimal digits; the key is the bytes they stand for
    Hex,
}

const INTEGER: usize = 8;

impl Format {
    /// The byte behind every key, if there is one.
    fn delimiter(self) -> Option<u8> {
        match self {
            Self::Lines | Self::Hex => Some(b'\n'),
            Self::Nul => Some(0),
            Self::U64le => None,
        }
    }

    /// How many bytes of `bytes` are whole keys; the rest waits for more.
    pub(super) fn whole(self, bytes: &[u8]) -> usize {
        match self.delimiter() {
            Some(delimiter) => {
                memchr::memrchr(delimiter, bytes).map_or(0, |at| at + 1)
            }
            None => bytes.len() - bytes.len() % INTEGER,
        }
    }

    /// How many keys there are in `bytes`, which ends with a whole key.
    pub(super) fn count(self, bytes: &[u8]) -> u64 {
        let count = match self.delimiter() {
            Some(delimiter) => {
                let ends = memchr::memchr_iter(delimiter, bytes).count();
                let unended = bytes.last().is_some_and(|&b| b != delimiter);
                ends + usize::from(unended)
            }
            None => bytes.len() / INTEGER,
        };
        count as u64
    }

    /// Calls `f` with the bytes of every key and with the bytes it was
    /// written as, delimiter included.
    pub(super) fn each<'a>(
        self,
        bytes: &'a [u8],
        mut f: impl FnMut(&[u8], &'a [u8]),
    ) -> std::result::Result<(), KeyFault> {
        let Some(delimiter) = self.delimiter() else {
            let (keys, rest) = bytes.split_at(self.whole(bytes));
            keys.chunks_exact(INTEGER).for_each(|key| f(key, key));
            return match rest.len() {
                0 => Ok(()),
                _ => Err(KeyFault { index: self.count(bytes), why: SHORT }),
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
                    hex::decode_to_slice(digits, &mut decoded)
                        .map_err(|_| KeyFault { index, why: NOT_HEX })?;
                    f(&decoded, written);
                }
            }
            start = end + 1;
        }
        Ok(())
    }

    /// Keys from the command line, written in this format.
    pub(super) fn join(self, keys: &[String]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for key in keys {
            match self.delimiter() {
                Some(delimiter) => {
                    if key.as_bytes().contains(&delimiter) {
                        return Err(Failure::new(
                            "a --key may not contain the key delimiter",
                        ));
                    }
                    bytes.extend_from_slice(key.as_bytes());
                    bytes.push(delimiter);
                }
                None => {
                    let number: u64 = key.parse().map_err(|_| {
                        Failure::new(format_args!(
                            "--key {key}: not a 64-bit integer"
                        ))
                    })?;
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
            }
        }
        Ok(bytes)
    }

    /// Puts back a delimiter that the end of the input swallowed, so that
    /// output keys never run together.
    pub(crate) fn terminator(self, written: &[u8]) -> &'static [u8] {
        match self.delimiter() {
            Some(b'\n') if !written.ends_with(b"\n") => b"\n",
            Some(0) if !written.ends_with(b"\0") => b"\0",
            _ => b"",
        }
    }
}

const SHORT: &str = "the input ends within an 8-byte integer";
const NOT_HEX: &str = "not an even number of hexadecimal digits";

/// A key that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyFault {
    /// Its index in the bytes given, from 0.
    pub(super) index: u64,
    pub(super) why: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(format: Format, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        format.each(bytes, |key, _| out.push(key.to_vec())).unwrap();
        assert_eq!(out.len() as u64, format.count(bytes));
        out
    }

    #[test]
    fn lines_end_where_people_think() {
        assert_eq!(keys(Format::Lines, b""), [b""; 0]);
        assert_eq!(keys(Format::Lines, b"a\nbc\n"), [&b"a"[..], b"bc"]);
        assert_eq!(keys(Format::Lines, b"a\r\nbc"), [&b"a"[..], b"bc"]);
        assert_eq!(keys(Format::Lines, b"\n\n"), [b"", b""]);
        assert_eq!(keys(Format::Nul, b"a\n\0b\0"), [&b"a\n"[..], b"b"]);
    }

    #[test]
    fn binary_and_hex() {
        assert_eq!(keys(Format::U64le, &[7; 16]), [[7; 8], [7; 8]]);
        assert_eq!(
            keys(Format::Hex, b"00fF\r\nab\n"),
            [&[0, 255][..], &[171]]
        );
        let fault = Format::Hex.each(b"00\nxyz\n", |_, _| {}).unwrap_err();
        assert_eq!(fault, KeyFault { index: 1, why: NOT_HEX });
        let fault = Format::U64le.each(&[1; 9], |_, _| {}).unwrap_err();
        assert_eq!(fault, KeyFault { index: 1, why: SHORT });
    }

    #[test]
    fn only_whole_keys_are_taken() {
        assert_eq!(Format::Lines.whole(b"ab\ncd"), 3);
        assert_eq!(Format::Lines.whole(b"abcd"), 0);
        assert_eq!(Format::U64le.whole(&[0; 17]), 16);
    }
}
