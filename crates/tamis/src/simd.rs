//! The one place where the processor's features are looked at.
//!
//! Hot loops are written once as a [`Task`], generic over a [`Backend`],
//! and everything inside is `#[inline(always)]`. [`dispatch`] then compiles
//! the whole loop, not just the innermost step, once for each instruction
//! set: calling a `#[target_feature]` function per key would cost more than
//! the probe it performs.

use crate::block::bloom::{Backend, Scalar};

/// A piece of work that can be compiled for every backend.
pub(crate) trait Task {
    type Output;

    fn run<B: Backend>(self, backend: B) -> Self::Output;
}

/// Runs `task` on the best backend this processor has.
#[inline(always)]
pub(crate) fn dispatch<T: Task>(task: T) -> T::Output {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(backend) = crate::block::bloom::Avx2::new() {
        return x86::run(backend, task);
    }
    task.run(Scalar)
}

/// Asks for the cache line that holds `bytes[offset]`, without waiting.
///
/// An offset outside `bytes` is harmless. Does nothing where the compiler
/// offers no stable prefetch.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], offset: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    x86::prefetch(bytes, offset);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (bytes, offset);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "target features and prefetch hints")]
mod x86 {
    use super::Task;
    use crate::block::bloom::Avx2;

    pub(super) fn run<T: Task>(backend: Avx2, task: T) -> T::Output {
        /// # Safety
        ///
        /// The processor must have the features named.
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
        unsafe fn with_features<T: Task>(backend: Avx2, task: T) -> T::Output {
            task.run(backend)
        }
        // SAFETY: a value of type `Avx2` exists only if the processor has
        // AVX2, BMI1, BMI2, POPCNT and LZCNT (see `Avx2::new`, its only
        // constructor), which are the features `with_features` needs.
        unsafe { with_features(backend, task) }
    }

    #[inline(always)]
    pub(super) fn prefetch(bytes: &[u8], offset: usize) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = bytes.as_ptr().wrapping_add(offset).cast::<i8>();
        // SAFETY: PREFETCHh is a hint: it reads no value and raises no
        // fault whatever the address; SSE is part of the x86-64 baseline.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
}
