//! Compression and archives, recognised by the first bytes of a source.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

/// Compression that is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

/// Contents of a source, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Keys,
    Compressed(Codec),
    Refused(Refusal),
}

/// Contents that are neither keys nor decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    what: &'static str,
    /// Command or advice that leads to the keys.
    cure: &'static str,
}

impl Refusal {
    const fn content(what: &'static str, cure: &'static str) -> Content {
        Content::Refused(Self { what, cure })
    }

    pub(super) fn error(self) -> io::Error {
        let Self { what, cure } = self;
        io::Error::other(format!("expected keys, found {what} ({cure})"))
    }
}

/// Longest prefix that [`sniff`] reads: up to the magic of a tar header.
const PREFIX_LEN: usize = 262;

/// Contents that begin with `prefix`. Every magic is long enough to begin at
/// most one in 2^26 files of random integers.
fn sniff(prefix: &[u8]) -> Content {
    match prefix {
        [0x1f, 0x8b, 8, flags, ..] if flags & 0xe0 == 0 => {
            Content::Compressed(Codec::Gzip)
        }
        // The second is a skippable frame, which parallel compressors write.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Content::Compressed(Codec::Zstd)
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            Content::Compressed(Codec::Xz)
        }
        // A block, or the end of an empty file.
        [
            b'B',
            b'Z',
            b'h',
            b'1'..=b'9',
            0x31,
            0x41,
            0x59,
            0x26,
            0x53,
            0x59,
            ..,
        ]
        | [
            b'B',
            b'Z',
            b'h',
            b'1'..=b'9',
            0x17,
            0x72,
            0x45,
            0x38,
            0x50,
            0x90,
            ..,
        ] => Content::Compressed(Codec::Bzip2),
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => {
            Refusal::content("a zip archive", "unzip -p FILE | tamis ... -")
        }
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => {
            Refusal::content("a 7z archive", "7z x -so FILE | tamis ... -")
        }
        [b'R', b'a', b'r', b'!', 0x1a, 7, ..] => Refusal::content(
            "a rar archive",
            "unrar p -inul FILE | tamis ... -",
        ),
        [4, 0x22, 0x4d, 0x18, ..] => {
            Refusal::content("lz4 data", "lz4 -dc FILE | tamis ... -")
        }
        // The magic and the first byte of a page header.
        [b'P', b'A', b'R', b'1', 0x15, ..] => Refusal::content(
            "a Parquet file",
            "duckdb -list -noheader -c \"select COLUMN from 'FILE'\" | tamis \
             ... -",
        ),
        [0x89, b'T', b'A', b'M', b'I', b'S', b'\r', b'\n', ..] => {
            Refusal::content(
                "a tamis filter",
                "`tamis merge` combines filters",
            )
        }
        _ if prefix.get(257..PREFIX_LEN) == Some(b"ustar") => {
            Refusal::content("a tar archive", "tar -xOf FILE | tamis ... -")
        }
        _ => Content::Keys,
    }
}

/// One complete magic of every kind but tar.
const MAGICS: [&[u8]; 13] = [
    &[0x1f, 0x8b, 8, 0],
    &[0x28, 0xb5, 0x2f, 0xfd],
    &[0x50, 0x2a, 0x4d, 0x18],
    b"\xfd7zXZ\0",
    b"BZh9\x31\x41\x59\x26\x53\x59",
    b"BZh9\x17\x72\x45\x38\x50\x90",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    &[4, 0x22, 0x4d, 0x18],
    b"PAR1\x15",
    b"\x89TAMIS\r\n",
];

/// True if `prefix` is the beginning of a magic, but not all of it.
fn is_undecided(prefix: &[u8]) -> bool {
    let is_keys = sniff(prefix) == Content::Keys;
    is_keys
        && MAGICS.iter().any(|magic| match magic.get(prefix.len()..) {
            Some(rest) if !rest.is_empty() => {
                sniff(&[prefix, rest].concat()) != Content::Keys
            }
            _ => false,
        })
}

/// Contents of `reader` and a reader of the same bytes. Makes a single read
/// unless it returns the beginning of a magic: the writer of a pipe may wait
/// for an answer.
fn peek<R: Read>(mut reader: R) -> io::Result<(Content, impl Read)> {
    let mut prefix = vec![0; PREFIX_LEN];
    let mut len = 0;
    loop {
        match reader.read(&mut prefix[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if !is_undecided(&prefix[..len]) {
            break;
        }
    }
    prefix.truncate(len);
    Ok((sniff(&prefix), Cursor::new(prefix).chain(reader)))
}

/// Compression of the regular file `path`. Refuses archives, and files whose
/// name promises a compression that they do not have.
pub(super) fn of_file(path: &Path) -> io::Result<Option<Codec>> {
    let (content, _) = peek(std::fs::File::open(path)?)?;
    match (content, Codec::by_extension(path)) {
        (Content::Keys, Some(codec)) => Err(io::Error::other(format!(
            "expected {} data by the name of the file, found none (rename \
             the file if it is not compressed)",
            codec.name()
        ))),
        (Content::Keys, None) => Ok(None),
        (Content::Compressed(codec), _) => Ok(Some(codec)),
        (Content::Refused(refusal), _) => Err(refusal.error()),
    }
}

/// Reader of the decompressed bytes of `reader`.
pub(super) fn decompress(
    reader: impl Read + Send + 'static,
) -> io::Result<Box<dyn Read + Send>> {
    let (content, reader) = peek(reader)?;
    let codec = match content {
        Content::Keys => return Ok(Box::new(reader)),
        Content::Compressed(codec) => codec,
        Content::Refused(refusal) => return Err(refusal.error()),
    };
    let members =
        Members::new(codec, BufReader::with_capacity(BUFFER, reader))?;
    match peek(members)? {
        (Content::Keys, reader) => Ok(Box::new(reader)),
        (Content::Refused(refusal), _) => Err(refusal.error()),
        (Content::Compressed(inner), _) => Err(io::Error::other(format!(
            "expected keys in the {} data, found {} data (decompress it once \
             and pipe it to tamis)",
            codec.name(),
            inner.name()
        ))),
    }
}

/// Bytes of compressed data read at once.
const BUFFER: usize = 1 << 16;

/// Memory that an xz file may require, in KiB. `xz -9` requires 65 MiB.
const XZ_MEMORY_KIB: u32 = 1 << 20;

impl Codec {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
        }
    }

    fn by_extension(path: &Path) -> Option<Self> {
        let extension = path.extension().and_then(OsStr::to_str)?;
        match extension.to_ascii_lowercase().as_str() {
            "gz" | "tgz" => Some(Self::Gzip),
            "zst" | "zstd" => Some(Self::Zstd),
            "xz" | "txz" => Some(Self::Xz),
            "bz2" | "tbz2" => Some(Self::Bzip2),
            _ => None,
        }
    }

    /// Decoder of the first member of `source`.
    fn member<R: BufRead + Send + 'static>(
        self,
        source: R,
    ) -> io::Result<Box<dyn Member<R>>> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::bufread::GzDecoder::new(source)),
            Self::Zstd => Box::new(
                zstd::stream::read::Decoder::with_buffer(source)?
                    .single_frame(),
            ),
            Self::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(
                source,
                false,
                XZ_MEMORY_KIB,
            )),
            Self::Bzip2 => Box::new(bzip2::bufread::BzDecoder::new(source)),
        })
    }
}

/// Decoder of one member: a gzip member, a zstd frame, an xz or bzip2 stream.
trait Member<R>: Read + Send {
    /// Source after the last byte that was decoded.
    fn into_source(self: Box<Self>) -> R;
}

impl<R: BufRead + Send> Member<R> for flate2::bufread::GzDecoder<R> {
    fn into_source(self: Box<Self>) -> R {
        self.into_inner()
    }
}

impl<R: BufRead + Send> Member<R> for zstd::stream::read::Decoder<'_, R> {
    fn into_source(self: Box<Self>) -> R {
        self.finish()
    }
}

impl<R: Read + Send> Member<R> for lzma_rust2::XzReader<R> {
    fn into_source(self: Box<Self>) -> R {
        self.into_inner()
    }
}

impl<R: BufRead + Send> Member<R> for bzip2::bufread::BzDecoder<R> {
    fn into_source(self: Box<Self>) -> R {
        self.into_inner()
    }
}

/// Decoder of all members of a source. Zeros may follow a member, as padding.
struct Members<R> {
    codec: Codec,
    /// `None` after the last member.
    member: Option<Box<dyn Member<R>>>,
}

impl<R: BufRead + Send + 'static> Members<R> {
    fn new(codec: Codec, source: R) -> io::Result<Self> {
        Ok(Self { codec, member: Some(codec.member(source)?) })
    }

    /// Decoder of the member at the start of `source`; `None` at the end.
    fn next(&self, mut source: R) -> io::Result<Option<Box<dyn Member<R>>>> {
        loop {
            let bytes = source.fill_buf()?;
            let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
            match bytes.get(zeros..) {
                Some([]) if zeros == 0 => return Ok(None),
                Some([]) => source.consume(zeros),
                // A magic may continue in the next buffer.
                Some(rest)
                    if sniff(rest) == Content::Compressed(self.codec)
                        || is_undecided(rest) =>
                {
                    source.consume(zeros);
                    return self.codec.member(source).map(Some);
                }
                _ => {
                    return Err(io::Error::other(format!(
                        "other bytes follow the end of the {} data (remove \
                         them)",
                        self.codec.name()
                    )));
                }
            }
        }
    }

    /// Error of a decoder, with the name of the compression.
    fn explain(&self, error: io::Error) -> io::Error {
        let name = self.codec.name();
        match error.kind() {
            ErrorKind::Interrupted => error,
            // An error of the file below.
            _ if error.raw_os_error().is_some() => error,
            ErrorKind::UnexpectedEof => io::Error::other(format!(
                "the {name} data is cut short (copy the file again)"
            )),
            ErrorKind::OutOfMemory => io::Error::other(format!(
                "the {name} data needs more memory than tamis allows \
                 (decompress it first): {error}"
            )),
            _ => io::Error::other(format!(
                "the {name} data is damaged: {error}"
            )),
        }
    }
}

impl<R: BufRead + Send + 'static> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(mut member) = self.member.take() {
            match member.read(buffer) {
                Ok(0) if !buffer.is_empty() => {
                    self.member = self.next(member.into_source())?;
                }
                Ok(read) => {
                    self.member = Some(member);
                    return Ok(read);
                }
                Err(error) => {
                    // Other decoders must not be read after an error.
                    if error.kind() == ErrorKind::Interrupted {
                        self.member = Some(member);
                    }
                    return Err(self.explain(error));
                }
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every prefix of a magic is undecided, and the rest decides it.
    #[test]
    fn magics_are_recognised_at_their_last_byte() {
        for magic in MAGICS {
            for len in 1..magic.len() {
                assert!(is_undecided(&magic[..len]), "{magic:x?} {len}");
                assert_eq!(sniff(&magic[..len]), Content::Keys);
            }
            assert!(!is_undecided(magic));
            assert_ne!(sniff(magic), Content::Keys, "{magic:x?}");
        }
        for text in ["", "BZh9 is a key", "Park", "7zip", "(c)", "P\n", "\0"] {
            assert!(text.is_empty() || !is_undecided(text.as_bytes()));
            assert_eq!(sniff(text.as_bytes()), Content::Keys);
        }
    }

    /// Reader that returns one byte per read.
    struct Bytewise<'a>(&'a [u8]);

    impl Read for Bytewise<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = buffer.len().min(1);
            self.0.read(&mut buffer[..len])
        }
    }

    #[test]
    fn contents_are_recognised_whatever_the_reads_return() {
        for magic in MAGICS {
            let (content, mut reader) = peek(Bytewise(magic)).unwrap();
            assert_eq!(content, sniff(magic));
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, magic);
        }
    }
}
