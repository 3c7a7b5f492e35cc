//! What x86-64 processors have beyond the least of them.
#![expect(unsafe_code, reason = "target features and prefetch hints")]

use super::{Backend, Task};
use crate::block::{bloom, fingerprint};

/// Proof that this processor has AVX2 and the bit-manipulation instructions
/// that come with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2 {
    _proof: (),
}

/// Proof that this processor has the AVX-512 of Ice Lake and Zen 4, besides
/// AVX2.
///
/// Not that of the processors before these, which have no permutations of
/// bytes, and some of which slow down for everyone once a wide instruction
/// is used.
#[cfg(rustc_1_89)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512 {
    /// What comes with it.
    pub(crate) avx2: Avx2,
}

/// The best backend of a processor.
pub(super) enum Best {
    #[cfg(rustc_1_89)]
    Avx512(Avx512),
    Avx2(Avx2),
    Scalar,
}

/// Whether the processor has all of some features.
#[cfg(feature = "std")]
macro_rules! has {
    ($($feature:tt),*) => {
        true $(&& std::is_x86_feature_detected!($feature))*
    };
}

/// Without std only what the build was told can be known.
#[cfg(not(feature = "std"))]
macro_rules! has {
    ($($feature:tt),*) => {
        cfg!(all($(target_feature = $feature),*))
    };
}

impl Best {
    #[inline(always)]
    pub(super) fn here() -> Self {
        let level = Level::here();
        #[cfg(rustc_1_89)]
        if level == Level::AVX512 {
            return Self::Avx512(Avx512 { avx2: Avx2 { _proof: () } });
        }
        match level >= Level::AVX2 {
            true => Self::Avx2(Avx2 { _proof: () }),
            false => Self::Scalar,
        }
    }
}

impl Avx2 {
    /// The backend, if the processor has it; if it does once, it always
    /// does.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    pub(crate) fn new() -> Option<Self> {
        (Level::here() >= Level::AVX2).then_some(Self { _proof: () })
    }
}

#[cfg(rustc_1_89)]
impl Avx512 {
    /// As [`Avx2::new`].
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    pub(crate) fn new() -> Option<Self> {
        match Best::here() {
            Best::Avx512(backend) => Some(backend),
            _ => None,
        }
    }
}

/// How much a processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Level(u8);

impl Level {
    /// Not looked at yet.
    #[cfg(feature = "std")]
    const UNKNOWN: Self = Self(0);
    const SCALAR: Self = Self(1);
    const AVX2: Self = Self(2);
    #[cfg(rustc_1_89)]
    const AVX512: Self = Self(3);

    /// That of this processor.
    #[cfg(feature = "std")]
    #[inline(always)]
    fn here() -> Self {
        use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
        // The standard library caches too, but a feature at a time; a
        // single lookup notices a dozen tests instead of one.
        static KNOWN: AtomicU8 = AtomicU8::new(Level::UNKNOWN.0);

        #[cold]
        fn look() -> Level {
            let level = Level::detect();
            KNOWN.store(level.0, Relaxed);
            level
        }

        match Self(KNOWN.load(Relaxed)) {
            Self::UNKNOWN => look(),
            known => known,
        }
    }

    #[cfg(not(feature = "std"))]
    #[inline(always)]
    fn here() -> Self {
        Self::detect()
    }

    fn detect() -> Self {
        if !has!("avx2", "bmi1", "bmi2", "popcnt", "lzcnt") {
            return Self::SCALAR;
        }
        #[cfg(rustc_1_89)]
        if has!(
            "avx512f",
            "avx512bw",
            "avx512dq",
            "avx512vl",
            "avx512vbmi",
            "avx512vbmi2"
        ) {
            return Self::AVX512;
        }
        Self::AVX2
    }
}

impl Backend for Avx2 {
    const PLANES: u32 = 8;

    // The compiler ignores `inline(never)` at functions with features of
    // their own where the caller has them too; not at this one.
    #[inline(never)]
    fn outline<T: Task>(self, task: T) -> T::Output {
        run_avx2(self, task)
    }

    steps!(avx2);
}

#[cfg(rustc_1_89)]
impl Backend for Avx512 {
    const PLANES: u32 = 16;

    #[inline(never)]
    fn outline<T: Task>(self, task: T) -> T::Output {
        run_avx512(self, task)
    }

    steps!(avx512);
}

#[inline(always)]
pub(super) fn run_avx2<T: Task>(backend: Avx2, task: T) -> T::Output {
    /// # Safety
    ///
    /// The processor must have the features named.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    #[inline(never)]
    unsafe fn with_features<T: Task>(backend: Avx2, task: T) -> T::Output {
        task.run(backend)
    }
    // SAFETY: a value of type `Avx2` exists only if the processor has the
    // features named: `Level::detect`, whose answer every constructor waits
    // for, has asked for each of them.
    unsafe { with_features(backend, task) }
}

#[cfg(rustc_1_89)]
#[inline(always)]
pub(super) fn run_avx512<T: Task>(backend: Avx512, task: T) -> T::Output {
    /// # Safety
    ///
    /// The processor must have the features named.
    #[target_feature(
        enable = "avx2,bmi1,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
    )]
    #[inline(never)]
    unsafe fn with_features<T: Task>(backend: Avx512, task: T) -> T::Output {
        task.run(backend)
    }
    // SAFETY: a value of type `Avx512` exists only if the processor has the
    // features named: `Level::detect`, whose answer `Best::here`, its only
    // constructor, waits for, has asked for each of them.
    unsafe { with_features(backend, task) }
}

#[inline(always)]
pub(super) fn prefetch<const CACHED: bool>(bytes: &[u8], offset: usize) {
    use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
    let address = bytes.as_ptr().wrapping_add(offset).cast::<i8>();
    // SAFETY: PREFETCHh is a hint: it reads no value and raises no fault
    // whatever the address; SSE is part of the x86-64 baseline.
    unsafe {
        match CACHED {
            true => _mm_prefetch::<_MM_HINT_T0>(address),
            false => _mm_prefetch::<_MM_HINT_T1>(address),
        }
    }
}
