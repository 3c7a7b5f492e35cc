//! Little-endian integers, variable-length integers and checksums.

use twox_hash::XxHash3_64;

/// The `N` bytes at `at`, zeros where the slice ends before.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    if let Some(source) = bytes.get(at..at + N) {
        array.copy_from_slice(source);
    }
    array
}

/// The `u16` at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

/// The `u32` at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

/// The `u64` at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// The `u128` at `at`.
pub(crate) fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(array(bytes, at))
}

/// Checksum of `bytes`: XXH3-64 with a seed.
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// Appends `value` in LEB128: seven bits a byte, the lowest first, the upper
/// bit set in all bytes but the last.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Length of the encoding of `value`.
pub(crate) fn varint_len(value: u32) -> usize {
    ((31 - (value | 1).leading_zeros()) / 7 + 1) as usize
}

/// Decodes a varint at `*at` and advances `*at`. `None` if the slice ends, or
/// the value exceeds 32 bits.
#[inline]
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(first.into());
    }
    let mut value = u32::from(first & 0x7f);
    for shift in [7, 14, 21, 28] {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if shift == 28 && byte > 0x0f {
            return None;
        }
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_read_as_written() {
        for value in [0, 1, 127, 128, 16383, 16384, 1 << 28, u32::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value), "{value}");
            let mut at = 0;
            assert_eq!(varint(&out, &mut at), Some(value));
            assert_eq!(at, out.len());
            for cut in 0..out.len() {
                assert_eq!(varint(&out[..cut], &mut 0), None);
            }
        }
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0x10], &mut 0), None);
    }
}
