//! The compact form: golden files read and written, damage, refusals; and
//! headers parsed once.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use std::path::PathBuf;

use proptest::prelude::*;
use support::{Recipe, Size, key, keys};
use tamis::*;

const ITEMS: u64 = 300;
const KINDS: [Kind; 4] =
    [Kind::Bloom, Kind::Blocked, Kind::Split, Kind::TinySet];
/// Bytes of the compact header.
const HEADER: usize = 32;

fn build(kind: Kind, block_bits: u32) -> AnyFilter {
    let mut recipe = Recipe::new(kind, ITEMS, Size::BitsPerKey(10.0));
    recipe.block_bits = block_bits;
    let mut filter = recipe.build().unwrap();
    for key in keys(1, ITEMS) {
        filter.insert(&key);
    }
    filter
}

/// Every kind that has a compact form, in all sizes of blocks.
fn all() -> Vec<(String, AnyFilter)> {
    let mut all = Vec::new();
    for kind in KINDS {
        for bits in BLOCK_BITS {
            all.push((format!("{kind}-{bits}.tamis"), build(kind, bits)));
        }
    }
    let builder = TinySet::builder().items(ITEMS).bits_per_key(12.0);
    let mut filter = builder.block_bits(256).removable().build().unwrap();
    filter.insert_hash_batch(&keys(1, ITEMS).collect::<Vec<_>>());
    let filter = AnyFilter::TinySet(filter);
    all.push(("tinyset-removable-256.tamis".into(), filter));
    all
}

const BLOCK_BITS: [u32; 2] = [256, 512];

#[test]
fn golden_files_are_reproduced_and_answer() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/compact-v1");
    for (name, filter) in all() {
        let bytes = filter.to_compact_bytes().unwrap();
        let path = directory.join(&name);
        // Set once, when a kind is added: files that exist stay.
        if std::env::var_os("TAMIS_WRITE_GOLDEN").is_some() && !path.exists() {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        let stored = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(bytes == stored, "{name}: the bytes have changed");

        let full = filter.to_bytes();
        let payload = &full[full.len() + HEADER - bytes.len()..];
        assert_eq!(&bytes[HEADER..], payload, "{name}");

        let opened = AnyFilter::from_bytes(&stored[..]).unwrap();
        opened.verify().unwrap();
        assert_eq!(opened.kind(), filter.kind(), "{name}");
        assert_eq!(opened.stats(), filter.stats(), "{name}");
        assert_eq!(opened.to_bytes(), full, "{name}");
        assert_eq!(opened.to_compact_bytes().unwrap(), bytes, "{name}");
        let owned = opened.into_owned().unwrap();
        assert_eq!(owned.to_bytes(), full, "{name}");
    }
}

#[test]
fn lookups_are_those_of_the_full_form() {
    for (name, filter) in all() {
        let compact = filter.to_compact_bytes().unwrap();
        // At an odd address, too.
        let mut shifted = vec![0];
        shifted.extend_from_slice(&compact);
        let views = [&compact[..], &shifted[1..]]
            .map(|bytes| AnyFilter::from_bytes(bytes).unwrap());
        for hash in keys(1, ITEMS).chain(keys(2, 2000)) {
            for view in &views {
                assert_eq!(
                    view.contains_hash(hash),
                    filter.contains_hash(hash),
                    "{name}: {hash:#x}"
                );
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_found() {
    for (name, filter) in all() {
        let bytes = filter.to_compact_bytes().unwrap();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match AnyFilter::from_bytes(&damaged[..]) {
                Ok(_) if bit < 8 * HEADER => panic!("{name}: bit {bit}"),
                Ok(view) => {
                    assert!(view.verify().is_err(), "{name}: bit {bit}");
                }
                Err(_) => assert!(bit < 8 * HEADER),
            }
        }
        for len in 0..bytes.len() {
            assert!(AnyFilter::from_bytes(&bytes[..len]).is_err(), "{len}");
        }
        let longer = [&bytes[..], &[0]].concat();
        let error = AnyFilter::from_bytes(&longer[..]).unwrap_err();
        assert!(matches!(error, Error::Length { .. }), "{error}");
    }
}

/// Recomputes the checksum of the header.
fn seal(bytes: &mut [u8]) {
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..28]) as u32;
    bytes[28..32].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn resealed_headers_cannot_lie() {
    for (name, filter) in all() {
        let bytes = filter.to_compact_bytes().unwrap();
        for at in 0..28 {
            for value in [0, 1, 2, 15, 16, 32, 64, 127, 128, 254, 255] {
                let mut edited = bytes.clone();
                edited[at] = value;
                seal(&mut edited);
                let Ok(view) = AnyFilter::from_bytes(&edited[..]) else {
                    continue;
                };
                // Another number of keys, another rate or kind can be valid;
                // none reads outside the image.
                for hash in keys(3, 100).chain([0, u64::MAX]) {
                    view.contains_hash(hash);
                }
                let _ = (view.verify(), view.stats());
                let again = view.to_compact_bytes().unwrap();
                assert_eq!(again[..24], edited[..24], "{name}: byte {at}");
            }
        }
    }
}

#[test]
fn refusals_have_reasons() {
    let refused = |filter: &AnyFilter, reason: &str| {
        let error = filter.to_compact_bytes().unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }));
        let message = error.to_string();
        assert!(message.contains(reason), "{message}");
    };
    refused(&build(Kind::Balanced, 256), "full header");
    for hasher in [KeyHasher::xxh3(7), KeyHasher::siphash(7)] {
        let mut recipe = Recipe::new(Kind::Blocked, 9, Size::Fpr(0.01));
        recipe.hasher = hasher;
        refused(&recipe.build().unwrap(), "keyed or has a seed");
    }
    let builder = TinySet::builder().items(5000).fpr(0.0005);
    let two_level = builder.two_level().build().unwrap();
    refused(&AnyFilter::TinySet(two_level), "second level");
    let free = builder.bits_per_key(10.0).block_bits(150).chains(21);
    refused(&AnyFilter::TinySet(free.build().unwrap()), "free shape");
}

#[test]
fn images_one_behind_the_other_are_found() {
    let mut file = Vec::new();
    let mut lengths = Vec::new();
    for (_, filter) in all() {
        for image in [filter.to_bytes(), filter.to_compact_bytes().unwrap()] {
            lengths.push(image.len());
            file.extend(image);
        }
    }
    let mut rest = &file[..];
    for len in lengths {
        assert_eq!(Header::image_len(rest).unwrap(), len as u64);
        let (image, behind) = rest.split_at(len);
        AnyFilter::from_bytes(image).unwrap().verify().unwrap();
        assert_eq!(Header::parse(image).unwrap().bytes(), len as u64);
        rest = behind;
    }
    assert!(matches!(Header::image_len(rest), Err(Error::TooShort { .. })));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        sealed: bool,
    ) {
        let mut bytes = bytes;
        if bytes.len() >= HEADER {
            bytes[..3].copy_from_slice(&[0x89, b't', 1]);
            if sealed {
                seal(&mut bytes);
            }
        }
        if let Ok(view) = AnyFilter::from_bytes(&bytes[..]) {
            view.contains_hash(u64::MAX);
            let _ = view.verify();
        }
        let _ = Header::image_len(&bytes);
    }

    #[test]
    fn both_forms_hold_the_same_filter(
        which in 0usize..4, items in 1u64..2000, bits in 8f64..20.0,
        inserted in 0u64..500, probe: u64,
    ) {
        let mut recipe =
            Recipe::new(KINDS[which], items, Size::BitsPerKey(bits));
        recipe.block_bits = BLOCK_BITS[items as usize % BLOCK_BITS.len()];
        let mut filter = recipe.build().unwrap();
        for i in 0..inserted {
            filter.insert_hash(key(1, i));
        }
        let compact = filter.to_compact_bytes().unwrap();
        let view = AnyFilter::from_bytes(&compact[..]).unwrap();
        view.verify().unwrap();
        prop_assert_eq!(view.stats(), filter.stats());
        for i in 0..inserted {
            prop_assert!(view.contains_hash(key(1, i)));
        }
        prop_assert_eq!(
            view.contains_hash(probe),
            filter.contains_hash(probe)
        );
        prop_assert_eq!(view.to_bytes(), filter.to_bytes());
    }
}

#[test]
fn regions_of_a_file_are_mapped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.dat");
    let mut file = vec![7; 5000];
    let mut regions = Vec::new();
    for (_, filter) in all() {
        for image in [filter.to_bytes(), filter.to_compact_bytes().unwrap()] {
            regions.push((file.len() as u64, image.clone()));
            file.extend(image);
        }
    }
    std::fs::write(&path, &file).unwrap();
    let open = std::fs::File::open(&path).unwrap();
    for (offset, image) in regions {
        let len = image.len();
        let region = Mapped::region(&open, offset, len).unwrap();
        assert_eq!(region[..], image[..]);
        let shared = region.clone();
        assert_eq!(shared.as_ptr(), region.as_ptr());
        drop(region);
        AnyFilter::from_bytes(shared).unwrap().verify().unwrap();
        let region = Mapped::open_region(&path, offset, len).unwrap();
        assert_eq!(region[..], image[..]);
    }
    let whole = Mapped::from_file(&open).unwrap();
    assert_eq!(whole[..], file[..]);
    let len = file.len();
    for (offset, len) in [(1, len), (len as u64, 1), (u64::MAX, 1)] {
        let error = Mapped::region(&open, offset, len).unwrap_err();
        assert!(error.to_string().contains("the file has"), "{error}");
    }
    assert!(Mapped::region(&open, len as u64, 0).unwrap().is_empty());
}

#[test]
fn headers_parsed_once_open_as_often_as_needed() {
    let balanced = build(Kind::Balanced, 256);
    let filters = all().into_iter().map(|(_, filter)| filter);
    for filter in filters.chain([balanced]) {
        let mut images = vec![filter.to_bytes()];
        images.extend(filter.to_compact_bytes());
        for image in images {
            let header = Header::parse(&image).unwrap();
            let stats = filter.stats();
            assert_eq!(header.kind(), filter.kind());
            assert_eq!(header.hasher(), filter.hasher());
            assert_eq!(header.items(), stats.items);
            assert_eq!(header.design_items(), stats.design_items);
            assert_eq!(header.design_fpr(), stats.design_fpr);
            for copy in [image.clone(), image.clone()] {
                let view = AnyFilter::from_bytes_with(&header, &copy[..]);
                let view = view.unwrap();
                assert_eq!(view.stats(), stats);
                for key in keys(1, ITEMS) {
                    assert_eq!(view.contains(&key), filter.contains(&key));
                }
            }
            let error =
                AnyFilter::from_bytes_with(&header, &image[1..]).unwrap_err();
            assert!(matches!(error, Error::Length { .. }), "{error}");
            let blocked = Blocked::from_bytes_with(&header, &image[..]);
            assert_eq!(blocked.is_ok(), filter.kind() == Kind::Blocked);
        }
    }
}
