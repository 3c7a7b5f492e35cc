//! What x86-64 processors have beyond the least of them.
#![expect(unsafe_code, reason = "target features and prefetch hints")]

#[cfg(feature = "std")]
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::chosen::{
    Change, Changing, Function, LookUp, change_scalar, look_up_scalar,
};
use super::{Backend, Scalar, Task};
use crate::block::{bloom, fingerprint};

/// Proof that this processor has AVX2 and the bit-manipulation instructions
/// that come with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2 {
    _proof: (),
}

/// Proof that this processor has the AVX-512 of Ice Lake and Zen 4, with the
/// affine transformations of bits (GFNI) that they have too, besides AVX2.
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

impl Avx2 {
    /// The backend, if the processor has it; if it does once, it always
    /// does.
    #[inline(always)]
    pub(crate) fn new() -> Option<Self> {
        (Level::here() >= Level::AVX2).then_some(Self { _proof: () })
    }
}

#[cfg(rustc_1_89)]
impl Avx512 {
    /// As [`Avx2::new`].
    #[inline(always)]
    pub(crate) fn new() -> Option<Self> {
        (Level::here() == Level::AVX512)
            .then_some(Self { avx2: Avx2 { _proof: () } })
    }
}

/// The level of this processor, once somebody has looked. The standard
/// library keeps this too, but a feature at a time: a single insertion notices
/// a dozen tests instead of one.
#[cfg(feature = "std")]
static KNOWN: AtomicU8 = AtomicU8::new(Level::UNKNOWN.0);

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
    #[inline(always)]
    fn here() -> Self {
        match Self::known() {
            #[cfg(feature = "std")]
            Self::UNKNOWN => Self::look(),
            known => known,
        }
    }

    /// The same, if somebody has looked.
    #[cfg(feature = "std")]
    #[inline(always)]
    fn known() -> Self {
        Self(KNOWN.load(Relaxed))
    }

    #[cfg(not(feature = "std"))]
    #[inline(always)]
    fn known() -> Self {
        Self::detect()
    }

    #[cfg(feature = "std")]
    #[cold]
    fn look() -> Self {
        let level = Self::detect();
        KNOWN.store(level.0, Relaxed);
        level
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
            "avx512vbmi2",
            "gfni"
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
    const WIDE: bool = true;

    #[inline(never)]
    fn outline<T: Task>(self, task: T) -> T::Output {
        run_avx512(self, task)
    }

    steps!(avx512);
}

/// Runs `task` on the best backend of this processor.
///
/// A comparison for each backend, and no value that says which it is: that
/// would take a single insertion ten instructions.
#[inline(always)]
pub(super) fn run<T: Task>(task: T) -> T::Output {
    let known = Level::known();
    #[cfg(rustc_1_89)]
    if known == Level::AVX512 {
        let avx2 = Avx2 { _proof: () };
        return run_avx512(Avx512 { avx2 }, task);
    }
    if known == Level::AVX2 {
        return run_avx2(Avx2 { _proof: () }, task);
    }
    run_otherwise(task)
}

/// The first time, and where the processor has nothing.
#[cold]
#[inline(never)]
fn run_otherwise<T: Task>(task: T) -> T::Output {
    #[cfg(rustc_1_89)]
    if let Some(backend) = Avx512::new() {
        return run_avx512(backend, task);
    }
    match Avx2::new() {
        Some(backend) => run_avx2(backend, task),
        None => Scalar.outline(task),
    }
}

#[inline(always)]
fn run_avx2<T: Task>(backend: Avx2, task: T) -> T::Output {
    // SAFETY: a value of type `Avx2` is made only if the processor has these
    // features: `Level::detect` has asked for each of them, and no other
    // level than its answer is known, by which all who make one decide.
    unsafe { avx2::run(backend, task) }
}

#[cfg(rustc_1_89)]
#[inline(always)]
fn run_avx512<T: Task>(backend: Avx512, task: T) -> T::Output {
    // SAFETY: as in `run_avx2`.
    unsafe { avx512::run(backend, task) }
}

/// The function for the best backend of this processor.
pub(super) fn choose<S, W: LookUp<S>>() -> Function {
    match Level::here() {
        #[cfg(rustc_1_89)]
        Level::AVX512 => avx512::look_up::<S, W>,
        Level::AVX2 => avx2::look_up::<S, W>,
        _ => look_up_scalar::<S, W>,
    }
}

/// The same for changes.
pub(super) fn choose_change<S, W: Change<S>>() -> Changing<S> {
    match Level::here() {
        #[cfg(rustc_1_89)]
        Level::AVX512 => avx512::change::<S, W>,
        Level::AVX2 => avx2::change::<S, W>,
        _ => change_scalar::<S, W>,
    }
}

/// Where a backend's features begin: functions with these features, and what
/// is inlined into them.
macro_rules! with_features {
    ($module:ident, $backend:ident, $proof:expr, $features:literal) => {
        mod $module {
            use super::*;

            /// # Safety
            ///
            /// The processor must have the features.
            #[target_feature(enable = $features)]
            #[inline(never)]
            pub(super) unsafe fn run<T: Task>(
                backend: $backend,
                task: T,
            ) -> T::Output {
                task.run(backend)
            }

            /// A [`Function`].
            ///
            /// # Safety
            ///
            /// The processor must have the features, and the pointer must be
            /// that of a shared reference to an `S`.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn look_up<S, W: LookUp<S>>(
                structure: *const (),
                hash: u64,
            ) -> bool {
                // SAFETY: by this function's contract.
                let structure = unsafe { &*structure.cast::<S>() };
                W::look_up(structure, $proof, hash)
            }

            /// A [`Changing`] function.
            ///
            /// # Safety
            ///
            /// The processor must have the features.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn change<S, W: Change<S>>(
                structure: &mut S,
                hash: u64,
            ) -> bool {
                W::change(structure, $proof, hash)
            }
        }
    };
}

with_features!(avx2, Avx2, Avx2 { _proof: () }, "avx2,bmi1,bmi2,popcnt,lzcnt");
#[cfg(rustc_1_89)]
with_features!(
    avx512,
    Avx512,
    Avx512 { avx2: Avx2 { _proof: () } },
    "avx2,bmi1,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni"
);

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
