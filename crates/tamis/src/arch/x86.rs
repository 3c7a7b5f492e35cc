//! The levels of x86-64 above its baseline.
#![expect(
    unsafe_code,
    reason = "target features, prefetch hints, an optimisation barrier"
)]

#[cfg(feature = "std")]
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::{Token, WithToken};

/// The features of [`Avx2`], handed to another macro: the only list of them,
/// for detection and for compilation.
macro_rules! avx2_features {
    ($then:ident! $($rest:tt)*) => {
        $then! { ["avx2", "bmi1", "bmi2", "popcnt", "lzcnt"] $($rest)* }
    };
}

/// The features of `Avx512`, handed to another macro: the only list of them,
/// for detection and for compilation.
#[cfg(rustc_1_89)]
macro_rules! avx512_features {
    ($then:ident! $($rest:tt)*) => {
        $then! {
            [
                "avx2", "bmi1", "bmi2", "popcnt", "lzcnt", "avx512f",
                "avx512bw", "avx512dq", "avx512vl", "avx512vbmi",
                "avx512vbmi2", "gfni"
            ]
            $($rest)*
        }
    };
}

/// Whether the processor has all features of a list.
#[cfg(feature = "std")]
macro_rules! detected {
    ([$($feature:tt),*]) => {
        true $(&& std::is_x86_feature_detected!($feature))*
    };
}

/// Without std: whether the build enables all features of a list.
#[cfg(not(feature = "std"))]
macro_rules! detected {
    ([$($feature:tt),*]) => {
        cfg!(all($(target_feature = $feature),*))
    };
}

/// A function with the target features of a list.
macro_rules! enable {
    ([$($feature:literal),*] $function:item) => {
        $(#[target_feature(enable = $feature)])*
        $function
    };
}

/// Proof of AVX2 and the bit-manipulation instructions beside it (Haswell,
/// Zen).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2 {
    _proof: (),
}

impl Avx2 {
    /// The token, if the processor has the features. The answer never
    /// changes while the program runs.
    pub(crate) fn new() -> Option<Self> {
        (Level::detect() >= Level::Avx2).then_some(Self { _proof: () })
    }

    /// # Safety
    ///
    /// The processor has the features of `avx2_features!`.
    #[inline(always)]
    pub(crate) unsafe fn new_unchecked() -> Self {
        Self { _proof: () }
    }
}

/// Proof of the AVX-512 of Ice Lake and Zen 4 with GFNI, and of [`Avx2`].
///
/// Earlier processors with AVX-512 lack byte permutations, and some of them
/// lower their clock rate once a 512-bit instruction is executed.
#[cfg(rustc_1_89)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512 {
    pub(crate) avx2: Avx2,
}

#[cfg(rustc_1_89)]
impl Avx512 {
    /// As [`Avx2::new`].
    #[cfg(test)]
    pub(crate) fn new() -> Option<Self> {
        (Level::detect() == Level::Avx512)
            .then_some(Self { avx2: Avx2 { _proof: () } })
    }

    /// # Safety
    ///
    /// The processor has the features of `avx512_features!`.
    #[inline(always)]
    pub(crate) unsafe fn new_unchecked() -> Self {
        Self { avx2: Avx2 { _proof: () } }
    }
}

/// The best level a processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Level {
    Scalar = 1,
    Avx2 = 2,
    #[cfg(rustc_1_89)]
    Avx512 = 3,
}

impl Level {
    /// The level of this processor, detected once.
    ///
    /// The standard library caches each feature by itself: a dozen loads and
    /// tests where this is one.
    #[inline]
    pub(crate) fn detect() -> Self {
        #[cfg(feature = "std")]
        {
            /// The level as a number, 0 before the first detection.
            static DETECTED: AtomicU8 = AtomicU8::new(0);
            match DETECTED.load(Relaxed) {
                1 => Self::Scalar,
                2 => Self::Avx2,
                #[cfg(rustc_1_89)]
                3 => Self::Avx512,
                _ => {
                    let level = Self::of_processor();
                    DETECTED.store(level as u8, Relaxed);
                    level
                }
            }
        }
        #[cfg(not(feature = "std"))]
        Self::of_processor()
    }

    fn of_processor() -> Self {
        #[cfg(rustc_1_89)]
        if avx512_features!(detected!) {
            return Self::Avx512;
        }
        if avx2_features!(detected!) {
            return Self::Avx2;
        }
        Self::Scalar
    }
}

impl Token for Avx2 {
    // The compiler ignores `inline(never)` at a function with target features
    // if the caller has them too; not at this one, which has none.
    #[inline(never)]
    fn call_outlined<W: WithToken<Self>>(self, work: W) -> W::Output {
        avx2_features! { enable!
            unsafe fn run<W: WithToken<Avx2>>(
                token: Avx2,
                work: W,
            ) -> W::Output {
                work.run(token)
            }
        }
        // SAFETY: `self` proves every feature of `avx2_features!`, the list
        // that `run` is compiled with.
        unsafe { run(self, work) }
    }
}

#[cfg(rustc_1_89)]
impl Token for Avx512 {
    #[inline(never)]
    fn call_outlined<W: WithToken<Self>>(self, work: W) -> W::Output {
        avx512_features! { enable!
            unsafe fn run<W: WithToken<Avx512>>(
                token: Avx512,
                work: W,
            ) -> W::Output {
                work.run(token)
            }
        }
        // SAFETY: `self` proves every feature of `avx512_features!`, the list
        // that `run` is compiled with.
        unsafe { run(self, work) }
    }
}

/// See [`super::opaque`].
#[inline(always)]
pub(super) fn opaque(mut number: u64) -> u64 {
    // SAFETY: the assembly has no instruction.
    unsafe {
        core::arch::asm!(
            "/* {0} */",
            inout(reg) number,
            options(nomem, nostack, preserves_flags),
        );
    }
    number
}

/// Prefetches into the first-level cache if `NEAR`, else into the second.
#[inline(always)]
pub(super) fn prefetch<const NEAR: bool>(bytes: &[u8], offset: usize) {
    use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
    let address = bytes.as_ptr().wrapping_add(offset).cast::<i8>();
    // SAFETY: PREFETCHh is a hint: it reads no value and raises no fault
    // whatever the address; SSE is part of the x86-64 baseline.
    unsafe {
        match NEAR {
            true => _mm_prefetch::<_MM_HINT_T0>(address),
            false => _mm_prefetch::<_MM_HINT_T1>(address),
        }
    }
}
