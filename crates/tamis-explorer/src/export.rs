//! Functions of the WebAssembly module.
//!
//! Arguments are numbers. Each function returns the length of its answer, UTF-8
//! at [`output`] until the next call.

#![expect(unsafe_code, reason = "an exported name is unsafe")]

use std::cell::RefCell;

use serde_json::Value;
use tamis_theory::plan::{Prefer, Size, Task};

thread_local! {
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
}

fn put(answer: &Value) -> usize {
    OUTPUT.with_borrow_mut(|output| {
        *output = answer.to_string();
        output.len()
    })
}

/// Address of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// [`crate::plan`]. A rate if `by_rate` is not 0, otherwise bits per key; the
/// fastest lookups if `speed` is not 0.
#[unsafe(no_mangle)]
pub extern "C" fn plan(
    items: f64,
    by_rate: u32,
    size: f64,
    miss_share: f64,
    block_bits: u32,
    speed: u32,
) -> usize {
    put(&crate::plan(&Task {
        // JavaScript has no other numbers; saturates.
        items: items as u64,
        size: match by_rate {
            0 => Size::BitsPerKey(size),
            _ => Size::Fpr(size),
        },
        miss_share,
        block_bits,
        prefer: if speed == 0 { Prefer::Space } else { Prefer::Speed },
    }))
}

/// [`crate::point`].
#[unsafe(no_mangle)]
pub extern "C" fn point(kind: u32, block_bits: u32, fpr: f64) -> usize {
    put(&crate::point(kind, block_bits, fpr))
}

/// [`crate::limits`].
#[unsafe(no_mangle)]
pub extern "C" fn limits(block_bits: u32, fpr: f64) -> usize {
    put(&crate::limits(block_bits, fpr))
}
