//! The one dispatch: a structure's operations, compiled once per instruction
//! set and block layout, and chosen when the structure is made.
//!
//! # Overview of types
//!
//! * [`Backend`]: a token with the operations of every block kind.
//! * [`Kernel`] and [`Insertion`]: one implementation of a structure's batch
//!   lookups, and of its insertions, generic over the backend. A structure has
//!   one kernel per block layout.
//! * [`SingleLookup`]: the single lookup of a kernel. It takes the whole structure,
//!   two words in registers, where the other operations take slices.
//! * [`KernelFns`]: four function pointers, those of the chosen kernel for the
//!   best level of this processor.
//! * [`pipeline`]: the batch loops that kernels are made of.
//!
//! Detection and a `match` on the layout at each call would be about a third
//! of the instructions of a lookup; a pointer is one load.
#![expect(unsafe_code, reason = "pointers to functions with target features")]

pub(crate) mod pipeline;

use core::marker::PhantomData;

use crate::block::{bloom, fingerprint};

/// A token with the operations of every block kind.
pub(crate) trait Backend: bloom::Ops + fingerprint::Ops {}

impl<T: bloom::Ops + fingerprint::Ops> Backend for T {}

/// The part of a structure that is the same whatever memory it is in: layout,
/// tables, kernel parameters.
pub(crate) trait Core: 'static {
    /// Memory for lookups.
    type View<'a>: Copy;
    /// Memory for the insertion of one key.
    type Store<'a>;
    /// Memory for the insertion of many keys, possibly a part of all blocks.
    type Range<'a>;
}

/// One implementation of the operations on structures with this core.
pub(crate) trait Kernel<C: Core> {
    /// Whether AVX-512 makes it at least 3 % faster than AVX2 on some
    /// processor. If not, its functions for AVX2 serve that level as well.
    const WIDE: bool;

    /// Looks up `hashes`; `found` has the same length and is overwritten.
    fn contains_batch<B: Backend>(
        backend: B,
        core: &C,
        view: C::View<'_>,
        hashes: &[u64],
        found: &mut [bool],
    );
}

/// The insertions of a kernel. Apart from [`Kernel`], because some kernels
/// differ in their lookups only.
pub(crate) trait Insertion<C: Core> {
    /// As in [`Kernel`].
    const WIDE: bool;

    /// Inserts one key. Returns `true` if it certainly was absent.
    fn insert<B: Backend>(
        backend: B,
        core: &C,
        store: C::Store<'_>,
        hash: u64,
    ) -> bool;

    /// Inserts `hashes` in order.
    fn insert_batch<B: Backend>(
        backend: B,
        core: &C,
        range: C::Range<'_>,
        hashes: &[u64],
    );
}

/// The single lookup of a kernel in structures of type `S`.
///
/// # Safety
///
/// The implementation is the same for all lifetimes in `S`: [`KernelFns`] is
/// covariant in `S`, and calls the function of one lifetime with a structure
/// of a shorter one. No implementation is for `S` with a lifetime of its own
/// choice, such as `'static`.
pub(crate) unsafe trait SingleLookup<S> {
    /// As in [`Kernel`].
    const WIDE: bool;

    fn contains<B: Backend>(backend: B, structure: &S, hash: u64) -> bool;
}

/// The functions of one kernel, compiled for the best level of the processor.
pub(crate) struct KernelFns<S, C: Core> {
    /// Takes a pointer to a structure of type `S`. The type is erased because
    /// `fn(&S)` would make every structure invariant in its memory's
    /// lifetime.
    contains: unsafe fn(*const (), u64) -> bool,
    core: &'static CoreFns<C>,
    structure: PhantomData<S>,
}

/// The functions that do not depend on the type of memory.
///
/// Made by a function without type parameters, so that this crate compiles
/// each kernel once, and a program that opens filters compiles none of them.
pub(crate) struct CoreFns<C: Core> {
    contains_batch: for<'a> unsafe fn(&C, C::View<'a>, &[u64], &mut [bool]),
    insert: for<'a> unsafe fn(&C, C::Store<'a>, u64) -> bool,
    insert_batch: for<'a> unsafe fn(&C, C::Range<'a>, &[u64]),
}

/// The constructor of a level's functions.
macro_rules! for_level {
    ($function:ident::<$($parameter:ident),*>) => {{
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        match crate::arch::Level::detect() {
            #[cfg(rustc_1_89)]
            crate::arch::Level::Avx512 => {
                return avx512::$function::<$($parameter),*>();
            }
            crate::arch::Level::Avx2 => {
                return avx2::$function::<$($parameter),*>();
            }
            crate::arch::Level::Scalar => {}
        }
        #[cfg(neon)]
        return neon::$function::<$($parameter),*>();
        #[cfg(simd128)]
        return simd128::$function::<$($parameter),*>();
        #[cfg(not(any(neon, simd128)))]
        scalar::$function::<$($parameter),*>()
    }};
}

impl<C: Core> CoreFns<C> {
    /// The functions of kernel `K` with insertions `I`.
    #[inline(always)]
    pub(crate) fn of<K: Kernel<C>, I: Insertion<C>>() -> &'static Self {
        for_level!(core_fns::<C, K, I>)
    }
}

/// The single lookup `L` for the best level of the processor.
fn contains_fn<S, L: SingleLookup<S>>() -> unsafe fn(*const (), u64) -> bool {
    for_level!(contains_fn::<S, L>)
}

impl<S, C: Core> KernelFns<S, C> {
    /// The functions of a kernel and its single lookup `L`.
    pub(crate) fn new<L: SingleLookup<S>>(core: &'static CoreFns<C>) -> Self {
        let contains = contains_fn::<S, L>();
        Self { contains, core, structure: PhantomData }
    }

    /// Looks up one key.
    #[inline(always)]
    pub(crate) fn contains(&self, structure: &S, hash: u64) -> bool {
        let structure = core::ptr::from_ref(structure).cast();
        // SAFETY: `new` is the only constructor. It stored a function for
        // structures of type `S` up to lifetimes, for which it is the same by
        // the contract of `SingleLookup`, compiled for features that
        // `Level::detect` found; the pointer is that of a reference that
        // outlives the call.
        unsafe { (self.contains)(structure, hash) }
    }

    /// Looks up `hashes`.
    ///
    /// # Panics
    ///
    /// If `found` is not as long as `hashes`.
    #[inline]
    pub(crate) fn contains_batch(
        &self,
        core: &C,
        view: C::View<'_>,
        hashes: &[u64],
        found: &mut [bool],
    ) {
        assert_eq!(hashes.len(), found.len(), "one answer per hash");
        // SAFETY: `new` stored a function compiled for features that
        // `Level::detect` found; nothing else is required of the caller.
        unsafe { (self.core.contains_batch)(core, view, hashes, found) }
    }

    /// Inserts one key. Returns `true` if it certainly was absent.
    #[inline(always)]
    pub(crate) fn insert(
        &self,
        core: &C,
        store: C::Store<'_>,
        hash: u64,
    ) -> bool {
        // SAFETY: as in `contains_batch`.
        unsafe { (self.core.insert)(core, store, hash) }
    }

    /// Inserts `hashes` in order.
    #[inline]
    pub(crate) fn insert_batch(
        &self,
        core: &C,
        range: C::Range<'_>,
        hashes: &[u64],
    ) {
        // SAFETY: as in `contains_batch`.
        unsafe { (self.core.insert_batch)(core, range, hashes) }
    }
}

/// The functions of a kernel with the features of a list, which are where a
/// level's features begin: everything they call is inlined into them. Kernels
/// that are not `WIDE` take the functions of another level.
macro_rules! functions {
    ($module:ident, $token:expr, $features:ident) => {
        functions!($module, $token, $features, $module);
    };
    ($module:ident, $token:expr, $features:ident, $narrow:ident) => {
        mod $module {
            use super::*;

            pub(super) fn core_fns<C, K, I>() -> &'static CoreFns<C>
            where
                C: Core,
                K: Kernel<C>,
                I: Insertion<C>,
            {
                const {
                    &CoreFns {
                        contains_batch: match K::WIDE {
                            true => contains_batch::<C, K>,
                            false => super::$narrow::contains_batch::<C, K>,
                        },
                        insert: match I::WIDE {
                            true => insert::<C, I>,
                            false => super::$narrow::insert::<C, I>,
                        },
                        insert_batch: match I::WIDE {
                            true => insert_batch::<C, I>,
                            false => super::$narrow::insert_batch::<C, I>,
                        },
                    }
                }
            }

            pub(super) fn contains_fn<S, L: SingleLookup<S>>()
            -> unsafe fn(*const (), u64) -> bool {
                const {
                    match L::WIDE {
                        true => contains::<S, L>,
                        false => super::$narrow::contains::<S, L>,
                    }
                }
            }

            $features! { enable!
                /// # Safety
                ///
                /// The processor has the features, and `structure` points to
                /// an `S` that is not changed during the call.
                pub(super) unsafe fn contains<S, L: SingleLookup<S>>(
                    structure: *const (),
                    hash: u64,
                ) -> bool {
                    // SAFETY: by this function's contract.
                    let structure = unsafe { &*structure.cast::<S>() };
                    L::contains($token, structure, hash)
                }
            }

            $features! { enable!
                /// # Safety
                ///
                /// The processor has the features.
                pub(super) unsafe fn contains_batch<C: Core, K: Kernel<C>>(
                    core: &C,
                    view: C::View<'_>,
                    hashes: &[u64],
                    found: &mut [bool],
                ) {
                    K::contains_batch($token, core, view, hashes, found);
                }
            }

            $features! { enable!
                /// # Safety
                ///
                /// The processor has the features.
                pub(super) unsafe fn insert<C: Core, I: Insertion<C>>(
                    core: &C,
                    store: C::Store<'_>,
                    hash: u64,
                ) -> bool {
                    I::insert($token, core, store, hash)
                }
            }

            $features! { enable!
                /// # Safety
                ///
                /// The processor has the features.
                pub(super) unsafe fn insert_batch<C: Core, I: Insertion<C>>(
                    core: &C,
                    range: C::Range<'_>,
                    hashes: &[u64],
                ) {
                    I::insert_batch($token, core, range, hashes);
                }
            }
        }
    };
}

/// The features of the tokens that need no detection: those of every function.
macro_rules! no_features {
    (enable! $function:item) => {
        $function
    };
}

#[cfg(not(any(neon, simd128)))]
functions!(scalar, crate::arch::Scalar, no_features);
#[cfg(neon)]
functions!(neon, crate::arch::Neon, no_features);
#[cfg(simd128)]
functions!(simd128, crate::arch::Simd128, no_features);
#[cfg(all(target_arch = "x86_64", not(miri)))]
functions!(
    avx2,
    // SAFETY: the function's contract, for the same list of features.
    unsafe { crate::arch::Avx2::new_unchecked() },
    avx2_features
);
#[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
functions!(
    avx512,
    // SAFETY: the function's contract, for the same list of features.
    unsafe { crate::arch::Avx512::new_unchecked() },
    avx512_features,
    avx2
);

// Manual impls: `derive` would require `S: Copy` and `C: Copy`.
impl<S, C: Core> Clone for KernelFns<S, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, C: Core> Copy for KernelFns<S, C> {}

impl<S, C: Core> core::fmt::Debug for KernelFns<S, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("KernelFns")
    }
}
