//! Checksums and lengths for arbitrary bytes: without them almost no input
//! gets past the header's checks.

use xxhash_rust::xxh3::xxh3_64;

/// The first bytes of a full image.
pub(crate) const MAGIC: &[u8; 8] = b"\x89TAMIS\r\n";
const ALIGN: usize = 64;
/// Offsets of the header's fields: bytes of the file, of the header and of
/// the geometry, and the number of sections.
const FILE_BYTES: usize = 32;
const HEADER_BYTES: usize = 64;
const GEOMETRY_BYTES: usize = 66;
const SECTIONS: usize = 68;
/// Bytes before the geometry, of a section table's entry, of the checksum.
const FIXED: usize = 72;
const ENTRY: usize = 32;
const CHECKSUM: usize = 8;
/// Bytes of the header of the compact form.
const COMPACT_HEADER: usize = 32;

/// Which fields of a full image are corrected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Correct {
    /// Magic, version, lengths of header and file, checksum of the header.
    Header,
    /// These, and consecutive sections with their checksums. A section longer
    /// than the input is cut.
    Sections,
    /// These, and sections longer than the input continue with up to
    /// [`ZEROS`] zeros: a header alone is an image.
    SectionsOfZeros,
}

/// Most zeros behind an input.
const ZEROS: usize = 1024;

/// Writes the input to `out` as a full image. `false` if it is too short for
/// the parts that its header announces.
pub(crate) fn full(input: &[u8], correct: Correct, out: &mut Vec<u8>) -> bool {
    out.clear();
    out.extend_from_slice(input);
    if input.len() < FIXED {
        return false;
    }
    put(out, 0, MAGIC);
    put(out, 8, &tamis::Header::FORMAT_VERSION.to_le_bytes());
    let half = |at: usize| {
        usize::from(u16::from_le_bytes([input[at], input[at + 1]]))
    };
    let (geometry, count) = (half(GEOMETRY_BYTES), half(SECTIONS));
    let header =
        (FIXED + geometry + count * ENTRY + CHECKSUM).next_multiple_of(ALIGN);
    if header > out.len() {
        return false;
    }
    // A length above 16 bits cannot be corrected and must be refused.
    put(out, HEADER_BYTES, &(header as u16).to_le_bytes());
    if correct != Correct::Header {
        let zeros = match correct {
            Correct::SectionsOfZeros => ZEROS,
            _ => 0,
        };
        out.resize(out.len() + zeros, 0);
        let mut end = header;
        for section in 0..count {
            let entry = FIXED + geometry + section * ENTRY;
            let start = end.next_multiple_of(ALIGN).min(out.len());
            let Some(wanted) = out[entry + 16..].first_chunk() else {
                return false;
            };
            let room = out.len() - start;
            let len = u64::from_le_bytes(*wanted).min(room as u64);
            end = start + len as usize;
            let sum = xxh3_64(&out[start..end]);
            let fields = [start as u64, len, sum].map(u64::to_le_bytes);
            put(out, entry + 8, fields.as_flattened());
        }
        out.truncate(end);
    }
    let len = out.len() as u64;
    put(out, FILE_BYTES, &len.to_le_bytes());
    let sum = xxh3_64(&out[..header - CHECKSUM]);
    put(out, header - CHECKSUM, &sum.to_le_bytes());
    true
}

/// Writes the input to `out` as a compact image: with correct magic, version,
/// hash and checksums, and the number of blocks that the bytes hold. `false`
/// if it is too short.
pub(crate) fn compact(input: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    if input.len() < COMPACT_HEADER {
        return false;
    }
    let block_bits = u16::from_le_bytes([input[6], input[7]]);
    let block_bytes = usize::from(block_bits.div_ceil(8)).max(1);
    let blocks = (input.len() - COMPACT_HEADER) / block_bytes;
    out.extend_from_slice(&input[..COMPACT_HEADER + blocks * block_bytes]);
    put(out, 0, b"\x89t\x01");
    out[3] = 1 << 4 | out[3] & 15;
    put(out, 8, &(blocks as u32).to_le_bytes());
    let sum = xxh3_64(&out[COMPACT_HEADER..]) as u32;
    put(out, 24, &sum.to_le_bytes());
    let sum = xxh3_64(&out[..28]) as u32;
    put(out, 28, &sum.to_le_bytes());
    true
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}
