//! The compact form: a header of 32 bytes, and the blocks right behind it.
//!
//! Made for filters of a few kilobytes inside the files of other programs. It
//! holds the same geometry as the full header in fewer bits, and refuses the
//! filters for which these are too few.

use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64;

use super::header::{
    Counts, GeometryBytes, ImageHeader, Section, SectionTable, Writer,
    check_length, corrupt, field, short,
};
use super::{Image, Kind, SectionTag};
use crate::error::{Error, Result};
use crate::key::{HashId, KeyHasher};

/// Bytes of the header.
const HEADER: usize = 32;
/// Bytes that the checksum of the header covers.
const COVERED: usize = 28;
/// The first two bytes of every compact image; the version follows.
const COMPACT_MAGIC: [u8; 2] = [0x89, b't'];
/// The version this build writes and reads.
const VERSION: u8 = 1;
/// Versions that later releases may use. Other values follow `COMPACT_MAGIC` in the
/// files of other programs alone.
const VERSIONS: core::ops::RangeInclusive<u8> = 1..=15;
/// Bit of the flags: heads have 4 bits, and not 8.
const NIBBLE_HEADS: u8 = 16;

/// Whether `image` begins as a compact one.
#[inline]
pub(crate) fn is_compact(image: &[u8]) -> bool {
    image.starts_with(&COMPACT_MAGIC)
        && image.get(2).is_none_or(|version| VERSIONS.contains(version))
}

/// Low 32 bits of XXH3-64.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}

/// Parses and checks a compact header; bytes may follow the image unless
/// `exact`. The result has the geometry in the encoding of the full header.
pub(super) fn parse(image: &[u8], exact: bool) -> Result<ImageHeader> {
    let Some(header) = image.first_chunk::<HEADER>() else {
        return Err(short(image, HEADER));
    };
    let [_, _, version, codes, small, flags, ..] = *header;
    if version != VERSION {
        return Err(Error::UnsupportedVersion {
            found: version.into(),
            supported: VERSION.into(),
        });
    }
    let u32_at = |at| u32::from_le_bytes(field(header, at));
    let (expected, found) = (u32_at(COVERED), checksum(&header[..COVERED]));
    if found != expected {
        return Err(Error::Checksum {
            part: "header",
            expected: expected.into(),
            found: found.into(),
        });
    }
    let block_bits = u16::from_le_bytes(field(header, 6));
    let blocks = u64::from(u32_at(8));
    // Below 2^32 * 2^13: no overflow.
    let payload = blocks * u64::from(block_bits.div_ceil(8));
    let bytes = HEADER as u64 + payload;
    if exact {
        check_length(bytes, image)?;
    }
    let kind = Kind::from_code((codes & 15).into())?;
    let hasher = match HashId::from_code((codes >> 4).into())? {
        HashId::Xxh3 => KeyHasher::xxh3(0),
        HashId::SipHash13 => {
            return Err(corrupt("hash", "a keyed hash has no key here"));
        }
    };
    let counts = Counts {
        items: u32_at(12).into(),
        design_items: u32_at(16).into(),
        design_fpr: f32::from_bits(u32_at(20)).into(),
    };
    counts.check()?;
    let section = Section {
        tag: SectionTag::BLOCKS.0,
        offset: HEADER as u64,
        bytes: payload,
        checksum: u32_at(24).into(),
    };
    let mut parsed = ImageHeader {
        kind,
        hasher,
        counts,
        geometry: GeometryBytes::default(),
        sections: SectionTable::default(),
        bytes,
        header_bytes: HEADER as u16,
    };
    let (geometry, len) = expand(kind, block_bits, blocks, small, flags)?;
    let fits = parsed.geometry.extend(&geometry[..len]);
    match fits.and_then(|()| parsed.sections.extend(&[section])) {
        Some(()) => Ok(parsed),
        None => Err(corrupt("geometry", "longer than that of any kind")),
    }
}

/// The geometry as the full header has it, and its length. Its values are
/// checked by the kind.
fn expand(
    kind: Kind,
    block_bits: u16,
    blocks: u64,
    small: u8,
    flags: u8,
) -> Result<([u8; TINYSET], usize)> {
    let mut bytes = [0; TINYSET];
    let mut at = Writer { bytes: &mut bytes, at: 0 };
    at.put(&blocks.to_le_bytes());
    let len = match kind {
        Kind::Bloom | Kind::Blocked | Kind::Split => {
            if flags != 0 {
                return Err(corrupt("flags", "bits this kind leaves zero"));
            }
            for field in [block_bits.into(), small.into()] {
                at.put(&u32::to_le_bytes(field));
            }
            BLOOM
        }
        Kind::TinySet => {
            let head = if flags & NIBBLE_HEADS != 0 { 4 } else { 8 };
            let flags = flags & !NIBBLE_HEADS;
            let chains = block_bits / 8;
            at.put(&0u64.to_le_bytes());
            for field in [
                block_bits.into(),
                chains.into(),
                small.into(),
                0,
                flags.into(),
                head,
            ] {
                at.put(&u32::to_le_bytes(field));
            }
            TINYSET
        }
        Kind::Balanced => {
            return Err(corrupt("kind", "balanced has no compact form"));
        }
    };
    Ok((bytes, len))
}

/// Bytes of the full geometry of the Bloom kinds, and of a TinySet.
const BLOOM: usize = 16;
const TINYSET: usize = 40;

/// The fields of a geometry that the compact header keeps.
struct Kept {
    blocks: u64,
    block_bits: u32,
    small: u32,
    flags: u32,
}

impl Kept {
    /// The reverse of [`expand`].
    fn of(kind: Kind, geometry: &[u8]) -> Result<Self> {
        let u32_at = |at| u32::from_le_bytes(field(geometry, at));
        let u64_at = |at| u64::from_le_bytes(field(geometry, at));
        match (kind, geometry.len()) {
            (Kind::Bloom | Kind::Blocked | Kind::Split, BLOOM) => Ok(Self {
                blocks: u64_at(0),
                block_bits: u32_at(8),
                small: u32_at(12),
                flags: 0,
            }),
            (Kind::TinySet, TINYSET) => {
                let [block_bits, chains, small] =
                    [u32_at(16), u32_at(20), u32_at(24)];
                let (cap, head) = (u32_at(28), u32_at(36));
                if cap != 0 || u64_at(8) != 0 {
                    return Err(refused(kind, "it has a second level"));
                }
                if chains != block_bits / 8 {
                    return Err(refused(kind, "its blocks have a free shape"));
                }
                let nibbles = u32::from(NIBBLE_HEADS);
                let heads = if head == 4 { nibbles } else { 0 };
                let flags = u32_at(32) | heads;
                Ok(Self { blocks: u64_at(0), block_bits, small, flags })
            }
            _ => Err(refused(kind, "its geometry needs a full header")),
        }
    }
}

fn refused(kind: Kind, why: &'static str) -> Error {
    let operation = "be written in the compact form";
    Error::Unsupported { kind: kind.name(), operation, why }
}

impl Image<'_> {
    /// The image with a compact header.
    pub(crate) fn to_compact_bytes(&self) -> Result<Vec<u8>> {
        let Self { header, sections } = self;
        let ImageHeader { kind, hasher, counts, geometry, .. } = header;
        let refused = |why| refused(*kind, why);
        if *hasher != KeyHasher::default() {
            return Err(refused("its hash is keyed or has a seed"));
        }
        let payload = match (kind, &sections[..]) {
            (Kind::Balanced, _) => {
                return Err(refused("its geometry needs a full header"));
            }
            (_, [payload]) => payload,
            _ => return Err(refused("it has metadata")),
        };
        let kept = Kept::of(*kind, geometry)?;
        let number =
            |value: u64, why| u32::try_from(value).map_err(|_| refused(why));
        let blocks = number(kept.blocks, "it has 2^32 blocks or more")?;
        let items = number(counts.items, "it has 2^32 keys or more")?;
        let design_items =
            number(counts.design_items, "it was sized for 2^32 keys or more")?;
        let design_fpr = counts.design_fpr as f32;
        if f64::from(design_fpr) != counts.design_fpr {
            return Err(refused("its design rate has more than 24 bits"));
        }
        let mut header = [0; HEADER];
        let mut at = Writer { bytes: &mut header, at: 0 };
        let codes = kind.code() | hasher.id().code() << 4;
        at.put(&COMPACT_MAGIC);
        // Codes are below 16, and the kinds limit block bits to 8192, the
        // probes and remainders to 40 and the flags to 31.
        at.put(&[VERSION, codes as u8, kept.small as u8, kept.flags as u8]);
        at.put(&(kept.block_bits as u16).to_le_bytes());
        for field in [
            blocks,
            items,
            design_items,
            design_fpr.to_bits(),
            checksum(payload),
        ] {
            at.put(&field.to_le_bytes());
        }
        let sum = checksum(&header[..COVERED]);
        header[COVERED..].copy_from_slice(&sum.to_le_bytes());
        let mut out = Vec::with_capacity(HEADER + payload.len());
        out.extend_from_slice(&header);
        out.extend_from_slice(payload);
        Ok(out)
    }
}
