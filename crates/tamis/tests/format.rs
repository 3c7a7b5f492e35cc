//! The file format: golden files read and written, and damaged files.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use std::path::PathBuf;

use proptest::prelude::*;
use support::{Recipe, Size, key, keys};
use tamis::{
    AnyFilter, Balanced, Blocked, Builder, Error, KeyHasher, Kind, Removal,
    TinySet, inspect::Inspector,
};

const ITEMS: u64 = 700;

/// Every kind, block size and hash function, in small files.
fn golden() -> Vec<(String, Recipe)> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        for (name, hasher, block_bits) in [
            ("xxh3-512", KeyHasher::xxh3(0), 512),
            ("xxh3-seed-256", KeyHasher::xxh3(0xdead_beef_0042), 256),
            ("siphash-512", KeyHasher::siphash(7 << 90 | 0x1234), 512),
        ] {
            let mut recipe = Recipe::new(kind, ITEMS, Size::BitsPerKey(10.0));
            recipe.hasher = hasher;
            recipe.block_bits = block_bits;
            all.push((format!("{kind}-{name}.tamis"), recipe));
        }
    }
    all
}

fn build(recipe: &Recipe) -> AnyFilter {
    let mut filter = recipe.build().unwrap();
    for key in keys(1, ITEMS) {
        filter.insert(&key);
    }
    filter
}

/// A TinySet that is the result of a history, not of insertions alone.
struct Past {
    name: &'static str,
    filter: TinySet,
    /// Numbers of the keys it must contain.
    hashes: Vec<u64>,
}

fn pasts() -> Vec<Past> {
    let hashes: Vec<u64> = keys(1, ITEMS).collect();
    let builder = TinySet::builder().items(ITEMS).bits_per_key(10.0);
    // Crowded enough for reversed heads.
    let crowded = builder.bits_per_key(9.0);
    let removed = |name, builder: Builder<TinySet>| {
        let mut filter = builder.removable().build().unwrap();
        filter.insert_hash_batch(&hashes[..600]);
        for &hash in &hashes[..200] {
            assert_eq!(filter.remove_hash(hash), Ok(Removal::Removed));
        }
        filter.insert_hash_batch(&hashes[600..]);
        Past { name, filter, hashes: hashes[200..].to_vec() }
    };
    let repeats = {
        let mut filter = builder.repeats().build().unwrap();
        filter.insert_hash_batch(&hashes[..400]);
        filter.insert_hash_batch(&hashes[..100]);
        filter.insert_hash_batch(&hashes[..50]);
        let hashes = hashes[..400].to_vec();
        Past { name: "tinyset-repeats.tamis", filter, hashes }
    };
    let grown = {
        let mut filter = builder.items(ITEMS / 2).build().unwrap();
        filter.insert_hash_batch(&hashes[..350]);
        let mut filter = filter.doubled().unwrap();
        filter.insert_hash_batch(&hashes[350..]);
        let hashes = hashes.clone();
        Past { name: "tinyset-grown.tamis", filter, hashes }
    };
    let saturated = {
        let mut filter = builder.repeats().items(100).build().unwrap();
        assert_eq!(filter.block_count(), 2);
        // Saturates the left block; the right one has few entries.
        let hashes: Vec<u64> = (0..449)
            .map(|i| key(1, i) >> 1)
            .chain((0..30).map(|i| key(2, i) >> 1 | 1 << 63))
            .collect();
        filter.insert_hash_batch(&hashes);
        assert_eq!(filter.stats().saturated_blocks, 1);
        Past { name: "tinyset-saturated.tamis", filter, hashes }
    };
    let free = {
        // Blocks whose bits are no multiple of eight.
        let builder = builder.block_bits(150).chains(21);
        let mut filter = builder.build().unwrap();
        filter.insert_hash_batch(&hashes);
        let hashes = hashes.clone();
        Past { name: "tinyset-free.tamis", filter, hashes }
    };
    let placed = {
        // Some blocks fuller than that, without heads.
        let mut filter = crowded.items(ITEMS / 2).build().unwrap();
        filter.insert_hash_batch(&hashes);
        let hashes = hashes.clone();
        Past { name: "tinyset-placed.tamis", filter, hashes }
    };
    let sparse = {
        // Sparse enough for 8-bit heads.
        let mut filter = builder.bits_per_key(16.0).build().unwrap();
        filter.insert_hash_batch(&hashes);
        let hashes = hashes.clone();
        Past { name: "tinyset-sparse.tamis", filter, hashes }
    };
    let two_level = {
        let builder = builder.fpr(0.0005).two_level();
        let mut filter = builder.build().unwrap();
        filter.insert_hash_batch(&hashes);
        assert!(filter.stats().reads_hit > 1.0, "nothing has spilled");
        let hashes = hashes.clone();
        Past { name: "tinyset-two-level.tamis", filter, hashes }
    };
    vec![
        removed("tinyset-removed-512.tamis", builder),
        removed("tinyset-removed-256.tamis", builder.block_bits(256)),
        removed("tinyset-removed-placed.tamis", crowded),
        placed,
        repeats,
        grown,
        saturated,
        free,
        sparse,
        two_level,
    ]
}

/// A filter with metadata.
fn annotated() -> (String, AnyFilter) {
    let mut recipe = Recipe::new(Kind::Blocked, 40, Size::BitsPerKey(10.0));
    recipe.block_bits = 256;
    let mut filter = recipe.build().unwrap();
    for key in keys(1, 40) {
        filter.insert(&key);
    }
    for (name, value) in METADATA {
        filter.set_metadata(name, value).unwrap();
    }
    ("blocked-metadata.tamis".into(), filter)
}

/// Sorted by name.
const METADATA: [(&str, &str); 4] = [
    ("com.example.shard", "7"),
    ("key-format", "hex"),
    ("note", "clés du 1er mai\n"),
    ("source", "keys.txt"),
];

fn past(name: &str) -> TinySet {
    let mut all = pasts().into_iter();
    all.find(|past| past.name == name).unwrap().filter
}

fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/v1")
        .join(name)
}

/// Set `TAMIS_WRITE_GOLDEN` once, when a kind is added. Existing files are
/// never rewritten: users have such files on their disks.
#[test]
fn builds_reproduce_the_golden_files() {
    let recipes = golden().into_iter();
    let recipes =
        recipes.map(|(name, recipe)| (name, build(&recipe).to_bytes()));
    let pasts = pasts().into_iter();
    let pasts = pasts.map(|past| (past.name.into(), past.filter.to_bytes()));
    let (name, filter) = annotated();
    let annotated = [(name, filter.to_bytes())];
    for (name, bytes) in recipes.chain(pasts).chain(annotated) {
        let path = golden_path(&name);
        if std::env::var_os("TAMIS_WRITE_GOLDEN").is_some() && !path.exists() {
            std::fs::write(&path, &bytes).unwrap();
        }
        let stored = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(bytes == stored, "{name}: the bytes have changed");
    }
}

#[test]
fn golden_files_open_and_answer() {
    for (name, recipe) in golden() {
        let filter = AnyFilter::open(golden_path(&name)).unwrap();
        filter.verify().unwrap();
        assert_eq!(filter.kind(), recipe.kind, "{name}");
        assert_eq!(*filter.hasher(), recipe.hasher, "{name}");
        let stats = filter.stats();
        assert_eq!(stats.design_items, ITEMS);
        // A balanced filter does not insert a key that is already found.
        let least = if recipe.kind == Kind::Balanced { 690 } else { ITEMS };
        assert!((least..=ITEMS).contains(&stats.items), "{name}");
        assert!(keys(1, ITEMS).all(|key| filter.contains(&key)), "{name}");
        let wrong = keys(2, 2000).filter(|key| filter.contains(key)).count();
        assert!(wrong < 60, "{name}: {wrong} false positives of 2000");
    }
}

#[test]
fn golden_files_with_a_past_open_and_answer() {
    for Past { name, filter, hashes } in pasts() {
        let opened = AnyFilter::open(golden_path(name)).unwrap();
        opened.verify().unwrap();
        assert_eq!(opened.kind(), Kind::TinySet, "{name}");
        assert_eq!(opened.stats(), filter.stats(), "{name}");
        let ours = AnyFilter::from(filter.clone());
        assert!(opened == ours, "{name}");
        let parameters = Inspector::new(&opened).parameters();
        assert_eq!(parameters, Inspector::new(&ours).parameters(), "{name}");
        let mut found = vec![false; hashes.len()];
        opened.contains_hash_batch(&hashes, &mut found);
        assert!(found.iter().all(|&found| found), "{name}");
        let AnyFilter::TinySet(opened) = opened else {
            panic!("{name} is no TinySet");
        };
        assert!(
            Inspector::new(&opened)
                .stored()
                .eq(Inspector::new(&filter).stored()),
            "{name}"
        );
        // A changed filter can be changed again.
        let mut owned = opened.into_owned().unwrap();
        owned.insert_hash_batch(&[1, 2, 3]);
        if owned.is_removable() {
            for &hash in &hashes {
                let removal = owned.remove_hash(hash);
                assert_eq!(removal, Ok(Removal::Removed), "{name}");
            }
            assert_eq!(owned.stats().items, 3, "{name}");
        }
        owned.verify().unwrap();
    }
}

#[test]
fn golden_file_with_metadata_opens_and_answers() {
    let (name, filter) = annotated();
    let mut opened = AnyFilter::open(golden_path(&name)).unwrap();
    opened.verify().unwrap();
    assert!(keys(1, 40).all(|key| opened.contains(&key)));
    assert!(opened.metadata().unwrap().iter().eq(METADATA));
    assert!(opened == filter.clone());
    assert_eq!(opened.bytes(), filter.to_bytes().len() as u64);
    assert!(opened.to_compact_bytes().is_err(), "no room for metadata");

    // A mapped filter can get other metadata, too.
    opened.set_metadata("note", "").unwrap();
    opened.set_metadata("created", "2025-05-01").unwrap();
    let bytes = opened.to_bytes();
    assert_eq!(opened.bytes(), bytes.len() as u64);
    let again = AnyFilter::from_bytes(&bytes[..]).unwrap();
    again.verify().unwrap();
    let names = again.metadata().unwrap().iter().map(|(name, _)| name);
    assert!(names.eq([
        "com.example.shard",
        "created",
        "key-format",
        "source"
    ]));
    // Without metadata the file is that of a filter that never had any.
    for (name, _) in METADATA {
        opened.set_metadata(name, "").unwrap();
    }
    opened.set_metadata("created", "").unwrap();
    let mut plain = filter.clone();
    for (name, _) in METADATA {
        plain.set_metadata(name, "").unwrap();
    }
    assert_eq!(opened.to_bytes(), plain.to_bytes());
    assert!(opened.to_compact_bytes().is_ok());
}

/// Damaged metadata is an error of `metadata` and of copies, and the keys are
/// found all the same.
#[test]
fn damaged_metadata_is_an_error_and_loses_no_key() {
    let (_, filter) = annotated();
    let mut bytes = filter.to_bytes();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let view = AnyFilter::from_bytes(&bytes[..]).unwrap();
    assert!(keys(1, 40).all(|key| view.contains(&key)));
    let is_checksum = |result: Result<(), Error>| match result {
        Err(Error::Checksum { part: "metadata" | "payload", .. }) => {}
        other => panic!("{other:?}"),
    };
    is_checksum(view.metadata().map(|_| ()));
    is_checksum(view.verify());
    is_checksum(view.clone().set_metadata("note", "a"));
    is_checksum(view.into_owned().map(|_| ()));
}

/// Sections of metadata with correct checksums and wrong content or place.
#[test]
fn resealed_metadata_cannot_lie() {
    let (_, filter) = annotated();
    let bytes = filter.to_bytes();
    let header = usize::from(u16::from_le_bytes([bytes[64], bytes[65]]));
    let entry = 72 + 16 + 32;
    let u64_at = |at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
    };
    let (start, len) = (u64_at(entry + 8), u64_at(entry + 16));
    let reseal = |section: &[u8]| {
        let mut bytes = [&bytes[..start], section].concat();
        let put = |bytes: &mut Vec<u8>, at: usize, value: u64| {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        let end = bytes.len() as u64;
        put(&mut bytes, 32, end);
        put(&mut bytes, entry + 16, section.len() as u64);
        let sum = xxhash_rust::xxh3::xxh3_64(section);
        put(&mut bytes, entry + 24, sum);
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..header - 8]);
        put(&mut bytes, header - 8, sum);
        let view = AnyFilter::from_bytes(&bytes[..])?;
        assert!(keys(1, 40).all(|key| view.contains(&key)));
        let result = view.metadata().map(|_| ());
        assert_eq!(view.verify(), result);
        result
    };
    let section = bytes[start..start + len].to_vec();
    reseal(&section).unwrap();
    for cut in 0..len {
        let cut = reseal(&section[..cut]);
        // An entry may end there.
        if cut.is_ok() {
            continue;
        }
        assert!(matches!(
            cut,
            Err(Error::Inconsistent(_) | Error::Corrupt { .. })
        ));
    }
    let newer = [&[2], &section[1..]].concat();
    assert!(matches!(
        reseal(&newer),
        Err(Error::UnsupportedVersion { found: 2, .. })
    ));
    let long = section.repeat(2000);
    assert!(matches!(reseal(&long), Err(Error::Corrupt { .. })));
}

/// A blocked filter with this many blocks of 64 bytes.
fn with_blocks(blocks: u64) -> AnyFilter {
    let builder = Blocked::builder().bits_per_key(16.0).items(32 * blocks);
    let filter = builder.build_from(0..9 * blocks).unwrap();
    assert_eq!(filter.block_count(), blocks);
    filter.into()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Sections of more than 64 KiB as the format describes them, and the
/// checksum of a whole file: its bytes are frozen, too large for the folder of
/// golden files.
#[test]
fn long_sections_have_a_checksum_for_each_chunk() {
    const CHUNK: usize = 1 << 16;
    let xxh3 = xxhash_rust::xxh3::xxh3_64;
    for blocks in [1024, 1026, 1100, 2048, 3000] {
        let filter = with_blocks(blocks);
        let bytes = filter.to_bytes();
        assert_eq!(filter.bytes(), bytes.len() as u64);
        let header = usize::from(u16::from_le_bytes([bytes[64], bytes[65]]));
        let entry = 72 + 16;
        let start = u64_at(&bytes, entry + 8) as usize;
        let len = u64_at(&bytes, entry + 16) as usize;
        assert_eq!((start, len), (header, 64 * blocks as usize));
        let section = &bytes[start..start + len];
        let expected = if len <= CHUNK {
            assert_eq!(bytes.len(), start + len);
            xxh3(section)
        } else {
            // Blocks are lines, so no padding precedes the list.
            let list = &bytes[start + len..];
            assert_eq!(list.len(), 8 * len.div_ceil(CHUNK));
            for (number, chunk) in section.chunks(CHUNK).enumerate() {
                assert_eq!(u64_at(list, 8 * number), xxh3(chunk));
            }
            xxh3(list)
        };
        assert_eq!(u64_at(&bytes, entry + 24), expected);

        let view = AnyFilter::from_bytes(&bytes[..]).unwrap();
        view.verify().unwrap();
        assert_eq!(view.to_bytes(), bytes);
        let mut written = Vec::new();
        filter.write_to(&mut written).unwrap();
        assert!(written == bytes);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("filter.tamis");
        filter.save(&path).unwrap();
        assert!(std::fs::read(&path).unwrap() == bytes);
        if blocks == 1100 {
            assert_eq!(xxh3(&bytes), 0x19d1_46e1_c871_6ed0);
        }
    }
}

#[test]
fn damage_in_a_chunk_is_found_by_its_range() {
    let filter = with_blocks(3000);
    let bytes = filter.to_bytes();
    let (end, list) = (bytes.len() as u64, bytes.len() - 3 * 8);
    let chunks = [128..65_664, 65_664..131_200, 131_200..192_128];
    for at in [128, 65_663, 65_664, 131_199, 131_200, 192_127] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(survive(&damaged).is_err(), "{at}");
        let view = AnyFilter::from_bytes(&damaged[..]).unwrap();
        for chunk in &chunks {
            let damaged = chunk.contains(&(at as u64));
            for range in [
                chunk.clone(),
                chunk.start..chunk.start + 1,
                chunk.end - 1..chunk.end,
            ] {
                let result = view.verify_range(range);
                assert_eq!(result.is_err(), damaged, "{at}: {result:?}");
            }
        }
        assert!(view.verify_range(0..end).is_err());
        view.verify_range(0..128).unwrap();
        view.verify_range(end..u64::MAX).unwrap();
        view.verify_range(0..0).unwrap();
    }
    // The list of checksums.
    for at in list..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let view = AnyFilter::from_bytes(&damaged[..]).unwrap();
        for chunk in &chunks {
            assert!(matches!(
                view.verify_range(chunk.clone()),
                Err(Error::Checksum { part: "chunk checksums", .. })
            ));
        }
    }
    for len in [list, bytes.len() - 1] {
        assert!(AnyFilter::from_bytes(&bytes[..len]).is_err());
    }
    filter.verify_range(0..end).unwrap();
}

/// Two long sections, the first of which does not end at a multiple of 64,
/// and metadata behind them.
#[test]
fn long_lists_and_metadata_follow_long_blocks() {
    let mut filter = Balanced::builder()
        .items(33_024)
        .bits_per_key(17.0)
        .block_bits(256)
        .scheme(tamis::Scheme::Single)
        .access_budget(1.0)
        .overflow(tamis::Overflow::List)
        .build()
        .unwrap();
    filter.extend(0..60_000u64);
    filter.set_metadata("note", "behind").unwrap();
    let bytes = filter.to_bytes();
    assert_eq!(filter.bytes(), bytes.len() as u64);
    let geometry = usize::from(u16::from_le_bytes([bytes[66], bytes[67]]));
    let lengths = [0, 1, 2]
        .map(|section| u64_at(&bytes, 72 + geometry + 32 * section + 16));
    assert!(lengths[0] > 1 << 16 && lengths[0] % 64 != 0, "{lengths:?}");
    assert!(lengths[1] > 1 << 16, "{lengths:?}");
    let view = AnyFilter::from_bytes(&bytes[..]).unwrap();
    view.verify().unwrap();
    assert_eq!(view.to_bytes(), bytes);
    assert_eq!(view.metadata().unwrap().get("note"), Some("behind"));
    assert!((0..60_000u64).all(|key| view.contains(&key)));
    let owned = view.into_owned().unwrap();
    assert!(owned == AnyFilter::from(filter));
    // Every byte behind the header has a checksum, or is padding.
    let header = usize::from(u16::from_le_bytes([bytes[64], bytes[65]]));
    for at in (header..bytes.len()).step_by(1013).chain([bytes.len() - 1]) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let view = AnyFilter::from_bytes(&damaged[..]).unwrap();
        assert!(view.verify().is_err(), "{at}");
    }
}

#[test]
fn empty_filters_survive_the_journey() {
    for kind in Kind::ALL {
        let filter = Recipe::new(kind, 0, Size::Fpr(0.01)).build().unwrap();
        let bytes = filter.to_bytes();
        let view = AnyFilter::from_bytes(&bytes[..]).unwrap();
        view.verify().unwrap();
        assert_eq!(view.stats().items, 0);
        assert!(!view.contains("anything"));
        assert_eq!(view.to_bytes(), bytes);
    }
}

/// Arbitrary bytes give an error, or a filter that answers without
/// panicking.
fn survive(bytes: &[u8]) -> Result<(), Error> {
    let filter = AnyFilter::from_bytes(bytes)?;
    let hashes = [0, 1, u64::MAX, 1 << 63];
    let (mut found, mut mask) = ([false; 4], [0]);
    filter.contains_hash_batch(&hashes, &mut found);
    filter.contains_hash_mask(&hashes, &mut mask);
    for (at, hash) in hashes.into_iter().enumerate() {
        filter.prefetch(hash);
        assert_eq!(filter.contains_hash(hash), found[at]);
        assert_eq!(mask[0] >> at & 1 == 1, found[at]);
    }
    let _ = (filter.len(), filter.bytes(), filter.is_empty());
    filter.contains("apple");
    let verified = filter.verify();
    let _ = filter.stats();
    verified
}

#[test]
fn every_flipped_bit_is_found() {
    let recipes = golden().into_iter();
    let recipes =
        recipes.map(|(name, recipe)| (name, build(&recipe).to_bytes()));
    let pasts = pasts().into_iter();
    let pasts = pasts.map(|past| (past.name.into(), past.filter.to_bytes()));
    let (name, filter) = annotated();
    let annotated = [(name, filter.to_bytes())];
    for (name, bytes) in recipes.chain(pasts).chain(annotated) {
        survive(&bytes).unwrap();
        // Flips each bit of each byte.
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(survive(&damaged).is_err(), "{name}: byte {at}");
        }
    }
}

#[test]
fn every_missing_or_extra_byte_is_found_at_once() {
    let (_, recipe) = golden().swap_remove(3);
    let bytes = build(&recipe).to_bytes();
    for len in 0..bytes.len() {
        assert!(AnyFilter::from_bytes(&bytes[..len]).is_err(), "{len}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(
        AnyFilter::from_bytes(&longer[..]),
        Err(Error::Length { .. })
    ));
    for at in (0..bytes.len()).step_by(13) {
        let mut inserted = bytes.clone();
        inserted.insert(at, 0);
        assert!(survive(&inserted).is_err(), "inserted at {at}");
        let mut removed = bytes.clone();
        removed.remove(at);
        assert!(survive(&removed).is_err(), "removed at {at}");
    }
}

#[test]
fn errors_name_the_fault() {
    let (_, recipe) = golden().swap_remove(0);
    let bytes = build(&recipe).to_bytes();
    let error =
        |bytes: &[u8]| AnyFilter::from_bytes(bytes).unwrap_err().to_string();
    assert!(error(b"").contains("too short"));
    assert!(error(b"a text file").contains("not a tamis file"));
    assert!(error(&bytes[..100]).contains("too short"));
    let mut newer = bytes.clone();
    newer[8] = 2;
    assert!(error(&newer).contains("version 2"), "{}", error(&newer));
    let mut flipped = bytes.clone();
    flipped[40] ^= 1;
    assert!(error(&flipped).contains("checksum of the header"));
    let other = tamis::Split::from_bytes(&bytes[..]).unwrap_err();
    assert_eq!(
        other.to_string(),
        "the file holds a bloom filter, not a split filter"
    );
}

/// A header with a correct checksum may still have wrong values. No size in
/// it is used for an allocation or a read before it is checked.
#[test]
fn resealed_headers_cannot_lie() {
    let (_, recipe) = golden().swap_remove(3);
    let bytes = build(&recipe).to_bytes();
    let header = usize::from(u16::from_le_bytes([bytes[64], bytes[65]]));
    let reseal = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        edit(&mut bytes);
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..header - 8]);
        bytes[header - 8..header].copy_from_slice(&sum.to_le_bytes());
        survive(&bytes)
    };
    reseal(&|_| {}).unwrap();
    let u64_at = |at: usize, value: u64| {
        reseal(&move |bytes: &mut Vec<u8>| {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        })
    };
    // Blocks: none, one too many, and a number whose bytes overflow.
    for blocks in [0, 1, 1 << 40, 1 << 55, 1 << 58, u64::MAX] {
        assert!(u64_at(72, blocks).is_err(), "{blocks} blocks");
    }
    // Block bits and probes.
    for word in [0, 512, 512 | 33 << 32, 64 | 5 << 32, u64::MAX] {
        assert!(u64_at(80, word).is_err(), "{word:#x}");
    }
    // Section: tag, reserved, offset, length.
    for at in [88, 96, 104] {
        for value in [0, 1, 64, 1 << 32, u64::MAX - 63, u64::MAX] {
            assert!(u64_at(at, value).is_err(), "{at}: {value:#x}");
        }
    }
    // File length, and a rate that is not a number.
    assert!(u64_at(32, u64::MAX).is_err());
    assert!(u64_at(32, 1 << 63).is_err());
    for fpr in [f64::NAN, f64::INFINITY, -0.5, 1.5] {
        assert!(u64_at(56, fpr.to_bits()).is_err(), "{fpr}");
    }
    // `verify` finds a count of keys that contradicts the bits.
    assert!(matches!(u64_at(40, 0), Err(Error::Inconsistent(_))));
    // Unknown kind, hash and flags.
    for at in [10, 12, 14, 70] {
        let result = reseal(&|bytes: &mut Vec<u8>| bytes[at] = 0xee);
        assert!(result.is_err(), "byte {at}");
    }
    // A seed wider than XXH3's 64 bits.
    assert!(u64_at(24, 1).is_err());
}

/// A geometry with a field that its kind does not have.
#[test]
fn longer_geometries_are_refused() {
    for name in [
        "blocked-xxh3-512.tamis",
        "tinyset-xxh3-512.tamis",
        "balanced-xxh3-512.tamis",
    ] {
        let bytes = std::fs::read(golden_path(name)).unwrap();
        let half = |at: usize| {
            usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
        };
        let (header, found, sections) = (half(64), half(66), half(68));
        let table = 72 + found..72 + found + 32 * sections;
        for more in [0, 8] {
            let mut out = bytes[..72 + found].to_vec();
            out.resize(72 + found + more, 0);
            out.extend_from_slice(&bytes[table.clone()]);
            let longer = (out.len() + 8).next_multiple_of(64);
            out.resize(longer, 0);
            out.extend_from_slice(&bytes[header..]);
            let moved = (longer - header) as u64;
            for i in 0..sections {
                let at = 72 + found + more + 32 * i + 8;
                let offset = u64_at(&out, at) + moved;
                out[at..at + 8].copy_from_slice(&offset.to_le_bytes());
            }
            let len = out.len() as u64;
            out[32..40].copy_from_slice(&len.to_le_bytes());
            out[64..66].copy_from_slice(&(longer as u16).to_le_bytes());
            let length = (found + more) as u16;
            out[66..68].copy_from_slice(&length.to_le_bytes());
            seal(&mut out);
            let opened = AnyFilter::from_bytes(&out[..]).map(|f| f.len());
            match (more, opened) {
                (0, Ok(_)) => {}
                (8, Err(Error::Corrupt { field: "geometry", .. })) => {}
                (_, other) => panic!("{name}, {more} more: {other:?}"),
            }
        }
    }
}

/// The same for the geometry of a TinySet.
#[test]
fn resealed_tinysets_cannot_lie() {
    let bytes = past("tinyset-removed-512.tamis").to_bytes();
    let reseal = |at: usize, field: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + field.len()].copy_from_slice(field);
        seal(&mut bytes);
        survive(&bytes)
    };
    reseal(72, &[]).unwrap();
    for at in [72, 80] {
        for blocks in [0, 1, 1 << 40, 1 << 55, 1 << 58, u64::MAX] {
            let result = reseal(at, &u64::to_le_bytes(blocks));
            // Without a second level the field is valid.
            assert_eq!(result.is_err(), (at, blocks) != (80, 0), "{blocks}");
        }
    }
    for (at, what, values) in [
        (88, "block bits", [0, 64, 8193, 256, u32::MAX]),
        (92, "chains", [0, 497, 1025, 63, u32::MAX]),
        (96, "remainder bits", [0, 7, 41, 64, u32::MAX]),
        (100, "cap", [1, 45, 63, 64, u32::MAX]),
        // Flags: removable but neither elastic nor with repeats; unknown.
        (104, "flags", [2, 3, 6, 16, u32::MAX]),
        (108, "head bits", [0, 1, 2, 16, u32::MAX]),
    ] {
        for value in values {
            let result = reseal(at, &u32::to_le_bytes(value));
            assert!(result.is_err(), "{what}: {value}");
        }
    }
    // Only 4-bit heads of one level may be reversed.
    for name in ["tinyset-sparse.tamis", "tinyset-two-level.tamis"] {
        let mut bytes = past(name).to_bytes();
        bytes[104] |= 8;
        seal(&mut bytes);
        let result = survive(&bytes);
        assert!(matches!(result, Err(Error::Corrupt { .. })), "{name}");
    }
    // A count of keys that differs from that of the entries. A grown filter
    // may have entries twice, so only too low a count is an error.
    assert!(reseal(40, &u64::to_le_bytes(ITEMS - 199)).is_err());
    let counted = past("tinyset-repeats.tamis");
    let items = counted.stats().items;
    for wrong in [0, items - 1, items + 1, u64::MAX] {
        let mut bytes = counted.to_bytes();
        bytes[40..48].copy_from_slice(&wrong.to_le_bytes());
        seal(&mut bytes);
        let result = survive(&bytes);
        assert!(matches!(result, Err(Error::Inconsistent(_))), "{wrong}");
    }
}

/// Blocks that no insertion writes, with a correct checksum.
#[test]
fn blocks_that_make_no_sense_are_found_and_lose_nothing() {
    let mut filter =
        TinySet::builder().items(100).bits_per_key(10.0).build().unwrap();
    // Two blocks, of three entries each.
    let hashes: Vec<u64> =
        (0..6).map(|i| key(1, i) >> 1 | (i % 2) << 63).collect();
    filter.insert_hash_batch(&hashes);
    let bytes = filter.to_bytes();
    let block = 192..256;
    let damage = |edit: &dyn Fn(&mut [u8])| {
        let mut bytes = bytes.clone();
        edit(&mut bytes[block.clone()]);
        seal(&mut bytes);
        let result = survive(&bytes);
        let view = AnyFilter::from_bytes(&bytes[..]).unwrap();
        let mut owned = view.into_owned().unwrap();
        // The other block is unchanged, and inserted keys are kept.
        for &hash in hashes.iter().filter(|&&hash| hash >> 63 == 1) {
            assert!(owned.contains_hash(hash));
        }
        for i in 0..50 {
            owned.insert_hash(key(3, i));
            assert!(owned.contains_hash(key(3, i)));
        }
        result
    };
    damage(&|_| {}).unwrap();
    let found = |edit: &dyn Fn(&mut [u8])| match damage(edit) {
        Err(Error::Inconsistent(why)) => why,
        other => panic!("{other:?}"),
    };
    let why = found(&|block| block[..8].fill(0));
    assert_eq!(why, "a block without chains has content");
    let why = found(&|block| block[8..].fill(0));
    assert_eq!(why, "a chain has no end");
    let why = found(&|block| block[30] |= 1);
    assert_eq!(why, "a block has bits where none belong");
    let why = found(&|block| {
        // An entry in every chain.
        block[..8].fill(0xff);
        block[8..16].fill(0xff);
    });
    assert_eq!(why, "more is stored than the keys counted could store");
}

/// Corrects the checksums of the only section and of the header.
fn seal(bytes: &mut [u8]) {
    let half = |at: usize| {
        usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
    };
    let (header, geometry) = (half(64), half(66));
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[header..]);
    let entry = 72 + geometry;
    bytes[entry + 24..entry + 32].copy_from_slice(&sum.to_le_bytes());
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..header - 8]);
    bytes[header - 8..header].copy_from_slice(&sum.to_le_bytes());
}

/// Found by fuzzing: a count of 2^64 - 1 keys is valid.
#[test]
fn counts_at_their_end_stay_there() {
    for (name, recipe) in golden() {
        if recipe.kind == Kind::Balanced {
            // Its counts must add up, so such a file is refused.
            continue;
        }
        let mut bytes = recipe.build().unwrap().to_bytes();
        let header = usize::from(u16::from_le_bytes([bytes[64], bytes[65]]));
        bytes[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..header - 8]);
        bytes[header - 8..header].copy_from_slice(&sum.to_le_bytes());
        let view = AnyFilter::from_bytes(&bytes[..]).unwrap();
        let mut filter = view.into_owned().unwrap();
        filter.insert("apple");
        filter.insert_batch(&["pear", "plum"]);
        assert_eq!(filter.stats().items, u64::MAX, "{name}");
        assert!(filter.contains("plum"));
    }
}

/// Found by fuzzing: an extra section, with a valid table and valid
/// checksums, was dropped silently, and so were bytes in the padding of the
/// header.
#[test]
fn nothing_is_dropped_in_silence() {
    let (_, recipe) = golden().swap_remove(0);
    let bytes = build(&recipe).to_bytes();
    let old = usize::from(u16::from_le_bytes([bytes[64], bytes[65]]));
    let geometry = usize::from(u16::from_le_bytes([bytes[66], bytes[67]]));
    let seal = |bytes: &mut Vec<u8>, header: usize| {
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..header - 8]);
        bytes[header - 8..header].copy_from_slice(&sum.to_le_bytes());
    };

    let mut extra = bytes[..72 + geometry + 32].to_vec();
    let header = old + 64;
    let end = (bytes.len() + 64) as u64;
    extra[32..40].copy_from_slice(&end.to_le_bytes());
    extra[64..66].copy_from_slice(&(header as u16).to_le_bytes());
    extra[68] = 2;
    let offset = header as u64;
    extra[72 + geometry + 8..72 + geometry + 16]
        .copy_from_slice(&offset.to_le_bytes());
    extra.extend_from_slice(b"MORE\0\0\0\0");
    extra.extend_from_slice(&end.next_multiple_of(64).to_le_bytes());
    extra.extend_from_slice(&0u64.to_le_bytes());
    extra.extend_from_slice(&xxhash_rust::xxh3::xxh3_64(b"").to_le_bytes());
    extra.resize(header, 0);
    extra.extend_from_slice(&bytes[old..]);
    seal(&mut extra, header);
    match AnyFilter::from_bytes(&extra[..]) {
        Err(Error::Corrupt { field: "section table", .. }) => {}
        other => panic!("{other:?}"),
    }

    let mut padded = bytes.clone();
    let table_end = 72 + geometry + 32;
    // The header of a Bloom kind has no padding; with two sections it has.
    assert_eq!(old - 8, table_end);
    let mut all = golden().into_iter();
    let balanced = all.find(|(_, recipe)| recipe.kind == Kind::Balanced);
    let with_padding = build(&balanced.unwrap().1).to_bytes();
    let header =
        usize::from(u16::from_le_bytes([with_padding[64], with_padding[65]]));
    let geometry =
        usize::from(u16::from_le_bytes([with_padding[66], with_padding[67]]));
    let table_end = 72 + geometry + 64;
    assert!(table_end < header - 8, "no padding to test");
    padded.clone_from(&with_padding);
    padded[table_end] = 1;
    seal(&mut padded, header);
    match AnyFilter::from_bytes(&padded[..]) {
        Err(Error::Corrupt { field: "padding", .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn saving_is_atomic_and_polite() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter.tamis");
    let (_, recipe) = golden().swap_remove(1);
    let filter = build(&recipe);
    filter.save_new(&path).unwrap();
    assert!(filter.save_new(&path).is_err(), "must not overwrite");
    filter.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), filter.to_bytes());
    let missing = directory.path().join("no/such/directory");
    assert!(matches!(filter.save(missing), Err(Error::Io(_))));
    // No temporary file remains.
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let error = AnyFilter::open(directory.path()).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

proptest! {
    #[test]
    fn random_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        with_magic: bool,
    ) {
        let mut bytes = bytes;
        if with_magic && bytes.len() > 10 {
            bytes[..8].copy_from_slice(b"\x89TAMIS\r\n");
            bytes[8..10].copy_from_slice(&1u16.to_le_bytes());
        }
        prop_assert!(survive(&bytes).is_err());
    }

    #[test]
    fn damage_never_panics_and_is_found(
        which in 0usize..15,
        edits in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8),
    ) {
        let (_, recipe) = golden().swap_remove(which);
        let bytes = build(&recipe).to_bytes();
        let mut damaged = bytes.clone();
        for (at, value) in edits {
            let at = at % damaged.len();
            damaged[at] = value;
        }
        prop_assert_eq!(survive(&damaged).is_err(), damaged != bytes);
    }

    #[test]
    fn views_answer_like_their_owner(
        which in 0usize..4, misalign in 0usize..64, probe: u64,
    ) {
        let kinds = [Kind::Bloom, Kind::Blocked, Kind::Split, Kind::TinySet];
        let recipe = Recipe::new(kinds[which], 200, Size::Fpr(0.02));
        let mut filter = recipe.build().unwrap();
        for i in 0..200 {
            filter.insert(&key(1, i));
        }
        let mut buffer = vec![0; misalign];
        buffer.extend(filter.to_bytes());
        let view = AnyFilter::from_bytes(&buffer[misalign..]).unwrap();
        for i in 0..200 {
            prop_assert!(view.contains(&key(1, i)));
        }
        prop_assert_eq!(view.contains_hash(probe), filter.contains_hash(probe));
        prop_assert_eq!(view.stats(), filter.stats());
        prop_assert_eq!(view.into_owned().unwrap().to_bytes(), filter.to_bytes());
    }
}

/// With 32-bit addresses a size is a typed error and never cut: a filter of
/// 2^32 + n bytes would become one of n.
#[cfg(target_pointer_width = "32")]
#[test]
fn more_than_the_address_space_is_an_allocation_error() {
    fn refused<T>(what: &str, items: u64, built: tamis::Result<T>) {
        match built {
            Err(Error::Allocation { bytes }) => assert!(bytes >= 1 << 31),
            Err(error) => panic!("{what} for {items} keys: {error}"),
            Ok(_) => panic!("{what} for {items} keys was built"),
        }
    }
    // 2^31 to 2^32 bytes, a little more than 2^32, and far more.
    for items in [(1 << 31) / 5 * 5, (1 << 32) / 5 * 4 + 100, 1 << 44] {
        for kind in Kind::ALL {
            let recipe = Recipe::new(kind, items, Size::BitsPerKey(10.0));
            refused(&format!("{kind}"), items, recipe.build());
        }
        let two_level = TinySet::builder().items(items).fpr(0.001);
        refused("two levels", items, two_level.two_level().build());
    }
}
