//! Keys of the records that tests and examples count.

/// SplitMix64: a bijection.
pub(crate) fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A key of 16 bytes, another one for each number.
pub(crate) fn key(n: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(n).to_le_bytes());
    key[8..].copy_from_slice(&n.to_le_bytes());
    key
}
