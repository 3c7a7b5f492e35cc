//! Files opened, verified and encoded again, for `cargo xtask arch wasm32`.
//!
//! The functions are exported from a WebAssembly module of the library
//! without `std`; `golden.mjs` calls them.

#![expect(unsafe_code, reason = "an exported name is unsafe")]

use std::cell::RefCell;

use tamis::AnyFilter;

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
