//! The level of WebAssembly with `simd128`, known when the code is compiled:
//! a module with one instruction that its host lacks is not loaded at all, so
//! that nothing could be detected in it.

use super::{Token, WithToken};

/// Proof of `simd128`: the `cfg` of the module names the target feature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Simd128;

impl Token for Simd128 {
    // The host sizes and shares its caches as it likes, and there is no
    // instruction that prefetches.
    const IS_TUNED: bool = false;

    #[inline(never)]
    fn call_outlined<W: WithToken<Self>>(self, work: W) -> W::Output {
        work.run(self)
    }
}
