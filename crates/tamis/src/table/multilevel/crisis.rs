//! When no level has room.

use core::fmt;

use crate::error::Error;

/// No level has room for a key, nor has the stash (a *crisis* in the paper).
/// Nothing has changed; here are the key and the value again.
///
/// Remove keys, [`rebuild`](super::Multilevel::rebuild) with another seed, or
/// build a larger table, or one with a stash.
///
/// ```
/// use tamis::table::{Crisis, Multilevel};
///
/// let mut table = Multilevel::builder().levels(&[1]).build()?;
/// table.insert("apple", 1)?;
/// let Crisis { key, value } = table.insert("pear", 2).unwrap_err();
/// assert_eq!((key, value, table.len()), ("pear", 2, 1));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Crisis<K, V> {
    /// The key that has no place.
    pub key: K,
    /// Its value.
    pub value: V,
}

impl<K, V> fmt::Debug for Crisis<K, V> {
    /// Without the key: an error should not need that it can be shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crisis").finish_non_exhaustive()
    }
}

impl<K, V> fmt::Display for Crisis<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error::Crisis.fmt(f)
    }
}

impl<K, V> core::error::Error for Crisis<K, V> {}

impl<K, V> From<Crisis<K, V>> for Error {
    fn from(_: Crisis<K, V>) -> Self {
        Self::Crisis
    }
}
