//! Memory for blocks: zeroed, aligned to a cache line, allocated fallibly.

use alloc::boxed::Box;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, Result};
use crate::placement::{Range, address};

/// Bytes in a cache line, the unit everything is aligned to.
pub(crate) const LINE: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; LINE]);

const _: () = assert!(size_of::<Line>() == LINE && align_of::<Line>() == LINE);

// SAFETY: all bytes of a `Line` are those of its `[u8; 64]`, for which zero
// is a value.
#[expect(unsafe_code, reason = "derive would need a procedural macro")]
unsafe impl Zeroable for Line {}

// SAFETY: `repr(C)` with the size of its one field `[u8; 64]` (asserted
// above): no padding, every byte pattern is a value, no pointers, no interior
// mutability.
#[expect(unsafe_code, reason = "derive would need a procedural macro")]
unsafe impl Pod for Line {}

/// The blocks of a payload that starts there, with whatever is behind it.
///
/// The payload's length was checked when the filter was made, and no key
/// has a block outside it.
#[inline(always)]
pub(crate) fn blocks_from<const BYTES: usize>(
    data: &[u8],
    start: usize,
) -> &[[u8; BYTES]] {
    let bytes = &data[start..];
    let whole = bytes.len() - bytes.len() % BYTES;
    bytemuck::cast_slice(&bytes[..whole])
}

/// One block of data that is blocks, with whatever is behind the last whole
/// one.
#[expect(unsafe_code, reason = "one comparison where the library has four")]
#[inline(always)]
pub(crate) fn block_at<const BYTES: usize>(
    data: &[u8],
    block: u64,
) -> Option<&[u8; BYTES]> {
    let block = block as usize;
    // SAFETY: of the whole blocks that fit the data this is one, so that
    // neither does the product overflow nor do its bytes end behind the
    // data's. An array of bytes may lie anywhere and have any values; it is
    // borrowed as the data is.
    (block < data.len() / BYTES)
        .then(|| unsafe { &*data.as_ptr().add(block * BYTES).cast() })
}

/// Where single lookups find the blocks of a filter.
pub(crate) trait Memory<D> {
    /// A block, if it is there; `before` is how many blocks the data has in
    /// front of the first one.
    fn block<const BYTES: usize>(
        data: &D,
        before: u64,
        block: u64,
    ) -> Option<&[u8; BYTES]>;

    /// The block of `count` that a hash chooses, and what is left of the
    /// hash: [`address`].
    #[inline(always)]
    fn choose<const BYTES: usize>(
        data: &D,
        before: u64,
        count: u64,
        hash: u64,
    ) -> Option<(&[u8; BYTES], u64)> {
        let (block, rest) = address(hash, count);
        Some((Self::block(data, before, block)?, rest))
    }
}

/// Behind something else, in any data.
pub(crate) struct Behind;

impl<D: AsRef<[u8]>> Memory<D> for Behind {
    #[inline(always)]
    fn block<const BYTES: usize>(
        data: &D,
        before: u64,
        block: u64,
    ) -> Option<&[u8; BYTES]> {
        block_at(data.as_ref(), before + block)
    }
}

/// In memory that has all blocks and nothing else: there is less to ask, and
/// a lookup notices every instruction.
pub(crate) struct Alone;

impl Memory<Owned> for Alone {
    #[inline(always)]
    fn block<const BYTES: usize>(
        data: &Owned,
        _: u64,
        block: u64,
    ) -> Option<&[u8; BYTES]> {
        data.blocks().get(block as usize)
    }

    /// From as many as there are, where that need not be worked out: then
    /// nothing is asked of the block that is chosen.
    #[inline(always)]
    fn choose<const BYTES: usize>(
        data: &Owned,
        _: u64,
        count: u64,
        hash: u64,
    ) -> Option<(&[u8; BYTES], u64)> {
        if BYTES == LINE {
            debug_assert_eq!(data.blocks::<BYTES>().len() as u64, count);
            return Some(Range::new(data.blocks())?.choose_and_rest(hash));
        }
        let (block, rest) = address(hash, count);
        Some((Self::block(data, 0, block)?, rest))
    }
}

/// Data with room for a block that may begin anywhere.
#[derive(Clone, Copy)]
pub(crate) struct Anywhere<'a, const BYTES: usize> {
    data: &'a [u8],
    /// The last place from which on there are so many bytes.
    last: usize,
}

impl<'a, const BYTES: usize> Anywhere<'a, BYTES> {
    #[inline(always)]
    pub(crate) fn new(data: &'a [u8]) -> Option<Self> {
        let last = data.len().checked_sub(BYTES)?;
        Some(Self { data, last })
    }

    /// The block that begins at a byte.
    #[expect(unsafe_code, reason = "one comparison where there would be two")]
    #[inline(always)]
    pub(crate) fn get(self, offset: u64) -> Option<&'a [u8; BYTES]> {
        let offset = offset as usize;
        // SAFETY: `BYTES` bytes from the offset on are inside the data: from
        // `last` on there are so many, as `new` has seen to, and the offset
        // is not behind it. An array of bytes may lie anywhere and have any
        // values; it is borrowed as the data is.
        (offset <= self.last)
            .then(|| unsafe { &*self.data.as_ptr().add(offset).cast() })
    }
}

/// Bytes owned by a structure, aligned to a cache line so that a block
/// never straddles two.
///
/// Blocks are kept as little-endian *bytes*, not words: the same memory is
/// then the file, on every machine, and reading it needs no conversion step
/// and no alignment from a caller's buffer.
///
/// ```
/// use tamis::{Blocked, Owned};
///
/// let filter: Blocked<Owned> =
///     Blocked::builder().items(1000).fpr(0.01).build()?;
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Owned {
    lines: Box<[Line]>,
    bytes: usize,
}

impl Owned {
    /// `bytes` zero bytes.
    pub(crate) fn zeroed(bytes: u64) -> Result<Self> {
        let fail = || Error::Allocation { bytes };
        let len = usize::try_from(bytes).map_err(|_| fail())?;
        let lines = bytemuck::allocation::try_zeroed_slice_box::<Line>(
            len.div_ceil(LINE),
        )
        .map_err(|()| fail())?;
        Ok(Self { lines, bytes: len })
    }

    /// A copy of `bytes`.
    pub(crate) fn copy_of(bytes: &[u8]) -> Result<Self> {
        let mut owned = Self::zeroed(bytes.len() as u64)?;
        owned.as_mut().copy_from_slice(bytes);
        Ok(owned)
    }

    /// All whole blocks.
    #[inline(always)]
    pub(crate) fn blocks<const BYTES: usize>(&self) -> &[[u8; BYTES]] {
        match BYTES {
            // As many as there are lines, which need not be worked out.
            LINE => bytemuck::cast_slice(&self.lines),
            _ => blocks_from(self.as_ref(), 0),
        }
    }

    /// All lines, with what the last one has behind the bytes.
    #[inline]
    pub(crate) fn lines_mut(&mut self) -> &mut [Line] {
        &mut self.lines
    }

    #[cfg(feature = "std")]
    pub(crate) fn into_parts(self) -> (Box<[Line]>, usize) {
        (self.lines, self.bytes)
    }

    #[cfg(feature = "std")]
    pub(crate) fn from_parts(lines: Box<[Line]>, bytes: usize) -> Self {
        assert_eq!(lines.len(), bytes.div_ceil(LINE));
        Self { lines, bytes }
    }
}

#[expect(unsafe_code, reason = "five instructions less for every lookup")]
impl AsRef<[u8]> for Owned {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `zeroed` and `from_parts`, which make all of these, see to
        // it that the lines have as many bytes, or more. A line is bytes and
        // nothing else, all of them initialised, and it has no interior
        // mutability; the slice borrows `self`, and with it the lines.
        unsafe {
            core::slice::from_raw_parts(self.lines.as_ptr().cast(), self.bytes)
        }
    }
}

impl AsMut<[u8]> for Owned {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.bytes]
    }
}

impl core::fmt::Debug for Owned {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Owned({} bytes)", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_with_the_data() {
        let bytes: [u8; 70] = core::array::from_fn(|at| at as u8);
        assert!(Anywhere::<64>::new(&bytes[..63]).is_none());
        for len in 64..=70 {
            let data = Anywhere::<64>::new(&bytes[..len]).unwrap();
            for offset in 0..=70 {
                let block = data.get(offset as u64);
                let expected = bytes[..len].get(offset..offset + 64);
                assert_eq!(block.map(|block| &block[..]), expected);
            }
            assert!(data.get(u64::MAX).is_none());
        }
    }
}
