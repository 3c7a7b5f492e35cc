//! A function for a processor and a kind of structure, chosen once.
#![expect(unsafe_code, reason = "functions with target features")]

use core::marker::PhantomData;

use super::{Backend, Scalar};

/// A way to look up one key in a structure.
pub(crate) trait LookUp<S> {
    fn look_up<B: Backend>(structure: &S, backend: B, hash: u64) -> bool;
}

/// A [`LookUp`] compiled for one backend: a pointer to the structure, and a
/// hash.
pub(super) type Function = unsafe fn(*const (), u64) -> bool;

/// A way to look up keys in structures of this type, compiled for the best
/// backend this processor has.
///
/// It is chosen once, when a structure is made, and then called. To ask at
/// each key what the processor has, and what the structure is like, would be
/// a third of a lookup.
pub(crate) struct Chosen<S> {
    function: Function,
    /// Not `fn(&S)`: a structure that has a field of this type could then
    /// not be used where one that lives shorter is wanted.
    of: PhantomData<S>,
}

impl<S> Chosen<S> {
    /// The way `W`.
    pub(crate) fn new<W: LookUp<S>>() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        let function = super::x86::choose::<S, W>();
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let function: Function = look_up_scalar::<S, W>;
        Self { function, of: PhantomData }
    }

    /// Looks up a key.
    #[inline(always)]
    pub(crate) fn look_up(&self, structure: &S, hash: u64) -> bool {
        let structure = core::ptr::from_ref(structure).cast();
        // SAFETY: `new`, which alone makes these, has taken a function for
        // structures of this type and with features that the processor has;
        // the pointer is that of a reference which outlives the call.
        // (The type may have been coerced to one that lives shorter. Ways
        // are implemented for all lifetimes alike and keep nothing.)
        unsafe { (self.function)(structure, hash) }
    }
}

/// The [`Function`] for every processor.
///
/// # Safety
///
/// The pointer must be that of a shared reference to an `S`.
pub(super) unsafe fn look_up_scalar<S, W: LookUp<S>>(
    structure: *const (),
    hash: u64,
) -> bool {
    // SAFETY: by this function's contract.
    let structure = unsafe { &*structure.cast::<S>() };
    W::look_up(structure, Scalar, hash)
}

/// A way to change a structure by one key.
pub(crate) trait Change<S> {
    fn change<B: Backend>(structure: &mut S, backend: B, hash: u64) -> bool;
}

/// A [`Change`] compiled for one backend.
pub(super) type Changing<S> = unsafe fn(&mut S, u64) -> bool;

/// Like [`Chosen`], for what changes structures: those that are owned, so
/// that the type needs no care.
pub(crate) struct ChosenChange<S> {
    function: Changing<S>,
}

impl<S> ChosenChange<S> {
    /// The way `W`.
    pub(crate) fn new<W: Change<S>>() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        let function = super::x86::choose_change::<S, W>();
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let function: Changing<S> = change_scalar::<S, W>;
        Self { function }
    }

    /// Changes the structure, and says what the way does.
    #[inline(always)]
    pub(crate) fn change(self, structure: &mut S, hash: u64) -> bool {
        // SAFETY: `new`, which alone makes these, has taken a function with
        // features that the processor has, and nothing else is asked of who
        // calls it.
        unsafe { (self.function)(structure, hash) }
    }
}

/// The [`Changing`] function for every processor.
pub(super) fn change_scalar<S, W: Change<S>>(
    structure: &mut S,
    hash: u64,
) -> bool {
    W::change(structure, Scalar, hash)
}

/// What a function is: derived, it would be asked of the structure.
macro_rules! function {
    ($chosen:ident) => {
        impl<S> Clone for $chosen<S> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<S> Copy for $chosen<S> {}

        impl<S> core::fmt::Debug for $chosen<S> {
            fn fmt(
                &self,
                f: &mut core::fmt::Formatter<'_>,
            ) -> core::fmt::Result {
                f.write_str(stringify!($chosen))
            }
        }
    };
}
function!(Chosen);
function!(ChosenChange);
