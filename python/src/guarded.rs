//! A lock whose shortest reads cost no atomic instruction.
//!
//! Acquiring and releasing a read lock takes 7 % of the time of
//! `key in filter` (Zen 5). The GIL is a lock that a caller already holds: as long as
//! no writer has begun, and none can begin without the GIL, the value does not
//! change. Interpreters without a GIL always take the lock.
#![expect(unsafe_code, reason = "a cell guarded by two locks")]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;

use pyo3::Python;
use pyo3::sync::RwLockExt as _;

/// A value behind a lock. Threads wait for the lock detached.
pub(crate) struct Guarded<T> {
    lock: RwLock<()>,
    /// True from the creation of a [`Writer`] to its end, and for ever if it
    /// ends in a panic. Changed by attached threads only.
    is_changing: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: as for `RwLock<T>`. References to the value are those of `Reader`
// and `Writer`, whose lifetimes the lock separates, and that of `peek`, which
// ends while its thread holds the GIL and began when no `Writer` existed;
// creating one needs the GIL.
unsafe impl<T: Send + Sync> Sync for Guarded<T> {}

/// A shared reference.
pub(crate) struct Reader<'a, T> {
    _lock: RwLockReadGuard<'a, ()>,
    value: &'a T,
}

/// An exclusive reference, used and dropped by attached threads. (Its target
/// may be passed to code that runs detached.)
pub(crate) struct Writer<'a, T> {
    // Dropped after `Writer::drop`.
    _lock: RwLockWriteGuard<'a, ()>,
    is_changing: &'a AtomicBool,
    value: &'a mut T,
}

type Poisoned = PoisonError<()>;

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            lock: RwLock::new(()),
            is_changing: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    pub(crate) fn read(
        &self,
        py: Python<'_>,
    ) -> Result<Reader<'_, T>, Poisoned> {
        let lock = self.lock.read_py_attached(py);
        let lock = lock.map_err(|_| PoisonError::new(()))?;
        // SAFETY: no `Writer` exists while `lock` does.
        Ok(Reader { value: unsafe { &*self.value.get() }, _lock: lock })
    }

    pub(crate) fn write(
        &self,
        py: Python<'_>,
    ) -> Result<Writer<'_, T>, Poisoned> {
        let lock = self.lock.write_py_attached(py);
        let lock = lock.map_err(|_| PoisonError::new(()))?;
        self.is_changing.store(true, Ordering::Relaxed);
        Ok(Writer {
            // SAFETY: no other guard exists while `lock` does. A `peek` runs
            // with the GIL, which this thread holds here: it ended before, or
            // begins after the store above and returns `None`.
            value: unsafe { &mut *self.value.get() },
            is_changing: &self.is_changing,
            _lock: lock,
        })
    }

    /// Calls `look` with the value, without the lock. `None` while a
    /// [`Writer`] exists, and without a GIL.
    ///
    /// # Safety
    ///
    /// `look` neither detaches nor runs code of the interpreter, which may
    /// switch to another thread.
    #[inline]
    pub(crate) unsafe fn peek<R>(
        &self,
        _: Python<'_>,
        look: impl FnOnce(&T) -> R,
    ) -> Option<R> {
        // Relaxed: the GIL orders the stores of other threads before this
        // load, and their changes of the value before their last store.
        if cfg!(Py_GIL_DISABLED) || self.is_changing.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: no `Writer` exists, and none can begin before `look` ends:
        // this thread holds the GIL, and by the contract keeps it.
        Some(look(unsafe { &*self.value.get() }))
    }
}

impl<T> Deref for Reader<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Deref for Writer<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for Writer<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

impl<T> Drop for Writer<'_, T> {
    fn drop(&mut self) {
        // After a panic `peek` leaves the error to the poisoned lock.
        if !thread::panicking() {
            self.is_changing.store(false, Ordering::Relaxed);
        }
    }
}
