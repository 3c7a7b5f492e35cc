//! Files opened, verified and encoded again, and filters built and queried,
//! for `cargo xtask arch wasm32`.
//!
//! The functions are exported from a WebAssembly module of the library
//! without `std`; `golden.mjs` calls them.

#![expect(unsafe_code, reason = "an exported name is unsafe")]

use std::cell::RefCell;

use tamis::{
    AnyFilter, Balanced, Blocked, Bloom, FilterMut, KeyHasher, Split, TinySet,
};

thread_local! {
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Address of `len` bytes for a file.
#[unsafe(no_mangle)]
pub extern "C" fn room(len: usize) -> *const u8 {
    BYTES.with_borrow_mut(|bytes| {
        *bytes = vec![0; len];
        bytes.as_ptr()
    })
}

/// Opens and verifies the file, and replaces it by its filter's encoding.
/// Returns the number of keys, or -1 if the file is refused.
#[unsafe(no_mangle)]
pub extern "C" fn encode_again() -> f64 {
    BYTES.with_borrow_mut(|bytes| match again(bytes) {
        Ok((items, encoded)) => {
            *bytes = encoded;
            items as f64
        }
        Err(_) => -1.0,
    })
}

fn again(bytes: &[u8]) -> tamis::Result<(u64, Vec<u8>)> {
    let filter = AnyFilter::from_bytes(bytes)?;
    filter.verify()?;
    let owned = filter.into_owned()?;
    Ok((owned.len(), owned.to_bytes()))
}

/// Length of the file.
#[unsafe(no_mangle)]
pub extern "C" fn len() -> usize {
    BYTES.with_borrow(Vec::len)
}

/// Address of the file.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> *const u8 {
    BYTES.with_borrow(Vec::as_ptr)
}

/// A hash of the bytes and answers of filters of every kind and block layout,
/// filled key by key and by batches; 0 if one cannot be built. Equal on every
/// machine.
#[unsafe(no_mangle)]
pub extern "C" fn digest() -> u64 {
    digests().unwrap_or(0)
}

fn digests() -> tamis::Result<u64> {
    let mut all = Vec::new();
    for block_bits in [256, 512] {
        for fpr in [0.1, 0.02, 0.01, 0.001, 0.000_01] {
            let blocked = Blocked::builder().items(ITEMS).fpr(fpr);
            fill(
                blocked.block_bits(block_bits).build()?,
                AnyFilter::Blocked,
                &mut all,
            );
            let split = Split::builder().items(ITEMS).fpr(fpr);
            fill(
                split.block_bits(block_bits).build()?,
                AnyFilter::Split,
                &mut all,
            );
            let tinyset = || {
                let tinyset = TinySet::builder().items(ITEMS).fpr(fpr);
                tinyset.block_bits(block_bits)
            };
            fill(tinyset().build()?, AnyFilter::TinySet, &mut all);
            fill(tinyset().removable().build()?, AnyFilter::TinySet, &mut all);
        }
    }
    for fpr in [0.01, 0.0001] {
        fill(
            Bloom::builder().items(ITEMS).fpr(fpr).build()?,
            AnyFilter::Bloom,
            &mut all,
        );
    }
    let two_level = TinySet::builder().items(ITEMS).fpr(0.001).two_level();
    fill(two_level.build()?, AnyFilter::TinySet, &mut all);
    let balanced = Balanced::builder().items(ITEMS).bits_per_key(20.0);
    fill(balanced.build()?, AnyFilter::Balanced, &mut all);
    Ok(KeyHasher::default().hash(&all[..]))
}

const ITEMS: u64 = 2000;

/// Fills a filter beyond its design, and appends the hashes of its bytes and
/// of its answers.
fn fill<F: FilterMut>(
    mut filter: F,
    any: impl Fn(F) -> AnyFilter,
    all: &mut Vec<u8>,
) {
    let hasher = KeyHasher::default();
    let hashes: Vec<u64> = (0..4 * ITEMS).map(|i| hasher.hash(&i)).collect();
    let (first, rest) = hashes.split_at(ITEMS as usize);
    let (second, _) = rest.split_at(ITEMS as usize / 4);
    let mut answers: Vec<bool> =
        first.iter().map(|&hash| filter.insert_hash(hash)).collect();
    filter.insert_hash_batch(second);
    let single = hashes.iter().map(|&hash| filter.contains_hash(hash));
    let single: Vec<bool> = single.collect();
    let mut batch = vec![false; hashes.len()];
    filter.contains_hash_batch(&hashes, &mut batch);
    assert_eq!(single, batch);
    assert!(batch[..first.len() + second.len()].iter().all(|&found| found));
    answers.extend(batch);
    let answers: Vec<u8> = answers.into_iter().map(u8::from).collect();
    for bytes in [any(filter).to_bytes(), answers] {
        all.extend(hasher.hash(&bytes[..]).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    /// The value that `golden.mjs` expects of WebAssembly.
    #[test]
    fn this_machine_has_the_digest_of_all_others() {
        let script = include_str!("../golden.mjs");
        let expected = format!("const DIGEST = {}n;", super::digest());
        assert!(script.contains(&expected), "golden.mjs lacks {expected}");
    }
}
