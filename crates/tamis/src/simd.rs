//! The one place where the processor's features are looked at.
//!
//! Hot loops are written once as a [`Task`], generic over a [`Backend`],
//! and everything inside is `#[inline(always)]`. [`dispatch`] then compiles
//! the whole loop, not just the innermost step, once for each instruction
//! set: calling a `#[target_feature]` function per key would cost more than
//! the probe it performs.

use crate::block::{bloom, fingerprint};

/// One way to test blocks. Every backend gives the same answers; each can
/// be constructed on its own, so tests reach all of them and not only the
/// one the processor prefers.
///
/// Public only because the sealed `Layout` names it.
pub trait Backend: Copy {
    /// Runs `task` as a function of its own, compiled for this backend: for
    /// what is too rare to take registers from what is not.
    #[doc(hidden)]
    fn outline<T: Task>(self, task: T) -> T::Output;

    /// Whether all positions of `probes` are set in a Bloom block of 32 or
    /// 64 bytes.
    #[doc(hidden)]
    fn all_set(self, block: &[u8], probes: bloom::Probes) -> bool;

    /// The ones of `word` whose ranks (0 is the lowest one) are the ones of
    /// `ranks`.
    #[doc(hidden)]
    fn select(self, word: u64, ranks: u64) -> u64;

    /// Which entries of `among` have this head in a fingerprint block of 32
    /// or 64 bytes; bit i stands for entry i.
    #[doc(hidden)]
    fn equal_heads<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: fingerprint::Heads,
        among: u64,
    ) -> u64;

    /// The same in a block of 64 bytes with heads of 4 bits, for entries in
    /// front of the last 64; `heads` has as many as there are of those.
    #[doc(hidden)]
    fn equal_low_heads<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: fingerprint::Heads,
        among: u64,
    ) -> u64;

    /// The bits of `word` in their order, around zeros where `gaps` has
    /// ones; those that no longer fit are lost.
    #[doc(hidden)]
    fn apart(self, word: u64, gaps: u64) -> u64;

    /// Puts a head among the heads of a block, and `rest` in front of them;
    /// what `rest` has where heads are does not matter.
    #[doc(hidden)]
    fn add_head<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        head: fingerprint::NewHead,
        rest: [u64; 8],
    );

    /// Adds an entry to a block that has at least 15. In front of the heads
    /// all bits move that are behind one of the new ones.
    #[doc(hidden)]
    fn add_entry<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        entry: fingerprint::NewEntry,
    );

    /// In which of up to eight bit planes an entry differs from `tail`,
    /// whose highest bit belongs to the first plane.
    #[doc(hidden)]
    fn differing<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        planes: fingerprint::Planes,
        tail: u64,
    ) -> u32;
}

/// Plain Rust, for every processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar;

impl Backend for Scalar {
    #[inline(never)]
    fn outline<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }

    #[inline(always)]
    fn all_set(self, block: &[u8], probes: bloom::Probes) -> bool {
        bloom::scalar::all_set(block, probes)
    }

    #[inline(always)]
    fn select(self, word: u64, ranks: u64) -> u64 {
        fingerprint::scalar::select(word, ranks)
    }

    #[inline(always)]
    fn equal_heads<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: fingerprint::Heads,
        among: u64,
    ) -> u64 {
        fingerprint::scalar::equal_heads(block, heads, among)
    }

    #[inline(always)]
    fn equal_low_heads<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: fingerprint::Heads,
        among: u64,
    ) -> u64 {
        fingerprint::scalar::equal_low_heads(block, heads, among)
    }

    #[inline(always)]
    fn apart(self, word: u64, gaps: u64) -> u64 {
        fingerprint::scalar::apart(word, gaps)
    }

    #[inline(always)]
    fn add_head<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        head: fingerprint::NewHead,
        rest: [u64; 8],
    ) {
        fingerprint::scalar::add_head(block, head, rest);
    }

    #[inline(always)]
    fn add_entry<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        entry: fingerprint::NewEntry,
    ) {
        fingerprint::scalar::add_entry(block, entry);
    }

    #[inline(always)]
    fn differing<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        planes: fingerprint::Planes,
        tail: u64,
    ) -> u32 {
        fingerprint::scalar::differing(block, planes, tail)
    }
}

/// A piece of work that can be compiled for every backend.
///
/// Public only because [`Backend`] names it.
pub trait Task {
    #[doc(hidden)]
    type Output;

    #[doc(hidden)]
    fn run<B: Backend>(self, backend: B) -> Self::Output;
}

/// Runs `task` on the best backend this processor has.
#[inline(always)]
pub(crate) fn dispatch<T: Task>(task: T) -> T::Output {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        match Avx2::new() {
            Some(backend) => x86::run(backend, task),
            // Out of line too: its registers would have to be saved in
            // front of the branch.
            None => Scalar.outline(task),
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    task.run(Scalar)
}

/// Asks for the cache line that holds `bytes[offset]`, without waiting.
///
/// If it is not `CACHED` into the second-level cache, and not the first:
/// there a line from memory waits in one of few buffers, and with all of
/// them taken everything else that reads waits, too. The roofline of
/// `docs/benchmarks.md` asks in the same way.
///
/// An offset outside `bytes` is harmless. Does nothing where the compiler
/// offers no stable prefetch.
#[inline(always)]
pub(crate) fn prefetch<const CACHED: bool>(bytes: &[u8], offset: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    x86::prefetch::<CACHED>(bytes, offset);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (bytes, offset);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use x86::Avx2;

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "target features and prefetch hints")]
mod x86 {
    use super::{Backend, Task};
    use crate::block::{bloom, fingerprint};

    /// Proof that this processor has AVX2 and the bit-manipulation
    /// instructions that come with it.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Avx2 {
        _proof: (),
    }

    impl Avx2 {
        /// The backend, if the processor has it; if it does once, it always
        /// does.
        #[cfg(feature = "std")]
        #[inline(always)]
        pub(crate) fn new() -> Option<Self> {
            use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
            // The standard library caches too, but a feature at a time; a
            // single lookup notices five tests instead of one.
            static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
            const UNKNOWN: u8 = 0;
            const PRESENT: u8 = 1;
            const ABSENT: u8 = 2;

            #[cold]
            fn detect() -> bool {
                let present = KNOWN.load(Relaxed) == UNKNOWN
                    && std::is_x86_feature_detected!("avx2")
                    && std::is_x86_feature_detected!("bmi1")
                    && std::is_x86_feature_detected!("bmi2")
                    && std::is_x86_feature_detected!("popcnt")
                    && std::is_x86_feature_detected!("lzcnt");
                let known = if present { PRESENT } else { ABSENT };
                KNOWN.store(known, Relaxed);
                present
            }

            let present = KNOWN.load(Relaxed) == PRESENT || detect();
            present.then_some(Self { _proof: () })
        }

        /// Without std only what the build was told can be known.
        #[cfg(not(feature = "std"))]
        pub(crate) fn new() -> Option<Self> {
            let available = cfg!(all(
                target_feature = "avx2",
                target_feature = "bmi1",
                target_feature = "bmi2",
                target_feature = "popcnt",
                target_feature = "lzcnt",
            ));
            available.then_some(Self { _proof: () })
        }
    }

    impl Backend for Avx2 {
        // The compiler ignores `inline(never)` at functions with features
        // of their own where the caller has them too; not at this one.
        #[inline(never)]
        fn outline<T: Task>(self, task: T) -> T::Output {
            run(self, task)
        }

        #[inline(always)]
        fn all_set(self, block: &[u8], probes: bloom::Probes) -> bool {
            bloom::avx2::all_set(self, block, probes)
        }

        #[inline(always)]
        fn select(self, word: u64, ranks: u64) -> u64 {
            fingerprint::avx2::select(self, word, ranks)
        }

        #[inline(always)]
        fn equal_heads<const BYTES: usize>(
            self,
            block: &[u8; BYTES],
            heads: fingerprint::Heads,
            among: u64,
        ) -> u64 {
            fingerprint::avx2::equal_heads(self, block, heads, among)
        }

        #[inline(always)]
        fn equal_low_heads<const BYTES: usize>(
            self,
            block: &[u8; BYTES],
            heads: fingerprint::Heads,
            among: u64,
        ) -> u64 {
            fingerprint::avx2::equal_low_heads(self, block, heads, among)
        }

        #[inline(always)]
        fn apart(self, word: u64, gaps: u64) -> u64 {
            fingerprint::avx2::apart(self, word, gaps)
        }

        #[inline(always)]
        fn add_head<const BYTES: usize>(
            self,
            block: &mut [u8; BYTES],
            head: fingerprint::NewHead,
            rest: [u64; 8],
        ) {
            fingerprint::avx2::add_head(self, block, head, rest);
        }

        #[inline(always)]
        fn add_entry<const BYTES: usize>(
            self,
            block: &mut [u8; BYTES],
            entry: fingerprint::NewEntry,
        ) {
            fingerprint::avx2::add_entry(self, block, entry);
        }

        #[inline(always)]
        fn differing<const BYTES: usize>(
            self,
            block: &[u8; BYTES],
            planes: fingerprint::Planes,
            tail: u64,
        ) -> u32 {
            fingerprint::avx2::differing(self, block, planes, tail)
        }
    }

    #[inline(always)]
    pub(super) fn run<T: Task>(backend: Avx2, task: T) -> T::Output {
        /// # Safety
        ///
        /// The processor must have the features named.
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
        #[inline(never)]
        unsafe fn with_features<T: Task>(backend: Avx2, task: T) -> T::Output {
            task.run(backend)
        }
        // SAFETY: a value of type `Avx2` exists only if the processor has
        // AVX2, BMI1, BMI2, POPCNT and LZCNT (see `Avx2::new`, its only
        // constructor), which are the features `with_features` needs.
        unsafe { with_features(backend, task) }
    }

    #[inline(always)]
    pub(super) fn prefetch<const CACHED: bool>(bytes: &[u8], offset: usize) {
        use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let address = bytes.as_ptr().wrapping_add(offset).cast::<i8>();
        // SAFETY: PREFETCHh is a hint: it reads no value and raises no
        // fault whatever the address; SSE is part of the x86-64 baseline.
        unsafe {
            match CACHED {
                true => _mm_prefetch::<_MM_HINT_T0>(address),
                false => _mm_prefetch::<_MM_HINT_T1>(address),
            }
        }
    }
}
