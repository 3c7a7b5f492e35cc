//! Text with a byte order mark, as Windows programs write it.
//!
//! As in ripgrep, the mark is not part of the first line, and UTF-16 becomes
//! UTF-8. Damaged UTF-16 is an error here: a key with a replacement character
//! would be another key.

use std::io::{self, Cursor, ErrorKind, Read};

/// Bytes of UTF-16 decoded at once.
const BUFFER: usize = 1 << 16;

/// Byte order marks.
const UTF8: &[u8] = b"\xef\xbb\xbf";
const UTF16_LITTLE: &[u8] = b"\xff\xfe";
const UTF16_BIG: &[u8] = b"\xfe\xff";

/// Reader of the text of `reader` as UTF-8, without its byte order mark. Text
/// without mark is not changed.
///
/// Makes a single read unless it returns the beginning of a mark: the writer
/// of a pipe may wait for an answer.
pub(super) fn utf8<R: Read + Send + 'static>(
    mut reader: R,
) -> io::Result<Box<dyn Read + Send>> {
    let mut prefix = Vec::new();
    let marks = [UTF8, UTF16_LITTLE, UTF16_BIG];
    let is_undecided = |prefix: &[u8]| {
        marks
            .iter()
            .any(|mark| prefix.len() < mark.len() && mark.starts_with(prefix))
    };
    while is_undecided(&prefix) {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => prefix.extend(byte),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(match &prefix[..] {
        UTF8 => Box::new(reader),
        UTF16_LITTLE => Box::new(Utf16::new(reader, u16::from_le_bytes)),
        UTF16_BIG => Box::new(Utf16::new(reader, u16::from_be_bytes)),
        _ => Box::new(Cursor::new(prefix).chain(reader)),
    })
}

/// Reader of UTF-16 as UTF-8.
struct Utf16<R> {
    reader: R,
    unit: fn([u8; 2]) -> u16,
    /// Bytes that are read and not decoded: part of a character.
    raw: Vec<u8>,
    text: String,
    /// Bytes of `text` that were returned.
    taken: usize,
    ended: bool,
}

impl<R: Read> Utf16<R> {
    fn new(reader: R, unit: fn([u8; 2]) -> u16) -> Self {
        let (raw, text) = (Vec::new(), String::new());
        Self { reader, unit, raw, text, taken: 0, ended: false }
    }

    /// Reads and decodes the next characters.
    fn fill(&mut self) -> io::Result<()> {
        let kept = self.raw.len();
        self.raw.resize(kept + BUFFER, 0);
        let read = self.reader.read(&mut self.raw[kept..]);
        self.raw.truncate(kept + *read.as_ref().unwrap_or(&0));
        self.ended = read? == 0;
        self.text.clear();
        self.taken = 0;
        let unit = self.unit;
        let unit = |pair: &[u8]| unit([pair[0], pair[1]]);
        let mut whole = self.raw.len() & !1;
        if let Some(at) = whole.checked_sub(2) {
            // The second half of a character may follow.
            if matches!(unit(&self.raw[at..]), 0xd800..=0xdbff) && !self.ended
            {
                whole = at;
            }
        }
        let units = self.raw[..whole].chunks_exact(2).map(unit);
        for character in char::decode_utf16(units) {
            match character {
                Ok('\0') => return Err(damaged("a NUL character")),
                Ok(character) => self.text.push(character),
                Err(_) => return Err(damaged("half of a character")),
            }
        }
        self.raw.drain(..whole);
        match self.ended && !self.raw.is_empty() {
            true => Err(damaged("an odd number of bytes")),
            false => Ok(()),
        }
    }
}

/// Error in data that begin with a mark of UTF-16.
fn damaged(what: &str) -> io::Error {
    io::Error::other(format!(
        "expected UTF-16 text by its byte order mark, found {what} (convert \
         it with `iconv -t UTF-8`; keys of other bytes need --key-format nul)"
    ))
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.text.len() {
            if self.ended {
                return Ok(0);
            }
            self.fill()?;
        }
        let rest = &self.text.as_bytes()[self.taken..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.taken += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that returns at most `.1` bytes per read.
    struct Slow(Cursor<Vec<u8>>, usize);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = buffer.len().min(self.1);
            self.0.read(&mut buffer[..len])
        }
    }

    fn read(bytes: &[u8], step: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let reader = Slow(Cursor::new(bytes.to_vec()), step);
        utf8(reader)?.read_to_end(&mut out)?;
        Ok(out)
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn marked_text_becomes_utf8_without_mark() {
        let text = "a\r\nZo\u{eb}\n\u{1f600}\u{20ac}\n".repeat(30_000);
        let marked = format!("\u{feff}{text}");
        for step in [3, 1 << 10, 1 << 20] {
            for bytes in [
                marked.clone().into_bytes(),
                utf16(&marked, u16::to_le_bytes),
                utf16(&marked, u16::to_be_bytes),
            ] {
                assert!(read(&bytes, step).unwrap() == text.as_bytes());
            }
        }
        // Only one mark is removed.
        let twice = "\u{feff}\u{feff}a";
        for bytes in [twice.into(), utf16(twice, u16::to_le_bytes)] {
            assert_eq!(read(&bytes, 1).unwrap(), "\u{feff}a".as_bytes());
        }
        for empty in [&b""[..], UTF8, UTF16_LITTLE, UTF16_BIG] {
            assert_eq!(read(empty, 1).unwrap(), b"");
        }
    }

    #[test]
    fn other_bytes_are_not_changed() {
        for bytes in [
            &b"\xef"[..],
            b"\xef\xbb",
            b"\xefa\xff",
            b"\xff",
            b"\xfea\n",
            b"ab",
        ] {
            assert_eq!(read(bytes, 1).unwrap(), bytes);
        }
    }

    #[test]
    fn damaged_utf16_is_refused() {
        for (rest, found) in [
            (&b"a"[..], "an odd number"),
            (b"a\0b", "an odd number"),
            (b"a\0\0\0", "a NUL"),
            // A first half without the second, and the reverse.
            (b"\0\xd8", "half of"),
            (b"\0\xd8a\0", "half of"),
            (b"\0\xdca\0", "half of"),
        ] {
            let error = read(&[UTF16_LITTLE, rest].concat(), 1).unwrap_err();
            assert!(error.to_string().contains(found), "{error} {rest:?}");
        }
    }
}
