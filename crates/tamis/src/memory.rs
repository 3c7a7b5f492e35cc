//! Memory for blocks: [`Owned`] buffers (zeroed, aligned to a cache line,
//! allocated fallibly), and every unchecked access to blocks in memory.

use alloc::boxed::Box;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, Result};
use crate::placement::address;

/// Bytes in a cache line, the unit of alignment.
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

/// The whole blocks of `bytes`.
#[expect(unsafe_code, reason = "a cast without a check of the length")]
#[inline(always)]
pub(crate) fn blocks<const BYTES: usize>(bytes: &[u8]) -> &[[u8; BYTES]] {
    // SAFETY: `bytes.len() / BYTES * BYTES <= bytes.len()`, so the arrays are
    // inside `bytes`. An array of bytes has alignment 1 and no invalid values.
    unsafe {
        let whole = bytes.len() / BYTES;
        core::slice::from_raw_parts(bytes.as_ptr().cast(), whole)
    }
}

/// The whole blocks of `bytes`, to be changed.
#[expect(unsafe_code, reason = "a cast without a check of the length")]
#[inline(always)]
pub(crate) fn blocks_mut<const BYTES: usize>(
    bytes: &mut [u8],
) -> &mut [[u8; BYTES]] {
    // SAFETY: as in `blocks`; the result borrows `bytes` mutably.
    unsafe {
        let whole = bytes.len() / BYTES;
        core::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), whole)
    }
}

/// A range of a structure's blocks, to be changed.
pub(crate) struct BlocksMut<'a> {
    /// Number of the first block in `bytes`.
    pub(crate) first: u64,
    pub(crate) bytes: &'a mut [u8],
}

/// Where a single lookup finds the blocks of a filter in memory of type `D`.
pub(crate) trait BlockSource<D> {
    /// Block number `block` behind a header of `header_bytes` bytes, if it
    /// exists.
    fn block<const BYTES: usize>(
        data: &D,
        header_bytes: usize,
        block: u64,
    ) -> Option<&[u8; BYTES]>;

    /// The block of `count` that a hash chooses, and the rest of the hash:
    /// [`address`].
    #[inline(always)]
    fn choose<const BYTES: usize>(
        data: &D,
        header_bytes: usize,
        count: u64,
        hash: u64,
    ) -> Option<(&[u8; BYTES], u64)> {
        let (block, rest) = address(hash, count);
        Some((Self::block(data, header_bytes, block)?, rest))
    }
}

/// Blocks behind a header, in memory of any type.
pub(crate) struct AfterHeader;

impl<D: AsRef<[u8]>> BlockSource<D> for AfterHeader {
    #[inline(always)]
    fn block<const BYTES: usize>(
        data: &D,
        header_bytes: usize,
        block: u64,
    ) -> Option<&[u8; BYTES]> {
        // A wrapped offset is checked like any other. Headers need not be
        // multiples of the block size.
        let offset = block.wrapping_mul(BYTES as u64);
        let offset = offset.wrapping_add(header_bytes as u64);
        UnalignedBlocks::new(data.as_ref())?.get(offset)
    }
}

/// Blocks that fill a buffer: without a header a lookup has fewer
/// instructions (blocked in the third-level cache: 10 % faster).
pub(crate) struct WholeBuffer;

impl BlockSource<Owned> for WholeBuffer {
    #[inline(always)]
    fn block<const BYTES: usize>(
        data: &Owned,
        _: usize,
        block: u64,
    ) -> Option<&[u8; BYTES]> {
        data.blocks().get(usize::try_from(block).ok()?)
    }

    /// Uses the slice's own length, so that indexing needs no bounds check.
    #[inline(always)]
    fn choose<const BYTES: usize>(
        data: &Owned,
        _: usize,
        count: u64,
        hash: u64,
    ) -> Option<(&[u8; BYTES], u64)> {
        if BYTES == LINE {
            debug_assert_eq!(data.blocks::<BYTES>().len() as u64, count);
            let blocks = NonEmptyBlocks::new(data.blocks())?;
            return Some(blocks.choose_and_rest(hash));
        }
        let (block, rest) = address(hash, count);
        Some((Self::block(data, 0, block)?, rest))
    }
}

/// A slice of at least one block, of which a hash chooses one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NonEmptyBlocks<'a, T> {
    /// Not empty: checked by `new`.
    blocks: &'a [T],
}

impl<'a, T> NonEmptyBlocks<'a, T> {
    /// `None` for an empty slice.
    #[inline(always)]
    pub(crate) fn new(blocks: &'a [T]) -> Option<Self> {
        (!blocks.is_empty()).then_some(Self { blocks })
    }

    /// The slice.
    #[inline(always)]
    pub(crate) fn all(self) -> &'a [T] {
        self.blocks
    }

    /// The block that a hash chooses: [`address`] without a bounds check. The
    /// check is two instructions, but a batch in memory is limited by the
    /// reorder buffer: fewer instructions per key are more keys in it.
    #[inline(always)]
    pub(crate) fn choose(self, hash: u64) -> &'a T {
        self.choose_and_rest(hash).0
    }

    /// The block that a hash chooses, and the rest of the hash.
    #[expect(unsafe_code, reason = "a bounds check that cannot fail")]
    #[inline(always)]
    pub(crate) fn choose_and_rest(self, hash: u64) -> (&'a T, u64) {
        let (at, rest) = address(hash, self.blocks.len() as u64);
        // SAFETY: with n blocks, n > 0 by `new`, at = floor(hash * n / 2^64)
        // and hash < 2^64, so at < n; n is a usize, so at is one.
        (unsafe { self.blocks.get_unchecked(at as usize) }, rest)
    }
}

/// The bits of a non-empty slice, of which a hash chooses one:
/// [`address`] without a bounds check, which would be two of nine
/// instructions per bit.
pub(crate) struct BitSlice<'a> {
    /// Not empty: checked by `new`.
    bytes: &'a [u8],
}

impl<'a> BitSlice<'a> {
    /// `None` for an empty slice.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        (!bytes.is_empty()).then_some(Self { bytes })
    }

    /// The byte of the chosen bit, shifted so that the bit is its lowest.
    #[expect(unsafe_code, reason = "a bounds check that cannot fail")]
    #[inline(always)]
    pub(crate) fn choose(&self, hash: u64) -> u8 {
        let bit = address(hash, bits(self.bytes.len())).0;
        // SAFETY: as in `bits`: bit / 8 < bytes.len(), which is not zero by
        // `new`.
        let byte = unsafe { self.bytes.get_unchecked((bit / 8) as usize) };
        byte >> (bit % 8)
    }
}

/// The bits of a non-empty slice of words, to be set.
pub(crate) struct BitSliceMut<'a> {
    /// Little-endian; not empty: checked by `new`.
    words: &'a mut [[u8; 8]],
}

impl<'a> BitSliceMut<'a> {
    /// `None` for less than a word. Bytes behind the last whole word are not
    /// part of the slice.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a mut [u8]) -> Option<Self> {
        let words = blocks_mut(bytes);
        (!words.is_empty()).then_some(Self { words })
    }

    /// Sets the chosen bit. Returns its word as it was, shifted so that the
    /// bit is its lowest.
    ///
    /// Writes without a test: at half fill the branch would be mispredicted
    /// for every second bit.
    #[expect(unsafe_code, reason = "a bounds check that cannot fail")]
    #[inline(always)]
    pub(crate) fn set(&mut self, hash: u64) -> u64 {
        let bit = address(hash, bits(8 * self.words.len())).0;
        // SAFETY: as in `bits`: bit / 8 < 8 * words.len(), so that bit / 64 <
        // words.len(), which is not zero by `new`.
        let word =
            unsafe { self.words.get_unchecked_mut((bit / 64) as usize) };
        let before = u64::from_le_bytes(*word);
        *word = (before | 1 << (bit % 64)).to_le_bytes();
        before >> (bit % 64)
    }
}

/// The number of bits in `bytes` bytes.
///
/// A product that wraps is smaller: for every hash and every `bytes`, the
/// result b of [`address`] is either below `8 * bytes` or, with a product of
/// zero, 0. So b / 8 < bytes if bytes > 0.
#[inline(always)]
fn bits(bytes: usize) -> u64 {
    (bytes as u64).wrapping_mul(8)
}

/// Memory in which a block can begin at any byte.
#[derive(Clone, Copy)]
pub(crate) struct UnalignedBlocks<'a, const BYTES: usize> {
    data: &'a [u8],
    /// Largest offset of a block: `data.len() - BYTES`.
    last: usize,
}

impl<'a, const BYTES: usize> UnalignedBlocks<'a, BYTES> {
    /// `None` if `data` has no room for a block.
    #[inline(always)]
    pub(crate) fn new(data: &'a [u8]) -> Option<Self> {
        let last = data.len().checked_sub(BYTES)?;
        Some(Self { data, last })
    }

    /// The block that begins at a byte.
    #[expect(unsafe_code, reason = "one comparison where slicing has two")]
    #[inline(always)]
    pub(crate) fn get(self, offset: u64) -> Option<&'a [u8; BYTES]> {
        // Not cut to 32 bits where a usize has as many.
        let offset = usize::try_from(offset).ok()?;
        // SAFETY: `offset <= last`, and `new` ensured `last + BYTES ==
        // data.len()`, so the array is inside `data`. An array of bytes has
        // alignment 1 and no invalid values.
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
            // The slice's own length, without a division.
            LINE => bytemuck::cast_slice(&self.lines),
            _ => blocks(self.as_ref()),
        }
    }

    /// All lines, with the padding behind the last byte.
    #[cfg(feature = "std")]
    pub(crate) fn lines_mut(&mut self) -> &mut [Line] {
        &mut self.lines
    }

    #[cfg(feature = "std")]
    pub(crate) fn into_lines(self) -> Box<[Line]> {
        self.lines
    }

    #[cfg(feature = "std")]
    pub(crate) fn from_parts(lines: Box<[Line]>, bytes: usize) -> Self {
        assert_eq!(lines.len(), bytes.div_ceil(LINE));
        Self { lines, bytes }
    }
}

#[expect(unsafe_code, reason = "five instructions less per lookup")]
impl AsRef<[u8]> for Owned {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `bytes <= LINE * lines.len()`, ensured by `zeroed` and
        // `from_parts`, the only constructors. A line is LINE initialised
        // bytes without interior mutability; the slice borrows `self`.
        unsafe {
            core::slice::from_raw_parts(self.lines.as_ptr().cast(), self.bytes)
        }
    }
}

#[expect(unsafe_code, reason = "five instructions less per insertion")]
impl AsMut<[u8]> for Owned {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        let lines = self.lines.as_mut_ptr().cast();
        // SAFETY: as in `as_ref`; the slice borrows `self` mutably.
        unsafe { core::slice::from_raw_parts_mut(lines, self.bytes) }
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
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn blocks_end_with_the_data() {
        let bytes: [u8; 70] = core::array::from_fn(|at| at as u8);
        assert!(UnalignedBlocks::<64>::new(&bytes[..63]).is_none());
        for len in 64..=70 {
            let data = UnalignedBlocks::<64>::new(&bytes[..len]).unwrap();
            for offset in 0..=70 {
                let block = data.get(offset as u64);
                let expected = bytes[..len].get(offset..offset + 64);
                assert_eq!(block.map(|block| &block[..]), expected);
            }
            assert!(data.get(u64::MAX).is_none());
            // Cut to 32 bits, this would be the first block.
            assert!(data.get(1 << 32).is_none());
            let bytes = &bytes[..len];
            assert!(AfterHeader::block::<64>(&bytes, 0, 1 << 26).is_none());
        }
    }

    proptest! {
        #[test]
        fn chooses_the_block_of_the_address(
            hash in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
            len in 0usize..100,
        ) {
            let blocks: Vec<usize> = (0..len).collect();
            let chosen = NonEmptyBlocks::new(&blocks).map(|all| *all.choose(hash));
            let (at, _) = address(hash, len as u64);
            prop_assert_eq!(chosen, (len > 0).then_some(at as usize));
        }
    }
}
