//! Headers, section tables and metadata: an error, or an image of which all
//! parsers have the same view.
//!
//! `bytes` also changes the filters; this target parses alone, which is a
//! thousand times faster.

use std::cell::RefCell;

use tamis::inspect::Inspector;
use tamis::{AnyFilter, Header, Window};

use crate::seal::{self, Correct};

thread_local! {
    static IMAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Parses the input unchanged, and with corrected checksums.
pub fn run(input: &[u8]) {
    parse(input);
    IMAGE.with_borrow_mut(|image| {
        for correct in [Correct::Header, Correct::SectionsOfZeros] {
            if seal::full(input, correct, image) {
                parse(image);
            }
        }
        if seal::compact(input, image) {
            parse(image);
        }
    });
}

fn parse(image: &[u8]) {
    let len = Header::image_len(image);
    let header = Header::parse(image);
    let view = AnyFilter::from_bytes(image);
    let (header, view) = match (header, view) {
        (Ok(header), Ok(view)) => (header, view),
        (header, view) => {
            assert_eq!(header.err(), view.err());
            return;
        }
    };
    assert_eq!(len, Ok(image.len() as u64));
    assert_eq!(header.bytes(), image.len() as u64);
    assert_eq!(header.kind(), view.kind());
    assert_eq!(header.hasher(), view.hasher());
    assert_eq!(header.items(), view.len());
    let again = AnyFilter::from_bytes_with(&header, image);
    let again = again.expect("the header is that of the image");
    for hash in [0, 1 << 63, u64::MAX] {
        assert_eq!(view.contains_hash(hash), again.contains_hash(hash));
    }
    let _ = Inspector::new(&view).parameters();
    let metadata = view.metadata();
    match view.verify() {
        Ok(()) => {
            let metadata = metadata.expect("verified");
            for (name, value) in metadata.iter() {
                assert_eq!(metadata.get(name), Some(value));
            }
            // Each content has one encoding.
            if image.starts_with(seal::MAGIC) {
                assert!(view.parts().concat() == image);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // Two images of a few blocks are copied.
    if image.len() <= 512 {
        let _ = Window::from_bytes(&[image, image].concat());
    }
}
