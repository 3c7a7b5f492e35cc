//! A list of writes that are applied together.

use crate::codec::{put_varint, varint};
use crate::error::{Error, Result};
use crate::options::{MAX_KEY, MAX_VALUE};

/// Longest value stored with its key; longer ones have extents of their own.
pub(crate) const MAX_INLINE: usize = 65_536;

/// State of a key that a record stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The value follows.
    Put,
    /// The key is deleted.
    Delete,
    /// The place of the value follows.
    Large,
}

impl Kind {
    /// The kind with the code of `as u8`.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Put, Self::Delete, Self::Large].get(usize::from(code)).copied()
    }
}

/// One write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Op<'a> {
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Writes that [`Store::write_batch`](crate::Store::write_batch) applies all
/// or not at all, in their order.
///
/// ```
/// use tamis_store::{Batch, Options, Store};
///
/// let dir = tempfile::tempdir()?;
/// let store = Store::create(dir.path(), &Options::new())?;
/// let mut batch = Batch::new();
/// batch.put("from", "90")?;
/// batch.put("to", "110")?;
/// batch.delete("pending")?;
/// store.write_batch(&batch)?;
/// assert_eq!(store.get("to")?.as_deref(), Some(&b"110"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Encoded operations, as in a frame of the log.
    bytes: Vec<u8>,
    count: u32,
}

impl Batch {
    /// A batch without writes.
    ///
    /// ```
    /// assert!(tamis_store::Batch::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a put.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`]: the key exceeds [`MAX_KEY`] or the value
    /// [`MAX_VALUE`].
    ///
    /// ```
    /// let mut batch = tamis_store::Batch::new();
    /// batch.put("apple", "red")?;
    /// assert_eq!(batch.len(), 1);
    /// # Ok::<(), tamis_store::Error>(())
    /// ```
    pub fn put(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.push(Kind::Put, key.as_ref(), value.as_ref())
    }

    /// Adds a deletion.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`]: the key exceeds [`MAX_KEY`].
    ///
    /// ```
    /// let mut batch = tamis_store::Batch::new();
    /// batch.delete("apple")?;
    /// # Ok::<(), tamis_store::Error>(())
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.push(Kind::Delete, key.as_ref(), &[])
    }

    /// Number of writes.
    ///
    /// ```
    /// assert_eq!(tamis_store::Batch::new().len(), 0);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the batch has no writes.
    ///
    /// ```
    /// assert!(tamis_store::Batch::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all writes and keeps the memory.
    ///
    /// ```
    /// let mut batch = tamis_store::Batch::new();
    /// batch.delete("apple")?;
    /// batch.clear();
    /// assert!(batch.is_empty());
    /// # Ok::<(), tamis_store::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Adds a write.
    pub(crate) fn push(
        &mut self,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let too_long = |what, len: usize, max: usize| {
            Err(Error::TooLong { what, len: len as u64, max: max as u64 })
        };
        if key.len() > MAX_KEY {
            return too_long("key", key.len(), MAX_KEY);
        }
        if value.len() > MAX_VALUE {
            return too_long("value", value.len(), MAX_VALUE);
        }
        let Some(count) = self.count.checked_add(1) else {
            return too_long("batch", usize::MAX, u32::MAX as usize);
        };
        self.count = count;
        self.bytes.push(kind as u8);
        put_varint(&mut self.bytes, key.len() as u32);
        put_varint(&mut self.bytes, value.len() as u32);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        Ok(())
    }

    /// The encoded writes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The writes in order.
    pub(crate) fn ops(&self) -> Ops<'_> {
        Ops { bytes: &self.bytes, at: 0 }
    }
}

/// Decoder of the writes of a batch or a frame.
#[derive(Debug, Clone)]
pub(crate) struct Ops<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Ops<'a> {
    /// Decodes `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Whether all bytes have been decoded.
    pub(crate) fn is_done(&self) -> bool {
        self.at == self.bytes.len()
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Op<'a>;

    /// The next write; `None` at the end, and where the bytes are not an
    /// encoding: [`is_done`](Self::is_done) distinguishes the two.
    fn next(&mut self) -> Option<Op<'a>> {
        let mut at = self.at;
        let kind = Kind::from_code(*self.bytes.get(at)?)?;
        at += 1;
        let key_len = varint(self.bytes, &mut at)? as usize;
        let value_len = varint(self.bytes, &mut at)? as usize;
        if key_len > MAX_KEY || value_len > MAX_VALUE {
            return None;
        }
        let key = self.bytes.get(at..at + key_len)?;
        at += key_len;
        let value = self.bytes.get(at..at + value_len)?;
        self.at = at + value_len;
        Some(Op { kind, key, value })
    }
}
