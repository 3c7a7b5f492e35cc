//! The error of an insertion into a full table.

use core::fmt;

use crate::error::Error;

/// No bucket has room for a key, nor has the stash or the list (a *crisis* in
/// the paper). The table is unchanged; the error returns the key and the value.
///
/// Remove keys, [`rebuild`](super::Multilevel::rebuild) with another seed, or
/// build a larger table or one with a stash. If the table has fewer keys than
/// its design items and a hasher that is not keyed, the keys may have been
/// chosen to collide: rebuild with [`KeyHasher::random`].
///
/// [`KeyHasher::random`]: crate::KeyHasher::random
///
/// ```
/// use tamis::table::{Multilevel, TableFull};
///
/// let mut table = Multilevel::builder().levels(&[1]).build()?;
/// table.insert("apple", 1)?;
/// let TableFull { key, value } = table.insert("pear", 2).unwrap_err();
/// assert_eq!((key, value, table.len()), ("pear", 2, 1));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TableFull<K, V> {
    /// The key that was not inserted.
    pub key: K,
    /// Its value.
    pub value: V,
}

impl<K, V> fmt::Debug for TableFull<K, V> {
    /// Omits key and value: `unwrap` and `?` then need no `K: Debug`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableFull").finish_non_exhaustive()
    }
}

impl<K, V> fmt::Display for TableFull<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error::TableFull.fmt(f)
    }
}

impl<K, V> core::error::Error for TableFull<K, V> {}

impl<K, V> From<TableFull<K, V>> for Error {
    fn from(_: TableFull<K, V>) -> Self {
        Self::TableFull
    }
}
