//! Two threads that write one byte: with a lock, or, with the argument `race`,
//! without.
//!
//! `cargo xtask sanitize` fails unless ThreadSanitizer reports the latter, and
//! unless it is silent on the former, where only the standard library's code
//! orders the threads.

#![expect(unsafe_code, reason = "a data race needs it")]

use std::cell::UnsafeCell;
use std::sync::{Arc, Mutex};

struct Byte(UnsafeCell<u8>);

// SAFETY: none with the argument `race`, on purpose. Otherwise each access
// holds the lock of `main`.
unsafe impl Sync for Byte {}

fn main() {
    let race = std::env::args().nth(1).as_deref() == Some("race");
    let byte = Arc::new(Byte(UnsafeCell::new(0)));
    let lock = Arc::new(Mutex::new(()));
    let threads = [1, 2].map(|number| {
        let (byte, lock) = (Arc::clone(&byte), Arc::clone(&lock));
        std::thread::spawn(move || {
            for _ in 0..1000 {
                let guard = (!race).then(|| lock.lock());
                // SAFETY: the pointer is valid. Ordered by the lock, or a race.
                unsafe { byte.0.get().write_volatile(number) };
                drop(guard);
            }
        })
    });
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    // SAFETY: both threads have ended.
    println!("{}", unsafe { byte.0.get().read() });
}
