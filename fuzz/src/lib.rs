//! Fuzz targets as functions of bytes.
//!
//! The programs in `fuzz_targets/` give them to libFuzzer; `tests/seeds.rs`
//! runs them once on each committed input.

pub mod balanced;
pub mod bytes;
pub mod header;
pub mod multilevel;
pub mod operations;
mod seal;
pub mod sealed;
pub mod store;
pub mod tinyset;

/// A target: panics if an invariant fails.
pub type Target = fn(&[u8]);

/// Name of each target, as cargo-fuzz has it.
pub const TARGETS: [(&str, Target); 8] = [
    ("header", header::run),
    ("bytes", bytes::run),
    ("sealed", sealed::run),
    ("operations", operations::run),
    ("balanced", balanced::run),
    ("tinyset", tinyset::run),
    ("multilevel", multilevel::run),
    ("store", store::run),
];

/// Number of threads of an operation. Mostly one: starting others takes longer
/// than a history of some keys.
fn threads(byte: u8) -> std::num::NonZero<usize> {
    let more = byte.saturating_sub(252);
    std::num::NonZero::<usize>::MIN.saturating_add(more.into())
}
