//! The one place where the processor's features are looked at.
//!
//! Hot loops are written once as a [`Task`], generic over a [`Backend`],
//! and everything inside is `#[inline(always)]`. [`dispatch`] then compiles
//! the whole loop, not just the innermost step, once for each instruction
//! set: calling a `#[target_feature]` function per key would cost more than
//! the probe it performs. Where there is one key and no loop, a structure
//! has such a function [`Chosen`] when it is made.

mod chosen;

pub(crate) use chosen::{Change, Chosen, ChosenChange, LookUp};

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

    /// The same for what hardly ever happens: whatever is not that comes
    /// first in the code.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    fn outline_rare<T: Task>(self, task: T) -> T::Output {
        self.outline(task)
    }

    /// How many planes [`differing`](Self::differing) takes at once.
    #[doc(hidden)]
    const PLANES: u32;

    /// Whether vectors have eight lanes of 64 bits, and bytes of them can be
    /// permuted.
    #[doc(hidden)]
    const WIDE: bool = false;

    /// Whether all positions of `probes` are set in a Bloom block of 32 or
    /// 64 bytes. They are so many groups, or any number of them.
    #[doc(hidden)]
    fn all_set<const GROUPS: u32>(
        self,
        block: &[u8],
        probes: bloom::Probes,
    ) -> bool;

    /// Sets all positions of `probes` in such a block.
    #[doc(hidden)]
    fn set_all(self, block: &mut [u8], probes: bloom::Probes);

    /// Sets those of them that are not set; whether there was one. A block
    /// that has all of them is not written to.
    #[doc(hidden)]
    fn set_missing(self, block: &mut [u8], probes: bloom::Probes) -> bool;

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

    /// Which entries of `among` have this head of 4 bits in a block in which
    /// heads are placed; bit i + 1 stands for entry i, or, if it is `LATER`,
    /// for entry i + 16. The lowest bit stays what it is.
    #[doc(hidden)]
    fn equal_placed<const LATER: bool>(
        self,
        block: &[u8; fingerprint::LINE],
        value: u8,
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

    /// In which of up to [`PLANES`](Self::PLANES) bit planes an entry
    /// differs from `tail`, whose highest bit belongs to the first plane.
    #[doc(hidden)]
    fn differing<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        planes: fingerprint::Planes,
        tail: u64,
    ) -> u32;

    /// Which of 64 entries of a line, if they are there, have these bits
    /// behind their heads. Fast if vectors are [`WIDE`](Self::WIDE).
    #[doc(hidden)]
    fn equal_tails<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        tails: &fingerprint::Tails,
        wanted: fingerprint::Tail,
    ) -> u64;
}

/// Plain Rust, for every processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar;

/// The steps of a backend, each in the module of that name.
macro_rules! steps {
    ($module:ident) => {
        #[inline(always)]
        fn all_set<const GROUPS: u32>(
            self,
            block: &[u8],
            probes: bloom::Probes,
        ) -> bool {
            bloom::$module::all_set::<GROUPS>(self, block, probes)
        }

        #[inline(always)]
        fn set_all(self, block: &mut [u8], probes: bloom::Probes) {
            bloom::$module::set_all(self, block, probes);
        }

        #[inline(always)]
        fn set_missing(self, block: &mut [u8], probes: bloom::Probes) -> bool {
            bloom::$module::set_missing(self, block, probes)
        }

        #[inline(always)]
        fn select(self, word: u64, ranks: u64) -> u64 {
            fingerprint::$module::select(self, word, ranks)
        }

        #[inline(always)]
        fn equal_heads<const BYTES: usize>(
            self,
            block: &[u8; BYTES],
            heads: fingerprint::Heads,
            among: u64,
        ) -> u64 {
            fingerprint::$module::equal_heads(self, block, heads, among)
        }

        #[inline(always)]
        fn equal_low_heads<const BYTES: usize>(
            self,
            block: &[u8; BYTES],
            heads: fingerprint::Heads,
            among: u64,
        ) -> u64 {
            fingerprint::$module::equal_low_heads(self, block, heads, among)
        }

        #[inline(always)]
        fn equal_placed<const LATER: bool>(
            self,
            block: &[u8; fingerprint::LINE],
            value: u8,
            among: u64,
        ) -> u64 {
            let equal = fingerprint::$module::equal_placed::<LATER>;
            equal(self, block, value, among)
        }

        #[inline(always)]
        fn apart(self, word: u64, gaps: u64) -> u64 {
            fingerprint::$module::apart(self, word, gaps)
        }

        #[inline(always)]
        fn add_head<const BYTES: usize>(
            self,
            block: &mut [u8; BYTES],
            head: fingerprint::NewHead,
            rest: [u64; 8],
        ) {
            fingerprint::$module::add_head(self, block, head, rest);
        }

        #[inline(always)]
        fn add_entry<const BYTES: usize>(
            self,
            block: &mut [u8; BYTES],
            entry: fingerprint::NewEntry,
        ) {
            fingerprint::$module::add_entry(self, block, entry);
        }

        #[inline(always)]
        fn differing<const BYTES: usize>(
            self,
            block: &[u8; BYTES],
            planes: fingerprint::Planes,
            tail: u64,
        ) -> u32 {
            fingerprint::$module::differing(self, block, planes, tail)
        }

        #[inline(always)]
        fn equal_tails<const BYTES: usize>(
            self,
            block: &[u8; BYTES],
            tails: &fingerprint::Tails,
            wanted: fingerprint::Tail,
        ) -> u64 {
            fingerprint::$module::equal_tails(self, block, tails, wanted)
        }
    };
}

impl Backend for Scalar {
    const PLANES: u32 = 8;

    #[inline(never)]
    fn outline<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }

    steps!(scalar);
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
        x86::run(task)
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
mod x86;

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use x86::Avx2;
#[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
pub(crate) use x86::Avx512;
