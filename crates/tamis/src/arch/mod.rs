//! Instruction sets: proof-of-feature tokens, run-time detection, prefetch.
//!
//! A [`Token`] is a zero-sized proof that the processor has a set of
//! instructions. Blocks implement their operations for each token
//! (`block::bloom::Ops`, `block::fingerprint::Ops`), everything above them is
//! generic over the token and `#[inline(always)]`, and the function that has
//! the target features is entered once per call of a kernel (`crate::dispatch`),
//! not once per block operation: a call of a `#[target_feature]` function
//! costs more than the operation.
//!
//! This module uses no other module of the crate.

/// Proof that the processor has the instructions of one level.
///
/// Each token can be constructed on its own where the processor allows it, so
/// tests reach every level and not only the best one.
pub trait Token: Copy {
    /// Whether batches have a loop for each level of the memory hierarchy.
    /// Otherwise they have one, which prefetches.
    #[doc(hidden)]
    const IS_TUNED: bool = true;

    /// Whether code is small rather than fast in batches: keys are handled one
    /// after the other, by the functions of single keys.
    #[doc(hidden)]
    const IS_COMPACT: bool = false;

    /// Runs `work` in a function of its own with this level's features.
    ///
    /// Keeps `work` from increasing register pressure in the caller.
    #[doc(hidden)]
    fn call_outlined<W: WithToken<Self>>(self, work: W) -> W::Output;

    /// [`call_outlined`](Self::call_outlined) for a cold path, which is laid
    /// out behind the code of the caller.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    fn call_cold<W: WithToken<Self>>(self, work: W) -> W::Output {
        self.call_outlined(work)
    }
}

/// Code that is compiled with the features of a token.
///
/// A trait and not a closure: a closure becomes a function without the
/// features of its caller.
pub trait WithToken<T> {
    #[doc(hidden)]
    type Output;

    #[doc(hidden)]
    fn run(self, token: T) -> Self::Output;
}

/// Plain Rust, for every processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar;

impl Token for Scalar {
    const IS_TUNED: bool = false;

    /// Beside AVX2 this level is for processors before 2013. Its batch loops
    /// would be a quarter of the library's code and of its compilation.
    const IS_COMPACT: bool =
        cfg!(all(target_arch = "x86_64", feature = "std", not(miri)));

    #[inline(never)]
    fn call_outlined<W: WithToken<Self>>(self, work: W) -> W::Output {
        work.run(self)
    }
}

/// Runs `work` with AVX2 where the processor has it: for work on a whole
/// structure, such as counting bits, that gains nothing from wider vectors.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) fn dispatch<O, W>(work: W) -> O
where
    W: WithToken<Scalar, Output = O> + WithToken<Avx2, Output = O>,
{
    match Avx2::new() {
        Some(token) => token.call_outlined(work),
        None => Scalar.call_outlined(work),
    }
}

/// Runs `work` with the only token of this architecture.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn dispatch<W: WithToken<Scalar>>(work: W) -> W::Output {
    work.run(Scalar)
}

/// The same number, hidden from the optimiser: values that depend on it are
/// computed behind the branches in front of it.
#[inline(always)]
pub(crate) fn opaque(number: u64) -> u64 {
    native::opaque(number)
}

/// The cache a line is prefetched into.
pub(crate) trait Hint: Copy {
    /// Prefetches the cache line that holds `bytes[offset]`. An offset
    /// outside `bytes` is harmless.
    fn prefetch(bytes: &[u8], offset: usize);
}

/// Prefetch into the first-level cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct L1;

impl Hint for L1 {
    #[inline(always)]
    fn prefetch(bytes: &[u8], offset: usize) {
        native::prefetch::<true>(bytes, offset);
    }
}

/// Prefetch into the second-level cache.
///
/// A prefetch into the first-level cache occupies one of few fill buffers;
/// once all are in use, every other load waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct L2;

impl Hint for L2 {
    #[inline(always)]
    fn prefetch(bytes: &[u8], offset: usize) {
        native::prefetch::<false>(bytes, offset);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[macro_use]
mod x86;

#[cfg(neon)]
mod aarch64;

#[cfg(simd128)]
mod wasm32;

#[cfg(neon)]
use aarch64 as native;
#[cfg(not(any(all(target_arch = "x86_64", not(miri)), neon)))]
use portable as native;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use x86 as native;

/// Neither hints nor barriers, for architectures without a module.
#[cfg(not(any(all(target_arch = "x86_64", not(miri)), neon)))]
mod portable {
    #[inline(always)]
    pub(super) fn opaque(number: u64) -> u64 {
        number
    }

    #[inline(always)]
    pub(super) fn prefetch<const NEAR: bool>(bytes: &[u8], offset: usize) {
        let _ = (bytes, offset);
    }
}

#[cfg(neon)]
pub(crate) use aarch64::Neon;
#[cfg(simd128)]
pub(crate) use wasm32::Simd128;
#[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
pub(crate) use x86::Avx512;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use x86::{Avx2, Level};
